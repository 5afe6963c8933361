# heatmap_read: read latency over time: operations per histogram bucket.
# To draw heatmap_read.png and heatmap_read.svg from heatmap_read.tsv: gnuplot heatmap_read.gp
# To draw only one of them: gnuplot -e "kind='png'" heatmap_read.gp

if (!exists('kind')) kind = 'png'; load 'heatmap_read.gp'; kind = 'svg'; load 'heatmap_read.gp'; exit
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
if (kind eq 'svg') set terminal svg size 1200,700 noenhanced background rgb background font 'DejaVu Sans,9' fontscale 1.333 mouse standalone name 'heatmap_read'
title_font = (kind eq 'png') ? 'DejaVu Sans:Bold,14' : 'DejaVu Sans,14'
dot = (kind eq 'png') ? 1.0 : 1.1
# Tooltips (SVG only).
hover = (kind eq 'svg')
clock(n) = strftime('%H:%M:%S', x(1))
set output 'heatmap_read.'.kind

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
set object rectangle from 1795258800, graph 0 to 1795258812, graph 1 behind fc rgb shade fs solid noborder
set object rectangle from 1795258804, graph 0 to 1795258808, graph 1 behind fc rgb alarm fs transparent solid 0.12 noborder
set arrow from 1795258804, graph 0 to 1795258808, graph 0 nohead front lw 4 lc rgb alarm
set arrow from 1795258804, graph 0 to 1795258804, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set arrow from 1795258808, graph 0 to 1795258808, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set arrow from 1795258809.6, graph 0 to 1795258809.6, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set arrow from 1795258810.4, graph 0 to 1795258810.4, graph 1 nohead back lw 0.8 dt '-' lc rgb mark
set xrange [1795258800:1795258812]
set xtics time format '%H:%M:%S' (1795258800, 1795258802, 1795258804, 1795258806, 1795258808, 1795258810, 1795258812)
set xlabel 'local time, h:min:s' tc rgb ink
set label 'mixed load, 5.0.8, RF 3' at screen 0.0100, screen 0.9743 font title_font tc rgb ink
set label '2026-11-21 11:00:00 to 11:00:12 (UTC+01:00), 12 s, 3 nodes, interval 1 s' at screen 0.0100, screen 0.9486 font ',9' tc rgb faint
set label 'Cassandra 5.0.8 on 3 nodes · interval 1 s · samples lost: 200 of 1800 (node-2) · largest clock error ±1.2 ms · casstat 0.1.0 · cassandra-stress mixed ratio(write=2,read=3)' at screen 0.0283, screen 0.0386 font ',8' tc rgb faint
set label 'n=1000000 cl=QUORUM -rate threads=64 throttle=1500/s' at screen 0.0283, screen 0.0186 font ',8' tc rgb faint
set label 'node-2 missing' at screen 0.4625, screen 0.8936 center font ',8' tc rgb alarm
set label 'down node-2' at screen 0.3300, screen 0.8936 center font ',8' tc rgb faint
set label 'up node-2' at screen 0.5950, screen 0.8936 center font ',8' tc rgb faint
set label 'schema' at screen 0.7010, screen 0.8936 center font ',8' tc rgb faint
set label 'gc node-1' at screen 0.7540, screen 0.8936 center font ',8' tc rgb faint
set label 'warm-up' at screen 0.4625, screen 0.9150 center font ',8' tc rgb ink
set label '11:00:04.0 node-2 down: is now DOWN' at 1795258804, graph 1 hypertext point pt 11 ps dot lc rgb mark front
set label '11:00:08.0 node-2 up: is now UP' at 1795258808, graph 1 hypertext point pt 11 ps dot lc rgb mark front
set label '11:00:09.6 schema: schema changed' at 1795258809.6, graph 1 hypertext point pt 11 ps dot lc rgb mark front
set label '11:00:10.4 node-1 gc: GC in 212 ms' at 1795258810.4, graph 1 hypertext point pt 11 ps dot lc rgb mark front

# Each cell is half a pixel larger than its interval and its bucket, and the next cell covers the excess:
# otherwise the background would show between cells.
wider = 0.00628931
higher = 1.0056899
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.8714; set bmargin at screen 0.1171
set label 9001 'read latency, ms' at screen 0.0133, screen 0.4943 center rotate tc rgb ink
set yrange [0.5:200]
set logscale y
set ytics ('0.5' 0.5, '1' 1, '2' 2, '5' 5, '10' 10, '20' 20, '50' 50, '100' 100, '200' 200)
set palette defined (0 '#440154', 1 '#482878', 2 '#3E4A89', 3 '#31688E', 4 '#26828E', 5 '#1F9E89', 6 '#35B779', 7 '#6DCD59', 8 '#B4DE2C', 9 '#FDE725')
set logscale cb
set cbrange [1:12]
set cbtics ('1' 1, '2' 2, '5' 5, '10' 10, '20' 20) font ',8' tc rgb ink
set colorbox user origin 0.8733,0.1171 size 0.0133,0.7543 noborder
set label 9003 'reads per bucket in 1 s' at screen 0.9300, screen 0.4943 center rotate tc rgb ink
plot 'heatmap_read.tsv' using (x(1)):3:(x(1)):(x(2) + wider):3:($4*higher):5 with boxxyerror fs solid noborder lc palette notitle
unset multiplot
unset output
