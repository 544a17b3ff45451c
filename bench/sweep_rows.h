/* The ten loads of `bench sweep`: each is a service with its configuration, and the requests to it.
 * The services are the examples and those of other benches; bench/loads is the service of the other
 * loads.
 *
 * A service has one CPU, and the load the other one; or the service has both, and the load shares
 * the second one. A load that would be slower than the service in a closed loop is paced, and its
 * figure is the CPU time of a request. */
#ifndef DOMUS_BENCH_SWEEP_ROWS_H
#define DOMUS_BENCH_SWEEP_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* The figure of a row by which the values of a key are compared. */
enum sweep_goal { SWEEP_RATE, SWEEP_P90, SWEEP_CPU };

enum sweep_requests {
    SWEEP_PACKETS, /* requests are packets of 64 bytes, which come back */
    SWEEP_GETS,    /* requests are GETs of HTTP */
    SWEEP_KEYS,    /* requests are GETs of RESP, the protocol of the example kv */
};

struct sweep_row {
    const char *name;
    const char *program;  /* file name of the service's program, which lies beside the bench */
    const char *listener; /* name of the service's listener in the configuration */
    const char *settings; /* the service's configuration as YAML, without the listener */
    uint32_t cpus;        /* number of CPUs that the service has: 1 or 2 */
    bool is_secure;
    enum sweep_goal goal;
    enum sweep_requests requests;
    uint32_t connections;
    uint32_t depth;
    double rate; /* requests a second that the load offers; 0: a closed loop */
    uint32_t burst;
};

#define SWEEP_ROWS 10u

extern const struct sweep_row sweep_rows[SWEEP_ROWS];

/* Returns the row that has this name; NULL if there is none. */
const struct sweep_row *sweep_find_row_by_name(const char *name);

#endif
