/* While memory is short no open channel reads; what must be read is, and what came is handled. */
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <unistd.h>

static domt_bed bed;
static int fd;
static int peer;

static void begin(domt_bed_mode mode)
{
    domt_bed_init(&bed);
    bed.mode = mode;
    ck_assert_int_eq(domt_bed_start(&bed), 0);
    fd = domt_bed_connect(&bed, &peer);
    domt_bed_noted(&bed, "A+ ");
}

static void end(void)
{
    domt_bed_end(&bed);
    close(peer);
}

static bool receives(void)
{
    return domt_fake_find(bed.fake, DOMT_RECEIVE, fd) != NULL;
}

static void press(bool pressed)
{
    domi_io_press(&bed.io, pressed);
    domt_bed_settle(&bed);
}

START_TEST(a_channel_stops_reading_and_reads_again)
{
    begin(DOMT_BED_DROP);
    for (uint64_t i = 1; i <= 3; i++) {
        press(true);
        ck_assert(!receives());
        domt_bed_pass(&bed, 100);
        ck_assert(!receives());
        press(true); /* again: nothing new */
        ck_assert_uint_eq(domi_counter_read(&bed.io.counters.pressed), i);
        press(false);
        ck_assert(receives());
    }
    domt_bed_feed(&bed, fd, 'x', 1);
    domt_bed_turn(&bed);
    domt_bed_noted(&bed, "A(x) ");
    end();
}
END_TEST

START_TEST(what_comes_before_the_receive_has_ended_is_handled)
{
    begin(DOMT_BED_ECHO);
    domi_io_press(&bed.io, true);
    domt_bed_feed(&bed, fd, 'x', 1);
    domt_bed_turn(&bed);
    domt_bed_noted(&bed, "A(x) ");
    domt_fake_sent(bed.fake, fd, 1); /* and answered: that frees memory */
    domt_bed_settle(&bed);
    ck_assert(!receives());
    press(false);
    ck_assert(receives());
    end();
}
END_TEST

START_TEST(other_reasons_to_pause_stay)
{
    begin(DOMT_BED_KEEP);
    for (uint32_t i = 0; i < 6; i++) {
        domt_bed_feed(&bed, fd, 'x', 10);
        domt_bed_turn(&bed);
    }
    domt_bed_settle(&bed);
    ck_assert(!receives()); /* it holds its share */
    press(true);
    press(false);
    ck_assert(!receives());
    press(true);
    domt_bed_release(&bed, bed.kept_count);
    domt_bed_settle(&bed);
    ck_assert(!receives());
    press(false);
    ck_assert(receives());
    end();
}
END_TEST

START_TEST(who_connects_meanwhile_is_not_read_before)
{
    begin(DOMT_BED_DROP);
    press(true);
    int other_peer;
    int other = domt_bed_connect(&bed, &other_peer);
    domt_bed_settle(&bed);
    domt_bed_noted(&bed, "B+ ");
    press(false);
    ck_assert_ptr_nonnull(domt_fake_find(bed.fake, DOMT_RECEIVE, other));
    ck_assert(receives());
    end();
    close(other_peer);
}
END_TEST

START_TEST(a_channel_that_closes_is_read_to_its_end)
{
    begin(DOMT_BED_DROP);
    press(true);
    ck_assert_int_eq(domus_channel_close(bed.channels[0]), 0);
    domt_bed_turn(&bed);
    ck_assert(receives()); /* and thrown away: else the peer's bytes would make a reset of it */
    domt_fake_receive_ends(bed.fake, fd, 0);
    domt_bed_settle(&bed);
    domt_bed_noted(&bed, "A-(0) ");
    end();
}
END_TEST

/* It may have sent what nobody has read. */
START_TEST(whom_nobody_reads_is_not_idle)
{
    domt_bed_init(&bed);
    bed.config.channel.idle_timeout_ns = 100 * DOMT_BED_MS;
    ck_assert_int_eq(domt_bed_start(&bed), 0);
    fd = domt_bed_connect(&bed, &peer);
    domt_bed_noted(&bed, "A+ ");
    press(true);
    domt_bed_pass(&bed, 350);
    ck_assert(domt_bed_is_open(fd));
    press(false);
    domt_bed_pass(&bed, 50);
    ck_assert(domt_bed_is_open(fd));
    domt_bed_pass(&bed, 200);
    domt_bed_settle(&bed);
    ck_assert(!receives());
    domt_bed_noted(&bed, "A-(-110) ");
    end();
}
END_TEST

/* Nor is he in the moment in which he may go on. */
START_TEST(whom_nobody_read_until_now_is_not_idle)
{
    domt_bed_init(&bed);
    bed.config.channel.idle_timeout_ns = 100 * DOMT_BED_MS;
    ck_assert_int_eq(domt_bed_start(&bed), 0);
    fd = domt_bed_connect(&bed, &peer);
    press(true);
    domt_bed_pass(&bed, 97);
    press(false);
    domt_bed_pass(&bed, 50);
    domt_bed_settle(&bed);
    ck_assert(domt_bed_is_open(fd));
    domt_bed_noted(&bed, "A+ ");
    end();
}
END_TEST

START_TEST(a_drain_reads)
{
    begin(DOMT_BED_DROP);
    press(true);
    ck_assert_int_eq(write(peer, "abc", 3), 3);
    domi_io_drain(&bed.io);
    domt_bed_settle(&bed);
    ck_assert(receives());
    press(true); /* no more */
    ck_assert(receives());
    end();
}
END_TEST

DOMT_MAIN("pressure", 20, a_channel_stops_reading_and_reads_again,
          what_comes_before_the_receive_has_ended_is_handled, other_reasons_to_pause_stay,
          who_connects_meanwhile_is_not_read_before, a_channel_that_closes_is_read_to_its_end,
          whom_nobody_reads_is_not_idle, whom_nobody_read_until_now_is_not_idle, a_drain_reads)
