/* domus trace and domus flame: save a trace or a CPU profile of some seconds of a running program
 * in a file. */
#include "tools/domus/options.h"
#include "tools/domus/output.h"
#include "tools/domus/say.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXTRA_MS    30000L /* ms that the program may work after the time for which it was asked */
#define TRACE_MS    2000L
#define FLAME_MS    10000L
#define SECONDS_MAX 60000L
#define HERTZ_MAX   1000L
#define BYTES_MAX   (256u << 20) /* most bytes of a captured file; a port sends less */

/* The file to which the answer of the port is written. */
typedef struct filling {
    output to;
    bool is_too_long;
} filling;

/* Write a piece of the port's answer to the file; this function is a sink of a port. */
static bool write_piece_to_file(void *file_, const char *bytes, size_t size)
{
    filling *file = file_;

    file->is_too_long = file->to.size + size > BYTES_MAX;
    return !file->is_too_long && output_write_bytes(&file->to, bytes, size);
}

/* Save the port's answer to a request of `path` in a file. */
static int save_answer_of_port_to_file(const options *all, const char *path, long ms,
                                       const char *name)
{
    filling file = {.is_too_long = false};
    int status = STATUS_FAILED;
    port at;

    if (options_open_port_of_meant_program(all, &at) &&
        output_open_temporary_file_or_stdout(&file.to, name)) {
        say_begin_to_note_signals();
        bool is_whole =
            port_get_and_pass_answer_to_sink(&at, path, ms + EXTRA_MS, write_piece_to_file, &file);
        int number = say_get_noted_signal();
        if (!is_whole)
            say_print_error("%s", number != 0 ? "interrupted" : at.error);
        else if (file.is_too_long)
            say_print_error("its answer is too long");
        if (output_close_and_keep_file_if_whole(&file.to, is_whole && !file.is_too_long))
            status = STATUS_OK;
        if (status == STATUS_OK && file.to.file != stdout && isatty(STDERR_FILENO))
            (void)fprintf(stderr, "%s: %llu bytes\n", name, (unsigned long long)file.to.size);
    }
    port_close(&at);
    return status;
}

/* Returns whether a file is named, or stdout may get the bytes of a capture; otherwise the error
 * was printed. */
static bool check_file_or_stdout_is_usable(const options *all, const char *name)
{
    if (name != NULL && (strcmp(name, "-") != 0 || !isatty(STDOUT_FILENO)))
        return true;
    if (name == NULL && !isatty(STDOUT_FILENO))
        return true;
    (void)options_print_usage_error(all,
                                    "a file has to be named by -o, as a terminal cannot show it");
    return false;
}

static int run_command_trace(const command *self, int argc, char **argv)
{
    static const struct option longs[] = {{"duration", required_argument, NULL, 'd'},
                                          {"output", required_argument, NULL, 'o'},
                                          OPTIONS_LONG};
    options all = {.self = self};
    const char *name = NULL;
    long ms = TRACE_MS;
    char path[64];
    int option;

    while ((option = options_get_next(&all, argc, argv, OPTIONS_SHORT "d:o:", longs)) >= 0) {
        if (option == 'o')
            name = optarg;
        else if (!options_read_duration(&all, optarg, 0, SECONDS_MAX, &ms))
            return STATUS_USAGE;
    }
    if (option == OPTIONS_STOP)
        return all.status;
    if (optind < argc)
        return options_print_usage_error(&all, "takes no '%s'", argv[optind]);
    if (!check_file_or_stdout_is_usable(&all, name))
        return STATUS_USAGE;
    if (ms % 1000 != 0)
        return options_print_usage_error(&all, "the port counts whole seconds");
    snprintf(path, sizeof path, "/trace?seconds=%ld", ms / 1000);
    return save_answer_of_port_to_file(&all, path, ms, name != NULL ? name : "-");
}

static bool ends_with_suffix(const char *text, const char *end)
{
    size_t length = strlen(text), part = strlen(end);

    return length >= part && strcmp(text + length - part, end) == 0;
}

static int run_command_flame(const command *self, int argc, char **argv)
{
    static const struct option longs[] = {{"duration", required_argument, NULL, 'd'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"hz", required_argument, NULL, 'z'},
                                          OPTIONS_LONG};
    options all = {.self = self};
    const char *name = "-";
    long ms = FLAME_MS, hertz = 99;
    char path[96];
    int option;

    while ((option = options_get_next(&all, argc, argv, OPTIONS_SHORT "d:o:", longs)) >= 0) {
        if (option == 'o')
            name = optarg;
        else if (option == 'd' ? !options_read_duration(&all, optarg, 1000, SECONDS_MAX, &ms)
                               : !options_read_number(&all, optarg, 1, HERTZ_MAX, &hertz))
            return STATUS_USAGE;
    }
    if (option == OPTIONS_STOP)
        return all.status;
    if (optind < argc)
        return options_print_usage_error(&all, "takes no '%s'", argv[optind]);
    if (ms % 1000 != 0)
        return options_print_usage_error(&all, "the port counts whole seconds");
    snprintf(path, sizeof path, "/profile?cpu=%lds&hz=%ld&format=%s", ms / 1000, hertz,
             ends_with_suffix(name, ".svg") ? "svg" : "folded");
    return save_answer_of_port_to_file(&all, path, ms, name);
}

const command command_trace = {
    .name = "trace",
    .summary = "a trace of some seconds, for ui.perfetto.dev",
    .help = "usage: domus trace [OPTIONS] -o FILE\n"
            "\n"
            "Lets a program record what its threads do, and writes it in the form that\n"
            "ui.perfetto.dev opens. While it does, profile.level is spans.\n"
            "\n"
            "  -d, --duration TIME      for how long, 0..60s in whole seconds (2s); 0: only what\n"
            "                           the program has recorded before\n"
            "  -o, --output FILE        where it goes; -: to stdout\n" OPTIONS_HELP,
    .run = run_command_trace,
};

const command command_flame = {
    .name = "flame",
    .summary = "which functions use the CPU, as a flame graph",
    .help = "usage: domus flame [OPTIONS] [-o FILE]\n"
            "\n"
            "Samples the call stacks of a program's threads while they use the CPU. A FILE that\n"
            "ends with .svg becomes a flame graph, for a browser; any other gets folded stacks,\n"
            "a line for each: FRAME;FRAME;... COUNT.\n"
            "\n"
            "  -d, --duration TIME      for how long, 1s..60s in whole seconds (10s)\n"
            "  -o, --output FILE        where it goes (-: to stdout)\n"
            "      --hz N               samples for each second of CPU time (99)\n" OPTIONS_HELP,
    .run = run_command_flame,
};
