/* The arguments of domus_main(): its own options, and those of the program (domus/main.h).
 *
 * They are read several times: once to find what cannot be understood, and then once for the files
 * and once for the assignments, at the start and for each reload. getopt_long() has one state for
 * the process, so only the main thread reads them. */
#ifndef DOMI_CONFIG_MAIN_OPTIONS_H
#define DOMI_CONFIG_MAIN_OPTIONS_H

#include "config/tell.h"

#include <domus/main.h>
#include <domus/yaml.h>

#include <stdbool.h>

enum { DOMI_STATUS_OK = 0, DOMI_STATUS_FAILED = 1, DOMI_STATUS_USAGE = 2 };

struct domi_arguments {
    const domus_program *program;
    int argc;
    char **argv;
};

/* The function to which a fault is reported that lies in an argument of the command line, and not
 * in a file. */
struct domi_options_faults {
    void (*report)(void *context, const char *argument, const char *what);
    void *context;
};

/* Check the program's table of options. Returns 0; -EINVAL, and `error` says what is wrong
 * with the table. */
int domi_options_check_table(const domus_option *options, char *error, size_t error_size);

/* Print a line about an argument of the command line to stderr. Its bytes are escaped, because they
 * may be anything. */
void domi_options_print_fault(const char *name, const char *argument, const char *what);

/* Answer --help, and find options and arguments that cannot be understood; both print. `ret_tell`
 * gets what the last --tell asks for. Returns -1 if the program may start, otherwise its exit
 * status. */
int domi_options_check_arguments(const struct domi_arguments *arguments, domi_tell *ret_tell);

/* Read the files of the configuration into `yaml`, then the assignments and the program's
 * options, and finish it. `again` says that this is a reload, in which options with a `take` are
 * left out. Returns whether everything was right; if not, faults are in domus_yaml_errors() or
 * were reported. */
bool domi_options_read_configuration(const struct domi_arguments *arguments, bool again,
                                     domus_yaml *yaml, const struct domi_options_faults *faults);

#endif
