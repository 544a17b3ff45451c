/* io/channels/flush.c: the mailbox of a channel that has too much to send is full, senders are told
 * when there is room, and conversations wait until bytes have left. */
#include "base/siphash.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "io/channels/flush.h"
#include "io/channels/state.h"
#include "io/channels/table.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/supervise.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define HIGH 1000u
#define LOW  200u

static domus_address owner;
static domus_address stranger;
static domus_channel *channel;
static domus_address address; /* the address of the channel */
static int fd, peer;
static char heard[64]; /* a letter for each event that an actor was told of */
static int last;       /* result of the last verb, or error of the last answer */
static domus_conversation waiting;
static domus_conversation each[6]; /* conversations that wait, for a test to cancel */
static uint32_t each_count;

static const domus_type size_type = {.name = "size", .size = sizeof(uint32_t)};
static const domus_type flush_type = {.name = "flush", .size = sizeof(uint32_t)};
static const domus_type cancel_type = {.name = "cancel"};
static const domus_type cancel_one_type = {.name = "cancel one", .size = sizeof(uint32_t)};
static const domus_type room_please_type = {.name = "room, please"};

static void record_letter(char letter)
{
    size_t length = strlen(heard);

    ck_assert_uint_lt(length + 1, sizeof heard);
    heard[length] = letter;
    heard[length + 1] = '\0';
}

static void expect_recorded_letters(const char *expected)
{
    ck_assert_str_eq(heard, expected);
    heard[0] = '\0';
}

/* --- the actors ------------------------------------------------------------------------------- */

static int on_size_write_bytes(domus_stack *stack, void *self, const void *payload)
{
    domus_buffer *bytes = NULL;

    ck_assert_int_eq(domus_buffer_new(stack, *(const uint32_t *)payload, &bytes), 0);
    last = domus_channel_write(stack, channel, bytes);
    return 0;
}

/* Wait until only so many bytes are left to send, and record how the wait ended: 'f' or, with an
 * error, 'e'. */
DOMUS_SEQUENCE(wait_sent, uint32_t)
{
    DOMUS_BEGIN;
    *frame = *(const uint32_t *)message;
    ck_assert_int_eq(domus_conversation_of(stack, &waiting), 0);
    each[each_count++ % 6] = waiting;
    DOMUS_AWAIT(*frame == 0 ? domus_channel_flush(stack, channel, then)
                            : domus_channel_flush_to(stack, channel, *frame, then));
    ck_assert_ptr_null(answer->type);
    last = answer->error;
    record_letter(answer->error == 0 ? 'f' : 'e');
    DOMUS_END;
}

static int on_cancel_cancel_wait(domus_stack *stack, void *self, const void *payload)
{
    last = domus_cancel(stack, waiting);
    return 0;
}

static int on_number_cancel_one_of_six_waits(domus_stack *stack, void *self, const void *payload)
{
    return domus_cancel(stack, each[*(const uint32_t *)payload]);
}

static int on_request_watch_room_of_channel(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_watch_room(stack, address, NULL), 0);
    return 0;
}

static int on_room_record_letter(domus_stack *stack, void *self, const void *payload)
{
    record_letter(((const domus_down *)payload)->reason == 0 ? 'r' : 'g');
    return 0;
}

static const domus_on rows[] = {{&size_type, on_size_write_bytes, 0},
                                DOMUS_ON(&flush_type, wait_sent),
                                {&cancel_type, on_cancel_cancel_wait, 0},
                                {&room_please_type, on_request_watch_room_of_channel, 0},
                                {&domus_room_type, on_room_record_letter, 0},
                                {&cancel_one_type, on_number_cancel_one_of_six_waits, 0},
                                {NULL, NULL, 0}};

static const domus_behaviour line = {.name = "line", .kind = DOMUS_CHANNELS, .on = rows};
static const domus_behaviour owning = {
    .name = "owning", .kind = DOMUS_CHANNELS, .on = rows, .channel = &line};

static void begin_channel(void)
{
    heard[0] = '\0';
    bed->config.channel.send_high_bytes = HIGH;
    bed->config.channel.send_low_bytes = LOW;
    domt_bed_start();
    owner = domt_bed_spawn_actor(&owning, NULL);
    stranger = domt_bed_spawn_actor(&owning, NULL);
    domt_bed_take_turn();
    fd = domt_bed_connect_to_actor(owner, &peer);
    channel = bed->io.slots[0].channel;
    ck_assert_ptr_nonnull(channel);
    address = domus_channel_address(channel);
}

/* Put a message of `kind` for an actor, and take a turn. Returns the result of the put. */
static int put_message_and_turn(domus_address to, const domus_type *type, uint32_t number,
                                uint32_t kind)
{
    int error = domt_bed_put_message(to, kind, type, &number);

    domt_bed_take_turn();
    return error;
}

static int put_notice_and_turn(domus_address to, const domus_type *type, uint32_t number)
{
    return put_message_and_turn(to, type, number, DOMI_NOTICE);
}

/* Let the owner write to the channel, so that the fullness of the channel's own mailbox does not
 * matter. */
static void let_owner_write_to_channel(uint32_t size)
{
    ck_assert_int_eq(put_notice_and_turn(owner, &size_type, size), 0);
    ck_assert_int_eq(last, 0);
}

static void complete_send_of_channel(int32_t size)
{
    domt_bed_complete_send(fd, size);
}

static bool is_mailbox_marked_full(void)
{
    return (domi_house_life_word(address.house) & DOMI_LIFE_FULL) != 0;
}

/* --- a full mailbox --------------------------------------------------------------------------- */

DOMT_TEST(mailbox_is_full_from_send_high_to_send_low)
{
    begin_channel();
    let_owner_write_to_channel(HIGH);
    ck_assert(!is_mailbox_marked_full());
    /* this notice fills the channel's mailbox, and is the last one that is taken */
    ck_assert_int_eq(put_notice_and_turn(address, &size_type, 600), 0);
    ck_assert(is_mailbox_marked_full());
    ck_assert_int_eq(put_notice_and_turn(address, &size_type, 1), -ENOBUFS);
    ck_assert_int_eq(put_message_and_turn(address, &size_type, 1, DOMI_ASK), -ENOBUFS);
    ck_assert_int_eq(put_message_and_turn(address, &size_type, 1, DOMI_EVENT), 0);
    ck_assert_uint_eq(channel->queued_bytes, HIGH + 601);
    ck_assert_uint_eq(domi_counter_read(&bed->manager.counters.refusals), 2);
    ck_assert_int_eq(put_notice_and_turn(stranger, &room_please_type, 0), 0);
    complete_send_of_channel(HIGH);
    complete_send_of_channel(600 - (int32_t)LOW);
    ck_assert_uint_eq(channel->queued_bytes, LOW + 1);
    ck_assert_int_eq(put_notice_and_turn(address, &size_type, 1), -ENOBUFS);
    expect_recorded_letters("");
    complete_send_of_channel(1);
    expect_recorded_letters("r");
    ck_assert(!is_mailbox_marked_full());
    ck_assert_int_eq(put_notice_and_turn(address, &size_type, 1), 0);
    ck_assert_uint_eq(channel->queued_bytes, LOW + 1);
    domt_bed_end();
}

/* A channel with too much to send that runs does not report room. */
DOMT_TEST(runs_of_a_full_channel_leave_it_full)
{
    begin_channel();
    let_owner_write_to_channel(2 * HIGH);
    ck_assert_int_eq(put_notice_and_turn(stranger, &room_please_type, 0), 0);
    ck_assert_int_eq(put_message_and_turn(address, &size_type, 1, DOMI_EVENT), 0);
    expect_recorded_letters("");
    ck_assert(is_mailbox_marked_full());
    complete_send_of_channel(2 * HIGH);
    expect_recorded_letters("r");
    domt_bed_end();
}

/* The wait for room ends with the actor, too, and bytes that were queued no longer make its mailbox
 * full. */
DOMT_TEST(wait_for_room_ends_with_the_connection)
{
    begin_channel();
    let_owner_write_to_channel(2 * HIGH);
    ck_assert_int_eq(put_notice_and_turn(stranger, &room_please_type, 0), 0);
    domi_channel_end_at_once(channel, -EPROTO, true);
    domt_fake_complete_send(bed->fake, fd, -ECONNRESET);
    domt_bed_settle();
    ck_assert(strcmp(heard, "r") == 0 || strcmp(heard, "g") == 0);
    ck_assert_int_eq(put_notice_and_turn(address, &size_type, 1), -ESTALE);
    domt_bed_end();
}

/* --- flush ------------------------------------------------------------------------------------ */

DOMT_TEST(flush_waits_for_what_was_queued_at_the_call)
{
    begin_channel();
    let_owner_write_to_channel(600);
    ck_assert_int_eq(put_notice_and_turn(address, &flush_type, 0), 0);
    let_owner_write_to_channel(300);
    complete_send_of_channel(599);
    expect_recorded_letters("");
    complete_send_of_channel(1);
    expect_recorded_letters("f");
    ck_assert_int_eq(last, 0);
    ck_assert_uint_eq(channel->queued_bytes, 300);
    domt_bed_end();
}

DOMT_TEST(flush_of_nothing_goes_on_at_once)
{
    begin_channel();
    ck_assert_int_eq(put_notice_and_turn(address, &flush_type, 0), 0);
    expect_recorded_letters("f");
    let_owner_write_to_channel(100);
    ck_assert_int_eq(put_notice_and_turn(address, &flush_type, 100), 0);
    expect_recorded_letters("f");
    ck_assert_int_eq(put_notice_and_turn(address, &flush_type, 99), 0);
    expect_recorded_letters("");
    complete_send_of_channel(1);
    expect_recorded_letters("f");
    domt_bed_end();
}

/* Waits end in the order of their bytes, whichever actor waits, and in whichever order they
 * began. */
DOMT_TEST(several_flushes_may_wait_for_one_channel)
{
    begin_channel();
    let_owner_write_to_channel(600);
    /* this conversation waits until 600 bytes have left */
    ck_assert_int_eq(put_notice_and_turn(address, &flush_type, 0), 0);
    /* this conversation waits until 100 bytes have left */
    ck_assert_int_eq(put_notice_and_turn(owner, &flush_type, 500), 0);
    /* this conversation waits until 300 bytes have left */
    ck_assert_int_eq(put_notice_and_turn(address, &flush_type, 300), 0);
    ck_assert_int_eq(put_notice_and_turn(owner, &flush_type, 0), 0); /* waits for 600 bytes */
    /* this conversation waits until 200 bytes have left */
    ck_assert_int_eq(put_notice_and_turn(owner, &flush_type, 400), 0);
    complete_send_of_channel(100);
    expect_recorded_letters("f");
    complete_send_of_channel(200);
    expect_recorded_letters("ff");
    complete_send_of_channel(299);
    expect_recorded_letters("");
    complete_send_of_channel(1);
    expect_recorded_letters("ff");
    ck_assert_ptr_null(channel->flushes);
    domt_bed_end();
}

DOMT_TEST(flush_that_is_cancelled_leaves_the_channel)
{
    static const uint32_t lefts[] = {500, 300, 0};

    /* cancels the first wait of the list, one in the middle, and the last one */
    for (uint32_t i = 0; i < 3; i++) {
        begin_channel();
        let_owner_write_to_channel(600);
        for (uint32_t k = 0; k < 3; k++)
            if (k != i)
                ck_assert_int_eq(put_notice_and_turn(address, &flush_type, lefts[k]), 0);
        ck_assert_int_eq(put_notice_and_turn(address, &flush_type, lefts[i]), 0);
        ck_assert_int_eq(put_notice_and_turn(address, &cancel_type, 0), 0);
        expect_recorded_letters("e");
        complete_send_of_channel(100);
        expect_recorded_letters(i == 0 ? "" : "f");
        complete_send_of_channel(500);
        expect_recorded_letters(i == 0 ? "ff" : "f");
        domt_bed_end();
    }
}

DOMT_TEST(flush_fails_with_the_error_of_the_channel)
{
    begin_channel();
    let_owner_write_to_channel(600);
    ck_assert_int_eq(put_notice_and_turn(address, &flush_type, 0), 0);
    ck_assert_int_eq(put_notice_and_turn(owner, &flush_type, 0), 0);
    domi_channel_end_at_once(channel, -EPROTO, true);
    domt_bed_take_turn();
    expect_recorded_letters("ee");
    ck_assert_int_eq(last, -EPROTO);
    /* the channel's slot is still in use, and the flush fails at once */
    ck_assert_int_eq(put_notice_and_turn(owner, &flush_type, 0), 0);
    expect_recorded_letters("e");
    ck_assert_int_eq(last, -EPROTO);
    domt_fake_complete_send(bed->fake, fd, -ECONNRESET);
    domt_bed_settle();
    domt_bed_end();
}

/* The owner stops while its conversation waits, and so does the channel. */
DOMT_TEST(flush_ends_with_the_actor_that_waits)
{
    begin_channel();
    let_owner_write_to_channel(600);
    ck_assert_int_eq(put_notice_and_turn(owner, &flush_type, 0), 0);
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, owner), 0);
    domt_bed_take_turn();
    expect_recorded_letters("e");
    ck_assert_int_eq(last, -ECANCELED);
    ck_assert_ptr_null(channel->flushes);
    (void)domi_io_end_all_open_channels(&bed->io);
    domt_fake_complete_send(bed->fake, fd, -ECONNRESET);
    domt_bed_end();
}

DOMT_TEST(actors_that_do_not_own_a_channel_may_not_flush_it)
{
    begin_channel();
    let_owner_write_to_channel(600);
    ck_assert_int_eq(put_notice_and_turn(stranger, &flush_type, 0), 0);
    expect_recorded_letters("");
    ck_assert_ptr_null(channel->flushes);
    ck_assert_uint_eq(domi_house_count_parked_conversations(stranger.house), 0);
    domt_bed_end();
}

/* Six conversations wait for one of five numbers of bytes each, begun in a random order, and some
 * are cancelled in another one. The others end when their bytes have left, and not before. */
DOMT_TEST(waits_for_a_flush_end_or_are_cancelled_in_any_order)
{
    const uint64_t hash[2] = {1, 2};

    for (uint32_t round = 0; round < 200; round++) {
        uint64_t bits[7];
        uint32_t left_bytes[6];
        bool is_cancelled[6] = {false};
        for (uint64_t i = 0; i < 7; i++) {
            const uint64_t words[2] = {round, i};
            bits[i] = domi_siphash(hash, words, sizeof words);
        }
        begin_channel();
        let_owner_write_to_channel(500);
        each_count = 0;
        for (uint32_t i = 0; i < 6; i++) {
            left_bytes[i] = (uint32_t)(bits[i] % 5) * 100;
            ck_assert_int_eq(put_notice_and_turn(owner, &flush_type, left_bytes[i]), 0);
        }
        for (uint32_t i = 0; i < 6; i++) {
            uint32_t one = (uint32_t)((bits[6] >> (i * 8) & 0xff) % 6);
            if (is_cancelled[one] || i % 2 == 0)
                continue;
            ck_assert_int_eq(put_notice_and_turn(owner, &cancel_one_type, one), 0);
            expect_recorded_letters("e");
            is_cancelled[one] = true;
        }
        for (uint32_t step = 4;; step--) {
            char expected[7] = "";
            uint32_t length = 0;
            complete_send_of_channel(100);
            for (uint32_t i = 0; i < 6; i++)
                if (left_bytes[i] == step * 100 && !is_cancelled[i])
                    expected[length++] = 'f';
            expect_recorded_letters(expected);
            if (step == 0)
                break;
        }
        ck_assert_ptr_null(channel->flushes);
        domt_bed_end();
    }
}

DOMT_SUITE(20)
