# nodes: each node's operations and p99 on the same scales, or a band if there are many nodes.
# To draw nodes.png and nodes.svg from nodes.tsv: gnuplot nodes.gp
# To draw only one of them: gnuplot -e "kind='png'" nodes.gp

if (!exists('kind')) kind = 'png'; load 'nodes.gp'; kind = 'svg'; load 'nodes.gp'; exit
reset
set encoding utf8

# Colours.
background = '#181A1B'
ink = '#E8E6E3'
faint = '#A09B94'
mark = '#77797B'
grid = '#3A3E41'
shade = '#2A2D2F'
alarm = '#FF6B5E'
reads = '#56B4E9'
writes = '#E69F00'
tail = '#56B4E9'
orange = '#E69F00'
sky = '#56B4E9'
green = '#009E73'
yellow = '#F0E442'
blue = '#0072B2'
vermillion = '#D55E00'
purple = '#CC79A7'

# Formats. Font sizes in SVG are in pixels, so they are scaled by 4/3.
if (kind eq 'png') set terminal pngcairo size 1600,1200 noenhanced background rgb background font 'DejaVu Sans,9'
if (kind eq 'svg') set terminal svg size 1600,1200 noenhanced background rgb background font 'DejaVu Sans,9' fontscale 1.333 mouse standalone name 'nodes'
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
# Along the time axis: phases, missing nodes, events.
set object rectangle from 1795258800, graph 0 to 1795258806, graph 1 behind fc rgb shade fs solid noborder
set arrow from 1795258802, graph 0 to 1795258802, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set arrow from 1795258804, graph 0 to 1795258804, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set arrow from 1795258804.8, graph 0 to 1795258804.8, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set label 'mixed load, 5.0.8, RF 3' at screen 0.0075, screen 0.9850 font title_font tc rgb ink
set label '2026-11-21 11:00:00 to 11:00:06 (UTC+01:00), 6 s, 14 nodes, interval 1 s' at screen 0.0075, screen 0.9700 font ',9' tc rgb faint
set label 'Cassandra 5.0.8 on 3 nodes · interval 1 s · samples lost: 200 of 1800 (node-2) · largest clock error ±1.2 ms · casstat 0.1.0 · cassandra-stress mixed ratio(write=2,read=3) n=1000000 cl=QUORUM -rate threads=64 throttle=1500/s' at screen 0.0213, screen 0.0108 font ',8' tc rgb faint
set label 'down node-1' at screen 0.3308, screen 0.9379 center font ',8' tc rgb faint
set label 'up node-1' at screen 0.6129, screen 0.9379 center font ',8' tc rgb faint
set label 'schema' at screen 0.7257, screen 0.9379 center font ',8' tc rgb faint
set label 'warm-up' at screen 0.4719, screen 0.9504 center font ',8' tc rgb ink
set label '11:00:02.0 node-1 down: is now DOWN' at 1795258802, graph 1 hypertext point pt 11 ps dot lc rgb mark front
set label '11:00:04.0 node-1 up: is now UP' at 1795258804, graph 1 hypertext point pt 11 ps dot lc rgb mark front
set label '11:00:04.8 schema: schema changed' at 1795258804.8, graph 1 hypertext point pt 11 ps dot lc rgb mark front

# reads/s: lowest, median and highest node.
set xrange [1795258800:1795258806]
set xtics time format '' (1795258800, 1795258800.5, 1795258801, 1795258801.5, 1795258802, 1795258802.5, 1795258803, 1795258803.5, 1795258804, 1795258804.5, 1795258805, 1795258805.5, 1795258806)
set xlabel '' tc rgb ink
set lmargin at screen 0.0488; set rmargin at screen 0.8950
set tmargin at screen 0.9250; set bmargin at screen 0.7167
set label 9001 'reads/s' at screen 0.0100, screen 0.8208 center rotate tc rgb ink
unset logscale y
set yrange [0:500]
set ytics ('0' 0, '100' 100, '200' 200, '300' 300, '400' 400, '500' 500)
set key at screen 0.9025, screen 0.9250 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'nodes.tsv' using (x(1)):(column('reads_per_s_min')):(column('reads_per_s_max')) with filledcurves fc rgb reads fs transparent solid 0.3 noborder title 'lowest to highest', \
     'nodes.tsv' using (x(1)):(column('reads_per_s_median')) with linespoints lc rgb reads lw 1.3 dt solid pt 7 ps 0.8*dot pi 1 title 'median node', \
     for [i=1:hover] 'nodes.tsv' every 1 using (x(1)):(column('reads_per_s_median')):(clock(0).sprintf('\nmedian node %.5g', column('reads_per_s_median'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label

# writes/s: lowest, median and highest node.
set xrange [1795258800:1795258806]
set xtics time format '' (1795258800, 1795258800.5, 1795258801, 1795258801.5, 1795258802, 1795258802.5, 1795258803, 1795258803.5, 1795258804, 1795258804.5, 1795258805, 1795258805.5, 1795258806)
set xlabel '' tc rgb ink
set lmargin at screen 0.0488; set rmargin at screen 0.8950
set tmargin at screen 0.7050; set bmargin at screen 0.4967
set label 9001 'writes/s' at screen 0.0100, screen 0.6008 center rotate tc rgb ink
unset logscale y
set yrange [0:350]
set ytics ('0' 0, '50' 50, '100' 100, '150' 150, '200' 200, '250' 250, '300' 300, '350' 350)
set key at screen 0.9025, screen 0.7050 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'nodes.tsv' using (x(1)):(column('writes_per_s_min')):(column('writes_per_s_max')) with filledcurves fc rgb writes fs transparent solid 0.3 noborder title 'lowest to highest', \
     'nodes.tsv' using (x(1)):(column('writes_per_s_median')) with linespoints lc rgb writes lw 1.3 dt solid pt 9 ps 0.8*dot pi 1 title 'median node', \
     for [i=1:hover] 'nodes.tsv' every 1 using (x(1)):(column('writes_per_s_median')):(clock(0).sprintf('\nmedian node %.5g', column('writes_per_s_median'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label

# read p99, ms: lowest, median and highest node.
set xrange [1795258800:1795258806]
set xtics time format '' (1795258800, 1795258800.5, 1795258801, 1795258801.5, 1795258802, 1795258802.5, 1795258803, 1795258803.5, 1795258804, 1795258804.5, 1795258805, 1795258805.5, 1795258806)
set xlabel '' tc rgb ink
set lmargin at screen 0.0488; set rmargin at screen 0.8950
set tmargin at screen 0.4850; set bmargin at screen 0.2767
set label 9001 'read p99, ms' at screen 0.0100, screen 0.3808 center rotate tc rgb ink
set yrange [2:200]
set logscale y
set ytics ('2' 2, '5' 5, '10' 10, '20' 20, '50' 50, '100' 100, '200' 200)
set key at screen 0.9025, screen 0.4850 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'nodes.tsv' using (x(1)):(column('read_p99_ms_min')):(column('read_p99_ms_max')) with filledcurves fc rgb reads fs transparent solid 0.3 noborder title 'lowest to highest', \
     'nodes.tsv' using (x(1)):(column('read_p99_ms_median')) with linespoints lc rgb reads lw 1.3 dt solid pt 7 ps 0.8*dot pi 1 title 'median node', \
     for [i=1:hover] 'nodes.tsv' every 1 using (x(1)):(column('read_p99_ms_median')):(clock(0).sprintf('\nmedian node %.5g', column('read_p99_ms_median'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label

# write p99, ms: lowest, median and highest node.
set xrange [1795258800:1795258806]
set xtics time format '%H:%M:%.1S' (1795258800, 1795258800.5, 1795258801, 1795258801.5, 1795258802, 1795258802.5, 1795258803, 1795258803.5, 1795258804, 1795258804.5, 1795258805, 1795258805.5, 1795258806)
set xlabel 'local time, h:min:s' tc rgb ink
set lmargin at screen 0.0488; set rmargin at screen 0.8950
set tmargin at screen 0.2650; set bmargin at screen 0.0567
set label 9001 'write p99, ms' at screen 0.0100, screen 0.1608 center rotate tc rgb ink
set yrange [1:20]
set logscale y
set ytics ('1' 1, '2' 2, '5' 5, '10' 10, '20' 20)
set key at screen 0.9025, screen 0.2650 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'nodes.tsv' using (x(1)):(column('write_p99_ms_min')):(column('write_p99_ms_max')) with filledcurves fc rgb writes fs transparent solid 0.3 noborder title 'lowest to highest', \
     'nodes.tsv' using (x(1)):(column('write_p99_ms_median')) with linespoints lc rgb writes lw 1.3 dt solid pt 9 ps 0.8*dot pi 1 title 'median node', \
     for [i=1:hover] 'nodes.tsv' every 1 using (x(1)):(column('write_p99_ms_median')):(clock(0).sprintf('\nmedian node %.5g', column('write_p99_ms_median'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label
unset multiplot
unset output
