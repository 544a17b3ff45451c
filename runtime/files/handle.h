/* Handles of files, and what the files of a system have in common (domus/file.h).
 *
 * A handle is counted by its owners and by the operations that use it. The common part
 * outlives the system, because a handle may be closed after that. Any thread. */
#ifndef DOMI_RUNTIME_FILES_HANDLE_H
#define DOMI_RUNTIME_FILES_HANDLE_H

#include "base/fifo.h"
#include "runtime/os/workers.h"

#include <domus/file.h>

#include <stdatomic.h>

typedef struct domi_files domi_files;
typedef struct domi_file_left domi_file_left;

/* A piece of work of a helper thread, or one that waits for an actor. The end of the system frees
 * it, because no other code would. */
struct domi_file_left {
    domi_file_left *next; /* next piece in the list of those that are left */
    /* address of the pointer to this piece in that list; NULL: it is in no list */
    domi_file_left **place;
    /* function that frees it; only domi_files_free() calls it */
    void (*drop)(domi_file_left *left);
};

struct domi_files {
    pthread_mutex_t mutex; /* protects all but `open` */
    domi_workers *workers; /* NULL: a simulation, or the system is gone */
    domi_file_left *left;  /* the operations that are under way */
    uint32_t users;        /* the system, and the handles */
    uint64_t serials;      /* handles that were made so far */
    /* the pool of helper threads; NULL: a simulation, or the system is gone */
    uint32_t open_max;
    _Atomic uint32_t open; /* list of the operations that are under way */
};

struct domus_file {
    _Atomic uint32_t users; /* number of handles */
    int fd;                 /* number of owners and of operations under way */
    uint64_t serial;        /* descriptor; -1: the file was never opened */
    bool is_directory;
    bool is_writable;
    bool appends;
    _Atomic bool reads_wait; /* the ring cannot tell what it may read at once */
    /* number of tries of a write, in a row, that the ring refused */
    _Atomic uint32_t writes_waited;
    domi_files *files;
    domi_job job;        /* job that closes the file */
    domi_file_left left; /* while the job is under way */
};

/* Returns NULL without memory. `workers` may be NULL. */
domi_files *domi_files_new(domi_workers *workers, uint32_t open_max);

/* The system ends: nothing of it runs any more. Operations that are left are dropped; handles may
 * still be closed. NULL is allowed. */
void domi_files_free(domi_files *files);

/* Add a piece of work that is under way to the list; domi_file_left_remove() removes it. */
void domi_file_left_add(domi_files *files, domi_file_left *left);
void domi_file_left_remove(domi_files *files, domi_file_left *left);

/* Make a handle that is not open. Returns 0; -EMFILE; -ENOMEM. */
int domi_file_new(domi_files *files, domus_file **ret_file);

#endif
