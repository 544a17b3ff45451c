/* The io_uring backend: operations, and the enter that submits them.
 *
 * It needs liburing 2.3 (that of Debian) and a few constants of newer kernels. One enter submits,
 * waits and times out. The helpers of 2.3 cannot pass IORING_ENTER_NO_IOWAIT, without which an idle
 * thread is shown as 100 % iowait; so the submission queue is flushed here, through its public
 * fields. The first sends after an enter are made without the ring (direct.h). */
#include "base/check.h"
#include "io/backend/uring_ring.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>

/* Move the queued entries to the queue that the kernel sees. Returns how many entries the kernel
 * has not taken yet. With a later liburing than 2.3 a ring may have no array of indices: the kernel
 * then takes the entries in the order in which they lie. */
static unsigned show_queued_entries_to_kernel(struct io_uring *uring)
{
    struct io_uring_sq *queue = &uring->sq;
    unsigned tail = *queue->ktail + (queue->sqe_tail - queue->sqe_head);

    if (queue->array == NULL)
        queue->sqe_head = queue->sqe_tail;
    for (unsigned place = *queue->ktail; queue->sqe_head != queue->sqe_tail; queue->sqe_head++)
        queue->array[place++ & queue->ring_mask] = queue->sqe_head & queue->ring_mask;
    /* Release: the entries are written before the kernel sees the new tail. */
    __atomic_store_n(queue->ktail, tail, __ATOMIC_RELEASE);
    return tail - __atomic_load_n(queue->khead, __ATOMIC_ACQUIRE);
}

/* Submit and wait by one system call. This is a function of its own so that
 * get_free_submission_entry(), which runs for each operation, has none of these locals. */
__attribute__((noinline)) DOMI_NO_CANARY static int
enter_uring_by_system_call(domi_uring *ring, unsigned submit, uint32_t min_complete,
                           uint64_t timeout_ns)
{
    struct __kernel_timespec timeout = {
        .tv_sec = (long long)(timeout_ns / 1000000000u),
        .tv_nsec = (long long)(timeout_ns % 1000000000u),
    };
    struct io_uring_getevents_arg argument = {
        .sigmask_sz = _NSIG / 8,
        .ts = min_complete != 0 ? (uintptr_t)&timeout : 0,
    };

    return io_uring_enter2((unsigned)ring->uring.enter_ring_fd, submit, min_complete,
                           ring->enter_flags, (sigset_t *)(void *)&argument, sizeof argument);
}

/* Judge the result of an enter. Returns 0 if the enter did its work, timed out or was interrupted;
 * otherwise the errno. The kernel takes as many entries as it has room for. EBUSY and EAGAIN pass
 * when completions are reaped or requests end, ENOMEM passes when memory is free. With any other
 * errno the ring has failed. EBADR says that completions were lost for lack of memory, and nobody
 * can tell which ones; others (EBADF, EFAULT, ENXIO and the like) say that the ring is gone or is
 * no ring. */
static int judge_enter_result_and_record_failure(domi_uring *ring, int result)
{
    if (result >= 0 || result == -ETIME || result == -EINTR)
        return 0;
    if (result != -EBUSY && result != -EAGAIN && result != -ENOMEM)
        ring->failed = result;
    return result;
}

static int uring_enter_ring(void *ring_, uint32_t min_complete, uint64_t timeout_ns)
{
    domi_uring *ring = ring_;

    if (ring->failed != 0)
        return ring->failed;
    if (domi_direct_sends_has_completions(&ring->direct))
        min_complete = 0;
    domi_direct_sends_show_completions(&ring->direct);
    return judge_enter_result_and_record_failure(
        ring, enter_uring_by_system_call(ring, show_queued_entries_to_kernel(&ring->uring),
                                         min_complete, timeout_ns));
}

static int uring_submit_operations(void *ring_)
{
    domi_uring *ring = ring_;

    domi_direct_sends_show_completions(&ring->direct);
    return ring->failed;
}

static uint32_t uring_reap_completions(void *ring_, domi_completion *completions, uint32_t max)
{
    domi_uring *ring = ring_;
    struct io_uring_cqe *cqe;
    unsigned head;
    uint32_t direct = domi_completion_queue_reap(&ring->direct.queue, completions, max);
    uint32_t count = direct;

    io_uring_for_each_cqe(&ring->uring, head, cqe)
    {
        if (count == max)
            break;
        completions[count++] = (domi_completion){
            .user_data = cqe->user_data,
            .result = cqe->res,
            .flags = (uint16_t)(((cqe->flags & IORING_CQE_F_MORE) != 0 ? DOMI_MORE : 0) |
                                ((cqe->flags & IORING_CQE_F_BUFFER) != 0 ? DOMI_BUFFERED : 0)),
            .buffer = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT),
        };
    }
    io_uring_cq_advance(&ring->uring, count - direct);
    return count;
}

static bool uring_has_completions_ready(const void *ring_)
{
    const domi_uring *ring = ring_;

    return ring->direct.queue.head != ring->direct.queue.shown ||
           io_uring_cq_ready(&ring->uring) != 0;
}

/* True if an enter of the ring would submit operations, run work that is due, or bring completions
 * that overflowed. */
static bool would_enter_bring_anything(const domi_uring *ring)
{
    unsigned flags = __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_RELAXED);

    return (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0 ||
           io_uring_sq_ready(&ring->uring) != 0;
}

static bool uring_has_work_pending(void *ring_)
{
    const domi_uring *ring = ring_;

    return would_enter_bring_anything(ring) || domi_direct_sends_has_completions(&ring->direct);
}

/* number of attempts to get a free submission entry, 1 ms apart, before the ring counts as
 * failed */
#define ENTRY_TRIES 5000
/* wait between two attempts to get a free submission entry, in milliseconds */
#define ENTRY_WAIT_MS 1
/* wait between two attempts to get a free submission entry, in nanoseconds */
#define ENTRY_WAIT_NS UINT64_C(1000000)

/* Let the kernel take the queued submission entries; if it has no room, wait for 1 ms. */
static int make_room_in_submission_queue(domi_uring *ring, bool wait)
{
    int result = 0;

    if (wait)
        result = judge_enter_result_and_record_failure(
            ring, enter_uring_by_system_call(ring, 0, 1, ENTRY_WAIT_NS));
    if (result != 0 && ring->failed == 0)
        (void)poll(NULL, 0, ENTRY_WAIT_MS);
    if (ring->failed == 0)
        result = judge_enter_result_and_record_failure(
            ring,
            enter_uring_by_system_call(ring, show_queued_entries_to_kernel(&ring->uring), 0, 0));
    return result;
}

/* Returns a free entry of a submission queue that was full, after the kernel has made room. If it
 * makes none, the ring fails. */
static struct io_uring_sqe *get_entry_of_full_queue(domi_uring *ring)
{
    int result = 0;

    for (int tries = 0; ring->failed == 0 && tries < ENTRY_TRIES; tries++) {
        result = make_room_in_submission_queue(ring, tries != 0);
        struct io_uring_sqe *sqe = ring->failed == 0 ? io_uring_get_sqe(&ring->uring) : NULL;
        if (sqe != NULL)
            return sqe;
    }
    if (ring->failed == 0)
        ring->failed = result != 0 ? result : -EBUSY;
    return &ring->nowhere;
}

/* Returns a free entry; if the queue is full, it is submitted first. Any code may call this,
 * because under DEFER_TASKRUN a submit runs no completions. If the kernel has no memory for more,
 * this waits 1 ms at a time, and after five seconds the ring has failed. The entry of a failed ring
 * leads nowhere, and the next enter returns the error. */
static struct io_uring_sqe *get_free_submission_entry(domi_uring *ring)
{
    struct io_uring_sqe *sqe = ring->failed == 0 ? io_uring_get_sqe(&ring->uring) : NULL;

    return DOMI_LIKELY(sqe != NULL) ? sqe : get_entry_of_full_queue(ring);
}

/* Set the user_data of a submission entry. This comes after the prep functions of liburing, because
 * some versions of these zero it. */
static void set_entry_user_data(struct io_uring_sqe *sqe, uint64_t user_data)
{
    DOMI_CHECK(user_data != 0);
    sqe->user_data = user_data;
}

static void uring_accept_connections(void *ring, int fd, uint64_t user_data)
{
    struct io_uring_sqe *sqe = get_free_submission_entry(ring);

    /* the flag SOCK_NONBLOCK is left out: with it older kernels would return -EAGAIN instead of
     * waiting */
    io_uring_prep_multishot_accept(sqe, fd, NULL, NULL, SOCK_CLOEXEC);
    set_entry_user_data(sqe, user_data);
}

static void uring_receive_bytes(void *ring, int fd, bool once, uint64_t user_data)
{
    struct io_uring_sqe *sqe = get_free_submission_entry(ring);

    if (once)
        io_uring_prep_recv(sqe, fd, NULL, 0, 0);
    else
        io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = DOMI_URING_BUFFERS;
    set_entry_user_data(sqe, user_data);
}

static void uring_poll_readable(void *ring, int fd, uint64_t user_data)
{
    struct io_uring_sqe *sqe = get_free_submission_entry(ring);

    io_uring_prep_poll_multishot(sqe, fd, POLLIN);
    set_entry_user_data(sqe, user_data);
}

static void uring_poll_once_for_events(void *ring, int fd, uint32_t events, uint64_t user_data)
{
    struct io_uring_sqe *sqe = get_free_submission_entry(ring);

    io_uring_prep_poll_add(sqe, fd, events);
    set_entry_user_data(sqe, user_data);
}

/* Try a send without the ring. Returns whether it has completed. If an enter is needed anyway, the
 * send is left to the ring, because one more entry costs less than a call of its own. */
static bool try_send_without_ring(domi_uring *ring, int fd, const domi_output *output,
                                  uint64_t user_data)
{
    DOMI_CHECK(user_data != 0);
    return ring->failed == 0 && !would_enter_bring_anything(ring) &&
           domi_direct_sends_try_send(&ring->direct, fd, output, user_data);
}

static void uring_send_bytes(void *ring, int fd, const void *data, uint32_t size,
                             uint64_t user_data)
{
    const domi_output output = {.data = data, .size = size};

    if (try_send_without_ring(ring, fd, &output, user_data))
        return;
    struct io_uring_sqe *sqe = get_free_submission_entry(ring);

    io_uring_prep_send(sqe, fd, data, size, MSG_NOSIGNAL);
    set_entry_user_data(sqe, user_data);
}

static void uring_send_message(void *ring_, int fd, const struct msghdr *message,
                               uint64_t user_data)
{
    domi_uring *ring = ring_;
    const domi_output output = {.message = message};

    if (try_send_without_ring(ring, fd, &output, user_data))
        return;
    struct io_uring_sqe *sqe = get_free_submission_entry(ring);
    if (sqe != &ring->nowhere)
        message = domi_gathered_copy_message(&ring->gathered[sqe - ring->uring.sq.sqes], message);
    io_uring_prep_sendmsg(sqe, fd, message, MSG_NOSIGNAL);
    set_entry_user_data(sqe, user_data);
}

static_assert(
    offsetof(domi_datagram_head, name) == sizeof(struct io_uring_recvmsg_out) &&
        offsetof(domi_datagram_head, name_size) == offsetof(struct io_uring_recvmsg_out, namelen) &&
        offsetof(domi_datagram_head, size) == offsetof(struct io_uring_recvmsg_out, payloadlen) &&
        offsetof(domi_datagram_head, flags) == offsetof(struct io_uring_recvmsg_out, flags),
    "the kernel writes our head");

static void uring_receive_datagrams(void *ring, int fd, uint64_t user_data)
{
    /* msg_namelen tells the kernel how much room to leave for the sender's address; the kernel
     * copies it when the operation begins */
    static struct msghdr room = {.msg_namelen = sizeof(((domi_datagram_head *)NULL)->name)};
    struct io_uring_sqe *sqe = get_free_submission_entry(ring);

    io_uring_prep_recvmsg_multishot(sqe, fd, &room, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = DOMI_URING_BUFFERS;
    set_entry_user_data(sqe, user_data);
}

static void uring_send_datagram(void *ring, int fd, const domi_datagram_out *datagram,
                                uint64_t user_data)
{
    struct io_uring_sqe *sqe = get_free_submission_entry(ring);

    io_uring_prep_send(sqe, fd, datagram->data, datagram->size, MSG_NOSIGNAL | MSG_DONTWAIT);
    sqe->addr2 = (uintptr_t)datagram->address;
    sqe->addr_len = (uint16_t)datagram->address_size;
    set_entry_user_data(sqe, user_data);
}

/* the flag RWF_NOWAIT also keeps the kernel from giving the operation to a worker thread of its
 * own */
static void uring_file_read(void *ring, int fd, void *data, uint32_t size, uint64_t position,
                            uint64_t user_data)
{
    struct io_uring_sqe *sqe = get_free_submission_entry(ring);

    io_uring_prep_read(sqe, fd, data, size, position);
    sqe->rw_flags = RWF_NOWAIT;
    set_entry_user_data(sqe, user_data);
}

static void uring_file_write(void *ring, int fd, const void *data, uint32_t size, uint64_t position,
                             uint64_t user_data)
{
    struct io_uring_sqe *sqe = get_free_submission_entry(ring);

    io_uring_prep_write(sqe, fd, data, size, position);
    sqe->rw_flags = RWF_NOWAIT;
    set_entry_user_data(sqe, user_data);
}

static void uring_file_open(void *ring, int directory, const char *path, const struct open_how *how,
                            uint64_t user_data)
{
    struct io_uring_sqe *sqe = get_free_submission_entry(ring);

    io_uring_prep_openat2(sqe, directory, path, (struct open_how *)(uintptr_t)how);
    set_entry_user_data(sqe, user_data);
}

static void uring_cancel_operation(void *ring, int fd, uint64_t target, uint64_t user_data)
{
    struct io_uring_sqe *sqe = get_free_submission_entry(ring);

    /* the descriptor is not needed: the kernel finds an operation to cancel by its user_data
     * alone */
    (void)fd;
    io_uring_prep_cancel64(sqe, target, 0);
    set_entry_user_data(sqe, user_data);
}

static void uring_forget_descriptor(void *ring, int fd)
{
    /* there is nothing to forget, because an io_uring keeps nothing for a descriptor */
    (void)ring, (void)fd;
}

static void uring_give_buffer(void *ring_, uint16_t index, void *data, uint32_t size)
{
    domi_uring *ring = ring_;

    io_uring_buf_ring_add(ring->buffers, data, size, index, (int)ring->buffers_mask,
                          (int)ring->given);
    ring->given++;
}

static void uring_publish_buffers(void *ring_)
{
    domi_uring *ring = ring_;

    if (ring->given != 0)
        io_uring_buf_ring_advance(ring->buffers, (int)ring->given);
    ring->given = 0;
}

const domi_backend domi_backend_uring = {
    .name = "io_uring",
    .sockets = &domi_kernel_sockets,
    .open = domi_uring_open,
    .start = domi_uring_start,
    .close = domi_uring_close,
    .enter = uring_enter_ring,
    .submit = uring_submit_operations,
    .reap = uring_reap_completions,
    .ready = uring_has_completions_ready,
    .pending = uring_has_work_pending,
    .accept = uring_accept_connections,
    .receive = uring_receive_bytes,
    .poll = uring_poll_readable,
    .poll_once = uring_poll_once_for_events,
    .send = uring_send_bytes,
    .send_message = uring_send_message,
    .receive_datagrams = uring_receive_datagrams,
    .send_datagram = uring_send_datagram,
    .file_read = uring_file_read,
    .file_write = uring_file_write,
    .file_open = uring_file_open,
    .cancel = uring_cancel_operation,
    .forget = uring_forget_descriptor,
    .give = uring_give_buffer,
    .publish = uring_publish_buffers,
};
