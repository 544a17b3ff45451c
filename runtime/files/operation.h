/* Operations on files, from the start to the answer (operation.c). The thread that runs the house
 * of the stack begins an operation; a helper thread may end it. */
#ifndef DOMI_RUNTIME_FILES_OPERATION_H
#define DOMI_RUNTIME_FILES_OPERATION_H

#include "io/completions/file.h"
#include "runtime/files/handle.h"
#include "runtime/system/system.h"

#include <domus/file.h>

#include <linux/openat2.h>

typedef struct domi_file_operation domi_file_operation;

/* The functions of one kind of operation. */
typedef struct domi_file_verb {
    domus_type waits;        /* type whose name a dump shows while the operation is under way */
    const domus_type *reply; /* type of the answer */
    /* Get the resources of the operation, such as a page or a handle. Returns 0; 1 if nothing
     * is left to be done; a negative errno. NULL: the kind needs no resources. */
    int (*prepare)(domi_file_operation *operation, domi_manager *manager);
    /* Begin a try in the ring. Returns false if no try is possible, for instance without an `io`.
     * NULL: the kind is never tried. */
    bool (*try)(domi_file_operation *operation, domi_io *io);
    /* Judge the result of a try. Returns 0 if the operation is done; DOMI_FILE_TRY_AGAIN;
     * DOMI_FILE_TRY_ELSEWHERE; a negative errno. NULL if `try` is NULL. */
    int (*judge)(domi_file_operation *operation, int result, bool is_lost);
    /* Do the operation, or the rest of it, by system calls that may wait. Returns 0; a negative
     * errno. Any thread. */
    int (*work)(domi_file_operation *operation);
    /* Move the results into the answer. NULL: the answer has no payload. */
    void (*fill)(domi_file_operation *operation);
} domi_file_verb;

#define DOMI_FILE_TRY_AGAIN     1 /* a part is done, and another try may do more */
#define DOMI_FILE_TRY_ELSEWHERE 2 /* a helper thread has to do the rest */

/* An operation is the payload of the envelope in which its answer travels, and the answer's payload
 * is the operation's first field. */
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
    domus_address asker; /* address of the actor that waits */
    domus_system *system;
    domi_envelope *envelope; /* the envelope that becomes the answer */
    domi_file_try attempt;   /* in use while the operation is in the ring */
    domi_job job;            /* job of the helper threads */
    domi_file_left left;     /* entry in the list of work while the job is under way */

    /* counted handle of the file that is read or written, or of the directory of `path`; NULL:
     * none */
    domus_file *file;
    domus_file *to_file;    /* counted handle of the directory of `to`; NULL: none */
    domus_file *opened;     /* handle that an open fills */
    struct domi_page *page; /* page that a read or a listing fills */
    domus_slice bytes;      /* bytes that a write writes */
    struct open_how how;    /* flags and mode of an open */
    uint64_t position;      /* position in the file in bytes; for a truncate the new size */
    uint32_t size;          /* number of bytes wanted */
    uint32_t done;          /* number of bytes read or written */
    uint32_t count;         /* number of directory entries in `page` */
    uint32_t flags;         /* bits of domus_file_flag */
    uint32_t mode;          /* permissions of a directory that is made */
    int error;              /* negative errno that ended a write after some bytes */
    bool last;              /* a listing has reached the end of the directory */
    /* number of bytes at `path` if it is a list of paths; 0: it is one path */
    uint32_t path_size;
    const char *path; /* path in `text`; NULL: none */
    const char *to;
    char text[]; /* memory of the paths */
};

/* Begin an operation. The caller has set the fields of `what` from `file` to `to`, and still owns
 * what they point to. With `then` the conversation waits for the operation alone; without it the
 * operation is one of several that the conversation waits for, and `tag` names it.
 *
 * Ownership: the operation owns `bytes`, unless this returns a negative errno.
 * Returns DOMUS_PARKED, or 0 without `then`; a negative errno. */
int domi_file_begin(domus_stack *stack, const domi_file_verb *verb, const domi_file_operation *what,
                    uint64_t tag, domus_resumed *then);

#endif
