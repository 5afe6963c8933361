# pareto: p95 and p99 against throughput, with the Pareto front.
# To draw pareto.png and pareto.svg from pareto.tsv and pareto.front_p95.tsv and pareto.front_p99.tsv: gnuplot pareto.gp
# To draw only one of them: gnuplot -e "kind='png'" pareto.gp

if (!exists('kind')) kind = 'png'; load 'pareto.gp'; kind = 'svg'; load 'pareto.gp'; exit
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
if (kind eq 'svg') set terminal svg size 1200,700 noenhanced background rgb background font 'DejaVu Sans,9' fontscale 1.333 mouse standalone name 'pareto'
title_font = (kind eq 'png') ? 'DejaVu Sans:Bold,14' : 'DejaVu Sans,14'
dot = (kind eq 'png') ? 1.0 : 1.1
# Tooltips (SVG only).
hover = (kind eq 'svg')
clock(n) = strftime('%H:%M:%S', x(1))
set output 'pareto.'.kind

# Data: the first line is the header; NaN is a missing value and interrupts the curve.
set datafile separator "\t"
set datafile columnheaders

set border 3 lc rgb faint
set tics nomirror out scale 0.5 textcolor rgb ink
set grid lc rgb grid lt 1 lw 0.7
unset key
set multiplot

set label 'load' at screen 0.0100, screen 0.9743 font title_font tc rgb ink
set label 'one point per combination; the line joins those that no other one surpasses in both; labels: c/batch' at screen 0.0100, screen 0.9486 font ',9' tc rgb faint
set label 'command: load {c} {batch}' at screen 0.0283, screen 0.0186 font ',8' tc rgb faint

# p95.
set lmargin at screen 0.0650; set rmargin at screen 0.4283
set tmargin at screen 0.9086; set bmargin at screen 0.0971
unset logscale x
set xrange [0:25000]
set xtics ('0' 0, '5000' 5000, '10k' 10000, '15k' 15000, '20k' 20000, '25k' 25000)
set xlabel 'throughput, items/s' tc rgb ink
set label 9001 'p95 latency, ms' at screen 0.0133, screen 0.5029 center rotate tc rgb ink
set yrange [10:20]
set logscale y
set ytics ('10' 10, '20' 20)
unset key
set label '16/200' at first 20400, first 10 left offset character 1,-0.5 font ',8' tc rgb ink
plot 'pareto.front_p95.tsv' using 1:2 with lines lc rgb faint lw 1.3 title 'Pareto front', \
     'pareto.tsv' using (column('items_per_s')):(column('p95_ms')) with points pt 6 ps 1.0*dot lc rgb orange title 'combinations'
unset label

# p99.
set lmargin at screen 0.4967; set rmargin at screen 0.8600
set tmargin at screen 0.9086; set bmargin at screen 0.0971
unset logscale x
set xrange [0:25000]
set xtics ('0' 0, '5000' 5000, '10k' 10000, '15k' 15000, '20k' 20000, '25k' 25000)
set xlabel 'throughput, items/s' tc rgb ink
set label 9001 'p99 latency, ms' at screen 0.4450, screen 0.5029 center rotate tc rgb ink
set yrange [10:20]
set logscale y
set ytics ('10' 10, '20' 20)
set key at screen 0.8700, screen 0.9086 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
set label '16/200' at first 20400, first 10 left offset character 1,-0.5 font ',8' tc rgb ink
plot 'pareto.front_p99.tsv' using 1:2 with lines lc rgb faint lw 1.3 title 'Pareto front', \
     'pareto.tsv' using (column('items_per_s')):(column('p99_ms')) with points pt 8 ps 1.0*dot lc rgb tail title 'combinations'
unset label
unset multiplot
unset output
