/* One try of an operation on a file in the ring of a thread (io/backend/backend.h: file_read,
 * file_write, file_open). A try never waits for a disk. It lies in the object of its maker, which
 * keeps it and the memory of the operation until `ended` is called. Owner thread of the ring. */
#ifndef DOMI_IO_COMPLETIONS_FILE_H
#define DOMI_IO_COMPLETIONS_FILE_H

#include "io/resources/io.h"

typedef struct domi_file_try domi_file_try;

struct domi_file_try {
    domi_file_try *next;   /* in the list of those that are in the ring */
    domi_file_try **place; /* the pointer to this one in that list */
    /* Called once for each begin that returned true, with the result of the operation. If the ring
     * has failed (io->failed), it is that error and says nothing about the file: the operation may
     * have happened. -ESHUTDOWN: the thread has ended. `ended` may begin the try again. */
    void (*ended)(domi_io *io, domi_file_try *attempt, int result);
};

/* Begin a try; `ended` of it is set. Returns false, and does nothing, if this thread has no ring
 * that could (`io` is NULL, or its ring has failed, or has no files). */
bool domi_file_try_read(domi_io *io, domi_file_try *attempt, int fd, void *data, uint32_t size,
                        uint64_t position);
bool domi_file_try_write(domi_io *io, domi_file_try *attempt, int fd, const void *data,
                         uint32_t size, uint64_t position);
bool domi_file_try_open(domi_io *io, domi_file_try *attempt, int directory, const char *path,
                        const struct open_how *how);

/* Called when a try has come back from the ring. */
void domi_file_try_complete(domi_io *io, domi_file_try *attempt, int result);

/* End all tries with `error`: the ring carries out nothing any more. */
void domi_file_tries_end(domi_io *io, int error);

#endif
