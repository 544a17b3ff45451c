/* The results of the ring bench as a page for people: a table, and a plot beside it.
 *
 * A missing figure is NAN: the contender is not installed, or the ring did not fit. */
#ifndef DOMUS_BENCH_RING_REPORT_H
#define DOMUS_BENCH_RING_REPORT_H

#include "bench/support/contender.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_ORDERS 2 /* the two orders of a ring: as spawned, and shuffled */

struct ring_figures {
    double passes_s;  /* passes of tokens per second */
    double startup_s; /* seconds of the start-up, until each actor waits for a token */
    /* seconds of a second start-up in memory that was used before (this and all fields below: domus
     * only) */
    double again_s;
    /* seconds that it takes to touch as many bytes as the ring took, in small pages */
    double touch_s;
    /* seconds that it takes to touch as many bytes in huge pages, which domus asks for */
    double touch_huge_s;
    double startup_touch; /* `startup_s` divided by `touch_s`, both of the same run */
    double bytes;         /* bytes of an actor: all bytes that the ring took, divided by its size */
};

struct ring_point {
    uint64_t size;
    struct ring_figures of[RING_ORDERS][CONTENDERS];
};

/* Write DIRECTORY/ring.md, and DIRECTORY/ring.svg by gnuplot with the script `gnuplot_script`. Each
 * figure is the median of `rounds` rounds, of the long or the short form, and `notes` is a text
 * below the table. Returns 0, or the negative errno of a system call or of
 * command_run_and_read_figures(). */
int ring_report(const char *directory, const char *gnuplot_script, const struct ring_point *points,
                size_t count, int rounds, bool is_long, const char *notes);

#endif
