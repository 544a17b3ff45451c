/* This file runs the load of load.h over level-triggered epoll.
 *
 * A connection of a paced load is idle or has `depth` messages under way. The idle ones are in a
 * ring, so that all connections have their turns.
 *
 * A receive is checked by one memcmp, and a send copies nothing. For that one table holds one
 * period of the stream and one more chunk, so that any chunk of the stream lies in one piece. The
 * period is a prime, so that a stream that is shifted by whole messages does not fit by
 * accident. */
#include "bench/load.h"

#include "bench/support/histogram.h"
#include "bench/support/measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PERIOD     4093u
#define CHUNK      65536u
#define EVENTS_MAX 512
#define WAIT_NS    100000000 /* ns by which a run may end late if no answers come */
#define TICK_NS    100000    /* ns between two sends of due messages of a paced load, at most */

struct connection {
    int fd;
    bool waits_to_send;
    uint32_t send_at;    /* offset in the stream's period of the next byte to send */
    uint32_t receive_at; /* offset in the stream's period of the next byte that must come back */
    uint32_t unsent;     /* number of bytes that are due, but that the socket has not taken yet */
    uint32_t in_flight;  /* number of bytes that were sent and have not come back */
    uint32_t part;       /* number of bytes of the oldest message under way that have come back */
    uint32_t oldest;     /* index in `sent_ns` of the oldest message under way */
    /* number of messages of a paced load that have not come back on this connection */
    uint32_t under_way;
    /* times at which the messages under way were sent: a ring of `depth` entries */
    uint64_t *sent_ns;
};

struct load {
    const struct load_options *options;
    int epoll;
    uint32_t connected;
    bool stopping;
    uint64_t now_ns;
    uint64_t messages; /* number of messages that have come back whole */
    uint64_t pending;  /* number of messages that were sent and have not come back whole */
    uint64_t start_ns;
    uint64_t issued; /* number of batches, of `depth` messages each, that a paced load has sent */
    /* for a paced load: `idle` is a ring of the idle connections, which begins at this index */
    uint32_t idle_first;
    uint32_t idle_count;
    uint32_t *idle;
    struct connection *connections;
    uint64_t *sent_ns;
    struct histogram histogram;
    unsigned char stream[PERIOD + CHUNK];
    unsigned char received[CHUNK];
};

static bool are_options_valid(const struct load_options *options)
{
    return options->connections >= 1 && options->connections <= LOAD_CONNECTIONS_MAX &&
           options->size >= 1 && options->depth >= 1 &&
           (uint64_t)options->size * options->depth <= LOAD_IN_FLIGHT_MAX && options->rate >= 0 &&
           options->duration_ns > 0 && options->stall_ns > 0;
}

static void fill_stream_with_random_period(unsigned char *stream)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

    for (uint32_t i = 0; i < PERIOD; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        stream[i] = (unsigned char)(state >> 32);
    }
    for (uint32_t i = PERIOD; i < PERIOD + CHUNK; i++)
        stream[i] = stream[i - PERIOD];
}

/* Connect a blocking socket, so that the call waits for a service that is not accepting yet. The
 * socket's time-outs are the stall time; on Linux SO_SNDTIMEO bounds connect, too. */
static int connect_to_service(const struct load_options *options, int *ret_fd)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(options->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct timeval stall = {
        .tv_sec = (time_t)(options->stall_ns / 1000000000),
        .tv_usec = (suseconds_t)(options->stall_ns % 1000000000 / 1000),
    };
    int on = 1;
    int error = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof stall) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &stall, sizeof stall) != 0) {
        error = -errno;
        goto close_fd;
    }
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        error = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
        goto close_fd;
    }
    *ret_fd = fd;
    return 0;

close_fd:
    close(fd);
    return error;
}

static void free_load(struct load *load)
{
    if (load == NULL)
        return;
    for (uint32_t i = 0; i < load->connected; i++)
        close(load->connections[i].fd);
    if (load->epoll >= 0)
        close(load->epoll);
    free(load->idle);
    free(load->sent_ns);
    free(load->connections);
    free(load);
}

/* Make a load whose connections are not open yet. Returns 0 or a negative errno. */
static int make_load_unconnected(const struct load_options *options, struct load **ret_load)
{
    struct load *load = calloc(1, sizeof *load);

    if (load == NULL)
        return -ENOMEM;
    load->options = options;
    load->connections = calloc(options->connections, sizeof *load->connections);
    load->sent_ns = calloc((size_t)options->connections * options->depth, sizeof *load->sent_ns);
    load->idle = calloc(options->connections, sizeof *load->idle);
    load->epoll = -1;
    if (load->connections == NULL || load->sent_ns == NULL || load->idle == NULL) {
        free_load(load);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < options->connections; i++) {
        struct connection *connection = &load->connections[i];
        connection->send_at = connection->receive_at = (uint32_t)(UINT64_C(61) * i % PERIOD);
        connection->sent_ns = &load->sent_ns[(size_t)i * options->depth];
    }
    fill_stream_with_random_period(load->stream);
    *ret_load = load;
    return 0;
}

static int open_connections_of_load(struct load *load)
{
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (load->epoll < 0)
        return -errno;
    for (uint32_t i = 0; i < load->options->connections; i++) {
        struct connection *connection = &load->connections[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};

        int error = connect_to_service(load->options, &connection->fd);
        if (error != 0)
            return error;
        load->connected++;
        if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, connection->fd, &event) != 0)
            return -errno;
    }
    return 0;
}

/* Watch a connection of the load for bytes to receive, and with `to_send` also for room to send. */
static int watch_connection_for_room_or_not(struct load *load, struct connection *connection,
                                            bool to_send)
{
    struct epoll_event event = {
        .events = to_send ? EPOLLIN | EPOLLOUT : EPOLLIN,
        .data.ptr = connection,
    };

    if (connection->waits_to_send == to_send)
        return 0;
    connection->waits_to_send = to_send;
    return epoll_ctl(load->epoll, EPOLL_CTL_MOD, connection->fd, &event) == 0 ? 0 : -errno;
}

static int send_on_connection(struct load *load, struct connection *connection)
{
    while (connection->unsent > 0) {
        size_t length = connection->unsent < CHUNK ? connection->unsent : CHUNK;
        ssize_t sent = send(connection->fd, load->stream + connection->send_at, length,
                            MSG_DONTWAIT | MSG_NOSIGNAL);

        if (sent < 0 && errno == EAGAIN)
            return watch_connection_for_room_or_not(load, connection, true);
        if (sent < 0)
            return errno == EPIPE ? -ECONNRESET : -errno;
        connection->send_at = (connection->send_at + (uint32_t)sent) % PERIOD;
        connection->unsent -= (uint32_t)sent;
        connection->in_flight += (uint32_t)sent;
    }
    return watch_connection_for_room_or_not(load, connection, false);
}

static void append_idle_connection(struct load *load, const struct connection *connection)
{
    uint32_t end = load->idle_first + load->idle_count++;

    load->idle[end % load->options->connections] = (uint32_t)(connection - load->connections);
}

static struct connection *take_longest_idle_connection(struct load *load)
{
    uint32_t first = load->idle[load->idle_first];

    load->idle_first = (load->idle_first + 1) % load->options->connections;
    load->idle_count--;
    return &load->connections[first];
}

/* Count `length` bytes of a connection that came back. In a closed loop as many messages are then
 * sent as have come back whole. */
static void count_returned_and_send_next_messages(struct load *load, struct connection *connection,
                                                  uint32_t length)
{
    connection->part += length;
    while (connection->part >= load->options->size) {
        uint64_t *sent_ns = &connection->sent_ns[connection->oldest];

        connection->part -= load->options->size;
        histogram_add_value(&load->histogram, load->now_ns - *sent_ns);
        load->messages++;
        if (++connection->oldest == load->options->depth)
            connection->oldest = 0;
        if (load->options->rate > 0) {
            load->pending--;
            if (--connection->under_way == 0)
                append_idle_connection(load, connection);
        } else if (load->stopping) {
            load->pending--;
        } else {
            *sent_ns = load->now_ns;
            connection->unsent += load->options->size;
        }
    }
}

static int receive_on_connection(struct load *load, struct connection *connection)
{
    ssize_t got = recv(connection->fd, load->received, CHUNK, MSG_DONTWAIT);

    if (got < 0)
        return errno == EAGAIN ? 0 : -errno;
    if (got == 0)
        return -ECONNRESET;
    if ((size_t)got > connection->in_flight ||
        memcmp(load->received, load->stream + connection->receive_at, (size_t)got) != 0)
        return -EBADMSG;
    connection->receive_at = (connection->receive_at + (uint32_t)got) % PERIOD;
    connection->in_flight -= (uint32_t)got;
    count_returned_and_send_next_messages(load, connection, (uint32_t)got);
    return 0;
}

/* Send `depth` messages on each idle connection, as long as messages are due.
 *
 * A batch that had to wait for an idle connection was due earlier, and its latency counts from that
 * time. The wait for the tick is the load's own and does not count. */
static int send_due_messages(struct load *load)
{
    const struct load_options *options = load->options;
    double batch_ns = 1e9 * options->depth / options->rate;

    while (load->idle_count > 0) {
        uint64_t due_ns = load->start_ns + (uint64_t)((double)load->issued * batch_ns);
        if (due_ns > load->now_ns)
            return 0;

        struct connection *connection = take_longest_idle_connection(load);
        bool is_late = load->now_ns - due_ns > TICK_NS;
        for (uint32_t i = 0; i < options->depth; i++)
            connection->sent_ns[i] = is_late ? due_ns : load->now_ns;
        connection->unsent = options->size * options->depth;
        connection->under_way = options->depth;
        load->pending += options->depth;
        load->issued++;
        int error = send_on_connection(load, connection);
        if (error != 0)
            return error;
    }
    return 0;
}

/* Wait once for events of the load, and handle them. `ret_events` is 0 if nothing happened, so that
 * the caller notices a stalled service. */
static int handle_events_once(struct load *load, int *ret_events)
{
    struct epoll_event events[EVENTS_MAX];
    bool paced = load->options->rate > 0 && !load->stopping;
    struct timespec wait = {.tv_nsec = paced ? TICK_NS : WAIT_NS};
    int count = epoll_pwait2(load->epoll, events, EVENTS_MAX, &wait, NULL);

    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    load->now_ns = measure_now_ns();
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        int error = 0;

        if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0)
            error = receive_on_connection(load, connection);
        if (error == 0 && connection->unsent > 0)
            error = send_on_connection(load, connection);
        if (error != 0)
            return error;
    }
    *ret_events = count;
    return paced ? send_due_messages(load) : 0;
}

static int start_load(struct load *load)
{
    load->start_ns = load->now_ns = measure_now_ns();
    if (load->options->rate > 0) {
        for (uint32_t i = 0; i < load->options->connections; i++)
            append_idle_connection(load, &load->connections[i]);
        return send_due_messages(load);
    }
    for (uint32_t i = 0; i < load->options->connections; i++) {
        struct connection *connection = &load->connections[i];

        load->now_ns = measure_now_ns();
        for (uint32_t j = 0; j < load->options->depth; j++)
            connection->sent_ns[j] = load->now_ns;
        connection->unsent = load->options->size * load->options->depth;
        load->pending += load->options->depth;

        int error = send_on_connection(load, connection);
        if (error != 0)
            return error;
    }
    return 0;
}

/* Wait until all messages that are under way have come back. At least one byte must come every
 * `stall_ns`. */
static int wait_until_all_messages_have_returned(struct load *load)
{
    uint64_t heard_ns = load->now_ns;

    load->stopping = true;
    while (load->pending > 0) {
        int events = 0;
        int error = handle_events_once(load, &events);

        if (error != 0)
            return error;
        if (events > 0)
            heard_ns = load->now_ns;
        else if (load->now_ns - heard_ns >= load->options->stall_ns)
            return -ETIMEDOUT;
    }
    return 0;
}

/* Half-close each connection, because all its bytes are back, and expect the end of the service's
 * stream. A further byte is an error. */
static int expect_end_of_all_streams(struct load *load)
{
    for (uint32_t i = 0; i < load->options->connections; i++)
        if (shutdown(load->connections[i].fd, SHUT_WR) != 0)
            return errno == ENOTCONN ? -ECONNRESET : -errno;
    for (uint32_t i = 0; i < load->options->connections; i++) {
        unsigned char surplus;
        ssize_t got = recv(load->connections[i].fd, &surplus, 1, 0);

        if (got > 0)
            return -EBADMSG;
        if (got < 0)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
    }
    return 0;
}

/* Store in each `cpu_ns` the CPU time of its watched process less the value that it had. So a
 * second call gives the time that each process has used since the first call. */
static int measure_watched_cpu_time(const struct load_options *options, uint64_t *cpu_ns)
{
    for (int i = 0; i < LOAD_WATCHED_MAX; i++) {
        uint64_t now_ns = 0;
        int error = options->watched[i] == 0
                        ? 0
                        : measure_cpu_ns_of_other_process(options->watched[i], &now_ns);
        if (error != 0)
            return error;
        cpu_ns[i] = now_ns - cpu_ns[i];
    }
    return 0;
}

static int measure_load(struct load *load, struct load_result *ret_result)
{
    struct load_result result = {0};
    int error = measure_watched_cpu_time(load->options, result.watched_cpu_ns);
    uint64_t cpu_ns = measure_thread_cpu_ns();

    if (error == 0)
        error = start_load(load);
    while (error == 0 && load->now_ns - load->start_ns < load->options->duration_ns) {
        int events = 0;
        error = handle_events_once(load, &events);
    }
    if (error != 0)
        return error;

    result.rate = (double)load->messages * 1e9 / (double)(load->now_ns - load->start_ns);
    error = wait_until_all_messages_have_returned(load);
    if (error != 0)
        return error;
    result.messages = load->messages;
    result.cpu_ns = measure_thread_cpu_ns() - cpu_ns;
    result.elapsed_ns = measure_now_ns() - load->start_ns;
    error = measure_watched_cpu_time(load->options, result.watched_cpu_ns);
    if (error == 0)
        error = expect_end_of_all_streams(load);
    if (error != 0)
        return error;
    result.p50_us = histogram_value_at_share(&load->histogram, 0.5) / 1e3;
    result.p99_us = histogram_value_at_share(&load->histogram, 0.99) / 1e3;
    result.p999_us = histogram_value_at_share(&load->histogram, 0.999) / 1e3;
    *ret_result = result;
    return 0;
}

int load_run_to_its_end(const struct load_options *options, struct load_result *ret_result)
{
    struct load *load = NULL;

    if (!are_options_valid(options))
        return -EINVAL;
    int error = options->cpu == LOAD_ANY_CPU ? 0 : measure_pin_thread_to_cpu(options->cpu);
    /* The number of ns by which the kernel may wake this thread late; its default is 50 us. */
    if (error == 0 && prctl(PR_SET_TIMERSLACK, 1UL) != 0)
        error = -errno;
    if (error != 0)
        return error;
    error = make_load_unconnected(options, &load);
    if (error != 0)
        return error;
    error = open_connections_of_load(load);
    if (error == 0)
        error = measure_load(load, ret_result);
    free_load(load);
    return error;
}
