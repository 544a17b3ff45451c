/* Options that several commands of domus share, and the choice of the program that they name. */
#ifndef DOMUS_TOOL_OPTIONS_H
#define DOMUS_TOOL_OPTIONS_H

#include "tools/domus/command.h"
#include "tools/domus/port.h"

#include <getopt.h>

/* The shared options of a command, as they were given; NULL: the option was not given. */
typedef struct options {
    const command *self;
    const char *program;
    const char *endpoint;
    int status; /* exit status of the command, if options_get_next() has returned OPTIONS_STOP */
} options;

#define OPTIONS_STOP (-2)
/* The options that options_get_next() handles itself, to be put into a command's table and its
 * string of short options. */
#define OPTIONS_SHORT ":hp:s:"
#define OPTIONS_LONG                                                                               \
    {"help", no_argument, NULL, 'h'}, {"program", required_argument, NULL, 'p'},                   \
        {"socket", required_argument, NULL, 's'},                                                  \
    {                                                                                              \
        NULL, 0, NULL, 0                                                                           \
    }
/* The lines of these shared options in a help text. */
#define OPTIONS_HELP                                                                               \
    "  -p, --program PID|NAME   the program, if several run (domus list)\n"                        \
    "  -s, --socket ENDPOINT    its observation port: unix:PATH, unix:@NAME or HOST:PORT\n"        \
    "  -h, --help               this text\n"

/* Get the next option of the command line. Returns its letter; -1 at the end; OPTIONS_STOP if the
 * command ends with `status`, because the help was wanted or an option was wrong. */
int options_get_next(options *all, int argc, char **argv, const char *shorts,
                     const struct option *longs);

/* Open the port of the program that the options mean. Returns whether there is one; otherwise the
 * error was printed. port_close() must follow in both cases. */
bool options_open_port_of_meant_program(const options *all, port *ret_port);

/* Read a duration of an option: 500ms, 2s, 1.5s, 1m, or seconds without a unit. Returns whether it
 * is valid and from `least` to `most` ms; otherwise the error was printed. */
bool options_read_duration(const options *all, const char *text, long least, long most,
                           long *ret_ms);

/* Read a whole number of an option. Returns as options_read_duration(). */
bool options_read_number(const options *all, const char *text, long least, long most,
                         long *ret_number);

/* Print an error about the command line. Returns the exit status STATUS_USAGE. */
int options_print_usage_error(const options *all, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
