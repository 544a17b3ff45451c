/* The table of the five states of a promise: each move that it allows, and each that it does
 * not. */
#include "house/conversation/stack.h"

#include "tests/support/death.h"
#include "tests/support/suite.h"

#include <stdio.h>

/* The drawing of the states, written out a second time so that the table cannot change unseen. */
static bool may(domi_promise_state from, domi_promise_state to)
{
    switch (from) {
    case DOMI_PROMISE_FREE:
        return to == DOMI_PROMISE_WAITING;
    case DOMI_PROMISE_WAITING:
        return to == DOMI_PROMISE_FAILED || to == DOMI_PROMISE_DONE || to == DOMI_PROMISE_DEAD ||
               to == DOMI_PROMISE_FREE;
    case DOMI_PROMISE_FAILED:
        return to == DOMI_PROMISE_DONE || to == DOMI_PROMISE_DEAD;
    case DOMI_PROMISE_DONE:
        return to == DOMI_PROMISE_DEAD || to == DOMI_PROMISE_FREE;
    case DOMI_PROMISE_DEAD:
        return to == DOMI_PROMISE_DEAD || to == DOMI_PROMISE_FREE;
    case DOMI_PROMISE_STATES:
        break;
    }
    return false;
}

typedef struct a_move {
    domi_promise_state from;
    domi_promise_state to;
} a_move;

static void move_promise(void *context)
{
    const a_move *now = context;
    domi_promise promise = {.state = (uint8_t)now->from};

    domi_promise_move(&promise, now->to);
}

DOMT_TEST(allowed_moves_of_a_promise_pass)
{
    unsigned allowed = 0;

    for (unsigned from = 0; from < DOMI_PROMISE_STATES; from++) {
        for (unsigned to = 0; to < DOMI_PROMISE_STATES; to++) {
            if (!may((domi_promise_state)from, (domi_promise_state)to))
                continue;
            domi_promise promise = {.state = (uint8_t)from};
            domi_promise_move(&promise, (domi_promise_state)to);
            ck_assert_uint_eq(promise.state, to);
            allowed++;
        }
    }
    ck_assert_uint_eq(allowed, 11);
}

DOMT_TEST(forbidden_moves_of_a_promise_end_the_process)
{
    static const char *const names[DOMI_PROMISE_STATES] = {"FREE", "WAITING", "FAILED", "DONE",
                                                           "DEAD"};
    char text[96];

    for (unsigned from = 0; from < DOMI_PROMISE_STATES; from++) {
        for (unsigned to = 0; to < DOMI_PROMISE_STATES; to++) {
            a_move now = {(domi_promise_state)from, (domi_promise_state)to};
            if (may(now.from, now.to))
                continue;
            snprintf(text, sizeof text, "a promise moves from %s to %s", names[from], names[to]);
            domt_dies(move_promise, &now, text);
        }
    }
}

/* --- the functions that end a promise --------------------------------------------------------- */

static void finish(domi_promise *promise)
{
    domi_promise_finish(NULL, promise, NULL);
}

static void close_at_once(domi_promise *promise)
{
    domi_promise_close(NULL, promise);
}

static void abandon(domi_promise *promise)
{
    domi_promise_abandon(NULL, promise);
}

static void release(domi_promise *promise)
{
    domi_promise_release(NULL, promise);
}

typedef struct an_end {
    void (*ends)(domi_promise *promise);
    uint8_t state;
    const char *text;
} an_end;

static void end_promise(void *context)
{
    const an_end *end = context;
    domi_promise promise = {.state = end->state, .node.slab = DOMI_SLAB_STACK_PROMISE};

    end->ends(&promise);
}

DOMT_TEST(each_end_of_a_promise_checks_its_state)
{
    static an_end ends[] = {
        {finish, DOMI_PROMISE_FREE, "from FREE to DONE"},
        {finish, DOMI_PROMISE_DONE, "from DONE to DONE"},
        {finish, DOMI_PROMISE_DEAD, "from DEAD to DONE"},
        {close_at_once, DOMI_PROMISE_FREE, "DOMI_PROMISE_WAITING"},
        {close_at_once, DOMI_PROMISE_FAILED, "DOMI_PROMISE_WAITING"},
        {close_at_once, DOMI_PROMISE_DONE, "DOMI_PROMISE_WAITING"},
        {close_at_once, DOMI_PROMISE_DEAD, "DOMI_PROMISE_WAITING"},
        {abandon, DOMI_PROMISE_FREE, "domi_promise_is_open"},
        {abandon, DOMI_PROMISE_DONE, "domi_promise_is_open"},
        {abandon, DOMI_PROMISE_DEAD, "domi_promise_is_open"},
        {release, DOMI_PROMISE_FREE, "from FREE to FREE"},
    };

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        domt_dies(end_promise, &ends[i], ends[i].text);
}

DOMT_SUITE(60)
