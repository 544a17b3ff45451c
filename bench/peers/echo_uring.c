/* A bare echo on io_uring: multishot accept and receive, provided buffers, sent as they came in.
 *
 * One enter per turn of the loop submits the answers of the turn before and waits for the next
 * completions; with DEFER_TASKRUN completions are made in that enter only. A buffer goes from the
 * kernel to the send and back to the kernel; nothing is copied. Pieces that came on one connection
 * in one turn leave in one send, and one send of a connection is in flight at most, because two
 * could overtake each other. It reads without end, so a client that does not read takes all buffers
 * of the others. */
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
#define BUFFER_SIZE  4096 /* that of domus by default; a third argument is another one */
#define PAGE_SIZE    4096
#define BUFFER_GROUP 0
#define PIECES_MAX   16 /* the most pieces of one send */
#define FDS_MAX      32768
#define NONE         (-1)

enum operation { ACCEPT, RECEIVE, SEND, CLOSE, TERM };

/* Buffers by their numbers: a list that `next_buffer` links. */
struct connection {
    int first;        /* the oldest buffer that is not sent yet; NONE: there is none */
    int last;         /* the newest one */
    int pieces;       /* buffers of the send that is in flight; 0: there is none */
    int next_touched; /* the next connection that has something to send in this turn */
    bool is_touched;
    struct msghdr message;
    struct iovec vector[PIECES_MAX];
};

struct server {
    struct peer peer;
    struct io_uring ring;
    struct io_uring_buf_ring *buffer_ring;
    char *buffers;
    size_t buffer_size;
    int listener;
    int touched; /* the first connection that has something to send; NONE: there is none */
    struct connection *connections; /* FDS_MAX, by descriptor */
    int next_buffer[BUFFERS];
    size_t lengths[BUFFERS]; /* bytes that came in each buffer */
    int returned;            /* buffers put into the ring in this turn, not yet published */
    bool stopping;
};

static uint64_t tag_of_operation(enum operation operation, int fd)
{
    return (uint64_t)operation << 56 | (uint32_t)fd;
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
    return server->buffers + (size_t)buffer * server->buffer_size;
}

static void give_buffer(struct server *server, unsigned int buffer)
{
    io_uring_buf_ring_add(server->buffer_ring, buffer_at(server, buffer),
                          (unsigned int)server->buffer_size, (unsigned short)buffer,
                          io_uring_buf_ring_mask(BUFFERS), server->returned++);
}

static void arm_accept(struct server *server)
{
    struct io_uring_sqe *sqe = next_sqe(server);

    io_uring_prep_multishot_accept(sqe, server->listener, NULL, NULL, SOCK_CLOEXEC);
    sqe->user_data = tag_of_operation(ACCEPT, server->listener);
}

static void arm_receive(struct server *server, int fd)
{
    struct io_uring_sqe *sqe = next_sqe(server);

    io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
    sqe->user_data = tag_of_operation(RECEIVE, fd);
}

static void on_accepted(struct server *server, const struct io_uring_cqe *cqe)
{
    if (cqe->res >= FDS_MAX) {
        errno = EMFILE;
        peer_fail("accept");
    }
    if (cqe->res >= 0) {
        server->connections[cqe->res] = (struct connection){.first = NONE, .last = NONE};
        arm_receive(server, cqe->res);
    }
    if ((cqe->flags & IORING_CQE_F_MORE) == 0)
        arm_accept(server);
}

/* Note that the connection has something to send at the end of this turn. */
static void note_unsent_bytes(struct server *server, int fd)
{
    struct connection *connection = &server->connections[fd];

    if (connection->is_touched || connection->pieces != 0)
        return;
    connection->is_touched = true;
    connection->next_touched = server->touched;
    server->touched = fd;
}

static void on_received(struct server *server, const struct io_uring_cqe *cqe, int fd)
{
    if (cqe->res > 0) {
        int buffer = (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
        struct connection *connection = &server->connections[fd];

        server->peer.received++;
        server->lengths[buffer] = (size_t)cqe->res;
        server->next_buffer[buffer] = NONE;
        if (connection->first == NONE)
            connection->first = buffer;
        else
            server->next_buffer[connection->last] = buffer;
        connection->last = buffer;
        note_unsent_bytes(server, fd);
        /* A multishot may end with data in it, when the completion queue overflowed. */
        if ((cqe->flags & IORING_CQE_F_MORE) == 0)
            arm_receive(server, fd);
    } else if (cqe->res == -ENOBUFS) {
        arm_receive(server, fd);
    } else {
        struct io_uring_sqe *sqe = next_sqe(server);

        io_uring_prep_close(sqe, fd);
        sqe->user_data = tag_of_operation(CLOSE, fd);
    }
}

/* Send the pieces that a connection has, up to PIECES_MAX. */
static void send_pieces(struct server *server, int fd)
{
    struct connection *connection = &server->connections[fd];
    struct io_uring_sqe *sqe = next_sqe(server);

    for (int buffer = connection->first; buffer != NONE && connection->pieces < PIECES_MAX;
         buffer = server->next_buffer[buffer])
        connection->vector[connection->pieces++] = (struct iovec){
            .iov_base = buffer_at(server, (unsigned int)buffer),
            .iov_len = server->lengths[buffer],
        };
    if (connection->pieces == 1) {
        io_uring_prep_send(sqe, fd, connection->vector[0].iov_base, connection->vector[0].iov_len,
                           MSG_WAITALL | MSG_NOSIGNAL);
    } else {
        connection->message.msg_iov = connection->vector;
        connection->message.msg_iovlen = (size_t)connection->pieces;
        io_uring_prep_sendmsg(sqe, fd, &connection->message, MSG_WAITALL | MSG_NOSIGNAL);
    }
    sqe->user_data = tag_of_operation(SEND, fd);
}

static void send_touched(struct server *server)
{
    while (server->touched != NONE) {
        int fd = server->touched;

        server->touched = server->connections[fd].next_touched;
        server->connections[fd].is_touched = false;
        send_pieces(server, fd);
    }
}

/* Give the buffers of a send back. A send that the peer's end has cut short is not repeated. */
static void on_sent(struct server *server, int fd)
{
    struct connection *connection = &server->connections[fd];

    for (; connection->pieces > 0; connection->pieces--) {
        int buffer = connection->first;

        connection->first = server->next_buffer[buffer];
        give_buffer(server, (unsigned int)buffer);
    }
    if (connection->first != NONE)
        note_unsent_bytes(server, fd);
}

static void dispatch_completion(struct server *server, const struct io_uring_cqe *cqe)
{
    int fd = (int)(uint32_t)cqe->user_data;

    switch ((enum operation)(cqe->user_data >> 56)) {
    case ACCEPT:
        on_accepted(server, cqe);
        break;
    case RECEIVE:
        on_received(server, cqe, fd);
        break;
    case SEND:
        on_sent(server, fd);
        break;
    case TERM:
        server->stopping = true;
        break;
    case CLOSE:
        break;
    }
}

static void serve_connections(struct server *server)
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
            dispatch_completion(server, cqe);
            count++;
        }
        io_uring_cq_advance(&server->ring, count);
        send_touched(server);
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

    server->buffer_ring = aligned_alloc(PAGE_SIZE, ring_size);
    server->buffers = aligned_alloc(PAGE_SIZE, BUFFERS * server->buffer_size);
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

    server.buffer_size = argc == 4 ? strtoul(argv[3], NULL, 10) : BUFFER_SIZE;
    peer_init(&server.peer, argc == 4 ? 3 : argc, argv);
    if (server.buffer_size % PAGE_SIZE != 0 || server.buffer_size == 0) {
        errno = EINVAL;
        peer_fail("the size of a buffer");
    }
    int on_term = peer_signal_open();
    server.listener = peer_listen(&server.peer, 0);
    ring_open(&server);
    buffers_open(&server);

    server.touched = NONE;
    server.connections = calloc(FDS_MAX, sizeof *server.connections);
    if (server.connections == NULL)
        peer_fail("connections");
    arm_accept(&server);
    struct io_uring_sqe *sqe = next_sqe(&server);
    io_uring_prep_poll_add(sqe, on_term, POLLIN);
    sqe->user_data = tag_of_operation(TERM, on_term);

    peer_announce(&server.peer, server.listener);
    serve_connections(&server);
    peer_report(&server.peer);
    return 0;
}
