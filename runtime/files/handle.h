/* Handles of open files (domus/file.h), and the part that all handles of a system have in common.
 *
 * The owners of a handle and the operations that use it are counted. The common part outlives the
 * system, because a handle may be closed after the system's end. Any thread. */
#ifndef DOMI_RUNTIME_FILES_HANDLE_H
#define DOMI_RUNTIME_FILES_HANDLE_H

#include "base/fifo.h"
#include "runtime/os/workers.h"

#include <domus/file.h>

#include <stdatomic.h>

typedef struct domi_files domi_files;
typedef struct domi_file_left domi_file_left;

/* An entry in the list of work on files that is under way: with a helper thread, or waiting for an
 * actor. The list lets the end of the system free the work if no other code does. */
struct domi_file_left {
    domi_file_left *next; /* next entry in the list of work on files that is under way */
    /* address of the pointer to this entry in the list; NULL: the entry is in no list */
    domi_file_left **place;
    /* function that frees the entry's work; called only by domi_files_free() */
    void (*drop)(domi_file_left *left);
};

struct domi_files {
    pthread_mutex_t mutex; /* protects all fields of the handles' common part but `open` */
    /* helper threads, for work that blocks; NULL: a simulation has none, or the system is gone */
    domi_workers *workers;
    domi_file_left *left; /* first entry of the list of work on files that is under way */
    uint32_t users;       /* number of users of the common part: the system, and each handle */
    uint64_t serials;     /* number of handles that were made so far */
    /* most handles that may be open at a time */
    uint32_t open_max;
    _Atomic uint32_t open; /* number of handles that are open now */
};

struct domus_file {
    _Atomic uint32_t users; /* number of the handle's owners and of the operations that use it */
    int fd;                 /* descriptor of the handle's file; -1: the file was never opened */
    uint64_t serial;        /* number of the handle, unique in its system */
    bool is_directory;
    bool is_writable;
    bool appends;
    /* true: reads of this file go to helper threads at once, because its file system refuses to
     * read in the ring without waiting */
    _Atomic bool reads_wait;
    /* number of writes in a row that the ring could not do without waiting */
    _Atomic uint32_t writes_waited;
    domi_files *files;
    domi_job job; /* job by which a helper thread closes the file */
    /* entry of the closing job in the list of work on files that is under way */
    domi_file_left left;
};

/* Make the part that all file handles of a system share. Returns NULL if there is no memory.
 * `workers` are the helper threads, or NULL if there are none. */
domi_files *domi_files_new(domi_workers *workers, uint32_t open_max);

/* Release the system's use of the handles' common part at the system's end. Work on files that
 * is still under way is dropped; handles may still be closed afterwards. NULL is allowed. */
void domi_files_free(domi_files *files);

/* Add work on a file to the list of work that is under way; domi_file_left_remove_work_that_ended()
 * removes it. */
void domi_file_left_add_work_under_way(domi_files *files, domi_file_left *left);
void domi_file_left_remove_work_that_ended(domi_files *files, domi_file_left *left);

/* Make a file handle without an open file. Returns 0; -EMFILE if too many are open; -ENOMEM. */
int domi_file_new_handle(domi_files *files, domus_file **ret_file);

#endif
