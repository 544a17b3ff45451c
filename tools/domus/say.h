/* Prints the program's errors, each in one line, and texts of programs that it does not trust.
 *
 * An observed program may be hostile or broken, so no byte of it that could be a command reaches
 * the terminal: such bytes are shown as \xHH. */
#ifndef DOMUS_TOOL_SAY_H
#define DOMUS_TOOL_SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Exit statuses of all commands of domus. */
enum {
    STATUS_OK = 0,
    STATUS_FAILED = 1, /* exit status: there is no such program, or it has not answered properly */
    STATUS_USAGE = 2,  /* exit status: the command line is wrong */
};

/* Print the text of an error on stderr, with "domus: " before it and a line end behind it. */
void say_print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Write a name of a program that is not trusted as printable ASCII with a zero at its end, cut at
 * `size` bytes, so that each byte is a column. `length` bytes are read. */
void escape_name_to_ascii(const char *name, size_t length, char *ret_text, size_t size);

/* Print text of a program that is not trusted: lines, tabs, and printable UTF-8 characters
 * unchanged, everything else escaped. */
void say_print_untrusted_text(FILE *out, const char *text, size_t size);

/* From now on, the signals SIGINT, SIGTERM and SIGHUP are noted instead of ending domus. */
void say_begin_to_note_signals(void);

/* Returns the number of the signal that has come and was noted; 0: none. */
int say_get_noted_signal(void);

#endif
