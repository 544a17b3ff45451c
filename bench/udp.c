/* The UDP bench compares an echo of domus over one UDP channel with a bare io_uring program. They
 * run in turn, on the same core, in paired rounds.
 *
 * The load is one socket on LOAD_CPU with at most WINDOW datagrams under way, sent and received
 * many at a time, so that it is cheaper than a server. There are two modes, as in bench/echo.c:
 * saturated (a closed loop, and the server shares its CPU with a hog), which tells the rate, and
 * paced (OFFERED of the lower rate of a short calibration), which tells the CPU time for a message.
 * The figures to trust are the medians of the ratios that are taken in each round.
 *
 * bench_udp [--config FILE] [--rounds N] [--seconds S]. stdout: lines `name value unit`; a ratio
 * has the unit `void` if the load used more than 0.9 of its CPU. (`bench_udp serve BACKEND` is the
 * server of domus.) */
#include "bench/support/command.h"
#include "bench/support/hog.h"
#include "bench/support/measure.h"
#include "bench/support/server.h"

#include <domus/domus.h>

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVER_CPU     0
#define LOAD_CPU       1
#define WINDOW         64
#define BATCH          32
#define SIZE           64
#define ROUNDS_MAX     200
#define OFFERED        0.5
#define BUSY_MAX       0.9
#define CALIBRATION_NS UINT64_C(250000000)
/* ns without an answer after which the datagrams under way count as lost */
#define LOST_NS UINT64_C(50000000)

enum { DOMUS, DOMUS_EPOLL, BARE, SERVERS };
enum { SATURATED, PACED, MODES };
enum { RATE, CPU, BUSY, COLUMNS };

static const char *const servers[SERVERS] = {"domus", "domus_epoll", "io_uring"};
static const char *const modes[MODES] = {"saturated", "paced"};
static const char *const columns[COLUMNS] = {"rate", "cpu", "load"};
static const char *const units[COLUMNS] = {"messages/s", "us/message", "share"};

static double figures[MODES][SERVERS][COLUMNS][ROUNDS_MAX];

static _Noreturn void exit_with_error(const char *what)
{
    fprintf(stderr, "bench_udp: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* --- the server of domus ---------------------------------------------------------------------- */

static _Atomic uint32_t served_port;

static int echo_datagram(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    (void)self;
    (void)domus_channel_send_to(stack, event->channel, NULL, event->bytes);
    return 0;
}

static int bind_address(domus_stack *stack, void *self)
{
    domus_endpoint at;

    (void)self;
    int result = domus_endpoint_parse("127.0.0.1:0", &at);
    if (result == 0)
        result = domus_datagram_open(stack, &at, NULL, NULL, &at);
    if (result == 0)
        atomic_store(&served_port, at.port);
    return result;
}

static const domus_behaviour channel = {
    .name = "echo", .kind = DOMUS_CHANNELS, .shares_state = true, .on_read = {echo_datagram, 0}};
static const domus_behaviour opener = {
    .name = "opener", .kind = DOMUS_CHANNELS, .on_mount = bind_address, .channel = &channel};

static int run_domus_echo_until_sigterm(const char *backend)
{
    char error[256];
    domus_system *system;
    domus_address address;
    domus_config config;
    sigset_t set;
    int number;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    domus_config_init(&config);
    config.listener_count = 0;
    config.system.threads = 1;
    config.io.backend = strcmp(backend, "epoll") == 0 ? DOMUS_BACKEND_EPOLL : DOMUS_BACKEND_URING;
    if (domus_system_new(&config, error, sizeof error, &system) != 0 ||
        domus_system_start(system) != 0 ||
        domus_outside_spawn_on(system, 0, &opener, NULL, &address) != 0)
        return EXIT_FAILURE;
    while (atomic_load(&served_port) == 0)
        measure_sleep_seconds(0.001);
    printf("listening %u\n", atomic_load(&served_port));
    fflush(stdout);
    sigwait(&set, &number);
    domus_system_stop(system);
    domus_system_free(system);
    return EXIT_SUCCESS;
}

/* --- the load --------------------------------------------------------------------------------- */

struct load {
    int fd;
    uint64_t sent;
    uint64_t received;
    uint64_t lost;
    struct mmsghdr out[BATCH], in[BATCH];
    struct iovec pieces[2 * BATCH];
    char bytes[2 * BATCH][SIZE];
};

static void open_socket_of_load(struct load *load, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

    memset(load, 0, sizeof *load);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    load->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (load->fd < 0 || connect(load->fd, (struct sockaddr *)&address, sizeof address) != 0)
        exit_with_error("connect");
    for (int i = 0; i < 2 * BATCH; i++) {
        struct mmsghdr *message = i < BATCH ? &load->out[i] : &load->in[i - BATCH];
        load->pieces[i] = (struct iovec){load->bytes[i], SIZE};
        message->msg_hdr.msg_iov = &load->pieces[i];
        message->msg_hdr.msg_iovlen = 1;
    }
}

/* Send up to `count` datagrams of the load. */
static void send_datagrams_of_load(struct load *load, uint64_t count)
{
    if (count == 0)
        return;
    int sent = sendmmsg(load->fd, load->out, count < BATCH ? (unsigned)count : BATCH, 0);
    if (sent > 0)
        load->sent += (uint64_t)sent;
}

/* Receive the datagrams that have come back. Returns whether any came. */
static bool receive_datagrams_of_load(struct load *load)
{
    int received = recvmmsg(load->fd, load->in, BATCH, MSG_DONTWAIT, NULL);

    for (int i = 0; i < received; i++) {
        if (load->in[i].msg_len != SIZE)
            exit_with_error("an answer of another size");
    }
    if (received > 0)
        load->received += (uint64_t)received;
    return received > 0;
}

/* Run the load for `duration_ns`: it offers `rate` datagrams a second, or, if that is 0, as many as
 * are answered. */
static void run_load_at_rate(struct load *load, double rate, uint64_t duration_ns)
{
    struct pollfd readable = {.fd = load->fd, .events = POLLIN};
    const struct timespec nap = {.tv_nsec = 100000};
    uint64_t begun_ns = measure_now_ns();
    uint64_t heard_ns = begun_ns;

    for (uint64_t now_ns = begun_ns; now_ns - begun_ns < duration_ns; now_ns = measure_now_ns()) {
        uint64_t room = WINDOW - (load->sent - load->received - load->lost);
        uint64_t due = UINT64_MAX;

        if (rate != 0)
            due = (uint64_t)((double)(now_ns - begun_ns) * rate / 1e9);
        due = due > load->sent ? due - load->sent : 0;
        send_datagrams_of_load(load, due < room ? due : room);
        if (receive_datagrams_of_load(load)) {
            heard_ns = now_ns;
        } else if (now_ns - heard_ns > LOST_NS) {
            load->lost = load->sent - load->received;
            heard_ns = now_ns;
        } else {
            (void)ppoll(&readable, 1, &nap, NULL);
        }
    }
}

/* --- rounds ----------------------------------------------------------------------------------- */

static int start_server(int which, struct server *server)
{
    static char self[PATH_MAX], bare[PATH_MAX];
    char *own[] = {self, (char[]){"serve"}, which == DOMUS ? (char[]){"uring"} : (char[]){"epoll"},
                   NULL};
    char *other[] = {bare, (char[]){"0"}, (char[]){"0"}, NULL};

    if (command_find_program_beside("bench_udp", self) != 0 ||
        command_find_program_beside("echo_udp_uring", bare) != 0)
        exit_with_error("a program is not built");
    return server_start(server, SERVER_CPU, which == BARE ? other : own);
}

/* Start one server, run the load on it in one mode, and end both. */
static void run_load_on_new_server_in_mode(int which, int mode, double rate, uint64_t duration_ns,
                                           double values[COLUMNS])
{
    static struct load load;
    struct server server;
    struct server_usage usage;
    uint64_t before_ns, after_ns;

    if (start_server(which, &server) != 0)
        exit_with_error(server.error);
    open_socket_of_load(&load, server.port);
    pid_t hog = mode == SATURATED ? hog_start_on_cpu(SERVER_CPU) : 0;
    /* a short load comes first, to warm up the server */
    run_load_at_rate(&load, 0, CALIBRATION_NS / 10);
    load.sent = load.received = load.lost = 0;
    (void)measure_cpu_ns_of_other_process(server.pid, &before_ns);
    uint64_t load_ns = measure_thread_cpu_ns();
    uint64_t begun_ns = measure_now_ns();
    run_load_at_rate(&load, rate, duration_ns);
    double seconds = (double)(measure_now_ns() - begun_ns) / 1e9;
    load_ns = measure_thread_cpu_ns() - load_ns;
    (void)measure_cpu_ns_of_other_process(server.pid, &after_ns);
    if (hog > 0)
        hog_stop(hog);
    (void)close(load.fd);
    if (server_stop(&server, &usage) != 0)
        exit_with_error(server.error);
    values[RATE] = (double)load.received / seconds;
    values[CPU] = (double)(after_ns - before_ns) / 1e3 / (double)load.received;
    values[BUSY] = (double)load_ns / 1e9 / seconds;
    fprintf(stderr, "%-9s %-11s %7.0f/s  cpu %.3f us  load %.2f  lost %lu\n", modes[mode],
            servers[which], values[RATE], values[CPU], values[BUSY], (unsigned long)load.lost);
}

static void print_medians_of_rounds(uint32_t rounds)
{
    for (int mode = 0; mode < MODES; mode++) {
        double busy[SERVERS];
        for (int which = 0; which < SERVERS; which++) {
            for (int i = 0; i < COLUMNS; i++) {
                double values[ROUNDS_MAX];
                memcpy(values, figures[mode][which][i], sizeof values);
                double median = measure_sort_and_get_median(values, rounds);
                busy[which] = i == BUSY ? median : 0;
                printf("udp.%s.%s.%s %.3f %s\n", modes[mode], servers[which], columns[i], median,
                       units[i]);
            }
        }
        for (int which = 0; which < BARE; which++) {
            for (int i = 0; i < BUSY; i++) {
                double ratios[ROUNDS_MAX];
                for (uint32_t k = 0; k < rounds; k++)
                    ratios[k] = figures[mode][which][i][k] / figures[mode][BARE][i][k];
                bool is_void = busy[which] > BUSY_MAX || busy[BARE] > BUSY_MAX;
                printf("udp.%s.ratio.%s.%s.io_uring %.4f %s\n", modes[mode], columns[i],
                       servers[which], measure_sort_and_get_median(ratios, rounds),
                       is_void ? "void" : "ratio");
            }
        }
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        /* the option is accepted and ignored, because all benches get it */
        {"config", required_argument, NULL, 'c'},
        {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0},
    };
    uint32_t rounds = 9;
    uint64_t duration_ns = 500000000;
    double slowest = 0;

    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        return run_domus_echo_until_sigterm(argv[2]);
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
        if (option == 'r')
            rounds = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 's')
            duration_ns = (uint64_t)(strtod(optarg, NULL) * 1e9);
        else if (option != 'c')
            return 2;
    }
    if (rounds == 0 || rounds > ROUNDS_MAX || duration_ns == 0)
        return 2;
    if (measure_pin_thread_to_cpu(LOAD_CPU) != 0)
        exit_with_error("pin");
    (void)prctl(PR_SET_TIMERSLACK, 1);
    for (int which = 0; which < SERVERS; which++) {
        double values[COLUMNS];
        run_load_on_new_server_in_mode(which, PACED, 0, CALIBRATION_NS, values);
        if (slowest == 0 || values[RATE] < slowest)
            slowest = values[RATE];
    }
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < MODES * SERVERS; i++) {
            int mode = i / SERVERS;
            int which = (int)((round + (uint32_t)i) % SERVERS);
            double values[COLUMNS];
            run_load_on_new_server_in_mode(which, mode, mode == PACED ? OFFERED * slowest : 0,
                                           duration_ns, values);
            for (int k = 0; k < COLUMNS; k++)
                figures[mode][which][k][round] = values[k];
        }
    }
    print_medians_of_rounds(rounds);
    return EXIT_SUCCESS;
}
