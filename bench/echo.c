/* The echo bench compares domus, on each of its backends, with bare echo servers. They run in turn,
 * on the same cores, in paired rounds.
 *
 * Each row is a kind of load. In each round every server runs once for each row and mode, alone, on
 * SERVER_CPU, under the same load from LOAD_CPU; the next round begins with the next server, so
 * that none is always the first or always runs after the same interruption. A slow change of the
 * machine over minutes affects all servers of a round alike, so the figures to trust are the
 * medians of the ratios that are taken in each round.
 *
 * There are two modes. Saturated: a closed loop, and the server has half of its CPU (hog.h), which
 * tells its rate. Paced: the load offers OFFERED of the rate that the slowest server of the row has
 * in a short calibration, and the server has its whole CPU, which tells its CPU time for a message.
 *
 * stdout: lines `name value unit`, at the end. A ratio has the unit `void` if the load used more
 * than LOAD_BUSY_MAX of its CPU. stderr: progress. Exit 1 on a wrong result (bytes that differ or
 * lack, a server that dies or does not end well); a missed goal is no error. */
#include "bench/echo_servers.h"
#include "bench/load.h"
#include "bench/support/hog.h"
#include "bench/support/measure.h"
#include "bench/support/server.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOAD_CPU       1
#define ROUNDS_MAX     200
#define SECONDS_MAX    600
#define STALL_NS       UINT64_C(2000000000)
#define CALIBRATION_NS UINT64_C(250000000)
/* the rate that the paced mode offers, as a share of the rate of the row's slowest server */
#define OFFERED 0.5

enum { SATURATED, PACED, MODES };
enum { RATE, CPU, P50, P99, P999, BUSY, COLUMNS };

static const char *const modes[MODES] = {"saturated", "paced"};

static const struct {
    const char *name;
    const char *unit;
} columns[COLUMNS] = {
    [RATE] = {"rate", "messages/s"}, [CPU] = {"cpu", "us/message"}, [P50] = {"p50", "us"},
    [P99] = {"p99", "us"},           [P999] = {"p999", "us"},       [BUSY] = {"load", "share"},
};

static const struct row {
    const char *name;
    uint32_t connections;
    uint32_t size;
    uint32_t depth;
    uint32_t buffer_size; /* bytes of a receive buffer of the servers; 0: the default of 4 KiB */
    bool with_libuv;
} rows[] = {
    {"plain", 64, 64, 1, 0, true},
    {"pipelined", 64, 64, 16, 0, false},
    {"crowd", 1000, 64, 1, 0, false},
    {"large", 64, 16384, 1, 16384, false},
    /* this row has the messages of `large`, each of which comes in four buffers */
    {"pieces", 64, 16384, 1, 0, false},
};

#define ROWS (sizeof rows / sizeof rows[0])

struct bench {
    uint32_t rounds;
    uint64_t duration_ns;
    char *config;
    bool without[ECHO_SERVERS];
    bool chosen[ROWS];
    char program[ECHO_SERVERS][PATH_MAX];
    double offered[ROWS]; /* messages per second that the paced mode offers in each row */
    double figures[ROWS][MODES][ECHO_SERVERS][COLUMNS][ROUNDS_MAX];
};

static _Noreturn void usage(const char *why)
{
    fprintf(stderr,
            "bench_echo: %s\n"
            "usage: bench_echo --config FILE [--rounds N] [--seconds S]\n"
            "                  [--row plain|pipelined|crowd|large|pieces]...\n"
            "                  [--without domus|domus_epoll|io_uring|epoll|libuv]...\n"
            "defaults: all rows, 9 rounds of half a second\n",
            why);
    exit(2);
}

static double parse_number(const char *text, double min, double max, const char *why)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= min && value <= max))
        usage(why);
    return value;
}

static void leave_server_out(struct bench *bench, const char *name)
{
    int which = echo_server_index_of_name(name);

    if (which < 0)
        usage("no server of that name");
    bench->without[which] = true;
}

static void choose_row(struct bench *bench, const char *name)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            bench->chosen[i] = true;
            return;
        }
    }
    usage("no row of that name");
}

static void read_options(struct bench *bench, int argc, char **argv)
{
    enum { CONFIG, ROUNDS, SECONDS, ROW, WITHOUT };
    static const struct option options[] = {
        {"config", required_argument, NULL, CONFIG},   {"rounds", required_argument, NULL, ROUNDS},
        {"seconds", required_argument, NULL, SECONDS}, {"row", required_argument, NULL, ROW},
        {"without", required_argument, NULL, WITHOUT}, {NULL, 0, NULL, 0},
    };
    bool any = false;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == CONFIG)
            bench->config = optarg;
        else if (option == ROUNDS)
            bench->rounds = (uint32_t)parse_number(optarg, 1, ROUNDS_MAX, "rounds: 1 to 200");
        else if (option == SECONDS)
            bench->duration_ns =
                (uint64_t)(parse_number(optarg, 0.01, SECONDS_MAX, "seconds: 0.01 to 600") * 1e9);
        else if (option == ROW)
            choose_row(bench, optarg);
        else if (option == WITHOUT)
            leave_server_out(bench, optarg);
        else
            usage("unknown option");
        any = any || option == ROW;
    }
    if (optind != argc)
        usage("takes no arguments but options");
    if (bench->config == NULL && !(bench->without[ECHO_DOMUS] && bench->without[ECHO_DOMUS_EPOLL]))
        usage("domus needs --config");
    for (size_t i = 0; i < ROWS && !any; i++)
        bench->chosen[i] = true;
}

static bool does_server_take_part(const struct bench *bench, size_t row, int which)
{
    return bench->chosen[row] && !bench->without[which] &&
           (which != ECHO_LIBUV || rows[row].with_libuv);
}

/* Start one server, run `load` on it after setting the server's port in the load, and end both.
 * With `half` the server has half of its CPU. */
static int run_load_on_new_server(struct bench *bench, size_t row, int which, bool half,
                                  struct load_options *load, struct load_result *ret_result)
{
    const struct echo_setting setting = {bench->config, rows[row].buffer_size};
    const char *name = echo_server_name(which);
    struct server server;
    struct server_usage usage;
    int error = echo_server_start(which, bench->program[which], &setting, &server);

    if (error != 0) {
        fprintf(stderr, "bench_echo: %s: %s\n", name, server.error);
        return error;
    }
    load->port = server.port;
    load->watched[0] = server.pid;
    pid_t hog = half ? hog_start_on_cpu(ECHO_SERVER_CPU) : 0;
    int load_error = hog < 0 ? (int)hog : load_run_in_child_process(load, ret_result);
    hog_stop(hog);
    if (load_error != 0)
        fprintf(stderr, "bench_echo: %s: %s\n", name, load_error_as_text(load_error));
    error = server_stop(&server, &usage);
    if (error != 0)
        fprintf(stderr, "bench_echo: %s: %s\n", name, server.error);
    if (load_error != 0 || error != 0)
        return load_error != 0 ? load_error : error;
    /* With one message in flight per connection, two messages never arrive together, so the server
     * must have counted a receive for each message. */
    if (usage.has_received && load->depth == 1 && usage.received < ret_result->messages) {
        fprintf(stderr, "bench_echo: %s: it counts fewer messages than were served\n", name);
        return -EBADMSG;
    }
    return 0;
}

static struct load_options get_load_options_of_row(const struct bench *bench, size_t row)
{
    return (struct load_options){
        .cpu = LOAD_CPU,
        .connections = rows[row].connections,
        .size = rows[row].size,
        .depth = rows[row].depth,
        .duration_ns = bench->duration_ns,
        .stall_ns = STALL_NS,
    };
}

/* Find the rate that the paced mode of a row offers, by a short saturated load on each server. */
static int find_paced_rate_of_row(struct bench *bench, size_t row)
{
    double slowest = 0;

    for (int which = 0; which < ECHO_SERVERS; which++) {
        struct load_options load = get_load_options_of_row(bench, row);
        struct load_result result;

        if (!does_server_take_part(bench, row, which))
            continue;
        if (load.duration_ns > CALIBRATION_NS)
            load.duration_ns = CALIBRATION_NS;
        int error = run_load_on_new_server(bench, row, which, false, &load, &result);
        if (error != 0)
            return error;
        if (slowest == 0 || result.rate < slowest)
            slowest = result.rate;
    }
    bench->offered[row] = OFFERED * slowest;
    return 0;
}

static int run_server_in_round(struct bench *bench, size_t row, int mode, int which, uint32_t round)
{
    struct load_options load = get_load_options_of_row(bench, row);
    struct load_result result;

    load.rate = mode == PACED ? bench->offered[row] : 0;
    int error = run_load_on_new_server(bench, row, which, mode == SATURATED, &load, &result);
    if (error != 0)
        return error;

    double values[COLUMNS] = {
        [RATE] = result.rate,
        [CPU] = (double)result.watched_cpu_ns[0] / 1e3 / (double)result.messages,
        [P50] = result.p50_us,
        [P99] = result.p99_us,
        [P999] = result.p999_us,
        [BUSY] = load_share_of_one_cpu_used_by_load(&result),
    };
    for (int i = 0; i < COLUMNS; i++)
        bench->figures[row][mode][which][i][round] = values[i];
    fprintf(stderr, "round %2u %-9s %-9s %-11s %7.0f/s  cpu %.3f us  p99 %.0f us  load %.2f\n",
            round + 1, rows[row].name, modes[mode], echo_server_name(which), values[RATE],
            values[CPU], values[P99], values[BUSY]);
    return 0;
}

static int run_all_rounds(struct bench *bench)
{
    int error = 0;

    for (size_t row = 0; row < ROWS && error == 0; row++)
        error = bench->chosen[row] ? find_paced_rate_of_row(bench, row) : 0;
    for (uint32_t round = 0; round < bench->rounds; round++) {
        for (size_t i = 0; i < ROWS * MODES * ECHO_SERVERS && error == 0; i++) {
            size_t row = i / (MODES * ECHO_SERVERS);
            int mode = (int)(i / ECHO_SERVERS % MODES);
            int which = (int)((round + i) % ECHO_SERVERS);

            if (does_server_take_part(bench, row, which))
                error = run_server_in_round(bench, row, mode, which, round);
        }
    }
    return error;
}

static double get_median_of_figure(const struct bench *bench, size_t row, int mode, int which,
                                   int column)
{
    double values[ROUNDS_MAX];

    memcpy(values, bench->figures[row][mode][which][column], sizeof values);
    return measure_sort_and_get_median(values, bench->rounds);
}

static void print_medians_of_figures(const struct bench *bench, size_t row, int mode)
{
    for (int which = 0; which < ECHO_SERVERS; which++) {
        for (int i = 0; i < COLUMNS && does_server_take_part(bench, row, which); i++)
            printf("echo.%s.%s.%s.%s %.3f %s\n", rows[row].name, modes[mode],
                   echo_server_name(which), columns[i].name,
                   get_median_of_figure(bench, row, mode, which, i), columns[i].unit);
    }
}

/* Print the ratio of two servers in a row: the median, over all rounds, of one server's figure
 * divided by the other's. */
static void print_ratio_of_servers(const struct bench *bench, size_t row, int mode, int column,
                                   int server, int peer)
{
    double ratios[ROUNDS_MAX];

    if (!does_server_take_part(bench, row, server) || !does_server_take_part(bench, row, peer))
        return;
    for (uint32_t i = 0; i < bench->rounds; i++)
        ratios[i] = bench->figures[row][mode][server][column][i] /
                    bench->figures[row][mode][peer][column][i];
    bool is_void = get_median_of_figure(bench, row, mode, server, BUSY) > LOAD_BUSY_MAX ||
                   get_median_of_figure(bench, row, mode, peer, BUSY) > LOAD_BUSY_MAX;
    printf("echo.%s.%s.ratio.%s.%s.%s %.4f %s\n", rows[row].name, modes[mode], columns[column].name,
           echo_server_name(server), echo_server_name(peer),
           measure_sort_and_get_median(ratios, bench->rounds), is_void ? "void" : "ratio");
}

static void print_ratios_of_servers(const struct bench *bench, size_t row, int mode)
{
    static const struct {
        int server;
        int peer;
    } pairs[] = {
        {ECHO_DOMUS, ECHO_IO_URING},
        {ECHO_DOMUS_EPOLL, ECHO_EPOLL},
        {ECHO_DOMUS, ECHO_EPOLL},
        {ECHO_DOMUS, ECHO_LIBUV},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        print_ratio_of_servers(bench, row, mode, RATE, pairs[i].server, pairs[i].peer);
        print_ratio_of_servers(bench, row, mode, CPU, pairs[i].server, pairs[i].peer);
    }
}

int main(int argc, char **argv)
{
    static struct bench bench = {.rounds = 9, .duration_ns = 500000000};

    read_options(&bench, argc, argv);
    for (int i = 0; i < ECHO_SERVERS; i++) {
        if (!bench.without[i] && echo_server_find_program(i, bench.program[i]) != 0) {
            fprintf(stderr, "bench_echo: no %s (build it, or say --without %s)\n", bench.program[i],
                    echo_server_name(i));
            return EXIT_FAILURE;
        }
    }
    if (run_all_rounds(&bench) != 0)
        return EXIT_FAILURE;
    for (size_t row = 0; row < ROWS; row++) {
        for (int mode = 0; mode < MODES && bench.chosen[row]; mode++)
            print_medians_of_figures(&bench, row, mode);
    }
    for (size_t row = 0; row < ROWS; row++) {
        for (int mode = 0; mode < MODES && bench.chosen[row]; mode++)
            print_ratios_of_servers(&bench, row, mode);
    }
    return EXIT_SUCCESS;
}
