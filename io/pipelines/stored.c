/* Turns the bytes that stages have made into buffers, and queues them (stored.h). */
#include "io/pipelines/stored.h"

#include "io/channels/crowd.h"
#include "io/channels/send.h"

#include <errno.h>
#include <string.h>

/* most bytes of one buffer that holds a part of a waiting answer */
#define COPY_MAX (256u * 1024)

/* Put a copy of `size` bytes into the list of buffers. Returns 0; -ENOMEM. */
static int store_copy_of_bytes(domi_io *io, domi_buffer_list *list, const char *bytes, size_t size)
{
    while (size != 0) {
        size_t part = size < COPY_MAX ? size : COPY_MAX;
        domus_buffer *buffer = domi_buffer_new_from_heap(io, part);
        if (buffer == NULL)
            return -ENOMEM;
        memcpy(buffer->data, bytes, part);
        domi_buffer_list_put(list, buffer);
        bytes += part;
        size -= part;
    }
    return 0;
}

/* Move the slice of an output piece into the list of buffers. Returns 0; -ENOMEM. */
static int store_slice_of_piece(domi_io *io, domi_buffer_list *list, domi_out_piece *piece)
{
    domus_buffer *buffer = domi_buffer_new_from_slice(io, piece->slice);

    if (buffer == NULL)
        return -ENOMEM;
    domi_buffer_list_put(list, buffer);
    piece->slice = (domus_slice){NULL, 0, 0};
    return 0;
}

void domi_stored_drop_buffers(domi_buffer_list *list)
{
    for (domus_buffer *buffer = domi_buffer_list_take(list); buffer != NULL;
         buffer = domi_buffer_list_take(list))
        domi_buffer_free_or_recycle(buffer);
}

/* Returns the bytes of further memory that the bytes of the scratch take when they are queued. */
static uint64_t count_further_bytes_of_output(const domi_io *io, const domi_out *out)
{
    uint64_t bytes = out->size;

    for (uint32_t i = 0; i < out->pieces_count; i++)
        bytes += domi_io_count_further_bytes_of_slice(io, out->pieces[i].slice);
    return bytes;
}

/* Turn the scratch (the thread's output of stages) into buffers. Its bytes are copied, its slices
 * move. Returns 0; -EPIPE; -ENOBUFS; -ENOMEM. */
int domi_stored_turn_output_into_buffers(const domus_channel *channel, domi_out *out,
                                         domi_buffer_list *list, uint64_t *ret_size)
{
    domi_io *io = channel->io;
    domi_out_cursor cursor = {0};
    domi_out_part part;
    uint64_t size = 0;
    int error = domi_channel_check_may_answer(channel, count_further_bytes_of_output(io, out));

    while (error == 0 && domi_out_get_next_part(out, &cursor, &part)) {
        size += part.size;
        error = part.of != NULL ? store_slice_of_piece(io, list, part.of)
                                : store_copy_of_bytes(io, list, part.bytes, part.size);
    }
    domi_out_remove_all(out, false);
    if (error != 0)
        domi_stored_drop_buffers(list);
    *ret_size = size;
    return error;
}

/* Queue the bytes of the scratch (the thread's output of stages) for sending. */
int domi_stored_queue_output(domus_channel *channel, domi_out *out)
{
    domi_buffer_list list = {NULL, NULL};
    uint64_t size;
    int error;

    if (DOMI_LIKELY(out->pieces_count == 0 && out->size <= COPY_MAX)) {
        error = domi_channel_write_copy_of_answer(channel, out->bytes, out->size);
        out->size = 0;
        return error;
    }
    error = domi_stored_turn_output_into_buffers(channel, out, &list, &size);
    return error != 0 ? error : domi_channel_write_list_of_buffers(channel, &list);
}

/* Let byte stages wrap the bytes of an answer that have waited, and send them. Returns as
 * domi_stored_queue_output(). */
int domi_stored_wrap_and_send(domi_pipe *pipe, domi_buffer_list *list)
{
    domus_buffer *buffer;
    int error = 0;

    while ((buffer = domi_buffer_list_take(list)) != NULL) {
        error = error != 0
                    ? error
                    : domi_wire_append_bytes_of_owner(pipe->wire, buffer->data, buffer->size);
        error = error != 0 ? error : domi_stored_queue_output(pipe->channel, pipe->wire->out);
        domi_buffer_free_or_recycle(buffer);
    }
    return error;
}
