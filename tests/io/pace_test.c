/* How long a peer may take for its first byte (channel.firstByteTimeout), for its bytes
 * (channel.minRate), and in all (channel.maxAge). */
#include "house/conversation/stack.h"
#include "io/channels/channel.h"
#include "io/channels/due.h"
#include "io/channels/receive.h"
#include "io/channels/send.h"
#include "io/channels/state.h"
#include "io/channels/table.h"
#include "io/completions/actor.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <domus/channel.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define FIRST_MS 100

static int fd, peer;

static void begin_silent_channel_with_times(uint64_t first_ms, uint64_t idle_ms)
{
    bed->config.connection.first_byte_timeout_ns = first_ms * DOMT_BED_MS;
    bed->config.channel.idle_timeout_ns = idle_ms * DOMT_BED_MS;
    domt_bed_start_with_connection(&fd, &peer);
    domt_bed_expect_calls("A+ ");
}

static void begin_silent_channel(void)
{
    begin_silent_channel_with_times(FIRST_MS, 0);
}

static uint64_t count_silent_closes(void)
{
    return domi_counter_read(&bed->io.counters.channels_silent);
}

/* Check that a silent channel is closed within `ms`; its timer may fire up to 1 ms late. */
static void expect_silent_close_within(uint64_t ms)
{
    domt_bed_pass_ms_and_settle(ms - 2);
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_bed_pass_ms_and_settle(4);
    ck_assert(!domt_bed_is_descriptor_open(fd));
    domt_bed_expect_calls("A-(-110) ");
}

static void expect_channel_stays_open(void)
{
    domt_bed_pass_ms_and_settle(10 * FIRST_MS);
    ck_assert(domt_bed_is_descriptor_open(fd));
    ck_assert_uint_eq(count_silent_closes(), 0);
}

DOMT_TEST(a_peer_that_sends_nothing_is_closed_in_time)
{
    begin_silent_channel();
    expect_silent_close_within(FIRST_MS);
    ck_assert_uint_eq(count_silent_closes(), 1);
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.channels_reset), 1);
    domt_bed_end();
}

/* Bytes that are sent to the peer prove nothing about the peer: it may not read them. */
DOMT_TEST(bytes_sent_to_a_silent_peer_give_it_no_more_time)
{
    begin_silent_channel();
    domt_bed_pass_ms_and_settle(FIRST_MS / 2);
    ck_assert_int_eq(domt_bed_write_bytes(bed->channels[0], 'w', 10), 0);
    domt_bed_take_turn();
    domt_fake_complete_send(bed->fake, fd, 10);
    expect_silent_close_within(FIRST_MS / 2);
    ck_assert_uint_eq(count_silent_closes(), 1);
    domt_bed_end();
}

DOMT_TEST(one_byte_ends_the_wait_for_the_first)
{
    begin_silent_channel();
    domt_bed_pass_ms_and_settle(FIRST_MS - 2);
    domt_bed_bring_bytes(fd, 'x', 1);
    domt_bed_pass_ms_and_settle(0);
    expect_channel_stays_open();
    domt_bed_end();
}

/* The peer's first byte has come, but the thread has not received it yet, for instance because it
 * was busy until the time was over. */
DOMT_TEST(a_first_byte_that_waits_in_the_socket_is_in_time)
{
    begin_silent_channel();
    ck_assert_int_eq(send(peer, "x", 1, MSG_NOSIGNAL), 1);
    expect_channel_stays_open();
    domt_bed_end();
}

DOMT_TEST(a_time_out_of_zero_for_the_first_byte_is_none)
{
    begin_silent_channel_with_times(0, 0);
    ck_assert(!domi_wheel_is_armed(&bed->channels[0]->timer.node));
    expect_channel_stays_open();
    domt_bed_end();
}

DOMT_TEST(after_the_first_byte_the_idle_time_out_holds)
{
    begin_silent_channel_with_times(FIRST_MS, 3 * FIRST_MS);
    domt_bed_pass_ms_and_settle(FIRST_MS / 2);
    domt_bed_bring_bytes(fd, 'x', 1);
    domt_bed_pass_ms_and_settle(0);
    domt_bed_expect_calls("A(x) ");
    expect_silent_close_within(3 * FIRST_MS);
    ck_assert_uint_eq(count_silent_closes(), 0);
    domt_bed_end();
}

DOMT_TEST(a_shorter_idle_time_out_comes_first_and_is_not_counted)
{
    begin_silent_channel_with_times(2 * FIRST_MS, FIRST_MS);
    expect_silent_close_within(FIRST_MS);
    ck_assert_uint_eq(count_silent_closes(), 0);
    domt_bed_end();
}

/* Stop reading: no channel is read while the bytes that are queued for peers are at their bound. */
static void stop_reading_for_lack_of_room(void)
{
    domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = 0});
    bed->io.piece = 1;
    domi_channel_decide_whether_to_receive(bed->channels[0]);
}

static void make_room_for_reading(void)
{
    domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = UINT64_MAX});
}

DOMT_TEST(time_without_reading_does_not_count_for_the_first_byte)
{
    begin_silent_channel();
    domt_bed_pass_ms_and_settle(FIRST_MS / 2);
    stop_reading_for_lack_of_room();
    domt_bed_settle();
    expect_channel_stays_open();
    domt_bed_pass_ms_and_settle(FIRST_MS / 2);
    make_room_for_reading();
    domt_bed_settle();
    expect_silent_close_within(FIRST_MS);
    domt_bed_end();
}

/* The receive is being ended when the time is over: its end may bring the first byte. */
DOMT_TEST(a_receive_that_is_being_cancelled_reads_no_more)
{
    begin_silent_channel();
    stop_reading_for_lack_of_room();
    domt_bed_take_turn();
    ck_assert_ptr_nonnull(domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fd));
    domt_bed_pass_ms_and_settle(FIRST_MS + 2);
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_bed_end();
}

DOMT_TEST(a_peer_that_has_finished_is_not_waited_for)
{
    begin_silent_channel();
    bed->ignore_end = true;
    domt_bed_end_receive(fd, 0);
    domt_bed_expect_calls("A. ");
    expect_channel_stays_open();
    /* the timer is off, so no later turn looks for the first byte */
    ck_assert(!domi_wheel_is_armed(&bed->channels[0]->timer.node));
    domt_bed_end();
}

/* The peer takes its answer slowly; only channel.sendTimeout bounds that. */
DOMT_TEST(a_channel_that_its_actor_has_closed_is_not_silent)
{
    begin_silent_channel();
    ck_assert_int_eq(domt_bed_write_bytes(bed->channels[0], 'w', 10), 0);
    domt_bed_take_turn();
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    domt_bed_pass_ms_and_settle(10 * FIRST_MS);
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_fake_complete_send(bed->fake, fd, 10);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'f');
    domt_bed_end();
}

/* While memory is short each receive brings one piece. A proxy that sends its header byte by byte
 * gets no more time by these. */
DOMT_TEST(a_header_that_drips_has_to_come_in_time)
{
    static const char header[] = "PROXY TCP4 192.0.2.1 ";
    int own, other;

    begin_silent_channel();
    bed->io.careful = true;
    domt_bed_make_connection(&own, &other);
    ck_assert_int_eq(
        domi_channel_adopt_connection(&bed->io, bed->actor.house,
                                      &(domi_connection){.fd = own, .is_proxied = true}),
        0);
    atomic_fetch_add_explicit(&bed->io.connections, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < 12; i++) {
        if (domt_bed_is_descriptor_open(own))
            ck_assert(domt_fake_complete_receive(bed->fake, own, header + i, 1, false));
        domt_bed_pass_ms_and_settle(FIRST_MS / 10);
    }
    ck_assert(!domt_bed_is_descriptor_open(own));
    domt_bed_end();
}

#define GRACE_MS 1000
#define AGE_MS   10000

static void begin_channel_with_rate_and_age(uint64_t rate, uint64_t age_ms, uint32_t jitter)
{
    bed->mode = DOMT_BED_DROP;
    bed->config.connection.first_byte_timeout_ns = 0;
    bed->config.channel.idle_timeout_ns = 0;
    bed->config.pace.rate_min_bytes = rate;
    bed->config.pace.rate_grace_ns = GRACE_MS * DOMT_BED_MS;
    bed->config.pace.age_max_ns = age_ms * DOMT_BED_MS;
    bed->config.pace.age_jitter_percent = jitter;
    domt_bed_start_with_connection(&fd, &peer);
}

static void answer_with_one_byte(void)
{
    ck_assert_int_eq(domt_bed_write_bytes(bed->channels[0], 'w', 1), 0);
    domt_bed_take_turn();
    domt_bed_complete_send(fd, 1);
}

static uint64_t count_slow_cuts(void)
{
    return domi_counter_read(&bed->io.counters.channels_slow);
}

static uint64_t count_closes_by_age(void)
{
    return domi_counter_read(&bed->io.counters.channels_aged);
}

/* Check that the channel is cut after so many times of grace; its timer may fire up to 1 ms
 * late. */
static void expect_cut_after_graces(uint32_t graces)
{
    for (uint32_t i = 1; i < graces; i++)
        domt_bed_pass_ms_and_settle(GRACE_MS + 1);
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_bed_pass_ms_and_settle(GRACE_MS + 2);
    ck_assert(!domt_bed_is_descriptor_open(fd));
    ck_assert_uint_eq(count_slow_cuts(), 1);
    ck_assert_uint_eq(bed->closed, 1);
}

/* --- the rate --------------------------------------------------------------------------------- */

/* A connection that gets a byte every 100 ms is not idle, but gets less than 20 bytes in a
 * second. */
DOMT_TEST(a_dripping_peer_is_closed)
{
    begin_channel_with_rate_and_age(20, 0, 0);
    for (uint32_t i = 0; i < 2 * GRACE_MS / 100 + 1 && domt_bed_is_descriptor_open(fd); i++) {
        domt_bed_bring_bytes_and_turn(fd, 'x', 1);
        domt_bed_pass_ms_and_settle(100);
    }
    domt_bed_pass_ms_and_settle(2);
    ck_assert(!domt_bed_is_descriptor_open(fd));
    ck_assert_uint_eq(count_slow_cuts(), 1);
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.channels_silent), 0);
    domt_bed_end();
}

DOMT_TEST(a_peer_that_keeps_to_the_rate_stays)
{
    begin_channel_with_rate_and_age(20, 0, 0);
    for (uint32_t i = 0; i < 100; i++) {
        domt_bed_bring_bytes_and_turn(fd, 'x', 3);
        domt_bed_pass_ms_and_settle(100);
    }
    ck_assert(domt_bed_is_descriptor_open(fd));
    ck_assert_uint_eq(count_slow_cuts(), 0);
    domt_bed_end();
}

/* A burst of bytes gains no time for later: each span of time is measured for itself. */
DOMT_TEST(a_burst_keeps_a_slow_peer_for_one_span_only)
{
    begin_channel_with_rate_and_age(20, 0, 0);
    domt_bed_bring_bytes_and_turn(fd, 'x', 255);
    expect_cut_after_graces(2);
    domt_bed_end();
}

DOMT_TEST(a_peer_without_a_message_under_way_may_be_idle)
{
    begin_channel_with_rate_and_age(20, 0, 0);
    domt_bed_pass_ms_and_settle(5 * GRACE_MS);
    ck_assert(domt_bed_is_descriptor_open(fd));
    /* the peer sends one short message now and then, and each is answered */
    for (uint32_t i = 0; i < 10; i++) {
        domt_bed_bring_bytes_and_turn(fd, 'x', 1);
        answer_with_one_byte();
        domt_bed_pass_ms_and_settle(GRACE_MS);
    }
    ck_assert(domt_bed_is_descriptor_open(fd));
    ck_assert_uint_eq(count_slow_cuts(), 0);
    domt_bed_end();
}

/* Messages are not answered, but each is done before the next one comes: no message lasts a whole
 * span of time. */
DOMT_TEST(a_message_ends_when_the_actor_says_so)
{
    domus_stack stack;

    begin_channel_with_rate_and_age(20, 0, 0);
    domi_stack_begin_without_message(&stack, &bed->manager, bed->channels[0]->house);
    for (uint32_t i = 0; i < 10; i++) {
        domt_bed_bring_bytes_and_turn(fd, 'x', 1);
        ck_assert_int_eq(domus_channel_message_done(&stack, bed->channels[0]), 0);
        domt_bed_pass_ms_and_settle(GRACE_MS);
    }
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_bed_bring_bytes_and_turn(
        fd, 'x', 1); /* the actor does not call domus_channel_message_done() this time */
    expect_cut_after_graces(2);
    domt_bed_end();
}

/* Short messages follow one another: a span of time in which another message began does not
 * count. */
DOMT_TEST(a_span_in_which_an_answer_left_is_not_measured)
{
    begin_channel_with_rate_and_age(20, 0, 0);
    for (uint32_t i = 0; i < 10; i++) {
        domt_bed_bring_bytes_and_turn(fd, 'x', 1);
        domt_bed_pass_ms_and_settle(GRACE_MS / 2);
        answer_with_one_byte();
        domt_bed_bring_bytes_and_turn(fd, 'x', 1);
        domt_bed_pass_ms_and_settle(GRACE_MS / 2);
    }
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_bed_end();
}

DOMT_TEST(time_without_reading_does_not_count_for_the_rate)
{
    begin_channel_with_rate_and_age(20, 0, 0);
    domt_bed_bring_bytes_and_turn(fd, 'x', 1);
    domt_bed_pass_ms_and_settle(GRACE_MS +
                                1); /* the span of time that begins after this wait is measured */
    domi_channel_queue_for_receive_buffer(bed->channels[0]);
    domi_channel_leave_queue_for_buffer(bed->channels[0]);
    domt_bed_pass_ms_and_settle(GRACE_MS + 1);
    /* the span of time in which the channel could not read is not measured */
    ck_assert(domt_bed_is_descriptor_open(fd));
    expect_cut_after_graces(1);
    domt_bed_end();
}

DOMT_TEST(without_a_rate_nothing_is_measured)
{
    begin_channel_with_rate_and_age(0, 0, 0);
    domt_bed_bring_bytes_and_turn(fd, 'x', 1);
    ck_assert(!domi_wheel_is_armed(&bed->channels[0]->timer.node));
    domt_bed_end();
}

/* --- the age ---------------------------------------------------------------------------------- */

DOMT_TEST(an_idle_channel_is_closed_at_its_age)
{
    begin_channel_with_rate_and_age(0, AGE_MS, 0);
    domt_bed_bring_bytes_and_turn(fd, 'x', 1);
    answer_with_one_byte();
    domt_bed_pass_ms_and_settle(AGE_MS - 2);
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_OPEN);
    domt_bed_pass_ms_and_settle(4);
    /* the channel closes with a FIN at its age, not with a reset */
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_LINGERING);
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'f');
    ck_assert_uint_eq(count_closes_by_age(), 1);
    domt_bed_end();
}

DOMT_TEST(a_message_under_way_is_waited_for)
{
    begin_channel_with_rate_and_age(0, AGE_MS, 0);
    domt_bed_bring_bytes_and_turn(fd, 'x', 1);
    domt_bed_pass_ms_and_settle(AGE_MS + 500);
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_OPEN);
    domt_bed_bring_bytes_and_turn(
        fd, 'x', 1); /* brings the rest of the message, which may be answered now */
    answer_with_one_byte();
    domt_bed_pass_ms_and_settle(200);
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_LINGERING);
    ck_assert_uint_eq(bed->unsent_bytes, 0);
    ck_assert_uint_eq(count_closes_by_age(), 1);
    domt_bed_end();
}

DOMT_TEST(a_message_that_does_not_end_is_waited_for_as_long_as_a_drain)
{
    begin_channel_with_rate_and_age(0, AGE_MS, 0);
    domt_bed_bring_bytes_and_turn(fd, 'x', 1);
    domt_bed_pass_ms_and_settle(AGE_MS + 10000 - 2);
    domt_bed_pass_ms_and_settle(0);
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_OPEN);
    domt_bed_pass_ms_and_settle(200);
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_LINGERING);
    domt_bed_end();
}

DOMT_TEST(ages_are_spread_and_stay_in_their_bounds)
{
    uint64_t least = UINT64_MAX, most = 0;

    begin_channel_with_rate_and_age(0, AGE_MS, 20);
    domus_channel one = *bed->channels[0];
    for (uint32_t i = 0; i < 1000; i++) {
        one.slot = i;
        uint64_t age = domi_channel_get_end_of_age(&one) - one.opened_ns;
        least = age < least ? age : least;
        most = age > most ? age : most;
        ck_assert_uint_eq(age, domi_channel_get_end_of_age(&one) - one.opened_ns);
    }
    ck_assert_uint_ge(least, 8000 * DOMT_BED_MS);
    ck_assert_uint_lt(least, 8100 * DOMT_BED_MS);
    ck_assert_uint_le(most, 12000 * DOMT_BED_MS);
    ck_assert_uint_gt(most, 11900 * DOMT_BED_MS);
    domt_bed_end();
}

DOMT_SUITE(20)
