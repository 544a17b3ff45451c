/* A file that a command writes: it gets its name when it is whole, so an error or Ctrl-C leaves no
 * part of it behind. */
#ifndef DOMUS_TOOL_OUTPUT_H
#define DOMUS_TOOL_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct output {
    FILE *file;
    const char *name;     /* "-": stdout */
    uint64_t size;        /* bytes that were written */
    char other[PATH_MAX]; /* its name until it is whole */
} output;

/* Begin a file. `name` has to last as long as the output. Returns whether that is possible;
 * otherwise why not has been said, and nothing has to follow. */
bool output_begin(output *to, const char *name);

/* Write to it, as a sink of a port. Returns whether that was possible. */
bool output_write(void *output_, const char *bytes, size_t size);

/* End it: the file is there if it is whole; otherwise nothing is left. Returns whether it is
 * there; if it is whole and is not there, why not has been said. */
bool output_end(output *to, bool is_whole);

#endif
