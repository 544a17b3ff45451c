/* The publish bench: a publication to a group of many connections over two threads, beside a loop
 * of send(2) over the same number of sockets on two threads. In the rows `pipes` the publication is
 * a message that is encoded once, and the members have a pipeline that sends it to their peers.
 *
 * The servers run in turn, on the same two CPUs, each with all connections, and are told to publish
 * by one byte. The runner sleeps meanwhile, so that no reader is woken and the time that is
 * measured is that of the senders alone; then it reads and compares every byte. The figure is the
 * server's CPU time for one delivery; of each run it is the median of the publications, and the
 * ratios are taken between runs of the same round.
 *
 * stdout: lines `name value unit`. stderr: progress. Exit 1 on a wrong result. */
#include "bench/publish/publish.h"
#include "bench/support/command.h"
#include "bench/support/measure.h"
#include "bench/support/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS_MAX       100
#define CONNECTIONS_MAX  30000
#define PUBLICATIONS_MAX 100
/* seconds between two looks whether a publication has been delivered */
#define NAP_SECONDS   0.02
#define LOOKS_MAX     500
#define STALL_SECONDS 5

enum { DOMUS, DOMUS_EPOLL, PIPES, PIPES_EPOLL, BARE, SERVERS };

static const struct {
    const char *name;
    const char *program;
} servers[SERVERS] = {
    [DOMUS] = {"domus", "publish_domus"}, [DOMUS_EPOLL] = {"domus_epoll", "publish_domus"},
    [PIPES] = {"pipes", "publish_pipes"}, [PIPES_EPOLL] = {"pipes_epoll", "publish_pipes"},
    [BARE] = {"send", "publish_send"},
};

static char *config;
static uint32_t connections = 10000;
static uint32_t rounds = 5;
/* number of measured publications in a run; one more comes before them */
static uint32_t publications = 10;
static int fds[CONNECTIONS_MAX];
/* for each server and round, microseconds of CPU time for a delivery */
static double figures[SERVERS][ROUNDS_MAX];

static int start_server(int which, struct server *server)
{
    char path[PATH_MAX];
    char room[64];

    snprintf(room, sizeof room, "channel.maxConnections=%u", connections);
    if (command_find_program_beside(servers[which].program, path) != 0) {
        fprintf(stderr, "bench_publish: no %s\n", path);
        return -ENOENT;
    }
    if (which == BARE) {
        char *arguments[] = {path, (char[]){"0"}, (char[]){"0"}, NULL};
        return server_start(server, SERVER_ANY_CPU, arguments);
    }
    char *arguments[] = {
        path,
        (char[]){"--set"},
        which == DOMUS || which == PIPES ? (char[]){"io.backend=uring"}
                                         : (char[]){"io.backend=epoll"},
        (char[]){"--set"},
        (char[]){"system.threads=2"},
        (char[]){"--set"},
        (char[]){"system.cpus=0-1"},
        (char[]){"--set"},
        room,
        (char[]){"--set"},
        (char[]){"channel.firstByteTimeout=0"},
        (char[]){"--set"},
        (char[]){"profile.atExit=false"},
        (char[]){"--set"},
        (char[]){"listeners.echo.address=127.0.0.1:0"},
        (char[]){"--config"},
        config,
        NULL,
    };
    return server_start(server, SERVER_ANY_CPU, arguments);
}

static int connect_subscriber(uint16_t port, int *ret_fd)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    const struct timeval stall = {.tv_sec = STALL_SECONDS};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &stall, sizeof stall) != 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        return -errno;
    return 0;
}

/* Read as many bytes as `bytes` has from a connection, and compare them. Returns 0 or a negative
 * errno. */
static int read_and_compare_bytes(int fd, const char *bytes, size_t size)
{
    char got[PUBLISH_BYTES];
    ssize_t length = recv(fd, got, size, MSG_WAITALL);

    if (length < 0)
        return errno == EAGAIN ? -ETIMEDOUT : -errno;
    return (size_t)length == size && memcmp(got, bytes, size) == 0 ? 0 : -EBADMSG;
}

static void reset_all_connections(uint32_t count)
{
    /* Each connection is closed by a reset, so that no port stays in TIME_WAIT. */
    const struct linger reset = {.l_onoff = 1};

    for (uint32_t i = 0; i < count; i++) {
        (void)setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fds[i]);
    }
}

static int connect_subscribers(uint16_t port, uint32_t *ret_count)
{
    for (uint32_t i = 0; i < connections; i++) {
        int error = connect_subscriber(port, &fds[i]);

        if (error != 0)
            return error;
        *ret_count = i + 1;
        /* the first connection must be the server's first member, too, so it joins before the other
         * connections are made */
        if (i == 0) {
            error = read_and_compare_bytes(fds[0], PUBLISH_JOINED, 1);
            if (error != 0)
                return error;
        }
    }
    for (uint32_t i = 1; i < connections; i++) {
        int error = read_and_compare_bytes(fds[i], PUBLISH_JOINED, 1);
        if (error != 0)
            return error;
    }
    return 0;
}

/* Sleep until the server has used no CPU time for a while, and get its CPU time. */
static int wait_for_idle_server(pid_t pid, uint64_t *ret_cpu_ns)
{
    uint64_t before_ns = 0;
    int error = 0;

    for (int i = 0; i < LOOKS_MAX && error == 0; i++) {
        error = measure_cpu_ns_of_other_process(pid, ret_cpu_ns);
        if (i > 0 && *ret_cpu_ns - before_ns < 50000)
            return error;
        before_ns = *ret_cpu_ns;
        measure_sleep_seconds(NAP_SECONDS);
    }
    return error;
}

/* Sleep until the bytes of a publication have arrived at the sockets of all connections. */
static int wait_until_all_subscribers_have_bytes(void)
{
    char byte;
    uint32_t i = 0;

    for (int looks = 0; i < connections && looks < LOOKS_MAX; looks++) {
        measure_sleep_seconds(NAP_SECONDS);
        while (i < connections && recv(fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
            i++;
    }
    return i == connections ? 0 : -ETIMEDOUT;
}

/* Order one publication from the server, and read its bytes from all connections. */
static int measure_one_ordered_publication(pid_t pid, unsigned char which, double *ret_us)
{
    char bytes[PUBLISH_BYTES];
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    int error = wait_for_idle_server(pid, &begin_ns);

    publish_fill_bytes_of_publication(bytes, which);
    if (error == 0 && send(fds[0], &which, 1, MSG_NOSIGNAL) != 1)
        error = -errno;
    if (error == 0)
        error = wait_until_all_subscribers_have_bytes();
    if (error == 0)
        error = wait_for_idle_server(pid, &end_ns);
    for (uint32_t i = 0; i < connections && error == 0; i++)
        error = read_and_compare_bytes(fds[i], bytes, sizeof bytes);
    *ret_us = (double)(end_ns - begin_ns) / 1e3 / connections;
    return error;
}

static int measure_server_in_round(int which, uint32_t round)
{
    struct server server;
    struct server_usage usage;
    double values[PUBLICATIONS_MAX];
    uint32_t connected = 0;
    int error = start_server(which, &server);

    if (error != 0) {
        fprintf(stderr, "bench_publish: %s: %s\n", servers[which].name,
                error == -ENOENT ? "it is not built" : server.error);
        return error;
    }
    error = connect_subscribers(server.port, &connected);
    for (uint32_t i = 0; i <= publications && error == 0; i++)
        error = measure_one_ordered_publication(server.pid, (unsigned char)i,
                                                &values[i == 0 ? 0 : i - 1]);
    if (error != 0)
        fprintf(stderr, "bench_publish: %s: %s\n", servers[which].name, strerror(-error));
    reset_all_connections(connected);
    int stopped = server_stop(&server, &usage);
    if (stopped != 0)
        fprintf(stderr, "bench_publish: %s: %s\n", servers[which].name, server.error);
    if (error != 0 || stopped != 0)
        return error != 0 ? error : stopped;
    figures[which][round] = measure_sort_and_get_median(values, publications);
    fprintf(stderr, "round %2u %-11s %.3f us a delivery\n", round + 1, servers[which].name,
            figures[which][round]);
    return 0;
}

static void print_figures_of_servers(void)
{
    for (int which = 0; which < SERVERS; which++) {
        double values[ROUNDS_MAX];
        double ratios[ROUNDS_MAX];

        for (uint32_t i = 0; i < rounds; i++) {
            values[i] = figures[which][i];
            ratios[i] = figures[which][i] / figures[BARE][i];
        }
        printf("publish.%s.cpu %.3f us/delivery\n", servers[which].name,
               measure_sort_and_get_median(values, rounds));
        if (which != BARE)
            printf("publish.ratio.cpu.%s.send %.4f ratio\n", servers[which].name,
                   measure_sort_and_get_median(ratios, rounds));
    }
}

static uint32_t parse_number(const char *text, uint32_t max)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (end == text || *end != '\0' || value < 1 || value > max) {
        fprintf(stderr, "bench_publish: numbers are 1 to %u\n", max);
        exit(2);
    }
    return (uint32_t)value;
}

static void read_options(int argc, char **argv)
{
    enum { CONFIG, ROUNDS, CONNECTIONS, PUBLICATIONS };
    static const struct option options[] = {
        {"config", required_argument, NULL, CONFIG},
        {"rounds", required_argument, NULL, ROUNDS},
        {"connections", required_argument, NULL, CONNECTIONS},
        {"publications", required_argument, NULL, PUBLICATIONS},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == CONFIG)
            config = optarg;
        else if (option == ROUNDS)
            rounds = parse_number(optarg, ROUNDS_MAX);
        else if (option == CONNECTIONS)
            connections = parse_number(optarg, CONNECTIONS_MAX);
        else if (option == PUBLICATIONS)
            publications = parse_number(optarg, PUBLICATIONS_MAX);
        else
            exit(2);
    }
    if (config == NULL) {
        fprintf(stderr, "usage: bench_publish --config FILE [--rounds N] [--connections C]\n"
                        "                     [--publications P]\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct rlimit files;

    read_options(argc, argv);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < SERVERS; i++) {
            if (measure_server_in_round((int)((round + i) % SERVERS), round) != 0)
                return EXIT_FAILURE;
        }
    }
    print_figures_of_servers();
    return EXIT_SUCCESS;
}
