# nodes: each node's operations and p99 on the same scales, or a band if there are many nodes.
# To draw nodes.png and nodes.svg from nodes.tsv: gnuplot nodes.gp
# To draw only one of them: gnuplot -e "kind='png'" nodes.gp

if (!exists('kind')) kind = 'png'; load 'nodes.gp'; kind = 'svg'; load 'nodes.gp'; exit
reset
set encoding utf8

# Colours.
background = '#FFFFFF'
ink = '#1A1A1A'
faint = '#6B6B6B'
mark = '#8E8E8E'
grid = '#DCDCDC'
shade = '#EEEEEE'
alarm = '#C00000'
reads = '#0072B2'
writes = '#D55E00'
tail = '#0072B2'
orange = '#E69F00'
sky = '#56B4E9'
green = '#009E73'
yellow = '#F0E442'
blue = '#0072B2'
vermillion = '#D55E00'
purple = '#CC79A7'

# Formats. Font sizes in SVG are in pixels, so they are scaled by 4/3.
if (kind eq 'png') set terminal pngcairo size 1200,740 noenhanced background rgb background font 'DejaVu Sans,9'
if (kind eq 'svg') set terminal svg size 1200,740 noenhanced background rgb background font 'DejaVu Sans,9' fontscale 1.333 mouse standalone name 'nodes'
title_font = (kind eq 'png') ? 'DejaVu Sans:Bold,14' : 'DejaVu Sans,14'
dot = (kind eq 'png') ? 1.0 : 1.1
# Tooltips (SVG only).
hover = (kind eq 'svg')
clock(n) = strftime('%H:%M:%S', x(1))
set output 'nodes.'.kind

# Data: the first line is the header; NaN is a missing value and interrupts the curve.
set datafile separator "\t"
set datafile columnheaders

set border 3 lc rgb faint
set tics nomirror out scale 0.5 textcolor rgb ink
set grid lc rgb grid lt 1 lw 0.7
unset key
set multiplot

x(n) = column(n) + 3600
set label 'mixed load, 5.0.8, RF 3' at screen 0.0100, screen 0.9757 font title_font tc rgb ink
set label '2026-11-21 11:00:00 to 11:00:12 (UTC+01:00), 12 s, 3 nodes, interval 1 s; grey: warm-up; red: no data from the node; thin: slowest operation' at screen 0.0100, screen 0.9514 font ',9' tc rgb faint
set label 'Cassandra 5.0.8 on 3 nodes · interval 1 s · samples lost: 200 of 1800 (node-2) · largest clock error ±1.2 ms · casstat 0.1.0 · cassandra-stress mixed ratio(write=2,read=3)' at screen 0.0283, screen 0.0365 font ',8' tc rgb faint
set label 'n=1000000 cl=QUORUM -rate threads=64 throttle=1500/s' at screen 0.0283, screen 0.0176 font ',8' tc rgb faint

# Node 1.
unset arrow; unset object
# Along the time axis: phases, missing nodes, events.
set object rectangle from 1795258800, graph 0 to 1795258812, graph 1 behind fc rgb shade fs solid noborder
set arrow from 1795258809.6, graph 0 to 1795258809.6, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set arrow from 1795258810.4, graph 0 to 1795258810.4, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set label 'node-1' at screen 0.1875, screen 0.8878 center tc rgb ink
set label 'warm-up' at screen 0.1875, screen 0.9115 center font ',8' tc rgb ink
set key at screen 0.8700, screen 0.8770 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
set xrange [1795258800:1795258812]
set xtics time format '' (1795258800, 1795258805, 1795258810)
set xlabel '' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.3100
set tmargin at screen 0.8770; set bmargin at screen 0.5034
set label 9001 'operations/s' at screen 0.0133, screen 0.6902 center rotate tc rgb ink
unset logscale y
set yrange [0:350]
set ytics ('0' 0, '50' 50, '100' 100, '150' 150, '200' 200, '250' 250, '300' 300, '350' 350)
plot 'nodes.tsv' using (x(1)):(column(2)) with linespoints lc rgb reads lw 1.3 dt solid pt 7 ps 0.8*dot pi 1 title 'reads', \
     'nodes.tsv' using (x(1)):(column(3)) with linespoints lc rgb writes lw 1.3 dt solid pt 9 ps 0.8*dot pi 1 title 'writes', \
     for [i=1:hover] 'nodes.tsv' every 1 using (x(1)):(column(3)):(clock(0).sprintf('\nreads %.5g\nwrites %.5g', column(2), column(3))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label; unset key
set xrange [1795258800:1795258812]
set xtics time format '%H:%M:%S' (1795258800, 1795258805, 1795258810)
set xlabel 'local time, h:min:s' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.3100
set tmargin at screen 0.4845; set bmargin at screen 0.1108
set label 9001 'p99 latency, ms' at screen 0.0133, screen 0.2976 center rotate tc rgb ink
set yrange [1:200]
set logscale y
set ytics ('1' 1, '2' 2, '5' 5, '10' 10, '20' 20, '50' 50, '100' 100, '200' 200)
plot 'nodes.tsv' using (x(1)):(column(4)) with linespoints lc rgb reads lw 1.3 dt solid pt 7 ps 0.8*dot pi 1 title 'reads', \
     'nodes.tsv' using (x(1)):(column(5)) with linespoints lc rgb writes lw 1.3 dt solid pt 9 ps 0.8*dot pi 1 title 'writes', \
     'nodes.tsv' using (x(1)):(column(6)) with lines lc rgb faint lw 0.8 dt solid title 'slowest operation', \
     for [i=1:hover] 'nodes.tsv' every 1 using (x(1)):(column(6)):(clock(0).sprintf('\nreads %.5g\nwrites %.5g\nslowest operation %.5g', column(4), column(5), column(6))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label; unset key

# Node 2.
unset arrow; unset object
# Along the time axis: phases, missing nodes, events.
set object rectangle from 1795258800, graph 0 to 1795258812, graph 1 behind fc rgb shade fs solid noborder
set object rectangle from 1795258804, graph 0 to 1795258808, graph 1 behind fc rgb alarm fs transparent solid 0.12 noborder
set arrow from 1795258804, graph 0 to 1795258808, graph 0 nohead front lw 4 lc rgb alarm
set arrow from 1795258804, graph 0 to 1795258804, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set arrow from 1795258808, graph 0 to 1795258808, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set arrow from 1795258809.6, graph 0 to 1795258809.6, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set label 'node-2' at screen 0.4625, screen 0.8878 center tc rgb ink
set label 'warm-up' at screen 0.4625, screen 0.9115 center font ',8' tc rgb ink
unset key
set xrange [1795258800:1795258812]
set xtics time format '' (1795258800, 1795258805, 1795258810)
set xlabel '' tc rgb ink
set lmargin at screen 0.3400; set rmargin at screen 0.5850
set tmargin at screen 0.8770; set bmargin at screen 0.5034
set label 9001 '' at screen 0.2883, screen 0.6902 center rotate tc rgb ink
unset logscale y
set yrange [0:350]
set ytics ('' 0, '' 50, '' 100, '' 150, '' 200, '' 250, '' 300, '' 350)
plot 'nodes.tsv' using (x(1)):(column(7)) with linespoints lc rgb reads lw 1.3 dt solid pt 7 ps 0.8*dot pi 1 title 'reads', \
     'nodes.tsv' using (x(1)):(column(8)) with linespoints lc rgb writes lw 1.3 dt solid pt 9 ps 0.8*dot pi 1 title 'writes', \
     for [i=1:hover] 'nodes.tsv' every 1 using (x(1)):(column(8)):(clock(0).sprintf('\nreads %.5g\nwrites %.5g', column(7), column(8))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label; unset key
set xrange [1795258800:1795258812]
set xtics time format '%H:%M:%S' (1795258800, 1795258805, 1795258810)
set xlabel 'local time, h:min:s' tc rgb ink
set lmargin at screen 0.3400; set rmargin at screen 0.5850
set tmargin at screen 0.4845; set bmargin at screen 0.1108
set label 9001 '' at screen 0.2883, screen 0.2976 center rotate tc rgb ink
set yrange [1:200]
set logscale y
set ytics ('' 1, '' 2, '' 5, '' 10, '' 20, '' 50, '' 100, '' 200)
plot 'nodes.tsv' using (x(1)):(column(9)) with linespoints lc rgb reads lw 1.3 dt solid pt 7 ps 0.8*dot pi 1 title 'reads', \
     'nodes.tsv' using (x(1)):(column(10)) with linespoints lc rgb writes lw 1.3 dt solid pt 9 ps 0.8*dot pi 1 title 'writes', \
     'nodes.tsv' using (x(1)):(column(11)) with lines lc rgb faint lw 0.8 dt solid title 'slowest operation', \
     for [i=1:hover] 'nodes.tsv' every 1 using (x(1)):(column(11)):(clock(0).sprintf('\nreads %.5g\nwrites %.5g\nslowest operation %.5g', column(9), column(10), column(11))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label; unset key

# Node 3.
unset arrow; unset object
# Along the time axis: phases, missing nodes, events.
set object rectangle from 1795258800, graph 0 to 1795258812, graph 1 behind fc rgb shade fs solid noborder
set arrow from 1795258809.6, graph 0 to 1795258809.6, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set label 'node-3' at screen 0.7375, screen 0.8878 center tc rgb ink
set label 'warm-up' at screen 0.7375, screen 0.9115 center font ',8' tc rgb ink
unset key
set xrange [1795258800:1795258812]
set xtics time format '' (1795258800, 1795258805, 1795258810)
set xlabel '' tc rgb ink
set lmargin at screen 0.6150; set rmargin at screen 0.8600
set tmargin at screen 0.8770; set bmargin at screen 0.5034
set label 9001 '' at screen 0.5633, screen 0.6902 center rotate tc rgb ink
unset logscale y
set yrange [0:350]
set ytics ('' 0, '' 50, '' 100, '' 150, '' 200, '' 250, '' 300, '' 350)
plot 'nodes.tsv' using (x(1)):(column(12)) with linespoints lc rgb reads lw 1.3 dt solid pt 7 ps 0.8*dot pi 1 title 'reads', \
     'nodes.tsv' using (x(1)):(column(13)) with linespoints lc rgb writes lw 1.3 dt solid pt 9 ps 0.8*dot pi 1 title 'writes', \
     for [i=1:hover] 'nodes.tsv' every 1 using (x(1)):(column(13)):(clock(0).sprintf('\nreads %.5g\nwrites %.5g', column(12), column(13))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label; unset key
set xrange [1795258800:1795258812]
set xtics time format '%H:%M:%S' (1795258800, 1795258805, 1795258810)
set xlabel 'local time, h:min:s' tc rgb ink
set lmargin at screen 0.6150; set rmargin at screen 0.8600
set tmargin at screen 0.4845; set bmargin at screen 0.1108
set label 9001 '' at screen 0.5633, screen 0.2976 center rotate tc rgb ink
set yrange [1:200]
set logscale y
set ytics ('' 1, '' 2, '' 5, '' 10, '' 20, '' 50, '' 100, '' 200)
plot 'nodes.tsv' using (x(1)):(column(14)) with linespoints lc rgb reads lw 1.3 dt solid pt 7 ps 0.8*dot pi 1 title 'reads', \
     'nodes.tsv' using (x(1)):(column(15)) with linespoints lc rgb writes lw 1.3 dt solid pt 9 ps 0.8*dot pi 1 title 'writes', \
     'nodes.tsv' using (x(1)):(column(16)) with lines lc rgb faint lw 0.8 dt solid title 'slowest operation', \
     for [i=1:hover] 'nodes.tsv' every 1 using (x(1)):(column(16)):(clock(0).sprintf('\nreads %.5g\nwrites %.5g\nslowest operation %.5g', column(14), column(15), column(16))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label; unset key
unset multiplot
unset output
