/* The load of a row of `bench sweep`, with every answer checked. */
#ifndef DOMUS_BENCH_SWEEP_LOAD_H
#define DOMUS_BENCH_SWEEP_LOAD_H

#include "bench/request_load.h"
#include "bench/sweep_rows.h"

struct sweep_load {
    const struct sweep_row *row;
    uint16_t port; /* port of the service on 127.0.0.1 */
    /* process of the service, whose CPU time is measured with the load; 0: none */
    pid_t watched;
    uint64_t duration_ns; /* ns for which the load lasts at least */
    /* the layer of TLS in a row that is secure; NULL in other rows */
    const struct request_load_link *link;
};

/* Run the load to its end on the calling thread, which is moved to the second CPU that it may use.
 * Returns as request_load_run_to_its_end(). */
int sweep_load_run_on_service(const struct sweep_load *load,
                              struct request_load_result *ret_result);

/* Move the calling process to its first CPU, to its second, or to both; with fewer CPUs it keeps
 * those that it has. Returns 0 or a negative errno. */
int sweep_load_move_to_cpus(bool with_first, bool with_second);

#endif
