# runs: several runs: operations, p99, CPU and GC, with each phase beginning at the same time.
# To draw runs.png and runs.svg from runs.tsv and runs.client1.tsv and runs.client2.tsv: gnuplot runs.gp
# To draw only one of them: gnuplot -e "kind='png'" runs.gp

if (!exists('kind')) kind = 'png'; load 'runs.gp'; kind = 'svg'; load 'runs.gp'; exit
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
if (kind eq 'png') set terminal pngcairo size 1200,2350 noenhanced background rgb background font 'DejaVu Sans,9'
if (kind eq 'svg') set terminal svg size 1200,2350 noenhanced background rgb background font 'DejaVu Sans,9' fontscale 1.333 mouse standalone name 'runs'
title_font = (kind eq 'png') ? 'DejaVu Sans:Bold,14' : 'DejaVu Sans,14'
dot = (kind eq 'png') ? 1.0 : 1.1
# Tooltips (SVG only).
hover = (kind eq 'svg')
clock(n) = strftime('%H:%M:%S', x(1))
set output 'runs.'.kind

# Data: the first line is the header; NaN is a missing value and interrupts the curve.
set datafile separator "\t"
set datafile columnheaders

set border 3 lc rgb faint
set tics nomirror out scale 0.5 textcolor rgb ink
set grid lc rgb grid lt 1 lw 0.7
unset key
set multiplot

x(n) = column(n)
clock(n) = strftime('%tH:%tM:%tS', x(1))
# Along the time axis: phases, missing nodes, events.
set object rectangle from 0, graph 0 to 3, graph 1 behind fc rgb shade fs solid noborder
set arrow from 3, graph 0 to 3, graph 1 nohead back lw 1 lc rgb faint
set arrow from 3, graph 0 to 3, graph 1 nohead back lw 1 lc rgb faint
set label '3 runs' at screen 0.0100, screen 0.9923 font title_font tc rgb ink
set label 'aligned by phase, interval 1 s' at screen 0.0100, screen 0.9847 font ',9' tc rgb faint
set label 'first: 3 nodes · second' at screen 0.0283, screen 0.0055 font ',8' tc rgb faint
set label 'warm-up' at screen 0.1975, screen 0.9747 center font ',8' tc rgb ink
set label 'main' at screen 0.5950, screen 0.9747 center font ',8' tc rgb ink

# reads/s.
set xrange [0:9]
set xtics time format '' (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
set xlabel '' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.9681; set bmargin at screen 0.8881
set label 9001 'reads/s' at screen 0.0133, screen 0.9281 center rotate tc rgb ink
unset logscale y
set yrange [0:250]
set ytics ('0' 0, '50' 50, '100' 100, '150' 150, '200' 200, '250' 250)
set key at screen 0.8700, screen 0.9681 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'runs.tsv' using (x(1)):(column(2)) with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 1 title 'both', \
     'runs.tsv' using (x(1)):(column(3)) with linespoints lc rgb vermillion lw 1.6 dt solid pt 9 ps 0.8*dot pi 1 title 'closed', \
     'runs.tsv' using (x(1)):(column(4)) with linespoints lc rgb green lw 1.6 dt solid pt 5 ps 0.8*dot pi 1 title 'servers only', \
     for [i=1:hover] 'runs.tsv' every 1 using (x(1)):(column(4)):(clock(0).sprintf('\nboth %.5g\nclosed %.5g\nservers only %.5g', column(2), column(3), column(4))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label

# writes/s.
set xrange [0:9]
set xtics time format '' (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
set xlabel '' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.8822; set bmargin at screen 0.8022
set label 9001 'writes/s' at screen 0.0133, screen 0.8422 center rotate tc rgb ink
unset logscale y
set yrange [0:1]
set ytics ('0' 0, '0.2' 0.2, '0.4' 0.4, '0.6' 0.6, '0.8' 0.8, '1' 1)
unset key
set label 9999 'no data' at graph 0.5, graph 0.5 center font ',11' tc rgb faint front
plot NaN notitle
unset label 9999
unset label

# read p99, ms.
set xrange [0:9]
set xtics time format '' (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
set xlabel '' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.7962; set bmargin at screen 0.7163
set label 9001 'read p99, ms' at screen 0.0133, screen 0.7563 center rotate tc rgb ink
set yrange [1:2]
set logscale y
set ytics ('1' 1, '2' 2)
unset key
plot 'runs.tsv' using (x(1)):(column(8)) with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 1 title 'both', \
     'runs.tsv' using (x(1)):(column(9)) with linespoints lc rgb vermillion lw 1.6 dt solid pt 9 ps 0.8*dot pi 1 title 'closed', \
     'runs.tsv' using (x(1)):(column(10)) with linespoints lc rgb green lw 1.6 dt solid pt 5 ps 0.8*dot pi 1 title 'servers only', \
     for [i=1:hover] 'runs.tsv' every 1 using (x(1)):(column(10)):(clock(0).sprintf('\nboth %.5g\nclosed %.5g\nservers only %.5g', column(8), column(9), column(10))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label

# write p99, ms.
set xrange [0:9]
set xtics time format '' (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
set xlabel '' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.7103; set bmargin at screen 0.6304
set label 9001 'write p99, ms' at screen 0.0133, screen 0.6703 center rotate tc rgb ink
set yrange [1:10]
set logscale y
set ytics ('1' 1, '2' 2, '5' 5, '10' 10)
unset key
set label 9999 'no data' at graph 0.5, graph 0.5 center font ',11' tc rgb faint front
plot NaN notitle
unset label 9999
unset label

# CPU busy, %.
set xrange [0:9]
set xtics time format '' (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
set xlabel '' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.6244; set bmargin at screen 0.5444
set label 9001 'CPU busy, %' at screen 0.0133, screen 0.5844 center rotate tc rgb ink
unset logscale y
set yrange [0:50]
set ytics ('0' 0, '10' 10, '20' 20, '30' 30, '40' 40, '50' 50)
unset key
plot 'runs.tsv' using (x(1)):(column(14)) with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 1 title 'both', \
     'runs.tsv' using (x(1)):(column(15)) with linespoints lc rgb vermillion lw 1.6 dt solid pt 9 ps 0.8*dot pi 1 title 'closed', \
     'runs.tsv' using (x(1)):(column(16)) with linespoints lc rgb green lw 1.6 dt solid pt 5 ps 0.8*dot pi 1 title 'servers only', \
     for [i=1:hover] 'runs.tsv' every 1 using (x(1)):(column(16)):(clock(0).sprintf('\nboth %.5g\nclosed %.5g\nservers only %.5g', column(14), column(15), column(16))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label

# GC, % of time.
set xrange [0:9]
set xtics time format '' (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
set xlabel '' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.5385; set bmargin at screen 0.4585
set label 9001 'GC, % of time' at screen 0.0133, screen 0.4985 center rotate tc rgb ink
unset logscale y
set yrange [0:1]
set ytics ('0' 0, '0.2' 0.2, '0.4' 0.4, '0.6' 0.6, '0.8' 0.8, '1' 1)
unset key
set label 9999 'no data' at graph 0.5, graph 0.5 center font ',11' tc rgb faint front
plot NaN notitle
unset label 9999
unset label

# client operations/s.
set xrange [0:9]
set xtics time format '' (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
set xlabel '' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.4526; set bmargin at screen 0.3726
set label 9001 'client operations/s' at screen 0.0133, screen 0.4126 center rotate tc rgb ink
unset logscale y
set yrange [0:100]
set ytics ('0' 0, '20' 20, '40' 40, '60' 60, '80' 80, '100' 100)
unset key
plot 'runs.client1.tsv' using (x(1)):(column(2)) with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 1 title 'both', \
     'runs.client2.tsv' using (x(1)):(column(2)) with linespoints lc rgb vermillion lw 1.6 dt solid pt 9 ps 0.8*dot pi 1 title 'closed', \
     for [i=1:hover] 'runs.client1.tsv' every 1 using (x(1)):(column(2)):(clock(0).sprintf('\nboth %.5g', column(2))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle, \
     for [i=1:hover] 'runs.client2.tsv' every 1 using (x(1)):(column(2)):(clock(0).sprintf('\nclosed %.5g', column(2))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label

# client mean, ms (response time).
set xrange [0:9]
set xtics time format '' (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
set xlabel '' tc rgb ink
set label 'response time' at screen 0.8700, screen 0.3637 left font ',8' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.3667; set bmargin at screen 0.2867
set label 9001 'client mean, ms' at screen 0.0133, screen 0.3267 center rotate tc rgb ink
unset logscale y
set yrange [0:6]
set ytics ('0' 0, '1' 1, '2' 2, '3' 3, '4' 4, '5' 5, '6' 6)
unset key
plot 'runs.client1.tsv' using (x(1)):(column(3)) with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 1 title 'both', \
     for [i=1:hover] 'runs.client1.tsv' every 1 using (x(1)):(column(3)):(clock(0).sprintf('\nboth %.5g', column(3))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label

# client mean, ms (service time).
set xrange [0:9]
set xtics time format '' (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
set xlabel '' tc rgb ink
set label 'service time:' at screen 0.8700, screen 0.2778 left font ',8' tc rgb ink
set label 'coordinated omission' at screen 0.8700, screen 0.2718 left font ',8' tc rgb ink
set label 'possible' at screen 0.8700, screen 0.2658 left font ',8' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.2807; set bmargin at screen 0.2008
set label 9001 'client mean, ms' at screen 0.0133, screen 0.2408 center rotate tc rgb ink
unset logscale y
set yrange [0:3.5]
set ytics ('0' 0, '0.5' 0.5, '1' 1, '1.5' 1.5, '2' 2, '2.5' 2.5, '3' 3, '3.5' 3.5)
unset key
plot 'runs.client1.tsv' using (x(1)):(column(4)) with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 1 title 'both', \
     'runs.client2.tsv' using (x(1)):(column(4)) with linespoints lc rgb vermillion lw 1.6 dt solid pt 9 ps 0.8*dot pi 1 title 'closed', \
     for [i=1:hover] 'runs.client1.tsv' every 1 using (x(1)):(column(4)):(clock(0).sprintf('\nboth %.5g', column(4))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle, \
     for [i=1:hover] 'runs.client2.tsv' every 1 using (x(1)):(column(4)):(clock(0).sprintf('\nclosed %.5g', column(4))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label

# client p99, ms (response time).
set xrange [0:9]
set xtics time format '' (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
set xlabel '' tc rgb ink
set label 'response time' at screen 0.8700, screen 0.1918 left font ',8' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.1948; set bmargin at screen 0.1149
set label 9001 'client p99, ms' at screen 0.0133, screen 0.1548 center rotate tc rgb ink
set yrange [5:10]
set logscale y
set ytics ('5' 5, '10' 10)
unset key
plot 'runs.client1.tsv' using (x(1)):(column(5)) with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 1 title 'both', \
     for [i=1:hover] 'runs.client1.tsv' every 1 using (x(1)):(column(5)):(clock(0).sprintf('\nboth %.5g', column(5))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label

# client p99, ms (service time).
set xrange [0:9]
set xtics time format '%H:%M:%S' (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
set xlabel 'time since the start, h:min:s' tc rgb ink
set label 'service time:' at screen 0.8700, screen 0.1059 left font ',8' tc rgb ink
set label 'coordinated omission' at screen 0.8700, screen 0.1000 left font ',8' tc rgb ink
set label 'possible' at screen 0.8700, screen 0.0940 left font ',8' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.1089; set bmargin at screen 0.0289
set label 9001 'client p99, ms' at screen 0.0133, screen 0.0689 center rotate tc rgb ink
set yrange [2:5]
set logscale y
set ytics ('2' 2, '5' 5)
unset key
plot 'runs.client1.tsv' using (x(1)):(column(6)) with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 1 title 'both', \
     'runs.client2.tsv' using (x(1)):(column(6)) with linespoints lc rgb vermillion lw 1.6 dt solid pt 9 ps 0.8*dot pi 1 title 'closed', \
     for [i=1:hover] 'runs.client1.tsv' every 1 using (x(1)):(column(6)):(clock(0).sprintf('\nboth %.5g', column(6))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle, \
     for [i=1:hover] 'runs.client2.tsv' every 1 using (x(1)):(column(6)):(clock(0).sprintf('\nclosed %.5g', column(6))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label
unset multiplot
unset output
