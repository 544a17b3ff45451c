/* The io_uring backend: the only file that uses liburing.
 *
 * It needs liburing 2.3 (that of Debian) and a few constants of newer kernels. One enter submits,
 * waits and times out. The helpers of 2.3 cannot pass IORING_ENTER_NO_IOWAIT, without which an idle
 * thread is shown as 100 % iowait; so the submission queue is flushed here, through its public
 * fields. The ring is made disabled and is enabled by its owner, because with SINGLE_ISSUER only
 * the thread that enables it may enter it. */
#include "io/backend/backend.h"

#include "base/check.h"
#include "base/memory.h"
#include "io/backend/explain.h"
#include "io/backend/gathered.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Constants that the header of liburing 2.3 does not have: the first two belong to newer kernels.
 */
#define ENTER_NO_IOWAIT       (1u << 7)
#define FEAT_NO_IOWAIT        (1u << 17)
#define REGISTER_ENABLE_RINGS 12 /* 2.3 declares io_uring_enable_rings() but does not export it */

#define BUFFER_GROUP 0 /* the group id of the provided buffers in each ring */

struct ring {
    struct io_uring uring;             /* of liburing */
    struct io_uring_buf_ring *buffers; /* the ring in which buffers are given to the kernel */
    size_t buffers_bytes;              /* bytes mapped for `buffers` */
    uint32_t buffers_mask;             /* places in `buffers`, minus 1 */
    uint32_t given;                    /* buffers given since the last publish */
    uint32_t enter_flags;              /* flags of each io_uring_enter(2) */
    bool registered; /* the ring's descriptor is registered, so an enter uses its index */
    int failed;      /* the errno that every enter returns; 0: the ring works */
    /* One for each entry of the submission queue. The kernel has copied what it points to when it
     * has taken the entry (IORING_FEAT_SUBMIT_STABLE, since 5.5), so the place is used again with
     * the entry. */
    domi_gathered *gathered;
    struct io_uring_sqe nowhere; /* entry for operations on a ring that has failed */
};

/* Bytes of the places for gathered sends. Pages that no send has used take no memory. */
static size_t gathered_bytes(const struct ring *ring)
{
    return (size_t)ring->uring.sq.ring_entries * sizeof *ring->gathered;
}

static void ring_free(struct ring *ring)
{
    if (ring->buffers != NULL)
        domi_memory_unmap(ring->buffers, ring->buffers_bytes);
    if (ring->gathered != NULL)
        domi_memory_unmap(ring->gathered, gathered_bytes(ring));
    domi_memory_free(ring);
}

static int register_buffers(struct ring *ring, const domus_config *config)
{
    uint32_t count = config->io.buffers.count;

    ring->buffers_bytes = count * sizeof(struct io_uring_buf);
    ring->buffers_mask = count - 1;
    ring->buffers = domi_memory_map(ring->buffers_bytes);
    if (ring->buffers == NULL)
        return -ENOMEM;
    io_uring_buf_ring_init(ring->buffers);
    struct io_uring_buf_reg registration = {
        .ring_addr = (uintptr_t)ring->buffers,
        .ring_entries = count,
        .bgid = BUFFER_GROUP,
    };
    return io_uring_register_buf_ring(&ring->uring, &registration, 0);
}

static int uring_open(const domus_config *config, char *error, size_t error_size, void **ret_ring)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL |
                 IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_R_DISABLED,
        .cq_entries = config->io.completion_entries,
    };
    struct ring *ring = domi_memory_new(sizeof *ring);

    if (ring == NULL) {
        domi_setup_explain(-ENOMEM, DOMI_SETUP_MEMORY, config, error, error_size);
        return -ENOMEM;
    }
    int result = io_uring_queue_init_params(config->io.ring_entries, &ring->uring, &params);
    if (result < 0) {
        domi_setup_explain(result, DOMI_SETUP_RING, config, error, error_size);
        goto fail_ring;
    }
    ring->gathered = domi_memory_map(gathered_bytes(ring));
    if (ring->gathered == NULL) {
        result = -ENOMEM;
        domi_setup_explain(result, DOMI_SETUP_MEMORY, config, error, error_size);
        goto fail_buffers;
    }
    result = register_buffers(ring, config);
    if (result < 0) {
        domi_setup_explain(result, DOMI_SETUP_BUFFERS, config, error, error_size);
        goto fail_buffers;
    }
    ring->enter_flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
    if ((params.features & FEAT_NO_IOWAIT) != 0)
        ring->enter_flags |= ENTER_NO_IOWAIT;
    *ret_ring = ring;
    return 0;

fail_buffers:
    io_uring_queue_exit(&ring->uring);
fail_ring:
    ring_free(ring);
    return result;
}

static int uring_start(void *ring_)
{
    struct ring *ring = ring_;
    int result = io_uring_register((unsigned)ring->uring.ring_fd, REGISTER_ENABLE_RINGS, NULL, 0);

    if (result < 0)
        return result;
    /* A registered ring saves a reference count per enter, and everything works without one, too.
     */
    ring->registered = io_uring_register_ring_fd(&ring->uring) == 1;
    if (ring->registered)
        ring->enter_flags |= IORING_ENTER_REGISTERED_RING;

    /* A seccomp filter may allow the set-up and refuse io_uring_enter(). It is better to find that
     * here than in the loop. */
    result = io_uring_enter2(
        (unsigned)ring->uring.enter_ring_fd, 0, 0,
        IORING_ENTER_GETEVENTS | (ring->enter_flags & IORING_ENTER_REGISTERED_RING), NULL, 0);
    return result < 0 ? result : 0;
}

static void uring_close(void *ring_)
{
    struct ring *ring = ring_;

    if (ring == NULL)
        return;
    io_uring_queue_exit(&ring->uring);
    ring_free(ring);
}

/* Move the queued entries to the queue that the kernel sees. Returns how many entries the kernel
 * has not taken yet. */
static unsigned flush(struct io_uring *uring)
{
    struct io_uring_sq *queue = &uring->sq;
    unsigned tail = *queue->ktail;

    for (; queue->sqe_head != queue->sqe_tail; queue->sqe_head++, tail++)
        queue->array[tail & queue->ring_mask] = queue->sqe_head & queue->ring_mask;
    /* release: the entries are written before the kernel sees the tail. */
    __atomic_store_n(queue->ktail, tail, __ATOMIC_RELEASE);
    return tail - __atomic_load_n(queue->khead, __ATOMIC_ACQUIRE);
}

/* This is a function of its own so that entry(), which runs for each operation, has none of these
 * locals. */
__attribute__((noinline)) DOMI_NO_CANARY static int
enter(struct ring *ring, unsigned submit, uint32_t min_complete, uint64_t timeout_ns)
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
 * errno the ring has failed. EBADR says that completions were lost for want of memory, and nobody
 * can tell which ones; others (EBADF, EFAULT, ENXIO and the like) say that the ring is gone or is
 * no ring. */
static int judge_error(struct ring *ring, int result)
{
    if (result >= 0 || result == -ETIME || result == -EINTR)
        return 0;
    if (result != -EBUSY && result != -EAGAIN && result != -ENOMEM)
        ring->failed = result;
    return result;
}

static int uring_enter(void *ring_, uint32_t min_complete, uint64_t timeout_ns)
{
    struct ring *ring = ring_;

    if (ring->failed != 0)
        return ring->failed;
    return judge_error(ring, enter(ring, flush(&ring->uring), min_complete, timeout_ns));
}

static uint32_t uring_reap(void *ring_, domi_completion *completions, uint32_t max)
{
    struct ring *ring = ring_;
    struct io_uring_cqe *cqe;
    unsigned head;
    uint32_t count = 0;

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
    io_uring_cq_advance(&ring->uring, count);
    return count;
}

static bool uring_ready(const void *ring)
{
    return io_uring_cq_ready(&((const struct ring *)ring)->uring) != 0;
}

static bool uring_pending(void *ring_)
{
    const struct ring *ring = ring_;
    unsigned flags = __atomic_load_n(ring->uring.sq.kflags, __ATOMIC_RELAXED);

    return (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0 ||
           io_uring_sq_ready(&ring->uring) != 0;
}

#define ENTRY_TRIES   5000 /* looks for a free entry, 1 ms apart, before the ring has failed */
#define ENTRY_WAIT_MS 1    /* the wait between two of these looks */
#define ENTRY_WAIT_NS UINT64_C(1000000) /* the same in nanoseconds */

/* Let the kernel take the queued entries; if it has no room, wait for 1 ms. */
static int make_room(struct ring *ring, bool wait)
{
    int result = 0;

    if (wait)
        result = judge_error(ring, enter(ring, 0, 1, ENTRY_WAIT_NS));
    if (result != 0 && ring->failed == 0)
        (void)poll(NULL, 0, ENTRY_WAIT_MS);
    if (ring->failed == 0)
        result = judge_error(ring, enter(ring, flush(&ring->uring), 0, 0));
    return result;
}

/* Returns an entry of a queue that was full, after the kernel has made room. */
static struct io_uring_sqe *entry_slow(struct ring *ring)
{
    int result = 0;

    for (int tries = 0; ring->failed == 0 && tries < ENTRY_TRIES; tries++) {
        result = make_room(ring, tries != 0);
        struct io_uring_sqe *sqe = ring->failed == 0 ? io_uring_get_sqe(&ring->uring) : NULL;
        if (sqe != NULL)
            return sqe;
    }
    if (ring->failed == 0)
        ring->failed = result != 0 ? result : -EBUSY;
    return &ring->nowhere;
}

/* Returns a free entry; if the queue is full, it is submitted first. This may be called from
 * anywhere, because under DEFER_TASKRUN a submit runs no completions. If the kernel has no memory
 * for more, it is given 1 ms at a time, and after five seconds the ring has failed. The entry of a
 * ring that has failed leads nowhere, and the next enter returns the error. */
static struct io_uring_sqe *entry(struct ring *ring)
{
    struct io_uring_sqe *sqe = ring->failed == 0 ? io_uring_get_sqe(&ring->uring) : NULL;

    return DOMI_LIKELY(sqe != NULL) ? sqe : entry_slow(ring);
}

/* The user_data is set after the prep functions, because some versions of these zero it. */
static void tag(struct io_uring_sqe *sqe, uint64_t user_data)
{
    DOMI_CHECK(user_data != 0);
    sqe->user_data = user_data;
}

static void uring_accept(void *ring, int fd, uint64_t user_data)
{
    struct io_uring_sqe *sqe = entry(ring);

    /* SOCK_NONBLOCK is left out: with it older kernels would return -EAGAIN instead of waiting. */
    io_uring_prep_multishot_accept(sqe, fd, NULL, NULL, SOCK_CLOEXEC);
    tag(sqe, user_data);
}

static void uring_receive(void *ring, int fd, bool once, uint64_t user_data)
{
    struct io_uring_sqe *sqe = entry(ring);

    if (once)
        io_uring_prep_recv(sqe, fd, NULL, 0, 0);
    else
        io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
    tag(sqe, user_data);
}

static void uring_poll(void *ring, int fd, uint64_t user_data)
{
    struct io_uring_sqe *sqe = entry(ring);

    io_uring_prep_poll_multishot(sqe, fd, POLLIN);
    tag(sqe, user_data);
}

static void uring_poll_once(void *ring, int fd, uint32_t events, uint64_t user_data)
{
    struct io_uring_sqe *sqe = entry(ring);

    io_uring_prep_poll_add(sqe, fd, events);
    tag(sqe, user_data);
}

static void uring_send(void *ring, int fd, const void *data, uint32_t size, uint64_t user_data)
{
    struct io_uring_sqe *sqe = entry(ring);

    io_uring_prep_send(sqe, fd, data, size, MSG_NOSIGNAL);
    tag(sqe, user_data);
}

static void uring_send_message(void *ring_, int fd, const struct msghdr *message,
                               uint64_t user_data)
{
    struct ring *ring = ring_;
    struct io_uring_sqe *sqe = entry(ring);

    if (sqe != &ring->nowhere)
        message = domi_gathered_set(&ring->gathered[sqe - ring->uring.sq.sqes], message);
    io_uring_prep_sendmsg(sqe, fd, message, MSG_NOSIGNAL);
    tag(sqe, user_data);
}

static_assert(
    offsetof(domi_datagram_head, name) == sizeof(struct io_uring_recvmsg_out) &&
        offsetof(domi_datagram_head, name_size) == offsetof(struct io_uring_recvmsg_out, namelen) &&
        offsetof(domi_datagram_head, size) == offsetof(struct io_uring_recvmsg_out, payloadlen) &&
        offsetof(domi_datagram_head, flags) == offsetof(struct io_uring_recvmsg_out, flags),
    "the kernel writes our head");

static void uring_receive_datagrams(void *ring, int fd, uint64_t user_data)
{
    /* says how much room the kernel leaves for the name; it is copied when the operation begins */
    static struct msghdr room = {.msg_namelen = sizeof(((domi_datagram_head *)NULL)->name)};
    struct io_uring_sqe *sqe = entry(ring);

    io_uring_prep_recvmsg_multishot(sqe, fd, &room, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
    tag(sqe, user_data);
}

static void uring_send_datagram(void *ring, int fd, const domi_datagram_out *datagram,
                                uint64_t user_data)
{
    struct io_uring_sqe *sqe = entry(ring);

    io_uring_prep_send(sqe, fd, datagram->data, datagram->size, MSG_NOSIGNAL | MSG_DONTWAIT);
    sqe->addr2 = (uintptr_t)datagram->address;
    sqe->addr_len = (uint16_t)datagram->address_size;
    tag(sqe, user_data);
}

/* RWF_NOWAIT also keeps the kernel from handing the operation to a worker of its own. */
static void uring_file_read(void *ring, int fd, void *data, uint32_t size, uint64_t position,
                            uint64_t user_data)
{
    struct io_uring_sqe *sqe = entry(ring);

    io_uring_prep_read(sqe, fd, data, size, position);
    sqe->rw_flags = RWF_NOWAIT;
    tag(sqe, user_data);
}

static void uring_file_write(void *ring, int fd, const void *data, uint32_t size, uint64_t position,
                             uint64_t user_data)
{
    struct io_uring_sqe *sqe = entry(ring);

    io_uring_prep_write(sqe, fd, data, size, position);
    sqe->rw_flags = RWF_NOWAIT;
    tag(sqe, user_data);
}

static void uring_file_open(void *ring, int directory, const char *path, const struct open_how *how,
                            uint64_t user_data)
{
    struct io_uring_sqe *sqe = entry(ring);

    io_uring_prep_openat2(sqe, directory, path, (struct open_how *)(uintptr_t)how);
    tag(sqe, user_data);
}

static void uring_cancel(void *ring, int fd, uint64_t target, uint64_t user_data)
{
    struct io_uring_sqe *sqe = entry(ring);

    (void)fd; /* the kernel finds operations by their user_data */
    io_uring_prep_cancel64(sqe, target, 0);
    tag(sqe, user_data);
}

static void uring_forget(void *ring, int fd)
{
    (void)ring, (void)fd; /* this backend knows operations, and remembers no descriptors */
}

static void uring_give(void *ring_, uint16_t index, void *data, uint32_t size)
{
    struct ring *ring = ring_;

    io_uring_buf_ring_add(ring->buffers, data, size, index, (int)ring->buffers_mask,
                          (int)ring->given);
    ring->given++;
}

static void uring_publish(void *ring_)
{
    struct ring *ring = ring_;

    if (ring->given != 0)
        io_uring_buf_ring_advance(ring->buffers, (int)ring->given);
    ring->given = 0;
}

const domi_backend domi_backend_uring = {
    .name = "io_uring",
    .sockets = &domi_kernel_sockets,
    .open = uring_open,
    .start = uring_start,
    .close = uring_close,
    .enter = uring_enter,
    .reap = uring_reap,
    .ready = uring_ready,
    .pending = uring_pending,
    .accept = uring_accept,
    .receive = uring_receive,
    .poll = uring_poll,
    .poll_once = uring_poll_once,
    .send = uring_send,
    .send_message = uring_send_message,
    .receive_datagrams = uring_receive_datagrams,
    .send_datagram = uring_send_datagram,
    .file_read = uring_file_read,
    .file_write = uring_file_write,
    .file_open = uring_file_open,
    .cancel = uring_cancel,
    .forget = uring_forget,
    .give = uring_give,
    .publish = uring_publish,
};
