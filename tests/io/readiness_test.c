/* io/backend/epoll.c, epoll_ready.c, interest.c: how readiness becomes completions, and which
 * events the kernel is asked for. tests/io/backend_test.c tests the promises of both backends. */
#include "base/memory.h"
#include "tests/io/ring.h"
#include "tests/support/deny.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ends[2];
static int epoll_fd;

/* Begin with a ring of this backend and a pair of sockets. The epoll instance is the descriptor
 * that the ring has opened. */
static void open_epoll_ring(void)
{
    int next = dup(STDIN_FILENO);

    close(next);
    domt_backend = &domi_backend_epoll;
    domt_ring_begin_with_socket_pair(ends);
    epoll_fd = next;
}

/* Returns the events for which `fd` is registered in the kernel; 0: it is not registered. */
static uint32_t registered_events_of(int fd)
{
    char path[64];
    char line[256];
    uint32_t events = 0;

    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll_fd);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        const char *what = strstr(line, "events:");
        if (strncmp(line, "tfd:", 4) == 0 && what != NULL && strtol(line + 4, NULL, 10) == fd)
            events = (uint32_t)strtoul(what + 7, NULL, 16) & ~(unsigned)(EPOLLERR | EPOLLHUP);
    }
    fclose(file);
    return events;
}

static void enter_ring_without_wait(void)
{
    ck_assert_int_eq(domt_backend->enter(domt_ring, 0, 0), 0);
}

/* Returns how many completions of operation `user_data` one enter brings. */
static uint32_t count_completions_of_enter(uint64_t user_data)
{
    domi_completion completions[256];
    uint32_t count = 0;

    enter_ring_without_wait();
    uint32_t all = domt_backend->reap(domt_ring, completions, 256);
    for (uint32_t i = 0; i < all; i++)
        count += completions[i].user_data == user_data;
    return count;
}

static void send_until_socket_is_full(int fd)
{
    static char bytes[65536];

    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
}

static void receive_until_socket_is_empty(int fd)
{
    static char bytes[65536];

    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
}

DOMT_TEST(a_completion_is_shown_by_an_enter_alone)
{
    domi_completion completion;

    open_epoll_ring();
    domt_send_text_to_socket(ends[1], "early");
    domt_backend->send(domt_ring, ends[0], "x", 1, 3);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    ck_assert(domt_backend->pending(domt_ring) && !domt_backend->ready(domt_ring));
    /* more operations than the queue holds, so the ring carries some out */
    for (int i = 0; i < 64; i++)
        domt_backend->cancel(domt_ring, ends[0], 99, 4);
    ck_assert(!domt_backend->ready(domt_ring));
    ck_assert_uint_eq(domt_backend->reap(domt_ring, &completion, 1), 0);
    enter_ring_without_wait();
    ck_assert(domt_backend->ready(domt_ring));
    domt_ring_expect_completion(3, 1, 0);
    domt_ring_close_with_all_sockets();
}

/* A thread that spins calls pending(), which asks the kernel; the enter that follows need not ask
 * again. */
DOMT_TEST(pending_looks_for_completions_in_the_kernel)
{
    open_epoll_ring();
    domt_backend->receive(domt_ring, ends[0], false, 5);
    enter_ring_without_wait();
    ck_assert(!domt_backend->pending(domt_ring));
    domt_send_text_to_socket(ends[1], "bytes");
    ck_assert(domt_backend->pending(domt_ring));
    ck_assert(!domt_backend->ready(domt_ring));
    ck_assert_uint_eq(count_completions_of_enter(5), 1);
    ck_assert(!domt_backend->pending(domt_ring));
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(a_registration_stays_for_the_next_receive_and_ends_when_nobody_wants_it)
{
    open_epoll_ring();
    domt_backend->receive(domt_ring, ends[0], true, 5);
    enter_ring_without_wait();
    ck_assert_uint_eq(registered_events_of(ends[0]), EPOLLIN);
    domt_send_text_to_socket(ends[1], "one");
    domi_completion completion = domt_ring_next_completion();
    ck_assert_int_eq(completion.result, 3);
    ck_assert_uint_eq(completion.flags, DOMI_BUFFERED);
    ck_assert_uint_eq(registered_events_of(ends[0]), EPOLLIN);
    domt_send_text_to_socket(ends[1], "two");
    domt_ring_expect_no_completion(); /* this receive takes one piece only, and the second piece
                                         waits */
    ck_assert_uint_eq(registered_events_of(ends[0]), 0);
    domt_backend->receive(domt_ring, ends[0], true, 6);
    completion = domt_ring_next_completion();
    ck_assert_uint_eq(completion.user_data, 6);
    ck_assert_int_eq(completion.result, 3);
    shutdown(ends[1], SHUT_RDWR);
    domt_ring_expect_no_completion();
    /* the socket is unregistered, or the hang-up would be reported for ever */
    ck_assert_uint_eq(registered_events_of(ends[0]), 0);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(only_a_send_to_a_full_socket_waits)
{
    static char bytes[1 << 20];

    open_epoll_ring();
    domt_backend->send(domt_ring, ends[0], bytes, 10, 1);
    domt_ring_expect_completion(1, 10, 0);
    ck_assert_uint_eq(registered_events_of(ends[0]), 0);
    send_until_socket_is_full(ends[0]);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    domt_backend->send(domt_ring, ends[0], bytes, sizeof bytes, 2);
    domt_ring_expect_no_completion();
    ck_assert_uint_eq(registered_events_of(ends[0]), EPOLLIN | EPOLLOUT);
    receive_until_socket_is_empty(ends[1]);
    domi_completion completion = domt_ring_next_completion();
    ck_assert_uint_eq(completion.user_data, 2);
    ck_assert_int_gt(completion.result, 0);
    receive_until_socket_is_empty(ends[1]);
    domt_ring_expect_no_completion();
    ck_assert_uint_eq(registered_events_of(ends[0]), EPOLLIN);
    send_until_socket_is_full(ends[0]);
    domt_backend->send(domt_ring, ends[0], bytes, sizeof bytes, 3);
    enter_ring_without_wait();
    domt_close_socket(ends[1]);
    bool has_failed = false;
    for (int i = 0; i < 2; i++) {
        completion = domt_ring_next_completion();
        ck_assert_uint_eq(completion.flags, 0);
        has_failed |= completion.user_data == 3 && completion.result < 0;
    }
    ck_assert(has_failed);
    domt_ring_close_with_all_sockets();
}

/* A descriptor on which many bytes wait does not hold up the others. */
DOMT_TEST(an_enter_takes_a_bounded_number_of_pieces)
{
    static char bytes[DOMT_RING_BUFFER_SIZE * 12];
    int others[2];

    open_epoll_ring();
    domt_make_socket_pair(others);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    domt_backend->receive(domt_ring, others[0], false, 6);
    ck_assert_int_eq(send(ends[1], bytes, sizeof bytes, 0), (ssize_t)sizeof bytes);
    domt_send_text_to_socket(others[1], "other");
    domi_completion completions[32];
    enter_ring_without_wait();
    ck_assert_uint_eq(domt_backend->reap(domt_ring, completions, 32), 9);
    ck_assert_uint_eq(count_completions_of_enter(5), 4);
    domt_ring_close_with_all_sockets();
}

/* One enter brings many pieces, and all but the last of them fill their buffers. */
DOMT_TEST(pieces_of_one_enter_come_in_order_with_their_sizes)
{
    static char bytes[DOMT_RING_BUFFER_SIZE * 2 + DOMT_RING_BUFFER_SIZE / 2];
    domi_completion completions[4];
    size_t at = 0;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7 + i / DOMT_RING_BUFFER_SIZE);
    open_epoll_ring();
    domt_backend->receive(domt_ring, ends[0], false, 5);
    ck_assert_int_eq(send(ends[1], bytes, sizeof bytes, 0), (ssize_t)sizeof bytes);
    enter_ring_without_wait();
    ck_assert_uint_eq(domt_backend->reap(domt_ring, completions, 4), 3);
    for (int i = 0; i < 3; i++) {
        int size = (int)(i < 2 ? DOMT_RING_BUFFER_SIZE : DOMT_RING_BUFFER_SIZE / 2);
        ck_assert_int_eq(completions[i].result, size);
        ck_assert_uint_eq(completions[i].flags, DOMI_BUFFERED | DOMI_MORE);
        ck_assert_mem_eq(domt_ring_memory[completions[i].buffer], bytes + at, (size_t)size);
        at += (size_t)size;
    }
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(an_enter_accepts_a_bounded_number_of_connections)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    open_epoll_ring();
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(listener, 32), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    domt_backend->accept(domt_ring, listener, 9);
    for (int i = 0; i < 20; i++) {
        int client = socket(AF_INET, SOCK_STREAM, 0);
        ck_assert_int_eq(connect(client, (struct sockaddr *)&address, size), 0);
    }
    ck_assert_uint_eq(count_completions_of_enter(9), 16);
    ck_assert_uint_eq(count_completions_of_enter(9), 4);
    shutdown(listener, SHUT_RDWR);
    domt_ring_expect_completion(9, -EINVAL, 0);
    domt_backend->forget(domt_ring, listener);
    close(listener);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(given_buffers_are_used_only_when_they_are_published)
{
    open_epoll_ring();
    domt_backend->receive(domt_ring, ends[0], false, 5);
    for (uint32_t i = 0; i < DOMT_RING_BUFFERS; i++) {
        domt_send_text_to_socket(ends[1], "x");
        ck_assert_int_eq(domt_ring_next_completion().result, 1);
    }
    domt_backend->give(domt_ring, 3, domt_ring_memory[3], DOMT_RING_BUFFER_SIZE);
    domt_send_text_to_socket(ends[1], "more");
    domt_ring_expect_completion(5, -ENOBUFS, 0);
    domt_backend->publish(domt_ring);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    domi_completion completion = domt_ring_next_completion();
    ck_assert_int_eq(completion.result, 4);
    ck_assert_uint_eq(completion.buffer, 3);
    ck_assert_int_eq(memcmp(domt_ring_memory[3], "more", 4), 0);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(a_cancel_completes_before_what_it_ends)
{
    open_epoll_ring();
    send_until_socket_is_full(ends[0]);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    domt_backend->send(domt_ring, ends[0], "x", 1, 6);
    domt_backend->cancel(domt_ring, ends[0], 5, 7);
    domt_ring_expect_completion(7, 0, 0);
    domt_ring_expect_completion(5, -ECANCELED, 0);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    domt_backend->cancel(domt_ring, ends[0], 6, 8);
    domt_ring_expect_completion(8, 0, 0);
    domt_ring_expect_completion(6, -ECANCELED, 0);
    domt_backend->cancel(domt_ring, ends[0], 6, 8);
    domt_ring_expect_completion(8, -ENOENT, 0);
    /* the cancel before has not ended this receive */
    domt_backend->cancel(domt_ring, ends[0], 5, 9);
    domt_ring_expect_completion(9, 0, 0);
    domt_ring_expect_completion(5, -ECANCELED, 0);
    /* no operation was ever begun on this descriptor */
    domt_backend->cancel(domt_ring, 1000, 5, 7);
    domt_ring_expect_completion(7, -ENOENT, 0);
    domt_ring_close_with_all_sockets();
}

/* A user may close a descriptor as soon as nothing waits for it, and its number is used again. */
DOMT_TEST(a_one_shot_poll_holds_for_a_descriptor_used_again)
{
    int fd = eventfd(0, EFD_CLOEXEC);

    open_epoll_ring();
    domt_backend->poll_once(domt_ring, fd, POLLIN, 1);
    domt_backend->poll_once(domt_ring, fd, POLLIN | POLLOUT, 2);
    domt_ring_expect_completion(2, POLLOUT, 0);
    ck_assert_int_eq(eventfd_write(fd, 1), 0);
    domt_ring_expect_completion(1, POLLIN, 0);
    domt_ring_expect_no_completion(); /* no event comes, although the descriptor is still readable
                                       */
    for (uint64_t i = 1; i < 4; i++) {
        close(fd);
        ck_assert_int_eq(eventfd(1, EFD_CLOEXEC), fd);
        domt_backend->poll_once(domt_ring, fd, POLLIN, i);
        domt_ring_expect_completion(i, POLLIN, 0);
    }
    close(fd);
    ck_assert_int_eq(dup2(ends[0], fd), fd);
    domt_backend->receive(domt_ring, fd, false, 5);
    domt_send_text_to_socket(ends[1], "bytes");
    ck_assert_int_eq(domt_ring_next_completion().result, 5);
    close(fd);
    domt_backend->poll_once(domt_ring, fd, POLLIN, 1);
    domt_ring_expect_completion(1, -EBADF, 0);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(a_file_is_always_ready_and_no_socket)
{
    char path[] = "/tmp/domus-readiness-XXXXXX";
    int fd = mkstemp(path);

    open_epoll_ring();
    ck_assert_int_ge(fd, 0);
    unlink(path);
    domt_backend->poll_once(domt_ring, fd, POLLIN | POLLPRI, 1);
    domt_ring_expect_completion(1, POLLIN, 0);
    domt_backend->receive(domt_ring, fd, false, 2);
    domt_ring_expect_completion(2, -ENOTSOCK, 0);
    domt_backend->receive(domt_ring, -1, false, 3);
    domt_ring_expect_completion(3, -EBADF, 0);
    close(fd);
    domt_ring_close_with_all_sockets();
}

/* A forked process may still have the socket, so closing it here would not end its registration. */
DOMT_TEST(a_forgotten_descriptor_is_not_reported)
{
    int kept;

    open_epoll_ring();
    kept = dup(ends[0]);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    domt_backend->cancel(domt_ring, ends[0], 5, 7);
    domt_ring_expect_completion(7, 0, 0);
    domt_ring_expect_completion(5, -ECANCELED, 0);
    domt_backend->forget(domt_ring, ends[0]);
    ck_assert_uint_eq(registered_events_of(ends[0]), 0);
    close(ends[0]);
    domt_send_text_to_socket(ends[1], "bytes");
    domt_ring_expect_no_completion();
    ck_assert_int_eq(dup2(kept, ends[0]), ends[0]);
    domt_backend->receive(domt_ring, ends[0], false, 6);
    domi_completion completion = domt_ring_next_completion();
    ck_assert_uint_eq(completion.user_data, 6);
    ck_assert_int_eq(completion.result, 5);
    close(kept);
    domt_ring_close_with_all_sockets();
}

DOMT_TEST(more_completions_than_the_queue_holds_are_kept_in_order)
{
    domt_backend = &domi_backend_epoll;
    domt_ring_open_unstarted(16, 32);
    domt_backend->cancel(domt_ring, 7, 99, 1);
    /* the queue's first place is used up, so the further completions wrap around */
    domt_ring_expect_completion(1, -ENOENT, 0);
    for (uint64_t i = 1; i <= 300; i++)
        domt_backend->cancel(domt_ring, 7, 99, i);
    for (uint64_t i = 1; i <= 300; i++)
        domt_ring_expect_completion(i, -ENOENT, 0);
    domt_ring_close_with_all_sockets();
}

/* Completions that are lost for lack of memory end the ring, and an operation without memory
 * fails. */
DOMT_TEST(without_memory_an_operation_fails_or_the_ring_does)
{
    open_epoll_ring();
    domi_memory_fail_allocation_after(0, 1);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    domt_backend->poll_once(domt_ring, ends[0], POLLIN, 6);
    enter_ring_without_wait();
    domi_memory_fail_allocation_after(-1, 0);
    domt_ring_expect_completion(5, -ENOMEM, 0);
    domt_ring_expect_completion(6, -ENOMEM, 0);
    domi_memory_fail_allocation_after(0, 1);
    for (uint64_t i = 0; i < 400; i++)
        domt_backend->cancel(domt_ring, ends[0], 99, 8);
    ck_assert_int_eq(domt_backend->enter(domt_ring, 0, 0), -ENOMEM);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_int_eq(domt_backend->enter(domt_ring, 1, 0), -ENOMEM);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    ck_assert_int_eq(domt_backend->enter(domt_ring, 0, 0), -ENOMEM);
    domt_ring_close_with_all_sockets();
}

/* Kernels before 5.11 wait in whole milliseconds, and a wait must never be too short. */
DOMT_TEST(a_wait_without_epoll_pwait2_is_rounded_up)
{
    open_epoll_ring();
    for (int filtered = 0; filtered < 2; filtered++) {
        uint64_t from_ns = domt_now_ns();
        ck_assert_int_eq(domt_backend->enter(domt_ring, 1, 100000), 0);
        ck_assert_uint_ge(domt_now_ns() - from_ns, 100000);
        from_ns = domt_now_ns();
        ck_assert_int_eq(domt_backend->enter(domt_ring, 1, 20 * DOMT_MS + 1), 0);
        ck_assert_uint_ge(domt_now_ns() - from_ns, 20 * DOMT_MS + 1);
        ck_assert_int_eq(domt_deny_system_call(SYS_epoll_pwait2, ENOSYS), 0);
    }
    domt_ring_close_with_all_sockets();
}

/* The ring keeps a copy of a gathered send's pieces until it tries the send. If that has to wait,
 * it ends with -EAGAIN when there is room, and the caller begins it again. */
DOMT_TEST(a_gathered_send_that_waits_is_begun_again)
{
    static char bytes[1 << 20];
    struct iovec first[2] = {{"a", 1}, {"bc", 2}};
    struct iovec second[2] = {{"1", 1}, {"2", 1}};

    open_epoll_ring();
    domt_backend->send_message(domt_ring, ends[0],
                               &(struct msghdr){.msg_iov = first, .msg_iovlen = 2}, 1);
    domt_backend->send_message(domt_ring, ends[1],
                               &(struct msghdr){.msg_iov = second, .msg_iovlen = 2}, 2);
    domt_ring_expect_completion(1, 3, 0);
    domt_ring_expect_completion(2, 2, 0);
    ck_assert_int_eq(recv(ends[1], bytes, sizeof bytes, 0), 3);
    ck_assert_int_eq(memcmp(bytes, "abc", 3), 0);

    send_until_socket_is_full(ends[0]);
    domt_backend->send_message(domt_ring, ends[0],
                               &(struct msghdr){.msg_iov = first, .msg_iovlen = 2}, 3);
    domt_ring_expect_no_completion();
    receive_until_socket_is_empty(ends[1]);
    domt_ring_expect_completion(3, -EAGAIN, 0);
    domt_ring_expect_no_completion();
    /* the peer has got no bytes of the send that has failed */
    ck_assert_int_eq(recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT), -1);
    domt_ring_close_with_all_sockets();
}

DOMT_SUITE(20)
