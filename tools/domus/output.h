/* A file that a command writes: it gets its name when it is complete, so that an error or Ctrl-C
 * leaves no partial file behind. */
#ifndef DOMUS_TOOL_OUTPUT_H
#define DOMUS_TOOL_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct output {
    FILE *file;
    const char *name;     /* name of the file that is written; "-": stdout */
    uint64_t size;        /* number of bytes that were written to the file */
    char other[PATH_MAX]; /* temporary name of the file until it is complete */
} output;

/* Begin to write a file. `name` must stay valid as long as the output. Returns whether that
 * succeeded; otherwise the error was printed, and no other call is needed. */
bool output_open_temporary_file_or_stdout(output *to, const char *name);

/* Write bytes to the file; this function is a sink of a port. Returns whether that succeeded. */
bool output_write_bytes(void *output_, const char *bytes, size_t size);

/* End a written file: with `is_whole` it gets its name, otherwise it is removed. Returns whether it
 * exists; if it should and does not, the error was printed. */
bool output_close_and_keep_file_if_whole(output *to, bool is_whole);

#endif
