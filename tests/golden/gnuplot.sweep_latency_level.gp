# latency_level: median and p95 against level, a line for each combination of the other parameters.
# To draw latency_level.png and latency_level.svg from latency_level.tsv: gnuplot latency_level.gp
# To draw only one of them: gnuplot -e "kind='png'" latency_level.gp

if (!exists('kind')) kind = 'png'; load 'latency_level.gp'; kind = 'svg'; load 'latency_level.gp'; exit
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
if (kind eq 'png') set terminal pngcairo size 1200,700 noenhanced background rgb background font 'DejaVu Sans,9'
if (kind eq 'svg') set terminal svg size 1200,700 noenhanced background rgb background font 'DejaVu Sans,9' fontscale 1.333 mouse standalone name 'latency_level'
title_font = (kind eq 'png') ? 'DejaVu Sans:Bold,14' : 'DejaVu Sans,14'
dot = (kind eq 'png') ? 1.0 : 1.1
# Tooltips (SVG only).
hover = (kind eq 'svg')
clock(n) = strftime('%H:%M:%S', x(1))
set output 'latency_level.'.kind

# Data: the first line is the header; NaN is a missing value and interrupts the curve.
set datafile separator "\t"
set datafile columnheaders

set border 3 lc rgb faint
set tics nomirror out scale 0.5 textcolor rgb ink
set grid lc rgb grid lt 1 lw 0.7
unset key
set multiplot

set label 'load’s "x"' at screen 0.0100, screen 0.9743 font title_font tc rgb ink
set label 'measured by the clients (latency: service time: coordinated omission possible); lines: c' at screen 0.0100, screen 0.9486 font ',9' tc rgb faint
set label 'command: load {c} `{level}`' at screen 0.0283, screen 0.0186 font ',8' tc rgb faint

# p50.
set lmargin at screen 0.0650; set rmargin at screen 0.4283
set tmargin at screen 0.9086; set bmargin at screen 0.0971
unset logscale x
set xrange [-0.5:1.5]
set xtics ('ONE' 0, '’; exit…' 1)
set xlabel 'level' tc rgb ink
set label 9001 'p50 latency, ms' at screen 0.0133, screen 0.5029 center rotate tc rgb ink
set yrange [5:10]
set logscale y
set ytics ('5' 5, '10' 10)
set key at screen 0.8700, screen 0.9086 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'latency_level.tsv' using 1:2 with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 1 title '1', \
     'latency_level.tsv' using 1:4 with linespoints lc rgb vermillion lw 1.6 dt solid pt 9 ps 0.8*dot pi 1 title '5', \
     'latency_level.tsv' using 1:6 with linespoints lc rgb green lw 1.6 dt solid pt 5 ps 0.8*dot pi 1 title '100'
unset label

# p95.
set lmargin at screen 0.4967; set rmargin at screen 0.8600
set tmargin at screen 0.9086; set bmargin at screen 0.0971
unset logscale x
set xrange [-0.5:1.5]
set xtics ('ONE' 0, '’; exit…' 1)
set xlabel 'level' tc rgb ink
set label 9001 'p95 latency, ms' at screen 0.4450, screen 0.5029 center rotate tc rgb ink
set yrange [5:10]
set logscale y
set ytics ('5' 5, '10' 10)
unset key
plot 'latency_level.tsv' using 1:3 with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 1 title '1', \
     'latency_level.tsv' using 1:5 with linespoints lc rgb vermillion lw 1.6 dt solid pt 9 ps 0.8*dot pi 1 title '5', \
     'latency_level.tsv' using 1:7 with linespoints lc rgb green lw 1.6 dt solid pt 5 ps 0.8*dot pi 1 title '100'
unset label
unset multiplot
unset output
