# The plot of docs/performance.md: messages per second by row, with one thread and with two.
#
# gnuplot -e "data = 'FILE'; plot_file = 'FILE.svg'" bench/savina.gp. The data has a block for each
# number of threads: row, domus near, domus spread, CAF, Erlang (messages per second; ? is missing).
set terminal svg size 1000,760 font "sans-serif,13" background rgb "white"
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

set title "messages per second, one thread"
plot data index "threads-1" using 2:xtic(1) title "domus" linecolor rgb "#1f77b4", \
     data index "threads-1" using 4 title "CAF" linecolor rgb "#d62728", \
     data index "threads-1" using 5 title "Erlang" linecolor rgb "#2ca02c"

set title "messages per second, two threads"
plot data index "threads-2" using 2:xtic(1) title "domus, near" linecolor rgb "#1f77b4", \
     data index "threads-2" using 3 title "domus, spread" linecolor rgb "#9ecae1", \
     data index "threads-2" using 4 title "CAF" linecolor rgb "#d62728", \
     data index "threads-2" using 5 title "Erlang" linecolor rgb "#2ca02c"
