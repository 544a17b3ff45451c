/* The rows of the Savina benches: what each is, what must come of it, and what domus is to reach.
 *
 * The table is what the runner runs, what savina_domus holds its results against, and what the page
 * says of a row. Sizes are those of the long form and of the short one. */
#ifndef DOMUS_BENCH_SAVINA_ROWS_TABLE_H
#define DOMUS_BENCH_SAVINA_ROWS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define SAVINA_ROWS 16

#define SAVINA_MESSAGE_BOUND 5.0

/* What is measured, and in which direction it is better. */
enum savina_kind {
    SAVINA_MESSAGES, /* messages per second */
    SAVINA_LATENCY,  /* nanoseconds: median, 99 and 99.9 percent */
    SAVINA_CPU,      /* CPU seconds per second */
};

struct savina_row {
    const char *name;
    enum savina_kind kind;
    uint64_t size_long;
    uint64_t size_short;
    const char *parameters; /* what the size is, and what else is fixed */
    const char *in_flight;  /* bound of messages under way */
    bool parallel;          /* can use a second thread */
    bool domus_only;
    bool from_outside; /* a foreign thread asks: Erlang has none, and is not compared */
    double goal; /* times the better peer, with one thread; from SAVINA_MESSAGE_BOUND on, the row
                    is bound by its messages; 0: none */
};

extern const struct savina_row savina_rows[SAVINA_ROWS];

/* NULL when there is none of this name. */
const struct savina_row *savina_row_find(const char *name);

/* What a round of so many must give. */
uint64_t savina_result(const struct savina_row *row, uint64_t size);

/* The messages of a round; 0 where they follow from the data (quicksort) or nobody counts. */
uint64_t savina_messages(const struct savina_row *row, uint64_t size);

#endif
