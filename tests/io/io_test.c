/* A thread's io as a whole: what is left when it cannot be made, memory that runs out at any place,
 * the drain and the abort, and the wake poll. */
#include "base/memory.h"
#include "house/dispatch/manage.h"
#include "house/family/life.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The number that the next descriptor gets tells whether one is open that was not. */
static int next_descriptor(void)
{
    int fd = dup(STDIN_FILENO);

    ck_assert_int_ge(fd, 0);
    close(fd);
    return fd;
}

DOMT_TEST(io_that_cannot_be_made_leaves_nothing)
{
    char error[256] = "";
    int next = next_descriptor();

    bed->managers[0] = &bed->manager;
    const domi_manager_options options = {
        .count = 1,
        .managers = bed->managers,
        .config = &bed->config,
        .io_hooks = &domi_hooks_of_io,
        .io = &bed->io,
    };
    ck_assert_int_eq(domi_manager_init(&bed->manager, &options), 0);
    domt_fake_fail(-EPERM, 0);
    ck_assert_int_eq(domi_io_init(&bed->io, &bed->manager, &domt_fake_backend, error, sizeof error),
                     -EPERM);
    ck_assert_str_eq(error, "the fake ring does not open");
    ck_assert_int_eq(next_descriptor(), next);
    domt_fake_fail(0, 0);
    for (int64_t n = 0; n < 2; n++) {
        domi_memory_fail_after(n, 0);
        ck_assert_int_eq(
            domi_io_init(&bed->io, &bed->manager, &domt_fake_backend, error, sizeof error),
            -ENOMEM);
        domi_memory_fail_after(-1, 0);
        ck_assert_ptr_nonnull(strstr(error, "io.buffers"));
        ck_assert_int_eq(next_descriptor(), next);
    }
    domi_manager_fini(&bed->manager);
    ck_assert_int_eq(domt_fake_open_count(), 0);
}

DOMT_TEST(io_that_cannot_start_leaves_nothing)
{
    int next = next_descriptor();

    domt_fake_fail(0, -ENOSYS);
    ck_assert_int_eq(domt_bed_try_start(), -ENOSYS);
    ck_assert_int_eq(next_descriptor(), next);
    ck_assert_int_eq(domt_fake_open_count(), 0);
}

/* A connection that is handed over, is fed more than it may hold, answers, and closes; whatever is
 * refused on the way. Returns 0 when nothing was. */
static int scenario(int64_t passes)
{
    int ours = -1;
    int peer = -1;

    domt_bed_pair(&ours, &peer);
    bed->mode = DOMT_BED_ECHO;
    domi_memory_fail_after(passes, 0);
    int result = domt_bed_try_start();
    if (result != 0) {
        close(ours);
        domt_bed_hang_up(peer);
        domt_bed_init();
        return result;
    }
    result = domt_bed_adopt(bed->actor, ours);
    if (result != 0)
        close(ours);
    domt_bed_turn();
    if (result == 0) {
        for (int i = 0; i < 6; i++)
            (void)domt_fake_bytes(bed->fake, ours, "12345678", 8, true);
        domt_bed_settle();
        for (domt_op *op; (op = domt_fake_find(bed->fake, DOMT_SEND, ours)) != NULL;) {
            domt_fake_sent(bed->fake, ours, op->size < 7 ? (int32_t)op->size : 7);
            domt_bed_settle();
        }
        if (bed->closed == 0)
            ck_assert_uint_eq(bed->io.counters.sent_bytes, 48);
        else
            result = -ENOMEM;
        ck_assert_uint_eq(bed->closed, result == 0 ? 0 : 1);
    }
    domi_memory_fail_after(-1, 0);
    domt_bed_end();
    return result;
}

DOMT_TEST(memory_may_run_out_anywhere)
{
    int next = next_descriptor();
    int64_t n = 0;

    while (n < 1000 && scenario(n) != 0) {
        domi_memory_fail_after(-1, 0);
        ck_assert_int_eq(next_descriptor(), next);
        n++;
    }
    ck_assert_int_lt(n, 1000);
    ck_assert_int_ge(n, 8); /* manager, io, house, channel, slots, copies */
}

DOMT_TEST(a_channel_that_is_gone_before_it_opened_is_never_told)
{
    int ours;
    int peer;

    domt_bed_start();
    domt_bed_pair(&ours, &peer);
    ck_assert_int_eq(domt_bed_adopt(bed->actor, ours), 0);
    ck_assert_uint_eq(domi_io_abort(&bed->io), 1);
    domt_bed_closed(ours);
    domt_bed_noted("");
    ck_assert_uint_eq(bed->io.connections, 0);
    domt_bed_end();
}

DOMT_TEST(an_actor_that_stops_closes_its_channels_first)
{
    int peers[3];
    int fds[3];

    domt_bed_start();
    for (int i = 0; i < 3; i++)
        fds[i] = domt_bed_connect(&peers[i]);
    ck_assert_int_eq(domi_house_stop(&bed->manager, bed->actor), 0);
    domt_bed_settled("A+ B+ C+ ");
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(bed->manager.births.houses, (uint32_t)(4 - i));
        ck_assert_int_eq(domt_bed_peer_sees(peers[i]), 'f');
        domt_bed_ends(fds[i], 0);
    }
    domt_bed_noted("A-(0) B-(0) C-(0) ");
    ck_assert_uint_eq(bed->manager.births.houses, 0);
    domi_manager_end_actors(&bed->manager);
    domi_io_fini(&bed->io);
    domi_manager_fini(&bed->manager);
    for (int i = 0; i < 3; i++)
        domt_bed_hang_up(peers[i]);
}

/* --- the drain -------------------------------------------------------------------------------- */

/* Handed over, opened, and with `waiting` bytes of the peer's in the socket. */
static int drained_channel(uint32_t waiting, int *ret_peer)
{
    char bytes[256] = {0};
    int fd = domt_bed_connect(ret_peer);

    ck_assert_int_eq(send(*ret_peer, bytes, waiting, 0), (ssize_t)waiting);
    return fd;
}

DOMT_TEST(a_drain_answers_what_had_come_and_then_closes)
{
    int peers[3];
    int fds[3];

    bed->mode = DOMT_BED_ECHO;
    domt_bed_start();
    fds[0] = drained_channel(0, &peers[0]);  /* idle */
    fds[1] = drained_channel(10, &peers[1]); /* bytes are in the socket */
    fds[2] = drained_channel(0, &peers[2]);  /* bytes are in a completion */
    domt_bed_bring(fds[2], "late");
    domi_io_drain(&bed->io);
    domi_io_drain(&bed->io);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_peer_sees(peers[0]), 'f');
    ck_assert_int_eq(domt_bed_peer_sees(peers[1]), 'o');
    ck_assert_int_eq(domt_bed_peer_sees(peers[2]), 'o');
    ck_assert_uint_eq(domt_fake_find(bed->fake, DOMT_SEND, fds[2])->size, 4);
    domt_fake_sent(bed->fake, fds[2], 4);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_peer_sees(peers[2]), 'f');
    domt_bed_bring(fds[1], "01234");
    domt_bed_settle();
    domt_fake_sent(bed->fake, fds[1], 5);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_peer_sees(peers[1]), 'o'); /* five more had come */
    domt_bed_bring(fds[1], "56789");
    domt_bed_settle();
    domt_fake_sent(bed->fake, fds[1], 5);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_peer_sees(peers[1]), 'f');
    ck_assert_uint_eq(bed->io.counters.received_bytes, 14);
    ck_assert_uint_eq(bed->io.counters.sent_bytes, 14);
    domt_bed_end();
}

DOMT_TEST(a_connection_that_comes_during_a_drain_is_drained)
{
    int peer;

    domt_bed_start();
    domi_io_drain(&bed->io);
    int fd = domt_bed_connect(&peer);
    ck_assert_int_eq(domt_bed_peer_sees(peer), 'f');
    domt_bed_ends(fd, 0);
    domt_bed_noted("A+ A-(0) ");
    domt_bed_end();
}

DOMT_TEST(an_abort_resets_what_is_left_and_counts_it)
{
    int peers[2];

    domt_bed_start();
    (void)drained_channel(10, &peers[0]);
    (void)drained_channel(10, &peers[1]);
    domi_io_drain(&bed->io);
    domt_bed_settle();
    ck_assert_uint_eq(domi_io_abort(&bed->io), 2);
    ck_assert_uint_eq(domi_io_abort(&bed->io), 0);
    domt_bed_settle();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(domt_bed_peer_sees(peers[i]), 'r');
    }
    ck_assert_uint_eq(bed->io.counters.channels_reset, 2);
    domt_bed_end();
}

/* --- the wake poll ---------------------------------------------------------------------------- */

DOMT_TEST(the_wake_poll_is_armed_again_when_its_last_shot_has_gone)
{
    domt_bed_start();
    domt_op *poll = domt_fake_find(bed->fake, DOMT_POLL, bed->io.wake_fd);
    ck_assert_ptr_nonnull(poll);
    domi_io_arm_wake(&bed->io, false);
    ck_assert_uint_eq(bed->fake->begun[DOMT_POLL], 1);
    domt_fake_complete(bed->fake, poll, 1, DOMI_MORE);
    domt_bed_turn();
    domi_io_arm_wake(&bed->io, false);
    ck_assert_uint_eq(bed->fake->begun[DOMT_POLL], 1);
    domt_fake_complete(bed->fake, poll, 1, 0);
    domt_bed_turn();
    domi_io_arm_wake(&bed->io, false);
    ck_assert_uint_eq(bed->fake->begun[DOMT_POLL], 2);
    domt_bed_end();
}

DOMT_SUITE(20)
