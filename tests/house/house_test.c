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

/* Returns whether the drawing of a house's six states (M5) has this arrow; the arrows are written
 * out here a second time, so that the table of moves cannot change unseen. */
static bool is_arrow_of_drawing(domi_state from, domi_state to)
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

static void move_house_by_table(void *move_)
{
    const struct move *move = move_;
    domi_house house = {.state = (uint8_t)move->from};

    domi_house_change_state(&house, move->to);
}

DOMT_TEST(m5_allowed_moves_of_a_house_pass)
{
    unsigned allowed = 0;

    for (unsigned from = 0; from < DOMI_STATES; from++) {
        for (unsigned to = 0; to < DOMI_STATES; to++) {
            if (!is_arrow_of_drawing((domi_state)from, (domi_state)to))
                continue;
            domi_house house = {.state = (uint8_t)from};
            domi_house_change_state(&house, (domi_state)to);
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
            if (is_arrow_of_drawing(move.from, move.to))
                continue;
            snprintf(expected, sizeof expected, "from %s to %s",
                     domi_house_name_of_state(move.from), domi_house_name_of_state(move.to));
            domt_check_child_aborts(move_house_by_table, &move, expected);
            forbidden++;
        }
    }
    ck_assert_uint_eq(forbidden, 27);
}

DOMT_TEST(state_names_are_those_of_the_drawing)
{
    ck_assert_str_eq(domi_house_name_of_state(DOMI_CREATED), "CREATED");
    ck_assert_str_eq(domi_house_name_of_state(DOMI_MOUNTING), "MOUNTING");
    ck_assert_str_eq(domi_house_name_of_state(DOMI_WAITING), "WAITING");
    ck_assert_str_eq(domi_house_name_of_state(DOMI_READY), "READY");
    ck_assert_str_eq(domi_house_name_of_state(DOMI_SCHEDULED), "SCHEDULED");
    ck_assert_str_eq(domi_house_name_of_state(DOMI_RUNNING), "RUNNING");
    ck_assert_str_eq(domi_house_name_of_state(DOMI_STATES), "?");
}

DOMT_TEST(house_is_three_cache_lines_with_16_bytes_of_state)
{
    ck_assert_uint_eq(sizeof(domi_house), 192);
    ck_assert_uint_eq(alignof(domi_house), 64);
    ck_assert_uint_eq(sizeof(domi_house) - offsetof(domi_house, room),
                      sizeof(void *) == 8 ? 16 : 32);
    /* the room behind a house is aligned to 16 bytes, so a state of any alignment can begin
     * there */
    ck_assert_uint_eq(offsetof(domi_house, room) % 16, 0);
}

DOMT_TEST(house_keeps_senders_runner_and_rest_on_own_cache_lines)
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

DOMT_TEST(list_of_nodes_is_first_in_first_out)
{
    domi_node nodes[5];
    domi_node *tail = NULL;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            domi_list_append_node(&tail, &nodes[i]);
        ck_assert_ptr_eq(domi_list_take_first_node(&tail), &nodes[0]);
        domi_list_append_node(&tail, &nodes[3]);
        domi_list_append_node(&tail, &nodes[4]);
        for (int i = 1; i < 5; i++)
            ck_assert_ptr_eq(domi_list_take_first_node(&tail), &nodes[i]);
        ck_assert_ptr_null(tail);
    }
}

DOMT_TEST(mail_that_may_not_run_does_not_make_a_house_ready)
{
    domi_node node;
    domi_house house = {.mail = 1};

    domi_list_append_node(&house.tails[DOMI_ASK], &node);
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
        domi_list_append_node(&house.tails[kind], &other);
        ck_assert(domi_house_is_runnable(&house));
        (void)domi_list_take_first_node(&house.tails[kind]);
        ck_assert(!domi_house_is_runnable(&house));
    }
    /* A house with work for its channels runs in a barrier, but not at conversations_max, because
     * channels begin conversations, too. */
    house.marks |= DOMI_MARK_CHANNELS;
    ck_assert(!domi_house_is_runnable(&house));
    house.marks = DOMI_MARK_CHANNELS | DOMI_MARK_BARRIER;
    ck_assert(domi_house_is_runnable(&house));
}

/* --- queues of houses ------------------------------------------------------------------------- */

#define HOUSES 64

static domi_house houses[HOUSES];

static domi_house *house_of_high_priority(unsigned index)
{
    houses[index].asks = 0;
    return &houses[index];
}

static domi_house *house_of_normal_priority(unsigned index)
{
    houses[index].asks = 1;
    return &houses[index];
}

static bool is_priority_high_with_counts(uint32_t asks, uint32_t replies, uint32_t events)
{
    domi_house house = {.asks = asks, .replies = replies, .events = events * DOMI_EVENT_STEP};

    return domi_house_has_high_priority(&house);
}

DOMT_TEST(fifo_of_houses_is_first_in_first_out)
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
    ck_assert(is_priority_high_with_counts(0, 0, 0));
    ck_assert(!is_priority_high_with_counts(1, 0, 0));
    ck_assert(!is_priority_high_with_counts(1, 2, 4));
    ck_assert(is_priority_high_with_counts(1, 3, 0));
    ck_assert(is_priority_high_with_counts(1, 0, 5));
    ck_assert(is_priority_high_with_counts(1000, 3, 0));
    ck_assert(is_priority_high_with_counts(1000, 0, 5));
    ck_assert(!is_priority_high_with_counts(1000, 2, 4));
}

DOMT_TEST(queue_takes_a_normal_house_every_4th_time)
{
    domi_queue queue = {.normal_every = 4};
    char order[HOUSES + 1] = {0};

    for (unsigned i = 0; i < 24; i++)
        domi_queue_put_house(&queue, house_of_high_priority(i));
    for (unsigned i = 24; i < 30; i++)
        domi_queue_put_house(&queue, house_of_normal_priority(i));
    ck_assert_uint_eq(queue.count, 30);
    for (unsigned i = 0; i < 30; i++)
        order[i] = domi_queue_take_house(&queue)->asks == 0 ? 'h' : 'n';
    ck_assert_str_eq(order, "hhhnhhhnhhhnhhhnhhhnhhhnhhhhhh");
    ck_assert_uint_eq(queue.count, 0);
    ck_assert_ptr_null(domi_queue_take_house(&queue));
}

DOMT_TEST(queue_takes_normal_houses_as_often_as_told)
{
    static const char *const orders[] = {"hnhnhn", "hhnhnn", "hhhnnn"};
    static const uint32_t every[] = {2, 3, 65536};

    for (unsigned i = 0; i < 3; i++) {
        domi_queue queue = {.normal_every = every[i]};
        char order[7] = "";

        for (unsigned house = 0; house < 3; house++) {
            domi_queue_put_house(&queue, house_of_high_priority(house));
            domi_queue_put_house(&queue, house_of_normal_priority(3 + house));
        }
        for (unsigned take = 0; take < 6; take++)
            order[take] = domi_queue_take_house(&queue)->asks == 0 ? 'h' : 'n';
        ck_assert_str_eq(order, orders[i]);
    }
}

DOMT_TEST(queue_of_one_level_is_first_in_first_out)
{
    domi_queue queue = {.normal_every = 4};

    for (unsigned level = 0; level < 2; level++) {
        for (unsigned i = 0; i < HOUSES; i++)
            domi_queue_put_house(&queue, level == 0 ? house_of_high_priority(i)
                                                    : house_of_normal_priority(i));
        for (unsigned i = 0; i < HOUSES; i++)
            ck_assert_ptr_eq(domi_queue_take_house(&queue), &houses[i]);
        ck_assert_ptr_null(domi_queue_take_house(&queue));
    }
    /* takes are not counted while only one level has houses */
    ck_assert_uint_eq(queue.high_takes, 0);
}

/* A middleman, an actor that always waits for an answer, waits for at most 4 runs, however many
 * other houses are ready. */
DOMT_TEST(queue_starves_no_house)
{
    domi_queue queue = {.normal_every = 4};
    unsigned distance = 0;
    unsigned worst = 0;

    for (unsigned i = 0; i < 32; i++)
        domi_queue_put_house(&queue, house_of_high_priority(i));
    domi_queue_put_house(&queue, house_of_normal_priority(32));
    for (int i = 0; i < 10000; i++) {
        domi_house *house = domi_queue_take_house(&queue);
        distance = house == &houses[32] ? 0 : distance + 1;
        worst = distance > worst ? distance : worst;
        domi_queue_put_house(&queue, house);
    }
    ck_assert_uint_eq(worst, 3);
}

DOMT_TEST(priority_is_sampled_when_queued_and_not_changed_while_queued)
{
    domi_queue queue = {.normal_every = 4};

    domi_queue_put_house(&queue, house_of_normal_priority(0));
    domi_queue_put_house(&queue, house_of_high_priority(1));
    domi_queue_put_house(&queue, house_of_high_priority(2));
    /* this house would be of high priority now, but it stays at the level where it was put */
    houses[0].asks = 0;
    houses[1].asks = 1;
    ck_assert_ptr_eq(domi_queue_take_house(&queue), &houses[1]);
    ck_assert_ptr_eq(domi_queue_take_house(&queue), &houses[2]);
    ck_assert_ptr_eq(domi_queue_take_house(&queue), &houses[0]);

    /* the level is computed anew at each put: this house is normal now */
    domi_queue_put_house(&queue, &houses[1]);
    domi_queue_put_house(&queue, &houses[0]);
    ck_assert_ptr_eq(domi_queue_take_house(&queue), &houses[0]);
    ck_assert_ptr_eq(domi_queue_take_house(&queue), &houses[1]);
}

/* --- tables ----------------------------------------------------------------------------------- */

typedef void entry(void);

/* A row of the tables of kinds and doors has only pointers to functions, so it is read as an array
 * of pointers. */
static bool is_slot_of_row_filled(const void *row, size_t slot)
{
    entry *at = NULL;

    memcpy(&at, (const char *)row + slot * sizeof at, sizeof at);
    return at != NULL;
}

#define SLOTS(type) (sizeof(type) / sizeof(entry *))

DOMT_TEST(each_kind_of_object_has_each_function)
{
    for (uint32_t slab = 0; slab < DOMI_SLAB_KINDS; slab++) {
        for (size_t slot = 0; slot < SLOTS(domi_kind); slot++) {
            ck_assert_msg(is_slot_of_row_filled(&domi_kinds[slab], slot),
                          "house/dispatch/kinds.c: slot %zu of kind %u is empty", slot, slab);
        }
    }
}

DOMT_TEST(each_entry_of_the_table_of_doors_is_filled)
{
    for (size_t slot = 0; slot < SLOTS(struct domi_doors); slot++) {
        ck_assert_msg(is_slot_of_row_filled(&domi_doors, slot),
                      "house/dispatch/kinds.c: door %zu is empty", slot);
    }
}

DOMT_TEST(check_of_tables_sees_an_empty_slot)
{
    domi_kind row = domi_kinds[DOMI_SLAB_WATCH];

    row.cancel = NULL;
    ck_assert(!is_slot_of_row_filled(&row, SLOTS(domi_kind) - 1));
}

DOMT_SUITE(60)
