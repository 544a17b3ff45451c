/* The contenders, which do the same rows: domus, CAF, Erlang, and threads without actors. Each is a
 * program of its own for each suite. Threads do only the ring and the row quicksort.
 *
 * All take ROW SIZE THREADS, those of savina also ROUNDS; they do the row, check the result and
 * print its figures: `seconds` and `cpu_seconds` of the work alone, for the rings also
 * `startup_seconds` and `passes`; for savina `round_seconds` of each round, `messages` and
 * `result`, or the other figures of the row. The programs lie beside the bench that runs them. If a
 * peer is not built or not installed, a line says so once, and that peer is left out. */
#ifndef DOMUS_BENCH_CONTENDER_H
#define DOMUS_BENCH_CONTENDER_H

#include "bench/support/command.h"

#include <stdbool.h>

enum contender {
    CONTENDER_DOMUS,
    CONTENDER_CAF,
    CONTENDER_ERLANG,
    CONTENDER_THREADS,
    CONTENDERS,
};

struct contest {
    const char *suite; /* name of the bench whose programs are run: "actors" or "savina" */
    const char *row;
    uint64_t size;
    uint32_t threads; /* number of threads of the contender, each on a CPU of its own */
    /* number of rounds that a program does; 0: programs of this suite take no such argument */
    uint32_t rounds;
    /* placement of domus' actors, or scheduler of CAF; NULL: the program has no such choice */
    const char *placement;
    uint32_t seconds_max;
    uint64_t memory_max_bytes; /* address space that the program may use; 0: no limit */
};

const char *contender_name(enum contender who);

/* Returns whether the program of a contender can be run. If not, a line on stderr says what is
 * missing. */
bool contender_can_be_run(const char *suite, enum contender who);

/* Run a contender for one row. Returns and fills `ret_result` as command_run_and_read_figures()
 * does. */
int contender_run_in_contest(enum contender who, const struct contest *contest,
                             struct command_result *ret_result);

#endif
