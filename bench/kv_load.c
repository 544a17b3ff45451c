/* The load of kv_load.h, over epoll. A request is a text whose key is the only part that changes,
 * so the batch of a connection is made once, and digits are written into it for each send. */
#include "bench/kv_load.h"

#include "bench/support/histogram.h"
#include "bench/support/measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 1024
#define REQUEST_MAX     256u
#define REPLIES_MAX     65536u
#define EVENTS_MAX      64
#define TICK_NS         100000 /* a paced load sends at least this often what is due */
#define KEY             "key:0000000000"
#define KEY_DIGITS      10u
#define VALUE           "0123456789abcdef0123456789abcdef"

struct connection {
    int fd;
    uint32_t under_way; /* replies that are to come */
    uint32_t kept;      /* bytes of a reply whose rest is to come */
    uint64_t sent_ns;
};

struct load {
    const struct kv_load_options *options;
    int epoll;
    uint32_t request_size;
    uint32_t digits_at; /* of the key in a request; 0: there is none */
    uint32_t reply_size;
    char batch[REQUEST_MAX * KV_LOAD_DEPTH_MAX];
    char reply[REQUEST_MAX]; /* as it must be, if its size is not 0 */
    uint32_t next_key;
    uint32_t connected;
    uint32_t idle_first, idle_count;
    struct connection *idle[CONNECTIONS_MAX]; /* a ring */
    struct connection connections[CONNECTIONS_MAX];
    char kept[CONNECTIONS_MAX][32 + sizeof VALUE];
    uint64_t now_ns, start_ns;
    uint64_t sent, replies, batches;
    struct histogram latencies;
    char bytes[REPLIES_MAX];
};

/* --- requests --------------------------------------------------------------------------------- */

static void make_request(struct load *load)
{
    char words[REQUEST_MAX], body[REQUEST_MAX] = "", request[REQUEST_MAX];
    size_t size = 0;
    int count = 0;
    char *state = NULL;

    snprintf(words, sizeof words, "%s", load->options->row->words);
    for (char *word = strtok_r(words, " ", &state); word != NULL;
         word = strtok_r(NULL, " ", &state), count++) {
        const char *text = strcmp(word, "KEY") == 0     ? KEY
                           : strcmp(word, "VALUE") == 0 ? VALUE
                                                        : word;
        size +=
            (size_t)snprintf(body + size, sizeof body - size, "$%zu\r\n%s\r\n", strlen(text), text);
    }
    load->request_size = (uint32_t)snprintf(request, sizeof request, "*%d\r\n%s", count, body);
    const char *key = strstr(request, KEY);
    if (key != NULL)
        load->digits_at = (uint32_t)(key - request) + (uint32_t)(sizeof KEY - 1 - KEY_DIGITS);
    for (uint32_t i = 0; i < load->options->depth; i++)
        memcpy(load->batch + (size_t)i * load->request_size, request, load->request_size);
    const char *reply = load->options->row->reply;
    if (reply[0] == '$')
        snprintf(load->reply, sizeof load->reply, "$%zu\r\n%s\r\n", strlen(VALUE), VALUE);
    else
        snprintf(load->reply, sizeof load->reply, "%s", reply);
    load->reply_size = reply[0] == ':' ? 0 : (uint32_t)strlen(load->reply);
}

static void write_digits(char *to, uint32_t number)
{
    for (uint32_t i = KEY_DIGITS; i > 0; i--, number /= 10)
        to[i - 1] = (char)('0' + number % 10);
}

static int send_batch(struct load *load, struct connection *connection)
{
    uint32_t depth = load->options->depth;
    size_t size = (size_t)depth * load->request_size;

    for (uint32_t i = 0; i < depth && load->digits_at != 0; i++) {
        write_digits(load->batch + (size_t)i * load->request_size + load->digits_at,
                     load->next_key);
        load->next_key = (load->next_key + 7919) % load->options->keys;
    }
    connection->sent_ns = load->now_ns;
    connection->under_way = depth;
    load->sent += depth;
    ssize_t sent = send(connection->fd, load->batch, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == (ssize_t)size ? 0 : sent < 0 ? -errno : -ENOBUFS; /* batches are small */
}

/* --- replies ---------------------------------------------------------------------------------- */

/* Returns the bytes of the reply at `bytes`; 0: its end is not there; -EBADMSG. */
static int check_reply(const struct load *load, const char *bytes, size_t size)
{
    if (load->reply_size != 0) {
        if (memcmp(bytes, load->reply, size < load->reply_size ? size : load->reply_size) != 0)
            return -EBADMSG;
        return size < load->reply_size ? 0 : (int)load->reply_size;
    }
    if (bytes[0] != ':')
        return -EBADMSG;
    for (size_t i = 1; i < size; i++) {
        if (bytes[i] >= '0' && bytes[i] <= '9')
            continue;
        if (bytes[i] != '\r' || i == 1)
            return -EBADMSG;
        return i + 1 == size ? 0 : bytes[i + 1] == '\n' ? (int)i + 2 : -EBADMSG;
    }
    return size > 24 ? -EBADMSG : 0;
}

static int take_replies(struct load *load, struct connection *connection)
{
    char *kept = load->kept[connection - load->connections];
    size_t size = connection->kept, at = 0;

    memcpy(load->bytes, kept, size);
    ssize_t got = recv(connection->fd, load->bytes + size, sizeof load->bytes - size, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN ? 0 : -errno;
    if (got == 0)
        return -ECONNRESET;
    size += (size_t)got;
    while (at < size) {
        int used = check_reply(load, load->bytes + at, size - at);
        if (used < 0 || (used > 0 && connection->under_way == 0))
            return -EBADMSG;
        if (used == 0)
            break;
        at += (size_t)used;
        connection->under_way--;
        load->replies++;
    }
    connection->kept = (uint32_t)(size - at);
    memcpy(kept, load->bytes + at, connection->kept);
    if (connection->under_way == 0) {
        histogram_add(&load->latencies, load->now_ns - connection->sent_ns);
        load->idle[(load->idle_first + load->idle_count++) % CONNECTIONS_MAX] = connection;
    }
    return 0;
}

/* --- the run ---------------------------------------------------------------------------------- */

static int connect_all(struct load *load)
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
        load->idle[load->idle_count++] = connection;
    }
    return 0;
}

static int send_due(struct load *load)
{
    double rate = load->options->rate;
    double batches = (double)(load->now_ns - load->start_ns) * 1e-9 * rate / load->options->depth;

    while (load->idle_count > 0 && (rate == 0 || (double)load->batches < batches)) {
        struct connection *connection = load->idle[load->idle_first];
        load->idle_first = (load->idle_first + 1) % CONNECTIONS_MAX;
        load->idle_count--;
        load->batches++;
        int error = send_batch(load, connection);
        if (error != 0)
            return error;
    }
    return 0;
}

static int turn(struct load *load)
{
    struct epoll_event events[EVENTS_MAX];
    struct timespec tick = {.tv_nsec = TICK_NS};
    int count = epoll_pwait2(load->epoll, events, EVENTS_MAX, &tick, NULL);

    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    load->now_ns = measure_now_ns();
    for (int i = 0; i < count; i++) {
        int error = take_replies(load, events[i].data.ptr);
        if (error != 0)
            return error;
    }
    return 0;
}

static int run(struct load *load)
{
    uint64_t end_ns = load->start_ns + load->options->duration_ns;
    int error = 0;

    for (; error == 0 && (load->now_ns < end_ns || load->sent < load->options->requests_least);
         error = error != 0 ? error : turn(load))
        error = send_due(load);
    uint64_t stall_ns = load->now_ns + load->options->stall_ns;
    while (error == 0 && load->replies < load->sent)
        error = load->now_ns < stall_ns ? turn(load) : -ETIMEDOUT;
    return error;
}

int kv_load_run(const struct kv_load_options *options, struct kv_load_result *ret_result)
{
    struct load *load = calloc(1, sizeof *load);
    uint64_t before_ns = 0, after_ns = 0;

    if (load == NULL)
        return -ENOMEM;
    load->options = options;
    load->epoll = -1;
    make_request(load);
    int error = connect_all(load);
    uint64_t own_ns = measure_thread_cpu_ns();
    load->start_ns = load->now_ns = measure_now_ns();
    if (error == 0)
        error = measure_other_cpu_ns(options->watched, &before_ns);
    if (error == 0)
        error = run(load);
    if (error == 0)
        error = measure_other_cpu_ns(options->watched, &after_ns);
    double seconds = (double)(load->now_ns - load->start_ns) * 1e-9;
    if (error == 0) {
        *ret_result = (struct kv_load_result){
            .requests = load->replies,
            .rate = (double)load->replies / seconds,
            .p50_us = histogram_percentile(&load->latencies, 0.5) * 1e-3,
            .p99_us = histogram_percentile(&load->latencies, 0.99) * 1e-3,
            .busy = (double)(measure_thread_cpu_ns() - own_ns) * 1e-9 / seconds,
            .watched_cpu_ns = after_ns - before_ns,
        };
    }
    for (uint32_t i = 0; i < load->connected; i++)
        close(load->connections[i].fd);
    if (load->epoll >= 0)
        close(load->epoll);
    free(load);
    return error;
}
