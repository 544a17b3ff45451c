/* Buffers: the provided receive buffers of a thread, which channels and their actors borrow, and
 * buffers from the heap. */
#ifndef DOMI_IO_RESOURCES_BUFFER_H
#define DOMI_IO_RESOURCES_BUFFER_H

#include "base/fifo.h"
#include "io/resources/io.h"

#include <domus/slice.h>

/* value of a buffer's `index` if it is no provided buffer but one from the heap */
#define DOMI_BUFFER_HEAP UINT32_MAX
/* value of a buffer's `index` if its bytes are those of a slice */
#define DOMI_BUFFER_SLICE (UINT32_MAX - 1)
#define DOMI_BUFFER_MAX   (1024u * 1024) /* most bytes of content of one buffer */

struct domus_buffer {
    domus_buffer *next; /* next buffer in the list in which this one stands */
    domi_io *io;        /* the io of the thread to which the buffer belongs */
    char *data; /* first byte of the buffer's content; in a datagram its head stands before it */
    /* destination of the buffer if it is a queued datagram; else NULL */
    struct domi_datagram *datagram;
    /* owner of the bytes if the buffer is made from a slice; else not used */
    domi_queued_page *page;
    uint32_t size; /* number of bytes of the buffer's content */
    /* number of the buffer among the provided ones; DOMI_BUFFER_HEAP: a heap buffer */
    uint32_t index;
    /* slot of the channel that holds the buffer; UINT32_MAX: no channel holds it */
    uint32_t holder_slot;
    /* generation of the holder's slot when that channel took the buffer */
    uint32_t holder_generation;
};

DOMI_FIFO(domi_buffer_list, domus_buffer, next);

/* Let the thread keep some small heap buffers, so that an answer costs no allocation;
 * domi_buffers_free_kept() ends that, and frees them. */
void domi_buffers_begin_to_keep_freed(domi_io *io);
void domi_buffers_free_kept(domi_io *io);

/* Make a heap buffer of `size` bytes, which are not zeroed. Returns NULL when there
 * is no memory. */
domus_buffer *domi_buffer_new_from_heap(domi_io *io, size_t size);

/* Make a buffer from a slice, which the buffer then owns. Returns NULL when there is no memory. */
domus_buffer *domi_buffer_new_from_slice(domi_io *io, domus_slice slice);

/* Returns the number of bytes in front of a buffer's content: the size of the head of a received
 * datagram; else 0. */
uint32_t domi_buffer_size_of_head(const domus_buffer *buffer);

/* Give a provided buffer back to the kernel, which sees it after the next publish. */
void domi_buffer_give_to_kernel(domi_io *io, domus_buffer *buffer);

/* Free a heap buffer, or give a provided one back to the kernel. Unlike domus_buffer_free()
 * (receive.c) this does not tell the channel that holds the buffer. */
void domi_buffer_free_or_recycle(domus_buffer *buffer);

#endif
