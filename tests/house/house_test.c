/* house/message/house.c: the cache lines of a house, and the table of its six states (M5).
 * house/message/queue.h: a queue of houses has two levels. No entry is missing in the tables of
 * kinds and of doors. */
#include "house/message/doors.h"
#include "house/message/house.h"
#include "house/message/kind.h"
#include "house/message/queue.h"
#include "tests/support/death.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

/* Whether the drawing of the six states (M5) has this arrow; it is written out a second time so
 * that the table cannot change unseen. */
static bool may_move(domi_state from, domi_state to)
{
    switch (from) {
    case DOMI_CREATED:
        return to == DOMI_MOUNTING;
    case DOMI_MOUNTING:
        return to == DOMI_WAITING || to == DOMI_CREATED;
    case DOMI_WAITING:
        return to == DOMI_READY;
    case DOMI_READY:
        return to == DOMI_SCHEDULED;
    case DOMI_SCHEDULED:
        return to == DOMI_RUNNING;
    case DOMI_RUNNING:
        return to == DOMI_WAITING || to == DOMI_READY || to == DOMI_CREATED;
    case DOMI_STATES:
        break;
    }
    return false;
}

struct move {
    domi_state from, to;
};

static void make_move(void *move_)
{
    const struct move *move = move_;
    domi_house house = {.state = (uint8_t)move->from};

    domi_house_move(&house, move->to);
}

DOMT_TEST(m5_allowed_moves_pass)
{
    unsigned allowed = 0;

    for (unsigned from = 0; from < DOMI_STATES; from++) {
        for (unsigned to = 0; to < DOMI_STATES; to++) {
            if (!may_move((domi_state)from, (domi_state)to))
                continue;
            domi_house house = {.state = (uint8_t)from};
            domi_house_move(&house, (domi_state)to);
            ck_assert_uint_eq(house.state, to);
            allowed++;
        }
    }
    ck_assert_uint_eq(allowed, 9);
}

DOMT_TEST(m5_every_forbidden_move_aborts_and_names_both_states)
{
    char expected[64];
    unsigned forbidden = 0;

    for (unsigned from = 0; from < DOMI_STATES; from++) {
        for (unsigned to = 0; to < DOMI_STATES; to++) {
            struct move move = {(domi_state)from, (domi_state)to};
            if (may_move(move.from, move.to))
                continue;
            snprintf(expected, sizeof expected, "from %s to %s", domi_state_name(move.from),
                     domi_state_name(move.to));
            domt_dies(make_move, &move, expected);
            forbidden++;
        }
    }
    ck_assert_uint_eq(forbidden, 27);
}

DOMT_TEST(state_names_are_those_of_the_drawing)
{
    ck_assert_str_eq(domi_state_name(DOMI_CREATED), "CREATED");
    ck_assert_str_eq(domi_state_name(DOMI_MOUNTING), "MOUNTING");
    ck_assert_str_eq(domi_state_name(DOMI_WAITING), "WAITING");
    ck_assert_str_eq(domi_state_name(DOMI_READY), "READY");
    ck_assert_str_eq(domi_state_name(DOMI_SCHEDULED), "SCHEDULED");
    ck_assert_str_eq(domi_state_name(DOMI_RUNNING), "RUNNING");
    ck_assert_str_eq(domi_state_name(DOMI_STATES), "?");
}

DOMT_TEST(house_is_three_lines_with_16_bytes_of_state)
{
    ck_assert_uint_eq(sizeof(domi_house), 192);
    ck_assert_uint_eq(alignof(domi_house), 64);
    ck_assert_uint_eq(sizeof(domi_house) - offsetof(domi_house, room),
                      sizeof(void *) == 8 ? 16 : 32);
    /* a state of any alignment can begin here */
    ck_assert_uint_eq(offsetof(domi_house, room) % 16, 0);
}

DOMT_TEST(house_keeps_senders_runner_and_rest_on_lines_of_their_own)
{
    ck_assert_uint_lt(offsetof(domi_house, inbox), 64);
    ck_assert_uint_lt(offsetof(domi_house, arrival_next), 64);
    ck_assert_uint_lt(offsetof(domi_house, life), 64);
    ck_assert_uint_lt(offsetof(domi_house, home), 64);
    ck_assert_uint_lt(offsetof(domi_house, behaviour), 64);
    ck_assert_uint_lt(offsetof(domi_house, self), 64);
    ck_assert_uint_lt(offsetof(domi_house, node), 64);
    ck_assert_uint_eq(offsetof(domi_house, state), 64);
    ck_assert_uint_lt(offsetof(domi_house, marks), 128);
    ck_assert_uint_lt(offsetof(domi_house, mail), 128);
    ck_assert_uint_lt(offsetof(domi_house, next), 128);
    ck_assert_uint_lt(offsetof(domi_house, tails), 128);
    ck_assert_uint_lt(offsetof(domi_house, events), 128);
    ck_assert_uint_eq(offsetof(domi_house, asks), 128);
}

DOMT_TEST(list_is_first_in_first_out)
{
    domi_node nodes[5];
    domi_node *tail = NULL;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            domi_list_push(&tail, &nodes[i]);
        ck_assert_ptr_eq(domi_list_take(&tail), &nodes[0]);
        domi_list_push(&tail, &nodes[3]);
        domi_list_push(&tail, &nodes[4]);
        for (int i = 1; i < 5; i++)
            ck_assert_ptr_eq(domi_list_take(&tail), &nodes[i]);
        ck_assert_ptr_null(tail);
    }
}

DOMT_TEST(mail_that_may_not_run_does_not_make_a_house_ready)
{
    domi_node node;
    domi_house house = {.mail = 1};

    domi_list_push(&house.tails[DOMI_ASK], &node);
    ck_assert(domi_house_is_runnable(&house));
    ck_assert(!domi_house_is_runnable(&(domi_house){0}));
    house.marks = DOMI_MARK_BARRIER; /* M7 */
    ck_assert(!domi_house_is_runnable(&house));
    house.marks = DOMI_MARK_SATURATED;
    ck_assert(!domi_house_is_runnable(&house));
    for (uint32_t kind = 0; kind < DOMI_MAILBOXES; kind++) {
        domi_node other;
        if (kind == DOMI_ASK || kind == DOMI_NOTICE)
            continue;
        domi_list_push(&house.tails[kind], &other);
        ck_assert(domi_house_is_runnable(&house));
        (void)domi_list_take(&house.tails[kind]);
        ck_assert(!domi_house_is_runnable(&house));
    }
    /* Channels begin conversations as well: they wait at conversations_max, but not in a
     * barrier. */
    house.marks |= DOMI_MARK_CHANNELS;
    ck_assert(!domi_house_is_runnable(&house));
    house.marks = DOMI_MARK_CHANNELS | DOMI_MARK_BARRIER;
    ck_assert(domi_house_is_runnable(&house));
}

/* --- queues of houses ------------------------------------------------------------------------- */

#define HOUSES 64

static domi_house houses[HOUSES];

static domi_house *make_high(unsigned index)
{
    houses[index].asks = 0;
    return &houses[index];
}

static domi_house *make_normal(unsigned index)
{
    houses[index].asks = 1;
    return &houses[index];
}

static bool is_high(uint32_t asks, uint32_t replies, uint32_t events)
{
    domi_house house = {.asks = asks, .replies = replies, .events = events * DOMI_EVENT_STEP};

    return domi_house_is_high(&house);
}

DOMT_TEST(fifo_is_first_in_first_out)
{
    domi_fifo fifo = {NULL, NULL};

    ck_assert_ptr_null(domi_fifo_take(&fifo));
    for (int round = 0; round < 3; round++) {
        domi_fifo_put(&fifo, &houses[0]);
        domi_fifo_put(&fifo, &houses[1]);
        ck_assert_ptr_eq(domi_fifo_take(&fifo), &houses[0]);
        domi_fifo_put(&fifo, &houses[2]);
        ck_assert_ptr_eq(domi_fifo_take(&fifo), &houses[1]);
        ck_assert_ptr_eq(domi_fifo_take(&fifo), &houses[2]);
        ck_assert_ptr_null(domi_fifo_take(&fifo));
    }
}

DOMT_TEST(priority_is_high_by_replies_events_or_no_ask)
{
    ck_assert(is_high(0, 0, 0));
    ck_assert(!is_high(1, 0, 0));
    ck_assert(!is_high(1, 2, 4));
    ck_assert(is_high(1, 3, 0));
    ck_assert(is_high(1, 0, 5));
    ck_assert(is_high(1000, 3, 0));
    ck_assert(is_high(1000, 0, 5));
    ck_assert(!is_high(1000, 2, 4));
}

DOMT_TEST(queue_takes_a_normal_one_every_4th_time_while_both_wait)
{
    domi_queue queue = {.normal_every = 4};
    char order[HOUSES + 1] = {0};

    for (unsigned i = 0; i < 24; i++)
        domi_queue_put(&queue, make_high(i));
    for (unsigned i = 24; i < 30; i++)
        domi_queue_put(&queue, make_normal(i));
    ck_assert_uint_eq(queue.count, 30);
    for (unsigned i = 0; i < 30; i++)
        order[i] = domi_queue_take(&queue)->asks == 0 ? 'h' : 'n';
    ck_assert_str_eq(order, "hhhnhhhnhhhnhhhnhhhnhhhnhhhhhh");
    ck_assert_uint_eq(queue.count, 0);
    ck_assert_ptr_null(domi_queue_take(&queue));
}

DOMT_TEST(queue_takes_a_normal_one_as_often_as_it_is_told)
{
    static const char *const orders[] = {"hnhnhn", "hhnhnn", "hhhnnn"};
    static const uint32_t every[] = {2, 3, 65536};

    for (unsigned i = 0; i < 3; i++) {
        domi_queue queue = {.normal_every = every[i]};
        char order[7] = "";

        for (unsigned house = 0; house < 3; house++) {
            domi_queue_put(&queue, make_high(house));
            domi_queue_put(&queue, make_normal(3 + house));
        }
        for (unsigned take = 0; take < 6; take++)
            order[take] = domi_queue_take(&queue)->asks == 0 ? 'h' : 'n';
        ck_assert_str_eq(order, orders[i]);
    }
}

DOMT_TEST(queue_of_one_level_is_first_in_first_out)
{
    domi_queue queue = {.normal_every = 4};

    for (unsigned level = 0; level < 2; level++) {
        for (unsigned i = 0; i < HOUSES; i++)
            domi_queue_put(&queue, level == 0 ? make_high(i) : make_normal(i));
        for (unsigned i = 0; i < HOUSES; i++)
            ck_assert_ptr_eq(domi_queue_take(&queue), &houses[i]);
        ck_assert_ptr_null(domi_queue_take(&queue));
    }
    ck_assert_uint_eq(queue.high_takes, 0); /* a take from one level alone is not counted */
}

/* A middleman, always with a promise pending, waits among any number of others for at most 4
 * runs. */
DOMT_TEST(queue_starves_nobody)
{
    domi_queue queue = {.normal_every = 4};
    unsigned distance = 0;
    unsigned worst = 0;

    for (unsigned i = 0; i < 32; i++)
        domi_queue_put(&queue, make_high(i));
    domi_queue_put(&queue, make_normal(32));
    for (int i = 0; i < 10000; i++) {
        domi_house *house = domi_queue_take(&queue);
        distance = house == &houses[32] ? 0 : distance + 1;
        worst = distance > worst ? distance : worst;
        domi_queue_put(&queue, house);
    }
    ck_assert_uint_eq(worst, 3);
}

DOMT_TEST(priority_is_sampled_when_queued_and_not_changed_while_queued)
{
    domi_queue queue = {.normal_every = 4};

    domi_queue_put(&queue, make_normal(0));
    domi_queue_put(&queue, make_high(1));
    domi_queue_put(&queue, make_high(2));
    houses[0].asks = 0; /* this house is high by now, but it stands where it was put */
    houses[1].asks = 1;
    ck_assert_ptr_eq(domi_queue_take(&queue), &houses[1]);
    ck_assert_ptr_eq(domi_queue_take(&queue), &houses[2]);
    ck_assert_ptr_eq(domi_queue_take(&queue), &houses[0]);

    domi_queue_put(&queue, &houses[1]); /* the level is computed anew: the house is normal now */
    domi_queue_put(&queue, &houses[0]);
    ck_assert_ptr_eq(domi_queue_take(&queue), &houses[0]);
    ck_assert_ptr_eq(domi_queue_take(&queue), &houses[1]);
}

/* --- tables ----------------------------------------------------------------------------------- */

typedef void entry(void);

/* Each slot of a row is a pointer to a function, so a row is read as an array of pointers. */
static bool is_filled(const void *row, size_t slot)
{
    entry *at = NULL;

    memcpy(&at, (const char *)row + slot * sizeof at, sizeof at);
    return at != NULL;
}

#define SLOTS(type) (sizeof(type) / sizeof(entry *))

DOMT_TEST(each_kind_has_each_slot)
{
    for (uint32_t slab = 0; slab < DOMI_SLAB_KINDS; slab++) {
        for (size_t slot = 0; slot < SLOTS(domi_kind); slot++) {
            ck_assert_msg(is_filled(&domi_kinds[slab], slot),
                          "house/dispatch/kinds.c: slot %zu of kind %u is empty", slot, slab);
        }
    }
}

DOMT_TEST(each_door_leads_somewhere)
{
    for (size_t slot = 0; slot < SLOTS(struct domi_doors); slot++) {
        ck_assert_msg(is_filled(&domi_doors, slot), "house/dispatch/kinds.c: door %zu is empty",
                      slot);
    }
}

DOMT_TEST(the_test_sees_an_empty_slot)
{
    domi_kind row = domi_kinds[DOMI_SLAB_WATCH];

    row.cancel = NULL;
    ck_assert(!is_filled(&row, SLOTS(domi_kind) - 1));
}

DOMT_SUITE(60)
