/* Tries: a try is one attempt at an operation on a file in the ring of a thread
 * (io/backend/backend.h: file_read, file_write, file_open). It never waits for a disk. It lies in
 * the object of its maker, which keeps it and the memory of the operation until `ended` is called.
 * Owner thread of the ring. */
#ifndef DOMI_IO_COMPLETIONS_FILE_H
#define DOMI_IO_COMPLETIONS_FILE_H

#include "io/resources/io.h"

typedef struct domi_file_try domi_file_try;

struct domi_file_try {
    domi_file_try *next;   /* next try in the list of the tries that are in the ring */
    domi_file_try **place; /* address of the pointer to this try in the list of tries */
    /* Called once for each begin of a try that returned true, with the result of the operation. If
     * the ring has failed (io->failed), the result is its error and says nothing about the file:
     * the operation may have happened. -ESHUTDOWN: the thread has ended. `ended` may begin the try
     * again. */
    void (*ended)(domi_io *io, domi_file_try *attempt, int result);
};

/* Begin a try of an operation on a file; its `ended` is set. Returns false, and does nothing, if
 * the ring of this thread cannot do it (`io` is NULL, or its ring has failed, or has no files). */
bool domi_file_begin_try_read(domi_io *io, domi_file_try *attempt, int fd, void *data,
                              uint32_t size, uint64_t position);
bool domi_file_begin_try_write(domi_io *io, domi_file_try *attempt, int fd, const void *data,
                               uint32_t size, uint64_t position);
bool domi_file_begin_try_open(domi_io *io, domi_file_try *attempt, int directory, const char *path,
                              const struct open_how *how);

/* Handle the result of a try of an operation on a file, which has come back from the ring. */
void domi_file_handle_try_result(domi_io *io, domi_file_try *attempt, int result);

/* End all tries of operations on files with `error`, because the ring carries nothing out any
 * more. */
void domi_file_fail_all_tries(domi_io *io, int error);

#endif
