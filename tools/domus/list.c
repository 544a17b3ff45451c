/* domus list: shows the programs with an observation port that run. */
#include "tools/domus/options.h"
#include "tools/domus/registry.h"
#include "tools/domus/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENDPOINT_WIDTH 512

static int run_command_list(const command *self, int argc, char **argv)
{
    static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    options all = {.self = self};
    char endpoint[ENDPOINT_WIDTH];
    program *each;

    if (options_get_next(&all, argc, argv, ":h", longs) == OPTIONS_STOP)
        return all.status;
    if (optind < argc)
        return options_print_usage_error(&all, "takes no '%s'", argv[optind]);
    size_t count = registry_list_running_programs(&each);
    if (count > 0)
        (void)printf("%8s %-20s %s\n", "PID", "PROGRAM", "ENDPOINT");
    for (size_t i = 0; i < count; i++) {
        escape_name_to_ascii(each[i].endpoint, strlen(each[i].endpoint), endpoint, sizeof endpoint);
        (void)printf("%8ld %-20s %s\n", each[i].pid, each[i].name, endpoint);
    }
    free(each);
    if (count > 0)
        return STATUS_OK;
    say_print_error(
        "no program with an observation port was found: its configuration needs the key "
        "observe.listen, such as unix:/run/NAME.sock");
    return STATUS_FAILED;
}

const command command_list = {
    .name = "list",
    .summary = "the programs that run and can be looked at",
    .help = "usage: domus list\n"
            "\n"
            "Prints the pid, the name and the observation port of each program of this user that\n"
            "has one (the key observe.listen); for root, of all users.\n"
            "\n"
            "  -h, --help  this text\n",
    .run = run_command_list,
};
