/* The texts of the program: errors of one line, and texts of programs that it does not trust.
 *
 * A program that is looked at may be hostile or broken, so no byte of it reaches the terminal that
 * could be a command for the terminal: such bytes are shown as \xHH. */
#ifndef DOMUS_TOOL_SAY_H
#define DOMUS_TOOL_SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Exit statuses of all commands. */
enum {
    STATUS_OK = 0,
    STATUS_FAILED = 1, /* no such program, or it has not answered as it should */
    STATUS_USAGE = 2,  /* the command line is wrong */
};

/* Print "domus: ..." and the end of a line on stderr. */
void say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Write a name as printable ASCII (NUL-terminated, cut at `size` bytes), so that a byte is a
 * column. `length` bytes are read. */
void say_name(const char *name, size_t length, char *ret_text, size_t size);

/* Print text: lines, tabs, and printable characters of UTF-8 as they are, all else escaped. */
void say_text(FILE *out, const char *text, size_t size);

/* Ask for SIGINT, SIGTERM and SIGHUP to be noted instead of ending the program. */
void say_note_signals(void);

/* The signal that was noted; 0: none. */
int say_noted_signal(void);

#endif
