/* The functions of a channel's behaviour are handlers: each may be a sequence with a frame of its
 * own, is called also when there is no memory for the frame, and may wait. Requests that on_read
 * began have a bound for each channel (channel.requestsMax). */
#include "base/memory.h"
#include "house/family/life.h"
#include "io/channels/state.h"
#include "io/channels/table.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <domus/await.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CHANNELS 2

static domus_address owner;
static int fds[CHANNELS];
static domus_channel *channels[CHANNELS];
static char heard[64];  /* letters that the functions of the channels have recorded */
static int closed_with; /* the error that the last on_close got */

static void record_letter(char word)
{
    size_t length = strlen(heard);

    ck_assert_uint_lt(length + 1, sizeof heard);
    heard[length] = word;
    heard[length + 1] = '\0';
}

static void expect_recorded_letters(const char *expected)
{
    ck_assert_str_eq(heard, expected);
    heard[0] = '\0';
}

/* Record the end of a wait: the given letter, or 'x' if the wait was cancelled and '-' if the
 * connection is gone. */
static void record_end_of_wait(domus_stack *stack, const domus_answer *answer, char word)
{
    if (answer->error == -ECANCELED)
        record_letter('x');
    else
        record_letter(domus_channel_running(stack) != NULL ? word : '-');
}

/* --- sequences -------------------------------------------------------------------------------- */

DOMUS_SEQUENCE(open_slowly, uint64_t)
{
    const domus_channel_event *event = message;

    DOMUS_BEGIN;
    ck_assert_ptr_eq(event->channel, domus_channel_running(stack));
    ck_assert_ptr_null(event->bytes);
    ck_assert_uint_eq(*frame, 0);
    *frame = 1;
    record_letter('o');
    DOMUS_SLEEP(2 * DOMT_BED_MS);
    ck_assert_uint_eq(*frame, 1);
    record_end_of_wait(stack, answer, 'O');
    DOMUS_END;
}

/* Sleep for each byte that was read so many milliseconds as its digit says. */
DOMUS_SEQUENCE(read_slowly, char)
{
    const domus_channel_event *event = message;

    DOMUS_BEGIN;
    ck_assert_int_eq(*frame, 0);
    *frame = *(const char *)domus_buffer_data(event->bytes);
    domus_buffer_free(event->bytes);
    record_letter('r');
    if (*frame == '0')
        return 0;
    if (*frame == 'f')
        return -EPROTO;
    DOMUS_SLEEP((uint64_t)(*frame - '0') * DOMT_BED_MS);
    record_end_of_wait(stack, answer, *frame);
    DOMUS_END;
}

DOMUS_SEQUENCE(end_slowly, char)
{
    DOMUS_BEGIN;
    record_letter('e');
    DOMUS_SLEEP(2 * DOMT_BED_MS);
    record_end_of_wait(stack, answer, 'E');
    return domus_channel_close(stack, domus_channel_running(stack));
    DOMUS_END;
}

DOMUS_SEQUENCE(close_slowly, int)
{
    const domus_channel_event *event = message;

    DOMUS_BEGIN;
    ck_assert_ptr_eq(event->channel, domus_channel_running(stack));
    *frame = closed_with = event->error;
    record_letter('c');
    DOMUS_SLEEP(2 * DOMT_BED_MS);
    ck_assert_ptr_null(domus_channel_running(stack));
    ck_assert_int_eq(*frame, closed_with);
    record_end_of_wait(stack, answer, 'C');
    DOMUS_END;
}

#define SLOW                                                                                       \
    .kind = DOMUS_CHANNELS, .on_open = DOMUS_BY(open_slowly), .on_read = DOMUS_BY(read_slowly),    \
    .on_end = DOMUS_BY(end_slowly), .on_close = DOMUS_BY(close_slowly)

static const domus_behaviour slow = {.name = "slow", SLOW};
static const domus_behaviour lasting = {.name = "lasting", SLOW, .conversations_go_on = true};
static const domus_behaviour reading = {
    .name = "reading", .kind = DOMUS_CHANNELS, .on_read = DOMUS_BY(read_slowly)};
static const domus_behaviour of_slow = {.name = "owner", .kind = DOMUS_CHANNELS, .channel = &slow};
static const domus_behaviour of_lasting = {
    .name = "owner", .kind = DOMUS_CHANNELS, .channel = &lasting};
static const domus_behaviour of_reading = {
    .name = "owner", .kind = DOMUS_CHANNELS, .channel = &reading};

static int record_9_at_end_of_wait(domus_stack *stack, void *self, const domus_answer *answer)
{
    record_end_of_wait(stack, answer, '9');
    return 0;
}

static int record_read_and_sleep(domus_stack *stack, void *self, const void *payload)
{
    domus_buffer_free(((const domus_channel_event *)payload)->bytes);
    record_letter('r');
    return domus_sleep(stack, 9 * DOMT_BED_MS, record_9_at_end_of_wait);
}

static const domus_behaviour plain = {
    .name = "plain", .kind = DOMUS_CHANNELS, .on_read = {record_read_and_sleep, 0}};
static const domus_behaviour of_plain = {
    .name = "owner", .kind = DOMUS_CHANNELS, .channel = &plain};

static void begin_channels_with_limits(const domus_behaviour *behaviour, uint32_t requests_max,
                                       uint64_t idle_ns)
{
    heard[0] = '\0';
    bed->config.channel.requests_max = requests_max;
    bed->config.channel.idle_timeout_ns = idle_ns;
    domt_bed_start();
    owner = domt_bed_spawn_actor(behaviour, NULL);
    domt_bed_take_turn();
    for (uint32_t i = 0; i < CHANNELS; i++) {
        domt_bed_make_connection(&fds[i], NULL);
        ck_assert_int_eq(domt_bed_adopt_connection(owner, fds[i]), 0);
        channels[i] = bed->io.slots[i].channel;
    }
}

static void begin_channels(const domus_behaviour *behaviour, uint32_t requests_max)
{
    begin_channels_with_limits(behaviour, requests_max, 0);
}

/* Bring bytes for a channel, without a turn. */
static void bring_bytes_for_channel(uint32_t channel, const char *bytes)
{
    domt_bed_bring_text(fds[channel], bytes);
}

static void pass_ms_with_turn_after_each(uint32_t ms)
{
    for (uint32_t i = 0; i < ms; i++)
        domt_bed_pass_ms(1);
}

static bool is_channel_receiving(uint32_t channel)
{
    return domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fds[channel]) != NULL &&
           !channels[channel]->cancelling;
}

DOMT_TEST(each_function_of_a_channel_may_be_a_sequence)
{
    begin_channels(&of_lasting, 0);
    domt_bed_take_turn();
    expect_recorded_letters("oo");
    bring_bytes_for_channel(0, "4");
    domt_bed_take_turn();
    bring_bytes_for_channel(0, "5"); /* this call of on_read has a frame of its own */
    pass_ms_with_turn_after_each(5);
    expect_recorded_letters("rrOO4");
    pass_ms_with_turn_after_each(1);
    expect_recorded_letters("5");
    domt_fake_end_receive(bed->fake, fds[0], 0);
    pass_ms_with_turn_after_each(4);
    expect_recorded_letters("eEc");
    pass_ms_with_turn_after_each(4);
    expect_recorded_letters("-"); /* the wait that on_close began has ended */
    domt_bed_end();
}

DOMT_TEST(wait_of_on_close_is_cancelled_unless_conversations_go_on)
{
    begin_channels(&of_slow, 0);
    pass_ms_with_turn_after_each(4);
    expect_recorded_letters("ooOO");
    ck_assert_int_eq(domi_channel_close(channels[0]), 0);
    domt_bed_end_receive(fds[0], 0);
    expect_recorded_letters("cx");
    domt_bed_end();
}

DOMT_TEST(functions_are_called_without_memory_for_their_frames)
{
    begin_channels(&of_slow, 0);
    domi_memory_fail_allocation_after(0, 1);
    domt_bed_take_turn();
    domi_memory_fail_allocation_after(-1, 0);
    /* no callback gets a frame, so the first wait of each one fails */
    expect_recorded_letters("oocc");
    domt_bed_settle();
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.channels_refused), CHANNELS);
    ck_assert(!domt_bed_is_descriptor_open(fds[0]));
    domt_bed_end();
}

DOMT_TEST(frame_that_is_too_large_is_refused)
{
    static const domus_call large = {domi_close_slowly_begin, DOMUS_FRAME_MAX + 1};
    const domus_behaviour wrong[] = {
        {.name = "wrong", .kind = DOMUS_CHANNELS, .on_open = large},
        {.name = "wrong", .kind = DOMUS_CHANNELS, .on_read = large},
        {.name = "wrong", .kind = DOMUS_CHANNELS, .on_end = large},
        {.name = "wrong", .kind = DOMUS_CHANNELS, .on_close = large},
    };
    domus_address nobody;

    begin_channels(&of_slow, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(
            domi_house_spawn_without_parent(&bed->manager, &bed->manager, &wrong[i], NULL, &nobody),
            -EINVAL);
    domt_bed_end();
}

/* --- requestsMax ------------------------------------------------------------------------------ */

static uint64_t count_busy_channels(void)
{
    return domi_counter_read(&bed->io.counters.channels_busy);
}

DOMT_TEST(one_request_follows_the_other_and_no_channel_waits_for_another)
{
    begin_channels(&of_reading, 1);
    domt_bed_take_turn();
    bring_bytes_for_channel(0, "3");
    bring_bytes_for_channel(0, "1");
    bring_bytes_for_channel(1, "2");
    domt_bed_take_turn();
    expect_recorded_letters("rr");
    /* bytes wait that on_read was not shown, so no receive is armed */
    ck_assert(!is_channel_receiving(0));
    ck_assert(is_channel_receiving(1));
    domt_bed_settle();
    pass_ms_with_turn_after_each(2);
    expect_recorded_letters("2");
    bring_bytes_for_channel(1, "2");
    pass_ms_with_turn_after_each(1);
    expect_recorded_letters("r3r");
    ck_assert(is_channel_receiving(0));
    pass_ms_with_turn_after_each(2);
    expect_recorded_letters("12");
    ck_assert_uint_eq(count_busy_channels(), 4);
    domt_bed_end();
}

/* A receive that was ended for each request would cost two more operations of the ring. */
DOMT_TEST(receive_goes_on_while_nothing_waits)
{
    begin_channels(&of_reading, 1);
    domt_bed_take_turn();
    for (int i = 0; i < 3; i++) {
        bring_bytes_for_channel(0, "1");
        domt_bed_take_turn();
        ck_assert(is_channel_receiving(0));
        pass_ms_with_turn_after_each(1);
    }
    expect_recorded_letters("r1r1r1");
    /* the conversations of these bytes end at once, so the receive stays armed */
    for (int i = 0; i < 3; i++)
        bring_bytes_for_channel(0, "0");
    domt_bed_take_turn();
    expect_recorded_letters("rrr");
    ck_assert_uint_eq(bed->fake->begun[DOMT_CANCEL], 0);
    ck_assert_uint_eq(bed->fake->begun[DOMT_RECEIVE], CHANNELS);
    domt_bed_end();
}

/* The bound of requests holds also where on_read is a plain function and no sequence. */
DOMT_TEST(as_many_requests_as_the_bound_are_under_way)
{
    const domus_behaviour *owners[] = {&of_reading, &of_plain};

    for (int o = 0; o < 2; o++) {
        begin_channels(owners[o], 3);
        domt_bed_take_turn();
        for (int i = 0; i < 5; i++)
            bring_bytes_for_channel(0, "9");
        domt_bed_take_turn();
        expect_recorded_letters("rrr");
        ck_assert_uint_eq(count_busy_channels(), 1);
        domt_bed_settle();
        pass_ms_with_turn_after_each(9);
        expect_recorded_letters("999rr");
        pass_ms_with_turn_after_each(9);
        expect_recorded_letters("99");
        domt_bed_end();
    }
}

DOMT_TEST(half_close_at_the_bound_answers_everything)
{
    begin_channels(&of_reading, 1);
    domt_bed_take_turn();
    bring_bytes_for_channel(0, "2");
    bring_bytes_for_channel(0, "1");
    domt_fake_end_receive(bed->fake, fds[0], 0);
    domt_bed_take_turn();
    pass_ms_with_turn_after_each(2);
    expect_recorded_letters("r2r");
    ck_assert(domt_bed_is_descriptor_open(fds[0]));
    pass_ms_with_turn_after_each(2);
    domt_bed_settle();
    expect_recorded_letters("1");
    ck_assert(!domt_bed_is_descriptor_open(fds[0]));
    domt_bed_end();
}

/* on_end comes only when the actor was shown all bytes before the end. */
DOMT_TEST(on_end_does_not_wait_for_a_request)
{
    begin_channels(&of_slow, 1);
    pass_ms_with_turn_after_each(3);
    expect_recorded_letters("ooOO");
    bring_bytes_for_channel(0, "9");
    bring_bytes_for_channel(1, "3");
    bring_bytes_for_channel(1, "0");
    domt_bed_take_turn();
    expect_recorded_letters("rr");
    domt_fake_end_receive(bed->fake, fds[0], 0);
    domt_fake_end_receive(bed->fake, fds[1], 0);
    domt_bed_take_turn();
    expect_recorded_letters("e");
    pass_ms_with_turn_after_each(3);
    expect_recorded_letters("Ecxx3re");
    domt_bed_end();
}

/* The peer has sent its bytes, so it is the channel's own side that is slow. */
DOMT_TEST(busy_channel_is_not_idle_while_bytes_wait)
{
    begin_channels_with_limits(&of_reading, 1, 20 * DOMT_BED_MS);
    domt_bed_take_turn();
    for (uint32_t i = 0; i < CHANNELS; i++)
        bring_bytes_for_channel(i, "z"); /* 'z' stands for a sleep of 74 ms */
    bring_bytes_for_channel(0, "1");
    pass_ms_with_turn_after_each(60);
    domt_bed_settle();
    ck_assert(domt_bed_is_descriptor_open(fds[0]));
    ck_assert(!domt_bed_is_descriptor_open(fds[1]));
    domt_bed_end();
}

DOMT_SUITE(60)
