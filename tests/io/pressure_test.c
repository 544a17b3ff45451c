/* While memory is short channels read on, one piece at a time when it is critical; accepting pauses
 * (acceptor_test.c holds that). */
#include "base/memory.h"
#include "io/channels/state.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <unistd.h>

static int fd, peer;

/* `idle_ms` 0: no idle time-out. */
static void begin_with(domt_bed_mode mode, uint64_t idle_ms)
{
    bed->config.channel.idle_timeout_ns = idle_ms * DOMT_BED_MS;
    bed->mode = mode;
    domt_bed_begin(&fd, &peer);
    domt_bed_noted("A+ ");
}

static void begin(domt_bed_mode mode)
{
    begin_with(mode, 0);
}

static const domt_op *receive(void)
{
    return domt_fake_find(bed->fake, DOMT_RECEIVE, fd);
}

/* Set the level. A sweep then goes through the channels, twice when the level has ended. */
static void press(domus_memory_level level)
{
    domi_io_set_pressure(&bed->io, &(domi_io_pressure){.pauses = level != DOMUS_MEMORY_NORMAL,
                                                       .spares = level == DOMUS_MEMORY_CRITICAL,
                                                       .queue_max = UINT64_MAX});
    for (int i = 0; i < 10; i++) {
        domt_bed_wait(100);
    }
}

static void feed(char byte)
{
    domt_bed_show(fd, byte, 1);
}

DOMT_TEST(channels_read_on_while_memory_is_short)
{
    begin(DOMT_BED_DROP);
    ck_assert(!receive()->once);
    for (uint64_t i = 1; i <= 3; i++) {
        press(DOMUS_MEMORY_HIGH);
        ck_assert(receive()->once);
        feed('x');
        feed('y');
        domt_bed_noted("A(x) A(y) ");
        ck_assert(receive()->once);
        press(DOMUS_MEMORY_HIGH); /* again: nothing new */
        ck_assert_uint_eq(domi_counter_read(&bed->io.counters.memory_pauses), i);
        press(DOMUS_MEMORY_NORMAL);
        feed('z');
        domt_bed_noted("A(z) ");
        ck_assert(!receive()->once);
    }
    domt_bed_end();
}

DOMT_TEST(while_memory_is_critical_a_channel_reads_one_piece_at_a_time)
{
    begin(DOMT_BED_KEEP);
    press(DOMUS_MEMORY_CRITICAL);
    for (int i = 0; i < 3; i++) {
        ck_assert(receive()->once);
        feed('x');
        domt_bed_noted("A(x) ");
        domt_bed_pass(1000);
        ck_assert_ptr_null(receive()); /* its actor has not done with the last one */
        domt_bed_release(1);
    }
    domt_bed_end();
}

DOMT_TEST(what_comes_before_a_receive_has_ended_is_handled)
{
    begin(DOMT_BED_KEEP);
    domi_io_set_pressure(&bed->io, &(domi_io_pressure){.spares = true, .queue_max = UINT64_MAX});
    feed('x');
    feed('y'); /* its receive was begun before */
    domt_bed_settled("A(x) A(y) ");
    ck_assert_ptr_null(receive());
    domt_bed_release(1);
    ck_assert_ptr_null(receive());
    domt_bed_release(1);
    ck_assert(receive()->once);
    domt_bed_end();
}

DOMT_TEST(when_memory_is_no_longer_critical_all_read_though_they_hold_a_piece)
{
    begin(DOMT_BED_KEEP);
    press(DOMUS_MEMORY_CRITICAL);
    feed('x');
    ck_assert_ptr_null(receive());
    press(DOMUS_MEMORY_NORMAL);
    ck_assert_ptr_nonnull(receive());
    domt_bed_end();
}

DOMT_TEST(a_channel_that_holds_its_share_pauses_whatever_the_level)
{
    begin(DOMT_BED_KEEP);
    for (uint32_t i = 0; i < 6; i++) {
        domt_bed_show(fd, 'x', 10);
    }
    domt_bed_settle();
    ck_assert_ptr_null(receive()); /* the channel holds its share of the buffers */
    press(DOMUS_MEMORY_HIGH);
    press(DOMUS_MEMORY_NORMAL);
    ck_assert_ptr_null(receive());
    domt_bed_release(bed->kept_count);
    ck_assert_ptr_nonnull(receive());
    domt_bed_end();
}

DOMT_TEST(a_channel_that_closes_is_read_to_its_end)
{
    begin(DOMT_BED_DROP);
    press(DOMUS_MEMORY_CRITICAL);
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    domt_bed_turn();
    /* Bytes that stayed unread would turn the close into a reset, so they are read
     * and thrown away. */
    ck_assert_ptr_nonnull(receive());
    domt_bed_ends(fd, 0);
    domt_bed_noted("A-(0) ");
    domt_bed_end();
}

/* The peer of a paused channel may have sent bytes that no one has read, also in the moment in
 * which the channel may go on. */
DOMT_TEST(a_peer_that_nobody_reads_is_not_idle)
{
    begin_with(DOMT_BED_KEEP, 100);
    domi_io_set_pressure(&bed->io, &(domi_io_pressure){.spares = true, .queue_max = UINT64_MAX});
    feed('x');
    domt_bed_settle();
    ck_assert_ptr_null(receive());
    for (int i = 0; i < 35; i++)
        domt_bed_pass(10);
    domt_bed_pass(97);
    ck_assert(domt_bed_is_open(fd));
    domt_bed_release(1);
    domt_bed_wait(50);
    ck_assert(domt_bed_is_open(fd));
    domt_bed_noted("A(x) ");
    domt_bed_wait(200);
    domt_bed_noted("A-(-110) ");
    domt_bed_end();
}

DOMT_TEST(a_drain_reads_while_memory_is_critical)
{
    begin(DOMT_BED_KEEP);
    press(DOMUS_MEMORY_CRITICAL);
    feed('x');
    ck_assert_ptr_null(receive());
    ck_assert_int_eq(write(peer, "abc", 3), 3);
    domi_io_drain(&bed->io);
    domt_bed_settle();
    ck_assert_ptr_nonnull(receive());
    press(DOMUS_MEMORY_CRITICAL); /* no more */
    ck_assert_ptr_nonnull(receive());
    ck_assert(!bed->io.pressure.spares);
    domt_bed_end();
}

/* The piece is copied out because few buffers are free; without memory for the copy it stays
 * in its buffer. */
DOMT_TEST(a_piece_is_not_lost_for_want_of_memory)
{
    begin(DOMT_BED_KEEP);
    uint32_t free = domi_io_buffers_free(&bed->io);
    bed->io.reserve = free + 1;
    feed('x');
    ck_assert_uint_eq(domi_io_buffers_free(&bed->io), free);
    domi_memory_fail_after(0, 1);
    feed('y');
    domi_memory_fail_after(-1, 0);
    ck_assert_uint_eq(domi_io_buffers_free(&bed->io), free - 1);
    domt_bed_noted("A(x) A(y) ");
    domt_bed_end();
}

DOMT_SUITE(20)
