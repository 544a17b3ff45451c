/* domus log: shows the last lines of a running program's log, follows it, and sets the level of the
 * log. */
#include "tools/domus/options.h"
#include "tools/domus/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MS 10000L
#define LINE_MAX_ 65536 /* most bytes of a line of the log; a longer line is printed in parts */

/* The part of a log line that has come so far. */
typedef struct line {
    size_t size;
    char text[LINE_MAX_];
} line;

static void print_line_of_log(line *part)
{
    say_print_untrusted_text(stdout, part->text, part->size);
    part->size = 0;
}

/* Print each line of the log when it is complete or LINE_MAX_ bytes long, so that a character whose
 * bytes come in two pieces mostly stays whole. */
static bool print_complete_lines_of_log(void *line_, const char *bytes, size_t size)
{
    line *part = line_;

    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\r')
            continue;
        part->text[part->size++] = bytes[i];
        if (bytes[i] == '\n' || part->size == LINE_MAX_)
            print_line_of_log(part);
    }
    return fflush(stdout) == 0;
}

static int print_log(port *at, const char *level, bool is_followed)
{
    static line part;
    char path[256], escaped[128] = "";

    if (level != NULL && !port_escape_query_value(level, escaped, sizeof escaped))
        return STATUS_FAILED;
    snprintf(path, sizeof path, "/log%s%s%s", level != NULL ? "?level=" : "", escaped,
             !is_followed    ? ""
             : level == NULL ? "?follow=1"
                             : "&follow=1");
    say_begin_to_note_signals();
    bool is_answered = port_get_and_pass_answer_to_sink(at, path, is_followed ? 0 : ANSWER_MS,
                                                        print_complete_lines_of_log, &part);
    print_line_of_log(&part);
    if (is_answered || say_get_noted_signal() != 0)
        return STATUS_OK;
    say_print_error("%s", at->error);
    return STATUS_FAILED;
}

static int set_level_of_log(port *at, const char *level)
{
    char path[256], escaped[128];
    port_text answer;

    if (!port_escape_query_value(level, escaped, sizeof escaped))
        return STATUS_FAILED;
    snprintf(path, sizeof path, "/log?level=%s", escaped);
    if (!port_post_and_collect_answer(at, path, &answer)) {
        say_print_error("%s", at->error);
        return STATUS_FAILED;
    }
    free(answer.at);
    return STATUS_OK;
}

static int run_command_log(const command *self, int argc, char **argv)
{
    static const struct option longs[] = {{"level", required_argument, NULL, 'l'},
                                          {"follow", no_argument, NULL, 'f'},
                                          {"set-level", required_argument, NULL, 'S'},
                                          OPTIONS_LONG};
    options all = {.self = self};
    const char *level = NULL, *wanted = NULL;
    bool is_followed = false;
    int option, status = STATUS_FAILED;
    port at;

    while ((option = options_get_next(&all, argc, argv, OPTIONS_SHORT "l:f", longs)) >= 0) {
        if (option == 'l')
            level = optarg;
        else if (option == 'S')
            wanted = optarg;
        else
            is_followed = true;
    }
    if (option == OPTIONS_STOP)
        return all.status;
    if (optind < argc)
        return options_print_usage_error(&all, "takes no '%s'", argv[optind]);
    if (wanted != NULL && (level != NULL || is_followed))
        return options_print_usage_error(
            &all, "--set-level prints nothing, so it takes neither -l nor -f");
    if ((level != NULL && strlen(level) > 32) || (wanted != NULL && strlen(wanted) > 32))
        return options_print_usage_error(&all, "a level has at most 32 bytes");
    if (options_open_port_of_meant_program(&all, &at))
        status =
            wanted != NULL ? set_level_of_log(&at, wanted) : print_log(&at, level, is_followed);
    port_close(&at);
    return status;
}

const command command_log = {
    .name = "log",
    .summary = "the last lines of a program's log, and those that come",
    .help =
        "usage: domus log [OPTIONS]\n"
        "\n"
        "Prints the lines of its log that a program keeps in memory.\n"
        "\n"
        "  -l, --level LEVEL        only lines of this level and above, such as warning\n"
        "  -f, --follow             go on with lines as they come, until Ctrl-C\n"
        "      --set-level LEVEL    print nothing, but change what the program logs\n" OPTIONS_HELP,
    .run = run_command_log,
};
