/* The bound of the bytes that a thread has queued for peers, and how much of it each channel may
 * use. */
#include "io/channels/crowd.h"

#include "io/channels/ready.h"
#include "io/channels/receive.h"
#include "io/channels/send.h"
#include "io/channels/state.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <unistd.h>

#define CHANNELS 40
#define BOUND    (UINT64_C(1) << 18)

static int fds[CHANNELS];
static uint32_t count;

static void connect_channel(void)
{
    fds[count] = domt_bed_connect_to_own_actor(NULL);
    count++;
}

static void begin_channels_with_queue_bound(uint32_t channels, uint64_t queue_max)
{
    bed->mode = DOMT_BED_DROP;
    bed->config.channel.send_high_bytes = bed->config.channel.send_low_bytes = 1 << 20;
    domt_bed_start();
    domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = queue_max});
    for (count = 0; count < channels;)
        connect_channel();
    domt_bed_settle();
    bed->note_length = 0;
}

static int write_to_channel(uint32_t i, uint32_t size)
{
    int result = domt_bed_write_bytes(bed->channels[i], 'x', size);

    domt_bed_settle();
    return result;
}

/* Queue bytes on the first channel, until the thread has at least `bytes` queued. */
static void fill_first_channel(uint64_t bytes)
{
    uint64_t queue_max = bed->io.pressure.queue_max;

    /* the bound is lifted for a moment, so that no write is refused */
    bed->io.pressure.queue_max = UINT64_MAX;
    while (domi_io_count_queued_bytes(&bed->io) < bytes)
        ck_assert_int_eq(write_to_channel(0, 500), 0);
    bed->io.pressure.queue_max = queue_max;
    domi_channel_decide_whether_to_receive(bed->channels[0]);
}

static bool is_channel_crowded(uint32_t i)
{
    return bed->channels[i]->crowded;
}

/* Returns whether channel `i` reads. A receive may have been begun before: its bytes wait. */
static bool is_channel_reading(uint32_t i)
{
    domt_bed_settle();
    return domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fds[i]) != NULL &&
           !is_channel_crowded(i);
}

/* Let the peer of channel `i` take all bytes that are queued for it. */
static void let_peer_take_all(uint32_t i)
{
    while (domus_channel_queued(bed->channels[i]) != 0) {
        domt_bed_take_turn();
        const domt_op *send = domt_fake_find_operation(bed->fake, DOMT_SEND, fds[i]);
        int32_t size = 0;
        if (send->message == NULL)
            size = (int32_t)send->size;
        else
            for (size_t k = 0; k < send->message->msg_iovlen; k++)
                size += (int32_t)send->message->msg_iov[k].iov_len;
        domt_fake_complete_send(bed->fake, fds[i], size);
        domt_bed_settle();
    }
}

DOMT_TEST(part_of_a_channel_is_an_eighth_of_what_is_free_of_one_half)
{
    ck_assert_uint_eq(domi_bound_part_of_one_channel(0, 0), 0);
    ck_assert_uint_eq(domi_bound_part_of_one_channel(1600, 0), 100);
    ck_assert_uint_eq(domi_bound_part_of_one_channel(1600, 400), 50);
    ck_assert_uint_eq(domi_bound_part_of_one_channel(1600, 792), 1);
    ck_assert_uint_eq(domi_bound_part_of_one_channel(1600, 793), 0);
    ck_assert_uint_eq(domi_bound_part_of_one_channel(1600, 800), 0);
    ck_assert_uint_eq(domi_bound_part_of_one_channel(1600, 801), 0);
    ck_assert_uint_eq(domi_bound_part_of_one_channel(1600, UINT64_MAX), 0);
    ck_assert_uint_eq(domi_bound_part_of_one_channel(UINT64_MAX, 0), UINT64_MAX / 16);
}

DOMT_TEST(a_first_piece_has_room_up_to_a_sixteenth_below_the_bound)
{
    ck_assert(domi_bound_has_room_for_first_piece(1600, 0, 100));
    ck_assert(domi_bound_has_room_for_first_piece(1600, 1400, 100));
    ck_assert(!domi_bound_has_room_for_first_piece(1600, 1401, 100));
    ck_assert(!domi_bound_has_room_for_first_piece(1600, 1500, 100));
    ck_assert(!domi_bound_has_room_for_first_piece(1600, 1600, 0));
    ck_assert(!domi_bound_has_room_for_first_piece(1600, UINT64_MAX, 100));
    ck_assert(!domi_bound_has_room_for_first_piece(0, 0, 0));
}

DOMT_TEST(above_its_part_a_channel_does_not_read)
{
    begin_channels_with_queue_bound(1, BOUND);
    uint64_t before = 0;
    while (is_channel_reading(0)) {
        before = bed->channels[0]->cost;
        ck_assert_int_eq(write_to_channel(0, 200), 0);
        ck_assert_uint_lt(before, BOUND);
    }
    ck_assert(is_channel_crowded(0));
    ck_assert_uint_le(before + bed->io.piece, domi_bound_part_of_one_channel(BOUND, before));
    uint64_t now = bed->channels[0]->cost;
    ck_assert_uint_gt(now + bed->io.piece, domi_bound_part_of_one_channel(BOUND, now));
    ck_assert_uint_eq(now, domi_io_count_queued_bytes(&bed->io));
    let_peer_take_all(0);
    ck_assert(is_channel_reading(0) && !is_channel_crowded(0));
    domt_bed_end();
}

/* No peer reads, and each channel begins when the channels before it have all that they may
 * have. */
DOMT_TEST(channels_that_come_later_have_less_and_the_last_still_reads)
{
    uint64_t last = UINT64_MAX;

    begin_channels_with_queue_bound(0, BOUND);
    while (count < CHANNELS) {
        connect_channel();
        uint32_t i = count - 1;
        domi_channel_decide_whether_to_receive(bed->channels[i]);
        ck_assert_msg(is_channel_reading(i), "channel %u of them has no room", i);
        while (is_channel_reading(i))
            ck_assert_int_eq(write_to_channel(i, 200), 0);
        ck_assert_uint_le(bed->channels[i]->cost, last);
        last = bed->channels[i]->cost;
    }
    ck_assert_uint_lt(domi_io_count_queued_bytes(&bed->io), BOUND * 3 / 4);
    domt_bed_end();
}

DOMT_TEST(a_crowded_channel_goes_on_a_quarter_below_its_part)
{
    begin_channels_with_queue_bound(1, BOUND);
    while (is_channel_reading(0))
        ck_assert_int_eq(write_to_channel(0, 200), 0);
    const domi_io *io = &bed->io;
    while (!is_channel_reading(0)) {
        ck_assert_uint_gt(bed->channels[0]->cost + io->piece,
                          domi_io_part_of_one_channel(io) - domi_io_part_of_one_channel(io) / 4);
        domt_fake_complete_send(bed->fake, fds[0], 200);
        domt_bed_settle();
    }
    ck_assert_uint_le(bed->channels[0]->cost + io->piece,
                      domi_io_part_of_one_channel(io) - domi_io_part_of_one_channel(io) / 4);
    ck_assert_uint_gt(bed->channels[0]->cost, 0);
    domt_bed_end();
}

DOMT_TEST(a_crowded_channel_may_still_write_until_three_quarters_are_reached)
{
    begin_channels_with_queue_bound(2, BOUND);
    while (domi_io_count_queued_bytes(&bed->io) < BOUND / 4 * 3) {
        ck_assert_int_eq(write_to_channel(0, 5000), 0);
        if (domi_io_count_queued_bytes(&bed->io) > BOUND / 2)
            ck_assert(is_channel_crowded(0));
    }
    ck_assert_int_eq(write_to_channel(0, 1), -ENOBUFS);
    ck_assert_int_eq(write_to_channel(1, 257), -ENOBUFS);
    fill_first_channel(BOUND);
    ck_assert_int_eq(write_to_channel(1, 1), -ENOBUFS);
    domt_bed_bring_bytes(fds[1], 'x',
                         1); /* the bound has no room for the first piece of this channel */
    domt_bed_take_turn();
    domt_bed_expect_calls("");
    ck_assert(!is_channel_reading(1));
    let_peer_take_all(0);
    ck_assert(is_channel_reading(0) && is_channel_reading(1));
    domt_bed_expect_calls("B(x) ");
    ck_assert_int_eq(write_to_channel(1, 1), 0);
    domt_bed_end();
}

/* On half of the channels the actor writes as much as it may, for requests that take no room. */
DOMT_TEST(long_queued_answers_leave_room_for_short_ones)
{
    begin_channels_with_queue_bound(CHANNELS, BOUND);
    bed->mode = DOMT_BED_ECHO;
    for (uint32_t i = 0; i < CHANNELS / 2; i++) {
        while (write_to_channel(i, 20000) == 0)
            continue;
        ck_assert_uint_le(domi_io_count_queued_bytes(&bed->io), BOUND / 4 * 3 + 21000);
    }
    for (uint32_t i = CHANNELS / 2; i < CHANNELS; i++)
        domt_bed_bring_bytes(fds[i], 'x', 256);
    domt_bed_settle();
    ck_assert_uint_eq(bed->read_bytes, CHANNELS / 2 * 256);
    ck_assert_int_eq(bed->write_result, 0);
    ck_assert_uint_eq(bed->closed, 0);
    domt_bed_end();
}

DOMT_TEST(without_a_bound_nobody_is_crowded)
{
    begin_channels_with_queue_bound(1, UINT64_MAX);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(write_to_channel(0, 20000), 0);
    ck_assert(!is_channel_crowded(0) && is_channel_reading(0));
    ck_assert(!bed->io.careful);
    domt_bed_end();
}

/* There are more crowded channels than one turn looks at. */
DOMT_TEST(the_crowded_read_again_when_others_have_less)
{
    begin_channels_with_queue_bound(CHANNELS, BOUND);
    fill_first_channel(BOUND);
    for (uint32_t i = 1; i < CHANNELS; i++) {
        domi_channel_decide_whether_to_receive(bed->channels[i]);
        ck_assert(is_channel_crowded(i));
    }
    ck_assert_uint_eq(bed->io.crowd_count, CHANNELS);
    domt_bed_settle();
    /* io has looked at the crowded channels, and nothing has changed */
    ck_assert(!domi_io_has_work_before_park(&bed->io));
    let_peer_take_all(0);
    domt_bed_settle();
    ck_assert_uint_eq(bed->io.crowd_count, 0);
    for (uint32_t i = 0; i < CHANNELS; i++)
        ck_assert(is_channel_reading(i));
    domt_bed_end();
}

/* Each channel had room when its piece came. If all these pieces were shown to the actor at once,
 * its answers would pass the bound by far. */
DOMT_TEST(pieces_that_came_together_wait_for_each_other)
{
    const uint64_t bound = 8192;
    uint64_t sent = 0;

    begin_channels_with_queue_bound(CHANNELS, bound);
    bed->mode = DOMT_BED_ECHO;
    while (domi_io_count_queued_bytes(&bed->io) < bound / 2)
        ck_assert_int_eq(write_to_channel(0, 200), 0);
    for (uint32_t i = 1; i < CHANNELS; i++)
        domt_bed_bring_bytes_and_turn(fds[i], 'x', 200);
    ck_assert_uint_lt(domi_io_count_queued_bytes(&bed->io), bound);
    ck_assert_uint_lt(bed->read_bytes, (CHANNELS - 1) * 200);
    ck_assert_uint_ge(bed->read_bytes, 10 * 200);
    while (bed->read_bytes < (CHANNELS - 1) * 200) {
        for (uint32_t i = 0; i < CHANNELS; i++) {
            /* no write of this channel was refused, so it was not reset */
            ck_assert_ptr_nonnull(bed->channels[i]);
            let_peer_take_all(i);
        }
        ck_assert_uint_lt(sent++, CHANNELS);
    }
    ck_assert_int_eq(bed->write_result, 0);
    ck_assert_uint_eq(bed->closed, 0);
    domt_bed_end();
}

DOMT_TEST(bytes_that_were_read_are_shown_when_there_is_room)
{
    begin_channels_with_queue_bound(2, BOUND);
    fill_first_channel(BOUND);
    bed->note_length = 0;
    domt_bed_bring_bytes(fds[1], 'x', 3); /* this receive was begun before the bound was reached */
    domi_channel_decide_whether_to_receive(bed->channels[1]);
    domt_bed_take_turn();
    domt_bed_settle_and_expect_calls("");
    let_peer_take_all(0);
    domt_bed_settle_and_expect_calls("B(xxx) ");
    domt_bed_end();
}

DOMT_TEST(crowded_channels_go_on_when_the_bound_grows)
{
    begin_channels_with_queue_bound(1, BOUND);
    while (is_channel_reading(0))
        ck_assert_int_eq(write_to_channel(0, 200), 0);
    domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = 4 * BOUND});
    ck_assert(is_channel_reading(0));
    domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = BOUND / 4});
    ck_assert_int_eq(write_to_channel(0, 1), 0);
    ck_assert(!is_channel_reading(0));
    domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = UINT64_MAX});
    ck_assert(is_channel_reading(0));
    domt_bed_end();
}

DOMT_TEST(crowded_channels_close_in_any_order)
{
    begin_channels_with_queue_bound(5, BOUND);
    fill_first_channel(BOUND);
    for (uint32_t i = 1; i < 5; i++)
        domi_channel_decide_whether_to_receive(bed->channels[i]);
    ck_assert_uint_eq(bed->io.crowd_count, 5);
    domi_channel_end_at_once(bed->channels[2], -EPROTO, true);
    domi_channel_end_at_once(bed->channels[4], -EPROTO, true);
    ck_assert_int_eq(domi_channel_close(bed->channels[1]), 0);
    ck_assert_uint_eq(bed->io.crowd_count, 2);
    ck_assert_ptr_eq(bed->io.crowd_head, bed->channels[0]);
    ck_assert_ptr_eq(bed->io.crowd_tail, bed->channels[3]);
    domt_bed_settle();
    domt_bed_end();
}

/* A buffer of which little was kept takes as much memory as before. */
DOMT_TEST(memory_of_a_trimmed_buffer_is_counted)
{
    begin_channels_with_queue_bound(1, BOUND);
    domus_buffer *buffer = domi_buffer_new_from_heap(&bed->io, 100000);
    ck_assert_int_eq(domus_buffer_trim(buffer, 1), 0);
    ck_assert_int_eq(domi_channel_write(bed->channels[0], buffer), 0);
    ck_assert_uint_eq(domus_channel_queued(bed->channels[0]), 1);
    ck_assert_uint_ge(domi_io_count_queued_bytes(&bed->io), 100000);
    ck_assert(is_channel_crowded(0));
    let_peer_take_all(0);
    ck_assert_uint_eq(domi_io_count_queued_bytes(&bed->io), 0);
    domt_bed_end();
}

DOMT_TEST(a_bound_smaller_than_a_piece_lets_a_piece_in)
{
    begin_channels_with_queue_bound(1, 1024);
    ck_assert_uint_lt(bed->io.piece, 256);
    ck_assert(is_channel_reading(0));
    /* the bound was not reached before this write, so it is queued */
    ck_assert_int_eq(write_to_channel(0, 5000), 0);
    ck_assert_int_eq(write_to_channel(0, 1), -ENOBUFS);
    ck_assert(!is_channel_reading(0));
    let_peer_take_all(0);
    ck_assert(is_channel_reading(0));
    domt_bed_end();
}

static void let_one_second_pass(void)
{
    for (int i = 0; i < 20; i++) {
        domt_bed_pass_ms_and_settle(50);
    }
}

DOMT_TEST(with_much_queued_receives_bring_one_piece_and_the_next_waits_for_it)
{
    begin_channels_with_queue_bound(2, BOUND);
    ck_assert(!domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fds[1])->once);
    while (domi_io_count_queued_bytes(&bed->io) <= BOUND / 4)
        ck_assert_int_eq(write_to_channel(0, 1000), 0);
    ck_assert(bed->io.careful);
    let_one_second_pass();
    ck_assert(domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fds[1])->once);
    bed->mode = DOMT_BED_KEEP;
    domt_bed_bring_bytes(fds[1], 'x', 3);
    /* the test runs phase 1 only, so the actor has not seen the bytes */
    (void)domi_io_reap_completions(&bed->io);
    ck_assert_ptr_null(domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fds[1]));
    domt_bed_take_turn();
    ck_assert(domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fds[1])->once);
    let_peer_take_all(0);
    let_one_second_pass();
    ck_assert(!bed->io.careful);
    domt_bed_bring_bytes_and_turn(fds[1], 'x', 3);
    ck_assert(!domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fds[1])->once);
    domt_bed_end();
}

/* Bytes that the actor has not seen and bytes that were copied out count as queued, and a channel
 * is not read beyond the bound. */
DOMT_TEST(copied_bytes_that_wait_for_the_actor_count_as_queued)
{
    begin_channels_with_queue_bound(1, BOUND);
    bed->io.reserve = UINT32_MAX;
    bed->channels[0]->blocked = true;
    domt_bed_bring_bytes(fds[0], 'x', 200);
    (void)domi_io_reap_completions(&bed->io);
    ck_assert_uint_ge(domi_io_count_queued_bytes(&bed->io), 200);
    ck_assert_uint_eq(bed->channels[0]->copied, domi_io_count_queued_bytes(&bed->io));
    domi_channel_make_actor_ready(bed->channels[0]);
    domt_bed_settle();
    ck_assert_uint_eq(domi_io_count_queued_bytes(&bed->io), 0);
    domt_bed_bring_bytes(fds[0], 'x', 200);
    (void)domi_io_reap_completions(&bed->io);
    /* the count is also right when the copy is thrown away with its channel */
    domi_channel_end_at_once(bed->channels[0], -EPROTO, true);
    domt_bed_settle();
    ck_assert_uint_eq(domi_io_count_queued_bytes(&bed->io), 0);
    domt_bed_end();
}

/* One channel fills the bound while a piece comes for each of the others, and is copied out. Once
 * the bytes of the first channel are sent, these copies alone leave no room for a first piece. But
 * showing them takes no memory, and nothing else would ever make room. */
DOMT_TEST(copied_pieces_do_not_wait_for_room_taken_by_each_other)
{
    const uint64_t bound = 8192;

    begin_channels_with_queue_bound(CHANNELS, bound);
    bed->io.reserve = UINT32_MAX;
    bed->mode = DOMT_BED_ECHO;
    fill_first_channel(bound);
    for (uint32_t i = 1; i < CHANNELS; i++)
        domt_bed_bring_bytes(fds[i], 'x', 240);
    domt_bed_settle();
    ck_assert_uint_eq(bed->read_bytes, 0);
    let_peer_take_all(0);
    ck_assert_uint_gt(bed->read_bytes, 0);
    for (uint32_t turn = 0; turn < CHANNELS && bed->read_bytes < (CHANNELS - 1) * 240; turn++) {
        for (uint32_t i = 0; i < CHANNELS; i++) {
            /* no write of this channel was refused, so it was not reset */
            ck_assert_ptr_nonnull(bed->channels[i]);
            let_peer_take_all(i);
        }
    }
    ck_assert_uint_eq(bed->read_bytes, (CHANNELS - 1) * 240);
    ck_assert_int_eq(bed->write_result, 0);
    ck_assert_uint_eq(bed->closed, 0);
    domt_bed_end();
}

DOMT_SUITE(20)
