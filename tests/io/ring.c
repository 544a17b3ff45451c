/* The one ring of these tests, its buffers, and how a test waits for its completions. */
#include "tests/io/ring.h"

#include "io/backend/choose.h"
#include "runtime/network/parts.h"
#include "runtime/network/ring.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

const domi_backend *domt_backend;
static domus_config config;
static domi_net *net; /* the simulated network that domt_ring_use_simulated_network() uses */
void *domt_ring;
char domt_ring_memory[DOMT_RING_BUFFERS][DOMT_RING_BUFFER_SIZE];

/* Choose the backend before main(), because tests look at it before they begin. */
__attribute__((constructor)) static void choose_backend_of_test(void)
{
    char reason[256];

    domus_config_init(&config);
    (void)domi_backend_choose(&config, reason, sizeof reason, &domt_backend);
}

void domt_ring_open_unstarted(uint32_t entries, uint32_t completions)
{
    char error[256] = "";

    domus_config_init(&config);
    config.io.ring_entries = entries;
    config.io.completion_entries = completions;
    config.io.buffers.count = DOMT_RING_BUFFERS;
    config.io.buffers.size_bytes = DOMT_RING_BUFFER_SIZE;
    ck_assert_msg(domt_backend->open(&config, error, sizeof error, &domt_ring) == 0, "%s", error);
}

void domt_ring_give_all_buffers(void)
{
    for (uint16_t i = 0; i < DOMT_RING_BUFFERS; i++)
        domt_backend->give(domt_ring, i, domt_ring_memory[i], DOMT_RING_BUFFER_SIZE);
    domt_backend->publish(domt_ring);
}

void domt_ring_begin_with_buffers(void)
{
    domt_ring_open_unstarted(64, 256);
    ck_assert_int_eq(domt_backend->start(domt_ring), 0);
    domt_ring_give_all_buffers();
}

static int paired[64]; /* the sockets of domt_make_socket_pair() that are open */
static uint32_t paired_count;

void domt_ring_begin_with_socket_pair(int ends[2])
{
    domt_ring_begin_with_buffers();
    domt_make_socket_pair(ends);
}

void domt_ring_close_with_all_sockets(void)
{
    while (paired_count != 0)
        domt_close_socket(paired[paired_count - 1]);
    domt_backend->close(domt_ring);
}

uint64_t domt_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * DOMT_SECOND + (uint64_t)now.tv_nsec;
}

/* Wait for the next completion; a completion that is missing fails the test here. */
domi_completion domt_ring_next_completion(void)
{
    domi_completion completion;
    uint64_t until_ns = domt_now_ns() + 5 * DOMT_SECOND;

    while (domt_backend->reap(domt_ring, &completion, 1) == 0) {
        ck_assert_msg(domt_now_ns() < until_ns, "nothing came");
        ck_assert_int_eq(domt_backend->enter(domt_ring, 1, DOMT_SECOND), 0);
    }
    return completion;
}

void domt_ring_expect_completion(uint64_t user_data, int32_t result, uint16_t flags)
{
    domi_completion completion = domt_ring_next_completion();

    ck_assert_uint_eq(completion.user_data, user_data);
    ck_assert_int_eq(completion.result, result);
    ck_assert_uint_eq(completion.flags, flags);
}

void domt_ring_expect_no_completion(void)
{
    domi_completion completion;

    ck_assert_int_eq(domt_backend->enter(domt_ring, 1, 10 * DOMT_MS), 0);
    ck_assert_uint_eq(domt_backend->reap(domt_ring, &completion, 1), 0);
}

void domt_ring_use_simulated_network(void)
{
    net = domi_net_new(1, DOMT_SECOND);
    ck_assert_ptr_nonnull(net);
    net->is_alone = true;
    (void)domi_net_set_network_of_new_rings(net);
    domt_backend = &domi_backend_net;
}

uint64_t domt_ring_now_ns(void)
{
    return domt_backend->is_simulated ? net->now_ns : domt_now_ns();
}

/* --- peers ------------------------------------------------------------------------------------ */

/* Make a pair of sockets by a connect, because a simulated network has no socketpair(). */
static void make_pair_by_connect(int ends[2])
{
    const struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0pair"};
    const struct sockaddr *address = (const struct sockaddr *)&name;
    const domi_sockets *sockets = domt_backend->sockets;
    socklen_t size = offsetof(struct sockaddr_un, sun_path) + 5;
    int listener = sockets->socket(domt_ring, AF_UNIX, SOCK_STREAM);

    ck_assert_int_eq(sockets->bind(domt_ring, listener, address, size), 0);
    ck_assert_int_eq(sockets->listen(domt_ring, listener, 1), 0);
    ends[0] = sockets->socket(domt_ring, AF_UNIX, SOCK_STREAM);
    ck_assert_int_eq(sockets->connect(domt_ring, ends[0], address, size), 0);
    ends[1] = sockets->accept(domt_ring, listener);
    ck_assert_int_ge(ends[1], 0);
    ck_assert_int_eq(sockets->close(domt_ring, listener), 0);
}

void domt_make_socket_pair(int ends[2])
{
    if (domt_backend->is_simulated)
        make_pair_by_connect(ends);
    else
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_uint_le(paired_count + 2, sizeof paired / sizeof paired[0]);
    for (int i = 0; i < 2; i++)
        paired[paired_count++] = ends[i];
}

/* Send bytes by a socket without the ring. Returns the number of bytes that the socket took, or a
 * negative errno. */
static int send_without_ring(int fd, const void *data, uint32_t size)
{
    if (domt_backend->is_simulated) {
        /* lets the bytes under way in the simulated network arrive */
        domi_net_advance_time(net, net->now_ns);
        return domi_net_socket_send(domi_net_socket_find_by_descriptor(net, fd), data, size);
    }
    ssize_t taken = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    return taken >= 0 ? (int)taken : -errno;
}

void domt_send_text_to_socket(int fd, const char *text)
{
    ck_assert_int_eq(send_without_ring(fd, text, (uint32_t)strlen(text)), (int)strlen(text));
}

int domt_receive_from_socket(int fd, void *data, uint32_t size)
{
    if (domt_backend->is_simulated) {
        domi_net_advance_time(net, net->now_ns);
        return domi_net_socket_receive(domi_net_socket_find_by_descriptor(net, fd), data, size);
    }
    ssize_t taken = recv(fd, data, size, MSG_DONTWAIT);
    return taken >= 0 ? (int)taken : -errno;
}

int64_t domt_fill_socket(int fd)
{
    static const char bytes[65536];
    int64_t sum = 0;

    for (int taken = send_without_ring(fd, bytes, sizeof bytes); taken > 0;
         taken = send_without_ring(fd, bytes, sizeof bytes))
        sum += taken;
    return sum;
}

void domt_end_sending_of_socket(int fd)
{
    ck_assert_int_eq(domt_backend->sockets->shutdown(domt_ring, fd, SHUT_WR), 0);
}

void domt_close_socket(int fd)
{
    for (uint32_t i = 0; i < paired_count; i++)
        if (paired[i] == fd)
            paired[i] = paired[--paired_count];
    ck_assert_int_eq(domt_backend->sockets->close(domt_ring, fd), 0);
}
