/* An operation on files: from its start to the answer (operation.c). The thread that runs the house
 * of the stack begins the operation; a helper thread may end it. */
#ifndef DOMI_RUNTIME_FILES_OPERATION_H
#define DOMI_RUNTIME_FILES_OPERATION_H

#include "io/completions/file.h"
#include "runtime/files/handle.h"
#include "runtime/system/system.h"

#include <domus/file.h>

#include <linux/openat2.h>

typedef struct domi_file_operation domi_file_operation;

/* The functions of a kind of operation. */
typedef struct domi_file_verb {
    domus_type waits;        /* the name that a dump shows while the operation is under way */
    const domus_type *reply; /* the type of its answer */
    /* Get the resources of the operation; `wanted` is its size or count. Returns 0; 1 if nothing is
     * left to be done; or the error. NULL: it needs no resources. */
    int (*prepare)(domi_file_operation *operation, domi_manager *manager);
    /* Begin a try in the ring. Returns false if there is none to be begun, as without an `io`.
     * NULL: it never tries. */
    bool (*try)(domi_file_operation *operation, domi_io *io);
    /* Judge the result of a try. Returns 0 if the operation is done, TRY_AGAIN, TRY_ELSEWHERE, or
     * the error. NULL if `try` is NULL. */
    int (*judge)(domi_file_operation *operation, int result, bool is_lost);
    /* Do the operation, or the rest of it, by calls that may wait. Returns 0 or the error. Any
     * thread. */
    int (*work)(domi_file_operation *operation);
    /* Move the results into the answer. NULL: the answer has no payload. */
    void (*fill)(domi_file_operation *operation);
} domi_file_verb;

#define DOMI_FILE_TRY_AGAIN     1 /* a part is done, and the ring may know the rest */
#define DOMI_FILE_TRY_ELSEWHERE 2 /* a helper thread has to do it */

/* The operation is the payload of the envelope in which its answer travels, and the answer's
 * payload is its first field. */
struct domi_file_operation {
    union {
        domus_file *file;
        domus_slice slice;
        domus_file_written written;
        domus_file_status status;
        domus_file_entries entries;
        domus_file_loaded loaded;
    } answer;
    const domi_file_verb *verb;
    domus_address asker; /* the actor that waits */
    domus_system *system;
    domi_envelope *envelope; /* envelope that becomes the answer */
    domi_file_try attempt;   /* while it is in the ring */
    domi_job job;            /* while it is with the helper threads, */
    domi_file_left left;     /* and so is this */

    /* the file that is read or written, or the directory of `path`; counted; NULL: none */
    domus_file *file;
    domus_file *to_file;    /* the same for `to` */
    domus_file *opened;     /* the handle that an open fills */
    struct domi_page *page; /* the memory that a read or a listing fills */
    domus_slice bytes;      /* the bytes that a write writes */
    struct open_how how;    /* the flags and the mode of an open */
    uint64_t position;      /* position in the file in bytes; of a truncate: the new size */
    uint32_t size;          /* number of bytes wanted */
    uint32_t done;          /* number of bytes read or written */
    uint32_t count;         /* entries in `page` */
    uint32_t flags;         /* bits of domus_file_flag */
    uint32_t mode;          /* permissions of a directory that is made */
    int error;              /* the error that ended a write after some bytes */
    bool last;              /* a listing has reached the end of the directory */
    uint32_t path_size;     /* number of bytes at `path`, if it is a list; 0: it is one path */
    const char *path;       /* in `text`; NULL: none */
    const char *to;
    char text[]; /* the paths */
};

/* Begin an operation like `what`, whose fields from `file` to `to` the caller has set, with
 * pointers to what it does not own yet. With `then` the conversation waits for it, otherwise it is
 * one of several things to wait for, with `tag`.
 *
 * Ownership: the operation owns `bytes`, unless this returns a negative errno.
 * Returns DOMUS_PARKED, or 0 without `then`; a negative errno. */
int domi_file_begin(domus_stack *stack, const domi_file_verb *verb, const domi_file_operation *what,
                    uint64_t tag, domus_resumed *then);

#endif
