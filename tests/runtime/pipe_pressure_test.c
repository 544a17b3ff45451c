/* io/pipelines/: the limits of a channel with a pipeline: requestsMax, sendHigh with answers that
 * wait for their turn, conversationsMax, slow readers, large messages, and memory that is short. */
#include "base/memory.h"
#include "io/channels/crowd.h"
#include "runtime/network/network.h"
#include "runtime/testkit/kit.h"
#include "tests/runtime/pipes.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

DOMT_TEST(request_that_hangs_lets_no_more_than_requests_max_begin)
{
    domus_config config = domt_pipe_default_config();
    config.channel.requests_max = 128;
    domus_peer *peer = domt_pipe_begin_kit(&config, &domt_pipe_framed, 1);

    domt_pipe_peer_send_text(peer, "sleep 1000 a\n");
    for (int i = 0; i < 300; i++)
        domt_pipe_peer_send_text(peer, i % 3 == 0   ? "ffar 0 b\n"
                                       : i % 3 == 1 ? "now 0 b\n"
                                                    : "none 0 b\n");
    domt_pipe_pass_time(500 * MS);
    ck_assert_uint_eq(domt_pipes_now.begun, 128);
    domt_pipe_peer_expect_text(peer, "a\n");
    for (int i = 0; i < 100; i++)
        domt_pipe_peer_expect_text(peer, "b\nb\nerror ENOMSG\n");
    ck_assert_uint_eq(domt_pipes_now.begun, 301);
    domt_pipe_finish_peer_and_end_kit(peer);
}

DOMT_TEST(requests_max_1_handles_one_at_a_time)
{
    domus_config config = domt_pipe_default_config();
    config.channel.requests_max = 1;
    domus_peer *peer = domt_pipe_begin_kit(&config, &domt_pipe_framed, 1);

    for (int i = 0; i < 40; i++)
        domt_pipe_peer_send_text(peer, "sleep 1 a\n!ffar 1 b\nnow 0 c\n!now 0 d\nkffar 2 e\n");
    for (int i = 0; i < 40; i++)
        domt_pipe_peer_expect_text(peer, "a\nb\nc\nd\ne\n");
    domt_pipe_finish_peer_and_end_kit(peer);
}

DOMT_TEST(conversations_max_holds_requests_up)
{
    domus_config config = domt_pipe_default_config();
    config.scheduler.conversations_max = 2;
    domus_peer *peer = domt_pipe_begin_kit(&config, &domt_pipe_framed, 1);

    for (int i = 0; i < 20; i++)
        domt_pipe_peer_send_text(peer,
                                 "sleep 10 a\nsleep 5 b\nnow 0 c\nfar 1 d\nkeep 1 e\nfnear 1 f\n");
    domt_pipe_pass_time(4 * MS);
    ck_assert_uint_eq(domt_pipes_now.begun, 2);
    for (int i = 0; i < 20; i++)
        domt_pipe_peer_expect_text(peer, "a\nb\nc\nd\ne\nf\n");
    domt_pipe_close_peer_and_end_kit(peer);
}

/* --- bytes ------------------------------------------------------------------------------------ */

static char *make_line_of_size(const char *head, size_t size)
{
    char *line = malloc(size + 64);

    ck_assert_ptr_nonnull(line);
    size_t begin = (size_t)snprintf(line, size + 64, "%s", head);
    for (size_t i = 0; i < size; i++)
        line[begin + i] = (char)('a' + i % 26);
    memcpy(line + begin + size, "\n", 2);
    return line;
}

DOMT_TEST(answers_that_wait_count_toward_send_high)
{
    domus_config config = domt_pipe_default_config();
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    domus_peer *peer = domt_pipe_begin_kit(&config, &domt_pipe_framed, 1);
    char *line = make_line_of_size("slice 0 ", 3000);

    domt_pipe_peer_send_text(peer, "sleep 1000 a\n");
    for (int i = 0; i < 30; i++)
        domt_pipe_peer_send_text(peer, line);
    domt_pipe_pass_time(500 * MS);
    /* one request hangs, and the answer to the fourth one behind it exceeds sendHigh */
    ck_assert_uint_eq(domt_pipes_now.begun, 1 + 4);
    domt_pipe_peer_expect_text(peer, "a\n");
    for (int i = 0; i < 30; i++)
        domt_pipe_peer_expect_text(peer, line + strlen("slice 0 "));
    free(line);
    domt_pipe_close_peer_and_end_kit(peer);
}

static uint64_t sum_queued_bytes(void)
{
    const domus_system *system = domt_pipe_system_of_kit();
    uint64_t sum = 0;
    for (uint32_t i = 0; i < system->count; i++)
        sum += domi_counter_read(&system->threads[i].io.queued);
    return sum;
}

/* Answers that wait for their turn are charged to the thread's bound of queued bytes, and the
 * charge is given back however they end; domt_pipes_end_kit() checks that. */
DOMT_TEST(answers_that_wait_are_charged)
{
    static const char *const ends[] = {"answer", "reset", "stop", "close", "finish"};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);
        char *line = make_line_of_size(i % 2 == 0 ? "slice 0 " : "fnear 0 ", 3000);

        domt_pipe_peer_send_text(peer, "sleep 1000 a\n");
        for (int n = 0; n < 20; n++)
            domt_pipe_peer_send_text(peer, line);
        domt_pipe_pass_time(500 * MS);
        ck_assert_uint_ge(sum_queued_bytes(), UINT64_C(20) * 3000);
        ck_assert_uint_le(sum_queued_bytes(), UINT64_C(20) * 3600);
        if (i == 0) {
            domt_pipe_peer_expect_text(peer, "a\n");
            for (int n = 0; n < 20; n++)
                domt_pipe_peer_expect_text(peer, line + strlen("slice 0 "));
        } else if (i == 1) {
            domus_peer_reset(peer);
        } else if (i == 2) {
            domt_pipe_stop_channel();
        } else {
            char text[64];
            snprintf(text, sizeof text, "%s 0 text\n", ends[i]);
            domt_pipe_peer_send_text(peer, text);
            /* A request that ends the channel comes, and behind it one more, whose answer does not
             * wait. */
            domt_pipe_peer_send_text(peer, line);
        }
        domt_pipe_pass_time(5 * SECOND);
        ck_assert_uint_eq(sum_queued_bytes(), 0);
        free(line);
        domt_pipe_close_peer_and_end_kit(peer);
    }
}

/* Many channels have a request that hangs and many answers that wait behind it. All of these stay
 * within the bound of their threads, and in the end each peer gets its answers. */
DOMT_TEST(answers_that_wait_stay_within_the_bound_of_a_thread)
{
    enum { PEERS = 24, BOUND = 400000 };
    domus_config config = domt_pipe_default_config();
    /* the system does not measure memory, so the bound stays the one that the test sets */
    config.memory.enabled = false;
    (void)domt_pipes_new_kit(&config, &domt_pipe_framed, 1);
    domus_system *system = domt_pipe_system_of_kit();
    domus_peer *peers[PEERS];
    char *line = make_line_of_size("slice 0 ", 3000);

    atomic_store(&system->pressure.queue_max, BOUND);
    /* set the bound of each thread, because a thread that sleeps has not followed it */
    for (uint32_t i = 0; i < system->count; i++)
        domi_io_set_bound_of_queued_bytes(&system->threads[i].io, BOUND);
    for (int i = 0; i < PEERS; i++) {
        peers[i] = domt_pipe_connect_peer();
        domt_pipe_peer_send_text(peers[i], "sleep 1000 a\n");
        for (int n = 0; n < 40; n++)
            domt_pipe_peer_send_text(peers[i], line);
    }
    for (int i = 0; i < 50; i++) {
        domt_pipe_pass_time(10 * MS);
        for (uint32_t thread = 0; thread < system->count; thread++)
            ck_assert_uint_le(domi_counter_read(&system->threads[thread].io.queued), BOUND);
    }
    ck_assert_uint_ge(sum_queued_bytes(), BOUND / 4);
    for (int i = 0; i < PEERS; i++) {
        domt_pipe_peer_expect_text(peers[i], "a\n");
        for (int n = 0; n < 40; n++)
            domt_pipe_peer_expect_text(peers[i], line + strlen("slice 0 "));
    }
    free(line);
    for (int i = 0; i < PEERS; i++)
        domus_peer_close(peers[i]);
    domt_pipe_end_kit();
}

/* Let 128 requests be with actors when the peer stops reading. When the answers come, all requests
 * that were read are still answered. */
static void check_flood_is_answered_behind_full_peer(const char *how)
{
    domus_config config = domt_pipe_default_config();
    config.channel.requests_max = 128;
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    config.channel.send_max_bytes = 20000;
    domus_peer *peer = domt_pipe_begin_kit(&config, &domt_pipe_framed, 1);
    char *line = make_line_of_size(how, 3000);

    domus_peer_pause(peer);
    for (int i = 0; i < 200; i++)
        domt_pipe_peer_send_text(peer, line);
    domt_pipe_pass_time(SECOND);
    domus_peer_resume(peer);
    for (int i = 0; i < 200; i++)
        domt_pipe_peer_expect_text(peer, line + strlen(how));
    free(line);
    domt_pipe_finish_peer_and_end_kit(peer);
}

DOMT_TEST(a_slow_reader_gets_the_answers_of_others)
{
    check_flood_is_answered_behind_full_peer("ffar 5 ");
    check_flood_is_answered_behind_full_peer("sleep 5 ");
    check_flood_is_answered_behind_full_peer("far 5 ");
    check_flood_is_answered_behind_full_peer("keep 5 ");
}

DOMT_TEST(a_slow_reader_gets_the_answers_behind_the_first)
{
    domus_config config = domt_pipe_default_config();
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    config.channel.send_max_bytes = 20000;
    domus_peer *peer = domt_pipe_begin_kit(&config, &domt_pipe_framed, 1);
    char *line = make_line_of_size("ffar 0 ", 3000);

    domt_pipe_peer_send_text(peer, "sleep 100 a\n");
    for (int i = 0; i < 60; i++)
        domt_pipe_peer_send_text(peer, line);
    domus_peer_pause(peer);
    domt_pipe_pass_time(SECOND);
    domus_peer_resume(peer);
    domt_pipe_peer_expect_text(peer, "a\n");
    for (int i = 0; i < 60; i++)
        domt_pipe_peer_expect_text(peer, line + strlen("ffar 0 "));
    free(line);
    domt_pipe_close_peer_and_end_kit(peer);
}

DOMT_TEST(large_answers_made_in_each_way_come_whole)
{
    static const char *const hows[] = {"now 0 ",  "slice 0 ", "sleep 3 ", "far 1 ",  "ffar 1 ",
                                       "keep 2 ", "kffar 2 ", "take 0 ",  "!kfwd 1 "};
    static const size_t sizes[] = {190, 255, 256, 257, 2047, 2048, 4096, 30000, 65500};
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

    for (size_t size = 0; size < sizeof sizes / sizeof sizes[0]; size++) {
        for (size_t i = 0; i < sizeof hows / sizeof hows[0]; i++) {
            char *line = make_line_of_size(hows[i], sizes[size]);
            domt_pipe_peer_send_text(peer, line);
            free(line);
        }
        for (size_t i = 0; i < sizeof hows / sizeof hows[0]; i++) {
            char *line = make_line_of_size("", sizes[size]);
            domt_pipe_peer_expect_text(peer, line);
            free(line);
        }
    }
    char *line = make_line_of_size("now 0 ", 65536);
    domt_pipe_peer_send_text(peer, line);
    free(line);
    domt_pipe_peer_expect_text(peer, "wrong EMSGSIZE\n");
    domt_pipe_expect_end_and_end_kit(peer);
}

/* --- memory ----------------------------------------------------------------------------------- */

static const char some_of_all[] =
    "now 0 a\nslice 0 b\nsleep 1 c\nffar 1 d\nfar 1 e\nkeep 1 f\nkffar 1 g\n!now 0 h\n%note\n"
    "odd 0 i\nline 0 j\nnone 0 k\nkfwd 0 l\ntake 0 m\n&fnear 0 n\n!far 0 o\nnow 0 p\n$x\n";

/* Each allocation fails in turn: the channel answers in order or is reset, and nothing is left. The
 * requests come in `pieces` pieces, with a long one first if `is_long` is true. */
static void check_each_failing_allocation(uint32_t pieces, bool is_long)
{
    char *line = make_line_of_size("far 0 ", 5000);
    uint32_t failed = 0;

    for (int64_t count = 0;; count++) {
        domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);
        size_t size;

        domt_pipe_run_kit();
        for (uint32_t i = 0; i < pieces; i++) {
            size_t all = sizeof some_of_all - 1;
            size_t from = all * i / pieces, to = all * (i + 1) / pieces;
            if (is_long && i == 0)
                domt_pipe_peer_send_text(peer, line);
            /* this send may fail, because the connection may have been reset */
            (void)domus_peer_send(peer, some_of_all + from, to - from);
            if (i == 0)
                domi_memory_fail_allocation_after(count, 0);
            domt_pipe_run_kit();
        }
        domt_pipe_pass_time(10 * MS);
        domi_memory_fail_allocation_after(-1, 0);
        domt_pipe_pass_time(10 * SECOND);
        const char *got = domus_peer_got(peer, &size);
        bool is_whole = size > 14 && memcmp(got + size - 13, "wrong EPROTO\n", 13) == 0;
        bool has_failed = memmem(got, size, "ENOMEM", 6) != NULL || domt_pipes_now.close_error != 0;
        bool has_lost =
            /* the simulated network itself has lost something for lack of memory */
            domt_pipe_kit->net->is_out_of_memory;
        ck_assert_msg(has_lost || is_whole || has_failed || domus_peer_error(peer) != 0,
                      "allocation %d: %.*s", (int)count, (int)size, got);
        ck_assert_msg(has_lost || domus_peer_has_end(peer) || domus_peer_error(peer) != 0,
                      "allocation %d: %.*s", (int)count, (int)size, got);
        failed += !has_lost && (!is_whole || has_failed);
        domt_pipe_end_kit();
        if (is_whole && !has_failed && !has_lost && count > 150)
            break;
    }
    free(line);
    ck_assert_uint_gt(failed, 5);
}

DOMT_TEST(pipelines_survive_failed_allocations)
{
    check_each_failing_allocation(1, false);
    check_each_failing_allocation(1, true);
}

DOMT_TEST(slow_requests_survive_failed_allocations)
{
    check_each_failing_allocation(DOMT_SCALE(70, 20), false);
}

DOMT_SUITE(120)
