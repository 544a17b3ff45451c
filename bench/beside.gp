# The plot of README: CPU time of the same work, domus beside others, from docs/images/beside.dat.
#
# gnuplot bench/beside.gp, from the root of the tree, writes docs/images/beside.svg. A bar goes from
# the best series to the worst one; a series alone is a short bar.
set terminal svg noenhanced size 900,520 font "sans-serif,13" background rgb "white"
set output "docs/images/beside.svg"
data = "docs/images/beside.dat"
stats data using 1 nooutput
rows = STATS_records
set xrange [0:1.3]
set yrange [rows - 0.3:-0.7]
set xtics ("0" 0, "1/4" 0.25, "1/2" 0.5, "3/4" 0.75, "as much" 1, "5/4" 1.25)
set grid xtics linecolor rgb "#cccccc" linetype 1
set border 0
set tics scale 0
set lmargin at screen 0.47
set rmargin at screen 0.97
set tmargin at screen 0.92
set title "CPU time of the same work: domus to the peer (shorter is better)"
set arrow from 1, graph 0 to 1, graph 1 nohead linecolor rgb "#555555" linewidth 1.5
set style fill solid 0.95 noborder
plot data using (0):0:(0):1:($0 - 0.3):($0 + 0.3):ytic(3) with boxxyerror \
         linecolor rgb "#1f77b4" notitle, \
     data using 1:0:1:($2 > $1 ? $2 : $1):($0 - 0.3):($0 + 0.3) with boxxyerror \
         linecolor rgb "#9ecae1" notitle
