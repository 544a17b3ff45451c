/* Two links over a channel that loses, duplicates, delays and reorders batches, between sides that
 * give up at times. Messages come in order and once each; domi_link_end_session() counts every lost
 * one; asks end; and all goes on when the channel is good again. */
#include "base/random.h"
#include "protocols/cluster/link.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MS           UINT64_C(1000000)
#define SECOND       (1000 * MS)
#define MESSAGES_MAX 20000u
#define PACKETS_MAX  4096u
#define DOWN_NS      (2 * SECOND)

enum { SIDES = 2 };

/* A message of one side of the link. Every third message is an ask, which the other side
 * answers. */
typedef struct message {
    uint64_t batch;   /* number of the batch in which the message was last sent */
    uint64_t session; /* session of the message's sender */
    uint32_t taken;   /* number of times that the other side has received the message */
    bool may_be_lost; /* true: its sender gave up before the message was confirmed */
    bool is_ask, has_ended;
} message;

typedef struct side {
    domi_link link;
    message messages[MESSAGES_MAX];
    uint32_t sent;
    uint64_t next; /* least number that the next received message may have */
    uint64_t lost; /* number of lost messages, as domi_link_end_session() has counted them */
    uint64_t flush_ns, tick_ns, beat_ns;
} side;

typedef struct packet {
    domus_slice bytes;
    uint64_t at_ns;
    uint32_t to;
} packet;

static struct {
    side sides[SIDES];
    packet packets[PACKETS_MAX];
    uint32_t count;
    uint64_t now_ns;
    domi_random random;
    /* percentages of lost and of doubled batches, and the longest delay in ms */
    uint32_t loss, doubles, late_ms;
} world;

static uint64_t random_below(uint64_t below)
{
    return domi_random_below(&world.random, below);
}

/* --- the channel ------------------------------------------------------------------------------ */

static void put_or_lose_packet(uint32_t to, domus_slice bytes)
{
    if (world.count == PACKETS_MAX || random_below(100) < world.loss) {
        domus_slice_free(bytes);
        return;
    }
    world.packets[world.count++] =
        (packet){bytes, world.now_ns + MS / 2 + random_below(1 + world.late_ms * MS), to};
}

static void send_or_double_batch(uint32_t from, domus_slice bytes)
{
    domus_slice copy;

    if (random_below(100) < world.doubles && domus_slice_keep(bytes, &copy) == 0)
        put_or_lose_packet(1 - from, copy);
    put_or_lose_packet(1 - from, bytes);
}

static void flush_link_of_side(uint32_t i, bool probes)
{
    domus_slice batch;

    if (domi_link_get_next_batch(&world.sides[i].link, world.now_ns, probes, &batch) == 1)
        send_or_double_batch(i, batch);
    world.sides[i].flush_ns = UINT64_MAX;
}

static void plan_flush_of_side(uint32_t i)
{
    if (world.sides[i].flush_ns == UINT64_MAX)
        world.sides[i].flush_ns = world.now_ns + random_below(MS);
}

/* --- the part of a gateway -------------------------------------------------------------------- */

/* Add a message to the link of one side. Returns false if the link is broken. */
static bool send_envelope_from_side(uint32_t i, uint8_t kind, uint64_t id, bool is_ask)
{
    static unsigned char rest[3000];
    side *of = &world.sides[i];
    domi_wire_envelope envelope = {.kind = kind,
                                   .id = id,
                                   .time_ns = of->sent,
                                   .rest = rest,
                                   .rest_size = (uint32_t)random_below(sizeof rest)};

    ck_assert_uint_lt(of->sent, MESSAGES_MAX);
    int error = domi_link_add_envelope(&of->link, &envelope);
    if (error == -EHOSTDOWN)
        return false;
    ck_assert_int_eq(error, 0);
    of->messages[of->sent++] =
        (message){.batch = of->link.last + 1, .session = of->link.session, .is_ask = is_ask};
    if (domi_link_is_next_batch_full(&of->link))
        flush_link_of_side(i, false);
    plan_flush_of_side(i);
    return true;
}

static void break_link_of_side(uint32_t i, bool is_told)
{
    side *of = &world.sides[i];
    uint64_t confirmed = of->link.confirmed, session = of->link.session, unconfirmed = 0;

    for (uint32_t number = 0; number < of->sent; number++) {
        message *at = &of->messages[number];
        if (at->session == session && at->batch > confirmed) {
            at->may_be_lost = true;
            unconfirmed++;
        }
        at->has_ended |= at->is_ask; /* an ask that is under way fails when the link is given up */
    }
    uint64_t lost = domi_link_end_session(&of->link, is_told);
    ck_assert_uint_eq(lost, unconfirmed);
    ck_assert_uint_eq(of->link.queued_bytes, 0);
    of->lost += lost;
}

static void check_and_record_message(uint32_t i, const domi_wire_envelope *envelope)
{
    side *from = &world.sides[1 - i];
    side *to = &world.sides[i];
    uint64_t number = envelope->time_ns;

    ck_assert_uint_lt(number, from->sent);
    ck_assert_msg(number >= to->next, "message %llu comes behind %llu", (unsigned long long)number,
                  (unsigned long long)to->next);
    to->next = number + 1;
    ck_assert_uint_eq(from->messages[number].taken++, 0);
    if (envelope->kind == DOMI_TO_ASK)
        (void)send_envelope_from_side(i, DOMI_TO_REPLY, number, false);
    else if (envelope->kind == DOMI_TO_REPLY)
        to->messages[envelope->id].has_ended = true;
}

static void receive_batch_at_side(uint32_t i, domus_slice bytes)
{
    const unsigned char *data = (const unsigned char *)domus_slice_data(bytes);
    domi_wire_envelope envelope;
    domi_batch_foot foot;
    uint32_t at = 0;

    ck_assert(domi_batch_foot_read(data, bytes.size, &foot));
    domi_link_news news =
        domi_link_update_by_received_foot(&world.sides[i].link, &foot, world.now_ns);
    if (news.is_over)
        break_link_of_side(i, true);
    while (news.takes && at < bytes.size - DOMI_BATCH_FOOT) {
        ck_assert(domi_envelope_read(data, bytes.size - DOMI_BATCH_FOOT, &at, &envelope));
        check_and_record_message(i, &envelope);
    }
    plan_flush_of_side(i);
}

static void send_owed_and_resent_batches_of_side(uint32_t i)
{
    domi_link *link = &world.sides[i].link;
    uint64_t cursor = 0;
    domus_slice batch;

    if (link->owed != 0) {
        link->owes = true;
        flush_link_of_side(i, false);
    }
    while (domi_link_get_batch_to_resend(link, world.now_ns, false, &cursor, &batch) == 1)
        send_or_double_batch(i, batch);
    world.sides[i].tick_ns = world.now_ns + 20 * MS;
}

static void send_heartbeat_or_break_link(uint32_t i)
{
    const domi_link *link = &world.sides[i].link;

    if (link->waits_ns != 0 && world.now_ns - link->waits_ns > DOWN_NS)
        break_link_of_side(i, false);
    flush_link_of_side(i, true);
    world.sides[i].beat_ns = world.now_ns + 500 * MS;
}

/* --- time ------------------------------------------------------------------------------------- */

/* Deliver all batches that are due, in the order of their times. */
static void deliver_due_packets(void)
{
    for (;;) {
        uint32_t first = world.count;
        for (uint32_t i = 0; i < world.count; i++) {
            if (world.packets[i].at_ns <= world.now_ns &&
                (first == world.count || world.packets[i].at_ns < world.packets[first].at_ns))
                first = i;
        }
        if (first == world.count)
            return;
        packet came = world.packets[first];
        world.packets[first] = world.packets[--world.count];
        receive_batch_at_side(came.to, came.bytes);
        domus_slice_free(came.bytes);
    }
}

static void advance_one_ms(void)
{
    world.now_ns += MS / 2;
    deliver_due_packets();
    for (uint32_t i = 0; i < SIDES; i++) {
        if (world.sides[i].flush_ns <= world.now_ns)
            flush_link_of_side(i, false);
        if (world.sides[i].tick_ns <= world.now_ns)
            send_owed_and_resent_batches_of_side(i);
        if (world.sides[i].beat_ns <= world.now_ns)
            send_heartbeat_or_break_link(i);
    }
}

static void advance_with_random_messages(uint64_t time_ns, bool talks)
{
    for (uint64_t until_ns = world.now_ns + time_ns; world.now_ns < until_ns;) {
        advance_one_ms();
        uint32_t i = (uint32_t)random_below(SIDES);
        bool is_ask = random_below(3) == 0;
        if (talks && random_below(8) == 0)
            (void)send_envelope_from_side(i, is_ask ? DOMI_TO_ASK : DOMI_TO_NOTICE, 0, is_ask);
    }
}

static void set_up_sides_of_link(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    domi_random_init(&world.random, seed);
    world.now_ns = SECOND;
    for (uint32_t i = 0; i < SIDES; i++) {
        domi_link_init(&world.sides[i].link, i + 1, 2 - i, 0);
        world.sides[i].flush_ns = UINT64_MAX;
    }
}

static void make_channel_good(void)
{
    world.loss = world.doubles = world.late_ms = 0;
}

static void free_packets_and_links(void)
{
    while (world.count > 0)
        domus_slice_free(world.packets[--world.count].bytes);
    for (uint32_t i = 0; i < SIDES; i++)
        domi_link_fini(&world.sides[i].link);
}

/* --- what has to hold ------------------------------------------------------------------------- */

static void check_messages_are_settled(uint64_t seed)
{
    for (uint32_t i = 0; i < SIDES; i++) {
        const side *of = &world.sides[i];
        for (uint32_t number = 0; number < of->sent; number++) {
            const message *at = &of->messages[number];
            ck_assert_msg(at->taken == 1 || at->may_be_lost,
                          "seed %llu: message %u of side %u is lost in silence",
                          (unsigned long long)seed, number, i);
            ck_assert_msg(!at->is_ask || at->has_ended, "seed %llu: ask %u of side %u does not end",
                          (unsigned long long)seed, number, i);
        }
        ck_assert_uint_eq(of->link.waits_ns, 0);
        ck_assert_uint_eq(of->link.queued_bytes, 0);
    }
}

/* Check that over a good channel no further message is lost, and each message comes. */
static void check_link_still_delivers(uint64_t seed)
{
    uint64_t lost = world.sides[0].lost + world.sides[1].lost;

    for (uint32_t i = 0; i < SIDES; i++) {
        ck_assert(send_envelope_from_side(i, DOMI_TO_NOTICE, 0, false));
        ck_assert(send_envelope_from_side(i, DOMI_TO_ASK, 0, true));
    }
    advance_with_random_messages(500 * MS, false);
    for (uint32_t i = 0; i < SIDES; i++) {
        const side *of = &world.sides[i];
        ck_assert_msg(of->messages[of->sent - 1].taken == 1,
                      "seed %llu: side %u is not heard any more", (unsigned long long)seed, i);
    }
    ck_assert_uint_eq(world.sides[0].lost + world.sides[1].lost, lost);
    check_messages_are_settled(seed);
}

DOMT_TEST(no_message_is_lost_without_faults)
{
    set_up_sides_of_link(1);
    advance_with_random_messages(3 * SECOND, true);
    advance_with_random_messages(SECOND, false);
    check_messages_are_settled(1);
    ck_assert_uint_gt(world.sides[0].sent, 200);
    ck_assert_uint_eq(world.sides[0].lost + world.sides[1].lost, 0);
    free_packets_and_links();
}

DOMT_TEST(what_a_bad_channel_loses_is_sent_again)
{
    for (uint64_t seed = 1; seed <= domt_tenfold_if_tests_are_long(30); seed++) {
        set_up_sides_of_link(seed);
        world.loss = (uint32_t)random_below(30);
        world.doubles = (uint32_t)random_below(30);
        world.late_ms = (uint32_t)random_below(50);
        advance_with_random_messages(3 * SECOND, true);
        make_channel_good();
        advance_with_random_messages(8 * SECOND, false);
        check_messages_are_settled(seed);
        check_link_still_delivers(seed);
        free_packets_and_links();
    }
}

DOMT_TEST(sides_that_gave_their_link_up_agree_again)
{
    for (uint64_t seed = 1; seed <= domt_tenfold_if_tests_are_long(60); seed++) {
        set_up_sides_of_link(seed);
        for (uint32_t round = 0; round < 6; round++) {
            world.loss = random_below(3) == 0 ? 100 : (uint32_t)random_below(40);
            world.doubles = (uint32_t)random_below(30);
            world.late_ms = (uint32_t)random_below(200);
            advance_with_random_messages(random_below(SECOND), true);
            uint64_t who = random_below(4);
            if (who == 0 || who == 2)
                break_link_of_side(0, false);
            if (who == 1 || who == 2)
                break_link_of_side(1, false);
            advance_with_random_messages(random_below(100 * MS), true);
        }
        make_channel_good();
        advance_with_random_messages(10 * SECOND, false);
        check_messages_are_settled(seed);
        check_link_still_delivers(seed);
        free_packets_and_links();
    }
}

/* A batch of an old session comes late. The answer that the session is over travels in a batch with
 * a message, which has to be received now, or when the batch is sent again. */
DOMT_TEST(batch_that_tells_the_end_of_a_session_is_taken)
{
    domus_slice late;

    for (uint32_t loss = 0; loss <= 100; loss += 100) {
        set_up_sides_of_link(1);
        ck_assert(send_envelope_from_side(1, DOMI_TO_NOTICE, 0, false));
        while (world.count == 0)
            advance_one_ms();
        ck_assert_int_eq(domus_slice_keep(world.packets[0].bytes, &late), 0);
        advance_with_random_messages(200 * MS, false);
        break_link_of_side(0, false);
        advance_with_random_messages(2 * SECOND, false);
        put_or_lose_packet(0, late);
        while (!world.sides[0].link.resets)
            advance_one_ms();
        ck_assert(send_envelope_from_side(0, DOMI_TO_NOTICE, 0, false));
        world.loss = loss;
        advance_with_random_messages(10 * MS, false);
        world.loss = 0;
        advance_with_random_messages(SECOND, false);
        ck_assert_uint_eq(world.sides[0].messages[0].taken, 1);
        check_messages_are_settled(1);
        free_packets_and_links();
    }
}

/* An ask of a new session is not answered within a session that its asker regards as over. */
DOMT_TEST(ask_of_a_new_session_is_answered)
{
    set_up_sides_of_link(1);
    ck_assert(send_envelope_from_side(1, DOMI_TO_NOTICE, 0, false));
    advance_with_random_messages(200 * MS, false);
    break_link_of_side(0, false);
    while (!send_envelope_from_side(0, DOMI_TO_ASK, 0, true))
        advance_one_ms();
    advance_with_random_messages(SECOND, false);
    check_messages_are_settled(1);
    ck_assert_uint_eq(world.sides[1].sent, 2);
    ck_assert_uint_eq(world.sides[0].messages[0].taken, 1);
    ck_assert_uint_eq(world.sides[1].messages[1].taken, 1);
    free_packets_and_links();
}

/* Add a notice to a link. Returns the error of domi_link_add_envelope(). */
static int error_of_added_notice(domi_link *link)
{
    const domi_wire_envelope envelope = {.kind = DOMI_TO_NOTICE};

    return domi_link_add_envelope(link, &envelope);
}

/* When memory for a batch is missing, the link refuses every message until it is given up, and then
 * counts all lost messages. */
DOMT_TEST(link_that_lost_a_batch_for_want_of_memory_is_given_up)
{
    for (uint32_t at_flush = 0; at_flush < 2; at_flush++) {
        domi_link link;
        domus_slice batch;
        domi_link_init(&link, 1, 2, 0);
        ck_assert_int_eq(error_of_added_notice(&link), 0);
        ck_assert_int_eq(domi_link_get_next_batch(&link, 1, false, &batch), 1);
        domus_slice_free(batch);
        ck_assert_int_eq(error_of_added_notice(&link), 0);
        ck_assert_int_eq(error_of_added_notice(&link), 0);
        link.next.error = -ENOMEM;
        ck_assert_int_eq(at_flush ? domi_link_get_next_batch(&link, 2, false, &batch)
                                  : error_of_added_notice(&link),
                         -ENOMEM);
        ck_assert(link.is_torn);
        ck_assert_int_eq(error_of_added_notice(&link), -ENOMEM);
        ck_assert_int_eq(domi_link_get_next_batch(&link, 3, false, &batch), 0);
        ck_assert_uint_eq(domi_link_end_session(&link, false), 3);
        ck_assert_uint_eq(link.queued_bytes, 0);
        ck_assert_int_eq(error_of_added_notice(&link), 0);
        ck_assert_uint_eq(domi_link_end_session(&link, false), 1);
        domi_link_fini(&link);
    }
}

/* When memory for the first envelope is missing, that envelope is refused, and nothing else is
 * lost. */
DOMT_TEST(link_whose_first_envelope_had_no_memory_goes_on)
{
    domi_link link;

    domi_link_init(&link, 1, 2, 0);
    link.next.error = -ENOMEM;
    ck_assert_int_eq(error_of_added_notice(&link), -ENOMEM);
    ck_assert(!link.is_torn);
    ck_assert_int_eq(error_of_added_notice(&link), 0);
    domi_link_mark_torn(&link);
    ck_assert_int_eq(error_of_added_notice(&link), -ENOMEM);
    link.their_session = 1;
    ck_assert_uint_eq(domi_link_end_session(&link, false), 1);
    domi_link_mark_torn(&link); /* the link was already given up, so tearing it changes nothing */
    ck_assert(link.is_broken && !link.is_torn);
    domi_link_fini(&link);
}

DOMT_SUITE(60)
