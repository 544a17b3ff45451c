/* The kv bench: the example kv beside redis-server, one thread each, in paired rounds.
 *
 * Each row is a kind of request and a depth of pipelining. In each round both servers run once, one
 * after the other, alone on SERVER_CPU and with fresh keys, under the same load from LOAD_CPU; the
 * next round begins with the other one. There are two modes. Saturated: a closed loop, and the
 * server has half of its CPU (hog.h), which tells its rate. Paced: the load offers OFFERED of the
 * rate that the slower server has in a short calibration, and the server has its whole CPU, which
 * tells its CPU time for a request. The ratios are medians of those of the rounds.
 *
 * stdout: lines `name value unit`, at the end. A ratio has the unit `void` if the load used more
 * than BUSY_MAX of its CPU. stderr: progress. Exit 1 on a wrong result (a reply that differs or
 * lacks, a server that dies); a missed goal is no error. */
#include "bench/kv_load.h"
#include "bench/support/command.h"
#include "bench/support/hog.h"
#include "bench/support/measure.h"
#include "bench/support/options.h"
#include "bench/support/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVER_CPU     0
#define LOAD_CPU       1
#define CONNECTIONS    50
#define KEYS           10000u
#define ROUNDS_MAX     100
#define CALIBRATION_NS UINT64_C(250000000)
#define STALL_NS       UINT64_C(5000000000)
#define OFFERED        0.5
#define BUSY_MAX       0.9

enum { KV, REDIS, SERVERS };
enum { SATURATED, PACED, MODES };

static const char *const names[SERVERS] = {"kv", "redis"};

static const struct kv_load_row kinds[] = {
    {"get", "GET KEY", "$"},
    {"set", "SET KEY VALUE", "+OK\r\n"},
    {"incr", "INCR KEY", ":"},
    {"lpush", "LPUSH KEY VALUE", ":"},
    {"hset", "HSET KEY field VALUE", ":"},
};
static const uint32_t depths[] = {1, 16};

#define KINDS  (sizeof kinds / sizeof kinds[0])
#define DEPTHS (sizeof depths / sizeof depths[0])

static uint32_t rounds = 7;
static uint64_t duration_ns = UINT64_C(1000000000);
static char program[PATH_MAX];
static char *config = (char[]){"examples/kv/kv.yaml"};

struct figures {
    double rate[SERVERS][ROUNDS_MAX]; /* saturated */
    double cpu_us[SERVERS][ROUNDS_MAX];
    double p50_us[SERVERS][ROUNDS_MAX], p99_us[SERVERS][ROUNDS_MAX];
    double busy; /* the most */
};

static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        address.sin_port = 0;
    close(fd);
    return ntohs(address.sin_port);
}

static int start(int which, struct server *server)
{
    char port[8];
    uint16_t number = free_port();

    if (which == KV) {
        char *arguments[] = {program,
                             (char[]){"--config"},
                             config,
                             (char[]){"--set"},
                             (char[]){"kv.maxMemory=0"},
                             (char[]){"--set"},
                             (char[]){"listeners.kv.address=127.0.0.1:0"},
                             (char[]){"--set"},
                             (char[]){"system.threads=1"},
                             (char[]){"--set"},
                             (char[]){"system.cpus=none"},
                             (char[]){"--set"},
                             (char[]){"profile.atExit=false"},
                             NULL};
        return server_start(server, SERVER_CPU, arguments);
    }
    snprintf(port, sizeof port, "%u", number);
    char *arguments[] = {(char[]){"/usr/bin/redis-server"},
                         (char[]){"--port"},
                         port,
                         (char[]){"--bind"},
                         (char[]){"127.0.0.1"},
                         (char[]){"--save"},
                         (char[]){""},
                         (char[]){"--appendonly"},
                         (char[]){"no"},
                         (char[]){"--logfile"},
                         (char[]){"/dev/null"},
                         (char[]){"--dir"},
                         (char[]){"/tmp"},
                         NULL};
    return server_start_at(server, SERVER_CPU, arguments, number, SIGTERM);
}

/* Run one load on a fresh server. */
static int measure(int which, const struct kv_load_row *row, uint32_t depth, double rate,
                   uint64_t time_ns, bool with_hog, struct kv_load_result *ret_result)
{
    struct server server;
    struct server_usage usage;
    struct kv_load_options options = {.row = row,
                                      .connections = CONNECTIONS,
                                      .depth = depth,
                                      .keys = KEYS,
                                      .rate = rate,
                                      .duration_ns = time_ns,
                                      .stall_ns = STALL_NS};
    struct kv_load_options fill = {.row = &kinds[1],
                                   .connections = 1,
                                   .depth = 16,
                                   .keys = KEYS,
                                   .requests_least = KEYS,
                                   .stall_ns = STALL_NS};
    pid_t hog = -1;
    int error = start(which, &server);

    if (error != 0) {
        fprintf(stderr, "bench_kv: %s does not start: %s\n", names[which], server.error);
        return error;
    }
    fill.port = options.port = server.port;
    fill.watched = options.watched = server.pid;
    if (row->reply[0] == '$')
        error = kv_load_run(&fill, ret_result);
    if (with_hog)
        hog = hog_start(SERVER_CPU);
    if (error == 0)
        error = kv_load_run(&options, ret_result);
    if (with_hog)
        hog_stop(hog);
    int end = server_stop(&server, &usage);
    if (error != 0)
        fprintf(stderr, "bench_kv: %s, %s: %s\n", names[which], row->name, strerror(-error));
    return error != 0 ? error : end;
}

static int run_round(uint32_t round, const struct kv_load_row *row, uint32_t depth, double offered,
                     struct figures *figures)
{
    struct kv_load_result result;

    for (uint32_t i = 0; i < SERVERS; i++) {
        int which = (int)((round + i) % SERVERS);
        int error = measure(which, row, depth, 0, duration_ns / 2, true, &result);
        if (error != 0)
            return error;
        figures->rate[which][round] = result.rate;
        error = measure(which, row, depth, offered, duration_ns, false, &result);
        if (error != 0)
            return error;
        figures->cpu_us[which][round] =
            (double)result.watched_cpu_ns * 1e-3 / (double)result.requests;
        figures->p50_us[which][round] = result.p50_us;
        figures->p99_us[which][round] = result.p99_us;
        if (result.busy > figures->busy)
            figures->busy = result.busy;
    }
    return 0;
}

static double ratio(double of[SERVERS][ROUNDS_MAX])
{
    double ratios[ROUNDS_MAX];

    for (uint32_t i = 0; i < rounds; i++)
        ratios[i] = of[KV][i] / of[REDIS][i];
    return measure_median(ratios, rounds);
}

static void report(const struct kv_load_row *row, uint32_t depth, double offered,
                   struct figures *figures)
{
    char name[64];

    snprintf(name, sizeof name, "kv_%s_%u", row->name, depth);
    printf("%s_offered %.0f requests/s\n", name, offered);
    printf("%s_cpu_ratio %.3f %s\n", name, ratio(figures->cpu_us),
           figures->busy > BUSY_MAX ? "void" : "ratio");
    printf("%s_rate_ratio %.3f ratio\n", name, ratio(figures->rate));
    for (int i = 0; i < SERVERS; i++) {
        printf("%s_%s_cpu %.3f us/request\n", name, names[i],
               measure_median(figures->cpu_us[i], rounds));
        printf("%s_%s_rate %.0f requests/s (beside a hog)\n", name, names[i],
               measure_median(figures->rate[i], rounds));
        printf("%s_%s_p50 %.1f us\n%s_%s_p99 %.1f us\n", name, names[i],
               measure_median(figures->p50_us[i], rounds), name, names[i],
               measure_median(figures->p99_us[i], rounds));
    }
    fflush(stdout);
}

static int run_row(const struct kv_load_row *row, uint32_t depth)
{
    static struct figures figures;
    struct kv_load_result result;
    double slowest = 0;

    memset(&figures, 0, sizeof figures);
    for (int which = 0; which < SERVERS; which++) {
        int error = measure(which, row, depth, 0, CALIBRATION_NS, false, &result);
        if (error != 0)
            return error;
        if (which == 0 || result.rate < slowest)
            slowest = result.rate;
    }
    for (uint32_t round = 0; round < rounds; round++) {
        int error = run_round(round, row, depth, OFFERED * slowest, &figures);
        if (error != 0)
            return error;
        fprintf(stderr, "%s -P %u, round %u: kv %.3f us, redis %.3f us\n", row->name, depth,
                round + 1, figures.cpu_us[KV][round], figures.cpu_us[REDIS][round]);
    }
    report(row, depth, OFFERED * slowest, &figures);
    return 0;
}

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: bench_kv [--config FILE] [--rounds N] [--seconds N] "
                    "[get|set|incr|lpush|hset ...]\n");
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
            rounds = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 's')
            duration_ns = (uint64_t)(strtod(optarg, NULL) * 1e9);
        else
            usage();
    }
    if (rounds < 1 || rounds > ROUNDS_MAX || duration_ns == 0)
        usage();
    if (access("/usr/bin/redis-server", X_OK) != 0) {
        fprintf(stderr, "bench_kv: no redis-server (apt install redis-server): left out\n");
        return 0;
    }
    if (command_beside("kv", program) != 0 || measure_pin(LOAD_CPU) != 0) {
        fprintf(stderr, "bench_kv: needs %s and a CPU %d\n", program, LOAD_CPU);
        return 1;
    }
    for (size_t i = 0; i < KINDS; i++) {
        for (size_t j = 0; j < DEPTHS; j++) {
            if (options_wanted(argc - optind, argv + optind, kinds[i].name) &&
                run_row(&kinds[i], depths[j]) != 0)
                return 1;
        }
    }
    return 0;
}
