/* house/message/house.c: the cache lines of a house, and the table of its six states (M5). */
#include "house/message/house.h"

#include "tests/support/death.h"
#include "tests/support/suite.h"

#include <stdio.h>

/* The drawing of the six states (M5), written out a second time so that the table cannot
 * change unseen. */
static bool may(domi_state from, domi_state to)
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
            if (!may((domi_state)from, (domi_state)to))
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
            if (may(move.from, move.to))
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
    ck_assert_uint_eq(offsetof(domi_house, room) % 16, 0); /* any state is aligned */
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
    /* Channels begin conversations as well: at conversations_max they wait, in a barrier not. */
    house.marks |= DOMI_MARK_CHANNELS;
    ck_assert(!domi_house_is_runnable(&house));
    house.marks = DOMI_MARK_CHANNELS | DOMI_MARK_BARRIER;
    ck_assert(domi_house_is_runnable(&house));
}

DOMT_SUITE(60)
