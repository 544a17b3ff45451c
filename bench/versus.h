/* Servers of requests beside each other, in paired rounds.
 *
 * In each round every server runs once in each of two modes, one after the other, alone on
 * VERSUS_SERVER_CPU and started afresh, under the same load from VERSUS_LOAD_CPU; each round begins
 * with another server. Saturated: a closed loop, and the server has half of its CPU (hog.h), which
 * tells its rate. Paced: the load offers a part of the rate that the slowest server has in a short
 * calibration, and the server has its whole CPU, which tells its CPU time for a request. The
 * printed ratios are medians of the ratios of all rounds. */
#ifndef DOMUS_BENCH_VERSUS_H
#define DOMUS_BENCH_VERSUS_H

#include "bench/request_load.h"
#include "bench/support/server.h"

#include <stdbool.h>

#define VERSUS_SERVER_CPU  0
#define VERSUS_LOAD_CPU    1
#define VERSUS_SERVERS_MAX 4u
#define VERSUS_ROUNDS_MAX  100u
#define VERSUS_BUSY_MAX    0.9

struct versus {
    const char *bench; /* beginning of the names of all printed figures */
    /* Names of the servers. Each of the first `contenders` servers is compared with each of the
     * others. */
    const char *names[VERSUS_SERVERS_MAX];
    uint32_t servers;
    uint32_t contenders;
    /* Start the server with this index on VERSUS_SERVER_CPU. Returns as server_start(). */
    int (*start)(uint32_t which, struct server *server);
    uint32_t rounds;      /* number of rounds, 1 to VERSUS_ROUNDS_MAX */
    uint64_t duration_ns; /* ns that a paced load lasts; a saturated load lasts half of that */
    /* there is no saturated load, because the servers have more CPUs than the hog could take */
    bool only_paced;
};

struct versus_row {
    const char *name;
    const struct request_load_kind *kind;
    uint32_t connections;
    uint32_t depth;
    /* rate that the paced load offers, as a part of the slowest server's rate; 0: `rate` is
     * offered */
    double offered;
    double rate; /* requests per second that the paced load offers if `offered` is 0 */
    /* layer between the load and its sockets; NULL: plain TCP */
    const struct request_load_link *link;
    /* The function that runs the load of this row; NULL: request_load_run_to_its_end(). */
    int (*run)(const struct request_load_options *options, struct request_load_result *ret_result);
    /* bytes of an answer, from which bytes per CPU second are printed; 0: not printed */
    uint64_t bytes;
    /* requests that each new server gets before the load, to fill it; NULL: none */
    const struct request_load_kind *fill;
    uint64_t fills; /* number of the requests of `fill` that a server gets */
};

/* Read --rounds, --seconds and, unless `config` is NULL, --config; names begin at argv[optind].
 * Returns false for an option that is none of these, and for a number out of its range. */
bool versus_parse_options(struct versus *versus, int argc, char **argv, char **config);

/* Start the server with this index. If it does not start, a line on stderr says so. Returns as
 * server_start(). */
int versus_start_server(const struct versus *versus, uint32_t which, struct server *server);

/* Run a row and print its figures on stdout, as lines `name value unit`. A ratio has the unit
 * `void` if the load used more than VERSUS_BUSY_MAX of its CPU. Progress and errors go to stderr.
 * Returns 0, or a negative errno. */
int versus_run_row_and_print_figures(const struct versus *versus, const struct versus_row *row);

/* Returns a port of 127.0.0.1 that is free now; 0: there is none. */
uint16_t versus_find_free_port(void);

#endif
