/* The bench of pools: what a pool costs the loop, and how it behaves while it is blocked and idle.
 *
 * - echo: a thread of the loop echoes CONNECTIONS paced connections, alone, and beside a pool of
 *   one runner with COMPUTING actors that compute without end. The load is on the thread's CPU in
 *   both cases, so the other CPU is the runner's.
 * - blocked: all runners sleep in a system call. The figure is how long an actor of the pool takes
 *   to answer a foreign thread, from the first notice of a spell on.
 * - idle: CPU time of a system with an idle pool of two runners, minus that of a system without a
 *   pool.
 *
 * ROUNDS rounds, the cases in turn; medians. stdout: lines `name value unit`.
 *
 * bench_pools [--seconds=S]: S (10) seconds of idleness for each policy. */
#include "bench/load.h"
#include "bench/support/measure.h"

#include <domus/domus.h>

#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS      7u
#define CONNECTIONS 64u
/* messages per second of the load: one CPU can do both this load and the thread that answers it */
#define RATE      5000.0
#define COMPUTING 4u
#define LIFE_BEAT UINT64_C(5000000)

static const char *const policies[] = {"rings", "deques", "stealing", "sharing"};
#define POLICIES (sizeof policies / sizeof policies[0])

static void require_success(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "pools: %s: %s\n", what, strerror(-error));
    exit(1);
}

/* --- actors ----------------------------------------------------------------------------------- */

static const domus_type go_type = {.name = "go"};
static _Atomic bool computes, blocks;
static _Atomic uint32_t blocked;
static _Atomic uint64_t answered;

static int handle_echo_read(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    (void)self;
    return domus_channel_write(stack, event->channel, event->bytes);
}

static int compute_and_repeat_if_wanted(domus_stack *stack, void *self, const void *nothing)
{
    volatile uint64_t sum = 0;

    (void)self, (void)nothing;
    for (uint32_t i = 0; i < 1000000; i++)
        sum = sum * 3 + i;
    return atomic_load(&computes) ? domus_notice(stack, domus_self(stack), &go_type, NULL) : 0;
}

static int block_runner_until_released(domus_stack *stack, void *self, const void *nothing)
{
    const struct timespec nap = {.tv_nsec = 200000000};

    (void)stack, (void)self, (void)nothing;
    atomic_fetch_add(&blocked, 1);
    while (atomic_load(&blocks))
        (void)nanosleep(&nap, NULL);
    return 0;
}

static int answer_ask(domus_stack *stack, void *self, const void *nothing)
{
    (void)stack, (void)self, (void)nothing;
    atomic_store(&answered, measure_now_ns());
    return 0;
}

static const domus_behaviour echo = {
    .name = "echo", .kind = DOMUS_CHANNELS, .on_read = {handle_echo_read, 0}};
static const domus_behaviour computing = {
    .name = "computing",
    .on = (const domus_on[]){{&go_type, compute_and_repeat_if_wanted, 0}, {0}}};
static const domus_behaviour blocking = {
    .name = "blocking", .on = (const domus_on[]){{&go_type, block_runner_until_released, 0}, {0}}};
static const domus_behaviour answering = {.name = "answering",
                                          .on = (const domus_on[]){{&go_type, answer_ask, 0}, {0}}};

/* --- a system --------------------------------------------------------------------------------- */

/* Start a system of one thread with a pool of this policy; NULL: without a pool. */
static domus_system *start_system(const char *policy, uint32_t runners, uint32_t spares,
                                  uint16_t *ret_port)
{
    const domus_pool_config work = {.name = "work",
                                    .runners = runners,
                                    .policy = policy,
                                    .spares = spares,
                                    .life_beat_ns = LIFE_BEAT};
    domus_listener_config listener = {
        .name = "echo", .address = "127.0.0.1:0", .backlog = CONNECTIONS};
    domus_config config;
    domus_system *system;
    char error[256];

    domus_config_init(&config);
    config.system.threads = 1;
    config.system.cpus = "0";
    config.listeners = &listener;
    config.listener_count = 1;
    config.pools = &work;
    config.pool_count = policy != NULL ? 1 : 0;
    if (domus_system_new(&config, error, sizeof error, &system) != 0) {
        fprintf(stderr, "pools: %s\n", error);
        exit(1);
    }
    require_success(domus_system_start(system), "start");
    require_success(domus_serve(system, "echo", &echo, NULL, ret_port), "serve");
    return system;
}

static domus_address spawn_actor(domus_system *system, const domus_behaviour *behaviour)
{
    const domus_spawn_options options = {.pool = domus_outside_pool_find(system, "work")};
    domus_address address;

    require_success(domus_outside_spawn_with(system, behaviour, NULL, &options, &address), "spawn");
    return address;
}

static void send_ask(domus_system *system, domus_address address)
{
    require_success(domus_outside_notice(system, address, &go_type, NULL), "notice");
}

static void stop_and_free_system(domus_system *system)
{
    (void)domus_system_stop(system);
    domus_system_free(system);
}

/* --- echo beside a pool ----------------------------------------------------------------------- */

typedef enum beside { ALONE, POOL, PROCESS } beside;

/* Begin a process that uses the other CPU without end. */
static pid_t begin_process_that_computes(void)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)measure_pin_thread_to_cpu(1);
    for (volatile uint64_t sum = 0;; sum = sum * 3 + 1)
        ;
}

static void kill_and_await_process(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static double measure_echo_p99_us(beside what)
{
    uint16_t port;
    struct load_result result;
    domus_system *system = start_system("rings", 1, 0, &port);
    pid_t process = what == PROCESS ? begin_process_that_computes() : 0;

    atomic_store(&computes, what == POOL);
    for (uint32_t i = 0; what == POOL && i < COMPUTING; i++)
        send_ask(system, spawn_actor(system, &computing));
    const struct load_options options = {.port = port,
                                         .cpu = 0,
                                         .connections = CONNECTIONS,
                                         .size = 64,
                                         .depth = 1,
                                         .rate = RATE,
                                         .duration_ns = UINT64_C(2000000000),
                                         .stall_ns = UINT64_C(5000000000)};
    int error = load_run_in_child_process(&options, &result);
    if (error != 0) {
        fprintf(stderr, "pools: load: %s\n", load_error_as_text(error));
        exit(1);
    }
    atomic_store(&computes, false);
    if (process > 0)
        kill_and_await_process(process);
    stop_and_free_system(system);
    return result.p99_us;
}

static void measure_echo(void)
{
    double us[3][ROUNDS];

    for (uint32_t i = 0; i < ROUNDS; i++) {
        for (int what = ALONE; what <= PROCESS; what++)
            us[what][i] = measure_echo_p99_us((beside)what);
    }
    double alone_us = measure_sort_and_get_median(us[ALONE], ROUNDS);
    double pool_us = measure_sort_and_get_median(us[POOL], ROUNDS);
    double process_us = measure_sort_and_get_median(us[PROCESS], ROUNDS);
    printf("pools.echo.alone.p99 %.1f us\n", alone_us);
    printf("pools.echo.pool.p99 %.1f us\n", pool_us);
    printf("pools.echo.process.p99 %.1f us\n", process_us);
    printf("pools.echo.pool_to_alone %.2f\n", pool_us / alone_us);
    printf("pools.echo.pool_to_process %.2f\n", pool_us / process_us);
}

/* --- all runners asleep ----------------------------------------------------------------------- */

static double measure_ask_of_blocked_pool_ms(const char *policy)
{
    uint16_t port;
    domus_system *system = start_system(policy, 2, 4, &port);
    domus_address address = spawn_actor(system, &answering);

    atomic_store(&blocks, true);
    atomic_store(&blocked, 0);
    for (uint32_t i = 0; i < 2; i++)
        send_ask(system, spawn_actor(system, &blocking));
    while (atomic_load(&blocked) != 2)
        measure_sleep_seconds(0.0001);
    atomic_store(&answered, 0);
    uint64_t since_ns = measure_now_ns();
    send_ask(system, address);
    while (atomic_load(&answered) == 0)
        measure_sleep_seconds(0.0001);
    double ms = (double)(atomic_load(&answered) - since_ns) / 1e6;
    atomic_store(&blocks, false);
    stop_and_free_system(system);
    return ms;
}

static void measure_ask_while_runners_are_blocked(void)
{
    for (size_t k = 0; k < POLICIES; k++) {
        double ms[ROUNDS];
        for (uint32_t i = 0; i < ROUNDS; i++)
            ms[i] = measure_ask_of_blocked_pool_ms(policies[k]);
        double worst = 0;
        for (uint32_t i = 0; i < ROUNDS; i++)
            worst = ms[i] > worst ? ms[i] : worst;
        printf("pools.blocked.%s %.2f ms\n", policies[k], measure_sort_and_get_median(ms, ROUNDS));
        printf("pools.blocked.%s.worst %.2f ms\n", policies[k], worst);
    }
}

/* --- idle ------------------------------------------------------------------------------------- */

static double measure_cpu_of_idle_system_ms(const char *policy, double seconds)
{
    uint16_t port;
    domus_system *system = start_system(policy, 2, 8, &port);

    if (policy != NULL)
        send_ask(system, spawn_actor(system, &answering));
    measure_sleep_seconds(
        0.5); /* after this half second the monitor sleeps, too, before the measurement begins */
    uint64_t began_ns = measure_process_cpu_ns();
    measure_sleep_seconds(seconds);
    double ms = (double)(measure_process_cpu_ns() - began_ns) / 1e6;
    stop_and_free_system(system);
    return ms;
}

static void measure_and_print_cpu_of_idle_pools(double seconds)
{
    double without = measure_cpu_of_idle_system_ms(NULL, seconds);

    printf("pools.idle.seconds %.0f s\n", seconds);
    printf("pools.idle.without %.2f ms\n", without);
    for (size_t k = 0; k < POLICIES; k++)
        printf("pools.idle.%s %.2f ms\n", policies[k],
               measure_cpu_of_idle_system_ms(policies[k], seconds) - without);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"seconds", required_argument, NULL, 's'},
                                            {NULL, 0, NULL, 0}};
    double seconds = 10;
    int option;

    while ((option = getopt_long(argc, argv, "s:", options, NULL)) != -1) {
        if (option != 's')
            return 2;
        seconds = strtod(optarg, NULL);
    }
    measure_echo();
    measure_ask_while_runners_are_blocked();
    measure_and_print_cpu_of_idle_pools(seconds);
    return 0;
}
