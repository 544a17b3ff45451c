/* A handler that refuses a channel: the channel is reset and counted, and the actor has not failed,
 * whatever strangers send. on_close knows how many bytes a channel that was reset had not sent. */
#include "io/channels/state.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <unistd.h>

static domt_bed bed;
static int fd;
static int peer;

static void note_failure(domi_manager *manager, const domi_house *house, domi_happening what,
                         int error)
{
    bed.failures++;
}

static void begin(void)
{
    domt_bed_init(&bed);
    ck_assert_int_eq(domt_bed_start(&bed), 0);
    bed.manager.hooks.log = note_failure;
}

/* One channel more was refused, with -EPROTO; nothing else has happened. */
static void was_refused(uint32_t count, const char *noted)
{
    domt_bed_settle(&bed);
    domt_bed_noted(&bed, noted);
    ck_assert(!domt_bed_is_open(fd));
    ck_assert_int_eq(domt_bed_peer_sees(peer), 'r');
    close(peer);
    ck_assert_uint_eq(bed.io.counters.channels_refused, count);
    ck_assert_uint_eq(bed.io.counters.channels_reset, count);
    ck_assert_uint_eq(bed.manager.counters.failures, 0);
    ck_assert_uint_eq(bed.failures, 0);
}

DOMT_TEST(a_channel_that_a_handler_refuses_is_reset_and_its_actor_has_not_failed)
{
    begin();
    bed.open_result = -EPROTO;
    fd = domt_bed_connect(&bed, &peer);
    was_refused(1, "A+ A-(-71) ");
    bed.open_result = 0;

    fd = domt_bed_connect(&bed, &peer);
    bed.read_result = -EPROTO;
    domt_bed_feed(&bed, fd, 'x', 3);
    domt_bed_turn(&bed);
    was_refused(2, "B+ B(xxx) B-(-71) ");
    bed.read_result = 0;

    fd = domt_bed_connect(&bed, &peer);
    bed.end_result = -EPROTO;
    domt_fake_receive_ends(bed.fake, fd, 0);
    domt_bed_turn(&bed);
    was_refused(3, "C+ C. C-(-71) ");

    domt_bed_end(&bed);
}

DOMT_TEST(on_close_knows_what_was_not_sent)
{
    begin();
    bed.mode = DOMT_BED_ECHO;
    fd = domt_bed_connect(&bed, &peer);
    domt_bed_feed(&bed, fd, 'x', 100);
    domt_bed_turn(&bed);
    domt_bed_feed(&bed, fd, 'y', 50);
    domt_bed_turn(&bed);
    ck_assert_uint_eq(domus_channel_queued(bed.channels[0]), 150);
    domt_fake_sent(bed.fake, fd, 30);
    domt_bed_turn(&bed);
    ck_assert_uint_eq(domus_channel_queued(bed.channels[0]), 120);
    domi_channel_end(bed.channels[0], -EPROTO, true); /* a send is in flight until it ends */
    ck_assert_uint_eq(domus_channel_queued(bed.channels[0]), 120);
    domt_bed_settle(&bed);
    ck_assert_uint_eq(bed.closed, 1);
    ck_assert_uint_eq(bed.unsent_bytes, 120);
    close(peer);

    fd = domt_bed_connect(&bed, &peer); /* one that has sent all knows of nothing */
    domt_bed_feed(&bed, fd, 'x', 10);
    domt_bed_turn(&bed);
    domt_fake_sent(bed.fake, fd, 10);
    domt_bed_turn(&bed);
    domi_channel_end(bed.channels[1], -EPROTO, true);
    domt_bed_settle(&bed);
    ck_assert_uint_eq(bed.closed, 2);
    ck_assert_uint_eq(bed.unsent_bytes, 0);
    close(peer);
    domt_bed_end(&bed);
}

DOMT_SUITE(20)
