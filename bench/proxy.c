/* The proxy bench: examples/proxy beside HAProxy in TCP mode with one thread, in paired rounds.
 *
 * The proxy has SERVER_CPU for itself. The load, which checks every byte, and the echo behind the
 * proxy share LOAD_CPU. The load is paced: it offers OFFERED of the rate that the slowest proxy of
 * the row has in a short calibration. The figure is the proxy's CPU time for a message, there and
 * back. HAProxy runs twice, copying by default and with `option splice-auto`. Both proxies have
 * buffers of 16 KiB. A row is void if load and echo used more than LOAD_BUSY_MAX of their CPU.
 *
 * stdout: lines `name value unit`. stderr: progress. Exit 1 on a wrong result. If HAProxy or
 * examples/proxy is missing, a line says so, and it is left out. */
#include "bench/load.h"
#include "bench/support/command.h"
#include "bench/support/measure.h"
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

#define SERVER_CPU      0
#define SERVER_CPU_TEXT "0"
#define LOAD_CPU        1
#define LOAD_CPU_TEXT   "1"
#define ROUNDS_MAX      200
#define STALL_NS        UINT64_C(2000000000)
#define CALIBRATION_NS  UINT64_C(250000000)
#define OFFERED         0.6

enum { DOMUS, DOMUS_EPOLL, HAPROXY, HAPROXY_SPLICE, PROXIES };
enum { RATE, CPU, CPU_BYTE, P99, BUSY, COLUMNS };

static const char *const names[PROXIES] = {"domus", "domus_epoll", "haproxy", "haproxy_splice"};

static const struct {
    const char *name;
    const char *unit;
} columns[COLUMNS] = {
    [RATE] = {"rate", "messages/s"},      [CPU] = {"cpu", "us/message"},
    [CPU_BYTE] = {"cpu_byte", "ns/byte"}, [P99] = {"p99", "us"},
    [BUSY] = {"load", "share"},
};

static const struct row {
    const char *name;
    uint32_t connections;
    uint32_t size;
} rows[] = {
    {"small", 64, 64},
    {"large", 64, 16384},
};

#define ROWS (sizeof rows / sizeof rows[0])

static uint32_t rounds = 9;
static uint64_t duration_ns = 500000000;
static char *config;
static bool is_there[PROXIES];
static char program[PROXIES][PATH_MAX];
static char echo_program[PATH_MAX];
static double offered[ROWS];
static double figures[ROWS][PROXIES][COLUMNS][ROUNDS_MAX];

static const char haproxy_text[] = "global\n"
                                   "  nbthread 1\n"
                                   "  maxconn 4000\n"
                                   "defaults\n"
                                   "  mode tcp\n"
                                   "%s"
                                   "  timeout connect 5s\n"
                                   "  timeout client 60s\n"
                                   "  timeout server 60s\n"
                                   "listen proxy\n"
                                   "  bind 127.0.0.1:%u\n"
                                   "  server echo 127.0.0.1:%u\n";

/* Find HAProxy at one of the paths where it is usually installed. Returns whether it is there. */
static bool find_haproxy(char *path)
{
    static const char *const places[] = {"/usr/sbin/haproxy", "/usr/local/sbin/haproxy"};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (access(places[i], X_OK) == 0) {
            snprintf(path, PATH_MAX, "%s", places[i]);
            return true;
        }
    }
    return false;
}

static void find_installed_proxy_programs(void)
{
    is_there[DOMUS] = is_there[DOMUS_EPOLL] =
        command_find_program_beside("proxy", program[DOMUS]) == 0 && config != NULL;
    memcpy(program[DOMUS_EPOLL], program[DOMUS], PATH_MAX);
    is_there[HAPROXY] = is_there[HAPROXY_SPLICE] = find_haproxy(program[HAPROXY]);
    memcpy(program[HAPROXY_SPLICE], program[HAPROXY], PATH_MAX);
    if (!is_there[DOMUS])
        fprintf(stderr, "bench_proxy: no examples/proxy (or no --config): domus is left out\n");
    if (!is_there[HAPROXY])
        fprintf(stderr, "bench_proxy: HAProxy is not installed (apt-get install haproxy): it is "
                        "left out\n");
}

/* Returns a port of 127.0.0.1 that was free just now; 0 if there is none. */
static uint16_t find_free_port(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool found = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                 getsockname(fd, (struct sockaddr *)&address, &length) == 0;

    if (fd >= 0)
        close(fd);
    return found ? ntohs(address.sin_port) : 0;
}

static int start_haproxy(int which, uint16_t echo_port, struct server *server)
{
    char path[] = "/tmp/bench_proxy.XXXXXX";
    uint16_t port = find_free_port();
    int fd = mkstemp(path);
    char *arguments[] = {
        program[which], (char[]){"-db"}, (char[]){"-q"}, (char[]){"-f"}, path, NULL};

    server->error = "no file for its configuration";
    if (fd < 0)
        return -errno;
    dprintf(fd, haproxy_text, which == HAPROXY_SPLICE ? "  option splice-auto\n" : "", port,
            echo_port);
    close(fd);
    int error = server_start_at_port(server, SERVER_CPU, arguments, port, SIGUSR1);
    unlink(path);
    return error;
}

static int start_domus(int which, uint16_t echo_port, struct server *server)
{
    char upstream[64];

    snprintf(upstream, sizeof upstream, "proxy.upstream=127.0.0.1:%u", echo_port);
    char *arguments[] = {
        program[which],
        (char[]){"--config"},
        config,
        (char[]){"--set"},
        which == DOMUS ? (char[]){"io.backend=uring"} : (char[]){"io.backend=epoll"},
        (char[]){"--set"},
        (char[]){"io.buffers.size=16KiB"}, /* HAProxy's buffers have 16 KiB, too */
        (char[]){"--set"},
        (char[]){"system.threads=1"},
        (char[]){"--set"},
        (char[]){"profile.atExit=false"},
        (char[]){"--set"},
        (char[]){"system.cpus=" SERVER_CPU_TEXT},
        (char[]){"--set"},
        (char[]){"listeners.proxy.address=127.0.0.1:0"},
        (char[]){"--set"},
        upstream,
        NULL,
    };
    return server_start(server, SERVER_CPU, arguments);
}

/* Start an echo server and one proxy before it, run the load on the proxy, and end all of them. */
static int run_load_on_new_proxy(int which, struct load_options *load,
                                 struct load_result *ret_result)
{
    char *echo_arguments[] = {echo_program, (char[]){"0"}, (char[]){LOAD_CPU_TEXT}, NULL};
    struct server echo;
    struct server proxy;
    struct server_usage usage;
    int error = server_start(&echo, LOAD_CPU, echo_arguments);

    if (error != 0) {
        fprintf(stderr, "bench_proxy: the echo: %s\n", echo.error);
        return error;
    }
    error = which >= HAPROXY ? start_haproxy(which, echo.port, &proxy)
                             : start_domus(which, echo.port, &proxy);
    if (error != 0) {
        fprintf(stderr, "bench_proxy: %s: %s\n", names[which], proxy.error);
        (void)server_stop(&echo, &usage);
        return error;
    }
    load->port = proxy.port;
    load->watched[0] = proxy.pid;
    load->watched[1] = echo.pid;
    error = load_run_in_child_process(load, ret_result);
    if (error != 0)
        fprintf(stderr, "bench_proxy: %s: %s\n", names[which], load_error_as_text(error));
    int stopped = server_stop(&proxy, &usage);
    if (stopped != 0)
        fprintf(stderr, "bench_proxy: %s: %s\n", names[which], proxy.error);
    if (server_stop(&echo, &usage) != 0)
        stopped = -ECHILD;
    return error != 0 ? error : stopped;
}

static struct load_options get_options_of_load(size_t row)
{
    return (struct load_options){
        .cpu = LOAD_CPU,
        .connections = rows[row].connections,
        .size = rows[row].size,
        .depth = 1,
        .duration_ns = duration_ns,
        .stall_ns = STALL_NS,
    };
}

static int find_paced_rate(size_t row)
{
    double slowest = 0;

    for (int which = 0; which < PROXIES; which++) {
        struct load_options load = get_options_of_load(row);
        struct load_result result;

        if (!is_there[which])
            continue;
        if (load.duration_ns > CALIBRATION_NS)
            load.duration_ns = CALIBRATION_NS;
        int error = run_load_on_new_proxy(which, &load, &result);
        if (error != 0)
            return error;
        if (slowest == 0 || result.rate < slowest)
            slowest = result.rate;
    }
    offered[row] = OFFERED * slowest;
    return 0;
}

static int run_proxy_and_store_round_figures(size_t row, int which, uint32_t round)
{
    struct load_options load = get_options_of_load(row);
    struct load_result result;

    load.rate = offered[row];
    int error = run_load_on_new_proxy(which, &load, &result);
    if (error != 0)
        return error;
    double cpu_ns = (double)result.watched_cpu_ns[0] / (double)result.messages;
    double busy_ns = (double)(result.cpu_ns + result.watched_cpu_ns[1]);
    double values[COLUMNS] = {
        [RATE] = result.rate,
        [CPU] = cpu_ns / 1e3,
        [CPU_BYTE] = cpu_ns / rows[row].size,
        [P99] = result.p99_us,
        [BUSY] = busy_ns / (double)result.elapsed_ns,
    };
    for (int i = 0; i < COLUMNS; i++)
        figures[row][which][i][round] = values[i];
    fprintf(stderr, "round %2u %-6s %-14s %7.0f/s  cpu %.3f us  p99 %.0f us  load %.2f\n",
            round + 1, rows[row].name, names[which], values[RATE], values[CPU], values[P99],
            values[BUSY]);
    return 0;
}

static double get_median_of_figure(size_t row, int which, int column)
{
    double values[ROUNDS_MAX];

    memcpy(values, figures[row][which][column], sizeof values);
    return measure_sort_and_get_median(values, rounds);
}

static void print_ratio_to_haproxy(size_t row, int which, int peer)
{
    double ratios[ROUNDS_MAX];

    if (!is_there[which] || !is_there[peer])
        return;
    for (uint32_t i = 0; i < rounds; i++)
        ratios[i] = figures[row][which][CPU][i] / figures[row][peer][CPU][i];
    bool is_void = get_median_of_figure(row, which, BUSY) > LOAD_BUSY_MAX ||
                   get_median_of_figure(row, peer, BUSY) > LOAD_BUSY_MAX;
    printf("proxy.%s.ratio.cpu.%s.%s %.4f %s\n", rows[row].name, names[which], names[peer],
           measure_sort_and_get_median(ratios, rounds), is_void ? "void" : "ratio");
}

static void print_figures_of_proxies(void)
{
    for (size_t row = 0; row < ROWS; row++) {
        for (int which = 0; which < PROXIES; which++) {
            for (int i = 0; i < COLUMNS && is_there[which]; i++)
                printf("proxy.%s.%s.%s %.3f %s\n", rows[row].name, names[which], columns[i].name,
                       get_median_of_figure(row, which, i), columns[i].unit);
        }
        for (int which = DOMUS; which <= DOMUS_EPOLL; which++) {
            print_ratio_to_haproxy(row, which, HAPROXY);
            print_ratio_to_haproxy(row, which, HAPROXY_SPLICE);
        }
    }
}

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: bench_proxy --config FILE [--rounds N] [--seconds S]\n"
                    "defaults: 9 rounds of half a second\n");
    exit(2);
}

static double parse_number(const char *text, double min, double max)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= min && value <= max))
        usage();
    return value;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == 'c')
            config = optarg;
        else if (option == 'r')
            rounds = (uint32_t)parse_number(optarg, 1, ROUNDS_MAX);
        else if (option == 's')
            duration_ns = (uint64_t)(parse_number(optarg, 0.01, 600) * 1e9);
        else
            usage();
    }
    find_installed_proxy_programs();
    if (command_find_program_beside("echo_epoll", echo_program) != 0) {
        fprintf(stderr, "bench_proxy: no %s\n", echo_program);
        return EXIT_FAILURE;
    }
    for (size_t row = 0; row < ROWS; row++) {
        if (find_paced_rate(row) != 0)
            return EXIT_FAILURE;
    }
    for (uint32_t i = 0; i < rounds * ROWS * PROXIES; i++) {
        uint32_t round = i / (ROWS * PROXIES);
        int which = (int)((round + i) % PROXIES);

        if (is_there[which] &&
            run_proxy_and_store_round_figures(i / PROXIES % ROWS, which, round) != 0)
            return EXIT_FAILURE;
    }
    print_figures_of_proxies();
    return EXIT_SUCCESS;
}
