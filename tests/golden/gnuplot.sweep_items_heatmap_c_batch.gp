# heatmap_c_batch: throughput by c and batch.
# To draw heatmap_c_batch.png and heatmap_c_batch.svg from heatmap_c_batch.tsv: gnuplot heatmap_c_batch.gp
# To draw only one of them: gnuplot -e "kind='png'" heatmap_c_batch.gp

if (!exists('kind')) kind = 'png'; load 'heatmap_c_batch.gp'; kind = 'svg'; load 'heatmap_c_batch.gp'; exit
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
if (kind eq 'svg') set terminal svg size 1200,700 noenhanced background rgb background font 'DejaVu Sans,9' fontscale 1.333 mouse standalone name 'heatmap_c_batch'
title_font = (kind eq 'png') ? 'DejaVu Sans:Bold,14' : 'DejaVu Sans,14'
dot = (kind eq 'png') ? 1.0 : 1.1
# Tooltips (SVG only).
hover = (kind eq 'svg')
clock(n) = strftime('%H:%M:%S', x(1))
set output 'heatmap_c_batch.'.kind

# Data: the first line is the header; NaN is a missing value and interrupts the curve.
set datafile separator "\t"
set datafile columnheaders

set border 3 lc rgb faint
set tics nomirror out scale 0.5 textcolor rgb ink
set grid lc rgb grid lt 1 lw 0.7
unset key
set multiplot

set label 'load' at screen 0.0100, screen 0.9743 font title_font tc rgb ink
set label 'items/s' at screen 0.0100, screen 0.9486 font ',9' tc rgb faint
set label 'command: load {c} {batch}' at screen 0.0283, screen 0.0186 font ',8' tc rgb faint
set lmargin at screen 0.0850; set rmargin at screen 0.8600
set tmargin at screen 0.9086; set bmargin at screen 0.0971
unset logscale x
set xrange [-0.5:1.5]
set xtics ('4' 0, '16' 1)
unset logscale y
set yrange [-0.5:3.5]
set ytics ('1' 0, '2.5' 1, '50' 2, '200' 3)
unset grid
set xlabel 'c' tc rgb ink
set label 9001 'batch' at screen 0.0133, screen 0.5029 center rotate tc rgb ink
set palette defined (0 '#440154', 1 '#482878', 2 '#3E4A89', 3 '#31688E', 4 '#26828E', 5 '#1F9E89', 6 '#35B779', 7 '#6DCD59', 8 '#B4DE2C', 9 '#FDE725')
set cbrange [1000:21000]
set cbtics ('1000' 1000, '2000' 2000, '3000' 3000, '4000' 4000, '5000' 5000, '6000' 6000, '7000' 7000, '8000' 8000, '9000' 9000, '10k' 10000, '11k' 11000, '12k' 12000, '13k' 13000, '14k' 14000, '15k' 15000, '16k' 16000, '17k' 17000, '18k' 18000, '19k' 19000, '20k' 20000, '21k' 21000)
set colorbox user origin 0.8733,0.0971 size 0.0133,0.8114 noborder
middle = 11000
plot 'heatmap_c_batch.tsv' using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror fs solid noborder lc palette notitle, \
     'heatmap_c_batch.tsv' using ($3 < middle ? $1 : NaN):2:(gprintf('%.1s%c', $3)) with labels font ',8' tc rgb '#FFFFFF' notitle, \
     'heatmap_c_batch.tsv' using ($3 >= middle ? $1 : NaN):2:(gprintf('%.1s%c', $3)) with labels font ',8' tc rgb '#000000' notitle
set grid
unset multiplot
unset output
