/* This file has domus_main() of domus/main.h and reads options and configuration for it. main_run.c
 * then runs the program. */
#include <domus/main.h>

#include "config/main_run.h"

#include <domus/text.h>
#include <domus/yaml.h>

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 256 /* bytes of a wrong argument that a message shows */

/* Print a line about an argument. Its bytes are escaped, because they may be anything. */
static void complain(const char *name, const char *argument, const char *what)
{
    char shown[SHOWN_MAX];

    (void)domus_text_escape(argument, strlen(argument), shown, sizeof shown);
    fprintf(stderr, "%s: %s: %s\n", name, shown, what);
}

static void usage(FILE *to, const char *name)
{
    fprintf(to,
            "usage: %s [--config FILE] [--set KEY=VALUE ...]\n"
            "  --config FILE    read the configuration (YAML); without it the defaults hold\n"
            "  --set KEY=VALUE  set one key over it, such as scheduler.ioRatio=60\n"
            "  --help           print this\n",
            name);
}

/* Read the options and the configuration, and print everything that is wrong with them. Files are
 * read before --set, wherever it stands among the options. Returns -1 if the program may start,
 * otherwise its exit status. */
static int read_options(int argc, char **argv, const char *name, domus_yaml *yaml)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"set", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    bool wrong = false;
    int option;

    opterr = 0; /* getopt_long() would print an argument without escapes */
    optind = 1;
    while ((option = getopt_long(argc, argv, "c:s:h", options, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout, name);
            return DOMI_STATUS_OK;
        }
        if (option == '?') {
            complain(name, argv[optind - 1], "unknown option, or its value is missing");
            usage(stderr, name);
            return DOMI_STATUS_USAGE;
        }
        if (option != 'c')
            continue;
        int result = domus_yaml_load(yaml, optarg);
        if (result != 0 && result != -EINVAL)
            complain(name, optarg, strerror(-result));
        wrong = wrong || result != 0;
    }
    if (optind < argc) {
        complain(name, argv[optind], "unexpected argument");
        usage(stderr, name);
        return DOMI_STATUS_USAGE;
    }
    optind = 1;
    while ((option = getopt_long(argc, argv, "c:s:h", options, NULL)) != -1) {
        if (option == 's')
            wrong = domus_yaml_set(yaml, optarg) != 0 || wrong;
    }
    if (!wrong)
        wrong = domus_yaml_finish(yaml) != 0;
    fputs(domus_yaml_errors(yaml), stderr);
    return wrong ? DOMI_STATUS_USAGE : -1;
}

int domus_main(int argc, char **argv, const domus_program *program)
{
    domus_yaml *yaml = NULL;

    if (domus_yaml_new(&yaml) != 0) {
        fprintf(stderr, "%s: out of memory\n", program->name);
        return DOMI_STATUS_FAILED;
    }
    int status = read_options(argc, argv, program->name, yaml);
    if (status < 0)
        status = domi_main_run(program, domus_yaml_config(yaml));
    domus_yaml_free(yaml);
    return status;
}

static const char *address_of(const domus_config *config, const char *name)
{
    for (size_t i = 0; i < config->listener_count; i++) {
        if (strcmp(config->listeners[i].name, name) == 0)
            return config->listeners[i].address;
    }
    return "";
}

int domus_main_serve(domus_system *system, const char *name, const domus_behaviour *behaviour,
                     const void *state)
{
    uint16_t port = 0;
    int result = domus_serve(system, name, behaviour, state, &port);

    if (result != 0)
        return result;
    domi_main_print_listening(name, address_of(domus_system_config(system), name), port);
    return 0;
}
