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
    int error;        /* the error of the last close */
    unsigned answers; /* number of conversations that ended */
    unsigned failed;  /* number of conversations whose wait failed */
    int written;      /* result of the last write */
} server;

static server ours;
static domus_address actor;
static int fd, peer;

static void write_byte(domus_stack *stack, domus_channel *channel, char byte)
{
    domus_buffer *buffer = NULL;

    ck_assert_int_eq(domus_buffer_new(stack, 1, &buffer), 0);
    *(char *)domus_buffer_data(buffer) = byte;
    ours.written = domi_channel_write(channel, buffer);
}

/* on_read names no frame here, so each digit needs a function of its own. */
static int end_wait(domus_stack *stack, const domus_answer *answer, char byte)
{
    ours.answers++;
    ours.failed += answer->error != 0;
    if (byte == 'f')
        return -EIO;
    if (answer->error == 0 && ours.channel != NULL)
        write_byte(stack, ours.channel, byte);
    return 0;
}

static int over_3(domus_stack *stack, void *self, const domus_answer *answer)
{
    return end_wait(stack, answer, '3');
}

static int over_6(domus_stack *stack, void *self, const domus_answer *answer)
{
    return end_wait(stack, answer, '6');
}

static int over_9(domus_stack *stack, void *self, const domus_answer *answer)
{
    return end_wait(stack, answer, '9');
}

static int over_fail(domus_stack *stack, void *self, const domus_answer *answer)
{
    return end_wait(stack, answer, 'f');
}

static int over_quiet(domus_stack *stack, void *self, const domus_answer *answer)
{
    ours.answers++;
    ours.failed += answer->error != 0;
    return 0;
}

static int begin_sleep(domus_stack *stack, uint64_t ms, domus_resumed *then)
{
    int result = domus_sleep(stack, ms * DOMT_BED_MS, then);

    ck_assert_int_eq(domus_conversation_of(stack, &ours.newest), 0);
    return result;
}

static int on_open(domus_stack *stack, void *self, const void *payload)
{
    ours.channel = ((const domus_channel_event *)payload)->channel;
    return ours.waits_on_open ? domus_sleep(stack, DAY_NS, over_quiet) : 0;
}

static int on_read(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    char byte = *(char *)domus_buffer_data(event->bytes);

    domus_buffer_free(event->bytes);
    switch (byte) {
    case '3':
        return begin_sleep(stack, 3, over_3);
    case '6':
        return begin_sleep(stack, 6, over_6);
    case '9':
        return begin_sleep(stack, 9, over_9);
    case 'f':
        return begin_sleep(stack, 5, over_fail);
    case 'k':
        return begin_sleep(stack, DAY_NS / DOMT_BED_MS, over_quiet);
    case 'n': /* this conversation waits for nothing known to the channel */
        ck_assert_int_eq(domus_sleep_add(stack, DAY_NS, 1), 0);
        return 0;
    default:
        write_byte(stack, event->channel, byte);
        return 0;
    }
}

static int on_end(domus_stack *stack, void *self, const void *payload)
{
    ours.ends++;
    return 0;
}

static int on_close(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    ours.closes++;
    ours.error = event->error;
    if (ours.channel == event->channel)
        ours.channel = NULL;
    return 0;
}

static int on_sleep(domus_stack *stack, void *self, const void *payload)
{
    return domus_sleep(stack, DAY_NS, over_quiet);
}

static int on_cancel(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_cancel(stack, ours.newest), 0);
    return 0;
}

static const domus_type sleep_type = {.name = "sleep"};
static const domus_type cancel_type = {.name = "cancel"};
static const domus_on rows[] = {
    {&sleep_type, on_sleep, 0}, {&cancel_type, on_cancel, 0}, {NULL, NULL, 0}};
#define SERVING                                                                                    \
    .kind = DOMUS_CHANNELS, .on = rows, .on_open = {on_open, 0}, .on_read = {on_read, 0},          \
    .on_close = {on_close, 0}

static const domus_behaviour serving = {.name = "serving", SERVING};
static const domus_behaviour ending = {.name = "ending", SERVING, .on_end = {on_end, 0}};
static const domus_behaviour going_on = {.name = "going on", SERVING, .conversations_go_on = true};

/* --- the bed --------------------------------------------------------------------------------- */

static void begin_channel(const domus_behaviour *behaviour)
{
    memset(&ours, 0, sizeof ours);
    bed->config.channel.idle_timeout_ns = 50 * DOMT_BED_MS;
    domt_bed_start();
    actor = domt_bed_spawn(behaviour, NULL);
    domt_bed_turn();
    fd = domt_bed_connect_to(actor, &peer);
}

/* Send each of the bytes in a piece of its own, and FIN. */
static void send_and_finish(const char *bytes)
{
    for (; *bytes != '\0'; bytes++)
        domt_bed_bring(fd, bytes);
    domt_fake_receive_ends(bed->fake, fd, 0);
    domt_bed_turn();
}

static void pass_ms(unsigned ms)
{
    for (unsigned i = 0; i < ms; i++)
        domt_bed_pass(1);
}

static void send_notice(domus_address to, const domus_type *type)
{
    domt_bed_tell(to, type, NULL);
}

/* Check that these are the next bytes on the wire, and let the kernel take them. */
static void expect_wire(const char *bytes)
{
    char wire[16] = "";
    uint32_t size = domt_fake_wire(bed->fake, fd, wire, sizeof wire - 1);

    ck_assert_str_eq(wire, bytes);
    domt_fake_sent(bed->fake, fd, (int32_t)size);
    domt_bed_settle();
}

static void hold_open(void)
{
    domt_bed_settle();
    ck_assert(domt_bed_is_open(fd));
    ck_assert_uint_eq(ours.closes, 0);
}

static void check_closed(int error)
{
    domt_bed_closed(fd);
    ck_assert_uint_eq(ours.closes, 1);
    ck_assert_int_eq(ours.error, error);
}

/* --- what is waited for ---------------------------------------------------------------------- */

DOMT_TEST(answer_is_sent_before_the_close)
{
    char words[4096];
    domi_text text = {words, sizeof words, 0};

    begin_channel(&serving);
    send_and_finish("3");
    hold_open();
    domi_house_describe(&bed->manager, ours.channel->house, &text);
    ck_assert_ptr_nonnull(strstr(words, "begun by on_read"));
    ck_assert_int_eq(actor.house->state, DOMI_WAITING); /* the thread would sleep */
    pass_ms(2);
    hold_open();
    pass_ms(3);
    ck_assert_int_eq(ours.written, 0);
    hold_open(); /* open until the kernel has the answer */
    expect_wire("3");
    check_closed(0);
    domt_bed_end();
}

DOMT_TEST(last_of_several_conversations_closes)
{
    begin_channel(&serving);
    send_and_finish("936");
    pass_ms(5);
    expect_wire("3");
    hold_open();
    pass_ms(3);
    expect_wire("6");
    hold_open();
    pass_ms(3);
    expect_wire("9");
    check_closed(0);
    domt_bed_end();
}

/* A conversation that did not park, or that ended before the FIN, is not waited for. */
DOMT_TEST(channel_without_conversations_is_closed_at_once)
{
    static const char *const bytes[] = {"", "n"};

    for (int i = 0; i < 2; i++) {
        begin_channel(&serving);
        send_and_finish(bytes[i]);
        check_closed(0);
        domt_bed_end();
    }
    begin_channel(&serving);
    domt_bed_bring(fd, "3");
    pass_ms(5);
    expect_wire("3");
    hold_open();
    domt_bed_bring(fd, "."); /* the channel is still read */
    domt_bed_turn();
    expect_wire(".");
    send_and_finish("");
    check_closed(0);
    domt_bed_end();
}

/* Conversations of other messages or of on_open are not waited for: such a conversation may last as
 * long as the channel, and end because the channel does. */
DOMT_TEST(conversations_that_its_bytes_did_not_begin_are_not_waited_for)
{
    begin_channel(&serving);
    send_notice(actor, &sleep_type);
    send_and_finish("");
    check_closed(0);
    domt_bed_end();

    begin_channel(&serving);
    ours.waits_on_open = true;
    fd = domt_bed_connect_to(actor, &peer);
    send_and_finish("");
    check_closed(0);
    domt_bed_end();
}

DOMT_TEST(on_end_runs_at_once_and_closes_when_it_likes)
{
    begin_channel(&ending);
    send_and_finish("3");
    ck_assert_uint_eq(ours.ends, 1);
    pass_ms(5);
    expect_wire("3");
    hold_open(); /* with an on_end the library does not close by itself */
    ck_assert_int_eq(domi_channel_close(ours.channel), 0);
    check_closed(0);
    ck_assert_uint_eq(ours.ends, 1);
    domt_bed_end();
}

DOMT_TEST(conversation_that_fails_or_is_cancelled_ends_the_wait)
{
    begin_channel(&serving);
    send_and_finish("f");
    hold_open();
    pass_ms(7);
    /* an error of the conversation refuses the channel, as one of on_read would */
    check_closed(-EIO);
    domt_bed_end();

    begin_channel(&serving);
    send_and_finish("k");
    hold_open();
    send_notice(domi_house_address(ours.channel->house), &cancel_type);
    ck_assert_uint_eq(ours.failed, 1);
    check_closed(0);
    domt_bed_end();
}

/* --- how long -------------------------------------------------------------------------------- */

DOMT_TEST(conversation_that_never_ends_is_cut_by_the_idle_time)
{
    for (int pressed = 0; pressed < 2; pressed++) {
        begin_channel(&serving);
        send_and_finish("k");
        if (pressed != 0)
            domi_io_set_pressure(&bed->io,
                                 &(domi_io_pressure){.spares = true, .queue_max = UINT64_MAX});
        pass_ms(40);
        hold_open();
        pass_ms(20);
        check_closed(-ETIMEDOUT);
        domi_io_set_pressure(&bed->io, &(domi_io_pressure){.queue_max = UINT64_MAX});
        domt_bed_end();
    }
}

DOMT_TEST(reset_ends_the_wait_and_cancels_the_conversation)
{
    begin_channel(&serving);
    send_and_finish("3");
    domi_channel_end(ours.channel, -EPROTO, true);
    check_closed(-EPROTO);
    ck_assert_uint_eq(ours.answers, 1);
    ck_assert_uint_eq(ours.failed, 1);
    ck_assert_uint_eq(bed->manager.births.houses, 2); /* the bed's own actor and the server */
    domt_bed_end();
}

/* The slot of the channel, and perhaps its memory, belongs to another one when the conversation
 * ends. */
DOMT_TEST(conversation_of_a_channel_that_is_gone_does_not_count_for_the_next)
{
    begin_channel(&going_on);
    send_and_finish("9k");
    uint32_t slot = ours.channel->slot;
    domi_channel_end(ours.channel, -EPROTO, true);
    check_closed(-EPROTO);
    ours.closes = 0;
    fd = domt_bed_connect_to(actor, &peer);
    ck_assert_uint_eq(ours.channel->slot, slot);
    send_and_finish("k");
    /* cancels the newest conversation, which is this channel's own */
    send_notice(domi_house_address(ours.channel->house), &cancel_type);
    check_closed(0);

    ours.closes = 0;
    fd = domt_bed_connect_to(actor, &peer);
    ck_assert_uint_eq(ours.channel->slot, slot);
    send_and_finish("k");
    pass_ms(12); /* conversation 9 has ended, which another channel's bytes began */
    ck_assert_uint_eq(ours.answers, 2);
    hold_open();
    domt_bed_end();
}

DOMT_TEST(actor_that_stops_does_not_wait)
{
    begin_channel(&serving);
    send_and_finish("k");
    ck_assert_int_eq(domi_house_stop(&bed->manager, actor), 0);
    check_closed(0);
    ck_assert_uint_eq(ours.failed, 1);
    ck_assert_uint_eq(bed->manager.births.houses, 1); /* the bed's own actor */
    domt_bed_end();
}

DOMT_TEST(drain_waits_for_the_conversations_of_its_channels)
{
    begin_channel(&serving);
    send_and_finish("36");
    domi_io_drain(&bed->io);
    pass_ms(4);
    expect_wire("3");
    hold_open();
    pass_ms(4);
    expect_wire("6");
    check_closed(0);
    domt_bed_end();
}

/* In a drain the channel is closed by its own conversations, whatever the actor does besides. */
DOMT_TEST(drain_does_not_wait_for_the_conversations_of_others)
{
    begin_channel(&serving);
    send_and_finish("3");
    send_notice(actor, &sleep_type);
    domi_io_drain(&bed->io);
    pass_ms(5);
    expect_wire("3");
    check_closed(0);
    domt_bed_end();
}

DOMT_SUITE(30)
