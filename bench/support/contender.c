/* This file finds the programs of the contenders, and makes their arguments (contender.h).
 *
 * For each contender a thread is one CPU and one worker of its library. Erlang's busy waiting, heap
 * and allocators keep their defaults, which its makers have tuned. Its table of processes is made
 * large enough for the row. */
#include "bench/support/contender.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* processes that Erlang may have beyond the size of a row, for the VM itself */
#define PROCESSES_SPARE 100000
#define PROCESSES_MAX   134217727

#define ARGUMENTS_MAX 20

static const struct {
    const char *name;
    const char *suffix; /* end of the program's name, which begins with the name of the suite */
    const char *package;
} contenders[CONTENDERS] = {
    [CONTENDER_DOMUS] = {"domus", "_domus", "a build of domus"},
    [CONTENDER_CAF] = {"caf", "_caf", "g++ and libcaf-dev"},
    [CONTENDER_ERLANG] = {"erlang", ".beam", "erlang-base"},
    [CONTENDER_THREADS] = {"threads", "_threads", "a build of domus"},
};

const char *contender_name(enum contender who)
{
    return contenders[who].name;
}

/* Returns the folder in which the running program lies; "" if it is unknown. */
static const char *find_folder_of_program(void)
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

static bool is_file(const char *suite, enum contender who, char *path, size_t size)
{
    int length =
        snprintf(path, size, "%s/%s%s", find_folder_of_program(), suite, contenders[who].suffix);

    return length > 0 && (size_t)length < size && access(path, R_OK) == 0;
}

/* Returns whether erl can be run: it is started, and halts at once. */
static bool can_erl_be_run(void)
{
    char *const arguments[] = {(char[]){"erl"}, (char[]){"-noinput"}, (char[]){"-eval"},
                               (char[]){"halt()"}, NULL};
    struct command command = {.arguments = arguments, .cpus = 1, .seconds_max = 10};
    struct command_result result;

    return command_run_and_read_figures(&command, &result) == 0;
}

bool contender_can_be_run(const char *suite, enum contender who)
{
    char path[PATH_MAX];
    bool there =
        is_file(suite, who, path, sizeof path) && (who != CONTENDER_ERLANG || can_erl_be_run());

    if (!there)
        fprintf(stderr, "bench: %s is left out: it needs %s\n", contenders[who].name,
                contenders[who].package);
    return there;
}

/* The words of a contender's command line, and the memory for their texts. */
struct words {
    size_t count;
    size_t used;
    char *arguments[ARGUMENTS_MAX];
    char text[PATH_MAX + 512];
};

__attribute__((format(printf, 2, 3))) static void
format_argument_into_words(struct words *words, const char *format, ...)
{
    va_list values;
    size_t room = sizeof words->text - words->used;

    va_start(values, format);
    int length = vsnprintf(words->text + words->used, room, format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= room || words->count == ARGUMENTS_MAX - 1)
        return; /* the argument does not fit and is left out, so the program will print its usage */
    words->arguments[words->count++] = words->text + words->used;
    words->used += (size_t)length + 1;
}

/* Add the arguments of erl. A row of this size has as many processes as its size says, or as a tree
 * with that many leaves. */
static void add_arguments_of_erl(struct words *words, const struct contest *contest,
                                 const char *directory)
{
    uint64_t wanted = contest->size + contest->size / 4 + PROCESSES_SPARE;

    format_argument_into_words(words, "erl");
    format_argument_into_words(words, "-noshell");
    format_argument_into_words(words, "-noinput");
    format_argument_into_words(words, "+S");
    format_argument_into_words(words, "%" PRIu32 ":%" PRIu32, contest->threads, contest->threads);
    format_argument_into_words(words, "+P");
    format_argument_into_words(words, "%" PRIu64, wanted < PROCESSES_MAX ? wanted : PROCESSES_MAX);
    format_argument_into_words(words, "-pa");
    format_argument_into_words(words, "%s", directory);
    format_argument_into_words(words, "-run");
    format_argument_into_words(words, "%s", contest->suite);
    format_argument_into_words(words, "main");
}

int contender_run_in_contest(enum contender who, const struct contest *contest,
                             struct command_result *ret_result)
{
    char path[PATH_MAX];
    struct words words = {0};
    struct command command = {
        .arguments = words.arguments,
        .cpus = contest->threads,
        .seconds_max = contest->seconds_max,
        .memory_max_bytes = contest->memory_max_bytes,
    };

    if (!is_file(contest->suite, who, path, sizeof path))
        return -ENOENT;
    if (who == CONTENDER_ERLANG) {
        /* without this setting, erl would write a file of all its memory if memory runs out */
        setenv("ERL_CRASH_DUMP_BYTES", "0", 1);
        add_arguments_of_erl(&words, contest, find_folder_of_program());
    } else {
        format_argument_into_words(&words, "%s", path);
    }
    format_argument_into_words(&words, "%s", contest->row);
    format_argument_into_words(&words, "%" PRIu64, contest->size);
    format_argument_into_words(&words, "%" PRIu32, contest->threads);
    if (contest->rounds != 0)
        format_argument_into_words(&words, "%" PRIu32, contest->rounds);
    if (contest->placement != NULL)
        format_argument_into_words(&words, "%s", contest->placement);
    return command_run_and_read_figures(&command, ret_result);
}
