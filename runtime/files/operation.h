/* Operations on files (open, read, rename...), from the start to the answer (operation.c). The
 * thread that runs the house of the stack begins an operation; a helper thread may end it. */
#ifndef DOMI_RUNTIME_FILES_OPERATION_H
#define DOMI_RUNTIME_FILES_OPERATION_H

#include "io/completions/file.h"
#include "runtime/files/handle.h"
#include "runtime/system/system.h"

#include <domus/file.h>

#include <linux/openat2.h>

typedef struct domi_file_operation domi_file_operation;

/* The functions of one kind of operation on files (open, read, rename...); kinds.c has the
 * tables. */
typedef struct domi_file_verb {
    /* type of the promise; a dump shows its name while a conversation waits for the operation */
    domus_type waits;
    const domus_type *reply; /* type of the operation's answer */
    /* Gets what the operation needs, such as a page or a handle. Returns 0; 1 if nothing is left to
     * be done; a negative errno. NULL: the kind needs nothing. */
    int (*prepare)(domi_file_operation *operation, domi_manager *manager);
    /* Begins a try of the operation in the ring. Returns false if no try is possible, for instance
     * without an `io`. NULL: the kind is never tried in the ring. */
    bool (*try)(domi_file_operation *operation, domi_io *io);
    /* Judges what a try in the ring has returned. Returns 0 if the operation is done;
     * DOMI_FILE_TRY_AGAIN; DOMI_FILE_TRY_ELSEWHERE; a negative errno. NULL if `try` is NULL. */
    int (*judge)(domi_file_operation *operation, int result, bool is_lost);
    /* Does the operation, or the rest of it, by system calls that may wait. Returns 0; a negative
     * errno. Any thread. */
    int (*work)(domi_file_operation *operation);
    /* Moves the results of the operation into its answer. NULL: the answer has no payload. */
    void (*fill)(domi_file_operation *operation);
} domi_file_verb;

/* domi_file_verb.judge: a part of the operation is done, and another try may do more */
#define DOMI_FILE_TRY_AGAIN 1
/* domi_file_verb.judge: a helper thread has to do the rest of the operation */
#define DOMI_FILE_TRY_ELSEWHERE 2

/* An operation on a file. It is the payload of the envelope in which its answer travels, and the
 * answer's payload is the operation's first field. */
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
    domus_address asker; /* address of the actor that waits for the operation */
    domus_system *system;
    domi_envelope *envelope; /* envelope of the operation, which becomes its answer */
    domi_file_try attempt;   /* try of the operation, in use while that is in the ring */
    domi_job job;            /* job by which a helper thread does the operation */
    domi_file_left left;     /* entry of the job in the list of work on files that is under way */

    /* counted handle of the file that the operation reads or writes, or of the directory of
     * `path`; NULL: none */
    domus_file *file;
    /* counted handle of the directory of the second path `to`; NULL: none */
    domus_file *to_file;
    domus_file *opened;     /* handle that an open or a load fills */
    struct domi_page *page; /* page that a read or a listing of a directory fills */
    domus_slice bytes;      /* bytes that a write writes to the file */
    struct open_how how;    /* flags and mode of an open, as openat2(2) takes them */
    /* position in the file at which bytes are read or written; for a truncate the new size */
    uint64_t position;
    uint32_t size;  /* number of bytes that a read or a write wants */
    uint32_t done;  /* number of bytes that were read or written so far */
    uint32_t count; /* number of directory entries in `page`, of a listing */
    uint32_t flags; /* flags of the operation: bits DOMUS_FILE_READ and so on */
    uint32_t mode;  /* permissions of a file or directory that the operation makes */
    /* negative errno that has ended a write after a part of its bytes; 0: none */
    int error;
    bool last; /* true: a listing has reached the end of the directory */
    /* number of bytes at `path` if that is a list of paths (of a load); 0: it is one path */
    uint32_t path_size;
    const char *path; /* path of the operation, in `text`; NULL: none */
    const char *to;
    char text[]; /* memory for the paths of the operation */
};

/* Begin an operation. The caller has set the fields of `what` from `file` to `to`, and still owns
 * what they point to. With `then` the conversation waits for the operation alone; without it the
 * operation is one of several that the conversation waits for, and `tag` names it.
 *
 * Ownership: the operation owns `bytes`, unless this returns a negative errno.
 * Returns DOMUS_PARKED, or 0 without `then`; a negative errno. */
int domi_file_begin_operation(domus_stack *stack, const domi_file_verb *verb,
                              const domi_file_operation *what, uint64_t tag, domus_resumed *then);

#endif
