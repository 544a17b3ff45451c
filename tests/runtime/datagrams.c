/* The actors of the tests of datagrams, and the plain sockets that are their peers. */
#include "tests/runtime/datagrams.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

_Atomic int domt_answers_now;
_Atomic uint32_t domt_datagrams_read;
_Atomic uint32_t domt_bytes_read;
_Atomic uint32_t domt_datagrams_opened, domt_datagrams_closed;
_Atomic int domt_last_close = 1;
_Atomic int domt_last_answer;
_Atomic int domt_last_name;

domus_system *domt_datagram_system;
domus_address domt_opener;

/* --- actors ----------------------------------------------------------------------------------- */

/* An order to an actor to run a function of the test. */
typedef struct order {
    domt_deed *function;
    void *argument;
    bool is_told; /* true: an actor has sent the order, and no thread waits for its result */
} order;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};

static _Atomic uint32_t done;
static _Atomic int result;

static int on_order_run_function(domus_stack *stack, void *self, const void *payload)
{
    order now;

    memcpy(&now, payload, sizeof now);
    int done_with = now.function(stack, now.argument);
    if (now.is_told)
        return done_with;
    atomic_store(&result, done_with);
    atomic_fetch_add(&done, 1);
    return done_with == DOMUS_PARKED ? DOMUS_PARKED : 0;
}

static int on_open_count(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&domt_datagrams_opened, 1);
    return 0;
}

/* Make a buffer that contains the text of an endpoint. */
static domus_buffer *new_buffer_of_endpoint(domus_stack *stack, const domus_endpoint *endpoint)
{
    char text[DOMUS_ENDPOINT_TEXT_MAX];
    size_t length = domus_endpoint_text(endpoint, text, sizeof text);
    domus_buffer *buffer = domt_new_buffer(stack, length);

    memcpy(domus_buffer_data(buffer), text, length);
    return buffer;
}

static int on_read_answer(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_endpoint peer;

    atomic_fetch_add(&domt_bytes_read, (uint32_t)domus_buffer_size(event->bytes));
    atomic_store(&domt_last_name, domus_buffer_peer(event->bytes, &peer));
    switch (atomic_load(&domt_answers_now)) {
    case DOMT_ECHO:
        atomic_store(&domt_last_answer,
                     domus_channel_send_to(stack, event->channel, NULL, event->bytes));
        break;
    case DOMT_NAME:
        domus_buffer_free(event->bytes);
        atomic_store(&domt_last_answer,
                     domus_channel_send_to(stack, event->channel, &peer,
                                           new_buffer_of_endpoint(stack, &peer)));
        break;
    default:
        domus_buffer_free(event->bytes);
    }
    atomic_fetch_add(&domt_datagrams_read, 1);
    return 0;
}

static int on_close_count(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    atomic_store(&domt_last_close, event->error);
    atomic_fetch_add(&domt_datagrams_closed, 1);
    return 0;
}

static const domus_on rows[] = {{&order_type, on_order_run_function, 0}, {0}};
static const domus_behaviour answering = {.name = "answering",
                                          .kind = DOMUS_CHANNELS,
                                          .state_size = 8,
                                          .on = rows,
                                          .on_open = {on_open_count, 0},
                                          .on_read = {on_read_answer, 0},
                                          .on_close = {on_close_count, 0}};
static const domus_behaviour opening = {
    .name = "opening", .kind = DOMUS_CHANNELS, .on = rows, .channel = &answering};

void domt_datagrams_start_system(const domus_config *config)
{
    domus_config plain = config != NULL ? *config : domt_config_of_threads(2);

    plain.listener_count = 0;
    domt_datagram_system = domt_start_system(&plain);
    domt_opener = domt_spawn(domt_datagram_system, 0, &opening, NULL);
}

int domt_run_as_actor(domus_address actor, domt_deed *function, void *argument)
{
    uint32_t before = atomic_load(&done);
    const order now = {function, argument, false};
    int error = 0;

    /* A channel refuses the order with -ENOBUFS while more than sendHigh bytes wait to be sent. */
    DOMT_WAIT_FOR(10, (error = domus_outside_notice(domt_datagram_system, actor, &order_type,
                                                    &now)) != -ENOBUFS);
    ck_assert_int_eq(error, 0);
    DOMT_WAIT_FOR(10, atomic_load(&done) == before + 1);
    return atomic_load(&result);
}

int domt_send_function_to_run(domus_stack *stack, domus_address actor, domt_deed *function,
                              void *argument)
{
    return domus_notice(stack, actor, &order_type, &(order){function, argument, true});
}

/* --- channels --------------------------------------------------------------------------------- */

typedef struct opening_order {
    const char *at;
    const domus_datagram_options *options;
    domus_address *ret_channel;
    domus_endpoint *ret_at;
} opening_order;

static int open_channel_by_order(domus_stack *stack, void *argument)
{
    const opening_order *now = argument;
    domus_endpoint at;

    if (now->at != NULL)
        ck_assert_int_eq(domus_endpoint_parse(now->at, &at), 0);
    return domus_datagram_open(stack, now->at != NULL ? &at : NULL, now->options, now->ret_channel,
                               now->ret_at);
}

int domt_open_datagram_channel(const char *at, const domus_datagram_options *options,
                               domus_address *ret_channel, domus_endpoint *ret_at)
{
    opening_order now = {at, options, ret_channel, ret_at};

    return domt_run_as_actor(domt_opener, open_channel_by_order, &now);
}

domus_buffer *domt_new_buffer(domus_stack *stack, size_t size)
{
    domus_buffer *buffer;

    ck_assert_int_eq(domus_buffer_new(stack, size, &buffer), 0);
    return buffer;
}

int domt_channel_write_text(domus_stack *stack, void *text)
{
    domus_buffer *buffer = domt_new_buffer(stack, strlen(text));

    memcpy(domus_buffer_data(buffer), text, strlen(text));
    return domus_channel_write(stack, domus_channel_running(stack), buffer);
}

static int read_counters_of_channel(domus_stack *stack, void *argument)
{
    return domus_datagram_counts(domus_channel_running(stack), argument);
}

domus_datagram_counters domt_counters_of_datagrams(domus_address channel)
{
    domus_datagram_counters counts;

    ck_assert_int_eq(domt_run_as_actor(channel, read_counters_of_channel, &counts), 0);
    return counts;
}

/* --- peers ------------------------------------------------------------------------------------ */

static socklen_t socket_address_of(const domus_endpoint *at, struct sockaddr_storage *ret_address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret_address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret_address;
    struct sockaddr_un *name = (struct sockaddr_un *)ret_address;

    *ret_address = (struct sockaddr_storage){.ss_family = at->family};
    if (at->family == AF_INET) {
        v4->sin_port = htons(at->port);
        memcpy(&v4->sin_addr, at->bytes, 4);
        return sizeof *v4;
    }
    if (at->family == AF_INET6) {
        v6->sin6_port = htons(at->port);
        memcpy(&v6->sin6_addr, at->bytes, 16);
        return sizeof *v6;
    }
    memcpy(name->sun_path, at->bytes, at->size);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + at->size);
}

int domt_open_datagram_socket(const char *text, domus_endpoint *ret_at)
{
    struct sockaddr_storage address;
    domus_endpoint at = {.family = AF_UNIX};
    int most = 4 * 1024 * 1024;

    if (text != NULL)
        ck_assert_int_eq(domus_endpoint_parse(text, &at), 0);
    int fd = socket(at.family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &most, sizeof most);
    if (text == NULL)
        return fd;
    socklen_t size = socket_address_of(&at, &address);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    if (at.family != AF_UNIX) {
        socklen_t room = sizeof address;
        ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &room), 0);
        /* in a sockaddr_in6 the port is at the same place as in a sockaddr_in */
        at.port = ntohs(((struct sockaddr_in *)&address)->sin_port);
    }
    if (ret_at != NULL)
        *ret_at = at;
    return fd;
}

void domt_send_datagram(int fd, const domus_endpoint *to, const void *bytes, size_t size)
{
    struct sockaddr_storage address;
    socklen_t length = socket_address_of(to, &address);

    ck_assert_int_eq(sendto(fd, bytes, size, 0, (struct sockaddr *)&address, length),
                     (ssize_t)size);
}

size_t domt_receive_datagram(int fd, void *bytes, size_t size)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};

    ck_assert_int_eq(poll(&readable, 1, 10000), 1);
    ssize_t got = recv(fd, bytes, size, MSG_DONTWAIT);
    ck_assert_int_ge(got, 0);
    return (size_t)got;
}
