/* The TLS bench: echoes on domus beside a bare loop over the same library, and an HTTPS service
 * beside nginx with the same key, suite and group, on one thread each, in paired rounds (versus.h).
 *
 * Rows: `echo` (64 bytes) and `echo_16k` (in receive buffers of 20 KiB) over 64 connections; `get`
 * and `light` as in `bench web`; `full` and `resumed`, whose request is a handshake with one GET on
 * a connection of its own; and `crowd_domus`, `crowd_domus_epoll` and `crowd_nginx`, of 10,000 idle
 * connections and as many unfinished handshakes, which the server gives up after 10 s and the
 * attacker begins anew; `crowd` is all three. In `standing_SERVER`, all three `standing`, the
 * server gives up none.
 *
 * stdout: lines `name value unit`, at the end of each row. stderr: progress. Exit 1 on a wrong
 * result (an answer that differs or lacks, a handshake that is not of the wanted kind, a server
 * that dies); a missed goal is no error. */
#include "bench/support/command.h"
#include "bench/support/measure.h"
#include "bench/support/options.h"
#include "bench/tls_client.h"
#include "bench/tls_crowd.h"
#include "bench/tls_shake.h"
#include "bench/versus.h"
#include "bench/web_load.h"
#include "bench/web_servers.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ECHO_MAX 16384u

static const struct row {
    const char *name;
    uint32_t connections;
    double offered; /* rate that the paced load offers, as a share of the slowest server's rate */
    uint32_t echo;  /* bytes of a message that the servers echo; 0: the request is a GET */
    int (*run)(const struct request_load_options *options, struct request_load_result *ret_result);
} rows[] = {
    {"echo", 64, 0.5, 64, NULL},
    {"echo_16k", 64, 0.5, ECHO_MAX, NULL},
    {"get", 64, 0.75, 0, NULL},
    {"light", 64, 0.25, 0, NULL},
    {"full", 16, 0.5, 0, tls_shake_run_full_ones},
    {"resumed", 16, 0.5, 0, tls_shake_run_resumed_ones},
};

#define ROWS (sizeof rows / sizeof rows[0])

/* --- the servers ------------------------------------------------------------------------------ */

static int start_web(uint32_t which, struct server *server)
{
    static const enum web_server servers[] = {WEB_DOMUS, WEB_DOMUS_EPOLL, WEB_NGINX};

    return web_servers_start_server(servers[which], VERSUS_SERVER_CPU, server);
}

static char *config;  /* path of the configuration with which domus serves the echoes */
static bool is_large; /* the records of the current row need receive buffers of more than 4 KiB */

static int start_echo(uint32_t which, struct server *server)
{
    char path[PATH_MAX];
    char *bare[] = {path, (char[]){"0"}, (char[]){"0"}, NULL};
    char *domus[] = {path,
                     (char[]){"--set"},
                     which == 0 ? (char[]){"io.backend=uring"} : (char[]){"io.backend=epoll"},
                     (char[]){"--set"},
                     (char[]){"system.threads=1"},
                     (char[]){"--set"},
                     (char[]){"system.cpus=none"},
                     (char[]){"--set"},
                     (char[]){"profile.atExit=false"},
                     (char[]){"--set"},
                     is_large ? (char[]){"io.buffers.size=20KiB"}
                              : (char[]){"io.buffers.size=4KiB"},
                     (char[]){"--set"},
                     (char[]){"listeners.echo.address=127.0.0.1:0"},
                     (char[]){"--config"},
                     config,
                     NULL};

    if (command_find_program_beside(which == 2 ? "echo_tls" : "echo_tls_domus", path) != 0) {
        server->error = "its program is not there";
        return -ENOENT;
    }
    return server_start(server, VERSUS_SERVER_CPU, which == 2 ? bare : domus);
}

static struct versus web = {
    .bench = "tls",
    .names = {"domus", "domus_epoll", "nginx"},
    .servers = 3,
    .contenders = 2,
    .start = start_web,
    .rounds = 5,
    .duration_ns = UINT64_C(400000000),
};

static struct versus echo = {
    .bench = "tls",
    .names = {"domus", "domus_epoll", "bare"},
    .servers = 3,
    .contenders = 2,
    .start = start_echo,
};

/* --- the echo's messages ---------------------------------------------------------------------- */

/* the bytes of messages; they have no period that equals a size of buffers */
static char bytes[ECHO_MAX];

static void make_bytes_of_messages(void)
{
    uint32_t seed = 1;

    for (size_t i = 0; i < sizeof bytes; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (char)(seed >> 24);
    }
}

/* Check the bytes of an echo. `place` is the number of the next byte in its message. */
static int check_bytes_of_echo(const void *context, uint64_t *place, const char *got, size_t size,
                               bool *ret_ends)
{
    const struct row *row = context;
    size_t left = (size_t)(row->echo - *place);
    size_t part = size < left ? size : left;

    if (memcmp(got, bytes + *place, part) != 0)
        return -EBADMSG;
    *place += part;
    *ret_ends = part == left;
    return (int)part;
}

/* --- the rows --------------------------------------------------------------------------------- */

static int run_row_of_bench(const struct row *row, const struct request_load_link *link)
{
    static struct web_load load;
    const struct request_load_kind messages = {.rest = bytes,
                                               .rest_size = row->echo,
                                               .check = check_bytes_of_echo,
                                               .context = (void *)(uintptr_t)row};
    const struct versus_row wanted = {.name = row->name,
                                      .kind = row->echo != 0 ? &messages : &load.kind,
                                      .connections = row->connections,
                                      .depth = 1,
                                      .offered = row->offered,
                                      .link = link,
                                      .run = row->run,
                                      .bytes = row->echo == ECHO_MAX ? ECHO_MAX : 0};

    is_large = row->echo == ECHO_MAX;
    web_load_make_requests(&load, "/", WEB_HOME, strlen(WEB_HOME));
    return versus_run_row_and_print_figures(row->echo != 0 ? &echo : &web, &wanted);
}

/* Run a row of 10,000 connections that wait on the server `which`, if the row is wanted. */
static int run_row_of_crowd(const char *row, const struct request_load_kind *kind, uint32_t which,
                            int count, char *const *names)
{
    char name[32];

    snprintf(name, sizeof name, "%s_%s", row, web.names[which]);
    if (!options_is_name_wanted(count, names, row) && !options_is_name_wanted(count, names, name))
        return 0;
    return tls_crowd_run_row(&web, kind, which, strcmp(row, "standing") == 0);
}

static int run_all_rows(int count, char *const *names)
{
    static struct web_load load;
    SSL_CTX *context = tls_client_make_context();
    const struct request_load_link link = tls_client_make_link_for_load(context);
    int error = context != NULL ? 0 : -ENOMEM;

    for (size_t i = 0; error == 0 && i < ROWS; i++) {
        if (options_is_name_wanted(count, names, rows[i].name))
            error = run_row_of_bench(&rows[i], &link);
    }
    web_load_make_requests(&load, "/", WEB_HOME, strlen(WEB_HOME));
    for (uint32_t i = 0; error == 0 && i < web.servers; i++) {
        error = run_row_of_crowd("crowd", &load.kind, i, count, names);
        if (error == 0)
            error = run_row_of_crowd("standing", &load.kind, i, count, names);
    }
    SSL_CTX_free(context);
    return error;
}

/* Make the key and certificate that all servers use. */
static int make_key_of_servers(void)
{
    char pem[TLS_CLIENT_PEM_MAX];
    int size = tls_client_make_key(pem);

    return size < 0 ? size : web_servers_use_tls(pem, (size_t)size);
}

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: bench_tls --config FILE [--rounds N] [--seconds N] [ROW ...]\n"
                    "rows: echo echo_16k get light full resumed crowd crowd_SERVER "
                    "standing standing_SERVER\n");
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"rounds", required_argument, NULL, 'r'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {NULL, 0, NULL, 0}};

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'c')
            config = optarg;
        else if (option == 'r')
            web.rounds = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 's')
            web.duration_ns = (uint64_t)(strtod(optarg, NULL) * 1e9);
        else
            usage();
    }
    if (config == NULL || web.rounds < 1 || web.rounds > VERSUS_ROUNDS_MAX || web.duration_ns == 0)
        usage();
    echo.rounds = web.rounds;
    echo.duration_ns = web.duration_ns;
    make_bytes_of_messages();
    int error = web_servers_make_directory();
    if (error == -ENOENT)
        return 0;
    if (error == 0)
        error = make_key_of_servers();
    if (error == 0)
        error = measure_pin_thread_to_cpu(VERSUS_LOAD_CPU);
    if (error != 0)
        fprintf(stderr, "tls: %s (is there a CPU %d?)\n", strerror(-error), VERSUS_LOAD_CPU);
    else
        error = run_all_rows(argc - optind, argv + optind);
    web_servers_remove_directory();
    return error != 0;
}
