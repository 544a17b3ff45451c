/* The results of the ring bench as a page for people: a table, and a plot beside it.
 *
 * A missing figure is NAN: the contender is not installed, or the ring did not fit. */
#ifndef DOMUS_BENCH_RING_REPORT_H
#define DOMUS_BENCH_RING_REPORT_H

#include "bench/support/contender.h"

#include <stddef.h>
#include <stdint.h>

#define RING_ORDERS 2 /* spawn order, shuffled */

struct ring_figures {
    double passes_s;      /* token passes per second */
    double startup_s;     /* seconds until each actor waits */
    double again_s;       /* the same, in memory that was used (domus only, as all below) */
    double touch_s;       /* seconds to touch as many bytes */
    double touch_huge_s;  /* the same in huge pages, which domus asks for */
    double startup_touch; /* start-up over touch, both of one run */
    double bytes;         /* of an actor, all that the ring took divided by its size */
};

struct ring_point {
    uint64_t size;
    struct ring_figures of[RING_ORDERS][CONTENDERS];
};

/* Write DIRECTORY/ring.md, and DIRECTORY/ring.svg by gnuplot with the script `gnuplot_script`.
 * `rounds` are those that each figure is the median of, `notes` what is said below the table.
 * Returns 0; what a system call or command_run() said. */
int ring_report(const char *directory, const char *gnuplot_script, const struct ring_point *points,
                size_t count, int rounds, const char *notes);

#endif
