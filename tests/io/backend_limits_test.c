/* The backends: datagrams, each of which comes complete and with its sender, and is sent complete
 * or not at all; and limits: more operations than the queues hold, completions that overflow, no
 * buffers, and no memory. */
#include "base/memory.h"
#include "io/backend/choose.h"
#include "tests/io/ring.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Begins 300 operations, while the submission queue has 16 places and the completion queue 32. */
DOMT_TEST(more_operations_than_the_queues_hold_are_all_carried_out)
{
    enum { COUNT = 300 };
    static uint8_t seen[COUNT + 1];
    int fd = eventfd(1, EFD_CLOEXEC);
    uint32_t total = 0;

    domt_ring_open_unstarted(16, 32);
    ck_assert_int_eq(domt_backend->start(domt_ring), 0);
    for (uint64_t i = 1; i <= COUNT; i++)
        domt_backend->poll_once(domt_ring, fd, POLLIN, i);
    for (uint64_t until_ns = domt_now_ns() + 5 * DOMT_SECOND;
         total < COUNT && domt_now_ns() < until_ns;) {
        domi_completion completions[8];
        uint32_t count = domt_backend->reap(domt_ring, completions, 8);
        for (uint32_t i = 0; i < count; i++)
            seen[completions[i].user_data]++;
        total += count;
        if (count == 0 && domt_backend->enter(domt_ring, 1, 100 * DOMT_MS) != 0)
            continue; /* the ring accepts further operations only when completions are reaped */
    }
    for (int i = 1; i <= COUNT; i++)
        total -= seen[i] == 1;
    ck_assert_uint_eq(total, 0);
    close(fd);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(without_buffers_a_receive_ends_and_may_be_armed_again)
{
    int ends[2];
    domi_completion got[DOMT_RING_BUFFERS];

    domt_ring_begin_with_socket_pair(ends);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    for (uint32_t i = 0; i < DOMT_RING_BUFFERS; i++) {
        domt_send_text_to_socket(ends[1], "x");
        got[i] = domt_ring_next_completion();
        ck_assert_int_eq(got[i].result, 1);
        ck_assert((got[i].flags & DOMI_MORE) != 0);
    }
    domt_send_text_to_socket(ends[1], "kept");
    domt_ring_expect_completion(5, -ENOBUFS, 0);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    domt_ring_expect_completion(5, -ENOBUFS, 0);
    domt_backend->give(domt_ring, got[3].buffer, domt_ring_memory[got[3].buffer],
                       DOMT_RING_BUFFER_SIZE);
    domt_backend->publish(domt_ring);
    domt_backend->receive(domt_ring, ends[0], false, 6);
    domi_completion completion = domt_ring_next_completion();
    ck_assert_uint_eq(completion.user_data, 6);
    ck_assert_int_eq(completion.result, 4);
    ck_assert_uint_eq(completion.buffer, got[3].buffer);
    domt_ring_close_with_all_sockets();
}

/* Eight streams go through 16 buffers and few places for completions, which are reaped rarely:
 * overflows and empty buffer rings end receives all the time, and only MORE tells that. */
static void run_eight_streams_short_of_buffers(uint32_t completions, uint32_t ended[2])
{
    enum { STREAMS = 8, BYTES = 2000 };
    int ends[STREAMS][2];
    uint32_t received[STREAMS] = {0};
    uint32_t put_bytes[STREAMS] = {0};
    uint32_t left = STREAMS * BYTES;
    uint32_t wrong = 0;

    domt_ring_open_unstarted(8, completions);
    ck_assert_int_eq(domt_backend->start(domt_ring), 0);
    domt_ring_give_all_buffers();
    for (uint32_t i = 0; i < STREAMS; i++) {
        domt_make_socket_pair(ends[i]);
        domt_backend->receive(domt_ring, ends[i][0], false, i + 1);
    }
    for (uint64_t until_ns = domt_now_ns() + 10 * DOMT_SECOND;
         left != 0 && domt_now_ns() < until_ns;) {
        for (int burst = 0; burst < 10; burst++) {
            for (uint32_t i = 0; i < STREAMS && put_bytes[i] < BYTES; i++) {
                /* the peer sends one byte for each enter, so each byte is a completion */
                char byte = (char)put_bytes[i];
                put_bytes[i] += (uint32_t)(send(ends[i][1], &byte, 1, MSG_DONTWAIT) == 1);
            }
            (void)domt_backend->enter(domt_ring, 0, 0);
        }
        domi_completion completion;
        while (domt_backend->reap(domt_ring, &completion, 1) == 1) {
            uint32_t i = (uint32_t)completion.user_data - 1;
            if ((completion.flags & DOMI_BUFFERED) != 0) {
                for (int at = 0; at < completion.result; at++)
                    wrong += domt_ring_memory[completion.buffer][at] != (char)received[i]++;
                left -= (uint32_t)completion.result;
                domt_backend->give(domt_ring, completion.buffer,
                                   domt_ring_memory[completion.buffer], DOMT_RING_BUFFER_SIZE);
            } else {
                wrong += completion.result != -ENOBUFS;
            }
            if ((completion.flags & DOMI_MORE) == 0) {
                ended[completion.result > 0]++;
                domt_backend->receive(domt_ring, ends[i][0], false, i + 1);
            }
        }
        domt_backend->publish(domt_ring);
    }
    ck_assert_uint_eq(left, 0);
    ck_assert_uint_eq(wrong, 0);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(streams_survive_overflows_and_empty_buffer_rings)
{
    uint32_t ended[2] = {0}; /* number of receives that ended without bytes, and with bytes */

    run_eight_streams_short_of_buffers(8, ended);
    /* on epoll no receive ends because completions overflow */
    if (domt_backend == &domi_backend_uring)
        ck_assert_uint_gt(ended[1], 0);
    run_eight_streams_short_of_buffers(64, ended);
    ck_assert_uint_gt(ended[0], 0);
}

/* Each allocation of the epoll backend fails once. */
DOMT_TEST(epoll_without_memory_does_not_open)
{
    static domus_config config;
    int64_t missing = 0;
    void *ring = NULL;

    domus_config_init(&config);
    for (int result = -ENOMEM; result != 0; missing++) {
        char error[256] = "";
        ck_assert_int_lt(missing, 100);
        domi_memory_fail_allocation_after(missing, 0);
        result = domi_backend_epoll.open(&config, error, sizeof error, &ring);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert(result == 0 || (result == -ENOMEM && error[0] != '\0' && ring == NULL));
    }
    /* at least seven allocations (the ring and six tables) have failed before the ring opened */
    ck_assert_int_gt(missing, 7);
    domi_backend_epoll.close(ring);
}

/* largest datagram whose bytes fit into a buffer behind the head */
#define ROOM (DOMT_RING_BUFFER_SIZE - sizeof(domi_datagram_head))

/* Returns a UDP socket on loopback, and its address. */
static int make_udp_socket(struct sockaddr_in *ret_address)
{
    socklen_t size = sizeof *ret_address;
    int made = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    *ret_address = (struct sockaddr_in){.sin_family = AF_INET};
    ret_address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(made, (struct sockaddr *)ret_address, size), 0);
    ck_assert_int_eq(getsockname(made, (struct sockaddr *)ret_address, &size), 0);
    return made;
}

static struct sockaddr_in here, there;
static int fd, peer; /* two UDP or Unix sockets, at the addresses `here` and `there` */

static void open_ring_and_two_udp_sockets(void)
{
    fd = make_udp_socket(&here);
    peer = make_udp_socket(&there);
    domt_ring_begin_with_buffers();
}

static void close_two_sockets_and_ring(void)
{
    close(peer);
    close(fd);
    domt_ring_close_with_all_sockets();
}

static void send_datagram_to_ring_socket(const void *bytes, size_t size)
{
    ck_assert_int_eq(sendto(peer, bytes, size, 0, (struct sockaddr *)&here, sizeof here),
                     (ssize_t)size);
}

/* Returns a Unix datagram socket with an abstract name, and its address. */
static int make_unix_datagram_socket(const char *name, struct sockaddr_un *ret_address,
                                     socklen_t *ret_size)
{
    int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(ret_address->sun_path + 1, sizeof ret_address->sun_path - 1, "%s.%d",
                          name, (int)getpid());
    *ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    ck_assert_int_eq(bind(made, (struct sockaddr *)ret_address, *ret_size), 0);
    return made;
}

/* Wait for the next datagram of operation 5, and check that it is this one. Returns the datagram's
 * head. If the operation has ended with it, begin it again. */
static domi_datagram_head expect_datagram(int from, const char *bytes, size_t size)
{
    domi_completion completion = domt_ring_next_completion();
    domi_datagram_head head;
    char *memory = domt_ring_memory[completion.buffer];

    ck_assert_uint_eq(completion.user_data, 5);
    ck_assert_int_eq(completion.result, (int)(sizeof head + size));
    ck_assert_uint_ne(completion.flags & DOMI_BUFFERED, 0);
    memcpy(&head, memory, sizeof head);
    ck_assert_int_eq(memcmp(memory + sizeof head, bytes, size), 0);
    if ((completion.flags & DOMI_MORE) == 0)
        domt_backend->receive_datagrams(domt_ring, from, 5);
    domt_backend->give(domt_ring, completion.buffer, memory, DOMT_RING_BUFFER_SIZE);
    domt_backend->publish(domt_ring);
    return head;
}

DOMT_TEST(each_datagram_comes_whole_with_its_sender)
{
    static const size_t sizes[] = {1, 0, 0, ROOM, 7};
    char bytes[ROOM];

    memset(bytes, 'b', sizeof bytes);
    open_ring_and_two_udp_sockets();
    domt_backend->receive_datagrams(domt_ring, fd, 5);
    domt_ring_expect_no_completion();
    for (int round = 0; round < 20; round++) { /* all rounds have more datagrams than buffers */
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            send_datagram_to_ring_socket(bytes, sizes[i]);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            domi_datagram_head head = expect_datagram(fd, bytes, sizes[i]);
            ck_assert_uint_eq(head.size, sizes[i]);
            ck_assert_uint_eq(head.flags & MSG_TRUNC, 0);
            ck_assert_uint_eq(head.name_size, sizeof there);
            ck_assert_int_eq(memcmp(head.name, &there, sizeof there), 0);
        }
    }
    close_two_sockets_and_ring();
}

DOMT_TEST(datagram_that_is_too_long_is_marked)
{
    char bytes[ROOM + 1];

    memset(bytes, 'b', sizeof bytes);
    open_ring_and_two_udp_sockets();
    domt_backend->receive_datagrams(domt_ring, fd, 5);
    send_datagram_to_ring_socket(bytes, sizeof bytes);
    ck_assert_uint_ne(expect_datagram(fd, bytes, ROOM).flags & MSG_TRUNC, 0);
    send_datagram_to_ring_socket(bytes, 3);
    ck_assert_uint_eq(expect_datagram(fd, bytes, 3).flags & MSG_TRUNC, 0);
    close_two_sockets_and_ring();
}

DOMT_TEST(senders_of_unix_datagrams_have_a_name_or_none)
{
    struct sockaddr_un to, of;
    socklen_t to_size, of_size;
    int own = make_unix_datagram_socket("here", &to, &to_size);
    int named = make_unix_datagram_socket("of", &of, &of_size);
    int unnamed = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    domt_ring_begin_with_buffers();
    domt_backend->receive_datagrams(domt_ring, own, 5);
    (void)sendto(named, "n", 1, 0, (struct sockaddr *)&to, to_size);
    domi_datagram_head head = expect_datagram(own, "n", 1);
    ck_assert_uint_eq(head.name_size, of_size);
    ck_assert_int_eq(memcmp(head.name, &of, of_size), 0);
    (void)sendto(unnamed, "u", 1, 0, (struct sockaddr *)&to, to_size);
    ck_assert_uint_eq(expect_datagram(own, "u", 1).name_size, 0);
    close(unnamed);
    close(named);
    close(own);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(datagrams_of_one_enter_leave_in_order)
{
    char bytes[16] = "";

    open_ring_and_two_udp_sockets();
    for (unsigned i = 0; i < 10; i++) {
        domi_datagram_out out = {"0123456789", &there, i, sizeof there};
        domt_backend->send_datagram(domt_ring, fd, &out, 100 + i);
        /* the structure may be changed, because the call has copied it */
        out = (domi_datagram_out){0};
    }
    for (unsigned i = 0; i < 10; i++)
        domt_ring_expect_completion(100 + i, (int)i, 0);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(recv(peer, bytes, sizeof bytes, MSG_DONTWAIT), i);
    close_two_sockets_and_ring();
}

DOMT_TEST(datagram_without_an_address_goes_to_the_connected_peer)
{
    char bytes[16] = "";
    const domi_datagram_out out = {.data = "abc", .size = 3};

    open_ring_and_two_udp_sockets();
    domt_backend->send_datagram(domt_ring, fd, &out, 1);
    domt_ring_expect_completion(1, -EDESTADDRREQ, 0);
    ck_assert_int_eq(
        domt_backend->sockets->connect(domt_ring, fd, (struct sockaddr *)&there, sizeof there), 0);
    domt_backend->send_datagram(domt_ring, fd, &out, 2);
    domt_ring_expect_completion(2, 3, 0);
    ck_assert_int_eq(recv(peer, bytes, sizeof bytes, MSG_DONTWAIT), 3);
    /* A datagram that no socket takes comes back later as an error of the sending socket. */
    close(peer);
    domt_backend->receive_datagrams(domt_ring, fd, 5);
    domt_ring_expect_no_completion();
    domt_backend->send_datagram(domt_ring, fd, &out, 3);
    int refused = 0;
    for (int i = 0; i < 2; i++) {
        domi_completion completion = domt_ring_next_completion();
        ck_assert_uint_eq(completion.flags & DOMI_MORE, 0);
        if (completion.user_data == 5)
            refused = completion.result;
        else
            ck_assert_int_eq(completion.result, 3);
    }
    ck_assert_int_eq(refused, -ECONNREFUSED);
    domt_backend->receive_datagrams(domt_ring, fd, 5); /* the socket still works after the error */
    domt_ring_expect_no_completion();
    close(fd);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(datagram_that_cannot_be_sent_fails_at_once)
{
    static char bytes[65536];
    const domi_datagram_out longest = {bytes, &there, 65507, sizeof there};
    const domi_datagram_out too_long = {bytes, &there, 65508, sizeof there};
    int ends[2];

    open_ring_and_two_udp_sockets();
    domt_backend->send_datagram(domt_ring, fd, &longest, 1);
    domt_ring_expect_completion(1, 65507, 0);
    domt_backend->send_datagram(domt_ring, fd, &too_long, 2);
    domt_ring_expect_completion(2, -EMSGSIZE, 0);
    close(peer);
    close(fd);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    int result = 1;
    for (uint64_t i = 1; result == 1; i++) {
        ck_assert_uint_lt(i, 100000);
        domt_backend->send_datagram(domt_ring, ends[0],
                                    &(domi_datagram_out){.data = "x", .size = 1}, i);
        result = domt_ring_next_completion().result;
    }
    ck_assert_int_eq(result, -EAGAIN);
    domt_backend->poll_once(domt_ring, ends[0], POLLOUT, 9);
    domt_ring_expect_no_completion();
    while (recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT) == 1)
        continue;
    ck_assert_int_ne(domt_ring_next_completion().result & POLLOUT, 0);
    close(ends[0]);
    close(ends[1]);
    domt_ring_close_with_all_sockets();
}

/* On epoll a receive and a poll of one socket share a registration, and a poll of one shot ends
 * with the first report, which here is for the receive. */
static void check_poll_beside_receive(void)
{
    int ends[2];
    char byte;

    domt_ring_begin_with_buffers();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    while (send(ends[0], "x", 1, MSG_DONTWAIT) == 1)
        continue;
    domt_backend->receive_datagrams(domt_ring, ends[0], 5);
    domt_backend->poll_once(domt_ring, ends[0], POLLOUT, 9);
    domt_ring_expect_no_completion();
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(send(ends[1], "y", 1, MSG_DONTWAIT), 1);
        (void)expect_datagram(ends[0], "y", 1);
    }
    while (recv(ends[1], &byte, 1, MSG_DONTWAIT) == 1)
        continue;
    domi_completion completion = domt_ring_next_completion();
    ck_assert_uint_eq(completion.user_data, 9);
    ck_assert_int_ne(completion.result & POLLOUT, 0);
    ck_assert_int_eq(send(ends[1], "z", 1, MSG_DONTWAIT), 1);
    (void)expect_datagram(ends[0], "z", 1);
    close(ends[0]);
    close(ends[1]);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(poll_for_room_does_not_disturb_a_receive)
{
    check_poll_beside_receive();
    domt_backend = &domi_backend_epoll;
    check_poll_beside_receive();
}

DOMT_TEST(receive_of_datagrams_ends_without_buffers_and_goes_on)
{
    open_ring_and_two_udp_sockets();
    domt_backend->receive_datagrams(domt_ring, fd, 5);
    for (unsigned i = 0; i <= DOMT_RING_BUFFERS; i++)
        send_datagram_to_ring_socket("x", 1);
    for (unsigned i = 0; i < DOMT_RING_BUFFERS; i++)
        ck_assert_int_eq(domt_ring_next_completion().result, (int)sizeof(domi_datagram_head) + 1);
    domt_ring_expect_completion(5, -ENOBUFS, 0);
    domt_ring_give_all_buffers();
    domt_backend->receive_datagrams(domt_ring, fd, 5);
    (void)expect_datagram(fd, "x", 1);
    close_two_sockets_and_ring();
}

DOMT_SUITE(20)
