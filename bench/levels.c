/* The levels bench: what each value of profile.level costs beside `off`.
 *
 * - pingpong: two actors of one thread send one notice to and fro. The figure is the CPU time of
 *   that thread for a message.
 * - echo: a client without domus sends ECHO_BATCH messages of ECHO_BYTES over ECHO_CONNECTIONS
 *   connections, waits until all have come back, and goes on with the next batch. The figure is the
 *   CPU time of the system for a message.
 *
 * Rounds of all levels alternate in one system, which changes its level between them, so that
 * whatever else the machine does meets all of them alike. `ROW.LEVEL.ratio` is the median of the
 * ratios of a round to the round of `off` beside it, and `spread` how far apart the quartiles of
 * these ratios are. stdout: lines `name value unit`.
 *
 * bench_levels [--once LEVEL] [ROW ...]: without a name both rows run. With --once one round of
 * that level runs and nothing is measured, so that callgrind counts its instructions. */
#include "bench/support/measure.h"
#include "bench/support/options.h"

#include <domus/domus.h>
#include <domus/profile.h>

#include <arpa/inet.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LEVELS           4
#define ROUNDS           200
#define MESSAGES         UINT64_C(400000) /* number of messages in a round of the row pingpong */
#define ECHO_CONNECTIONS 16
#define ECHO_BATCHES     150
#define ECHO_BYTES       64
#define ECHO_PACE_NS     UINT64_C(0)

static const char *const names[LEVELS] = {"off", "counters", "histograms", "spans"};
static const domus_profile_level levels[LEVELS] = {DOMUS_PROFILE_OFF, DOMUS_PROFILE_COUNTERS,
                                                   DOMUS_PROFILE_HISTOGRAMS, DOMUS_PROFILE_SPANS};

static domus_system *bench_system;
static sem_t done;

static void require_success(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "levels: %s: %s\n", what, strerror(error < 0 ? -error : error));
    exit(1);
}

/* --- pingpong --------------------------------------------------------------------------------- */

static const domus_type ball_type = {.name = "ball", .size = sizeof(uint64_t)};
static domus_address players[2];

static int send_ball_back(domus_stack *stack, void *self, const void *payload)
{
    uint64_t left = *(const uint64_t *)payload;

    if (left == 0)
        return sem_post(&done);
    left--;
    return domus_notice(stack, players[*(const uint64_t *)self], &ball_type, &left);
}

static const domus_behaviour player = {
    .name = "player",
    .state_size = sizeof(uint64_t),
    .on = (const domus_on[]){{&ball_type, send_ball_back, 0}, {NULL, NULL, 0}},
};

static void begin_row_pingpong(void)
{
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t other = 1 - i;
        require_success(domus_outside_spawn_on(bench_system, 0, &player, &other, &players[i]),
                        "spawn");
    }
}

static uint64_t run_round_of_pingpong(void)
{
    uint64_t left = MESSAGES;

    require_success(domus_outside_notice(bench_system, players[0], &ball_type, &left), "notice");
    while (sem_wait(&done) != 0)
        continue;
    return MESSAGES;
}

/* --- echo ------------------------------------------------------------------------------------- */

static int handle_echo_read(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    (void)self;
    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour echo = {
    .name = "echo", .kind = DOMUS_CHANNELS, .on_read = {handle_echo_read, 0}};

static int connections[ECHO_CONNECTIONS];

static void begin_row_echo(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    uint16_t port;

    require_success(domus_serve(bench_system, "echo", &echo, NULL, &port), "serve");
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < ECHO_CONNECTIONS; i++) {
        connections[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        require_success(connections[i] < 0 || connect(connections[i], (struct sockaddr *)&address,
                                                      sizeof address) != 0,
                        "connect");
    }
}

static void send_and_receive_echo_batch(void)
{
    char bytes[ECHO_BYTES] = "echo";

    for (int i = 0; i < ECHO_CONNECTIONS; i++)
        require_success(write(connections[i], bytes, sizeof bytes) != sizeof bytes, "write");
    for (int i = 0; i < ECHO_CONNECTIONS; i++)
        require_success(recv(connections[i], bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes,
                        "read");
}

static uint64_t run_round_of_echo(void)
{
    uint64_t next_ns = measure_now_ns();

    for (int i = 0; i < ECHO_BATCHES; i++) {
        send_and_receive_echo_batch();
        next_ns += ECHO_PACE_NS;
        uint64_t now_ns = measure_now_ns();
        if (next_ns > now_ns)
            measure_sleep_seconds((double)(next_ns - now_ns) / 1e9);
    }
    return (uint64_t)ECHO_BATCHES * ECHO_CONNECTIONS;
}

/* --- rounds ----------------------------------------------------------------------------------- */

typedef struct row {
    const char *name;
    void (*begin)(void);
    uint64_t (*run)(void); /* runs one round of the row, and returns how many messages it took */
} row;

/* Run a round of a row at a profile level. Returns the CPU time of all threads but the main one for
 * a message. */
static double measure_message_cpu_at_profile_level(const row *which, domus_profile_level level)
{
    require_success(domus_system_set_profile_level(bench_system, level), "level");
    /* this first round is not measured; in it the threads change to the new level */
    (void)which->run();
    uint64_t before_ns = measure_process_cpu_ns() - measure_thread_cpu_ns();
    uint64_t messages = which->run();
    uint64_t after_ns = measure_process_cpu_ns() - measure_thread_cpu_ns();
    return (double)(after_ns - before_ns) / (double)messages;
}

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static void print_figures_of_level(const char *row_name, int level, double rounds[LEVELS][ROUNDS])
{
    double ratios[ROUNDS];

    for (int i = 0; i < ROUNDS; i++)
        ratios[i] = rounds[level][i] / rounds[0][i];
    qsort(ratios, ROUNDS, sizeof ratios[0], compare_numbers);
    printf("%s.%s.message %.1f ns\n", row_name, names[level],
           measure_sort_and_get_median(rounds[level], ROUNDS));
    if (level == 0)
        return;
    printf("%s.%s.ratio %.4f\n", row_name, names[level],
           measure_sort_and_get_median(ratios, ROUNDS));
    printf("%s.%s.spread %.4f\n", row_name, names[level],
           ratios[ROUNDS * 3 / 4] - ratios[ROUNDS / 4]);
}

static void run_all_rounds_of_row(const row *which)
{
    static double rounds[LEVELS][ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < LEVELS; k++) {
            int level = i % 2 == 0 ? k : LEVELS - 1 - k;
            rounds[level][i] = measure_message_cpu_at_profile_level(which, levels[level]);
        }
    }
    /* `off` is level 0 and comes last: its figures are the base of all ratios, and printing sorts
     * them */
    for (int level = LEVELS - 1; level >= 0; level--)
        print_figures_of_level(which->name, level, rounds);
}

static void start_system(domus_profile_level level)
{
    static domus_listener_config listener = {
        .name = "echo", .address = "127.0.0.1:0", .backlog = 64};
    domus_config config;
    char error[256] = "";

    domus_config_init(&config);
    config.system.threads = 1;
    config.profile.level = level;
    config.listeners = &listener;
    config.listener_count = 1;
    if (domus_system_new(&config, error, sizeof error, &bench_system) != 0) {
        fprintf(stderr, "levels: %s\n", error);
        exit(1);
    }
    require_success(domus_system_start(bench_system), "start");
}

static void run_row_of_bench(const row *which, int once)
{
    start_system(once >= 0 ? levels[once] : DOMUS_PROFILE_OFF);
    which->begin();
    if (once >= 0)
        (void)which->run();
    else
        run_all_rounds_of_row(which);
    require_success(domus_system_stop(bench_system), "stop");
    domus_system_free(bench_system);
}

int main(int argc, char **argv)
{
    static const row rows[] = {{"pingpong", begin_row_pingpong, run_round_of_pingpong},
                               {"echo", begin_row_echo, run_round_of_echo}};
    int once = -1;

    if (argc > 2 && strcmp(argv[1], "--once") == 0) {
        for (int i = 0; i < LEVELS; i++)
            once = strcmp(argv[2], names[i]) == 0 ? i : once;
        argc -= 2;
        argv += 2;
    }
    require_success(sem_init(&done, 0, 0), "semaphore");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (options_is_name_wanted(argc - 1, argv + 1, rows[i].name))
            run_row_of_bench(&rows[i], once);
    }
    return 0;
}
