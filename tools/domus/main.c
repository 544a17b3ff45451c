/* The program `domus`, which shows running programs through their observation ports
 * (docs/observe.md). Each command is in its own file. */
#include "tools/domus/command.h"
#include "tools/domus/say.h"

#include <curl/curl.h>

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const command *const commands[] = {
    &command_list,    &command_top,    &command_stat,   &command_actors,
    &command_trace,   &command_flame,  &command_log,    &command_level,
    &command_cluster, &command_config, &command_doctor, &command_tune,
};
#define COMMANDS (sizeof commands / sizeof commands[0])

static void print_help_of_domus(FILE *out)
{
    (void)fputs("usage: domus COMMAND [OPTIONS]\n"
                "\n"
                "Looks at running programs of domus, through their observation ports (the key\n"
                "observe.listen of their configuration).\n"
                "\n",
                out);
    for (size_t i = 0; i < COMMANDS; i++)
        (void)fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    (void)fputs("\n"
                "One program that runs is taken; of several -p PID or -p NAME chooses one, and\n"
                "-s unix:PATH or -s HOST:PORT names a port. domus COMMAND --help says more.\n"
                "\n"
                "  -h, --help     this text\n"
                "  -V, --version  the version\n"
                "\n"
                "Exit status: 0 if all went well, 1 if there is no such program or it did not\n"
                "answer, 2 if the command line is wrong.\n",
                out);
}

/* Find a command of domus by its name. Returns NULL if there is none. */
static const command *find_command_by_name(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

/* Returns the exit status of a command, or STATUS_FAILED if its output could not be written. */
static int status_or_failed_if_output_was_lost(int status)
{
    curl_global_cleanup();
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    say_print_error("the output could not be written");
    return STATUS_FAILED;
}

int main(int argc, char **argv)
{
    char shown[64];

    (void)setlocale(LC_CTYPE, "");
    if (argc < 2) {
        print_help_of_domus(stderr);
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        const command *asked = argc > 2 ? find_command_by_name(argv[2]) : NULL;
        if (asked != NULL)
            (void)fputs(asked->help, stdout);
        else
            print_help_of_domus(stdout);
        return status_or_failed_if_output_was_lost(STATUS_OK);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        (void)puts("domus " DOMUS_TOOL_VERSION);
        return status_or_failed_if_output_was_lost(STATUS_OK);
    }
    const command *chosen = find_command_by_name(argv[1]);
    if (chosen == NULL) {
        escape_name_to_ascii(argv[1], strlen(argv[1]), shown, sizeof shown);
        say_print_error("there is no command '%s' (domus --help)", shown);
        return STATUS_USAGE;
    }
    if (curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK) {
        say_print_error("libcurl does not start");
        return STATUS_FAILED;
    }
    return status_or_failed_if_output_was_lost(chosen->run(chosen, argc - 1, argv + 1));
}
