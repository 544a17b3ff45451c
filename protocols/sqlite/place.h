/* The place and the options of a database, as its url gives them. */
#ifndef DOMI_SQLITE_PLACE_H
#define DOMI_SQLITE_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOMI_SQLITE_BUSY_MS     5000u
#define DOMI_SQLITE_BUSY_MS_MAX 3600000u

typedef struct domi_sqlite_place {
    /* path of the file, as the url has it; absolute after domi_sqlite_make_path_absolute() */
    char path[PATH_MAX];
    uint32_t busy_ms;
    bool is_memory;
    bool makes_file;
    bool reads_only;
    bool is_normal; /* the url has synchronous=normal, so a commit does not wait for the disk */
} domi_sqlite_place;

/* Read the url of a database. Returns 0; -EINVAL, and `error` gets one line. */
int domi_sqlite_read_url(const char *url, char *error, size_t error_size,
                         domi_sqlite_place *ret_place);

/* Make the path of the file absolute, so that a later chdir(2) changes nothing. Returns 0; an errno
 * of getcwd(3); -ENAMETOOLONG. */
int domi_sqlite_make_path_absolute(domi_sqlite_place *place);

#endif
