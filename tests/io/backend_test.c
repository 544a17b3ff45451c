/* The backends keep on this machine's kernel every promise of the backend table on which io
 * relies. */
#include "base/memory.h"
#include "tests/io/ring.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SOCKETS 20 /* number of sends that are queued at the same time */

DOMT_TEST(an_enter_waits_as_long_as_it_is_told)
{
    domt_ring_begin_with_buffers();
    uint64_t start_ns = domt_ring_now_ns();
    ck_assert_int_eq(domt_backend->enter(domt_ring, 1, 30 * DOMT_MS), 0);
    uint64_t waited_ns = domt_ring_now_ns() - start_ns;
    ck_assert_uint_ge(waited_ns, 30 * DOMT_MS);
    ck_assert_uint_lt(waited_ns, 2 * DOMT_SECOND);
    ck_assert_int_eq(domt_backend->enter(domt_ring, 0, 0), 0);
    ck_assert(!domt_backend->pending(domt_ring));
    ck_assert(!domt_backend->ready(domt_ring));
    domt_ring_close_with_all_sockets();
}

static void on_alarm_do_nothing(int number)
{
}

DOMT_TEST(an_interrupted_enter_is_no_error)
{
    struct sigaction action = {.sa_handler = on_alarm_do_nothing};
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};

    domt_ring_begin_with_buffers();
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
    uint64_t start_ns = domt_now_ns();
    ck_assert_int_eq(domt_backend->enter(domt_ring, 1, 10 * DOMT_SECOND), 0);
    ck_assert_uint_lt(domt_now_ns() - start_ns, 5 * DOMT_SECOND);
    domt_ring_close_with_all_sockets();
}

/* The eventfd is never read, and still each write to it fires the poll. */
DOMT_TEST(a_poll_tells_each_write_to_an_eventfd)
{
    int fd = eventfd(0, EFD_CLOEXEC);

    domt_ring_begin_with_buffers();
    domt_backend->poll(domt_ring, fd, 7);
    ck_assert(domt_backend->pending(domt_ring));
    domt_ring_expect_no_completion();
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(eventfd_write(fd, 1), 0);
        domi_completion completion = domt_ring_next_completion();
        ck_assert_uint_eq(completion.user_data, 7);
        ck_assert_int_gt(completion.result, 0);
        ck_assert_uint_eq(completion.flags, DOMI_MORE);
        domt_ring_expect_no_completion();
    }
    close(fd);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(a_receive_goes_on_until_the_peers_end)
{
    int ends[2];

    domt_ring_begin_with_socket_pair(ends);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    domt_send_text_to_socket(ends[1], "one");
    domi_completion first = domt_ring_next_completion();
    ck_assert_int_eq(first.result, 3);
    ck_assert_uint_eq(first.flags, DOMI_MORE | DOMI_BUFFERED);
    ck_assert_int_eq(memcmp(domt_ring_memory[first.buffer], "one", 3), 0);
    domt_send_text_to_socket(ends[1], "three");
    domi_completion second = domt_ring_next_completion();
    ck_assert_int_eq(second.result, 5);
    ck_assert_uint_ne(second.buffer, first.buffer);
    domt_end_sending_of_socket(ends[1]);
    domt_ring_expect_completion(5, 0, 0);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(sends_take_all_pieces_in_order)
{
    char text[16] = "";
    int ends[2];
    struct iovec pieces[3] = {{"ab", 2}, {"cde", 3}, {"f", 1}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 3};

    domt_ring_begin_with_socket_pair(ends);
    domt_backend->send(domt_ring, ends[0], "12345", 5, 1);
    domt_ring_expect_completion(1, 5, 0);
    domt_backend->send_message(domt_ring, ends[0], &message, 2);
    /* The list of pieces may be changed after the call, which has copied it. */
    memset(pieces, 0, sizeof pieces);
    memset(&message, 0, sizeof message);
    domt_ring_expect_completion(2, 6, 0);
    ck_assert_int_eq(domt_receive_from_socket(ends[1], text, sizeof text), 11);
    ck_assert_str_eq(text, "12345abcdef");
    domt_close_socket(ends[1]);
    /* a send to a closed peer raises no SIGPIPE */
    domt_backend->send(domt_ring, ends[0], "x", 1, 3);
    domt_ring_expect_completion(3, -EPIPE, 0);
    domt_ring_close_with_all_sockets();
}

/* Many gathered sends may be queued at once; each keeps its own list of pieces. */
DOMT_TEST(gathered_sends_of_many_sockets_do_not_mix)
{
    char texts[SOCKETS][2];
    int ends[SOCKETS][2];

    domt_ring_begin_with_buffers();
    for (uint32_t i = 0; i < SOCKETS; i++) {
        domt_make_socket_pair(ends[i]);
        texts[i][0] = (char)('a' + i);
        texts[i][1] = (char)('A' + i);
        struct iovec pieces[2] = {{&texts[i][0], 1}, {&texts[i][1], 1}};
        domt_backend->send_message(domt_ring, ends[i][0],
                                   &(struct msghdr){.msg_iov = pieces, .msg_iovlen = 2}, i + 1);
    }
    for (uint32_t i = 0; i < SOCKETS; i++)
        ck_assert_int_eq(domt_ring_next_completion().result, 2);
    for (uint32_t i = 0; i < SOCKETS; i++) {
        char text[4] = "";
        ck_assert_int_eq(domt_receive_from_socket(ends[i][1], text, sizeof text), 2);
        ck_assert_int_eq(memcmp(text, texts[i], 2), 0);
    }
    domt_ring_close_with_all_sockets();
}

/* Receive so many bytes, which the peer has all sent before. */
static void receive_number_of_bytes(int fd, int64_t left)
{
    static char bytes[65536];

    while (left > 0) {
        int size = domt_receive_from_socket(fd, bytes, sizeof bytes);
        ck_assert_int_gt(size, 0);
        left -= size;
    }
}

/* A gathered send that waits for room in the socket either sends then, or completes with the error
 * after which io begins it again. */
DOMT_TEST(a_gathered_send_waits_for_a_full_socket)
{
    static char bytes[1 << 20];
    int ends[2];
    struct iovec pieces[2] = {{bytes, 3}, {bytes + 3, 4}};

    domt_ring_begin_with_socket_pair(ends);
    int64_t left = domt_fill_socket(ends[0]);
    domt_backend->send_message(domt_ring, ends[0],
                               &(struct msghdr){.msg_iov = pieces, .msg_iovlen = 2}, 2);
    domt_ring_expect_no_completion();
    memset(pieces, 0, sizeof pieces);
    receive_number_of_bytes(ends[1], left);
    domi_completion completion = domt_ring_next_completion();
    ck_assert_uint_eq(completion.user_data, 2);
    ck_assert(completion.result == 7 || completion.result == -EAGAIN);
    if (completion.result == 7)
        ck_assert_int_eq(domt_receive_from_socket(ends[1], bytes, sizeof bytes), 7);
    domt_ring_expect_no_completion();
    ck_assert_int_eq(domt_receive_from_socket(ends[1], bytes, sizeof bytes), -EAGAIN);
    domt_ring_close_with_all_sockets();
}

/* The result of a send says how much the socket took at once; if the socket is full, the send
 * waits. */
DOMT_TEST(a_large_send_is_short_and_a_full_socket_is_waited_for)
{
    static char bytes[1 << 20];
    int ends[2];

    domt_ring_begin_with_socket_pair(ends);
    domt_backend->send(domt_ring, ends[0], bytes, sizeof bytes, 1);
    domi_completion completion = domt_ring_next_completion();
    ck_assert_int_gt(completion.result, 0);
    ck_assert_int_lt(completion.result, (int)sizeof bytes);
    int64_t left = completion.result + domt_fill_socket(ends[0]);
    domt_backend->send(domt_ring, ends[0], bytes, sizeof bytes, 2);
    domt_ring_expect_no_completion();
    receive_number_of_bytes(ends[1], left);
    completion = domt_ring_next_completion();
    ck_assert_uint_eq(completion.user_data, 2);
    ck_assert_int_gt(completion.result, 0);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(a_cancel_ends_one_operation)
{
    static char bytes[1 << 20];
    int ends[2];
    int32_t results[8] = {0};

    domt_ring_begin_with_socket_pair(ends);
    domt_backend->cancel(domt_ring, 0, 99, 3);
    domt_ring_expect_completion(3, -ENOENT, 0);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    domt_ring_expect_no_completion();
    domt_backend->cancel(domt_ring, ends[0], 5, 4);
    for (int i = 0; i < 2; i++) {
        domi_completion completion = domt_ring_next_completion();
        results[completion.user_data] = completion.result;
        ck_assert_uint_eq(completion.flags, 0);
    }
    ck_assert_int_eq(results[4], 0);
    ck_assert_int_eq(results[5], -ECANCELED);
    domt_backend->send(domt_ring, ends[0], bytes, sizeof bytes, 6);
    ck_assert_int_gt(domt_ring_next_completion().result, 0);
    (void)domt_fill_socket(ends[0]);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    domt_backend->send(domt_ring, ends[0], bytes, sizeof bytes, 6);
    domt_ring_expect_no_completion();
    domt_backend->cancel(domt_ring, ends[0], 6, 7);
    for (int i = 0; i < 2; i++) {
        domi_completion completion = domt_ring_next_completion();
        results[completion.user_data] = completion.result;
        ck_assert_uint_eq(completion.flags, 0);
    }
    ck_assert_int_eq(results[7], 0);
    ck_assert_int_eq(results[6], -ECANCELED);
    domt_ring_expect_no_completion();
    domt_send_text_to_socket(ends[1],
                             "goes on"); /* the cancel of operation 6 has not ended the receive */
    ck_assert_int_eq(domt_ring_next_completion().result, 7);
    domt_backend->cancel(domt_ring, ends[0], 5, 4);
    for (int i = 0; i < 2; i++)
        results[0] = domt_ring_next_completion().result;
    domt_ring_close_with_all_sockets();
}

/* A submit carries out the queued operations without a wait, and a send completes at once. */
DOMT_TEST(a_submit_shows_what_completes_at_once)
{
    static const char byte = 'b';
    domi_completion completions[2];
    int ends[2];

    if (domt_backend->submit == NULL)
        return;
    domt_ring_begin_with_socket_pair(ends);
    ck_assert_int_eq(domt_backend->submit(domt_ring), 0); /* no operation was queued before */
    ck_assert(!domt_backend->ready(domt_ring));
    domt_backend->send(domt_ring, ends[0], &byte, 1, 6);
    ck_assert(!domt_backend->ready(domt_ring));
    ck_assert_int_eq(domt_backend->submit(domt_ring), 0);
    ck_assert(domt_backend->ready(domt_ring));
    ck_assert_uint_eq(domt_backend->reap(domt_ring, completions, 2), 1);
    ck_assert_uint_eq(completions[0].user_data, 6);
    ck_assert_int_eq(completions[0].result, 1);
    ck_assert(!domt_backend->ready(domt_ring));
    domt_ring_close_with_all_sockets();
}

/* Queue a send of one byte on each of the first `count` sockets, numbered from 1 on. */
static void queue_sends_of_one_byte(int ends[][2], uint32_t count)
{
    static const char byte = 'b';

    for (uint32_t i = 0; i < count; i++)
        domt_backend->send(domt_ring, ends[i][0], &byte, 1, i + 1);
}

/* Submit. Returns how many sends have completed when submit() returns. */
static uint32_t count_sends_done_by_submit(void)
{
    domi_completion completions[SOCKETS];

    ck_assert_int_eq(domt_backend->submit(domt_ring), 0);
    uint32_t count = domt_backend->reap(domt_ring, completions, SOCKETS);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_int_eq(completions[i].result, 1);
    return count;
}

DOMT_TEST(an_io_uring_makes_the_first_sends_without_an_enter)
{
    int ends[SOCKETS][2];
    char text[2];

    if (domt_backend != &domi_backend_uring)
        return;
    domt_ring_begin_with_buffers();
    for (uint32_t i = 0; i < SOCKETS; i++)
        domt_make_socket_pair(ends[i]);
    queue_sends_of_one_byte(ends, 3);
    /* pending() is true, so a thread that does not sleep sees the completions */
    ck_assert(domt_backend->pending(domt_ring));
    ck_assert_int_eq(domt_receive_from_socket(ends[0][1], text, 1), 1);
    ck_assert_uint_eq(count_sends_done_by_submit(), 3);
    ck_assert(!domt_backend->pending(domt_ring));
    /* four of so many sends are made at once, and the others share an enter */
    queue_sends_of_one_byte(ends, SOCKETS);
    ck_assert_uint_eq(count_sends_done_by_submit(), 4);
    ck_assert(domt_backend->pending(domt_ring));
    for (uint32_t i = 4; i < SOCKETS; i++)
        domt_ring_expect_completion(i + 1, 1, 0);
    /* a receive needs an enter, and then the send shares it */
    domt_backend->receive(domt_ring, ends[0][0], true, 40);
    queue_sends_of_one_byte(ends, 1);
    ck_assert_uint_eq(count_sends_done_by_submit(), 0);
    domt_ring_expect_completion(1, 1, 0);
    (void)domt_fill_socket(ends[1][0]); /* a send on a full socket has to wait in the ring */
    domt_backend->send(domt_ring, ends[1][0], text, 1, 41);
    ck_assert_uint_eq(count_sends_done_by_submit(), 0);
    domt_ring_expect_no_completion();
    for (uint32_t i = 0; i < SOCKETS; i++)
        domt_close_socket(ends[i][1]);
    for (int i = 0; i < 2; i++)
        /* the peer's socket was closed with unread bytes, so both operations end with an error */
        ck_assert_int_lt(domt_ring_next_completion().result, 0);
    domt_ring_close_with_all_sockets();
}

/* An enter that may sleep returns at once while the completion of a send waits to be reaped. */
DOMT_TEST(an_enter_does_not_wait_while_a_completion_can_be_reaped)
{
    static const char byte = 'b';
    int ends[2];

    domt_ring_begin_with_socket_pair(ends);
    domt_backend->send(domt_ring, ends[0], &byte, 1, 6);
    uint64_t start_ns = domt_ring_now_ns();
    ck_assert_int_eq(domt_backend->enter(domt_ring, 1, 10 * DOMT_SECOND), 0);
    ck_assert_uint_lt(domt_ring_now_ns() - start_ns, 5 * DOMT_SECOND);
    domt_ring_expect_completion(6, 1, 0);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(an_accept_goes_on_and_its_sockets_close_on_exec)
{
    const domi_sockets *sockets = domt_backend->sockets;
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct sockaddr *at = (struct sockaddr *)&address;
    socklen_t size = sizeof address;

    domt_ring_begin_with_buffers();
    int listener = sockets->socket(domt_ring, AF_INET, SOCK_STREAM);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(sockets->bind(domt_ring, listener, at, size), 0);
    ck_assert_int_eq(sockets->listen(domt_ring, listener, 8), 0);
    ck_assert_int_eq(sockets->address(domt_ring, listener, false, at, &size), 0);
    domt_backend->accept(domt_ring, listener, 9);
    for (int i = 0; i < 3; i++) {
        int client = sockets->socket(domt_ring, AF_INET, SOCK_STREAM);
        ck_assert_int_eq(domt_backend->enter(domt_ring, 0, 0), 0);
        int result = sockets->connect(domt_ring, client, at, size);
        /* a simulated connect ends at once, and a real one is under way */
        ck_assert(result == 0 || result == -EINPROGRESS);
        domi_completion completion = domt_ring_next_completion();
        ck_assert_uint_eq(completion.user_data, 9);
        ck_assert_uint_eq(completion.flags, DOMI_MORE);
        ck_assert_int_ge(completion.result, 0);
        if (!domt_backend->is_simulated) {
            ck_assert_int_ne(fcntl(completion.result, F_GETFD) & FD_CLOEXEC, 0);
            ck_assert_int_eq(fcntl(completion.result, F_GETFL) & O_NONBLOCK, 0);
        }
        domt_close_socket(completion.result);
        domt_close_socket(client);
    }
    domt_backend->cancel(domt_ring, listener, 9, 1);
    for (int i = 0; i < 2; i++)
        (void)domt_ring_next_completion();
    domt_close_socket(listener);
    domt_ring_close_with_all_sockets();
}

static void *start_and_enter_ring_as_owner(void *unused)
{
    ck_assert_int_eq(domt_backend->start(domt_ring), 0);
    ck_assert_int_eq(domt_backend->enter(domt_ring, 1, DOMT_MS), 0);
    return NULL;
}

DOMT_TEST(thread_that_starts_a_ring_owns_it)
{
    pthread_t thread;

    domt_ring_open_unstarted(64, 256);
    ck_assert_int_eq(pthread_create(&thread, NULL, start_and_enter_ring_as_owner, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    domt_ring_close_with_all_sockets();
}

static int number_of_next_descriptor(void)
{
    int fd = dup(STDIN_FILENO);

    close(fd);
    return fd;
}

DOMT_TEST(a_ring_that_cannot_be_made_leaves_nothing)
{
    char error[256] = "";
    struct rlimit before;
    void *untouched = &before;
    domus_config config;
    int next_fd = number_of_next_descriptor();

    domus_config_init(&config);
    for (int64_t n = 0; n < (domt_backend == &domi_backend_uring ? 3 : 6); n++) {
        domi_memory_fail_allocation_after(n, 0);
        ck_assert_int_eq(domt_backend->open(&config, error, sizeof error, &untouched), -ENOMEM);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert_ptr_nonnull(strstr(error, "out of memory"));
        ck_assert_int_eq(number_of_next_descriptor(), next_fd);
    }
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {(rlim_t)next_fd, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    int result = domt_backend->open(&config, error, sizeof error, &untouched);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_int_eq(result, -EMFILE);
    ck_assert_ptr_nonnull(strstr(error, "ulimit -n"));
    ck_assert_ptr_eq(untouched, &before);
    ck_assert_int_eq(number_of_next_descriptor(), next_fd);
    domt_ring_open_unstarted(64, 256);
    domt_ring_close_with_all_sockets();
    ck_assert_int_eq(number_of_next_descriptor(), next_fd);
}

/* The tests that are not in this table are about time, signals and descriptors of the kernel, so
 * they run on real rings only. */
DOMT_TEST(a_simulated_ring_passes_the_tests_of_real_rings)
{
    static void (*const shared[])(int) = {
        an_enter_waits_as_long_as_it_is_told,
        a_receive_goes_on_until_the_peers_end,
        sends_take_all_pieces_in_order,
        gathered_sends_of_many_sockets_do_not_mix,
        a_gathered_send_waits_for_a_full_socket,
        a_large_send_is_short_and_a_full_socket_is_waited_for,
        a_cancel_ends_one_operation,
        an_accept_goes_on_and_its_sockets_close_on_exec,
    };

    domt_ring_use_simulated_network();
    /* several rounds, because chance decides what the simulated kernel leaves open */
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
            shared[i](0);
}

DOMT_SUITE(20)
