/* Sums the counters of all threads and runners of a system, for a line of rates (rates.h). */
#include "config/rates.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)
#define MIB    (UINT64_C(1) << 20)

typedef struct sums {
    uint64_t messages;
    /* number of channels that were ever opened; `closed` is how many of these have ended */
    uint64_t opened;
    uint64_t closed;
} sums;

static uint64_t read_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static void add_profile_to_sums(sums *to, const domus_profile *profile)
{
    to->messages += profile->replies + profile->exceptions + profile->asks + profile->notices +
                    profile->events + profile->reads;
    to->opened += profile->channels_opened;
    to->closed += profile->channels_closed;
}

static void add_profiles_of_pools(sums *to, domus_system *system)
{
    const domus_config *config = domus_system_config(system);
    domus_runner_profile runner;
    domus_profile profile;

    for (size_t i = 0; i < config->pool_count; i++) {
        const domus_pool *pool = domus_outside_pool_find(system, config->pools[i].name);
        for (uint32_t j = 0; pool != NULL && domus_pool_profile(pool, j, &runner, &profile) == 0;
             j++)
            add_profile_to_sums(to, &profile);
    }
}

static sums sum_all_profiles(domus_system *system)
{
    sums all = {0};
    domus_profile profile;

    for (uint32_t i = 0; i < domus_system_threads(system); i++) {
        if (domus_system_profile(system, i, &profile) == 0)
            add_profile_to_sums(&all, &profile);
    }
    add_profiles_of_pools(&all, system);
    return all;
}

static void write_state_of_memory(domus_system *system, char *text, size_t size)
{
    static const char *const levels[] = {"normal", "high", "critical"};
    domus_memory memory;

    domus_system_memory(system, &memory);
    if (memory.limit_bytes == 0)
        snprintf(text, size, "memory not measured");
    else
        snprintf(text, size, "memory %s (%" PRIu64 " of %" PRIu64 " MiB)", levels[memory.level],
                 memory.used_bytes / MIB, memory.limit_bytes / MIB);
}

void domi_rates_begin_counting(domi_rates *ret_rates, domus_system *system)
{
    *ret_rates =
        (domi_rates){.messages = sum_all_profiles(system).messages, .at_ns = read_monotonic_ns()};
}

void domi_rates_write_line(domi_rates *rates, domus_system *system, char *line, size_t size)
{
    char memory[96];
    uint64_t at_ns = read_monotonic_ns(), passed_ns = at_ns - rates->at_ns;
    sums now = sum_all_profiles(system);
    double rate = passed_ns != 0 ? (double)(now.messages - rates->messages) * (double)SECOND /
                                       (double)passed_ns
                                 : 0.0;

    write_state_of_memory(system, memory, sizeof memory);
    snprintf(line, size, "%.0f messages/s, %" PRIu64 " connections, %s", rate,
             now.opened > now.closed ? now.opened - now.closed : 0, memory);
    *rates = (domi_rates){.messages = now.messages, .at_ns = at_ns};
}
