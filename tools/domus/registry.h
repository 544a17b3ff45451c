/* The programs that run and have an observation port, by the registry of
 * protocols/observe/announce.h. */
#ifndef DOMUS_TOOL_REGISTRY_H
#define DOMUS_TOOL_REGISTRY_H

#include <limits.h>
#include <stddef.h>

#define PROGRAMS_MAX 1024 /* programs that are looked at; further ones are not found */

typedef struct program {
    long pid;
    char name[64];               /* printable ASCII */
    char endpoint[PATH_MAX + 8]; /* unix:PATH, unix:@NAME or HOST:PORT; its bytes are not escaped */
} program;

/* The programs in the order of their pids. Files of processes that are gone are passed over, and
 * removed if they are the user's own. Root sees the programs of all users. Returns how many there
 * are. Ownership: the array is the caller's. */
size_t registry_read(program **ret_programs);

#endif
