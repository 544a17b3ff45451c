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

/* A piece of work that is under way at a helper thread, or waits for an actor. The end of the
 * system frees it, because no other code would. */
struct domi_file_left {
    domi_file_left *next;   /* in the list of what is left */
    domi_file_left **place; /* the pointer to this one in that list; NULL: it is in none */
    void (*drop)(domi_file_left *left); /* frees it; called by domi_files_free() alone */
};

struct domi_files {
    pthread_mutex_t mutex; /* protects all but `open` */
    domi_workers *workers; /* NULL: a simulation, or the system is gone */
    domi_file_left *left;  /* the operations that are under way */
    uint32_t users;        /* the system, and the handles */
    uint64_t serials;      /* handles that were made so far */
    uint32_t open_max;     /* constant */
    _Atomic uint32_t open; /* handles that there are */
};

struct domus_file {
    _Atomic uint32_t users; /* owners, and operations under way */
    int fd;                 /* -1: it was never opened */
    uint64_t serial;        /* no other handle of the system ever has the same; constant */
    bool is_directory;
    bool is_writable;
    bool appends;
    _Atomic bool reads_wait;        /* the ring cannot tell what it may read at once */
    _Atomic uint32_t writes_waited; /* tries of a write, in a row, that the ring refused */
    domi_files *files;
    domi_job job;        /* closes it */
    domi_file_left left; /* while the job is under way */
};

/* Returns NULL without memory. `workers` may be NULL. */
domi_files *domi_files_new(domi_workers *workers, uint32_t open_max);

/* The system ends: nothing of it runs any more. Operations that are left are dropped; handles may
 * still be closed. NULL is allowed. */
void domi_files_free(domi_files *files);

/* List something that is under way, and take it out again. */
void domi_file_left_add(domi_files *files, domi_file_left *left);
void domi_file_left_remove(domi_files *files, domi_file_left *left);

/* Make a handle that is not open. Returns 0; -EMFILE; -ENOMEM. */
int domi_file_new(domi_files *files, domus_file **ret_file);

#endif
