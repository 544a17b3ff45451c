/* The web bench: an HTTP service on domus beside nginx, on one thread each, in paired rounds
 * (versus.h), and the memory that an idle connection takes.
 *
 * Rows: `get` and `pipelined` (16 requests at once) over 64 connections, `many` over 1,000; files
 * of 4 KiB and 1 MiB, where nginx runs twice, without and with sendfile; wrk's rate; and 10,000
 * idle connections. In `4k` no server keeps files. In `4k_looked` domus keeps their bytes and looks
 * at the file for each request, as is its default; nginx, whose default is to keep none, opens and
 * reads it. In `4k_kept` both take a file for what it was a minute ago. `get` is offered three
 * quarters of the rate that the slowest server has, so it often finds several requests when it
 * wakes; `light` a quarter, where each request wakes it. The bodies have the same bytes. The heads
 * have those that each server writes by default: nginx says Server and Connection besides.
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

#define KIB 1024u

static const struct row {
    const char *name;
    const char *path;
    uint32_t connections;
    uint32_t depth;
    uint32_t file;  /* bytes of the file that is requested; 0: the request is for the home page */
    double offered; /* rate that the paced load offers, as a share of the slowest server's rate */
    enum web_keep keep;
} rows[] = {
    {"get", "/", 64, 1, 0, 0.75, WEB_KEEP_BY_LOOK},
    {"light", "/", 64, 1, 0, 0.25, WEB_KEEP_BY_LOOK},
    {"pipelined", "/", 64, 16, 0, 0.75, WEB_KEEP_BY_LOOK},
    {"many", "/", 1000, 1, 0, 0.75, WEB_KEEP_BY_LOOK},
    {"4k", "/files/4k", 64, 1, 4 * KIB, 0.75, WEB_KEEP_NOTHING},
    {"4k_looked", "/files/4k", 64, 1, 4 * KIB, 0.75, WEB_KEEP_BY_LOOK},
    {"4k_kept", "/files/4k", 64, 1, 4 * KIB, 0.75, WEB_KEEP_A_MINUTE},
    {"1m", "/files/1m", 64, 1, KIB *KIB, 0.5, WEB_KEEP_NOTHING},
};

#define ROWS (sizeof rows / sizeof rows[0])

/* the bytes of the largest file; a smaller file has the first ones of them */
static char file[KIB * KIB];

static int start_server(uint32_t which, struct server *server)
{
    return web_servers_start_server((enum web_server)which, VERSUS_SERVER_CPU, server);
}

static struct versus versus = {
    .bench = "web",
    .names = {"domus", "domus_epoll", "nginx", "nginx_sendfile"},
    .servers = 3,
    .contenders = 2,
    .start = start_server,
    .rounds = 5,
    .duration_ns = UINT64_C(400000000),
};

static int run_row_of_bench(const struct row *row)
{
    static struct web_load load;
    struct versus own = versus;

    if (row->file != 0)
        own.servers = 4;
    web_servers_set_use_of_file_cache(row->keep);
    web_load_make_requests(&load, row->path, row->file != 0 ? file : WEB_HOME,
                           row->file != 0 ? row->file : strlen(WEB_HOME));
    return versus_run_row_and_print_figures(&own,
                                            &(struct versus_row){.name = row->name,
                                                                 .kind = &load.kind,
                                                                 .connections = row->connections,
                                                                 .depth = row->depth,
                                                                 .offered = row->offered,
                                                                 .bytes = row->file});
}

/* Write the files that all servers serve. Their bytes have no period that equals a size of
 * buffers. */
static int write_files_to_serve(void)
{
    uint32_t seed = 1;

    for (size_t i = 0; i < sizeof file; i++) {
        seed = seed * 1664525 + 1013904223;
        file[i] = (char)(seed >> 24);
    }
    int error = web_servers_write_file_to_serve("4k", file, 4 * KIB);
    return error != 0 ? error : web_servers_write_file_to_serve("1m", file, sizeof file);
}

static int run_all_rows(int count, char *const *names)
{
    int error = 0;

    for (size_t i = 0; error == 0 && i < ROWS; i++) {
        if (options_is_name_wanted(count, names, rows[i].name))
            error = run_row_of_bench(&rows[i]);
    }
    if (error == 0 && options_is_name_wanted(count, names, "wrk"))
        error = web_wrk_run_row(&versus);
    if (error == 0 && options_is_name_wanted(count, names, "idle"))
        error = web_idle_run_row(&versus);
    return error;
}

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: bench_web [--rounds N] [--seconds N] [ROW ...]\n"
                    "rows: get light pipelined many 4k 4k_looked 4k_kept 1m wrk idle\n");
    exit(2);
}

int main(int argc, char **argv)
{
    if (!versus_parse_options(&versus, argc, argv, NULL))
        usage();
    int error = web_servers_make_directory();
    if (error == -ENOENT)
        return 0;
    if (error == 0)
        error = write_files_to_serve();
    if (error == 0)
        error = measure_pin_thread_to_cpu(VERSUS_LOAD_CPU);
    if (error != 0)
        fprintf(stderr, "web: %s (is there a CPU %d?)\n", strerror(-error), VERSUS_LOAD_CPU);
    else
        error = run_all_rows(argc - optind, argv + optind);
    web_servers_remove_directory();
    return error != 0;
}
