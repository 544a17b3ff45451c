/* Receives, accepts and sends on descriptors that epoll has reported as ready (epoll_ready.h).
 * Receives of streams call the kernel directly, as sends do (output.h). */
#include "io/backend/epoll_ready.h"

#include "base/memory.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PIECES_MAX      8  /* most pieces that a receive brings for one report of epoll */
#define CONNECTIONS_MAX 16 /* most connections that are accepted for one report of epoll */

void domi_epoll_queue_completion(domi_epoll *ring, uint64_t user_data, int result, uint32_t flags,
                                 uint16_t buffer)
{
    if (!domi_completion_queue_put(&ring->queue, (domi_completion){.user_data = user_data,
                                                                   .result = result,
                                                                   .flags = (uint16_t)flags,
                                                                   .buffer = buffer}))
        ring->failed = -ENOMEM;
}

void domi_epoll_end_input_operation(domi_epoll *ring, domi_interest *interest, int result)
{
    uint64_t user_data = interest->input_data;

    interest->input_data = 0;
    domi_epoll_queue_completion(ring, user_data, result, 0, 0);
}

void domi_epoll_end_waiting_send(domi_epoll *ring, domi_interest *interest, int result)
{
    uint64_t user_data = interest->output_data;

    interest->output_data = 0;
    domi_epoll_queue_completion(ring, user_data, result, 0, 0);
}

/* Returns whether a provided buffer is free for the receive on a descriptor; if none is, ends that
 * receive. */
static bool ensure_buffer_or_end_receive(domi_epoll *ring, domi_interest *interest)
{
    if (ring->free_count == 0) {
        domi_epoll_end_input_operation(ring, interest, -ENOBUFS);
        return false;
    }
    return true;
}

/* Receive once from a stream socket, into at most `count` free buffers, and complete one piece
 * for each filled buffer. Returns whether the last buffer was filled, so that there may be more
 * bytes. */
static bool receive_into_buffers(domi_epoll *ring, domi_interest *interest, uint32_t count)
{
    struct iovec vector[PIECES_MAX];
    struct msghdr message = {.msg_iov = vector};
    uint32_t used = 0;
    size_t room = 0;

    for (; used < count && used < ring->free_count; used++) {
        uint16_t index = ring->free[ring->free_count - 1 - used];
        const domi_epoll_buffer *buffer = &ring->buffers[index];
        vector[used] = (struct iovec){buffer->data, buffer->size};
        room += buffer->size;
    }
    /* the field msg_iovlen is an int in musl */
    message.msg_iovlen = (__typeof__(message.msg_iovlen))used;
    ssize_t size = used == 1 ? syscall(SYS_recvfrom, interest->fd, vector[0].iov_base, room,
                                       MSG_DONTWAIT, NULL, NULL)
                             : syscall(SYS_recvmsg, interest->fd, &message, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (size <= 0) {
        domi_epoll_end_input_operation(ring, interest, size < 0 ? -errno : 0);
        return false;
    }
    bool once = interest->input == DOMI_INPUT_RECEIVE_ONCE;
    bool filled = (size_t)size == room;
    interest->fills_buffers = (size_t)size >= vector[0].iov_len;
    for (uint32_t i = 0; i < used && size > 0; i++) {
        const struct iovec *piece = &vector[i];
        int part = size < (ssize_t)piece->iov_len ? (int)size : (int)piece->iov_len;
        domi_epoll_queue_completion(ring, interest->input_data, part,
                                    once ? DOMI_BUFFERED : DOMI_BUFFERED | DOMI_MORE,
                                    ring->free[--ring->free_count]);
        size -= part;
    }
    if (once)
        interest->input_data = 0;
    return filled && !once;
}

/* Receive from a stream socket that epoll has reported as readable. A filled buffer mostly means
 * that more bytes wait, and a call for each piece would cost more than a copy: so one further call
 * receives several pieces. A connection that fills buffers again and again, because its messages
 * have just their size, gets several buffers in its first call, which saves a second call that
 * finds nothing. */
static void receive_from_readable_stream(domi_epoll *ring, domi_interest *interest)
{
    bool several = interest->fills_buffers && interest->input != DOMI_INPUT_RECEIVE_ONCE;

    if (!ensure_buffer_or_end_receive(ring, interest))
        return;
    if (receive_into_buffers(ring, interest, several ? PIECES_MAX : 1) && !several &&
        ensure_buffer_or_end_receive(ring, interest))
        (void)receive_into_buffers(ring, interest, PIECES_MAX - 1);
}

/* Receive a datagram into a buffer, with its domi_datagram_head in front. Returns the number of
 * bytes of head and datagram; a negative errno. */
static int receive_datagram(int fd, const domi_epoll_buffer *buffer)
{
    domi_datagram_head head;
    struct iovec rest = {(char *)buffer->data + sizeof head, buffer->size - sizeof head};
    struct msghdr message = {
        .msg_name = head.name,
        .msg_namelen = sizeof head.name,
        .msg_iov = &rest,
        .msg_iovlen = 1,
    };
    ssize_t size = recvmsg(fd, &message, MSG_DONTWAIT);

    if (size < 0)
        return -errno;
    head.name_size = message.msg_namelen;
    head.control_size = 0;
    head.size = (uint32_t)size;
    head.flags = (uint32_t)message.msg_flags;
    size_t used = head.name_size < sizeof head.name ? head.name_size : sizeof head.name;
    memcpy(buffer->data, &head, offsetof(domi_datagram_head, name) + used);
    return (int)(sizeof head + (size_t)size);
}

static void receive_datagrams(domi_epoll *ring, domi_interest *interest)
{
    for (int count = 0; count < PIECES_MAX; count++) {
        if (!ensure_buffer_or_end_receive(ring, interest))
            return;
        uint16_t index = ring->free[ring->free_count - 1];
        int result = receive_datagram(interest->fd, &ring->buffers[index]);
        if (result == -EAGAIN || result == -EINTR)
            return;
        if (result < 0) {
            domi_epoll_end_input_operation(ring, interest, result);
            return;
        }
        ring->free_count--;
        domi_epoll_queue_completion(ring, interest->input_data, result, DOMI_BUFFERED | DOMI_MORE,
                                    index);
    }
}

static void accept_connections(domi_epoll *ring, domi_interest *interest)
{
    for (int count = 0; count < CONNECTIONS_MAX; count++) {
        int fd = accept4(interest->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            domi_epoll_queue_completion(ring, interest->input_data, fd, DOMI_MORE, 0);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            domi_epoll_end_input_operation(ring, interest, -errno);
            return;
        }
    }
}

static void handle_readable_descriptor(domi_epoll *ring, domi_interest *interest, uint32_t events)
{
    switch ((domi_input)interest->input) {
    case DOMI_INPUT_ACCEPT:
        accept_connections(ring, interest);
        break;
    case DOMI_INPUT_RECEIVE:
    case DOMI_INPUT_RECEIVE_ONCE:
        receive_from_readable_stream(ring, interest);
        break;
    case DOMI_INPUT_DATAGRAMS:
        receive_datagrams(ring, interest);
        break;
    case DOMI_INPUT_POLL:
        domi_epoll_queue_completion(ring, interest->input_data, (int)events, DOMI_MORE, 0);
        break;
    }
}

static void continue_waiting_send(domi_epoll *ring, domi_interest *interest)
{
    bool is_gathered = interest->output.data == NULL;
    int result = is_gathered ? -EAGAIN : domi_output_try_send(interest->fd, &interest->output);

    if (result == -EAGAIN && !is_gathered)
        return;
    domi_epoll_end_waiting_send(ring, interest, result);
}

static void complete_one_shot_polls(domi_epoll *ring, domi_interest *interest, uint32_t events)
{
    domi_poll **place = &interest->polls;

    while (*place != NULL) {
        uint32_t holds = events & ((*place)->events | EPOLLERR | EPOLLHUP);
        if (holds == 0) {
            place = &(*place)->next;
            continue;
        }
        domi_epoll_queue_completion(ring, (*place)->user_data, (int)holds, 0, 0);
        domi_interest_remove_one_shot_poll(&ring->interests, place);
    }
}

static void handle_epoll_report(domi_epoll *ring, const struct epoll_event *event)
{
    domi_interest *interest = domi_interest_find_reported(&ring->interests, event->data.u64);
    uint32_t events = event->events;

    if (interest == NULL)
        return;
    bool in = interest->input_data != 0;
    bool out = interest->output_data != 0;
    bool is_unwanted =
        ((events & EPOLLIN) != 0 && !in) || ((events & EPOLLOUT) != 0 && !out) || (!in && !out);
    domi_interest_record_epoll_report(interest);
    if (in && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0)
        handle_readable_descriptor(ring, interest, events);
    if (out && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0)
        continue_waiting_send(ring, interest);
    if (interest->polls != NULL)
        complete_one_shot_polls(ring, interest, events);
    /* A one-shot registration with epoll reports once, so it is made again if polls still wait for
     * the descriptor. If that fails, either the start of the polls has met the same error, or the
     * descriptor is closed. */
    if (is_unwanted || interest->told == EPOLLONESHOT)
        (void)domi_interest_register_exact_events(&ring->interests, interest);
}

static int wait_for_epoll_reports(domi_epoll *ring, uint64_t timeout_ns)
{
    const struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / 1000000000u),
        .tv_nsec = (long)(timeout_ns % 1000000000u),
    };
    int fd = ring->interests.epoll_fd;

    if (timeout_ns != 0 && !ring->waits_in_ms) {
        int count = (int)syscall(SYS_epoll_pwait2, fd, ring->reports, DOMI_EPOLL_REPORTS_MAX,
                                 &timeout, NULL, (size_t)0);
        if (count >= 0 || (errno != ENOSYS && errno != EPERM))
            return count;
        ring->waits_in_ms = true;
    }
    uint64_t ms = (timeout_ns + 999999) / 1000000;
    return epoll_wait(fd, ring->reports, DOMI_EPOLL_REPORTS_MAX,
                      ms < INT32_MAX ? (int)ms : INT32_MAX);
}

void domi_epoll_fetch_reports(domi_epoll *ring, uint64_t timeout_ns)
{
    int count = wait_for_epoll_reports(ring, timeout_ns);

    ring->interests.has_told = false;
    if (count < 0 && errno != EINTR)
        ring->failed = -errno;
    ring->report_next = 0;
    ring->report_count = count > 0 ? (uint32_t)count : 0;
}

void domi_epoll_handle_reports(domi_epoll *ring)
{
    while (ring->report_next != ring->report_count &&
           domi_completion_queue_count(&ring->queue) < ring->full)
        handle_epoll_report(ring, &ring->reports[ring->report_next++]);
}
