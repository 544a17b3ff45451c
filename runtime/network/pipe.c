/* The bytes of a pipe (pipe.h) lie in a ring buffer, which doubles when it is full. The buffer
 * sizes of both sides limit how many bytes a pipe holds. */
#include "runtime/network/pipe.h"

#include "base/memory.h"

#include <string.h>

#define CAPACITY_FIRST 256u /* size in bytes of the first ring buffer of a pipe */

/* Copy `size` bytes out of the pipe's ring buffer, beginning at the position `from`. */
static void copy_bytes_out_of_ring(const domi_net_pipe *pipe, uint64_t from, char *data,
                                   uint64_t size)
{
    uint32_t mask = pipe->capacity - 1;

    while (size != 0) {
        uint32_t at = (uint32_t)from & mask;
        uint64_t part = pipe->capacity - at < size ? pipe->capacity - at : size;

        memcpy(data, pipe->bytes + at, (size_t)part);
        data += part;
        from += part;
        size -= part;
    }
}

static void copy_bytes_into_ring(domi_net_pipe *pipe, uint64_t to, const char *data, uint64_t size)
{
    uint32_t mask = pipe->capacity - 1;

    while (size != 0) {
        uint32_t at = (uint32_t)to & mask;
        uint64_t part = pipe->capacity - at < size ? pipe->capacity - at : size;

        memcpy(pipe->bytes + at, data, (size_t)part);
        data += part;
        to += part;
        size -= part;
    }
}

static bool grow_ring_to_hold_bytes(domi_net_pipe *pipe, uint64_t bytes)
{
    uint64_t capacity = pipe->capacity != 0 ? pipe->capacity : CAPACITY_FIRST;

    while (capacity < bytes)
        capacity *= 2;
    if (capacity == pipe->capacity)
        return true;
    char *grown = domi_memory_new((size_t)capacity);
    if (grown == NULL)
        return false;
    domi_net_pipe now = *pipe;
    now.bytes = grown;
    now.capacity = (uint32_t)capacity;
    /* the bytes may wrap around the end of the old ring buffer, so they are copied piece by
     * piece */
    for (uint64_t at = pipe->head; at != pipe->tail;) {
        uint64_t left = pipe->capacity - (at & (pipe->capacity - 1));
        uint64_t part = left < pipe->tail - at ? left : pipe->tail - at;

        copy_bytes_into_ring(&now, at, pipe->bytes + (at & (pipe->capacity - 1)), part);
        at += part;
    }
    domi_memory_free(pipe->bytes);
    *pipe = now;
    return true;
}

bool domi_net_pipe_append_bytes(domi_net_pipe *pipe, const void *data, uint32_t size)
{
    if (!grow_ring_to_hold_bytes(pipe, pipe->tail - pipe->head + size))
        return false;
    copy_bytes_into_ring(pipe, pipe->tail, data, size);
    pipe->tail += size;
    pipe->taken += size;
    return true;
}

void domi_net_pipe_receive_bytes(domi_net_pipe *pipe, void *data, uint32_t size)
{
    copy_bytes_out_of_ring(pipe, pipe->head, data, size);
    pipe->head += size;
    pipe->received += size;
}

uint64_t domi_net_pipe_drop_readable(domi_net_pipe *pipe)
{
    uint64_t size = pipe->arrived - pipe->head;

    pipe->head = pipe->arrived;
    pipe->lost += size;
    return size;
}

uint64_t domi_net_pipe_drop_unsent(domi_net_pipe *pipe)
{
    uint64_t size = pipe->tail - pipe->departed;

    pipe->tail = pipe->departed;
    pipe->lost += size;
    return size;
}

uint64_t domi_net_pipe_drop_not_arrived(domi_net_pipe *pipe)
{
    uint64_t size = pipe->tail - pipe->arrived;

    pipe->tail = pipe->departed = pipe->arrived;
    pipe->lost += size;
    return size;
}

uint64_t domi_net_pipe_drop_all(domi_net_pipe *pipe)
{
    uint64_t size = pipe->tail - pipe->head;

    pipe->head = pipe->arrived = pipe->departed = pipe->tail;
    pipe->lost += size;
    return size;
}
