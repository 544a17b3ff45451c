/* The results of the Savina bench, written as single figures, as JSON, and as a page for people
 * with a plot.
 *
 * A missing figure is NAN: the contender is not installed, or could not do the row. */
#ifndef DOMUS_BENCH_SAVINA_REPORT_H
#define DOMUS_BENCH_SAVINA_REPORT_H

#include "bench/savina_rows.h"

#include <stdbool.h>
#include <stddef.h>

/* The side that did a row: domus in one of its placements, or a peer. */
enum savina_side {
    SAVINA_NEAR, /* children live where their parent does: the library's default */
    SAVINA_SPREAD,
    SAVINA_CAF,
    SAVINA_ERLANG,
    SAVINA_SIDES,
};

#define SAVINA_PLACEMENTS 2 /* the sides of domus */

struct savina_figures {
    double first;   /* messages/s of the first round in a process */
    double value;   /* messages/s of the median round; ns of the median; CPU seconds per second */
    double p99_ns;  /* latency rows only, as the next field */
    double p999_ns; /* */
};

struct savina_outcome {
    const struct savina_row *row;
    uint64_t size;
    uint32_t threads;
    struct savina_figures of[SAVINA_SIDES];
    double ratio[SAVINA_PLACEMENTS]; /* times better than the better peer */
    /* the rate of SAVINA_SPREAD as a part of the bare limit between threads; NAN: none */
    double of_limit;
    /* the same of a bare ring by value with as many messages under way, measured in
     * turn; NAN: none */
    double of_ring;
};

/* The settings of a whole run of the bench. */
struct savina_run {
    uint32_t rounds;    /* in one process */
    uint32_t processes; /* processes of each contender for each row */
    double limit;       /* messages/s that bare C passes from one thread to another; NAN: none */
};

/* How many times the better peer domus is to be: with two threads message-bound rows share one
 * goal. 0: none. */
double savina_goal(const struct savina_outcome *outcome);

/* With two threads, and spread, a message-bound row may reach this part of the limit instead. */
#define SAVINA_LIMIT_SHARE 0.5

/* Returns whether a placement reaches the goal, by its ratio or by its part of the limit. */
bool savina_is_met(const struct savina_outcome *outcome, enum savina_side placement);

const char *savina_side_name(enum savina_side side);

/* Tell all figures of an outcome that are there, one by one. `who` is the name of a side, or "" for
 * a figure that belongs to no side; `name` is the name of the figure. */
typedef void savina_tell(void *context, const struct savina_outcome *outcome, const char *who,
                         const char *name, double value, const char *unit);
void savina_figures_each(const struct savina_outcome *outcome, savina_tell *tell, void *context);

/* Write DIRECTORY/performance.md, performance.json, and performance.svg by gnuplot with the script
 * `gnuplot_script`. Returns 0, or the negative errno of a system call or of command_run(). */
int savina_report(const char *directory, const char *gnuplot_script, const struct savina_run *run,
                  const struct savina_outcome *outcomes, size_t count);

#endif
