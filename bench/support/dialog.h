/* Dialogs: a program that runs beside the bench, which writes lines to its stdin and reads lines
 * from its stdout.
 *
 * The program's stderr is that of the bench. The program is killed if the bench dies. */
#ifndef DOMUS_BENCH_DIALOG_H
#define DOMUS_BENCH_DIALOG_H

#include <stdint.h>
#include <sys/types.h>

#define DIALOG_LINE_MAX 256

struct dialog {
    pid_t pid; /* process of the program; -1: no program was started */
    int input;
    int output;
    uint32_t length; /* number of bytes in `bytes`, which were read and not returned yet */
    char bytes[DIALOG_LINE_MAX];
};

/* Start `arguments[0]`, which is a path or a name that is found by PATH. Returns 0 or a negative
 * errno. If there is no such program, the wait for its first line returns -ECHILD. */
int dialog_start_program(struct dialog *dialog, char *const arguments[]);

/* Wait for a line of the program, and write it without its end to `ret_line` (DIALOG_LINE_MAX
 * bytes). Returns 0; -ETIMEDOUT; -ECHILD if the output has ended; -EMSGSIZE if the line is too
 * long. */
int dialog_read_line(struct dialog *dialog, uint64_t patience_ns, char *ret_line);

/* Write `text` to the program's stdin. Returns 0; -ECHILD if the program does not read it any more.
 * The bench ignores SIGPIPE. */
int dialog_write_text(struct dialog *dialog, const char *text);

/* Close the program's stdin, send SIGTERM, wait for its end (at most 5 s, then it is killed), and
 * free the dialog. A dialog that was never started, or has ended, is left unchanged. */
void dialog_end_program(struct dialog *dialog);

#endif
