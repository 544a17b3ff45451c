/* The epoll backend, for machines that forbid io_uring: it turns readiness into completions.
 *
 * Operations are queued, and the next enter carries them out in their order. A send is tried at
 * once, and waits only if the socket is full; all other operations wait for readiness (interest.h).
 * Then the enter asks the kernel which descriptors are ready, and handles a bounded number of them
 * (epoll_ready.h). A completion is shown by the enter that brought it, not before. Owner thread,
 * except open. */
#include "io/backend/backend.h"

#include "base/check.h"
#include "base/memory.h"
#include "io/backend/epoll_file.h"
#include "io/backend/epoll_ready.h"
#include "io/backend/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

enum kind {
    ACCEPT,
    RECEIVE,
    RECEIVE_ONCE,
    POLL,
    POLL_ONCE,
    SEND,
    RECEIVE_DATAGRAMS,
    SEND_DATAGRAM,
    CANCEL,
};

/* An operation that is queued for the next enter, and not carried out yet. */
struct domi_epoll_entry {
    uint64_t user_data; /* number that comes back with the operation's completion */
    union {
        /* for a cancel: the user_data of the operation that has to be cancelled */
        uint64_t target;
        domi_output output;         /* the bytes that a send has to write */
        domi_datagram_out datagram; /* the datagram that a send of a datagram has to send */
    };
    enum kind kind;  /* kind of the queued operation */
    int fd;          /* the descriptor on which the operation acts */
    uint32_t events; /* the events for which a one-shot poll waits */
};

static int begin_input_operation(domi_epoll *ring, const domi_epoll_entry *entry, domi_input input)
{
    domi_interest *interest;
    int result = domi_interest_find_or_make(&ring->interests, entry->fd, &interest);

    if (result != 0)
        return result;
    DOMI_CHECK(interest->input_data == 0);
    interest->input_data = entry->user_data;
    interest->input = (uint8_t)input;
    result = domi_interest_register_if_events_grow(&ring->interests, interest);
    if (result != 0)
        interest->input_data = 0;
    return result == -EPERM ? -ENOTSOCK : result;
}

/* Begin an accept on a listener. An accept has no flag that keeps it from waiting, so the listener
 * itself is made non-blocking. */
static int begin_accept(domi_epoll *ring, const domi_epoll_entry *entry)
{
    int flags = fcntl(entry->fd, F_GETFL);

    if (flags < 0 ||
        ((flags & O_NONBLOCK) == 0 && fcntl(entry->fd, F_SETFL, flags | O_NONBLOCK) != 0))
        return -errno;
    return begin_input_operation(ring, entry, DOMI_INPUT_ACCEPT);
}

/* Begin a one-shot poll of a descriptor. Returns 0 if the poll has to wait; otherwise its
 * result. */
static int begin_one_shot_poll(domi_epoll *ring, const domi_epoll_entry *entry)
{
    domi_interest *interest;
    int result = domi_interest_find_or_make(&ring->interests, entry->fd, &interest);

    if (result == 0)
        result = domi_interest_add_one_shot_poll(&ring->interests, interest, entry->events,
                                                 entry->user_data);
    if (result == -EPERM) /* a file that epoll refuses to watch is always ready */
        return (int)(entry->events & (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM));
    return result;
}

/* Try a send on a stream socket. Returns 0 if the send has to wait for room; otherwise its result,
 * which is never 0. */
static int try_send_or_wait_for_room(domi_epoll *ring, const domi_epoll_entry *entry)
{
    domi_interest *interest;
    int result = domi_output_try_send(entry->fd, &entry->output);

    if (result != -EAGAIN)
        return result;
    result = domi_interest_find_or_make(&ring->interests, entry->fd, &interest);
    if (result != 0)
        return result;
    DOMI_CHECK(interest->output_data == 0);
    interest->output_data = entry->user_data;
    interest->output = entry->output;
    /* A waiting send of several pieces forgets them, because the next operations use their memory
     * again: when there is room, it completes with -EAGAIN. */
    interest->output.message = NULL;
    result = domi_interest_register_if_events_grow(&ring->interests, interest);
    if (result != 0)
        interest->output_data = 0;
    return result;
}

/* Send a datagram, and complete the operation. A send of a datagram never waits, and an empty
 * datagram is sent, too, so it always completes. */
static void send_datagram(domi_epoll *ring, const domi_epoll_entry *entry)
{
    const domi_datagram_out *datagram = &entry->datagram;
    ssize_t size = sendto(entry->fd, datagram->data, datagram->size, MSG_NOSIGNAL | MSG_DONTWAIT,
                          datagram->address, datagram->address_size);

    domi_epoll_queue_completion(ring, entry->user_data, size >= 0 ? (int)size : -errno, 0, 0);
}

/* End all operations on a descriptor that have the user_data `target`. Returns their number. */
static int cancel_operations_with_user_data(domi_epoll *ring, domi_interest *interest,
                                            uint64_t target)
{
    int count = 0;

    if (interest->input_data == target) {
        domi_epoll_end_input_operation(ring, interest, -ECANCELED);
        count++;
    }
    if (interest->output_data == target) {
        domi_epoll_end_waiting_send(ring, interest, -ECANCELED);
        count++;
    }
    for (domi_poll **place = &interest->polls; *place != NULL;) {
        if ((*place)->user_data != target) {
            place = &(*place)->next;
            continue;
        }
        domi_epoll_queue_completion(ring, (*place)->user_data, -ECANCELED, 0, 0);
        domi_interest_remove_one_shot_poll(&ring->interests, place);
        count++;
    }
    return count;
}

/* Carry out a queued cancel. Its completion comes before the completions of the operations that it
 * ended, as in io_uring, but its result is known only after them. */
static void carry_out_queued_cancel(domi_epoll *ring, const domi_epoll_entry *entry)
{
    domi_interest *interest = domi_interest_find(&ring->interests, entry->fd);
    uint32_t place = ring->queue.tail;

    domi_epoll_queue_completion(ring, entry->user_data, -ENOENT, 0, 0);
    if (interest == NULL)
        return;
    bool is_lazy = interest->polls == NULL && interest->input != DOMI_INPUT_POLL;
    int count = cancel_operations_with_user_data(ring, interest, entry->target);
    if (!is_lazy)
        (void)domi_interest_register_exact_events(&ring->interests, interest);
    if (count != 0 && ring->failed == 0)
        domi_completion_queue_get_at(&ring->queue, place)->result = 0;
}

/* Carry out one operation that was queued for this enter. */
static void carry_out_queued_operation(domi_epoll *ring, const domi_epoll_entry *entry)
{
    int result = 0;

    switch (entry->kind) {
    case ACCEPT:
        result = begin_accept(ring, entry);
        break;
    case RECEIVE:
        result = begin_input_operation(ring, entry, DOMI_INPUT_RECEIVE);
        break;
    case RECEIVE_ONCE:
        result = begin_input_operation(ring, entry, DOMI_INPUT_RECEIVE_ONCE);
        break;
    case POLL:
        result = begin_input_operation(ring, entry, DOMI_INPUT_POLL);
        break;
    case POLL_ONCE:
        result = begin_one_shot_poll(ring, entry);
        break;
    case SEND:
        result = try_send_or_wait_for_room(ring, entry);
        break;
    case RECEIVE_DATAGRAMS:
        result = begin_input_operation(ring, entry, DOMI_INPUT_DATAGRAMS);
        break;
    case SEND_DATAGRAM:
        send_datagram(ring, entry);
        break;
    case CANCEL:
        carry_out_queued_cancel(ring, entry);
        break;
    }
    if (result != 0)
        domi_epoll_queue_completion(ring, entry->user_data, result, 0, 0);
}

static void carry_out_all_queued_operations(domi_epoll *ring)
{
    for (uint32_t i = 0; i < ring->entry_count; i++)
        carry_out_queued_operation(ring, &ring->entries[i]);
    ring->entry_count = 0;
}

/* Queue an operation for the next enter. If the queue is full, its operations are carried out
 * first. */
static domi_epoll_entry *queue_operation(void *ring_, enum kind kind, int fd, uint64_t user_data)
{
    domi_epoll *ring = ring_;

    /* place for an operation that is begun on a failed ring, and is lost */
    static _Thread_local domi_epoll_entry nowhere;

    DOMI_CHECK(user_data != 0);
    if (ring->entry_count == ring->entry_capacity)
        carry_out_all_queued_operations(ring);
    domi_epoll_entry *entry = ring->failed == 0 ? &ring->entries[ring->entry_count++] : &nowhere;
    *entry = (domi_epoll_entry){.user_data = user_data, .kind = kind, .fd = fd};
    return entry;
}

static void epoll_accept_connections(void *ring, int fd, uint64_t user_data)
{
    (void)queue_operation(ring, ACCEPT, fd, user_data);
}

static void epoll_receive_bytes(void *ring, int fd, bool once, uint64_t user_data)
{
    (void)queue_operation(ring, once ? RECEIVE_ONCE : RECEIVE, fd, user_data);
}

static void epoll_poll_readable(void *ring, int fd, uint64_t user_data)
{
    (void)queue_operation(ring, POLL, fd, user_data);
}

static void epoll_poll_once_for_events(void *ring, int fd, uint32_t events, uint64_t user_data)
{
    queue_operation(ring, POLL_ONCE, fd, user_data)->events = events;
}

static void epoll_send_bytes(void *ring, int fd, const void *data, uint32_t size,
                             uint64_t user_data)
{
    queue_operation(ring, SEND, fd, user_data)->output = (domi_output){.data = data, .size = size};
}

static void epoll_send_message(void *ring_, int fd, const struct msghdr *message,
                               uint64_t user_data)
{
    domi_epoll *ring = ring_;
    domi_epoll_entry *entry = queue_operation(ring, SEND, fd, user_data);

    if (ring->failed == 0)
        entry->output.message =
            domi_gathered_copy_message(&ring->gathered[entry - ring->entries], message);
}

static void epoll_receive_datagrams(void *ring, int fd, uint64_t user_data)
{
    (void)queue_operation(ring, RECEIVE_DATAGRAMS, fd, user_data);
}

static void epoll_send_datagram(void *ring, int fd, const domi_datagram_out *datagram,
                                uint64_t user_data)
{
    queue_operation(ring, SEND_DATAGRAM, fd, user_data)->datagram = *datagram;
}

static void epoll_cancel_operation(void *ring, int fd, uint64_t target, uint64_t user_data)
{
    queue_operation(ring, CANCEL, fd, user_data)->target = target;
}

static void epoll_forget_descriptor(void *ring_, int fd)
{
    domi_interest_forget_descriptor(&((domi_epoll *)ring_)->interests, fd);
}

static void epoll_give_buffer(void *ring_, uint16_t index, void *data, uint32_t size)
{
    domi_epoll *ring = ring_;

    ring->buffers[index] = (domi_epoll_buffer){data, size};
    ring->staged[ring->staged_count++] = index;
}

static void epoll_publish_buffers(void *ring_)
{
    domi_epoll *ring = ring_;

    memcpy(ring->free + ring->free_count, ring->staged, ring->staged_count * sizeof *ring->free);
    ring->free_count += ring->staged_count;
    ring->staged_count = 0;
}

/* --- the ring -------------------------------------------------------------------------------- */

/* Returns the size in bytes of the memory for the messages of gathered sends (gathered.h). Pages
 * that no send has used take no memory. */
static size_t get_bytes_for_gathered_messages(const domi_epoll *ring)
{
    return (size_t)ring->entry_capacity * sizeof *ring->gathered;
}

static void epoll_close_ring(void *ring_)
{
    domi_epoll *ring = ring_;

    if (ring == NULL)
        return;
    domi_interests_fini(&ring->interests);
    domi_memory_free(ring->entries);
    if (ring->gathered != NULL)
        domi_memory_unmap_pages(ring->gathered, get_bytes_for_gathered_messages(ring));
    domi_completion_queue_fini(&ring->queue);
    domi_memory_free(ring->buffers);
    domi_memory_free(ring->free);
    domi_memory_free(ring->staged);
    domi_memory_free(ring);
}

static int epoll_open_ring(const domus_config *config, char *error, size_t error_size,
                           void **ret_ring)
{
    uint32_t buffers = config->io.buffers.count;
    domi_epoll *ring = domi_memory_new(sizeof *ring);
    int result = -ENOMEM;

    if (ring == NULL)
        goto fail_memory;
    result = domi_interests_init(&ring->interests);
    if (result != 0) {
        domi_memory_free(ring);
        domi_setup_explain_failure_of_ring(result, DOMI_SETUP_EPOLL, config, error, error_size);
        return result;
    }
    ring->entry_capacity = config->io.ring_entries;
    ring->full = config->io.completion_entries;
    ring->entries = domi_memory_new(ring->entry_capacity * sizeof *ring->entries);
    ring->gathered = domi_memory_map_pages(get_bytes_for_gathered_messages(ring));
    bool has_queue = domi_completion_queue_init(&ring->queue, config->io.completion_entries);
    ring->buffers = domi_memory_new(buffers * sizeof *ring->buffers);
    ring->free = domi_memory_new(buffers * sizeof *ring->free);
    ring->staged = domi_memory_new(buffers * sizeof *ring->staged);
    if (ring->entries == NULL || ring->gathered == NULL || !has_queue || ring->buffers == NULL ||
        ring->free == NULL || ring->staged == NULL) {
        epoll_close_ring(ring);
        result = -ENOMEM;
        goto fail_memory;
    }
    *ret_ring = ring;
    return 0;

fail_memory:
    domi_setup_explain_failure_of_ring(result, DOMI_SETUP_MEMORY, config, error, error_size);
    return result;
}

/* Returns the error of a system call if a filter of system calls (seccomp) may have caused it, else
 * 0. */
static int get_error_of_syscall_filter(long result)
{
    return result < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS) ? -errno : 0;
}

/* Try each system call that the backend needs later: a filter may refuse the call, and only here
 * can the error be reported. Each call gets an invalid descriptor, or has nothing to do. */
static int epoll_start_ring(void *ring_)
{
    domi_epoll *ring = ring_;
    struct msghdr message = {0};
    char byte = 0;
    int result =
        get_error_of_syscall_filter(epoll_ctl(ring->interests.epoll_fd, EPOLL_CTL_DEL, -1, NULL));

    if (result == 0)
        result =
            get_error_of_syscall_filter(epoll_wait(ring->interests.epoll_fd, ring->reports, 1, 0));
    if (result == 0)
        result = get_error_of_syscall_filter(fcntl(-1, F_GETFL));
    if (result == 0)
        result = get_error_of_syscall_filter(accept4(-1, NULL, NULL, SOCK_CLOEXEC));
    if (result == 0)
        result = get_error_of_syscall_filter(recv(-1, &byte, 1, MSG_DONTWAIT));
    if (result == 0)
        result = get_error_of_syscall_filter(recvmsg(-1, &message, MSG_DONTWAIT));
    if (result == 0)
        result = get_error_of_syscall_filter(send(-1, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
    if (result == 0)
        result = get_error_of_syscall_filter(sendmsg(-1, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
    return result;
}

static int epoll_enter_ring(void *ring_, uint32_t min_complete, uint64_t timeout_ns)
{
    domi_epoll *ring = ring_;

    if (ring->failed != 0)
        return ring->failed;
    carry_out_all_queued_operations(ring);
    /* An enter that is to wait for a completion, and has one now, need not ask epoll for reports.
     * But it asks if a registration was changed: an operation on a descriptor that is ready when it
     * begins completes in the same enter, as in an io_uring. */
    bool has_some = domi_completion_queue_count(&ring->queue) != 0;
    if (ring->failed == 0 && ring->report_next == ring->report_count &&
        (min_complete == 0 || !has_some || ring->interests.has_told))
        domi_epoll_fetch_reports(ring, min_complete != 0 && !has_some ? timeout_ns : 0);
    domi_epoll_handle_reports(ring);
    ring->queue.shown = ring->queue.tail;
    return ring->failed;
}

static int epoll_submit_operations(void *ring_)
{
    domi_epoll *ring = ring_;

    if (ring->failed == 0)
        carry_out_all_queued_operations(ring);
    ring->queue.shown = ring->queue.tail;
    return ring->failed;
}

static uint32_t epoll_reap_completions(void *ring_, domi_completion *completions, uint32_t max)
{
    return domi_completion_queue_reap(&((domi_epoll *)ring_)->queue, completions, max);
}

static bool epoll_has_completions_ready(const void *ring_)
{
    const domi_epoll *ring = ring_;

    return ring->queue.head != ring->queue.shown;
}

static bool epoll_has_work_pending(void *ring_)
{
    domi_epoll *ring = ring_;

    if (ring->entry_count == 0 && ring->queue.shown == ring->queue.tail &&
        ring->report_next == ring->report_count && ring->failed == 0)
        domi_epoll_fetch_reports(ring, 0);
    return ring->entry_count != 0 || ring->queue.shown != ring->queue.tail ||
           ring->report_next != ring->report_count;
}

const domi_backend domi_backend_epoll = {
    .name = "epoll",
    .sockets = &domi_kernel_sockets,
    .open = epoll_open_ring,
    .start = epoll_start_ring,
    .close = epoll_close_ring,
    .enter = epoll_enter_ring,
    .submit = epoll_submit_operations,
    .reap = epoll_reap_completions,
    .ready = epoll_has_completions_ready,
    .pending = epoll_has_work_pending,
    .accept = epoll_accept_connections,
    .receive = epoll_receive_bytes,
    .poll = epoll_poll_readable,
    .poll_once = epoll_poll_once_for_events,
    .send = epoll_send_bytes,
    .send_message = epoll_send_message,
    .receive_datagrams = epoll_receive_datagrams,
    .send_datagram = epoll_send_datagram,
    .file_read = domi_epoll_file_read,
    .file_write = domi_epoll_file_write,
    .file_open = domi_epoll_file_open,
    .cancel = epoll_cancel_operation,
    .forget = epoll_forget_descriptor,
    .give = epoll_give_buffer,
    .publish = epoll_publish_buffers,
};
