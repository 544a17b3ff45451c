/* Servers of requests beside each other, in paired rounds.
 *
 * In each round every server runs once in each of two modes, one after the other, alone on
 * VERSUS_SERVER_CPU and started afresh, under the same load from VERSUS_LOAD_CPU; each round begins
 * with another one. Saturated: a closed loop, and the server has half of its CPU (hog.h), which
 * tells its rate. Paced: the load offers a part of the rate that the slowest server has in
 * a short calibration, and the server has its whole CPU, which tells its CPU time for a request.
 * The ratios are medians of those of the rounds. */
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
    const char *bench; /* the start of all names */
    /* The servers; the first `contenders` are held against each of the others. */
    const char *names[VERSUS_SERVERS_MAX];
    uint32_t servers;
    uint32_t contenders;
    /* Start a server on VERSUS_SERVER_CPU. Returns as server_start(). */
    int (*start)(uint32_t which, struct server *server);
    uint32_t rounds;      /* 1 .. VERSUS_ROUNDS_MAX */
    uint64_t duration_ns; /* of a paced load; a saturated one has half of it */
    bool only_paced;      /* no saturated load: the servers have more CPUs than the hog takes */
};

struct versus_row {
    const char *name;
    const struct request_load_kind *kind;
    uint32_t connections;
    uint32_t depth;
    double offered;                       /* as a part of the slowest server's rate; 0: `rate` */
    double rate;                          /* requests a second, if `offered` is 0 */
    const struct request_load_link *link; /* how the connections are made; NULL: as plain TCP */
    /* The load of this row. NULL: request_load_run(). */
    int (*run)(const struct request_load_options *options, struct request_load_result *ret_result);
    uint64_t bytes; /* bytes of an answer, to print bytes a CPU second; 0: not printed */
    const struct request_load_kind *fill; /* requests that each fresh server gets first, or NULL */
    uint64_t fills;                       /* how many of them */
};

/* Read --rounds, --seconds and, unless `config` is NULL, --config; names begin at argv[optind].
 * Returns false for an option that is none of these, and for a number out of its range. */
bool versus_parse(struct versus *versus, int argc, char **argv, char **config);

/* Start a server. If it does not start, say so on stderr. Returns as server_start(). */
int versus_start(const struct versus *versus, uint32_t which, struct server *server);

/* Run a row and print its figures on stdout, as lines `name value unit`. A ratio has the unit
 * `void` if the load used more than VERSUS_BUSY_MAX of its CPU. Progress and errors go to stderr.
 * Returns 0, or a negative errno. */
int versus_run(const struct versus *versus, const struct versus_row *row);

/* Returns a port of 127.0.0.1 that is free now; 0: there is none. */
uint16_t versus_free_port(void);

#endif
