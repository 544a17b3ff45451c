/* wslay is the peer of the stage of WebSocket, in both roles: each side receives what the other one
 * sends, and the reason of a refusal. A program that was built without wslay compares nothing. */
#include "tests/http/talk.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

#ifdef DOMT_WSLAY
#include <wslay/wslay.h>

#define SEEDS      200u
#define STEPS_MOST 100000u
/* length of the longest reason that wslay sends; the RFC allows one byte more */
#define REASON_MAX 122u

/* The lengths at which the size of the frame header changes, and the longest message that the stage
 * accepts. */
static const size_t edges[] = {0, 125, 126, 65535, 65536, 1u << 20};
static unsigned edges_sent[sizeof edges / sizeof *edges];

static size_t choose_random_size(void)
{
    size_t edge;

    if (domt_talk_draw_number_below(600) == 0)
        edge = 5;
    else if (domt_talk_draw_number_below(20) == 0)
        edge = 3 + domt_talk_draw_number_below(2);
    else if (domt_talk_draw_number_below(4) == 0)
        edge = domt_talk_draw_number_below(3);
    else
        return domt_talk_draw_number_below(3000);
    edges_sent[edge]++;
    return edges[edge];
}

static void send_random_message_or_ping(bool by_us)
{
    bool pings = domt_talk_draw_number_below(4) == 0;
    domt_row *to = by_us ? (pings ? &domt_talk_now.pings_of_us : &domt_talk_now.from_us)
                         : (pings ? &domt_talk_now.pings_of_them : &domt_talk_now.from_them);
    domt_said *made = domt_talk_add_message(
        to, pings ? 'p' : "tb"[domt_talk_draw_number_below(2)],
        pings ? domt_talk_draw_number_below(DOMT_TALK_CONTROL_MAX + 1) : choose_random_size());

    if (by_us)
        domt_talk_send_by_stage(made);
    else
        domt_talk_send_by_wslay(made, domt_talk_draw_number_below(2) == 0);
}

static bool have_messages_of_row_arrived(const domt_row *of)
{
    return of->heard == of->count;
}

static void carry_until_all_has_arrived(void)
{
    unsigned by_us = 0, by_them = 0;

    for (unsigned step = 0; by_us < DOMT_TALK_EACH || by_them < DOMT_TALK_EACH ||
                            !have_messages_of_row_arrived(&domt_talk_now.from_us) ||
                            !have_messages_of_row_arrived(&domt_talk_now.from_them) ||
                            !have_messages_of_row_arrived(&domt_talk_now.pings_of_us) ||
                            !have_messages_of_row_arrived(&domt_talk_now.pings_of_them);
         step++) {
        ck_assert_msg(step < STEPS_MOST, "seed %u: a message is lost",
                      (unsigned)domt_talk_now.seed);
        if (by_us < DOMT_TALK_EACH && domt_talk_draw_number_below(20) == 0) {
            send_random_message_or_ping(true);
            by_us++;
        } else if (by_them < DOMT_TALK_EACH && domt_talk_draw_number_below(20) == 0) {
            send_random_message_or_ping(false);
            by_them++;
        }
        ck_assert_int_eq(domt_talk_deliver_some_bytes(), 0);
    }
}

/* Close from one side, and check that both sides have the code, and that the other side has the
 * reason. */
static void close_and_check_both_sides(void)
{
    static const uint16_t codes[] = {0, 1000, 1001, 1011, 3000, 4999};
    domus_websocket_close close = {
        .code = codes[domt_talk_draw_number_below(sizeof codes / sizeof *codes)]};
    unsigned code = close.code != 0 ? close.code : DOMUS_WEBSOCKET_NO_CODE;
    uint8_t reason[REASON_MAX + 1] = {0};
    size_t size = close.code != 0 ? domt_talk_draw_number_below(REASON_MAX + 1) : 0;
    bool by_us = domt_talk_draw_number_below(2) == 0;

    for (size_t at = 0; at < size; at++)
        reason[at] = (uint8_t)('a' + domt_talk_draw_number_below(26));
    if (by_us) {
        ck_assert_int_eq(domus_slice_copy(reason, size, &close.reason), 0);
        domt_talk_close_by_stage(&close);
        domus_slice_free(close.reason);
    } else {
        ck_assert_int_eq(wslay_event_queue_close(domt_talk_now.theirs, close.code, reason, size),
                         0);
    }
    for (unsigned step = 0; !domt_talk_now.at_us.heard || !domt_talk_now.at_them.heard; step++) {
        ck_assert_msg(step < STEPS_MOST, "seed %u: a close is lost", (unsigned)domt_talk_now.seed);
        ck_assert_int_eq(domt_talk_deliver_some_bytes(), 0);
    }
    ck_assert_uint_eq(domt_talk_now.at_us.code, code);
    ck_assert_uint_eq(domt_talk_now.at_them.code, code);
    ck_assert_str_eq(by_us ? domt_talk_now.at_them.reason : domt_talk_now.at_us.reason,
                     (const char *)reason);
}

static void check_conversations_of_seeds(domus_role role)
{
    const domus_websocket_options options = {.role = role, .pongs = true};

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        domt_talk_begin_with_wslay(seed, &options, role == DOMUS_ROLE_CLIENT);
        carry_until_all_has_arrived();
        close_and_check_both_sides();
        domt_talk_free_all();
    }
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        ck_assert_uint_gt(edges_sent[i], 0);
}

DOMT_TEST(server_and_wslay_hear_each_other)
{
    check_conversations_of_seeds(DOMUS_ROLE_SERVER);
}

DOMT_TEST(client_and_wslay_hear_each_other)
{
    check_conversations_of_seeds(DOMUS_ROLE_CLIENT);
}

/* --- refusals --------------------------------------------------------------------------------- */

static const domus_websocket_options narrow[] = {
    {.role = DOMUS_ROLE_SERVER, .message_max = 1000, .fragments_max = 4},
    {.role = DOMUS_ROLE_CLIENT, .message_max = 1000, .fragments_max = 4}};

/* Begin a conversation in which the stage will refuse a message from wslay. */
static domt_said *begin_talk_that_stage_refuses(size_t side, char kind, size_t size)
{
    domt_talk_begin_with_wslay(side, &narrow[side], side == 1);
    return domt_talk_add_message(&domt_talk_now.from_them, kind, size);
}

/* Carry bytes until wslay receives a close, and check its code, and that the stage has accepted no
 * message. */
static void carry_until_wslay_hears_refusal(unsigned code)
{
    for (unsigned step = 0; !domt_talk_now.at_them.heard; step++) {
        ck_assert_uint_lt(step, STEPS_MOST);
        (void)domt_talk_deliver_some_bytes();
    }
    ck_assert_uint_eq(domt_talk_now.at_them.code, code);
    ck_assert_uint_eq(domt_talk_now.from_them.heard, 0);
    domt_talk_free_all();
}

DOMT_TEST(wslay_hears_why_it_is_refused)
{
    for (size_t side = 0; side < 2; side++) {
        domt_said *sent = begin_talk_that_stage_refuses(side, 't', 100);
        sent->bytes[99] = 0xff;
        domt_talk_send_by_wslay(sent, side == 0);
        carry_until_wslay_hears_refusal(DOMUS_WEBSOCKET_INVALID_DATA);

        domt_talk_send_by_wslay(begin_talk_that_stage_refuses(side, 'b', 1001), false);
        carry_until_wslay_hears_refusal(DOMUS_WEBSOCKET_TOO_BIG);

        sent = begin_talk_that_stage_refuses(side, 'b', 1000);
        domt_talk_now.piece_max = 100;
        domt_talk_send_by_wslay(sent, true);
        carry_until_wslay_hears_refusal(DOMUS_WEBSOCKET_POLICY);

        sent = begin_talk_that_stage_refuses(side, 'b', 10);
        struct wslay_event_msg arg = {WSLAY_BINARY_FRAME, sent->bytes, sent->size};
        wslay_event_config_set_allowed_rsv_bits(domt_talk_now.theirs, WSLAY_RSV1_BIT);
        ck_assert_int_eq(wslay_event_queue_msg_ex(domt_talk_now.theirs, &arg, WSLAY_RSV1_BIT), 0);
        carry_until_wslay_hears_refusal(DOMUS_WEBSOCKET_PROTOCOL_ERROR);
    }
}

/* Two clients, or two servers: masks are missing, or present without need. */
DOMT_TEST(wslay_in_the_same_role_is_refused)
{
    for (size_t side = 0; side < 2; side++) {
        domt_talk_begin_with_wslay(side, &narrow[side], side == 0);
        domt_talk_send_by_wslay(domt_talk_add_message(&domt_talk_now.from_them, 't', 10), false);
        domt_talk_now.quota = SIZE_MAX;
        ck_assert_int_eq(wslay_event_send(domt_talk_now.theirs), 0);
        ck_assert_int_lt(
            domt_talk_decode_bytes_by_stage(domt_talk_now.to_us.bytes, domt_talk_now.to_us.size),
            0);
        ck_assert_uint_eq(domt_talk_now.to_them.bytes[0], 0x88);
        /* place of the code in the close frame, behind the head and a client's mask */
        size_t at = side == 1 ? 6 : 2;
        ck_assert_uint_eq(domt_talk_now.to_them.size, at + 2);
        uint8_t mask[2] = {0};
        if (side == 1)
            memcpy(mask, domt_talk_now.to_them.bytes + 2, 2);
        ck_assert_uint_eq((unsigned)(domt_talk_now.to_them.bytes[at] ^ mask[0]) << 8 |
                              (unsigned)(domt_talk_now.to_them.bytes[at + 1] ^ mask[1]),
                          DOMUS_WEBSOCKET_PROTOCOL_ERROR);
        domt_talk_free_all();
    }
}

DOMT_TEST(stage_hears_why_wslay_refuses)
{
    for (size_t side = 0; side < 2; side++) {
        domt_talk_begin_with_wslay(side, &narrow[side], side == 1);
        wslay_event_config_set_max_recv_msg_length(domt_talk_now.theirs, 1000);
        domt_talk_send_by_stage(domt_talk_add_message(&domt_talk_now.from_us, 'b', 1001));
        for (unsigned step = 0; !domt_talk_now.at_us.heard; step++) {
            ck_assert_uint_lt(step, STEPS_MOST);
            ck_assert_int_eq(domt_talk_deliver_some_bytes(), 0);
        }
        ck_assert_uint_eq(domt_talk_now.at_us.code, DOMUS_WEBSOCKET_TOO_BIG);
        domt_talk_free_all();
    }
}
#else
DOMT_TEST(without_wslay_nothing_is_compared)
{
    printf("no wslay: nothing is compared with it\n");
}
#endif

DOMT_SUITE(100)
