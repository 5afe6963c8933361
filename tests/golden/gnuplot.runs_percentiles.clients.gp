# runs_percentiles: several runs: latency by percentile in the measured phases.
# To draw runs_percentiles.png and runs_percentiles.svg from runs_percentiles.tsv and runs_percentiles.client.tsv: gnuplot runs_percentiles.gp
# To draw only one of them: gnuplot -e "kind='png'" runs_percentiles.gp

if (!exists('kind')) kind = 'png'; load 'runs_percentiles.gp'; kind = 'svg'; load 'runs_percentiles.gp'; exit
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
if (kind eq 'png') set terminal pngcairo size 1200,1900 noenhanced background rgb background font 'DejaVu Sans,9'
if (kind eq 'svg') set terminal svg size 1200,1900 noenhanced background rgb background font 'DejaVu Sans,9' fontscale 1.333 mouse standalone name 'runs_percentiles'
title_font = (kind eq 'png') ? 'DejaVu Sans:Bold,14' : 'DejaVu Sans,14'
dot = (kind eq 'png') ? 1.0 : 1.1
# Tooltips (SVG only).
hover = (kind eq 'svg')
clock(n) = strftime('%H:%M:%S', x(1))
set output 'runs_percentiles.'.kind

# Data: the first line is the header; NaN is a missing value and interrupts the curve.
set datafile separator "\t"
set datafile columnheaders

set border 3 lc rgb faint
set tics nomirror out scale 0.5 textcolor rgb ink
set grid lc rgb grid lt 1 lw 0.7
unset key
set multiplot

set label '3 runs' at screen 0.0100, screen 0.9905 font title_font tc rgb ink
set label 'measured phases' at screen 0.0100, screen 0.9811 font ',9' tc rgb faint
set label 'first: 3 nodes · second' at screen 0.0283, screen 0.0068 font ',8' tc rgb faint

# Reads.
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.9663; set bmargin at screen 0.7392
set xrange [0:2.7782]
set xtics ('' -0, '' 0.30103, '' 1, '' 1.30103, '' 2)
set xlabel '' tc rgb ink
set label 9001 'read latency, ms' at screen 0.0133, screen 0.8528 center rotate tc rgb ink
set yrange [1:10]
set logscale y
set ytics ('1' 1, '2' 2, '5' 5, '10' 10)
set key at screen 0.8700, screen 0.9663 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'runs_percentiles.tsv' using (-log10(1 - column('percentile')/100)):(column(2)) with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 10 title 'both', \
     'runs_percentiles.tsv' using (-log10(1 - column('percentile')/100)):(column(3)) with linespoints lc rgb vermillion lw 1.6 dt solid pt 9 ps 0.8*dot pi 10 title 'closed', \
     'runs_percentiles.tsv' using (-log10(1 - column('percentile')/100)):(column(4)) with linespoints lc rgb green lw 1.6 dt solid pt 5 ps 0.8*dot pi 10 title 'servers only'
unset label

# Writes.
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.7318; set bmargin at screen 0.5047
set xrange [0:2.7782]
set xtics ('' -0, '' 0.30103, '' 1, '' 1.30103, '' 2)
set xlabel '' tc rgb ink
set label 9001 'write latency, ms' at screen 0.0133, screen 0.6183 center rotate tc rgb ink
set yrange [1:10]
set logscale y
set ytics ('1' 1, '2' 2, '5' 5, '10' 10)
unset key
set label 9999 'no data' at graph 0.5, graph 0.5 center font ',11' tc rgb faint front
plot NaN notitle
unset label 9999
unset label

# Clients, response time.
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.4974; set bmargin at screen 0.2703
set xrange [0:2.7782]
set xtics ('' -0, '' 0.30103, '' 1, '' 1.30103, '' 2)
set xlabel '' tc rgb ink
set label 9001 'client latency, ms' at screen 0.0133, screen 0.3838 center rotate tc rgb ink
set yrange [1:10]
set logscale y
set ytics ('1' 1, '2' 2, '5' 5, '10' 10)
set label 'response time' at screen 0.8700, screen 0.4937 left font ',8' tc rgb ink
unset key
plot 'runs_percentiles.client.tsv' using (-log10(1 - column('percentile')/100)):(column(2)) with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 10 title 'both', \
     'runs_percentiles.client.tsv' using (-log10(1 - column('percentile')/100)):(NaN) with linespoints lc rgb vermillion lw 1.6 dt solid pt 9 ps 0.8*dot pi 10 title 'closed', \
     'runs_percentiles.client.tsv' using (-log10(1 - column('percentile')/100)):(NaN) with linespoints lc rgb green lw 1.6 dt solid pt 5 ps 0.8*dot pi 10 title 'servers only'
unset label

# Clients, service time.
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.2629; set bmargin at screen 0.0358
set xrange [0:2.7782]
set xtics ('0%%' -0, '50%%' 0.30103, '90%%' 1, '95%%' 1.30103, '99%%' 2)
set xlabel 'percentile, % of operations' tc rgb ink
set label 9001 'client latency, ms' at screen 0.0133, screen 0.1493 center rotate tc rgb ink
set yrange [1:10]
set logscale y
set ytics ('1' 1, '2' 2, '5' 5, '10' 10)
set label 'service time:' at screen 0.8700, screen 0.2592 left font ',8' tc rgb ink
set label 'coordinated omission' at screen 0.8700, screen 0.2518 left font ',8' tc rgb ink
set label 'possible' at screen 0.8700, screen 0.2445 left font ',8' tc rgb ink
unset key
plot 'runs_percentiles.client.tsv' using (-log10(1 - column('percentile')/100)):(column(5)) with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 10 title 'both', \
     'runs_percentiles.client.tsv' using (-log10(1 - column('percentile')/100)):(column(6)) with linespoints lc rgb vermillion lw 1.6 dt solid pt 9 ps 0.8*dot pi 10 title 'closed', \
     'runs_percentiles.client.tsv' using (-log10(1 - column('percentile')/100)):(NaN) with linespoints lc rgb green lw 1.6 dt solid pt 5 ps 0.8*dot pi 10 title 'servers only'
unset label
unset multiplot
unset output
