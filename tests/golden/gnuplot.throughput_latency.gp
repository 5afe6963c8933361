# throughput_latency: p95 and p99 against throughput, one point per interval.
# To draw throughput_latency.png and throughput_latency.svg from throughput_latency.tsv: gnuplot throughput_latency.gp
# To draw only one of them: gnuplot -e "kind='png'" throughput_latency.gp

if (!exists('kind')) kind = 'png'; load 'throughput_latency.gp'; kind = 'svg'; load 'throughput_latency.gp'; exit
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
if (kind eq 'svg') set terminal svg size 1200,700 noenhanced background rgb background font 'DejaVu Sans,9' fontscale 1.333 mouse standalone name 'throughput_latency'
title_font = (kind eq 'png') ? 'DejaVu Sans:Bold,14' : 'DejaVu Sans,14'
dot = (kind eq 'png') ? 1.0 : 1.1
# Tooltips (SVG only).
hover = (kind eq 'svg')
clock(n) = strftime('%H:%M:%S', x(1))
set output 'throughput_latency.'.kind

# Data: the first line is the header; NaN is a missing value and interrupts the curve.
set datafile separator "\t"
set datafile columnheaders

set border 3 lc rgb faint
set tics nomirror out scale 0.5 textcolor rgb ink
set grid lc rgb grid lt 1 lw 0.7
unset key
set multiplot

x(n) = column(n) + 3600
set label 'mixed load, 5.0.8, RF 3' at screen 0.0100, screen 0.9743 font title_font tc rgb ink
set label '2026-11-21 11:00:00 to 11:00:12 (UTC+01:00), 12 s, 3 nodes, interval 1 s; one point per interval' at screen 0.0100, screen 0.9486 font ',9' tc rgb faint
set label 'Cassandra 5.0.8 on 3 nodes · interval 1 s · samples lost: 200 of 1800 (node-2) · largest clock error ±1.2 ms · casstat 0.1.0 · cassandra-stress mixed ratio(write=2,read=3)' at screen 0.0283, screen 0.0386 font ',8' tc rgb faint
set label 'n=1000000 cl=QUORUM -rate threads=64 throttle=1500/s' at screen 0.0283, screen 0.0186 font ',8' tc rgb faint

# Reads.
set lmargin at screen 0.0650; set rmargin at screen 0.4283
set tmargin at screen 0.9086; set bmargin at screen 0.1171
unset logscale x
set xrange [0:2000]
set xtics ('0' 0, '500' 500, '1000' 1000, '1500' 1500, '2000' 2000)
set xlabel 'operations/s of the cluster' tc rgb ink
set label 9001 'read latency, ms' at screen 0.0133, screen 0.5129 center rotate tc rgb ink
set yrange [1:200]
set logscale y
set ytics ('1' 1, '2' 2, '5' 5, '10' 10, '20' 20, '50' 50, '100' 100, '200' 200)
unset key
plot 'throughput_latency.tsv' using (column('state') == 2 ? column('operations_per_s') : NaN):(column('read_p95_ms')) with points pt 1 ps 0.7*dot lc rgb alarm title 'p95, fewer nodes', \
     'throughput_latency.tsv' using (column('state') == 2 ? column('operations_per_s') : NaN):(column('read_p99_ms')) with points pt 2 ps 0.7*dot lc rgb alarm title 'p99, fewer nodes', \
     'throughput_latency.tsv' using (column('state') == 1 ? column('operations_per_s') : NaN):(column('read_p95_ms')) with points pt 6 ps 0.7*dot lc rgb faint title 'p95, warm-up', \
     'throughput_latency.tsv' using (column('state') == 1 ? column('operations_per_s') : NaN):(column('read_p99_ms')) with points pt 8 ps 0.7*dot lc rgb faint title 'p99, warm-up', \
     for [i=1:hover] 'throughput_latency.tsv' every 1 using (column('operations_per_s')):(column('read_p95_ms')):(clock(0).sprintf('\n%.5g operations/s\nread p95 %.5g ms', column('operations_per_s'), column('read_p95_ms'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle, \
     for [i=1:hover] 'throughput_latency.tsv' every 1 using (column('operations_per_s')):(column('read_p99_ms')):(clock(0).sprintf('\n%.5g operations/s\nread p99 %.5g ms', column('operations_per_s'), column('read_p99_ms'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label

# Writes.
set lmargin at screen 0.4967; set rmargin at screen 0.8600
set tmargin at screen 0.9086; set bmargin at screen 0.1171
unset logscale x
set xrange [0:2000]
set xtics ('0' 0, '500' 500, '1000' 1000, '1500' 1500, '2000' 2000)
set xlabel 'operations/s of the cluster' tc rgb ink
set label 9001 'write latency, ms' at screen 0.4450, screen 0.5129 center rotate tc rgb ink
set yrange [1:200]
set logscale y
set ytics ('1' 1, '2' 2, '5' 5, '10' 10, '20' 20, '50' 50, '100' 100, '200' 200)
set key at screen 0.8700, screen 0.9086 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'throughput_latency.tsv' using (column('state') == 2 ? column('operations_per_s') : NaN):(column('write_p95_ms')) with points pt 1 ps 0.7*dot lc rgb alarm title 'p95, fewer nodes', \
     'throughput_latency.tsv' using (column('state') == 2 ? column('operations_per_s') : NaN):(column('write_p99_ms')) with points pt 2 ps 0.7*dot lc rgb alarm title 'p99, fewer nodes', \
     'throughput_latency.tsv' using (column('state') == 1 ? column('operations_per_s') : NaN):(column('write_p95_ms')) with points pt 6 ps 0.7*dot lc rgb faint title 'p95, warm-up', \
     'throughput_latency.tsv' using (column('state') == 1 ? column('operations_per_s') : NaN):(column('write_p99_ms')) with points pt 8 ps 0.7*dot lc rgb faint title 'p99, warm-up', \
     for [i=1:hover] 'throughput_latency.tsv' every 1 using (column('operations_per_s')):(column('write_p95_ms')):(clock(0).sprintf('\n%.5g operations/s\nwrite p95 %.5g ms', column('operations_per_s'), column('write_p95_ms'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle, \
     for [i=1:hover] 'throughput_latency.tsv' every 1 using (column('operations_per_s')):(column('write_p99_ms')):(clock(0).sprintf('\n%.5g operations/s\nwrite p99 %.5g ms', column('operations_per_s'), column('write_p99_ms'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label
unset multiplot
unset output
