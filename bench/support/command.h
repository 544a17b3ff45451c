/* Commands: run a program that does one piece of work to its end, and read the figures that it
 * prints.
 *
 * It prints its figures on stdout as lines `name value ...`; its stderr is that of the bench. All
 * its threads run on the first `cpus` CPUs of the bench and nowhere else, within a limit of time
 * and of address space. It is killed when the bench dies. */
#ifndef DOMUS_BENCH_COMMAND_H
#define DOMUS_BENCH_COMMAND_H

#include <stdint.h>

#define COMMAND_FIGURES_MAX 64
#define COMMAND_NAME_MAX    32

/* The exit status of a program whose result was wrong; any other but 0: it could not do the work.
 */
#define COMMAND_WRONG 3

struct command {
    char *const *arguments; /* the first is a path, or a name that PATH finds; NULL ends them */
    uint32_t cpus;          /* at least 1 */
    uint32_t seconds_max;
    uint64_t memory_max_bytes; /* of address space; 0: no limit */
};

struct command_result {
    uint32_t count;
    struct command_figure {
        char name[COMMAND_NAME_MAX];
        double value;
    } figures[COMMAND_FIGURES_MAX];
};

/* Returns 0; -EBADMSG: its result was wrong; -ETIMEDOUT: it was killed at seconds_max; -ENOENT:
 * there is no such program; -ECHILD: it ended otherwise, for want of memory perhaps; or what a
 * system call said. Only with 0 is there a result. */
int command_run(const struct command *command, struct command_result *ret_result);

/* A figure by its name, the first of them; NAN when the program did not print it. */
double command_figure(const struct command_result *result, const char *name);

/* All of that name, in the order of the lines and of the values in a line, up to `room`.
 * Returns how many. */
uint32_t command_figures(const struct command_result *result, const char *name, double *ret_values,
                         uint32_t room);

#endif
