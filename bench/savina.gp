# The plot of docs/performance.md: messages per second by row and scheduler, with one thread and
# with two.
#
# gnuplot -e "data = 'FILE'; plot_file = 'FILE.svg'" bench/savina.gp. The data has a block for each
# number of threads: row, domus near, domus spread, the pools of domus (rings, deques, stealing,
# sharing), CAF (stealing, sharing), Erlang (messages per second; ? is missing).
set terminal svg size 1300,900 font "sans-serif,13" background rgb "white"
set output plot_file
set multiplot layout 2,1
set datafile missing "?"
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.9 border -1
set boxwidth 0.9
set logscale y
set yrange [1e3:1e9]
set format y "10^{%L}"
set grid ytics
set xtics rotate by -30
set key top right horizontal

array names[10]
names[2] = "domus, near"
names[3] = "spread"
names[4] = "pool, rings"
names[5] = "deques"
names[6] = "stealing"
names[7] = "sharing"
names[8] = "CAF, stealing"
names[9] = "sharing"
names[10] = "Erlang"
array colors[10]
colors[2] = 0x1f77b4
colors[3] = 0x9ecae1
colors[4] = 0x3f007d
colors[5] = 0x756bb1
colors[6] = 0x9e9ac8
colors[7] = 0xdadaeb
colors[8] = 0xd62728
colors[9] = 0xff9896
colors[10] = 0x2ca02c

set title "messages per second, one thread or runner"
plot data index "threads-1" using 2:xtic(1) title "domus" linecolor rgb colors[2], \
     for [i = 4:10] data index "threads-1" using i title names[i] linecolor rgb colors[i]

set title "messages per second, two threads or runners"
plot data index "threads-2" using 2:xtic(1) title names[2] linecolor rgb colors[2], \
     for [i = 3:10] data index "threads-2" using i title names[i] linecolor rgb colors[i]
