/* This file makes the system with the settings that all rows share, and ends a program. */
#include "bench/stage/stage.h"

#include "bench/support/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPIN_NS UINT64_C(100000)

/* The environment variable that sets scheduler.beltSlots, to compare ways between threads. */
#define BELT_SLOTS "BENCH_BELT_SLOTS"

_Noreturn void stage_wrong(const char *what)
{
    fprintf(stderr, "%s: wrong result: %s\n", program_invocation_short_name, what);
    _Exit(COMMAND_WRONG);
}

void stage_must(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(-error));
    _Exit(EXIT_FAILURE);
}

domus_system *stage_system(uint32_t threads)
{
    domus_config config;
    domus_system *system;
    char error[256] = "";

    domus_config_init(&config);
    config.system.threads = threads;
    config.scheduler.idle.spin_ns = threads > 1 ? SPIN_NS : 0;
    if (getenv(BELT_SLOTS) != NULL)
        config.scheduler.belt_slots = (uint32_t)strtoul(getenv(BELT_SLOTS), NULL, 10);
    if (domus_system_new(&config, error, sizeof error, &system) != 0) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, error);
        exit(EXIT_FAILURE);
    }
    stage_must(domus_system_start(system), domus_system_error(system));
    return system;
}
