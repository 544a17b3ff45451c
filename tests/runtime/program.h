/* A program that calls domus_main() in a child process, whose output the test reads. */
#ifndef DOMT_PROGRAM_H
#define DOMT_PROGRAM_H

#include <domus/main.h>

#include <sys/types.h>

#define DOMT_PROGRAM_TEXT_MAX 65536

typedef struct domt_program {
    pid_t pid;
    int out; /* the reading ends of its pipes; -1: closed by the test */
    int err;
    char out_text[DOMT_PROGRAM_TEXT_MAX]; /* text that was read so far */
    char err_text[DOMT_PROGRAM_TEXT_MAX];
    size_t out_length;
    size_t err_length;
} domt_program;

extern const char *const domt_no_arguments[];

/* Run domus_main() with these arguments, after `prepare` (may be NULL), in a process of its own. */
void domt_program_start(domt_program *own, const domus_program *program,
                        const char *const *arguments, void (*prepare)(void));

/* Read until stdout contains `text`. */
void domt_program_says(domt_program *own, const char *text);

/* Start a program, and read until its stdout contains `text`. */
void domt_program_begin(domt_program *own, const domus_program *program,
                        const char *const *arguments, void (*prepare)(void), const char *text);

/* Read until stderr contains `text` so many times. */
void domt_program_complains(domt_program *own, const char *text, int times);

/* Wait until the program has ended, without reading. Returns its exit status, or 128 plus the
 * signal that ended it. */
int domt_program_wait(domt_program *own);

/* Read the whole output until the program has ended by itself. Returns its exit status. */
int domt_program_end(domt_program *own);

/* Send a signal, and read until the program has ended; it must end with this status. */
void domt_program_ends_by(domt_program *own, int signal, int status);

/* Start a program, and read until it has ended. Returns its exit status. */
int domt_program_run(domt_program *own, const domus_program *program, const char *const *arguments);

/* Start a program, and read until it has ended; it must end with this status. Its arguments follow,
 * up to NULL. */
void domt_program_exits(domt_program *own, const domus_program *program, int status, ...)
    __attribute__((sentinel));

/* Check that `part` is in `text`. */
void domt_has(const char *text, const char *part);

#endif
