/* Kept files: the bytes of small files that a thread has loaded, for its next loads (load.c).
 *
 * A file is named as a load names it: by a directory, flags and a list of paths. Each thread has a
 * table of its own, so nothing is shared and no lock is needed. The first load only notes the file
 * without its bytes. A later load keeps the bytes if the file is unchanged for the time
 * domi_kept_time_file_must_be_unchanged(). A write within one tick of the file system's clock after
 * the previous change leaves all times of the file as they were, so it could not be noticed
 * earlier. The time of the turn would be too early for this, because the file may have changed
 * during the turn; so the time is read from the clock during the load. Beyond files.keptMax the
 * files used least recently are forgotten, and while memory is short all files.
 *
 * Owner thread: the one that runs the houses of the thread. */
#ifndef DOMI_RUNTIME_FILES_KEPT_H
#define DOMI_RUNTIME_FILES_KEPT_H

#include <domus/file.h>

#include <stdbool.h>

typedef struct domi_kept domi_kept;

/* The name by which a load finds a kept file in the table. */
typedef struct domi_kept_name {
    /* serial number of the handle of the directory from which the paths are looked up */
    uint64_t directory;
    uint32_t flags;
    const char *const *paths; /* list of the load's paths, ended by NULL */
} domi_kept_name;

typedef struct domi_kept_file {
    struct domi_kept_file *next; /* next kept file in the same list of the hash table */
    /* kept file that was used next after this one; NULL: this is the newest */
    struct domi_kept_file *newer;
    struct domi_kept_file *older;
    uint64_t hash;
    uint64_t directory; /* serial number of the directory's handle, a part of the file's name */
    uint32_t flags;     /* flags of the load of this file, a part of its name */
    /* index of the path under which the file was found, in the list of paths */
    uint32_t index;
    domus_file_status status; /* file's status at the last load or check */
    /* time at which the file was first seen with this status, in nanoseconds */
    uint64_t since_ns;
    /* time of the turn in which the file's status was last checked, in nanoseconds */
    uint64_t looked_ns;
    /* all bytes of the file; without a page, no bytes are kept and the file is only noted */
    domus_slice bytes;
    uint32_t cost;       /* bytes for which the file counts in the limit of the table */
    uint32_t paths_size; /* number of bytes in `paths` */
    char paths[];        /* paths of the file's name, each with its NUL */
} domi_kept_file;

/* Make a table of kept files, which count for at most `bytes_max` bytes together. Returns NULL
 * if there is no memory. */
domi_kept *domi_kept_new(uint64_t bytes_max, const uint64_t hash_key[2]);

/* Forget all kept files of a table, and keep the empty table. NULL is allowed. */
void domi_kept_forget_all_files(domi_kept *kept);

/* Free a table with all its kept files. NULL is allowed. Always returns NULL. */
domi_kept *domi_kept_free(domi_kept *kept);

/* Find the kept file with this name, and make it the one used last. Returns the file, with or
 * without its bytes; NULL: it is not in the table. */
domi_kept_file *domi_kept_find_file(domi_kept *kept, domi_kept_name name);

void domi_kept_forget_file(domi_kept *kept, domi_kept_file *file);

/* The times of a load of a file, by which domi_kept_record_loaded_file() tells whether the file is
 * unchanged for long enough. */
typedef struct domi_kept_times {
    uint64_t turn_ns;  /* time at which the present turn began, perhaps long before the load */
    uint64_t begun_ns; /* time of the clock just before the load began */
    uint64_t done_ns;  /* time of the clock just after the load was done */
} domi_kept_times;

/* Note in the table that a file was just loaded, and keep its bytes if it has been unchanged for
 * long enough; `file` is the result of domi_kept_find_file() for this name. Other files may be
 * forgotten to make room. If there is no memory, the file is not noted. */
void domi_kept_record_loaded_file(domi_kept *kept, domi_kept_name name, domi_kept_file *file,
                                  const domus_file_loaded *loaded, domi_kept_times times);

/* True if two statuses agree in everything that a write to the file changes. */
bool domi_kept_are_statuses_same(const domus_file_status *one, const domus_file_status *other);

/* Returns how long a file has to be unchanged before its bytes may be kept: 100 ms, or 3 s on a
 * file system that counts whole seconds. */
uint64_t domi_kept_time_file_must_be_unchanged(const domus_file_status *status);

#endif
