/* The io_uring of a thread, for the two files that use liburing: uring_open.c makes it, and uring.c
 * submits and reaps. Owner thread, except domi_uring_open(). */
#ifndef DOMI_IO_BACKEND_URING_RING_H
#define DOMI_IO_BACKEND_URING_RING_H

#include "io/backend/direct.h"
#include "io/backend/gathered.h"

#include <liburing.h>

#define DOMI_URING_BUFFERS 0 /* group id of the provided buffers in the io_uring of each thread */

typedef struct domi_uring {
    struct io_uring uring; /* liburing's part of the thread's ring */
    /* the ring of provided buffers, by which buffers are given to the kernel */
    struct io_uring_buf_ring *buffers;
    size_t buffers_bytes;  /* number of bytes that are mapped for the ring of provided buffers */
    uint32_t buffers_mask; /* number of places in the ring of provided buffers, minus 1 */
    uint32_t given;        /* number of provided buffers that were given since the last publish */
    uint32_t enter_flags;  /* flags that each io_uring_enter(2) of this ring gets */
    bool registered;       /* the ring's descriptor is registered, so an enter uses its index */
    int failed;            /* the errno that every enter of this ring returns; 0: the ring works */
    /* Places for the messages of gathered sends, one for each entry of the submission queue. When
     * the kernel takes an entry, it copies the message (IORING_FEAT_SUBMIT_STABLE, since 5.5), so
     * message and entry are used again together. */
    domi_gathered *gathered;
    domi_direct direct; /* the sends that are made without the ring (direct.h) */
    /* submission entry for operations on a ring that has failed; the kernel never sees it */
    struct io_uring_sqe nowhere;
} domi_uring;

/* Implement the entries `open`, `start` and `close` of the backend's table (backend.h) for
 * io_uring. */
int domi_uring_open(const domus_config *config, char *error, size_t error_size, void **ret_ring);
int domi_uring_start(void *ring);
void domi_uring_close(void *ring);

#endif
