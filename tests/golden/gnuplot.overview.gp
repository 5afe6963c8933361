# overview: the cluster's operations, latency, GC, compactions, CPU, disk and network on a common time axis.
# To draw overview.png and overview.svg from overview.tsv: gnuplot overview.gp
# To draw only one of them: gnuplot -e "kind='png'" overview.gp

if (!exists('kind')) kind = 'png'; load 'overview.gp'; kind = 'svg'; load 'overview.gp'; exit
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
if (kind eq 'png') set terminal pngcairo size 1200,1500 noenhanced background rgb background font 'DejaVu Sans,9'
if (kind eq 'svg') set terminal svg size 1200,1500 noenhanced background rgb background font 'DejaVu Sans,9' fontscale 1.333 mouse standalone name 'overview'
title_font = (kind eq 'png') ? 'DejaVu Sans:Bold,14' : 'DejaVu Sans,14'
dot = (kind eq 'png') ? 1.0 : 1.1
# Tooltips (SVG only).
hover = (kind eq 'svg')
clock(n) = strftime('%H:%M:%S', x(1))
set output 'overview.'.kind

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
set xtics time format '' (1795258800, 1795258802, 1795258804, 1795258806, 1795258808, 1795258810, 1795258812)
set xlabel '' tc rgb ink

# Operations; the sum over all nodes is bold.
set label 'mixed load, 5.0.8, RF 3' at screen 0.0100, screen 0.9880 font title_font tc rgb ink
set label '2026-11-21 11:00:00 to 11:00:12 (UTC+01:00), 12 s, 3 nodes, interval 1 s' at screen 0.0100, screen 0.9760 font ',9' tc rgb faint
set label 'Cassandra 5.0.8 on 3 nodes · interval 1 s · samples lost: 200 of 1800 (node-2) · largest clock error ±1.2 ms · casstat 0.1.0 · cassandra-stress mixed ratio(write=2,read=3)' at screen 0.0283, screen 0.0180 font ',8' tc rgb faint
set label 'n=1000000 cl=QUORUM -rate threads=64 throttle=1500/s' at screen 0.0283, screen 0.0087 font ',8' tc rgb faint
set label 'node-2 missing' at screen 0.4625, screen 0.9503 center font ',8' tc rgb alarm
set label 'down node-2' at screen 0.3300, screen 0.9503 center font ',8' tc rgb faint
set label 'up node-2' at screen 0.5950, screen 0.9503 center font ',8' tc rgb faint
set label 'schema' at screen 0.7010, screen 0.9503 center font ',8' tc rgb faint
set label 'gc node-1' at screen 0.7540, screen 0.9503 center font ',8' tc rgb faint
set label 'warm-up' at screen 0.4625, screen 0.9603 center font ',8' tc rgb ink
set label '11:00:04.0 node-2 down: is now DOWN' at 1795258804, graph 1 hypertext point pt 11 ps dot lc rgb mark front
set label '11:00:08.0 node-2 up: is now UP' at 1795258808, graph 1 hypertext point pt 11 ps dot lc rgb mark front
set label '11:00:09.6 schema: schema changed' at 1795258809.6, graph 1 hypertext point pt 11 ps dot lc rgb mark front
set label '11:00:10.4 node-1 gc: GC in 212 ms' at 1795258810.4, graph 1 hypertext point pt 11 ps dot lc rgb mark front
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.9400; set bmargin at screen 0.8215
set label 9001 'operations/s' at screen 0.0133, screen 0.8808 center rotate tc rgb ink
unset logscale y
set yrange [0:1000]
set ytics ('0' 0, '200' 200, '400' 400, '600' 600, '800' 800, '1000' 1000)
set key at screen 0.8700, screen 0.9400 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'overview.tsv' using (x(1)):(column(24)) with lines lc rgb reads lw 0.7 dt solid title 'reads, each node', \
     'overview.tsv' using (x(1)):(column(25)) with lines lc rgb reads lw 0.7 dt solid notitle, \
     'overview.tsv' using (x(1)):(column(26)) with lines lc rgb reads lw 0.7 dt solid notitle, \
     'overview.tsv' using (x(1)):(column(27)) with lines lc rgb writes lw 0.7 dt '-' title 'writes, each node', \
     'overview.tsv' using (x(1)):(column(28)) with lines lc rgb writes lw 0.7 dt '-' notitle, \
     'overview.tsv' using (x(1)):(column(29)) with lines lc rgb writes lw 0.7 dt '-' notitle, \
     'overview.tsv' using (x(1)):(column('reads_per_s')) with linespoints lc rgb reads lw 2.4 dt solid pt 7 ps 0.8*dot pi 1 title 'reads, sum', \
     'overview.tsv' using (x(1)):(column('writes_per_s')) with linespoints lc rgb writes lw 2.4 dt solid pt 9 ps 0.8*dot pi 1 title 'writes, sum', \
     for [i=1:hover] 'overview.tsv' every 1 using (x(1)):(column('writes_per_s')):(clock(0).sprintf('\nreads, each node %.5g\nwrites, each node %.5g\nreads, sum %.5g\nwrites, sum %.5g', column(24), column(27), column('reads_per_s'), column('writes_per_s'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset label

# Read latency across all nodes.
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.8122; set bmargin at screen 0.6937
set label 9001 'read latency, ms' at screen 0.0133, screen 0.7530 center rotate tc rgb ink
set yrange [1:200]
set logscale y
set ytics ('1' 1, '10' 10, '100' 100)
set key at screen 0.8700, screen 0.8122 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'overview.tsv' using (x(1)):(column('read_max_ms')) with lines lc rgb faint lw 0.8 dt solid title 'max', \
     'overview.tsv' using (x(1)):(column('read_p99_ms')) with linespoints lc rgb tail lw 1.8 dt solid pt 9 ps 0.8*dot pi 1 title 'p99', \
     'overview.tsv' using (x(1)):(column('read_p95_ms')) with linespoints lc rgb orange lw 1.3 dt solid pt 5 ps 0.8*dot pi 1 title 'p95', \
     'overview.tsv' using (x(1)):(column('read_p50_ms')) with linespoints lc rgb green lw 1.3 dt solid pt 7 ps 0.8*dot pi 1 title 'p50', \
     for [i=1:hover] 'overview.tsv' every 1 using (x(1)):(column('read_p50_ms')):(clock(0).sprintf('\nmax %.5g\np99 %.5g\np95 %.5g\np50 %.5g', column('read_max_ms'), column('read_p99_ms'), column('read_p95_ms'), column('read_p50_ms'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle

# Write latency across all nodes.
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.6844; set bmargin at screen 0.5659
set label 9001 'write latency, ms' at screen 0.0133, screen 0.6251 center rotate tc rgb ink
set yrange [0.5:20]
set logscale y
set ytics ('0.5' 0.5, '1' 1, '2' 2, '5' 5, '10' 10, '20' 20)
set key at screen 0.8700, screen 0.6844 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'overview.tsv' using (x(1)):(column('write_max_ms')) with lines lc rgb faint lw 0.8 dt solid title 'max', \
     'overview.tsv' using (x(1)):(column('write_p99_ms')) with linespoints lc rgb tail lw 1.8 dt solid pt 9 ps 0.8*dot pi 1 title 'p99', \
     'overview.tsv' using (x(1)):(column('write_p95_ms')) with linespoints lc rgb orange lw 1.3 dt solid pt 5 ps 0.8*dot pi 1 title 'p95', \
     'overview.tsv' using (x(1)):(column('write_p50_ms')) with linespoints lc rgb green lw 1.3 dt solid pt 7 ps 0.8*dot pi 1 title 'p50', \
     for [i=1:hover] 'overview.tsv' every 1 using (x(1)):(column('write_p50_ms')):(clock(0).sprintf('\nmax %.5g\np99 %.5g\np95 %.5g\np50 %.5g', column('write_max_ms'), column('write_p99_ms'), column('write_p95_ms'), column('write_p50_ms'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle

# Garbage collection and pending compactions.
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.5566; set bmargin at screen 0.4381
set label 9001 'GC, % of time' at screen 0.0133, screen 0.4973 center rotate tc rgb ink
unset logscale y
set yrange [0:10]
set ytics ('0' 0, '2' 2, '4' 4, '6' 6, '8' 8, '10' 10)
set border 11
unset logscale y2
set y2range [0:20]
set y2tics ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
set label 9002 'compactions' at screen 0.9000, screen 0.4973 center rotate tc rgb ink
set key at screen 0.9100, screen 0.5566 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'overview.tsv' using (x(1)):(column('gc_pct')) with linespoints lc rgb vermillion lw 1.3 dt solid pt 5 ps 0.8*dot pi 1 title 'GC', \
     'overview.tsv' using (x(1)):(column('compactions_pending')) with linespoints lc rgb green lw 1.6 dt '-' pt 9 ps 0.8*dot pi 1 axes x1y2 title 'pending', \
     for [i=1:hover] 'overview.tsv' every 1 using (x(1)):(column('compactions_pending')):(clock(0).sprintf('\nGC %.5g\npending %.5g', column('gc_pct'), column('compactions_pending'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' axes x1y2 notitle
set border 3
unset y2tics; unset label 9002

# CPU, stacked.
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.4288; set bmargin at screen 0.3103
set label 9001 'CPU, %' at screen 0.0133, screen 0.3695 center rotate tc rgb ink
unset logscale y
set yrange [0:100]
set ytics ('0' 0, '20' 20, '40' 40, '60' 60, '80' 80, '100' 100)
set key at screen 0.8700, screen 0.4288 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
cpu_user(n) = column('cpu_user_pct')
cpu_nice(n) = cpu_user(n) + column('cpu_nice_pct')
cpu_system(n) = cpu_nice(n) + column('cpu_system_pct')
cpu_iowait(n) = cpu_system(n) + column('cpu_iowait_pct')
cpu_steal(n) = cpu_iowait(n) + column('cpu_steal_pct')
plot 'overview.tsv' using (x(1)):(cpu_steal(0)) with filledcurves y=0 fc rgb ink fs solid noborder title 'steal', \
     'overview.tsv' using (x(1)):(cpu_iowait(0)) with filledcurves y=0 fc rgb sky fs solid noborder title 'iowait', \
     'overview.tsv' using (x(1)):(cpu_system(0)) with filledcurves y=0 fc rgb vermillion fs solid noborder title 'system', \
     'overview.tsv' using (x(1)):(cpu_nice(0)) with filledcurves y=0 fc rgb yellow fs solid noborder title 'nice', \
     'overview.tsv' using (x(1)):(cpu_user(0)) with filledcurves y=0 fc rgb blue fs solid noborder title 'user'

# Disk.
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.3010; set bmargin at screen 0.1825
set label 9001 'disk, MiB/s' at screen 0.0133, screen 0.2417 center rotate tc rgb ink
unset logscale y
set yrange [0:20]
set ytics ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
set key at screen 0.8700, screen 0.3010 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'overview.tsv' using (x(1)):(column('disk_read_mb_per_s')) with linespoints lc rgb reads lw 1.3 dt solid pt 7 ps 0.8*dot pi 1 title 'read', \
     'overview.tsv' using (x(1)):(column('disk_write_mb_per_s')) with linespoints lc rgb writes lw 1.3 dt solid pt 9 ps 0.8*dot pi 1 title 'written', \
     for [i=1:hover] 'overview.tsv' every 1 using (x(1)):(column('disk_write_mb_per_s')):(clock(0).sprintf('\nread %.5g\nwritten %.5g', column('disk_read_mb_per_s'), column('disk_write_mb_per_s'))) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle

# Network.
set xrange [1795258800:1795258812]
set xtics time format '%H:%M:%S' (1795258800, 1795258802, 1795258804, 1795258806, 1795258808, 1795258810, 1795258812)
set xlabel 'local time, h:min:s' tc rgb ink
set lmargin at screen 0.0650; set rmargin at screen 0.8600
set tmargin at screen 0.1731; set bmargin at screen 0.0547
set label 9001 'network, Mbit/s' at screen 0.0133, screen 0.1139 center rotate tc rgb ink
unset logscale y
set yrange [0:20]
set ytics ('0' 0, '5' 5, '10' 10, '15' 15, '20' 20)
set key at screen 0.8700, screen 0.1731 left top Left reverse samplen 2.2 spacing 1.1 font ',8' tc rgb ink
plot 'overview.tsv' using (x(1)):(column('net_rx_kbit_per_s')/1000) with linespoints lc rgb reads lw 1.3 dt solid pt 7 ps 0.8*dot pi 1 title 'received', \
     'overview.tsv' using (x(1)):(column('net_tx_kbit_per_s')/1000) with linespoints lc rgb writes lw 1.3 dt solid pt 9 ps 0.8*dot pi 1 title 'sent', \
     for [i=1:hover] 'overview.tsv' every 1 using (x(1)):(column('net_tx_kbit_per_s')/1000):(clock(0).sprintf('\nreceived %.5g\nsent %.5g', column('net_rx_kbit_per_s')/1000, column('net_tx_kbit_per_s')/1000)) with labels hypertext point pt 7 ps 1 lc rgb '#FF000000' notitle
unset multiplot
unset output
