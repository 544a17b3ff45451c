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

/* Work on a file that is under way: with a helper thread, or waiting for an actor. It is in a list,
 * so that the end of the system can free it if no other code does. */
struct domi_file_left {
    domi_file_left *next; /* next entry in the list of work that is under way */
    /* address of the pointer to this entry in its list; NULL: the entry is in no list */
    domi_file_left **place;
    /* function that frees the entry; called only by domi_files_free() */
    void (*drop)(domi_file_left *left);
};

struct domi_files {
    pthread_mutex_t mutex; /* protects all fields but `open` */
    /* the pool of helper threads; NULL: a simulation, or the system is gone */
    domi_workers *workers;
    domi_file_left *left; /* list of the work that is under way */
    uint32_t users;       /* number of users: the system, and each handle */
    uint64_t serials;     /* number of handles made so far */
    /* most handles at a time */
    uint32_t open_max;
    _Atomic uint32_t open; /* number of handles now */
};

struct domus_file {
    _Atomic uint32_t users; /* number of owners and of operations under way */
    int fd;                 /* descriptor; -1: the file was never opened */
    uint64_t serial;        /* unique number of the handle in its system */
    bool is_directory;
    bool is_writable;
    bool appends;
    /* reads go to helper threads at once, because the file system refuses tries in the ring */
    _Atomic bool reads_wait;
    /* number of tries of a write that the ring has refused in a row */
    _Atomic uint32_t writes_waited;
    domi_files *files;
    domi_job job;        /* job that closes the file */
    domi_file_left left; /* entry in the list of work while the job is under way */
};

/* Make the common part of a system's handles. Returns NULL if there is no memory. `workers` may be
 * NULL. */
domi_files *domi_files_new(domi_workers *workers, uint32_t open_max);

/* Release the system's use of the common part at the system's end. Work that is still under way is
 * dropped; handles may still be closed afterwards. NULL is allowed. */
void domi_files_free(domi_files *files);

/* Add work that is under way to the list; domi_file_left_remove() removes it. */
void domi_file_left_add(domi_files *files, domi_file_left *left);
void domi_file_left_remove(domi_files *files, domi_file_left *left);

/* Make a handle without an open file. Returns 0; -EMFILE; -ENOMEM. */
int domi_file_new(domi_files *files, domus_file **ret_file);

#endif
