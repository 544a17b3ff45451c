/* The load of a row of `bench sweep`, with every answer checked. */
#ifndef DOMUS_BENCH_SWEEP_LOAD_H
#define DOMUS_BENCH_SWEEP_LOAD_H

#include "bench/request_load.h"
#include "bench/sweep_rows.h"

struct sweep_load {
    const struct sweep_row *row;
    uint16_t port;                        /* on 127.0.0.1 */
    pid_t watched;                        /* the service; 0: none */
    uint64_t duration_ns;                 /* of the load, at least */
    const struct request_load_link *link; /* of a secure row */
};

/* Run to the end on the calling thread, which is moved to the second CPU that it may use. Returns
 * as request_load_run(). */
int sweep_load_run(const struct sweep_load *load, struct request_load_result *ret_result);

/* Leave the calling process its first or second CPU, or its first two; with fewer it keeps what it
 * has. Returns 0 or a negative errno. */
int sweep_load_move(bool with_first, bool with_second);

#endif
