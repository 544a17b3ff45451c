/* Where the contenders are and how each is called; see the header.
 *
 * A thread is one CPU for all of them, and one worker of the library. Erlang's busy waiting, heap
 * and allocators stay as they come: they are tuned for its own good. Its table of processes is made
 * large enough for the row. */
#include "bench/support/contender.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES_SPARE 100000 /* beyond the row's size: what the VM runs itself, and room */
#define PROCESSES_MAX   134217727
#define NUMBER_MAX      32

static const struct {
    const char *name;
    const char *file; /* beside this program */
    const char *package;
} contenders[CONTENDERS] = {
    [CONTENDER_DOMUS] = {"domus", "actors_domus", "a build of domus"},
    [CONTENDER_CAF] = {"caf", "actors_caf", "g++ and libcaf-dev"},
    [CONTENDER_ERLANG] = {"erlang", "actors.beam", "erlang-base"},
};

const char *contender_name(enum contender who)
{
    return contenders[who].name;
}

/* The folder that this program lies in; "" when that cannot be told. */
static const char *folder(void)
{
    static char path[PATH_MAX];

    if (path[0] == '\0') {
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        path[length < 0 ? 0 : length] = '\0';
        char *slash = strrchr(path, '/');
        if (slash != NULL)
            *slash = '\0';
    }
    return path;
}

static bool is_file(enum contender who, char *path, size_t size)
{
    int length = snprintf(path, size, "%s/%s", folder(), contenders[who].file);

    return length > 0 && (size_t)length < size && access(path, R_OK) == 0;
}

/* erl halts at once; what it costs to find out is what every run of it costs. */
static bool has_erl(void)
{
    char *const arguments[] = {(char[]){"erl"}, (char[]){"-noinput"}, (char[]){"-eval"},
                               (char[]){"halt()"}, NULL};
    struct command command = {.arguments = arguments, .cpus = 1, .seconds_max = 10};
    struct command_result result;

    return command_run(&command, &result) == 0;
}

bool contender_is_there(enum contender who)
{
    char path[PATH_MAX];
    bool there = is_file(who, path, sizeof path) && (who != CONTENDER_ERLANG || has_erl());

    if (!there)
        fprintf(stderr, "bench: %s is left out: it needs %s\n", contenders[who].name,
                contenders[who].package);
    return there;
}

int contender_run(enum contender who, const struct contest *contest,
                  struct command_result *ret_result)
{
    char path[PATH_MAX];
    char row[NUMBER_MAX];
    char size[NUMBER_MAX];
    char threads[NUMBER_MAX];
    char schedulers[NUMBER_MAX];
    char processes[NUMBER_MAX];
    uint64_t room = contest->size < PROCESSES_MAX - PROCESSES_SPARE
                        ? contest->size + PROCESSES_SPARE
                        : PROCESSES_MAX;
    char *const plain[] = {path, row, size, threads, NULL};
    char *const erlang[] = {
        (char[]){"erl"},
        (char[]){"-noshell"},
        (char[]){"-noinput"},
        (char[]){"+S"},
        schedulers,
        (char[]){"+P"},
        processes,
        (char[]){"-pa"},
        path,
        (char[]){"-run"},
        (char[]){"actors"},
        (char[]){"main"},
        row,
        size,
        threads,
        NULL,
    };
    struct command command = {
        .arguments = who == CONTENDER_ERLANG ? erlang : plain,
        .cpus = contest->threads,
        .seconds_max = contest->seconds_max,
        .memory_max_bytes = contest->memory_max_bytes,
    };

    if (!is_file(who, path, sizeof path))
        return -ENOENT;
    if (who == CONTENDER_ERLANG) {
        *strrchr(path, '/') = '\0';
        setenv("ERL_CRASH_DUMP_BYTES", "0", 1); /* out of memory, it would write all it has */
    }
    snprintf(row, sizeof row, "%s", contest->row);
    snprintf(size, sizeof size, "%" PRIu64, contest->size);
    snprintf(threads, sizeof threads, "%" PRIu32, contest->threads);
    snprintf(schedulers, sizeof schedulers, "%" PRIu32 ":%" PRIu32, contest->threads,
             contest->threads);
    snprintf(processes, sizeof processes, "%" PRIu64, room);
    return command_run(&command, ret_result);
}
