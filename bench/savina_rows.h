/* The rows of the Savina benches: the work of each, the result that it must have, and the goal for
 * domus.
 *
 * The runner runs the rows of this table, savina_domus checks its results against it, and the page
 * takes its text from it. Each row has a size for the long form and one for the short form. */
#ifndef DOMUS_BENCH_SAVINA_ROWS_TABLE_H
#define DOMUS_BENCH_SAVINA_ROWS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define SAVINA_ROWS 16

#define SAVINA_MESSAGE_BOUND 5.0

/* The kind of a row's figure. For messages more is better, for the other kinds less. */
enum savina_kind {
    SAVINA_MESSAGES, /* figure: messages per second */
    SAVINA_LATENCY,  /* figure: latencies in ns; their median, 99th and 99.9th percentile */
    SAVINA_CPU,      /* figure: CPU seconds that are used per second */
};

struct savina_row {
    const char *name;
    enum savina_kind kind;
    uint64_t size_long;
    uint64_t size_short;
    /* text that gives the meaning of the size, and the fixed numbers of the row */
    const char *parameters;
    const char *in_flight; /* text that tells how many messages are under way, at most */
    /* number of messages under way, at most, in rows that are compared with
     * limit_measure_ring_of_two_threads() */
    uint32_t under_way;
    bool parallel; /* the row can use a second thread, so it is also run with two */
    bool domus_only;
    bool bare; /* a program with threads and without actors does this row, too */
    /* in this row a foreign thread asks, which Erlang does not have, so Erlang is left out */
    bool from_outside;
    /* goal with one thread: how many times better than the better peer; from SAVINA_MESSAGE_BOUND
     * on, the row counts as bound by its messages; 0: no goal */
    double goal;
    /* goal of the best pool with two runners: how many times better than domus near; 0: no goal */
    double goal_pool;
};

extern const struct savina_row savina_rows[SAVINA_ROWS];

/* Returns the row that has this name; NULL: there is none. */
const struct savina_row *savina_find_row_by_name(const char *name);

/* Returns the result that a round of this size must have. */
uint64_t savina_expected_result_of_round(const struct savina_row *row, uint64_t size);

/* Returns the number of messages in a round of this size; 0 if it depends on the data (quicksort)
 * or is not counted. */
uint64_t savina_message_count_of_round(const struct savina_row *row, uint64_t size);

#endif
