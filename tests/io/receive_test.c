/* io/channels/receive.c: when a receive is armed, how channels wait for buffers, and
 * back-pressure. */
#include "io/channels/state.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CROWD 40

static int fd, peer;

static void begin_channel_in_mode(domt_bed_mode mode)
{
    bed->mode = mode;
    domt_bed_start_with_connection(&fd, &peer);
    domt_bed_expect_calls("A+ ");
}

static bool is_descriptor_receiving(int descriptor)
{
    return domt_fake_find_operation(bed->fake, DOMT_RECEIVE, descriptor) != NULL;
}

static bool is_any_cancel_in_flight(void)
{
    return domt_fake_find_operation(bed->fake, DOMT_CANCEL, -1) != NULL;
}

static void bring_pieces_turn_by_turn(uint32_t count, uint32_t size)
{
    for (uint32_t i = 0; i < count; i++) {
        domt_bed_bring_bytes_and_turn(fd, 'x', size);
    }
}

/* An overflow of the completion queue ends a multishot receive with valid data and without the flag
 * MORE: the data count, and only MORE says whether the receive has to be armed again. */
DOMT_TEST(receive_is_armed_again_by_the_flag_more_not_by_the_result)
{
    static const int no_end[] = {-EINTR, -EAGAIN, -ECANCELED};

    begin_channel_in_mode(DOMT_BED_DROP);
    ck_assert_uint_eq(bed->fake->begun[DOMT_RECEIVE], 1);
    domt_bed_bring_text(fd, "one");
    domt_bed_take_turn();
    ck_assert_uint_eq(bed->fake->begun[DOMT_RECEIVE], 1);
    ck_assert(domt_fake_complete_receive(bed->fake, fd, "two", 3, false));
    domt_bed_take_turn();
    ck_assert_uint_eq(bed->fake->begun[DOMT_RECEIVE], 2);
    domt_bed_expect_calls("A(one) A(two) ");
    for (uint32_t i = 0; i < sizeof no_end / sizeof no_end[0]; i++) {
        domt_fake_end_receive(bed->fake, fd, no_end[i]);
        domt_bed_take_turn();
        ck_assert_uint_eq(bed->fake->begun[DOMT_RECEIVE], 3 + i);
    }
    domt_bed_expect_calls("");
    domt_bed_end();
}

DOMT_TEST(receive_is_not_armed_again_after_the_peers_end)
{
    bed->ignore_end = true; /* on_end keeps the channel half open */
    begin_channel_in_mode(DOMT_BED_DROP);
    domt_fake_end_receive(bed->fake, fd, 0);
    domt_bed_take_turn();
    domt_bed_take_turn();
    ck_assert_uint_eq(bed->fake->begun[DOMT_RECEIVE], 1);
    domt_bed_expect_calls("A. ");
    domt_bed_end();
}

/* The test only sets the number of used buffers, as if other channels had them. */
DOMT_TEST(the_starved_are_fed_in_order_when_buffers_return)
{
    int fds[3], peers[3];

    begin_channel_in_mode(DOMT_BED_DROP);
    for (int i = 0; i < 3; i++)
        fds[i] = domt_bed_connect_to_own_actor(&peers[i]);
    bed->io.buffers_used = bed->io.config->io.buffers.count;
    for (int i = 0; i < 3; i++)
        domt_fake_end_receive(bed->fake, fds[(i + 1) % 3], -ENOBUFS);
    domt_bed_take_turn();
    for (int i = 0; i < 3; i++)
        /* an armed receive would fail again at once, for ever */
        ck_assert(!is_descriptor_receiving(fds[i]));
    ck_assert_uint_eq(bed->io.counters.receivers_starved, 3);
    ck_assert(!domi_io_has_work_before_park(
        &bed->io)); /* the thread may sleep until a buffer comes back */
    for (uint32_t i = 0; i < 3; i++) {
        bed->io.buffers_used = bed->config.io.buffers.count - UINT64_C(1);
        ck_assert(domi_io_has_work_before_park(&bed->io));
        domt_bed_take_turn();
        bed->io.buffers_used = bed->io.config->io.buffers.count;
        ck_assert_uint_eq(bed->fake->begun[DOMT_RECEIVE], 4 + 1 + i);
        ck_assert(is_descriptor_receiving(fds[(i + 1) % 3]));
    }
    ck_assert(!domi_io_has_work_before_park(&bed->io));
    bed->io.buffers_used = 0;
    domt_bed_end();
}

DOMT_TEST(running_out_of_receive_buffers_loses_no_bytes)
{
    char bytes[64 + 1];

    begin_channel_in_mode(DOMT_BED_KEEP);
    for (int i = 0; i < 64; i++) {
        bytes[i] = (char)('A' + i);
        ck_assert(domt_fake_complete_receive(bed->fake, fd, &bytes[i], 1, true));
    }
    ck_assert(!domt_fake_complete_receive(bed->fake, fd, "!", 1, true));
    domt_bed_settle();
    ck_assert_uint_eq(bed->kept_count, 64);
    for (uint32_t i = 0; i < 64; i++)
        ck_assert(*(char *)domus_buffer_data(bed->kept[i]) == bytes[i]);
    /* the channel holds its share of four buffers; the other pieces were copied out */
    ck_assert_uint_eq(domi_io_count_free_buffers(&bed->io), 60);
    ck_assert(!is_descriptor_receiving(fd));
    domt_bed_free_kept_buffers(62);
    domt_bed_settle();
    ck_assert(is_descriptor_receiving(fd));
    domt_bed_end();
}

/* The share of a channel is 4 of the 64 buffers. */
DOMT_TEST(a_channel_that_holds_its_share_stops_reading)
{
    begin_channel_in_mode(DOMT_BED_KEEP);
    bring_pieces_turn_by_turn(3, 100);
    ck_assert(!is_any_cancel_in_flight());
    bring_pieces_turn_by_turn(1, 100);
    ck_assert(is_any_cancel_in_flight());
    /* the kernel had these pieces already: they are copied out, in order */
    bring_pieces_turn_by_turn(2, 100);
    ck_assert_uint_eq(bed->fake->begun[DOMT_CANCEL], 1);
    ck_assert_uint_eq(bed->kept_count, 6);
    ck_assert_uint_eq(domi_io_count_free_buffers(&bed->io), 60);
    domt_bed_settle();
    ck_assert(!is_descriptor_receiving(fd));
    domt_bed_free_kept_buffers(3);
    domt_bed_take_turn();
    /* the channel holds three buffers, more than half of its share */
    ck_assert(!is_descriptor_receiving(fd));
    domt_bed_free_kept_buffers(1);
    domt_bed_take_turn();
    ck_assert(is_descriptor_receiving(fd));
    ck_assert_uint_eq(bed->read_bytes, 600);
    domt_bed_end();
}

/* The bytes that a crowded channel holds may be all that its actor has not seen yet. */
DOMT_TEST(bytes_that_a_crowded_channel_holds_reach_the_actor)
{
    /* few buffers, so that the share of a channel is one buffer */
    bed->config.io.buffers.count = 16;
    begin_channel_in_mode(DOMT_BED_DROP);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++)
            domt_bed_bring_text(fd, "x");
        domt_bed_settle_and_expect_calls("A(x) A(x) A(x) ");
        ck_assert(is_descriptor_receiving(fd));
    }
    domt_bed_end();
}

/* Each channel is within its share, but all channels together would hold all buffers. */
DOMT_TEST(a_crowd_that_holds_its_shares_starves_nobody)
{
    int fds[CROWD];
    int peers[CROWD];

    begin_channel_in_mode(DOMT_BED_KEEP);
    for (int i = 0; i < CROWD; i++)
        fds[i] = domt_bed_connect_to_own_actor(&peers[i]);
    for (int i = 0; i < CROWD; i++) {
        for (int piece = 0; piece < 4; piece++)
            domt_bed_bring_bytes_and_turn(fds[i], 'x', 100);
    }
    domt_bed_settle();
    ck_assert_uint_eq(bed->kept_count, 4 * CROWD);
    ck_assert_uint_ge(domi_io_count_free_buffers(&bed->io), 64 / 4 - 1);
    ck_assert_uint_eq(bed->io.counters.receivers_starved, 0);
    /* the channel holds copies up to its share, so it does not read */
    for (int i = 0; i < CROWD; i++)
        ck_assert(!is_descriptor_receiving(fds[i]));
    bed->mode = DOMT_BED_DROP;
    bring_pieces_turn_by_turn(100, 200);
    ck_assert_uint_eq(bed->read_bytes, 400 * CROWD + 20000);
    domt_bed_end();
}

DOMT_TEST(a_full_send_queue_stops_reading_until_it_is_low)
{
    bed->config.channel.send_high_bytes = 250;
    bed->config.channel.send_low_bytes = 100;
    begin_channel_in_mode(DOMT_BED_ECHO);
    bring_pieces_turn_by_turn(2, 100);
    ck_assert(!is_any_cancel_in_flight());
    bring_pieces_turn_by_turn(1, 100);
    ck_assert(is_any_cancel_in_flight());
    ck_assert_uint_eq(bed->read_bytes, 300);
    /* this piece was under way; the actor is not shown it, because it would write still more */
    bring_pieces_turn_by_turn(1, 100);
    domt_bed_settle();
    ck_assert_uint_eq(bed->read_bytes, 300);
    ck_assert(!is_descriptor_receiving(fd));
    domt_bed_complete_send(fd, 100);
    ck_assert(!is_descriptor_receiving(fd)); /* 200 bytes wait to be sent, above the low mark */
    domt_bed_complete_send(fd, 100);
    /* only 100 bytes wait to be sent, so the piece that had waited is shown, and the channel reads
     * again */
    ck_assert(is_descriptor_receiving(fd));
    ck_assert_uint_eq(bed->read_bytes, 400);
    ck_assert_uint_eq(domus_channel_queued(bed->channels[0]), 200);
    domt_bed_end();
}

/* If no received bytes wait for the actor, the mark of the send queue alone decides whether the
 * channel reads. */
DOMT_TEST(a_channel_that_stopped_reading_goes_on_at_the_low_mark_and_not_before)
{
    bed->config.channel.send_high_bytes = 250;
    bed->config.channel.send_low_bytes = 100;
    begin_channel_in_mode(DOMT_BED_ECHO);
    bring_pieces_turn_by_turn(3, 100);
    domt_bed_settle();
    for (uint32_t left = 300; left > 100; left -= 10) {
        ck_assert_uint_eq(domus_channel_queued(bed->channels[0]), left);
        ck_assert(!is_descriptor_receiving(fd));
        domt_bed_complete_send(fd, 10);
    }
    ck_assert_uint_eq(domus_channel_queued(bed->channels[0]), 100);
    ck_assert(is_descriptor_receiving(fd));
    domt_bed_end();
}

/* A channel is both blocked (its send queue is full) and crowded, and the pieces that make it
 * crowded are still unread: the block must end first. */
DOMT_TEST(blocked_and_crowded_channels_go_on)
{
    bed->config.channel.send_high_bytes = 250;
    bed->config.channel.send_low_bytes = 100;
    begin_channel_in_mode(DOMT_BED_ECHO);
    for (int i = 0; i < 30; i++)
        domt_bed_bring_bytes(fd, 'x', 100);
    domt_bed_settle();
    ck_assert_uint_eq(bed->read_bytes, 300);
    for (int i = 0; i < 100 && domt_fake_find_operation(bed->fake, DOMT_SEND, fd) != NULL; i++) {
        ck_assert_uint_le(domus_channel_queued(bed->channels[0]), 350);
        domt_fake_complete_send(bed->fake, fd, 100);
        domt_bed_settle();
    }
    ck_assert_uint_eq(bed->io.counters.sent_bytes, 3000);
    ck_assert(is_descriptor_receiving(fd));
    domt_bed_end();
}

/* A cancel of a receive may come too late: the bytes that this receive still brings are data. */
DOMT_TEST(bytes_that_a_cancelled_receive_brings_are_kept)
{
    begin_channel_in_mode(DOMT_BED_KEEP);
    bring_pieces_turn_by_turn(4, 100);
    ck_assert(is_any_cancel_in_flight());
    domt_fake_complete_operation(bed->fake, domt_fake_find_operation(bed->fake, DOMT_CANCEL, -1),
                                 -ENOENT, 0);
    ck_assert(domt_fake_complete_receive(bed->fake, fd, "late", 4, false));
    domt_bed_take_turn();
    ck_assert_uint_eq(bed->kept_count, 5);
    ck_assert_int_eq(memcmp(domus_buffer_data(bed->kept[4]), "late", 4), 0);
    ck_assert(!is_descriptor_receiving(fd));
    domt_bed_free_kept_buffers(5);
    domt_bed_take_turn();
    ck_assert(is_descriptor_receiving(fd));
    domt_bed_end();
}

/* The actor still has a buffer of the first channel when the second channel is in the first one's
 * slot. */
DOMT_TEST(buffer_of_a_channel_that_has_ended_is_not_held_by_the_next_in_its_slot)
{
    begin_channel_in_mode(DOMT_BED_KEEP);
    bring_pieces_turn_by_turn(1, 100);
    uint32_t slot = bed->channels[0]->slot;
    domi_channel_end_at_once(bed->channels[0], -ECONNRESET, true);
    domt_bed_settle();
    ck_assert_uint_eq(bed->closed, 1);
    fd = domt_bed_connect_to_own_actor(&peer);
    ck_assert_uint_eq(bed->channels[1]->slot, slot);
    bring_pieces_turn_by_turn(1, 100);
    ck_assert_uint_eq(bed->channels[1]->held, 1);
    domt_bed_free_kept_buffers(1);
    ck_assert_uint_eq(bed->channels[1]->held, 1);
    domt_bed_free_kept_buffers(1);
    ck_assert_uint_eq(bed->channels[1]->held, 0);
    domt_bed_end();
}

DOMT_TEST(after_a_close_bytes_are_read_and_thrown_away)
{
    bed->close_on_read = true;
    begin_channel_in_mode(DOMT_BED_DROP);
    domt_bed_bring_text(fd, "bye");
    domt_bed_bring_text(fd, "unread");
    domt_bed_take_turn();
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'f');
    bring_pieces_turn_by_turn(100, 256); /* more pieces than there are buffers */
    domt_bed_expect_calls("A(bye) ");
    ck_assert_uint_eq(domi_io_count_free_buffers(&bed->io), 64);
    ck_assert_uint_eq(bed->read_bytes, 3);
    domt_bed_end_receive(fd, 0);
    domt_bed_expect_calls("A-(0) ");
    domt_bed_end();
}

DOMT_TEST(a_buffer_that_came_without_bytes_is_given_back)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    domt_op *op = domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fd);
    uint64_t data = op->user_data;
    ck_assert(domt_fake_complete_receive(bed->fake, fd, "x", 1, false));
    bed->fake->completions[bed->fake->completions_head].result = 0;
    ck_assert_uint_eq(bed->fake->completions[bed->fake->completions_head].user_data, data);
    domt_bed_settle_and_expect_calls("A. A-(0) ");
    ck_assert_uint_eq(domi_io_count_free_buffers(&bed->io), 64);
    domt_bed_end();
}

/* Several pieces for several channels come in reaps of few completions: the order within each
 * channel is kept. */
DOMT_TEST(few_completions_per_poll_keep_the_order)
{
    int other_peer;

    bed->config.io.completions_per_poll = 3;
    begin_channel_in_mode(DOMT_BED_DROP);
    int other = domt_bed_connect_to_own_actor(&other_peer);
    for (int i = 0; i < 4; i++) {
        char byte = (char)('0' + i);
        ck_assert(domt_fake_complete_receive(bed->fake, fd, &byte, 1, true));
        ck_assert(domt_fake_complete_receive(bed->fake, other, &byte, 1, true));
    }
    ck_assert_uint_eq(domi_io_reap_completions(&bed->io), 3);
    ck_assert(domi_io_has_work_before_park(&bed->io));
    domt_bed_settle();
    ck_assert(!domi_io_has_work_before_park(&bed->io));
    domt_bed_expect_calls("B+ A(0) A(1) A(2) B(0) B(1) B(2) A(3) B(3) ");
    domt_bed_end();
}

/* A thread has memory for one batch of completions, however many a poll may handle. */
DOMT_TEST(no_reap_is_larger_than_a_batch)
{
    enum { LIMIT = DOMI_COMPLETIONS_BATCH + 36, COUNT = 2 * LIMIT - 50 };

    bed->config.io.completions_per_poll = LIMIT;
    bed->config.io.buffers.count = 256;
    begin_channel_in_mode(DOMT_BED_DROP);
    for (int i = 0; i < COUNT; i++)
        domt_bed_bring_text(fd, "x");
    ck_assert_uint_eq(domi_io_reap_completions(&bed->io), LIMIT);
    ck_assert_uint_eq(bed->fake->reaped_max, DOMI_COMPLETIONS_BATCH);
    ck_assert_uint_eq(domi_io_reap_completions(&bed->io), COUNT - LIMIT);
    domt_bed_settle();
    ck_assert_uint_eq(bed->read_bytes, COUNT);
    domt_bed_end();
}

/* After 2^24 channels in a slot, its generation ends with the same bits again. */
DOMT_TEST(buffer_of_a_channel_that_is_gone_is_no_other_channels)
{
    int next_peer;

    begin_channel_in_mode(DOMT_BED_KEEP);
    bring_pieces_turn_by_turn(2, 1);
    ck_assert_uint_eq(bed->kept_count, 2);
    uint32_t slot = bed->channels[0]->slot;
    uint32_t generation = bed->channels[0]->slot_generation;
    domi_channel_end_at_once(bed->channels[0], -EPROTO, true);
    domt_bed_settle();
    bed->io.slots[slot].generation = generation + DOMI_OP_GENERATION_MASK + 1;
    int next = domt_bed_connect_to_own_actor(&next_peer);
    ck_assert_uint_eq(bed->channels[1]->slot, slot);
    domt_bed_bring_bytes_and_turn(next, 'x', 1);
    ck_assert_uint_eq(bed->channels[1]->held, 1);
    domt_bed_free_kept_buffers(2); /* frees the buffers that the ended channel's actor still has */
    ck_assert_uint_eq(bed->channels[1]->held, 1);
    domt_bed_free_kept_buffers(1);
    ck_assert_uint_eq(bed->channels[1]->held, 0);
    domt_bed_end();
}

DOMT_SUITE(20)
