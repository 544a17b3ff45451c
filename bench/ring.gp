# The plot of docs/ring.md: token passes per second and start-up, by the size of the ring.
#
# gnuplot -e "data = 'FILE'; plot_file = 'FILE.svg'" bench/ring.gp. The data has a block for each
# contender, in spawn order and shuffled: size, passes per second, start-up, touch (seconds).
# Both plots have the lines of the first key.
set terminal svg size 1000,540 font "sans-serif,13" background rgb "white"
set output plot_file
set multiplot layout 1,2
set logscale xy
set format x "10^{%L}"
set format y "10^{%L}"
set grid
set xlabel "actors in the ring"
set bmargin 8
set style line 1 linecolor rgb "#1f77b4" linewidth 2 pointtype 7 pointsize 0.5
set style line 2 linecolor rgb "#d62728" linewidth 2 pointtype 5 pointsize 0.5
set style line 3 linecolor rgb "#2ca02c" linewidth 2 pointtype 9 pointsize 0.6
set style line 4 linecolor rgb "#ff7f0e" linewidth 2 pointtype 13 pointsize 0.7

set title "token passes per second"
set key below horizontal maxcols 4
plot data index "domus" using 1:2 with linespoints linestyle 1 title "domus", \
     data index "domus-shuffled" using 1:2 with linespoints linestyle 1 dashtype 2 \
         title "shuffled", \
     data index "caf" using 1:2 with linespoints linestyle 2 title "CAF", \
     data index "caf-shuffled" using 1:2 with linespoints linestyle 2 dashtype 2 title "shuffled", \
     data index "erlang" using 1:2 with linespoints linestyle 3 title "Erlang", \
     data index "erlang-shuffled" using 1:2 with linespoints linestyle 3 dashtype 2 \
         title "shuffled", \
     data index "threads" using 1:2 with linespoints linestyle 4 title "threads", \
     data index "threads-shuffled" using 1:2 with linespoints linestyle 4 dashtype 2 \
         title "shuffled"

set title "start-up, seconds"
set key below
plot data index "domus" using 1:3 with linespoints linestyle 1 notitle, \
     data index "domus-shuffled" using 1:3 with linespoints linestyle 1 dashtype 2 notitle, \
     data index "domus" using 1:4 with lines linecolor rgb "#7f7f7f" dashtype 3 \
         title "touching domus' bytes", \
     data index "caf" using 1:3 with linespoints linestyle 2 notitle, \
     data index "caf-shuffled" using 1:3 with linespoints linestyle 2 dashtype 2 notitle, \
     data index "erlang" using 1:3 with linespoints linestyle 3 notitle, \
     data index "erlang-shuffled" using 1:3 with linespoints linestyle 3 dashtype 2 notitle, \
     data index "threads" using 1:3 with linespoints linestyle 4 notitle, \
     data index "threads-shuffled" using 1:3 with linespoints linestyle 4 dashtype 2 notitle
