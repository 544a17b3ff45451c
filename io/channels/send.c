/* Sends the queued buffers of a channel. The buffers of one iteration leave in one operation for
 * each channel, and at most one send is in flight, because two could overtake each other. The
 * kernel reads the buffers until the completion. Small writes that follow each other are copied
 * together before, so that many of them leave in one send. A short send is followed by another one.
 * (MSG_WAITALL, which asks for all bytes, would after some tries give a send to a slow peer to a
 * kernel worker.) */
#include "io/channels/send.h"

#include "base/check.h"
#include "io/channels/crowd.h"
#include "io/channels/flush.h"
#include "io/channels/receive.h"

#include <errno.h>
#include <string.h>

/* size in bytes of the last queued buffer below which the next write may be copied behind it */
#define SMALL_BYTES 512u
#define ROOM_LEAST  512u /* size in bytes of the smallest buffer that is made for small writes */
/* size in bytes of the largest buffer for small writes: with its descriptor it takes 4 KiB */
#define ROOM_MOST 4032u

static_assert(ROOM_LEAST >= SMALL_BYTES, "there is room for the write that asked for it");

void domi_channel_mark_to_be_sent(domus_channel *channel)
{
    if (channel->dirty)
        return;
    channel->dirty = true;
    channel->next_dirty = channel->io->dirty;
    channel->io->dirty = channel;
}

/* Take the first buffer out of the channel's `outbound`. */
static domus_buffer *take_first_outbound_buffer(domus_channel *channel)
{
    domus_buffer *buffer = domi_buffer_list_take(&channel->outbound);

    domi_channel_uncount_queued_buffer(channel, &channel->cost, buffer);
    return buffer;
}

/* Returns 0 if the actor may still write bytes to the channel; -EPIPE if not any more. */
DOMI_INLINE int check_channel_is_writable(const domus_channel *channel)
{
    return channel->state != DOMI_CHANNEL_OPEN || channel->finished ? -EPIPE : 0;
}

/* Returns 0 if the channel may queue an answer that takes `size` bytes of further memory; -EPIPE;
 * -ENOBUFS. The bound sendMax does not hold here: pipelines get no request while more than sendHigh
 * bytes wait, or requestsMax requests are under way, but they have to answer the requests that they
 * have got. */
DOMI_INLINE int check_may_queue_answer(const domus_channel *channel, uint64_t size)
{
    int error = check_channel_is_writable(channel);

    return error == 0 && domi_channel_is_write_refused(channel, size) ? -ENOBUFS : error;
}

/* Returns 0 if the channel may queue `size` more bytes, which take `further` bytes of memory;
 * otherwise the error of domus_channel_write(). */
DOMI_INLINE int check_may_queue_write(const domus_channel *channel, size_t size, uint64_t further)
{
    int error = check_may_queue_answer(channel, further);

    return error == 0 && channel->queued_bytes + size > channel->settings->send_max_bytes ? -ENOBUFS
                                                                                          : error;
}

/* Put the buffer `bytes` behind the channel's queued ones. A small buffer may be joined by the next
 * small write. */
DOMI_INLINE void append_buffer_to_outbound(domus_channel *channel, domus_buffer *bytes)
{
    domi_buffer_list_put(&channel->outbound, bytes);
    channel->queued_bytes += bytes->size;
    channel->tail_room = bytes->size < SMALL_BYTES;
    domi_channel_count_queued_buffer(channel, &channel->cost, bytes);
}

/* Mark the channel as dirty, so that what was just queued is sent, let the peer's message that is
 * under way count as answered, and decide whether the channel still receives. */
DOMI_INLINE void schedule_send_and_decide_receive(domus_channel *channel)
{
    channel->answered_bytes = channel->received_bytes;
    domi_io_become_careful_if_much_queued(channel->io);
    if (!channel->sending)
        domi_channel_mark_to_be_sent(channel);
    domi_channel_decide_whether_to_receive(channel);
}

/* Queue a new buffer with room for at least `size` bytes, and for more of them the more is
 * queued. If one small buffer alone is queued, its bytes move to the new one. Returns false
 * without memory. */
static bool queue_buffer_with_room(domus_channel *channel, uint32_t size)
{
    domus_buffer *alone = NULL;
    uint64_t most = 2 * channel->queued_bytes + size;
    uint32_t room = most < ROOM_LEAST ? ROOM_LEAST : most > ROOM_MOST ? ROOM_MOST : (uint32_t)most;
    domus_buffer *joint = domi_buffer_new_from_heap(channel->io, room);

    if (joint == NULL)
        return false;
    joint->size = 0;
    /* Bytes of the last buffer may move only while it is not in flight. */
    if (channel->outbound.head == channel->outbound.tail && channel->queued_bytes + size <= room) {
        alone = take_first_outbound_buffer(channel);
        memcpy(joint->data, alone->data, alone->size);
        joint->size = alone->size;
        channel->queued_bytes = 0;
    }
    append_buffer_to_outbound(channel, joint);
    channel->tail_room = 1 + room - joint->size;
    domus_buffer_free(alone);
    return true;
}

/* Copy a small write behind the last queued buffer, or into a new one if that has no room or is in
 * flight. Without this each small write would take one of the DOMI_PIECES_MAX pieces of a send.
 * Returns false without memory. */
__attribute__((noinline)) static bool join_small_write_to_last(domus_channel *channel,
                                                               const void *data, uint32_t size)
{
    if (size >= channel->tail_room && !queue_buffer_with_room(channel, size))
        return false;
    domus_buffer *last = channel->outbound.tail;
    memcpy(last->data + last->size, data, size);
    last->size += size;
    channel->tail_room -= size;
    channel->queued_bytes += size;
    return true;
}

int domi_channel_write(domus_channel *channel, domus_buffer *bytes)
{
    bool is_shared = bytes->index == DOMI_BUFFER_SLICE && bytes->page->waiting != 0;
    int error = check_may_queue_write(channel, bytes->size, is_shared ? 0 : bytes->size);

    if (error != 0 || bytes->size == 0) {
        domus_buffer_free(bytes);
        return error;
    }
    if (channel->tail_room != 0 && bytes->size < SMALL_BYTES &&
        join_small_write_to_last(channel, bytes->data, bytes->size))
        domus_buffer_free(bytes);
    else
        append_buffer_to_outbound(channel, bytes);
    schedule_send_and_decide_receive(channel);
    return 0;
}

/* Returns a new buffer with a copy of the bytes; NULL without memory. */
static domus_buffer *copy_bytes_to_new_buffer(domus_channel *channel, const void *data, size_t size)
{
    domus_buffer *bytes = domi_buffer_new_from_heap(channel->io, size);

    if (bytes != NULL)
        memcpy(bytes->data, data, size);
    return bytes;
}

/* Queue a copy of `size` bytes (1..DOMI_BUFFER_MAX), which the caller has checked. Returns 0;
 * -ENOMEM. */
DOMI_INLINE int queue_copy_of_bytes(domus_channel *channel, const void *data, size_t size)
{
    if (channel->tail_room == 0 || size >= SMALL_BYTES ||
        !join_small_write_to_last(channel, data, (uint32_t)size)) {
        domus_buffer *bytes = copy_bytes_to_new_buffer(channel, data, size);
        if (bytes == NULL)
            return -ENOMEM;
        append_buffer_to_outbound(channel, bytes);
    }
    schedule_send_and_decide_receive(channel);
    return 0;
}

static int append_bytes_to_special_channel(domus_channel *channel, const void *data, size_t size)
{
    domus_buffer *bytes = copy_bytes_to_new_buffer(channel, data, size);

    return bytes != NULL ? domi_channel_get_special_functions(channel)->write(channel, bytes)
                         : -ENOMEM;
}

int domi_channel_append_copy(domus_channel *channel, const void *data, size_t size)
{
    if (size > DOMI_BUFFER_MAX)
        return -EMSGSIZE;
    if (DOMI_UNLIKELY(channel->special != NULL))
        return append_bytes_to_special_channel(channel, data, size);
    int error = check_may_queue_write(channel, size, size);
    return error != 0 || size == 0 ? error : queue_copy_of_bytes(channel, data, size);
}

int domi_channel_check_may_write(const domus_channel *channel, uint64_t size)
{
    return check_may_queue_write(channel, (size_t)size, size);
}

int domi_channel_check_may_answer(const domus_channel *channel, uint64_t size)
{
    return check_may_queue_answer(channel, size);
}

int domi_channel_write_list_of_buffers(domus_channel *channel, domi_buffer_list *bytes)
{
    int error = check_channel_is_writable(channel);

    for (domus_buffer *buffer = domi_buffer_list_take(bytes); buffer != NULL;
         buffer = domi_buffer_list_take(bytes)) {
        if (error == 0)
            append_buffer_to_outbound(channel, buffer);
        else
            domi_buffer_free_or_recycle(buffer);
    }
    if (error == 0)
        schedule_send_and_decide_receive(channel);
    return error;
}

int domi_channel_write_copy_of_answer(domus_channel *channel, const void *data, size_t size)
{
    int error = check_may_queue_answer(channel, size);

    return error != 0 || size == 0 ? error : queue_copy_of_bytes(channel, data, size);
}

/* Fill `pieces` with the addresses of the channel's queued buffers. Returns the number of
 * pieces. */
static uint32_t gather_queued_pieces(const domus_channel *channel,
                                     struct iovec pieces[DOMI_PIECES_MAX])
{
    uint32_t count = 0;

    for (const domus_buffer *buffer = channel->outbound.head;
         buffer != NULL && count < DOMI_PIECES_MAX; buffer = buffer->next) {
        uint32_t offset = count == 0 ? channel->head_offset : 0;
        pieces[count++] = (struct iovec){
            .iov_base = buffer->data + offset,
            .iov_len = buffer->size - offset,
        };
    }
    return count;
}

/* Queue one send of several buffers of the channel. */
__attribute__((noinline)) static void send_gathered_buffers(const domus_channel *channel,
                                                            uint64_t data)
{
    const domi_io *io = channel->io;
    struct iovec pieces[DOMI_PIECES_MAX];
    struct msghdr message = {.msg_iov = pieces};

    /* the field msg_iovlen is a size_t in glibc and an int in musl */
    message.msg_iovlen = (__typeof__(message.msg_iovlen))gather_queued_pieces(channel, pieces);
    io->backend->send_message(io->ring, channel->fd, &message, data);
}

/* Arm the timer for the time-out of a send. One timer serves all time-outs of a channel, and fires
 * at the earliest. When it is armed for one send, all later sends are due later, so each later send
 * costs only one comparison. */
static void arm_send_timeout(domus_channel *channel)
{
    domi_wheel_node *node = &channel->timer.node;
    uint64_t timeout_ns = channel->settings->send_timeout_ns;
    uint64_t due_ns = channel->send_ns + timeout_ns;

    if (timeout_ns == 0 || (domi_wheel_is_armed(node) && node->expires_ns <= due_ns))
        return;
    domi_wheel_disarm_node(&channel->io->wheel, node);
    domi_wheel_arm_node(&channel->io->wheel, node, due_ns);
}

void domi_channel_send_waiting_bytes(domus_channel *channel)
{
    domi_io *io = channel->io;

    if (channel->sending || channel->outbound.head == NULL ||
        channel->state >= DOMI_CHANNEL_CLOSING)
        return;
    if (DOMI_UNLIKELY(channel->special != NULL)) {
        domi_channel_get_special_functions(channel)->send(channel);
        return;
    }

    uint64_t data = domi_op_user_data(DOMI_OP_SEND, channel->slot_generation, channel->slot);
    const domus_buffer *head = channel->outbound.head;
    /* the kernel reads the buffers during the send, so nothing may be copied into them */
    channel->tail_room = 0;
    channel->sending = true;
    channel->send_ns = io->manager->now_ns;
    arm_send_timeout(channel);
    if (head->next == NULL)
        io->backend->send(io->ring, channel->fd, head->data + channel->head_offset,
                          head->size - channel->head_offset, data);
    else
        send_gathered_buffers(channel, data);
}

void domi_channel_drop_unsent_bytes(domus_channel *channel)
{
    DOMI_CHECK(!channel->sending);
    if (channel->special != NULL)
        domi_channel_get_special_functions(channel)->forget_outbound(channel);
    channel->unsent_bytes += channel->queued_bytes;
    while (channel->outbound.head != NULL)
        domus_buffer_free(take_first_outbound_buffer(channel));
    channel->queued_bytes = 0;
    channel->head_offset = 0;
    channel->tail_room = 0;
    if (channel->high)
        domi_channel_set_much_is_queued(channel, false);
}

void domi_channel_free_sent_buffers(domus_channel *channel, uint32_t size)
{
    channel->queued_bytes -= size;
    while (size != 0) {
        domus_buffer *buffer = channel->outbound.head;
        uint32_t left = buffer->size - channel->head_offset;

        if (size < left) {
            channel->head_offset += size;
            return;
        }
        size -= left;
        channel->head_offset = 0;
        domus_buffer_free(take_first_outbound_buffer(channel));
    }
}
