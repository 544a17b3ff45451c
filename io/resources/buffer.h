/* Buffers: the thread's receive buffers, lent to channels and their actors, and heap buffers. */
#ifndef DOMI_IO_RESOURCES_BUFFER_H
#define DOMI_IO_RESOURCES_BUFFER_H

#include "io/resources/io.h"

#define DOMI_BUFFER_HEAP UINT32_MAX
#define DOMI_BUFFER_MAX  (1024u * 1024)

struct domus_buffer {
    domus_buffer *next;
    domi_io *io;
    char *data;
    uint32_t size;
    uint32_t index;       /* of the provided buffer; DOMI_BUFFER_HEAP */
    uint32_t holder_slot; /* the channel on whose share it counts */
    uint32_t holder_generation;
};

/* A heap buffer; NULL without memory. */
domus_buffer *domi_buffer_heap(domi_io *io, size_t size);

/* Give the provided buffer back to the kernel (published with the tick). */
void domi_buffer_recycle(domi_io *io, domus_buffer *buffer);

#endif
