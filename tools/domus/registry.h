/* Finds running programs that have an observation port, by the registry of
 * protocols/observe/announce.h. */
#ifndef DOMUS_TOOL_REGISTRY_H
#define DOMUS_TOOL_REGISTRY_H

#include <limits.h>
#include <stddef.h>

#define PROGRAMS_MAX 1024 /* most programs that are listed; further ones are not found */

typedef struct program {
    long pid;
    char name[64]; /* name of the running program, in printable ASCII */
    /* endpoint of the program's port, unix:PATH, unix:@NAME or HOST:PORT; its bytes are not
     * escaped */
    char endpoint[PATH_MAX + 8];
} program;

/* Read the running programs from the registry in the order of their pids. Files of processes that
 * are gone are ignored, and removed if they belong to the user. Root sees the programs of all
 * users. Returns how many there are. Ownership: the array is the caller's. */
size_t registry_list_running_programs(program **ret_programs);

#endif
