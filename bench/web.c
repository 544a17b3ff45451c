/* The web bench: an HTTP service on domus beside nginx, on one thread each, in paired rounds
 * (versus.h), and the memory that an idle connection takes.
 *
 * Rows: `get` and `pipelined` (16 requests at once) over 64 connections, `many` over 1,000; wrk's
 * rate; and 10,000 idle connections. The bodies have the same bytes. The heads have
 * those that each server writes by default: nginx says Server and Connection besides.
 *
 * stdout: lines `name value unit`, at the end of each row. stderr: progress. Exit 1 on a wrong
 * result (an answer that differs or lacks, a server that dies); a missed goal is no error. */
#include "bench/support/measure.h"
#include "bench/support/options.h"
#include "bench/versus.h"
#include "bench/web_idle.h"
#include "bench/web_load.h"
#include "bench/web_servers.h"
#include "bench/web_wrk.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *name;
    const char *path;
    uint32_t connections;
    uint32_t depth;
} rows[] = {
    {"get", "/", 64, 1},
    {"pipelined", "/", 64, 16},
    {"many", "/", 1000, 1},
};

#define ROWS (sizeof rows / sizeof rows[0])

static int start(uint32_t which, struct server *server)
{
    return web_servers_start((enum web_server)which, VERSUS_SERVER_CPU, server);
}

static struct versus versus = {
    .bench = "web",
    .names = {"domus", "domus_epoll", "nginx"},
    .servers = 3,
    .contenders = 2,
    .start = start,
    .rounds = 5,
    .duration_ns = UINT64_C(500000000),
};

static int run_row(const struct row *row)
{
    static struct web_load load;

    web_load_make(&load, row->path, WEB_HOME, strlen(WEB_HOME));
    return versus_run(&versus, &(struct versus_row){.name = row->name,
                                                    .kind = &load.kind,
                                                    .connections = row->connections,
                                                    .depth = row->depth});
}

static int run_all(int count, char *const *names)
{
    int error = 0;

    for (size_t i = 0; error == 0 && i < ROWS; i++) {
        if (options_wanted(count, names, rows[i].name))
            error = run_row(&rows[i]);
    }
    if (error == 0 && options_wanted(count, names, "wrk"))
        error = web_wrk_run(&versus);
    if (error == 0 && options_wanted(count, names, "idle"))
        error = web_idle_run(&versus);
    return error;
}

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: bench_web [--rounds N] [--seconds N] [--row ROW] [ROW ...]\n"
                    "rows: get pipelined many wrk idle\n");
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"rounds", required_argument, NULL, 'r'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {NULL, 0, NULL, 0}};

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'r')
            versus.rounds = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 's')
            versus.duration_ns = (uint64_t)(strtod(optarg, NULL) * 1e9);
        else
            usage();
    }
    if (versus.rounds < 1 || versus.rounds > VERSUS_ROUNDS_MAX || versus.duration_ns == 0)
        usage();
    int error = web_servers_open();
    if (error == -ENOENT)
        return 0;
    if (error == 0)
        error = measure_pin(VERSUS_LOAD_CPU);
    if (error != 0)
        fprintf(stderr, "web: %s (is there a CPU %d?)\n", strerror(-error), VERSUS_LOAD_CPU);
    else
        error = run_all(argc - optind, argv + optind);
    web_servers_close();
    return error != 0;
}
