/* A bare echo on io_uring: multishot accept and receive, and provided buffers, which are sent as
 * they came.
 *
 * One enter per turn of the loop submits the answers of the turn before and waits for the next
 * completions; with DEFER_TASKRUN completions are made in that enter only. A buffer goes from the
 * kernel to the send and back to the kernel; nothing is copied. Pieces that came on one connection
 * in one turn are sent together, and at most one send of a connection is in flight, because two
 * could overtake each other. It reads without a bound, so a client that does not read takes all
 * buffers from the others. */
#include "bench/peers/peer.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#define SUBMISSIONS 4096
#define COMPLETIONS 16384
#define BUFFERS     1024
/* bytes of a receive buffer, as domus has them by default; a third argument of the program changes
 * them */
#define BUFFER_SIZE  4096
#define PAGE_SIZE    4096
#define BUFFER_GROUP 0
#define PIECES_MAX   16 /* pieces that one send may have */
#define FDS_MAX      32768
#define NONE         (-1)

enum operation { ACCEPT, RECEIVE, SEND, CLOSE, TERM };

/* A connection, with its buffers that are to be sent: a list of buffer numbers that `next_buffer`
 * links. */
struct connection {
    int first;        /* number of the oldest buffer that is not sent yet; NONE: there is none */
    int last;         /* number of the newest buffer that is not sent yet */
    int pieces;       /* number of buffers in the send that is in flight; 0: no send is */
    int next_touched; /* the next connection of those that have something to send in this turn */
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
    /* the first connection of those that have something to send; NONE: there is none */
    int touched;
    /* all connections: an array of FDS_MAX, indexed by descriptor */
    struct connection *connections;
    int next_buffer[BUFFERS];
    size_t lengths[BUFFERS]; /* for each buffer, the bytes that were received into it */
    /* number of buffers that were put into the ring in this turn and not yet published */
    int returned;
    bool stopping;
};

static uint64_t make_tag_of_operation(enum operation operation, int fd)
{
    return (uint64_t)operation << 56 | (uint32_t)fd;
}

static struct io_uring_sqe *get_next_free_sqe(struct server *server)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&server->ring);

    while (sqe == NULL) {
        int submitted = io_uring_submit(&server->ring);
        if (submitted < 0 && submitted != -EINTR && submitted != -EAGAIN && submitted != -EBUSY) {
            errno = -submitted;
            peer_print_error_and_exit("io_uring_submit");
        }
        sqe = io_uring_get_sqe(&server->ring);
    }
    return sqe;
}

static char *get_buffer_of_number(const struct server *server, unsigned int buffer)
{
    return server->buffers + (size_t)buffer * server->buffer_size;
}

static void return_buffer_to_ring(struct server *server, unsigned int buffer)
{
    io_uring_buf_ring_add(server->buffer_ring, get_buffer_of_number(server, buffer),
                          (unsigned int)server->buffer_size, (unsigned short)buffer,
                          io_uring_buf_ring_mask(BUFFERS), server->returned++);
}

static void arm_multishot_accept(struct server *server)
{
    struct io_uring_sqe *sqe = get_next_free_sqe(server);

    io_uring_prep_multishot_accept(sqe, server->listener, NULL, NULL, SOCK_CLOEXEC);
    sqe->user_data = make_tag_of_operation(ACCEPT, server->listener);
}

static void arm_multishot_receive(struct server *server, int fd)
{
    struct io_uring_sqe *sqe = get_next_free_sqe(server);

    io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
    sqe->user_data = make_tag_of_operation(RECEIVE, fd);
}

static void handle_accepted_connection(struct server *server, const struct io_uring_cqe *cqe)
{
    if (cqe->res >= FDS_MAX) {
        errno = EMFILE;
        peer_print_error_and_exit("accept");
    }
    if (cqe->res >= 0) {
        server->connections[cqe->res] = (struct connection){.first = NONE, .last = NONE};
        arm_multishot_receive(server, cqe->res);
    }
    if ((cqe->flags & IORING_CQE_F_MORE) == 0)
        arm_multishot_accept(server);
}

/* Note that a connection has something to send at the end of this turn. */
static void list_connection_to_send_at_turn_end(struct server *server, int fd)
{
    struct connection *connection = &server->connections[fd];

    if (connection->is_touched || connection->pieces != 0)
        return;
    connection->is_touched = true;
    connection->next_touched = server->touched;
    server->touched = fd;
}

static void handle_received_bytes(struct server *server, const struct io_uring_cqe *cqe, int fd)
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
        list_connection_to_send_at_turn_end(server, fd);
        /* When the completion queue has overflowed, a multishot receive may end with a completion
         * that still has data. */
        if ((cqe->flags & IORING_CQE_F_MORE) == 0)
            arm_multishot_receive(server, fd);
    } else if (cqe->res == -ENOBUFS) {
        arm_multishot_receive(server, fd);
    } else {
        struct io_uring_sqe *sqe = get_next_free_sqe(server);

        io_uring_prep_close(sqe, fd);
        sqe->user_data = make_tag_of_operation(CLOSE, fd);
    }
}

/* Send the buffers that wait on a connection, up to PIECES_MAX of them. */
static void send_pieces_of_connection(struct server *server, int fd)
{
    struct connection *connection = &server->connections[fd];
    struct io_uring_sqe *sqe = get_next_free_sqe(server);

    for (int buffer = connection->first; buffer != NONE && connection->pieces < PIECES_MAX;
         buffer = server->next_buffer[buffer])
        connection->vector[connection->pieces++] = (struct iovec){
            .iov_base = get_buffer_of_number(server, (unsigned int)buffer),
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
    sqe->user_data = make_tag_of_operation(SEND, fd);
}

static void send_pieces_of_all_connections(struct server *server)
{
    while (server->touched != NONE) {
        int fd = server->touched;

        server->touched = server->connections[fd].next_touched;
        server->connections[fd].is_touched = false;
        send_pieces_of_connection(server, fd);
    }
}

/* Return the buffers of a send that has ended to the kernel. A send that was cut short by the end
 * of the peer is not repeated. */
static void handle_completed_send(struct server *server, int fd)
{
    struct connection *connection = &server->connections[fd];

    for (; connection->pieces > 0; connection->pieces--) {
        int buffer = connection->first;

        connection->first = server->next_buffer[buffer];
        return_buffer_to_ring(server, (unsigned int)buffer);
    }
    if (connection->first != NONE)
        list_connection_to_send_at_turn_end(server, fd);
}

static void dispatch_completion(struct server *server, const struct io_uring_cqe *cqe)
{
    int fd = (int)(uint32_t)cqe->user_data;

    switch ((enum operation)(cqe->user_data >> 56)) {
    case ACCEPT:
        handle_accepted_connection(server, cqe);
        break;
    case RECEIVE:
        handle_received_bytes(server, cqe, fd);
        break;
    case SEND:
        handle_completed_send(server, fd);
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
            peer_print_error_and_exit("io_uring_submit_and_wait");
        }
        io_uring_for_each_cqe(&server->ring, head, cqe)
        {
            dispatch_completion(server, cqe);
            count++;
        }
        io_uring_cq_advance(&server->ring, count);
        send_pieces_of_all_connections(server);
        if (server->returned > 0) {
            io_uring_buf_ring_advance(server->buffer_ring, server->returned);
            server->returned = 0;
        }
    }
}

static void open_ring(struct server *server)
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
        peer_print_error_and_exit("io_uring");
    }
}

static void open_buffers(struct server *server)
{
    size_t ring_size = BUFFERS * sizeof(struct io_uring_buf);
    struct io_uring_buf_reg registration = {.ring_entries = BUFFERS, .bgid = BUFFER_GROUP};

    server->buffer_ring = aligned_alloc(PAGE_SIZE, ring_size);
    server->buffers = aligned_alloc(PAGE_SIZE, BUFFERS * server->buffer_size);
    if (server->buffer_ring == NULL || server->buffers == NULL)
        peer_print_error_and_exit("buffers");
    registration.ring_addr = (uintptr_t)server->buffer_ring;

    int result = io_uring_register_buf_ring(&server->ring, &registration, 0);
    if (result < 0) {
        errno = -result;
        peer_print_error_and_exit("io_uring_register_buf_ring");
    }
    io_uring_buf_ring_init(server->buffer_ring);
    for (unsigned int i = 0; i < BUFFERS; i++)
        return_buffer_to_ring(server, i);
    io_uring_buf_ring_advance(server->buffer_ring, server->returned);
    server->returned = 0;
}

int main(int argc, char **argv)
{
    static struct server server;

    server.buffer_size = argc == 4 ? strtoul(argv[3], NULL, 10) : BUFFER_SIZE;
    peer_read_arguments_and_pin(&server.peer, argc == 4 ? 3 : argc, argv);
    if (server.buffer_size % PAGE_SIZE != 0 || server.buffer_size == 0) {
        errno = EINVAL;
        peer_print_error_and_exit("the size of a buffer");
    }
    int on_term = peer_open_signal_descriptor();
    server.listener = peer_open_listening_socket(&server.peer, 0);
    open_ring(&server);
    open_buffers(&server);

    server.touched = NONE;
    server.connections = calloc(FDS_MAX, sizeof *server.connections);
    if (server.connections == NULL)
        peer_print_error_and_exit("connections");
    arm_multishot_accept(&server);
    struct io_uring_sqe *sqe = get_next_free_sqe(&server);
    io_uring_prep_poll_add(sqe, on_term, POLLIN);
    sqe->user_data = make_tag_of_operation(TERM, on_term);

    peer_print_listening_port(&server.peer, server.listener);
    serve_connections(&server);
    peer_print_cpu_time(&server.peer);
    return 0;
}
