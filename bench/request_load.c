/* This file runs the load of request_load.h over epoll. The requests that a connection sends at
 * once are made once, and only the bytes that differ are written anew for each send. */
#include "bench/request_load.h"

#include "bench/support/histogram.h"
#include "bench/support/measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* bytes of the buffer for one receive, with the kept bytes in front of it */
#define ANSWERS_MAX 65536u
#define EVENTS_MAX  64
#define TICK_NS     100000 /* ns between two sends of due requests of a paced load, at most */

struct connection {
    int fd;
    void *link;         /* state of the link for this connection; NULL: the load has no link */
    uint32_t under_way; /* number of requests of this connection whose answers have not come yet */
    uint32_t kept;      /* number of received bytes in `kept` that could not be checked yet */
    uint64_t place;     /* how far check() of the kind is within the present answer */
    uint64_t sent_ns;
};

struct load {
    const struct request_load_options *options;
    int epoll;
    char *batch;      /* the requests that are sent together */
    uint32_t request; /* bytes of one request in `batch` */
    uint32_t connected;
    uint32_t idle_first, idle_count;
    /* a ring of the idle connections, from idle_first on */
    struct connection *idle[REQUEST_LOAD_CONNECTIONS_MAX];
    struct connection connections[REQUEST_LOAD_CONNECTIONS_MAX];
    char kept[REQUEST_LOAD_CONNECTIONS_MAX][REQUEST_LOAD_KEPT_MAX];
    uint64_t now_ns, start_ns;
    uint64_t sent, answers, batches;
    bool is_behind; /* requests were due while all connections were busy */
    struct histogram latencies;
    char bytes[ANSWERS_MAX];
};

static ssize_t send_batch_bytes_by_link_or_socket(const struct load *load,
                                                  struct connection *connection, size_t size)
{
    const struct request_load_link *link = load->options->link;

    if (link != NULL)
        return link->send(connection->link, load->batch, size);
    ssize_t sent = send(connection->fd, load->batch, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? -errno : sent;
}

static ssize_t receive_bytes_by_link_or_socket(struct load *load, struct connection *connection,
                                               size_t at)
{
    const struct request_load_link *link = load->options->link;
    size_t room = sizeof load->bytes - at;

    if (link != NULL)
        return link->receive(connection->link, load->bytes + at, room);
    ssize_t got = recv(connection->fd, load->bytes + at, room, MSG_DONTWAIT);
    return got < 0 ? -errno : got;
}

static int send_batch_of_requests(struct load *load, struct connection *connection)
{
    const struct request_load_kind *kind = load->options->kind;
    uint32_t depth = load->options->depth;
    size_t size = (size_t)depth * load->request;

    for (uint32_t i = 0; i < depth && kind->vary != NULL; i++)
        kind->vary(kind->context, load->batch + (size_t)i * load->request);
    connection->sent_ns = load->now_ns;
    connection->under_way = depth;
    load->sent += depth;
    ssize_t sent = send_batch_bytes_by_link_or_socket(load, connection, size);
    /* a send does not wait: the socket takes a batch as a whole, because batches are small */
    return sent == (ssize_t)size ? 0 : sent < 0 ? (int)sent : -ENOBUFS;
}

/* Check the bytes that have arrived on a connection. Returns how many were right and are used up;
 * -EBADMSG. */
static int check_arrived_bytes(struct load *load, struct connection *connection, size_t size)
{
    const struct request_load_kind *kind = load->options->kind;
    size_t at = 0;

    while (at < size) {
        bool ends = false;
        int used = connection->under_way == 0 ? -EBADMSG
                                              : kind->check(kind->context, &connection->place,
                                                            load->bytes + at, size - at, &ends);
        if (used < 0)
            return used;
        if (used == 0)
            break;
        at += (size_t)used;
        if (ends) {
            connection->place = 0;
            connection->under_way--;
            load->answers++;
        }
    }
    return (int)at;
}

static int handle_answers_on_connection(struct load *load, struct connection *connection)
{
    char *kept = load->kept[connection - load->connections];
    size_t size = connection->kept;

    memcpy(load->bytes, kept, size);
    ssize_t got = receive_bytes_by_link_or_socket(load, connection, size);
    if (got < 0)
        return got == -EAGAIN ? 0 : (int)got;
    if (got == 0)
        return -ECONNRESET;
    size += (size_t)got;
    int used = check_arrived_bytes(load, connection, size);
    if (used < 0)
        return used;
    size -= (size_t)used;
    if (size > REQUEST_LOAD_KEPT_MAX)
        return -EBADMSG;
    connection->kept = (uint32_t)size;
    memcpy(kept, load->bytes + used, size);
    if (connection->under_way == 0) {
        histogram_add_value(&load->latencies, load->now_ns - connection->sent_ns);
        load->idle[(load->idle_first + load->idle_count++) % REQUEST_LOAD_CONNECTIONS_MAX] =
            connection;
    }
    return 0;
}

static int open_connections(struct load *load)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(load->options->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;

    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (load->epoll < 0)
        return -errno;
    for (uint32_t i = 0; i < load->options->connections; i++) {
        struct connection *connection = &load->connections[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connection->fd < 0)
            return -errno;
        load->connected++;
        if (setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
            connect(connection->fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
            epoll_ctl(load->epoll, EPOLL_CTL_ADD, connection->fd, &event) != 0)
            return -errno;
        const struct request_load_link *link = load->options->link;
        int error = link != NULL ? link->open(link->context, connection->fd, &connection->link) : 0;
        if (error != 0)
            return error;
        load->idle[load->idle_count++] = connection;
    }
    return 0;
}

/* Returns how many bursts a second a paced load sends; a burst is `burst` batches of `depth`
 * requests. */
static double get_bursts_per_second(const struct load *load)
{
    uint32_t burst = load->options->burst != 0 ? load->options->burst : 1;

    return load->options->rate / load->options->depth / burst;
}

/* Returns the time at which the next requests of a paced load are due. */
static uint64_t get_time_of_next_burst_ns(const struct load *load)
{
    uint64_t burst = load->options->burst != 0 ? load->options->burst : 1;
    uint64_t bursts = load->batches / burst;

    return load->start_ns + (uint64_t)((double)bursts / get_bursts_per_second(load) * 1e9);
}

/* Returns how many batches of a paced load have become due so far; the first ones are due at its
 * start. */
static uint64_t count_batches_due_so_far(const struct load *load)
{
    uint64_t burst = load->options->burst != 0 ? load->options->burst : 1;
    double seconds = (double)(load->now_ns - load->start_ns) * 1e-9;

    return ((uint64_t)(seconds * get_bursts_per_second(load)) + 1) * burst;
}

static int send_due_requests(struct load *load)
{
    double rate = load->options->rate;
    uint64_t batches = rate == 0 ? 0 : count_batches_due_so_far(load);

    while (load->idle_count > 0 && (rate == 0 || load->batches < batches)) {
        struct connection *connection = load->idle[load->idle_first];
        load->idle_first = (load->idle_first + 1) % REQUEST_LOAD_CONNECTIONS_MAX;
        load->idle_count--;
        int error = send_batch_of_requests(load, connection);
        if (error != 0)
            return error;
        if (load->is_behind && load->options->counts_waits)
            connection->sent_ns = get_time_of_next_burst_ns(load);
        load->batches++;
    }
    load->is_behind = load->batches < batches;
    return 0;
}

static int wait_and_handle_events(struct load *load)
{
    struct epoll_event events[EVENTS_MAX];
    struct timespec tick = {.tv_nsec = TICK_NS};
    int count = epoll_pwait2(load->epoll, events, EVENTS_MAX, &tick, NULL);

    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    load->now_ns = measure_now_ns();
    for (int i = 0; i < count; i++) {
        int error = handle_answers_on_connection(load, events[i].data.ptr);
        if (error != 0)
            return error;
    }
    return 0;
}

static int run_load_to_its_end(struct load *load)
{
    uint64_t end_ns = load->start_ns + load->options->duration_ns;
    int error = 0;

    for (; error == 0 && (load->now_ns < end_ns || load->sent < load->options->requests_least);
         error = error != 0 ? error : wait_and_handle_events(load))
        error = send_due_requests(load);
    uint64_t stall_ns = load->now_ns + load->options->stall_ns;
    while (error == 0 && load->answers < load->sent)
        error = load->now_ns < stall_ns ? wait_and_handle_events(load) : -ETIMEDOUT;
    return error;
}

static void free_load(struct load *load)
{
    for (uint32_t i = 0; i < load->connected; i++) {
        if (load->options->link != NULL)
            load->options->link->close(load->connections[i].link);
        close(load->connections[i].fd);
    }
    if (load->epoll >= 0)
        close(load->epoll);
    free(load->batch);
    free(load);
}

static int make_load(const struct request_load_options *options, struct load **ret_load)
{
    const struct request_load_kind *kind = options->kind;

    if (options->connections > REQUEST_LOAD_CONNECTIONS_MAX || options->depth < 1 ||
        options->depth > REQUEST_LOAD_DEPTH_MAX)
        return -EINVAL;
    struct load *load = calloc(1, sizeof *load);
    if (load == NULL)
        return -ENOMEM;
    load->options = options;
    load->epoll = -1;
    load->request = kind->request_size + kind->rest_size;
    load->batch = malloc((size_t)options->depth * load->request);
    if (load->batch == NULL) {
        free_load(load);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < options->depth; i++) {
        char *request = load->batch + (size_t)i * load->request;
        memcpy(request, kind->request, kind->request_size);
        if (kind->rest_size != 0)
            memcpy(request + kind->request_size, kind->rest, kind->rest_size);
    }
    *ret_load = load;
    return 0;
}

int request_load_run_to_its_end(const struct request_load_options *options,
                                struct request_load_result *ret_result)
{
    uint64_t before_ns = 0, after_ns = 0;
    struct load *load;
    int error = make_load(options, &load);

    if (error != 0)
        return error;
    error = open_connections(load);
    uint64_t own_ns = measure_thread_cpu_ns();
    load->start_ns = load->now_ns = measure_now_ns();
    if (error == 0)
        error = measure_cpu_ns_of_other_process(options->watched, &before_ns);
    if (error == 0)
        error = run_load_to_its_end(load);
    if (error == 0)
        error = measure_cpu_ns_of_other_process(options->watched, &after_ns);
    double seconds = (double)(load->now_ns - load->start_ns) * 1e-9;
    if (error == 0) {
        *ret_result = (struct request_load_result){
            .requests = load->answers,
            .rate = (double)load->answers / seconds,
            .p50_us = histogram_value_at_share(&load->latencies, 0.5) * 1e-3,
            .p90_us = histogram_value_at_share(&load->latencies, 0.9) * 1e-3,
            .p99_us = histogram_value_at_share(&load->latencies, 0.99) * 1e-3,
            .busy = (double)(measure_thread_cpu_ns() - own_ns) * 1e-9 / seconds,
            .watched_cpu_ns = after_ns - before_ns,
        };
    }
    free_load(load);
    return error;
}
