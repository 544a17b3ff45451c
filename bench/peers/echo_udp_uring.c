/* A bare UDP echo on io_uring: multishot recvmsg into provided buffers, and each datagram is sent
 * back to its sender from the buffer in which it came.
 *
 * One enter per turn of the loop submits the answers of the turn before and waits for the next
 * completions. The address of an answer lies in the buffer, too, in front of the bytes, so nothing
 * is copied and nothing is looked up. */
#include "bench/peers/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SUBMISSIONS  4096
#define COMPLETIONS  16384
#define BUFFERS      1024
#define BUFFER_SIZE  4096
#define BUFFER_GROUP 0

enum operation { RECEIVE = 1, SEND, TERM };

struct server {
    struct peer peer;
    struct io_uring ring;
    struct io_uring_buf_ring *buffer_ring;
    char *buffers;
    /* tells the kernel how many bytes of each buffer to keep for the sender's address */
    struct msghdr room;
    int fd;
    /* number of buffers that were put into the ring in this turn and not yet published */
    int returned;
    bool stopping;
};

static uint64_t make_tag_of_operation(enum operation operation, unsigned int buffer)
{
    return (uint64_t)operation << 56 | buffer;
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
    return server->buffers + (size_t)buffer * BUFFER_SIZE;
}

static void return_buffer_to_ring(struct server *server, unsigned int buffer)
{
    io_uring_buf_ring_add(server->buffer_ring, get_buffer_of_number(server, buffer), BUFFER_SIZE,
                          (unsigned short)buffer, io_uring_buf_ring_mask(BUFFERS),
                          server->returned++);
}

static void arm_multishot_receive(struct server *server)
{
    struct io_uring_sqe *sqe = get_next_free_sqe(server);

    io_uring_prep_recvmsg_multishot(sqe, server->fd, &server->room, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
    sqe->user_data = make_tag_of_operation(RECEIVE, 0);
}

static void send_datagram_back(struct server *server, unsigned int buffer, int size)
{
    struct io_uring_recvmsg_out *out =
        io_uring_recvmsg_validate(get_buffer_of_number(server, buffer), size, &server->room);
    struct io_uring_sqe *sqe = get_next_free_sqe(server);

    if (out == NULL)
        peer_print_error_and_exit("recvmsg");
    server->peer.received++;
    io_uring_prep_send(sqe, server->fd, io_uring_recvmsg_payload(out, &server->room),
                       io_uring_recvmsg_payload_length(out, size, &server->room),
                       MSG_NOSIGNAL | MSG_DONTWAIT);
    sqe->addr2 = (uintptr_t)io_uring_recvmsg_name(out);
    sqe->addr_len = (uint16_t)out->namelen;
    sqe->user_data = make_tag_of_operation(SEND, buffer);
}

static void handle_received_datagram(struct server *server, const struct io_uring_cqe *cqe)
{
    if ((cqe->flags & IORING_CQE_F_BUFFER) != 0)
        send_datagram_back(server, cqe->flags >> IORING_CQE_BUFFER_SHIFT, cqe->res);
    if ((cqe->flags & IORING_CQE_F_MORE) == 0)
        arm_multishot_receive(server);
}

static void dispatch_completion(struct server *server, const struct io_uring_cqe *cqe)
{
    switch ((enum operation)(cqe->user_data >> 56)) {
    case RECEIVE:
        handle_received_datagram(server, cqe);
        break;
    case SEND:
        return_buffer_to_ring(server, (unsigned int)cqe->user_data & 0xffff);
        break;
    case TERM:
        server->stopping = true;
        break;
    }
}

static void serve_datagrams(struct server *server)
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

    if (result < 0) {
        errno = -result;
        peer_print_error_and_exit("io_uring_queue_init_params");
    }
    if (posix_memalign((void **)&server->buffer_ring, 4096,
                       BUFFERS * sizeof(struct io_uring_buf)) != 0 ||
        posix_memalign((void **)&server->buffers, 4096, (size_t)BUFFERS * BUFFER_SIZE) != 0)
        peer_print_error_and_exit("posix_memalign");
    io_uring_buf_ring_init(server->buffer_ring);
    struct io_uring_buf_reg registration = {
        .ring_addr = (uintptr_t)server->buffer_ring,
        .ring_entries = BUFFERS,
        .bgid = BUFFER_GROUP,
    };
    result = io_uring_register_buf_ring(&server->ring, &registration, 0);
    if (result < 0) {
        errno = -result;
        peer_print_error_and_exit("io_uring_register_buf_ring");
    }
    (void)io_uring_register_ring_fd(&server->ring);
    for (unsigned int i = 0; i < BUFFERS; i++)
        return_buffer_to_ring(server, i);
    io_uring_buf_ring_advance(server->buffer_ring, server->returned);
    server->returned = 0;
}

int main(int argc, char **argv)
{
    static struct server server;
    struct sockaddr_in address = {.sin_family = AF_INET};

    peer_read_arguments_and_pin(&server.peer, argc, argv);
    address.sin_port = htons(server.peer.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.room.msg_namelen = sizeof(struct sockaddr_in6);
    server.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (server.fd < 0 || bind(server.fd, (struct sockaddr *)&address, sizeof address) != 0)
        peer_print_error_and_exit("bind");
    int signals = peer_open_signal_descriptor();
    open_ring(&server);
    arm_multishot_receive(&server);
    struct io_uring_sqe *sqe = get_next_free_sqe(&server);
    io_uring_prep_poll_add(sqe, signals, POLLIN);
    sqe->user_data = make_tag_of_operation(TERM, 0);
    peer_print_listening_port(&server.peer, server.fd);
    serve_datagrams(&server);
    peer_print_cpu_time(&server.peer);
    return EXIT_SUCCESS;
}
