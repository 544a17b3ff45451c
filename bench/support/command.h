/* Commands: run a program that does one piece of work to its end, and read the figures that it
 * prints.
 *
 * The program prints its figures on stdout as lines `name value ...`; its stderr is that of the
 * bench. All its threads run on the first `cpus` CPUs of the bench only, within a limit of time and
 * of address space. The program is killed if the bench dies. */
#ifndef DOMUS_BENCH_COMMAND_H
#define DOMUS_BENCH_COMMAND_H

#include <stdint.h>

#define COMMAND_FIGURES_MAX 128
#define COMMAND_NAME_MAX    64

/* The exit status of a program whose result was wrong. Any other status but 0 means that it could
 * not do the work. */
#define COMMAND_WRONG 3

struct command {
    /* the program and its arguments, ended by NULL; the program is a path, or a name that is found
     * by PATH */
    char *const *arguments;
    uint32_t cpus; /* number of CPUs that the program may use, at least 1 */
    uint32_t seconds_max;
    uint64_t memory_max_bytes; /* address space that the program may use; 0: no limit */
};

struct command_result {
    uint32_t count;
    struct command_figure {
        char name[COMMAND_NAME_MAX];
        double value;
    } figures[COMMAND_FIGURES_MAX];
};

/* Run a program to its end. Returns 0; -EBADMSG if its result was wrong; -ETIMEDOUT if it was
 * killed at `seconds_max`; -ENOENT if there is no such program; -ECHILD if it ended otherwise,
 * perhaps because memory was short; or the negative errno of a system call. `ret_result` is filled
 * only with 0. */
int command_run_and_read_figures(const struct command *command, struct command_result *ret_result);

/* Write the path of `program`, which lies beside the running program, to `path` (PATH_MAX bytes).
 * Returns 0; -ENOENT if it is not there or cannot be run, and `path` names it; or the negative
 * errno of a system call. */
int command_find_program_beside(const char *program, char *path);

/* Returns the first figure with this name in a program's output; NAN if the program did not print
 * one. */
double command_first_figure_of_name(const struct command_result *result, const char *name);

/* Copy all figures with this name, in the order of the output's lines and of the values in a line,
 * up to `room` of them. Returns how many were copied. */
uint32_t command_copy_figures_of_name(const struct command_result *result, const char *name,
                                      double *ret_values, uint32_t room);

#endif
