/* Buffers: the provided receive buffers of a thread, which channels and their actors borrow, and
 * buffers from the heap. */
#ifndef DOMI_IO_RESOURCES_BUFFER_H
#define DOMI_IO_RESOURCES_BUFFER_H

#include "base/fifo.h"
#include "io/resources/io.h"

#include <domus/slice.h>

#define DOMI_BUFFER_HEAP UINT32_MAX /* the `index` of a buffer that is not a provided one */
#define DOMI_BUFFER_SLICE                                                                          \
    (UINT32_MAX - 1)                   /* the `index` of one whose bytes are those of a slice      \
                                        */
#define DOMI_BUFFER_MAX (1024u * 1024) /* most bytes of one buffer */

struct domus_buffer {
    domus_buffer *next; /* links in the list that holds the buffer */
    domi_io *io;        /* the io that owns the buffer */
    char *data;         /* the first byte of the content; before it the head of a datagram */
    struct domi_datagram *datagram; /* for a queued datagram: its destination; else NULL */
    domi_queued_page *page; /* for a buffer of a slice: the owner of the bytes; else not used */
    uint32_t size;          /* bytes of content */
    uint32_t index;         /* number of the provided buffer; DOMI_BUFFER_HEAP: a heap buffer */
    uint32_t holder_slot;   /* the slot of the channel that holds the buffer; UINT32_MAX: none */
    uint32_t holder_generation; /* generation of that slot when the channel took the buffer */
};

DOMI_FIFO(domi_buffer_list, domus_buffer, next);

/* A thread keeps some small heap buffers, so that an answer costs no allocation. From here on it
 * does, or no more, and frees them. */
void domi_buffers_keep(domi_io *io);
void domi_buffers_forget(domi_io *io);

/* Make a heap buffer of `size` bytes, which are not zeroed. Returns NULL when there
 * is no memory. */
domus_buffer *domi_buffer_heap(domi_io *io, size_t size);

/* Make a buffer of a slice, which it owns then. Returns NULL when there is no memory. */
domus_buffer *domi_buffer_of_slice(domi_io *io, domus_slice slice);

/* Returns the bytes in front of the content: the size of the head of a received
 * datagram; else 0. */
uint32_t domi_buffer_front(const domus_buffer *buffer);

/* Give a provided buffer back to the kernel, which sees it after the next publish. */
void domi_buffer_recycle(domi_io *io, domus_buffer *buffer);

/* Free a heap buffer, or recycle a provided one. The channel that holds it is not told, as
 * domus_buffer_free() does (receive.c). */
void domi_buffer_give_back(domus_buffer *buffer);

#endif
