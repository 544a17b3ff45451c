/* Dialogs: a program that runs beside the bench and talks with it by lines, on its stdin and
 * stdout.
 *
 * Its stderr is that of the bench. It is killed if the bench dies. */
#ifndef DOMUS_BENCH_DIALOG_H
#define DOMUS_BENCH_DIALOG_H

#include <stdint.h>
#include <sys/types.h>

#define DIALOG_LINE_MAX 256

struct dialog {
    pid_t pid; /* -1: none */
    int input;
    int output;
    uint32_t length; /* of what has come of the next lines */
    char bytes[DIALOG_LINE_MAX];
};

/* Start `arguments[0]`, which is a path or a name that PATH finds. Returns 0 or a negative errno;
 * a program that is not there has ended when its first line is awaited. */
int dialog_start(struct dialog *dialog, char *const arguments[]);

/* Wait for a line and write it without its end to `ret_line` (DIALOG_LINE_MAX bytes). Returns 0;
 * -ETIMEDOUT; -ECHILD if the output has ended; -EMSGSIZE if the line is too long. */
int dialog_read(struct dialog *dialog, uint64_t patience_ns, char *ret_line);

/* Write `text` to its stdin. Returns 0; -ECHILD if the program reads it no more. The
 * bench ignores SIGPIPE. */
int dialog_write(struct dialog *dialog, const char *text);

/* End its stdin, send SIGTERM, wait (at most 5 s, then it is killed), and forget it. A dialog that
 * was never started, or has ended, is left as it is. */
void dialog_end(struct dialog *dialog);

#endif
