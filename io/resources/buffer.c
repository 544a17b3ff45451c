/* Makes buffers and gives them back. A provided buffer has its descriptor in a table, so lending it
 * allocates nothing. A heap buffer is one allocation with its descriptor in front. */
#include "io/resources/buffer.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/stack.h"

#include <errno.h>
#include <string.h>

domus_buffer *domi_buffer_heap(domi_io *io, size_t size)
{
    domus_buffer *buffer = domi_memory_new_bytes(sizeof *buffer + size);

    if (buffer == NULL)
        return NULL;
    *buffer = (domus_buffer){.io = io,
                             .data = (char *)(buffer + 1),
                             .size = (uint32_t)size,
                             .index = DOMI_BUFFER_HEAP,
                             .holder_slot = UINT32_MAX};
    return buffer;
}

domus_buffer *domi_buffer_of_slice(domi_io *io, domus_slice slice)
{
    domus_buffer *buffer = domi_memory_new(sizeof *buffer);

    domi_queued_page *page = buffer != NULL ? domi_pages_join(&io->pages, slice.page) : NULL;

    if (page == NULL) {
        domi_memory_free(buffer);
        return NULL;
    }
    buffer->io = io;
    buffer->data = (char *)(uintptr_t)domus_slice_data(slice);
    buffer->page = page;
    buffer->size = slice.size;
    buffer->index = DOMI_BUFFER_SLICE;
    buffer->holder_slot = UINT32_MAX;
    return buffer;
}

/* Returns the begin of the memory of a provided buffer. */
static inline char *memory_of(const domi_io *io, const domus_buffer *buffer)
{
    return io->memory + (size_t)buffer->index * io->config->io.buffers.size_bytes;
}

uint32_t domi_buffer_front(const domus_buffer *buffer)
{
    const char *begin = buffer->index == DOMI_BUFFER_HEAP ? (const char *)(buffer + 1)
                                                          : memory_of(buffer->io, buffer);

    return (uint32_t)(buffer->data - begin);
}

void domi_buffer_recycle(domi_io *io, domus_buffer *buffer)
{
    DOMI_CHECK(buffer->index < io->config->io.buffers.count);
    buffer->data = memory_of(io, buffer);
    io->backend->give(io->ring, (uint16_t)buffer->index, buffer->data,
                      io->config->io.buffers.size_bytes);
    io->buffers_free++;
    io->unpublished++;
}

void domi_buffer_give_back(domus_buffer *buffer)
{
    if (buffer->index < DOMI_BUFFER_SLICE) {
        domi_buffer_recycle(buffer->io, buffer);
        return;
    }
    if (buffer->index == DOMI_BUFFER_SLICE) {
        domus_slice_free((domus_slice){buffer->page->page, 0, buffer->size});
        domi_pages_leave(&buffer->io->pages, buffer->page);
    }
    domi_memory_free(buffer);
}

int domus_buffer_new(domus_stack *stack, size_t size, domus_buffer **ret_buffer)
{
    if (size == 0 || size > DOMI_BUFFER_MAX)
        return -EMSGSIZE;
    domus_buffer *buffer = domi_buffer_heap(stack->manager->io, size);
    if (buffer == NULL)
        return -ENOMEM;
    memset(buffer->data, 0, size); /* what others have had there is nobody's business */
    *ret_buffer = buffer;
    return 0;
}

void *domus_buffer_data(domus_buffer *buffer)
{
    return buffer->data;
}

size_t domus_buffer_size(const domus_buffer *buffer)
{
    return buffer->size;
}

int domus_buffer_trim(domus_buffer *buffer, size_t size)
{
    if (size > buffer->size)
        return -EINVAL;
    buffer->size = (uint32_t)size;
    return 0;
}
