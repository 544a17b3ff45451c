/* Stealing: one thread has all the work, the others have none.
 *
 * bench_steal [--threads N] [--houses N] [--work NANOSECONDS] [--rounds N]: defaults 2, 10,000,
 * 20,000, 5. All houses live on thread 0 and get one message each from there; its handler uses the
 * CPU for `--work` nanoseconds. The ideal time is the work of all houses divided by the number of
 * threads (at most one per CPU). Each round is measured with stealing and without, alternating.
 * Every house has to have worked exactly once.
 *
 * stdout: lines `name value unit`, medians. Exit 1 on a wrong count, never on a missed goal. */
#include "bench/support/measure.h"

#include <domus/domus.h>

#include <getopt.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS_MAX 99

static struct {
    uint32_t threads;
    uint32_t houses;
    uint64_t work_ns;
    int rounds;
} options = {2, 10000, 20000, 5};

static domus_address *workers;
static uint64_t began_ns, ended_ns;
static _Atomic uint32_t done;
static _Atomic int mounted;

static const domus_type work_type = {.name = "work"};
static const domus_type begin_type = {.name = "begin"};

static void exit_with_error(const char *what)
{
    fprintf(stderr, "steal: %s\n", what);
    exit(1);
}

static int use_cpu_and_count_finished_house(domus_stack *stack, void *self, const void *payload)
{
    uint64_t until_ns = measure_now_ns() + options.work_ns;

    (void)stack, (void)self, (void)payload;
    while (measure_now_ns() < until_ns)
        continue;
    if (atomic_fetch_add(&done, 1) + 1 == options.houses)
        ended_ns = until_ns;
    return 0;
}

static const domus_behaviour worker = {
    .name = "worker",
    .on = (const domus_on[]){{&work_type, use_cpu_and_count_finished_house, 0}, {NULL, NULL, 0}},
};

static int spawn_all_workers(domus_stack *stack, void *self)
{
    (void)self;
    for (uint32_t i = 0; i < options.houses; i++) {
        if (domus_spawn(stack, &worker, NULL, &workers[i]) != 0)
            exit_with_error("spawn");
    }
    atomic_store(&mounted, 1);
    return 0;
}

static int give_work_to_all_workers(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    began_ns = measure_now_ns();
    for (uint32_t i = 0; i < options.houses; i++) {
        if (domus_notice(stack, workers[i], &work_type, NULL) != 0)
            exit_with_error("notice");
    }
    return 0;
}

static const domus_behaviour maker = {
    .name = "maker",
    .on_mount = spawn_all_workers,
    .on = (const domus_on[]){{&begin_type, give_work_to_all_workers, 0}, {NULL, NULL, 0}},
};

/* Run one round, with stealing or without. Returns the seconds until all houses have worked;
 * `ret_steals` gets the number of steals of all threads. */
static double measure_seconds_until_all_have_worked(bool steals, uint64_t *ret_steals)
{
    domus_config config;
    domus_system *system;
    domus_address address;
    char error[256];
    const domus_spawn_options first = {.placement = DOMUS_ON_THREAD};

    domus_config_init(&config);
    config.system.threads = options.threads;
    config.scheduler.steal.enabled = steals;
    if (domus_system_new(&config, error, sizeof error, &system) != 0 ||
        domus_system_start(system) != 0)
        exit_with_error("start");
    atomic_store(&done, 0);
    atomic_store(&mounted, 0);
    if (domus_outside_spawn_with(system, &maker, NULL, &first, &address) != 0)
        exit_with_error("spawn");
    while (!atomic_load(&mounted))
        measure_sleep_seconds(0.001);
    measure_sleep_seconds(
        0.005); /* this pause lets all threads fall asleep before the round begins */
    if (domus_outside_notice(system, address, &begin_type, NULL) != 0)
        exit_with_error("notice");
    while (atomic_load(&done) < options.houses)
        measure_sleep_seconds(0.001);
    *ret_steals = 0;
    for (uint32_t i = 0; i < options.threads; i++) {
        domus_profile profile;
        if (domus_system_profile(system, i, &profile) == 0)
            *ret_steals += profile.steals;
    }
    if (domus_system_stop(system) < 0 || atomic_load(&done) != options.houses)
        exit_with_error("not every house has worked exactly once");
    domus_system_free(system);
    return (double)(ended_ns - began_ns) / 1e9;
}

static bool read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"threads", required_argument, NULL, 't'},
        {"houses", required_argument, NULL, 'h'},
        {"work", required_argument, NULL, 'w'},
        {"rounds", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "t:h:w:r:", names, NULL)) != -1) {
        unsigned long long value = optarg != NULL ? strtoull(optarg, NULL, 10) : 0;
        if (option == 't' && value > 0 && value <= 1024)
            options.threads = (uint32_t)value;
        else if (option == 'h' && value > 0 && value <= 1000000)
            options.houses = (uint32_t)value;
        else if (option == 'w' && value <= 1000000000)
            options.work_ns = value;
        else if (option == 'r' && value > 0 && value <= ROUNDS_MAX)
            options.rounds = (int)value;
        else
            return false;
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    double with[ROUNDS_MAX], without[ROUNDS_MAX], stolen[ROUNDS_MAX];

    if (!read_options(argc, argv)) {
        fprintf(stderr, "usage: bench_steal [--threads N] [--houses N] [--work NANOSECONDS] "
                        "[--rounds N]\n");
        return 2;
    }
    workers = calloc(options.houses, sizeof *workers);
    if (workers == NULL)
        exit_with_error("memory");
    for (int i = 0; i < options.rounds; i++) {
        uint64_t steals;
        without[i] = measure_seconds_until_all_have_worked(false, &steals);
        with[i] = measure_seconds_until_all_have_worked(true, &steals);
        stolen[i] = (double)steals;
    }
    size_t rounds = (size_t)options.rounds;
    double ideal = (double)options.houses * (double)options.work_ns / 1e9 / options.threads;
    double taken = measure_sort_and_get_median(with, rounds);
    printf("steal.alone %.4g s\n", measure_sort_and_get_median(without, rounds));
    printf("steal.helped %.4g s\n", taken);
    printf("steal.ideal %.4g s\n", ideal);
    printf("steal.ratio %.3f ratio\n", taken / ideal);
    printf("steal.steals %.0f houses\n", measure_sort_and_get_median(stolen, rounds));
    free(workers);
    return 0;
}
