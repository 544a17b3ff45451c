/* The ten loads of `bench sweep`: each is a service with its configuration, and what is asked of
 * it. The services are the examples and those of other benches, and bench/loads where there is
 * none.
 *
 * A service has one CPU, and the load the other one, or it has both, and the load shares the second
 * with it. Where the load would be slower than the service in a closed loop, it is paced, and the
 * CPU time of a request tells. */
#ifndef DOMUS_BENCH_SWEEP_ROWS_H
#define DOMUS_BENCH_SWEEP_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* The figure by which values of a key are held against each other. */
enum sweep_goal { SWEEP_RATE, SWEEP_P90, SWEEP_CPU };

enum sweep_requests {
    SWEEP_PACKETS, /* of 64 bytes, which come back */
    SWEEP_GETS,    /* of HTTP */
    SWEEP_KEYS,    /* GET of RESP */
};

struct sweep_row {
    const char *name;
    const char *program;  /* it lies beside the bench */
    const char *listener; /* its name in the configuration */
    const char *settings; /* YAML, besides the listener */
    uint32_t cpus;        /* of the service: 1 or 2 */
    bool is_secure;
    enum sweep_goal goal;
    enum sweep_requests requests;
    uint32_t connections;
    uint32_t depth;
    double rate; /* requests a second that are offered; 0: a closed loop */
    uint32_t burst;
};

#define SWEEP_ROWS 10u

extern const struct sweep_row sweep_rows[SWEEP_ROWS];

/* Returns the row of that name; NULL if there is none. */
const struct sweep_row *sweep_row_find(const char *name);

#endif
