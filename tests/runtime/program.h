/* Runs a program that calls domus_main() in a child process, and reads its output. */
#ifndef DOMT_PROGRAM_H
#define DOMT_PROGRAM_H

#include <domus/main.h>

#include <sys/types.h>

#define DOMT_PROGRAM_TEXT_MAX 65536

typedef struct domt_program {
    pid_t pid;
    int out; /* ends of the pipes from which the test reads the program's stdout and stderr */
    int err;
    /* text of the program's stdout and stderr that was read so far */
    char out_text[DOMT_PROGRAM_TEXT_MAX];
    char err_text[DOMT_PROGRAM_TEXT_MAX];
    size_t out_length;
    size_t err_length;
} domt_program;

extern const char *const domt_no_arguments[];

/* Start a child process that calls `prepare` (may be NULL) and then domus_main() with these
 * arguments. */
void domt_program_start(domt_program *own, const domus_program *program,
                        const char *const *arguments, void (*prepare)(void));

/* Read the program's stdout until it contains `text`; the test fails if stdout ends without it. */
void domt_program_read_stdout_until(domt_program *own, const char *text);

/* Start a program as domt_program_start() does, and read its stdout until it contains `text`. */
void domt_program_start_and_read(domt_program *own, const domus_program *program,
                                 const char *const *arguments, void (*prepare)(void),
                                 const char *text);

/* Read the program's stderr until it contains `text` at least `times` times. */
void domt_program_read_stderr_until(domt_program *own, const char *text, int times);

/* Wait until the program has ended, without reading its output. Returns its exit status, or 128
 * plus the number of the signal that ended it. */
int domt_program_wait_for_end(domt_program *own);

/* Read all output of the program until it has ended by itself. Returns its exit status. */
int domt_program_read_to_end(domt_program *own);

/* Send the program a signal, and read its output until it has ended. The test fails unless its exit
 * status is `status`. */
void domt_program_end_by_signal(domt_program *own, int signal, int status);

/* Start a program, and read its output until it has ended. Returns its exit status. */
int domt_program_run(domt_program *own, const domus_program *program, const char *const *arguments);

/* Start a program with the arguments that follow, up to NULL, and read its output until it has
 * ended. The test fails unless its exit status is `status`. */
void domt_program_check_exit(domt_program *own, const domus_program *program, int status, ...)
    __attribute__((sentinel));

/* Check that the string `text` contains `part`. */
void domt_must_contain(const char *text, const char *part);

#endif
