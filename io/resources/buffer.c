/* Makes buffers and gives them back. A provided buffer has its descriptor in a table, so it can be
 * lent without an allocation. A heap buffer is one allocation with its descriptor in front. */
#include "io/resources/buffer.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/ringless.h"
#include "house/conversation/stack.h"

#include <errno.h>
#include <string.h>

#define KEPT_MAX   64u   /* most heap buffers that a thread keeps for later answers */
#define KEPT_BYTES 1024u /* size in bytes of the largest heap buffer that is kept */
/* most bytes by which a kept buffer may be larger than its next user needs */
#define SPARE_MAX 64u

void domi_buffers_begin_to_keep_freed(domi_io *io)
{
/* under the address sanitizer buffers are not kept, because it sees a use after free only if
 * memory is freed */
#ifndef __SANITIZE_ADDRESS__
    io->kept_room = KEPT_MAX;
#else
    (void)io;
#endif
}

void domi_buffers_free_kept(domi_io *io)
{
    io->kept_room = 0;
    for (int i = 0; i < 2; i++) {
        while (io->kept[i] != NULL) {
            domus_buffer *buffer = io->kept[i];
            io->kept[i] = buffer->next;
            domi_memory_free(buffer);
        }
    }
}

/* Returns memory for a heap buffer with room for `size` bytes behind its descriptor. Answers mostly
 * have the size of the last one, so only the buffer that was kept last is tried. */
DOMI_INLINE domus_buffer *take_memory_for_heap_buffer(domi_io *io, size_t size, bool of_slice)
{
    domus_buffer *buffer = io->kept[of_slice];
    size_t bytes = DOMI_MEMORY_HEAD + sizeof *buffer + size;

    if (buffer == NULL || domi_memory_bytes_of_block(buffer) < bytes ||
        domi_memory_bytes_of_block(buffer) > bytes + SPARE_MAX)
        return domi_memory_new_bytes(sizeof *buffer + size);
    io->kept[of_slice] = buffer->next;
    io->kept_room++;
    return buffer;
}

/* Keep a freed heap buffer for the next answer, or free its memory. */
static void keep_or_free_heap_buffer(domi_io *io, domus_buffer *buffer)
{
    bool of_slice = buffer->index == DOMI_BUFFER_SLICE;

    if (io->kept_room == 0 || domi_memory_bytes_of_block(buffer) > KEPT_BYTES) {
        domi_memory_free(buffer);
        return;
    }
    buffer->next = io->kept[of_slice];
    io->kept[of_slice] = buffer;
    io->kept_room--;
}

domus_buffer *domi_buffer_new_from_heap(domi_io *io, size_t size)
{
    domus_buffer *buffer = take_memory_for_heap_buffer(io, size, false);

    if (buffer == NULL)
        return NULL;
    *buffer = (domus_buffer){.io = io,
                             .data = (char *)(buffer + 1),
                             .size = (uint32_t)size,
                             .index = DOMI_BUFFER_HEAP,
                             .holder_slot = UINT32_MAX};
    return buffer;
}

domus_buffer *domi_buffer_new_from_slice(domi_io *io, domus_slice slice)
{
    domus_buffer *buffer = take_memory_for_heap_buffer(io, 0, true);

    domi_queued_page *page =
        buffer != NULL ? domi_pages_add_buffer_of_page(&io->pages, slice.page) : NULL;

    if (page == NULL) {
        domi_memory_free(buffer);
        return NULL;
    }
    *buffer = (domus_buffer){.io = io,
                             .data = (char *)(uintptr_t)domus_slice_data(slice),
                             .page = page,
                             .size = slice.size,
                             .index = DOMI_BUFFER_SLICE,
                             .holder_slot = UINT32_MAX};
    return buffer;
}

/* Returns the start of the memory of a provided buffer; its content may begin behind that. */
static inline char *get_memory_of_buffer(const domi_io *io, const domus_buffer *buffer)
{
    return io->memory + (size_t)buffer->index * io->config->io.buffers.size_bytes;
}

uint32_t domi_buffer_size_of_head(const domus_buffer *buffer)
{
    const char *begin = buffer->index == DOMI_BUFFER_HEAP
                            ? (const char *)(buffer + 1)
                            : get_memory_of_buffer(buffer->io, buffer);

    return (uint32_t)(buffer->data - begin);
}

void domi_buffer_give_to_kernel(domi_io *io, domus_buffer *buffer)
{
    DOMI_CHECK(buffer->index < io->config->io.buffers.count);
    buffer->data = get_memory_of_buffer(io, buffer);
    io->backend->give(io->ring, (uint16_t)buffer->index, buffer->data,
                      io->config->io.buffers.size_bytes);
    domi_counter_add(&io->buffers_used, UINT64_MAX);
    io->unpublished++;
}

void domi_buffer_free_or_recycle(domus_buffer *buffer)
{
    if (buffer->index < DOMI_BUFFER_SLICE) {
        domi_buffer_give_to_kernel(buffer->io, buffer);
        return;
    }
    if (buffer->index == DOMI_BUFFER_SLICE) {
        domus_slice_free((domus_slice){buffer->page->page, 0, buffer->size});
        domi_pages_remove_buffer_of_page(&buffer->io->pages, buffer->page);
    }
    keep_or_free_heap_buffer(buffer->io, buffer);
}

int domus_buffer_new(domus_stack *stack, size_t size, domus_buffer **ret_buffer)
{
    if (size == 0 || size > DOMI_BUFFER_MAX)
        return -EMSGSIZE;
    if (stack->manager->io == NULL)
        return domi_refuse_verb_without_ring(stack);
    domus_buffer *buffer = domi_buffer_new_from_heap(stack->manager->io, size);
    if (buffer == NULL)
        return -ENOMEM;
    memset(buffer->data, 0, size); /* the new buffer must not show the bytes of an earlier user */
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
