/* How long a connection may last (channel.maxAge), and how slowly its peer may send
 * (channel.minRate). */
#include "house/conversation/stack.h"
#include "io/channels/channel.h"
#include "io/channels/rate.h"
#include "io/channels/receive.h"
#include "io/channels/send.h"
#include "io/completions/run.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <domus/channel.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define GRACE_MS 1000
#define AGE_MS   10000

static domt_bed bed;
static int fd;
static int peer;

static void begin_with(uint64_t rate, uint64_t age_ms, uint32_t jitter)
{
    domt_bed_init(&bed);
    bed.mode = DOMT_BED_DROP;
    bed.config.connection.first_byte_timeout_ns = 0;
    bed.config.channel.idle_timeout_ns = 0;
    bed.config.pace.rate_min_bytes = rate;
    bed.config.pace.rate_grace_ns = GRACE_MS * DOMT_BED_MS;
    bed.config.pace.age_max_ns = age_ms * DOMT_BED_MS;
    bed.config.pace.age_jitter_percent = jitter;
    domt_bed_begin(&bed, &fd, &peer);
}

static void end(void)
{
    domt_bed_finish(&bed, peer);
}

static void pass(uint64_t ms)
{
    domt_bed_pass(&bed, ms);
    domt_bed_settle(&bed);
}

static void feed(uint32_t size)
{
    domt_bed_feed(&bed, fd, 'x', size);
    domt_bed_turn(&bed);
}

static void answer(void)
{
    domus_buffer *buffer = domi_buffer_heap(&bed.io, 1);

    ck_assert_ptr_nonnull(buffer);
    ck_assert_int_eq(domi_channel_write(bed.channels[0], buffer), 0);
    domt_bed_turn(&bed);
    domt_fake_sent(bed.fake, fd, 1);
    domt_bed_turn(&bed);
}

static uint64_t slow(void)
{
    return domi_counter_read(&bed.io.counters.channels_slow);
}

static uint64_t aged(void)
{
    return domi_counter_read(&bed.io.counters.channels_aged);
}

/* The wheel may be up to 1 ms late. */
static void is_cut_after_graces(uint32_t graces)
{
    for (uint32_t i = 1; i < graces; i++)
        pass(GRACE_MS + 1);
    ck_assert(domt_bed_is_open(fd));
    pass(GRACE_MS + 2);
    ck_assert(!domt_bed_is_open(fd));
    ck_assert_uint_eq(slow(), 1);
    ck_assert_uint_eq(bed.closed, 1);
}

/* --- the rate --------------------------------------------------------------------------------- */

/* A connection that gets a byte every 100 ms is not idle, but this is less than 20 bytes in a
 * second. */
DOMT_TEST(a_dripping_peer_is_closed)
{
    begin_with(20, 0, 0);
    for (uint32_t i = 0; i < 2 * GRACE_MS / 100 + 1 && domt_bed_is_open(fd); i++) {
        feed(1);
        pass(100);
    }
    pass(2);
    ck_assert(!domt_bed_is_open(fd));
    ck_assert_uint_eq(slow(), 1);
    ck_assert_uint_eq(domi_counter_read(&bed.io.counters.channels_silent), 0);
    end();
}

DOMT_TEST(a_peer_that_keeps_to_the_rate_stays)
{
    begin_with(20, 0, 0);
    for (uint32_t i = 0; i < 100; i++) {
        feed(3);
        pass(100);
    }
    ck_assert(domt_bed_is_open(fd));
    ck_assert_uint_eq(slow(), 0);
    end();
}

/* A burst buys no time later: each span is measured for itself. */
DOMT_TEST(a_burst_buys_one_span_only)
{
    begin_with(20, 0, 0);
    feed(255);
    is_cut_after_graces(2);
    end();
}

DOMT_TEST(a_peer_without_a_message_under_way_may_be_idle)
{
    begin_with(20, 0, 0);
    pass(5 * GRACE_MS);
    ck_assert(domt_bed_is_open(fd));
    for (uint32_t i = 0; i < 10; i++) { /* one short message now and then, each answered */
        feed(1);
        answer();
        pass(GRACE_MS);
    }
    ck_assert(domt_bed_is_open(fd));
    ck_assert_uint_eq(slow(), 0);
    end();
}

/* Messages that are not answered, each done before the next: no message lasts a span. */
DOMT_TEST(a_message_ends_when_the_actor_says_so)
{
    domus_stack stack;

    begin_with(20, 0, 0);
    domi_stack_begin(&stack, &bed.manager, bed.channels[0]->house);
    for (uint32_t i = 0; i < 10; i++) {
        feed(1);
        ck_assert_int_eq(domus_channel_message_done(&stack, bed.channels[0]), 0);
        pass(GRACE_MS);
    }
    ck_assert(domt_bed_is_open(fd));
    feed(1); /* this time domus_channel_message_done() is not called */
    is_cut_after_graces(2);
    end();
}

/* One message after the other, each short: a span in which another one began does not count. */
DOMT_TEST(an_answer_in_a_span_ends_its_measure)
{
    begin_with(20, 0, 0);
    for (uint32_t i = 0; i < 10; i++) {
        feed(1);
        pass(GRACE_MS / 2);
        answer();
        feed(1);
        pass(GRACE_MS / 2);
    }
    ck_assert(domt_bed_is_open(fd));
    end();
}

DOMT_TEST(time_in_which_nobody_read_does_not_count)
{
    begin_with(20, 0, 0);
    feed(1);
    pass(GRACE_MS + 1); /* the span that begins here is measured */
    domi_channel_starve(bed.channels[0]);
    domi_channel_unstarve(bed.channels[0]);
    pass(GRACE_MS + 1);
    ck_assert(domt_bed_is_open(fd)); /* not this one */
    is_cut_after_graces(1);
    end();
}

DOMT_TEST(without_a_rate_nothing_is_measured)
{
    begin_with(0, 0, 0);
    feed(1);
    ck_assert(!domi_wheel_is_armed(&bed.channels[0]->timer.node));
    end();
}

/* --- the age ---------------------------------------------------------------------------------- */

DOMT_TEST(an_idle_channel_is_closed_at_its_age)
{
    begin_with(0, AGE_MS, 0);
    feed(1);
    answer();
    pass(AGE_MS - 2);
    ck_assert_uint_eq(bed.channels[0]->state, DOMI_CHANNEL_OPEN);
    pass(4);
    ck_assert_uint_eq(bed.channels[0]->state, DOMI_CHANNEL_LINGERING); /* FIN, no reset */
    ck_assert_int_eq(domt_bed_peer_sees(peer), 'f');
    ck_assert_uint_eq(aged(), 1);
    end();
}

DOMT_TEST(a_message_under_way_is_waited_for)
{
    begin_with(0, AGE_MS, 0);
    feed(1);
    pass(AGE_MS + 500);
    ck_assert_uint_eq(bed.channels[0]->state, DOMI_CHANNEL_OPEN);
    feed(1); /* the rest of it */
    answer();
    pass(200);
    ck_assert_uint_eq(bed.channels[0]->state, DOMI_CHANNEL_LINGERING);
    ck_assert_uint_eq(bed.unsent_bytes, 0);
    ck_assert_uint_eq(aged(), 1);
    end();
}

DOMT_TEST(a_message_that_does_not_end_is_waited_for_as_long_as_a_drain)
{
    begin_with(0, AGE_MS, 0);
    feed(1);
    pass(AGE_MS + 10000 - 2);
    pass(0);
    ck_assert_uint_eq(bed.channels[0]->state, DOMI_CHANNEL_OPEN);
    pass(200);
    ck_assert_uint_eq(bed.channels[0]->state, DOMI_CHANNEL_LINGERING);
    end();
}

DOMT_TEST(ages_are_spread_and_stay_in_their_bounds)
{
    uint64_t least = UINT64_MAX, most = 0;

    begin_with(0, AGE_MS, 20);
    domus_channel one = *bed.channels[0];
    for (uint32_t i = 0; i < 1000; i++) {
        one.slot = i;
        uint64_t age = domi_channel_age_due(&one) - one.opened_ns;
        least = age < least ? age : least;
        most = age > most ? age : most;
        ck_assert_uint_eq(age, domi_channel_age_due(&one) - one.opened_ns);
    }
    ck_assert_uint_ge(least, 8000 * DOMT_BED_MS);
    ck_assert_uint_lt(least, 8100 * DOMT_BED_MS);
    ck_assert_uint_le(most, 12000 * DOMT_BED_MS);
    ck_assert_uint_gt(most, 11900 * DOMT_BED_MS);
    end();
}

DOMT_SUITE(20)
