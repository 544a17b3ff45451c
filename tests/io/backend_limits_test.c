/* The backends at their limits: more operations than its queues hold, completions that
 * overflow, no buffers, and no memory. */
#include "base/memory.h"
#include "io/backend/choose.h"
#include "tests/io/ring.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* 300 operations, of which 16 fit into the submission queue and 32 into that of completions. */
DOMT_TEST(more_than_the_queues_hold_is_neither_refused_nor_lost)
{
    enum { COUNT = 300 };
    static uint8_t seen[COUNT + 1];
    int fd = eventfd(1, EFD_CLOEXEC);
    uint32_t total = 0;

    domt_ring_open(16, 32);
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
            continue; /* the ring wants its completions reaped first */
    }
    for (int i = 1; i <= COUNT; i++)
        total -= seen[i] == 1;
    ck_assert_uint_eq(total, 0);
    close(fd);
    domt_ring_end();
}

DOMT_TEST(without_buffers_a_receive_ends_and_may_be_armed_again)
{
    int ends[2];
    domi_completion got[DOMT_RING_BUFFERS];

    domt_ring_begin_pair(ends);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    for (uint32_t i = 0; i < DOMT_RING_BUFFERS; i++) {
        domt_put(ends[1], "x");
        got[i] = domt_ring_next();
        ck_assert_int_eq(got[i].result, 1);
        ck_assert((got[i].flags & DOMI_MORE) != 0);
    }
    domt_put(ends[1], "kept");
    domt_ring_comes(5, -ENOBUFS, 0);
    domt_backend->receive(domt_ring, ends[0], false, 5);
    domt_ring_comes(5, -ENOBUFS, 0);
    domt_backend->give(domt_ring, got[3].buffer, domt_ring_memory[got[3].buffer],
                       DOMT_RING_BUFFER_SIZE);
    domt_backend->publish(domt_ring);
    domt_backend->receive(domt_ring, ends[0], false, 6);
    domi_completion completion = domt_ring_next();
    ck_assert_uint_eq(completion.user_data, 6);
    ck_assert_int_eq(completion.result, 4);
    ck_assert_uint_eq(completion.buffer, got[3].buffer);
    domt_ring_end();
}

/* Eight streams through 16 buffers and few places for completions that are reaped rarely: overflows
 * or empty buffer rings end receives all the time, and MORE alone says so. */
static void stream(uint32_t completions, uint32_t ended[2])
{
    enum { STREAMS = 8, BYTES = 2000 };
    int ends[STREAMS][2];
    uint32_t received[STREAMS] = {0};
    uint32_t put_bytes[STREAMS] = {0};
    uint32_t left = STREAMS * BYTES;
    uint32_t wrong = 0;

    domt_ring_open(8, completions);
    ck_assert_int_eq(domt_backend->start(domt_ring), 0);
    domt_ring_give_all();
    for (uint32_t i = 0; i < STREAMS; i++) {
        domt_pair(ends[i]);
        domt_backend->receive(domt_ring, ends[i][0], false, i + 1);
    }
    for (uint64_t until_ns = domt_now_ns() + 10 * DOMT_SECOND;
         left != 0 && domt_now_ns() < until_ns;) {
        for (int burst = 0; burst < 10; burst++) {
            for (uint32_t i = 0; i < STREAMS && put_bytes[i] < BYTES; i++) {
                char byte = (char)put_bytes[i]; /* one per enter: a completion each */
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
    domt_ring_end();
}

DOMT_TEST(streams_survive_overflows_and_empty_buffer_rings)
{
    uint32_t ended[2] = {0}; /* receives: without bytes, and with */

    stream(8, ended);
    if (domt_backend == &domi_backend_uring) /* no receive of the other ends for an overflow */
        ck_assert_uint_gt(ended[1], 0);
    stream(64, ended);
    ck_assert_uint_gt(ended[0], 0);
}

/* Each piece of memory of the epoll backend is missing once. */
DOMT_TEST(epoll_without_memory_does_not_open)
{
    static domus_config config;
    int64_t missing = 0;
    void *ring = NULL;

    domus_config_init(&config);
    for (int result = -ENOMEM; result != 0; missing++) {
        char error[256] = "";
        ck_assert_int_lt(missing, 100);
        domi_memory_fail_after(missing, 0);
        result = domi_backend_epoll.open(&config, error, sizeof error, &ring);
        domi_memory_fail_after(-1, 0);
        ck_assert(result == 0 || (result == -ENOMEM && error[0] != '\0' && ring == NULL));
    }
    ck_assert_int_gt(missing, 7); /* the ring and six tables at least, and then none */
    domi_backend_epoll.close(ring);
}

DOMT_SUITE(20)
