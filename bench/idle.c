/* This bench measures the cost of idleness: the memory of a million actors that do nothing, and the
 * CPU time of a system that waits.
 *
 * bench_idle [--seconds N] [--actors N]: defaults 10 and 1,000,000. Resident memory is read from
 * the kernel before and after the spawns; every actor is mounted and has 16 bytes of state of its
 * own. The CPU time is that of the whole process over the seconds in which nothing happens, on two
 * threads.
 *
 * stdout: lines `name value unit`. Exit 1 when a spawn fails, never on a missed goal. */
#include "bench/support/measure.h"

#include <domus/domus.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct idler {
    uint64_t number;
    uint64_t square;
};

static const domus_behaviour idler = {.name = "idler", .state_size = sizeof(struct idler)};

static double read_resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;

    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        exit(1);
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static uint64_t count_mounted_actors(const domus_system *system)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < domus_system_threads(system); i++) {
        domus_profile profile;
        if (domus_system_profile(system, i, &profile) == 0)
            sum += profile.spawns;
    }
    return sum;
}

static domus_system *start_system_for_idle_actors(void)
{
    domus_config config;
    domus_system *system;
    char error[256] = "";

    domus_config_init(&config);
    config.system.threads = 2;
    if (domus_system_new(&config, error, sizeof error, &system) != 0) {
        fprintf(stderr, "idle: %s\n", error);
        exit(1);
    }
    if (domus_system_start(system) != 0) {
        fprintf(stderr, "idle: %s\n", domus_system_error(system));
        exit(1);
    }
    return system;
}

static void spawn_all_actors(domus_system *system, uint64_t actors)
{
    for (uint64_t i = 0; i < actors; i++) {
        struct idler state = {i, i * i};
        domus_address address;
        int error = domus_outside_spawn(system, &idler, &state, &address);
        if (error != 0) {
            fprintf(stderr, "idle: spawn %llu: %s\n", (unsigned long long)i, strerror(-error));
            exit(1);
        }
    }
    while (count_mounted_actors(system) < actors)
        measure_sleep_seconds(0.01);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seconds", required_argument, NULL, 's'},
        {"actors", required_argument, NULL, 'a'},
        {NULL, 0, NULL, 0},
    };
    double seconds = 10;
    uint64_t actors = 1000000;
    int option;

    while ((option = getopt_long(argc, argv, "s:a:", options, NULL)) != -1) {
        if (option == 's')
            seconds = strtod(optarg, NULL);
        else if (option == 'a')
            actors = strtoull(optarg, NULL, 10);
        else
            return 2;
    }

    domus_system *system = start_system_for_idle_actors();
    measure_sleep_seconds(0.1);
    fprintf(stderr, "idle: %.0f s of nothing\n", seconds);
    uint64_t began_ns = measure_process_cpu_ns();
    measure_sleep_seconds(seconds);
    printf("idle.cpu %.3f ms\n", (double)(measure_process_cpu_ns() - began_ns) / 1e6);
    printf("idle.seconds %.0f s\n", seconds);

    fprintf(stderr, "idle: %llu actors\n", (unsigned long long)actors);
    double before = read_resident_bytes();
    began_ns = measure_now_ns();
    spawn_all_actors(system, actors);
    printf("idle.spawn %.4g actors/s\n",
           (double)actors / ((double)(measure_now_ns() - began_ns) / 1e9));
    printf("idle.actor %.1f bytes\n", (read_resident_bytes() - before) / (double)actors);
    domus_system_free(system);
    return 0;
}
