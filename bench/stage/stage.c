/* This file makes systems with the settings that all rows share, and ends a program with the right
 * status. */
#include "bench/stage/stage.h"

#include "bench/support/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPIN_NS UINT64_C(100000)

/* The environment variable that sets scheduler.beltSlots, to compare the ways in which messages go
 * between threads. */
#define BELT_SLOTS "BENCH_BELT_SLOTS"

_Noreturn void stage_exit_with_wrong_result(const char *what)
{
    fprintf(stderr, "%s: wrong result: %s\n", program_invocation_short_name, what);
    _Exit(COMMAND_WRONG);
}

void stage_must_succeed(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(-error));
    _Exit(EXIT_FAILURE);
}

static domus_system *start_system_of_stage(uint32_t threads, const domus_pool_config *pool)
{
    domus_config config;
    domus_system *system;
    char error[256] = "";

    domus_config_init(&config);
    config.system.threads = threads;
    config.scheduler.idle.spin_ns = threads > 1 ? SPIN_NS : 0;
    config.pools = pool;
    config.pool_count = pool != NULL;
    if (getenv(BELT_SLOTS) != NULL)
        config.scheduler.belt_slots = (uint32_t)strtoul(getenv(BELT_SLOTS), NULL, 10);
    if (domus_system_new(&config, error, sizeof error, &system) != 0) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, error);
        exit(EXIT_FAILURE);
    }
    stage_must_succeed(domus_system_start(system), domus_system_error(system));
    return system;
}

domus_system *stage_start_system(uint32_t threads)
{
    return start_system_of_stage(threads, NULL);
}

domus_system *stage_start_system_with_pool(uint32_t runners, const char *policy,
                                           const domus_pool **ret_pool)
{
    const domus_pool_config pool = {.name = "stage", .runners = runners, .policy = policy};
    domus_system *system = start_system_of_stage(1, &pool);

    *ret_pool = domus_outside_pool_find(system, pool.name);
    stage_must_succeed(*ret_pool == NULL ? -ENOENT : 0, "the pool");
    return system;
}
