/* Kept files: the bytes of small files that a thread has loaded, for its next loads (load.c).
 *
 * A file is named as a load names it: by a directory, flags and a list of paths. Each thread has a
 * table of its own, so nothing is shared and no lock is needed. A file that was seen once is only
 * noted. Its bytes are kept when a later load, after domi_kept_settles(), finds it unchanged: until
 * then a write could come in the same tick of the file system's clock as the change before, and
 * would leave all times as they were. That is judged by the clock at the load: the time of the turn
 * would count the turn itself, in which the change may have come. The files that were asked for
 * least recently are forgotten beyond files.keptMax, and all of them while memory is short.
 *
 * Owner thread: whoever runs the houses of the thread. */
#ifndef DOMI_RUNTIME_FILES_KEPT_H
#define DOMI_RUNTIME_FILES_KEPT_H

#include <domus/file.h>

#include <stdbool.h>

typedef struct domi_kept domi_kept;

/* The name by which a load names a file. */
typedef struct domi_kept_name {
    uint64_t directory; /* the serial of the directory's handle */
    uint32_t flags;
    const char *const *paths; /* ends with NULL */
} domi_kept_name;

typedef struct domi_kept_file {
    struct domi_kept_file *next;  /* the next one in the same list of the hash table */
    struct domi_kept_file *newer; /* in the order of use; NULL: none */
    struct domi_kept_file *older;
    uint64_t hash;
    uint64_t directory;       /* as in its name, */
    uint32_t flags;           /* and so is this */
    uint32_t index;           /* index of the file's path in the list of paths */
    domus_file_status status; /* the file's status when it was looked at last */
    uint64_t since_ns;        /* time at which the file was first seen with this status */
    uint64_t looked_ns;       /* time of the turn in which the file was checked last */
    domus_slice bytes;        /* all bytes of the file; `page` is NULL: they are not kept yet */
    uint32_t cost;            /* number of bytes that it counts for */
    uint32_t paths_size;      /* bytes at `paths` */
    char paths[];             /* the list, each path with its NUL */
} domi_kept_file;

/* Make a table for files of at most `bytes_max` bytes in all. NULL: no memory. */
domi_kept *domi_kept_new(uint64_t bytes_max, const uint64_t hash_key[2]);

/* Forget all files. The table stays. NULL is allowed. */
void domi_kept_clear(domi_kept *kept);

/* Free the table. Returns NULL. NULL is allowed. */
domi_kept *domi_kept_free(domi_kept *kept);

/* Returns the file of this name, kept or noted; NULL: it is not known. It is the newest one now. */
domi_kept_file *domi_kept_find(domi_kept *kept, domi_kept_name name);

void domi_kept_forget(domi_kept *kept, domi_kept_file *file);

/* The times of a load. */
typedef struct domi_kept_times {
    uint64_t turn_ns;  /* the time of the turn, which began before, perhaps long before */
    uint64_t begun_ns; /* time of the clock before the file was checked */
    uint64_t done_ns;  /* time of the clock when its bytes had been read */
} domi_kept_times;

/* Note a file that was loaded just now, with its bytes; `file` is what domi_kept_find() returned
 * for this name. Other files may be forgotten for it. Without memory nothing is noted. */
void domi_kept_note(domi_kept *kept, domi_kept_name name, domi_kept_file *file,
                    const domus_file_loaded *loaded, domi_kept_times times);

/* True if two states of a file agree in all that a write changes. */
bool domi_kept_is_same(const domus_file_status *one, const domus_file_status *other);

/* Returns the time for which a file has to be unchanged before its bytes may be kept: 100 ms; 3 s
 * on a file system that counts whole seconds. */
uint64_t domi_kept_settles(const domus_file_status *status);

#endif
