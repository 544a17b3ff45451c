/* domus level: shows how much a running program measures, and changes that. */
#include "tools/domus/options.h"
#include "tools/domus/sample.h"
#include "tools/domus/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MS 10000L

static int request_and_print_profiling_level(port *at)
{
    char endpoint[256];
    sample now;

    if (!sample_request_from_port(at, ANSWER_MS, &now)) {
        say_print_error("%s", at->error);
        return STATUS_FAILED;
    }
    bool is_known = now.level[0] != '\0';
    escape_name_to_ascii(at->endpoint, strlen(at->endpoint), endpoint, sizeof endpoint);
    if (is_known)
        (void)puts(now.level);
    else
        say_print_error("%s: this program does not say its level", endpoint);
    sample_free(&now);
    return is_known ? STATUS_OK : STATUS_FAILED;
}

static int post_profiling_level_to_port(port *at, const char *level)
{
    char path[64];
    port_text answer;

    snprintf(path, sizeof path, "/profile?level=%s", level);
    if (!port_post_and_collect_answer(at, path, &answer)) {
        say_print_error("%s", at->error);
        return STATUS_FAILED;
    }
    free(answer.at);
    return STATUS_OK;
}

static int run_command_level(const command *self, int argc, char **argv)
{
    static const struct option longs[] = {OPTIONS_LONG};
    static const char *const levels[] = {"off", "counters", "histograms", "spans"};
    options all = {.self = self};
    bool is_level = false;
    port at;

    if (options_get_next(&all, argc, argv, OPTIONS_SHORT, longs) == OPTIONS_STOP)
        return all.status;
    if (argc - optind > 1)
        return options_print_usage_error(&all, "takes one level, and not '%s'", argv[optind + 1]);
    const char *level = argv[optind];
    for (size_t i = 0; i < 4; i++)
        is_level = is_level || (level != NULL && strcmp(level, levels[i]) == 0);
    if (level != NULL && !is_level)
        return options_print_usage_error(&all, "'%s' is none of off, counters, histograms, spans",
                                         level);
    int status = STATUS_FAILED;
    if (options_open_port_of_meant_program(&all, &at))
        status = level != NULL ? post_profiling_level_to_port(&at, level)
                               : request_and_print_profiling_level(&at);
    port_close(&at);
    return status;
}

const command command_level = {
    .name = "level",
    .summary = "how much a program measures; change that",
    .help = "usage: domus level [OPTIONS] [LEVEL]\n"
            "\n"
            "Prints profile.level of a program, or changes it to LEVEL until the program ends or\n"
            "reads its configuration again: off, counters, histograms or spans.\n"
            "\n" OPTIONS_HELP,
    .run = run_command_level,
};
