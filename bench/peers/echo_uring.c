/* A bare echo on io_uring: multishot accept and receive, provided buffers, sent as they came in.
 *
 * One enter per turn of the loop submits the answers of the turn before and waits for the next
 * completions; with DEFER_TASKRUN completions are made in that enter only. A buffer goes from the
 * kernel to the send and back to the kernel, its number in the send's user_data; nothing is copied.
 * Sends of one connection are not kept in order, so it serves only clients that read each answer
 * before they send again. */
#include "bench/peers/peer.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#define SUBMISSIONS  4096
#define COMPLETIONS  16384
#define BUFFERS      1024
#define BUFFER_SIZE  4096
#define BUFFER_GROUP 0

enum operation { ACCEPT, RECEIVE, SEND, CLOSE, TERM };

struct server {
    struct peer peer;
    struct io_uring ring;
    struct io_uring_buf_ring *buffer_ring;
    char *buffers;
    int listener;
    int returned; /* buffers put into the ring in this turn, not yet published */
    bool stopping;
};

static uint64_t tag(enum operation operation, int fd, unsigned int buffer)
{
    return (uint64_t)operation << 56 | (uint64_t)buffer << 32 | (uint32_t)fd;
}

static struct io_uring_sqe *next_sqe(struct server *server)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&server->ring);

    while (sqe == NULL) {
        int submitted = io_uring_submit(&server->ring);
        if (submitted < 0 && submitted != -EINTR && submitted != -EAGAIN && submitted != -EBUSY) {
            errno = -submitted;
            peer_fail("io_uring_submit");
        }
        sqe = io_uring_get_sqe(&server->ring);
    }
    return sqe;
}

static char *buffer_at(const struct server *server, unsigned int buffer)
{
    return server->buffers + (size_t)buffer * BUFFER_SIZE;
}

static void give_buffer(struct server *server, unsigned int buffer)
{
    io_uring_buf_ring_add(server->buffer_ring, buffer_at(server, buffer), BUFFER_SIZE,
                          (unsigned short)buffer, io_uring_buf_ring_mask(BUFFERS),
                          server->returned++);
}

static void arm_accept(struct server *server)
{
    struct io_uring_sqe *sqe = next_sqe(server);

    io_uring_prep_multishot_accept(sqe, server->listener, NULL, NULL, SOCK_CLOEXEC);
    sqe->user_data = tag(ACCEPT, server->listener, 0);
}

static void arm_receive(struct server *server, int fd)
{
    struct io_uring_sqe *sqe = next_sqe(server);

    io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
    sqe->user_data = tag(RECEIVE, fd, 0);
}

static void on_accepted(struct server *server, const struct io_uring_cqe *cqe)
{
    if (cqe->res >= 0)
        arm_receive(server, cqe->res);
    if ((cqe->flags & IORING_CQE_F_MORE) == 0)
        arm_accept(server);
}

static void on_received(struct server *server, const struct io_uring_cqe *cqe, int fd)
{
    if (cqe->res > 0) {
        unsigned int buffer = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
        struct io_uring_sqe *sqe = next_sqe(server);

        server->peer.received++;
        io_uring_prep_send(sqe, fd, buffer_at(server, buffer), (size_t)cqe->res,
                           MSG_WAITALL | MSG_NOSIGNAL);
        sqe->user_data = tag(SEND, fd, buffer);
        /* A multishot may end with data in it, when the completion queue overflowed. */
        if ((cqe->flags & IORING_CQE_F_MORE) == 0)
            arm_receive(server, fd);
    } else if (cqe->res == -ENOBUFS) {
        arm_receive(server, fd);
    } else {
        struct io_uring_sqe *sqe = next_sqe(server);

        io_uring_prep_close(sqe, fd);
        sqe->user_data = tag(CLOSE, fd, 0);
    }
}

static void dispatch(struct server *server, const struct io_uring_cqe *cqe)
{
    int fd = (int)(uint32_t)cqe->user_data;
    unsigned int buffer = (unsigned int)(cqe->user_data >> 32) & 0xffffff;

    switch ((enum operation)(cqe->user_data >> 56)) {
    case ACCEPT:
        on_accepted(server, cqe);
        break;
    case RECEIVE:
        on_received(server, cqe, fd);
        break;
    case SEND:
        give_buffer(server, buffer);
        break;
    case TERM:
        server->stopping = true;
        break;
    case CLOSE:
        break;
    }
}

static void serve(struct server *server)
{
    while (!server->stopping) {
        struct io_uring_cqe *cqe;
        unsigned int head;
        unsigned int count = 0;
        int result = io_uring_submit_and_wait(&server->ring, 1);

        if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) {
            errno = -result;
            peer_fail("io_uring_submit_and_wait");
        }
        io_uring_for_each_cqe(&server->ring, head, cqe)
        {
            dispatch(server, cqe);
            count++;
        }
        io_uring_cq_advance(&server->ring, count);
        if (server->returned > 0) {
            io_uring_buf_ring_advance(server->buffer_ring, server->returned);
            server->returned = 0;
        }
    }
}

static void ring_open(struct server *server)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
        .cq_entries = COMPLETIONS,
    };
    int result = io_uring_queue_init_params(SUBMISSIONS, &server->ring, &params);

    if (result == 0) {
        result = io_uring_register_ring_fd(&server->ring);
        result = result == 1 ? 0 : result;
    }
    if (result < 0) {
        errno = -result;
        peer_fail("io_uring");
    }
}

static void buffers_open(struct server *server)
{
    size_t ring_size = BUFFERS * sizeof(struct io_uring_buf);
    struct io_uring_buf_reg registration = {.ring_entries = BUFFERS, .bgid = BUFFER_GROUP};

    server->buffer_ring = aligned_alloc(BUFFER_SIZE, ring_size);
    server->buffers = aligned_alloc(BUFFER_SIZE, (size_t)BUFFERS * BUFFER_SIZE);
    if (server->buffer_ring == NULL || server->buffers == NULL)
        peer_fail("buffers");
    registration.ring_addr = (uintptr_t)server->buffer_ring;

    int result = io_uring_register_buf_ring(&server->ring, &registration, 0);
    if (result < 0) {
        errno = -result;
        peer_fail("io_uring_register_buf_ring");
    }
    io_uring_buf_ring_init(server->buffer_ring);
    for (unsigned int i = 0; i < BUFFERS; i++)
        give_buffer(server, i);
    io_uring_buf_ring_advance(server->buffer_ring, server->returned);
    server->returned = 0;
}

int main(int argc, char **argv)
{
    static struct server server;

    peer_init(&server.peer, argc, argv);
    int on_term = peer_signal_open();
    server.listener = peer_listen(&server.peer, 0);
    ring_open(&server);
    buffers_open(&server);

    arm_accept(&server);
    struct io_uring_sqe *sqe = next_sqe(&server);
    io_uring_prep_poll_add(sqe, on_term, POLLIN);
    sqe->user_data = tag(TERM, on_term, 0);

    peer_announce(&server.peer, server.listener);
    serve(&server);
    peer_report(&server.peer);
    return 0;
}
