/* Half close: the peer has finished sending, and the conversations that its bytes began have not
 * ended. Without on_end the channel is closed when the last of them has ended, and not before.
 *
 * Each byte that is read begins a conversation: it sleeps as many ms as the digit says, and then
 * writes the digit. 'k' sleeps for ever, 'f' sleeps 5 ms and fails, '.' is answered at once. */
#include "house/dispatch/describe.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "io/channels/send.h"
#include "io/channels/state.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DAY_NS UINT64_C(86400000000000)

typedef struct server {
    domus_channel *channel; /* the channel that was opened last */
    domus_conversation newest;
    bool waits_on_open;
    unsigned ends;
    unsigned closes;
    int error;        /* the error that the last on_close got */
    unsigned answers; /* number of conversations that have ended */
    unsigned failed;  /* number of conversations whose wait failed */
    int written;      /* result of the last write of a digit */
} server;

static server ours;
static domus_address actor;
static int fd, peer;

static void write_digit(domus_stack *stack, domus_channel *channel, char byte)
{
    domus_buffer *buffer = NULL;

    ck_assert_int_eq(domus_buffer_new(stack, 1, &buffer), 0);
    *(char *)domus_buffer_data(buffer) = byte;
    ours.written = domi_channel_write(channel, buffer);
}

/* The behaviour names no frame for on_read, so each digit is resumed in a function of its own. */
static int write_digit_after_sleep(domus_stack *stack, const domus_answer *answer, char byte)
{
    ours.answers++;
    ours.failed += answer->error != 0;
    if (byte == 'f')
        return -EIO;
    if (answer->error == 0 && ours.channel != NULL)
        write_digit(stack, ours.channel, byte);
    return 0;
}

static int write_3_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return write_digit_after_sleep(stack, answer, '3');
}

static int write_6_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return write_digit_after_sleep(stack, answer, '6');
}

static int write_9_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return write_digit_after_sleep(stack, answer, '9');
}

static int fail_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return write_digit_after_sleep(stack, answer, 'f');
}

static int count_end_of_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    ours.answers++;
    ours.failed += answer->error != 0;
    return 0;
}

static int begin_sleep_of_conversation(domus_stack *stack, uint64_t ms, domus_resumed *then)
{
    int result = domus_sleep(stack, ms * DOMT_BED_MS, then);

    ck_assert_int_eq(domus_conversation_of(stack, &ours.newest), 0);
    return result;
}

static int on_open_record_and_wait(domus_stack *stack, void *self, const void *payload)
{
    ours.channel = ((const domus_channel_event *)payload)->channel;
    return ours.waits_on_open ? domus_sleep(stack, DAY_NS, count_end_of_sleep) : 0;
}

static int on_read_begin_conversation(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    char byte = *(char *)domus_buffer_data(event->bytes);

    domus_buffer_free(event->bytes);
    switch (byte) {
    case '3':
        return begin_sleep_of_conversation(stack, 3, write_3_after_sleep);
    case '6':
        return begin_sleep_of_conversation(stack, 6, write_6_after_sleep);
    case '9':
        return begin_sleep_of_conversation(stack, 9, write_9_after_sleep);
    case 'f':
        return begin_sleep_of_conversation(stack, 5, fail_after_sleep);
    case 'k':
        return begin_sleep_of_conversation(stack, DAY_NS / DOMT_BED_MS, count_end_of_sleep);
    case 'n': /* this conversation waits for nothing that the channel knows of */
        ck_assert_int_eq(domus_sleep_add(stack, DAY_NS, 1), 0);
        return 0;
    default:
        write_digit(stack, event->channel, byte);
        return 0;
    }
}

static int on_end_count(domus_stack *stack, void *self, const void *payload)
{
    ours.ends++;
    return 0;
}

static int on_close_record_error(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    ours.closes++;
    ours.error = event->error;
    if (ours.channel == event->channel)
        ours.channel = NULL;
    return 0;
}

static int on_sleep_begin_endless_sleep(domus_stack *stack, void *self, const void *payload)
{
    return domus_sleep(stack, DAY_NS, count_end_of_sleep);
}

static int on_cancel_newest_conversation(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_cancel(stack, ours.newest), 0);
    return 0;
}

static const domus_type sleep_type = {.name = "sleep"};
static const domus_type cancel_type = {.name = "cancel"};
static const domus_on rows[] = {{&sleep_type, on_sleep_begin_endless_sleep, 0},
                                {&cancel_type, on_cancel_newest_conversation, 0},
                                {NULL, NULL, 0}};
#define SERVING                                                                                    \
    .kind = DOMUS_CHANNELS, .on = rows, .on_open = {on_open_record_and_wait, 0},                   \
    .on_read = {on_read_begin_conversation, 0}, .on_close = {on_close_record_error, 0}

static const domus_behaviour serving = {.name = "serving", SERVING};
static const domus_behaviour ending = {.name = "ending", SERVING, .on_end = {on_end_count, 0}};
static const domus_behaviour going_on = {.name = "going on", SERVING, .conversations_go_on = true};

/* --- the bed --------------------------------------------------------------------------------- */

static void begin_channel(const domus_behaviour *behaviour)
{
    memset(&ours, 0, sizeof ours);
    bed->config.channel.idle_timeout_ns = 50 * DOMT_BED_MS;
    domt_bed_start();
    actor = domt_bed_spawn_actor(behaviour, NULL);
    domt_bed_take_turn();
    fd = domt_bed_connect_to_actor(actor, &peer);
}

/* Send each of the bytes to the channel in a piece of its own, and then FIN. */
static void bring_bytes_and_fin(const char *bytes)
{
    for (; *bytes != '\0'; bytes++)
        domt_bed_bring_text(fd, bytes);
    domt_fake_end_receive(bed->fake, fd, 0);
    domt_bed_take_turn();
}

static void pass_ms_with_turn_after_each(unsigned ms)
{
    for (unsigned i = 0; i < ms; i++)
        domt_bed_pass_ms(1);
}

static void send_notice(domus_address to, const domus_type *type)
{
    domt_bed_put_notice_and_turn(to, type, NULL);
}

/* Check that the channel sends exactly these bytes next, and let the kernel take them. */
static void expect_next_bytes_on_wire(const char *bytes)
{
    char wire[16] = "";
    uint32_t size = domt_fake_copy_send_bytes(bed->fake, fd, wire, sizeof wire - 1);

    ck_assert_str_eq(wire, bytes);
    domt_fake_complete_send(bed->fake, fd, (int32_t)size);
    domt_bed_settle();
}

static void expect_channel_open(void)
{
    domt_bed_settle();
    ck_assert(domt_bed_is_descriptor_open(fd));
    ck_assert_uint_eq(ours.closes, 0);
}

static void expect_channel_closed(int error)
{
    domt_bed_settle_and_expect_closed(fd);
    ck_assert_uint_eq(ours.closes, 1);
    ck_assert_int_eq(ours.error, error);
}

/* --- what is waited for ---------------------------------------------------------------------- */

DOMT_TEST(answer_is_sent_before_a_half_closed_channel_closes)
{
    char words[4096];
    domi_text text = {words, sizeof words, 0};

    begin_channel(&serving);
    bring_bytes_and_fin("3");
    expect_channel_open();
    domi_house_describe(&bed->manager, ours.channel->house, &text);
    ck_assert_ptr_nonnull(strstr(words, "begun by on_read"));
    /* the actor's house is not ready, so its thread would sleep */
    ck_assert_int_eq(actor.house->state, DOMI_WAITING);
    pass_ms_with_turn_after_each(2);
    expect_channel_open();
    pass_ms_with_turn_after_each(3);
    ck_assert_int_eq(ours.written, 0);
    expect_channel_open(); /* the channel stays open until the kernel has taken the answer */
    expect_next_bytes_on_wire("3");
    expect_channel_closed(0);
    domt_bed_end();
}

DOMT_TEST(last_of_several_conversations_closes_the_channel)
{
    begin_channel(&serving);
    bring_bytes_and_fin("936");
    pass_ms_with_turn_after_each(5);
    expect_next_bytes_on_wire("3");
    expect_channel_open();
    pass_ms_with_turn_after_each(3);
    expect_next_bytes_on_wire("6");
    expect_channel_open();
    pass_ms_with_turn_after_each(3);
    expect_next_bytes_on_wire("9");
    expect_channel_closed(0);
    domt_bed_end();
}

/* A conversation that did not park, or that ended before the peer's FIN, is not waited for. */
DOMT_TEST(channel_without_conversations_is_closed_at_once)
{
    static const char *const bytes[] = {"", "n"};

    for (int i = 0; i < 2; i++) {
        begin_channel(&serving);
        bring_bytes_and_fin(bytes[i]);
        expect_channel_closed(0);
        domt_bed_end();
    }
    begin_channel(&serving);
    domt_bed_bring_text(fd, "3");
    pass_ms_with_turn_after_each(5);
    expect_next_bytes_on_wire("3");
    expect_channel_open();
    domt_bed_bring_text(fd, "."); /* the channel has not seen a FIN, and is still read */
    domt_bed_take_turn();
    expect_next_bytes_on_wire(".");
    bring_bytes_and_fin("");
    expect_channel_closed(0);
    domt_bed_end();
}

/* Conversations of other messages or of on_open are not waited for: such a conversation may last as
 * long as the channel, and end because the channel does. */
DOMT_TEST(conversations_that_its_bytes_did_not_begin_are_not_waited_for)
{
    begin_channel(&serving);
    send_notice(actor, &sleep_type);
    bring_bytes_and_fin("");
    expect_channel_closed(0);
    domt_bed_end();

    begin_channel(&serving);
    ours.waits_on_open = true;
    fd = domt_bed_connect_to_actor(actor, &peer);
    bring_bytes_and_fin("");
    expect_channel_closed(0);
    domt_bed_end();
}

DOMT_TEST(on_end_runs_at_once_and_closes_when_it_likes)
{
    begin_channel(&ending);
    bring_bytes_and_fin("3");
    ck_assert_uint_eq(ours.ends, 1);
    pass_ms_with_turn_after_each(5);
    expect_next_bytes_on_wire("3");
    expect_channel_open(); /* a channel with an on_end is not closed by the library */
    ck_assert_int_eq(domi_channel_close(ours.channel), 0);
    expect_channel_closed(0);
    ck_assert_uint_eq(ours.ends, 1);
    domt_bed_end();
}

DOMT_TEST(conversation_that_fails_or_is_cancelled_ends_the_wait)
{
    begin_channel(&serving);
    bring_bytes_and_fin("f");
    expect_channel_open();
    pass_ms_with_turn_after_each(7);
    /* the error with which a conversation ends resets the channel, as one of on_read would */
    expect_channel_closed(-EIO);
    domt_bed_end();

    begin_channel(&serving);
    bring_bytes_and_fin("k");
    expect_channel_open();
    send_notice(domi_house_get_address(ours.channel->house), &cancel_type);
    ck_assert_uint_eq(ours.failed, 1);
    expect_channel_closed(0);
    domt_bed_end();
}

/* --- how long -------------------------------------------------------------------------------- */

DOMT_TEST(conversation_that_never_ends_is_cut_by_the_idle_time)
{
    for (int pressed = 0; pressed < 2; pressed++) {
        begin_channel(&serving);
        bring_bytes_and_fin("k");
        if (pressed != 0)
            domi_io_set_memory_shortage(
                &bed->io, &(domi_io_pressure){.spares = true, .queue_max = UINT64_MAX});
        pass_ms_with_turn_after_each(40);
        expect_channel_open();
        pass_ms_with_turn_after_each(20);
        expect_channel_closed(-ETIMEDOUT);
        domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = UINT64_MAX});
        domt_bed_end();
    }
}

DOMT_TEST(reset_ends_the_wait_and_cancels_the_conversation)
{
    begin_channel(&serving);
    bring_bytes_and_fin("3");
    domi_channel_end_at_once(ours.channel, -EPROTO, true);
    expect_channel_closed(-EPROTO);
    ck_assert_uint_eq(ours.answers, 1);
    ck_assert_uint_eq(ours.failed, 1);
    /* two actors are left: the bed's own one and the server */
    ck_assert_uint_eq(bed->manager.births.houses, 2);
    domt_bed_end();
}

/* The slot of the channel, and perhaps its memory, belongs to another channel when the conversation
 * ends. */
DOMT_TEST(conversation_of_a_channel_that_is_gone_does_not_count_for_the_next)
{
    begin_channel(&going_on);
    bring_bytes_and_fin("9k");
    uint32_t slot = ours.channel->slot;
    domi_channel_end_at_once(ours.channel, -EPROTO, true);
    expect_channel_closed(-EPROTO);
    ours.closes = 0;
    fd = domt_bed_connect_to_actor(actor, &peer);
    ck_assert_uint_eq(ours.channel->slot, slot);
    bring_bytes_and_fin("k");
    /* cancels the newest conversation, which is one of this channel */
    send_notice(domi_house_get_address(ours.channel->house), &cancel_type);
    expect_channel_closed(0);

    ours.closes = 0;
    fd = domt_bed_connect_to_actor(actor, &peer);
    ck_assert_uint_eq(ours.channel->slot, slot);
    bring_bytes_and_fin("k");
    /* the sleep of 9 ms has ended, whose conversation another channel's bytes began */
    pass_ms_with_turn_after_each(12);
    ck_assert_uint_eq(ours.answers, 2);
    expect_channel_open();
    domt_bed_end();
}

DOMT_TEST(actor_that_stops_does_not_wait_for_conversations)
{
    begin_channel(&serving);
    bring_bytes_and_fin("k");
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, actor), 0);
    expect_channel_closed(0);
    ck_assert_uint_eq(ours.failed, 1);
    ck_assert_uint_eq(bed->manager.births.houses, 1); /* only the bed's own actor is left */
    domt_bed_end();
}

DOMT_TEST(drain_waits_for_the_conversations_of_its_channels)
{
    begin_channel(&serving);
    bring_bytes_and_fin("36");
    domi_io_drain_accepted_channels(&bed->io);
    pass_ms_with_turn_after_each(4);
    expect_next_bytes_on_wire("3");
    expect_channel_open();
    pass_ms_with_turn_after_each(4);
    expect_next_bytes_on_wire("6");
    expect_channel_closed(0);
    domt_bed_end();
}

/* In a drain the channel is closed by its own conversations, whatever the actor does besides. */
DOMT_TEST(drain_does_not_wait_for_the_conversations_of_others)
{
    begin_channel(&serving);
    bring_bytes_and_fin("3");
    send_notice(actor, &sleep_type);
    domi_io_drain_accepted_channels(&bed->io);
    pass_ms_with_turn_after_each(5);
    expect_next_bytes_on_wire("3");
    expect_channel_closed(0);
    domt_bed_end();
}

DOMT_SUITE(30)
