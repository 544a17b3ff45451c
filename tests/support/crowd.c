/* The clients of a crowd (many connections to an echo service): their streams of bytes, their
 * connections, and one loop that serves all clients. */
#include "tests/support/crowd.h"

#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PIECE_MAX 16384u

static char byte_of_stream(uint32_t number, uint64_t place)
{
    return (char)(number * 17 + place * 131 + (place >> 8) * 7 + (place >> 16));
}

static uint32_t draw_random_number(domt_client *client)
{
    client->chance = client->chance * 1103515245u + 12345u;
    return client->chance >> 8;
}

void domt_crowd_init(domt_crowd *crowd, uint16_t port, uint32_t count)
{
    *crowd = (domt_crowd){.count = count, .port = port};
    crowd->clients = calloc(count, sizeof *crowd->clients);
    crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
    ck_assert(crowd->clients != NULL && crowd->epoll >= 0);
    for (uint32_t i = 0; i < count; i++)
        crowd->clients[i] = (domt_client){.fd = -1, .number = i + 1, .chance = i * 2654435761u};
}

static int connect_with_socket_buffers(uint16_t port, int socket_bytes)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_msg(fd >= 0, "socket: %s", strerror(errno));
    ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
    if (socket_bytes != 0) {
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &socket_bytes, sizeof on), 0);
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &socket_bytes, sizeof on), 0);
    }
    ck_assert_msg(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "connect: %s",
                  strerror(errno));
    return fd;
}

void domt_crowd_connect_clients(domt_crowd *crowd, uint32_t from, uint32_t to)
{
    ck_assert_uint_le(to, crowd->count);
    for (uint32_t i = from; i < to; i++) {
        domt_client *client = &crowd->clients[i];
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                    .data.u32 = i};
        client->fd = connect_with_socket_buffers(crowd->port, crowd->socket_bytes);
        ck_assert_int_eq(fcntl(client->fd, F_SETFL, O_NONBLOCK), 0);
        ck_assert_int_eq(epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, client->fd, &event), 0);
    }
}

void domt_client_close(domt_client *client, bool reset)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};

    if (client->fd < 0)
        return;
    if (reset)
        (void)setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(client->fd);
    client->fd = -1;
}

/* Handle a failed send or receive of a client: any error but EAGAIN and EINTR closes its
 * connection. Returns false when the call is to be tried again later. */
static bool close_client_unless_call_may_repeat(domt_client *client)
{
    if (errno == EAGAIN || errno == EINTR)
        return false;
    client->error = errno;
    domt_client_close(client, false);
    return true;
}

static void read_echo_and_compare(domt_client *client)
{
    char bytes[65536];

    while (client->fd >= 0 && !client->deaf && !client->ended) {
        ssize_t size = recv(client->fd, bytes, sizeof bytes, 0);
        if (size < 0) {
            if (!close_client_unless_call_may_repeat(client))
                return;
        } else if (size == 0) {
            client->ended = true;
        } else {
            for (ssize_t i = 0; i < size; i++)
                client->wrong += bytes[i] != byte_of_stream(client->number, client->received++);
        }
    }
}

static uint32_t make_next_piece_of_stream(domt_client *client, char *bytes)
{
    uint32_t most = client->piece_max != 0 ? client->piece_max : PIECE_MAX;
    uint64_t left = client->bytes - client->sent;
    uint32_t size = 1 + draw_random_number(client) % most;

    if (size > left)
        size = (uint32_t)left;
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = byte_of_stream(client->number, client->sent + i);
    return size;
}

/* Send at most 8 pieces of a client's stream, so that one client does not hold up all others.
 * Returns whether the client could send more at once. */
static bool send_some_pieces(domt_client *client)
{
    char bytes[PIECE_MAX];

    for (int turns = 0; client->fd >= 0 && !client->finished && !client->ended; turns++) {
        if (client->sent == client->bytes) {
            if (!client->stays)
                client->finished = shutdown(client->fd, SHUT_WR) == 0;
            return false;
        }
        if (turns == 8)
            return true;
        ssize_t size =
            send(client->fd, bytes, make_next_piece_of_stream(client, bytes), MSG_NOSIGNAL);
        if (size < 0)
            return close_client_unless_call_may_repeat(client);
        client->sent += (uint64_t)size;
        if (client->reset_at != 0 && client->sent >= client->reset_at)
            domt_client_close(client, true);
    }
    return false;
}

static void close_if_ended(domt_client *client)
{
    if (client->fd >= 0 && client->ended && (client->finished || client->stays))
        domt_client_close(client, false);
}

/* In each round of the loop every client sends and reads as much as it can; epoll_wait() only lets
 * the loop sleep until any client can go on. */
bool domt_crowd_run_until(domt_crowd *crowd, bool (*done)(const domt_crowd *crowd), uint32_t ms)
{
    uint64_t until_ns = domt_monotonic_ns() + ms * UINT64_C(1000000);
    struct epoll_event events[256];

    while (!done(crowd)) {
        bool more = false;
        if (domt_monotonic_ns() >= until_ns)
            return false;
        for (uint32_t i = 0; i < crowd->count; i++) {
            domt_client *client = &crowd->clients[i];
            if (client->fd < 0)
                continue;
            more = send_some_pieces(client) || more;
            read_echo_and_compare(client);
            close_if_ended(client);
        }
        int timeout = more ? 0 : 10;
        if (epoll_wait(crowd->epoll, events, 256, timeout) < 0)
            ck_assert_int_eq(errno, EINTR);
    }
    return true;
}

bool domt_crowd_all_are_closed(const domt_crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->count; i++) {
        if (crowd->clients[i].fd >= 0)
            return false;
    }
    return true;
}

bool domt_client_has_whole_echo(const domt_client *client)
{
    return client->received == client->bytes;
}

bool domt_crowd_has_all_echoes(const domt_crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->count; i++) {
        const domt_client *client = &crowd->clients[i];
        if (client->fd >= 0 && !client->deaf && !domt_client_has_whole_echo(client))
            return false;
    }
    return true;
}

void domt_crowd_check_echoes(const domt_crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->count; i++) {
        const domt_client *client = &crowd->clients[i];
        if (client->reset_at != 0 || client->deaf)
            continue;
        ck_assert_msg(client->error == 0 && client->wrong == 0 && client->ended &&
                          domt_client_has_whole_echo(client),
                      "client %u: %s, %u wrong bytes, %llu sent, %llu of %llu back%s",
                      client->number, strerror(client->error), client->wrong,
                      (unsigned long long)client->sent, (unsigned long long)client->received,
                      (unsigned long long)client->bytes, client->ended ? ", ended" : "");
    }
}

void domt_crowd_fini(domt_crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->count; i++)
        domt_client_close(&crowd->clients[i], false);
    close(crowd->epoll);
    free(crowd->clients);
}

int domt_connect_to_port(uint16_t port)
{
    return connect_with_socket_buffers(port, 0);
}

bool domt_port_has_listener(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_ge(fd, 0);
    int result = connect(fd, (struct sockaddr *)&address, sizeof address);
    close(fd);
    return result == 0;
}

bool domt_send_and_get_echo(int fd, const char *text)
{
    char back[256] = "";
    size_t length = strlen(text);
    size_t have = 0;

    if (send(fd, text, length, MSG_NOSIGNAL) != (ssize_t)length)
        return false;
    while (have < length) {
        ssize_t size = recv(fd, back + have, sizeof back - 1 - have, 0);
        if (size < 0 && errno == EINTR)
            continue; /* EINTR: the kernel is tearing down a ring that this thread has made */
        if (size <= 0)
            return false;
        have += (size_t)size;
    }
    return have == length && memcmp(back, text, length) == 0;
}

bool domt_raise_descriptor_limit(uint32_t count)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur >= count)
        return true;
    if (limit.rlim_max < count)
        return false;
    limit.rlim_cur = count;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

size_t domt_read_until_text(int fd, const char *part, char *text, size_t room)
{
    uint64_t until_ns = domt_monotonic_ns() + UINT64_C(10000000000);
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    size_t size = 0;

    text[0] = '\0';
    while (strstr(text, part) == NULL) {
        ck_assert_msg(domt_monotonic_ns() < until_ns && size < room - 1, "no '%s' in: %s", part,
                      text);
        if (poll(&waiting, 1, 100) <= 0)
            continue;
        ssize_t more = read(fd, text + size, room - 1 - size);
        ck_assert_msg(more > 0, "it ended without '%s': %s", part, text);
        size += (size_t)more;
        text[size] = '\0';
    }
    return size;
}
