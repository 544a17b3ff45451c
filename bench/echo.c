/* The echo bench compares domus, on each of its backends, with three bare echo servers. They run in
 * turn, on the same cores, in paired rounds.
 *
 * In each round every server runs once, alone, on SERVER_CPU, under the same load from LOAD_CPU;
 * the next round begins with the next server, so that none is always the first or always runs after
 * the same interruption. A slow change of the machine over minutes affects all servers of a round
 * alike, so the figures to trust are the medians of the ratios that are taken in each round.
 *
 * stdout: lines `name value unit`, at the end. stderr: progress. Exit 1 on a wrong result (bytes
 * that differ or lack, a server that dies or does not end well); a missed goal is no error. */
#include "bench/load.h"
#include "bench/support/measure.h"
#include "bench/support/server.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVER_CPU      0
#define SERVER_CPU_TEXT "0"
#define LOAD_CPU        1
#define ROUNDS_MAX      1000
#define SECONDS_MAX     3600
#define STALL_NS        UINT64_C(2000000000)

enum { DOMUS, DOMUS_EPOLL, IO_URING, EPOLL, LIBUV, SERVERS };
enum { RATE, CPU, P50, P99, P999, LOAD, COLUMNS };

static const struct {
    const char *name;
    const char *program; /* beside the runner */
} servers[SERVERS] = {
    [DOMUS] = {"domus", "echo"},
    [DOMUS_EPOLL] = {"domus_epoll", "echo"},
    [IO_URING] = {"io_uring", "echo_uring"},
    [EPOLL] = {"epoll", "echo_epoll"},
    [LIBUV] = {"libuv", "echo_uv"},
};

static const struct {
    /* the format of the figure's name, which is filled with the server's name */
    const char *format;
    const char *unit;
} columns[COLUMNS] = {
    [RATE] = {"echo.%s.rate", "messages/s"}, [CPU] = {"echo.%s.cpu", "us/message"},
    [P50] = {"echo.%s.p50", "us"},           [P99] = {"echo.%s.p99", "us"},
    [P999] = {"echo.%s.p999", "us"},         [LOAD] = {"echo.load.cpu.%s", "us/message"},
};

struct bench {
    uint32_t rounds;
    char *config;
    bool without[SERVERS];
    struct load_options load;
    char program[SERVERS][PATH_MAX];
    double figures[SERVERS][COLUMNS][ROUNDS_MAX];
};

static _Noreturn void usage(const char *why)
{
    fprintf(stderr,
            "bench_echo: %s\n"
            "usage: bench_echo --config FILE [--rounds N] [--seconds S] [--connections C]\n"
            "                  [--size B] [--without domus|domus_epoll|io_uring|epoll|libuv]...\n"
            "defaults: 15 rounds of 1 second, 64 connections, 64 bytes\n",
            why);
    exit(2);
}

static double number(const char *text, double min, double max, const char *why)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= min && value <= max))
        usage(why);
    return value;
}

static uint32_t whole(const char *text, uint32_t max, const char *why)
{
    double value = number(text, 1, max, why);

    if (value != (double)(uint32_t)value)
        usage(why);
    return (uint32_t)value;
}

static void leave_out(struct bench *bench, const char *name)
{
    for (int i = 0; i < SERVERS; i++) {
        if (strcmp(servers[i].name, name) == 0) {
            bench->without[i] = true;
            return;
        }
    }
    usage("no server of that name");
}

static void read_options(struct bench *bench, int argc, char **argv)
{
    enum { CONFIG, ROUNDS, SECONDS, CONNECTIONS, SIZE, WITHOUT };
    static const struct option options[] = {
        {"config", required_argument, NULL, CONFIG},
        {"rounds", required_argument, NULL, ROUNDS},
        {"seconds", required_argument, NULL, SECONDS},
        {"connections", required_argument, NULL, CONNECTIONS},
        {"size", required_argument, NULL, SIZE},
        {"without", required_argument, NULL, WITHOUT},
        {NULL, 0, NULL, 0},
    };
    struct load_options *load = &bench->load;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == CONFIG)
            bench->config = optarg;
        else if (option == ROUNDS)
            bench->rounds = whole(optarg, ROUNDS_MAX, "rounds: 1 to 1000");
        else if (option == SECONDS)
            load->duration_ns =
                (uint64_t)(number(optarg, 0.01, SECONDS_MAX, "seconds: 0.01 to 3600") * 1e9);
        else if (option == CONNECTIONS)
            load->connections = whole(optarg, LOAD_CONNECTIONS_MAX, "connections: 1 to 16384");
        else if (option == SIZE)
            load->size = whole(optarg, LOAD_IN_FLIGHT_MAX, "size: 1 to 1048576");
        else if (option == WITHOUT)
            leave_out(bench, optarg);
        else
            usage("unknown option");
    }
    if (optind != argc)
        usage("takes no arguments but options");
    if (bench->config == NULL && !(bench->without[DOMUS] && bench->without[DOMUS_EPOLL]))
        usage("domus needs --config");
}

/* Find all programs before the first round, so that a missing one is told at once and not after
 * minutes. */
static int find_programs(struct bench *bench)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

    if (length < 0) {
        perror("bench_echo: /proc/self/exe");
        return -errno;
    }
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    for (int i = 0; i < SERVERS; i++) {
        if (bench->without[i])
            continue;

        int written = snprintf(bench->program[i], PATH_MAX, "%s/%s", path, servers[i].program);
        if (written >= PATH_MAX || access(bench->program[i], X_OK) != 0) {
            fprintf(stderr, "bench_echo: no %s (build it, or say --without %s)\n",
                    bench->program[i], servers[i].name);
            return -ENOENT;
        }
    }
    return 0;
}

static int start(struct bench *bench, int which, struct server *server)
{
    char *program = bench->program[which];

    if (which == DOMUS || which == DOMUS_EPOLL) {
        char *arguments[] = {
            program,
            (char[]){"--set"},
            which == DOMUS ? (char[]){"io.backend=uring"} : (char[]){"io.backend=epoll"},
            (char[]){"--set"},
            (char[]){"system.threads=1"},
            (char[]){"--set"},
            (char[]){"system.cpus=" SERVER_CPU_TEXT},
            (char[]){"--set"},
            (char[]){"listeners.echo.address=127.0.0.1:0"},
            (char[]){"--config"},
            bench->config,
            NULL,
        };
        return server_start(server, SERVER_CPU, arguments);
    }

    /* Port 0, as for domus, lets the kernel choose a free one. */
    char *arguments[] = {program, (char[]){"0"}, (char[]){SERVER_CPU_TEXT}, NULL};
    return server_start(server, SERVER_CPU, arguments);
}

/* Run the load in a process of its own, so that its memory, its pinning and its CPU time do not
 * affect the runner. */
static int run_load(const struct load_options *options, struct load_result *ret_result)
{
    struct {
        int error;
        struct load_result result;
    } report = {.error = -EIO};
    int channel[2];

    if (pipe(channel) != 0)
        return -errno;

    pid_t pid = fork();
    if (pid == 0) {
        report.error = load_run(options, &report.result);
        ssize_t written = write(channel[1], &report, sizeof report);
        _exit(written == (ssize_t)sizeof report ? 0 : 1);
    }
    close(channel[1]);
    if (pid > 0) {
        ssize_t length = read(channel[0], &report, sizeof report);
        if (length != (ssize_t)sizeof report)
            report.error = -EIO;
        waitpid(pid, NULL, 0);
    }
    close(channel[0]);
    if (pid > 0 && report.error == 0)
        *ret_result = report.result;
    return pid > 0 ? report.error : -EAGAIN;
}

static const char *load_error_text(int error)
{
    switch (-error) {
    case EBADMSG:
        return "wrong bytes came back";
    case ECONNRESET:
        return "it closed a connection early";
    case ETIMEDOUT:
        return "bytes, or the end of a stream, did not come back";
    case EINVAL:
        return "the load cannot run so (is there a CPU 1?)";
    default:
        return strerror(-error);
    }
}

static void record(struct bench *bench, int which, uint32_t round, const struct load_result *load,
                   const struct server_usage *usage)
{
    double messages = (double)load->messages;
    double values[COLUMNS] = {
        [RATE] = load->rate,    [CPU] = (double)usage->cpu_ns / 1e3 / messages,
        [P50] = load->p50_us,   [P99] = load->p99_us,
        [P999] = load->p999_us, [LOAD] = (double)load->cpu_ns / 1e3 / messages,
    };

    for (int i = 0; i < COLUMNS; i++)
        bench->figures[which][i][round] = values[i];
    fprintf(stderr, "round %2u %-11s %7.0f/s  cpu %.3f us  p50 %.0f  p99 %.0f  p999 %.0f us\n",
            round + 1, servers[which].name, values[RATE], values[CPU], values[P50], values[P99],
            values[P999]);
}

static int run_one(struct bench *bench, int which, uint32_t round)
{
    const char *name = servers[which].name;
    struct server server;
    struct load_result result = {0};
    struct server_usage usage;
    int error = start(bench, which, &server);

    if (error != 0) {
        fprintf(stderr, "bench_echo: %s: %s\n", name, server.error);
        return error;
    }
    bench->load.port = server.port;
    int load_error = run_load(&bench->load, &result);
    if (load_error != 0)
        fprintf(stderr, "bench_echo: %s: %s\n", name, load_error_text(load_error));
    error = server_stop(&server, &usage);
    if (error != 0)
        fprintf(stderr, "bench_echo: %s: %s\n", name, server.error);
    if (load_error != 0 || error != 0)
        return load_error != 0 ? load_error : error;
    /* With one message in flight per connection, two messages never arrive together, so the server
     * must have counted each. */
    if (usage.has_received && usage.received < result.messages) {
        fprintf(stderr, "bench_echo: %s: it counts fewer messages than were served\n", name);
        return -EBADMSG;
    }
    record(bench, which, round, &result, &usage);
    return 0;
}

static int run_rounds(struct bench *bench)
{
    for (uint32_t round = 0; round < bench->rounds; round++) {
        for (uint32_t i = 0; i < SERVERS; i++) {
            int which = (int)((round + i) % SERVERS);
            int error = bench->without[which] ? 0 : run_one(bench, which, round);

            if (error != 0)
                return error;
        }
    }
    return 0;
}

static void print_medians(const struct bench *bench)
{
    for (int which = 0; which < SERVERS; which++) {
        for (int i = 0; i < COLUMNS && !bench->without[which]; i++) {
            double values[ROUNDS_MAX];
            char name[64];

            memcpy(values, bench->figures[which][i], sizeof values);
            snprintf(name, sizeof name, columns[i].format, servers[which].name);
            printf("%s %.3f %s\n", name, measure_median(values, bench->rounds), columns[i].unit);
        }
    }
}

/* Print the median of the figure of a server divided by that of another one in the same round. */
static void print_ratio(const struct bench *bench, int column, const char *name, int server,
                        int peer)
{
    double ratios[ROUNDS_MAX];

    if (bench->without[server] || bench->without[peer])
        return;
    for (uint32_t i = 0; i < bench->rounds; i++)
        ratios[i] = bench->figures[server][column][i] / bench->figures[peer][column][i];
    printf("echo.ratio.%s %.4f ratio\n", name, measure_median(ratios, bench->rounds));
}

static void print_ratios(const struct bench *bench)
{
    print_ratio(bench, RATE, "rate.io_uring", DOMUS, IO_URING);
    print_ratio(bench, RATE, "rate.epoll", DOMUS, EPOLL);
    print_ratio(bench, RATE, "rate.libuv", DOMUS, LIBUV);
    print_ratio(bench, CPU, "cpu.io_uring", DOMUS, IO_URING);
    print_ratio(bench, CPU, "cpu.epoll", DOMUS, EPOLL);
    print_ratio(bench, CPU, "cpu.libuv", DOMUS, LIBUV);
    print_ratio(bench, RATE, "rate.domus_epoll.epoll", DOMUS_EPOLL, EPOLL);
    print_ratio(bench, CPU, "cpu.domus_epoll.epoll", DOMUS_EPOLL, EPOLL);
}

int main(int argc, char **argv)
{
    static struct bench bench = {
        .rounds = 15,
        .load =
            {
                .cpu = LOAD_CPU,
                .connections = 64,
                .size = 64,
                .depth = 1,
                .duration_ns = 1000000000,
                .stall_ns = STALL_NS,
            },
    };

    read_options(&bench, argc, argv);
    if (find_programs(&bench) != 0 || run_rounds(&bench) != 0)
        return EXIT_FAILURE;
    print_medians(&bench);
    print_ratios(&bench);
    return EXIT_SUCCESS;
}
