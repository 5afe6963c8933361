# throughput_batch: throughput against batch, a line for each combination of the other parameters.
# To draw throughput_batch.png and throughput_batch.svg from throughput_batch.tsv: gnuplot throughput_batch.gp
# To draw only one of them: gnuplot -e "kind='png'" throughput_batch.gp

if (!exists('kind')) kind = 'png'; load 'throughput_batch.gp'; kind = 'svg'; load 'throughput_batch.gp'; exit
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
if (kind eq 'svg') set terminal svg size 1200,700 noenhanced background rgb background font 'DejaVu Sans,9' fontscale 1.333 mouse standalone name 'throughput_batch'
title_font = (kind eq 'png') ? 'DejaVu Sans:Bold,14' : 'DejaVu Sans,14'
dot = (kind eq 'png') ? 1.0 : 1.1
# Tooltips (SVG only).
hover = (kind eq 'svg')
clock(n) = strftime('%H:%M:%S', x(1))
set output 'throughput_batch.'.kind

# Data: the first line is the header; NaN is a missing value and interrupts the curve.
set datafile separator "\t"
set datafile columnheaders

set border 3 lc rgb faint
set tics nomirror out scale 0.5 textcolor rgb ink
set grid lc rgb grid lt 1 lw 0.7
unset key
set multiplot

set label 'load' at screen 0.0100, screen 0.9743 font title_font tc rgb ink
set label '95% confidence intervals; lines: c' at screen 0.0100, screen 0.9486 font ',9' tc rgb faint
set label 'command: load {c} {batch}' at screen 0.0283, screen 0.0186 font ',8' tc rgb faint
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.9086; set bmargin at screen 0.0971
set xrange [1:200]
set logscale x
set xtics ('1' 1, '2' 2, '5' 5, '10' 10, '20' 20, '50' 50, '100' 100, '200' 200)
set xlabel 'batch' tc rgb ink
set label 9001 'throughput, items/s' at screen 0.0133, screen 0.5029 center rotate tc rgb ink
unset logscale y
set yrange [0:26000]
set ytics ('0' 0, '2000' 2000, '4000' 4000, '6000' 6000, '8000' 8000, '10k' 10000, '12k' 12000, '14k' 14000, '16k' 16000, '18k' 18000, '20k' 20000, '22k' 22000, '24k' 24000, '26k' 26000)
set key at screen 0.8700, screen 0.9086 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'throughput_batch.tsv' using 1:2:3:4 with yerrorbars lc rgb blue pt 7 ps 0 notitle, \
     'throughput_batch.tsv' using 1:2 with linespoints lc rgb blue lw 1.6 dt solid pt 7 ps 0.8*dot pi 1 title '4', \
     'throughput_batch.tsv' using 1:5:6:7 with yerrorbars lc rgb vermillion pt 9 ps 0 notitle, \
     'throughput_batch.tsv' using 1:5 with linespoints lc rgb vermillion lw 1.6 dt solid pt 9 ps 0.8*dot pi 1 title '16'
unset multiplot
unset output
