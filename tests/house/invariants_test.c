/* Each invariant of a house and of a promise is broken once, and the check for it ends the process;
 * a move that the table of a promise's five states does not allow ends the process, too. Only the
 * owner of a manager may call the manager's functions. */
#include "house/conversation/stack.h"
#include "house/dispatch/invariants.h"
#include "house/family/family.h"
#include "house/message/order.h"
#include "tests/house/talk.h"
#include "tests/support/death.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <stdio.h>

static domi_house *house; /* a house without messages, whose state is WAITING */

static void open_world(void)
{
    domt_world_open(&domt_talk.world, 1);
    house = domt_spawn(domt_outside_manager(&domt_talk.world), domt_talk.world.managers[0],
                       &domt_agent, NULL)
                .house;
    domt_settle_world(&domt_talk.world);
    domi_house_check_lists(domt_talk.world.managers[0], house);
}

/* --- a house ---------------------------------------------------------------------------------- */

static void break_with_mail_that_is_not_there(void)
{
    house->mail = 1;
}

static void break_with_replies_that_are_not_there(void)
{
    house->replies = 1;
}

static void break_with_events_that_are_not_there(void)
{
    house->events += DOMI_EVENT_STEP;
}

static void break_with_stacks_that_are_not_there(void)
{
    house->parked = DOMI_PARKED_STEP;
}

static void break_with_asks_that_are_not_there(void)
{
    house->asks = 1;
}

static int compare_all_as_equal(const domus_type *one_type, const void *one,
                                const domus_type *other_type, const void *other)
{
    return 0;
}

static domi_order *make_order_of_house(void)
{
    static domus_behaviour behaviour;

    behaviour = *house->behaviour;
    behaviour.order = compare_all_as_equal;
    ck_assert_int_eq(domi_order_make_for_house(house), 0);
    domi_order_set_behaviour_and_resort(house, &behaviour);
    return house->family->order;
}

static void break_with_no_room_for_its_order(void)
{
    (void)make_order_of_house();
    house->family->order = NULL;
}

static void break_with_sorted_mail_that_is_not_there(void)
{
    static domi_node nodes[2];
    domi_order *order = make_order_of_house();

    nodes[0] = (domi_node){.next = &nodes[0], .kind = DOMI_NOTICE};
    order->waiting.at[0] = (domi_strand){&nodes[0], 2};
    order->waiting.count = order->waiting.ranked = 1;
    order->waiting.mail = 2;
    house->mail = 2;
    house->state = DOMI_READY;
}

static void break_with_sorted_mail_of_a_wrong_kind(void)
{
    static domi_node node;
    domi_order *order = make_order_of_house();

    node = (domi_node){.next = &node, .kind = DOMI_EVENT};
    order->seen.at[0] = (domi_strand){&node, 1};
    order->seen.count = order->seen.ranked = order->seen.mail = 1;
    house->mail = 1;
    house->state = DOMI_READY;
}

static void break_with_closed_and_waiting(void)
{
    house->life |= DOMI_LIFE_CLOSED;
}

static void break_with_null_self(void)
{
    house->self = NULL;
}

static void break_with_run_between_runs(void)
{
    house->state = DOMI_RUNNING;
}

static void break_with_another_home(void)
{
    house->home = domt_outside_manager(&domt_talk.world);
}

static void break_with_free_and_marked(void)
{
    house->state = DOMI_CREATED;
    house->marks = DOMI_MARK_PINNED;
}

/* How a test breaks a house: by a function, or by marks that contradict the house's other
 * fields. */
typedef struct breach {
    void (*breaks)(void);
    const char *text;
    uint16_t marks;
} breach;

static void break_house_and_check(void *context)
{
    const breach *now = context;

    if (now->breaks != NULL)
        now->breaks();
    house->marks |= now->marks;
    domi_house_check_lists(domt_talk.world.managers[0], house);
}

DOMT_TEST(each_invariant_of_a_house_is_checked)
{
    static const breach rows[] = {
        {.breaks = break_with_mail_that_is_not_there, .text = "house->mail == 0"},
        {.breaks = break_with_replies_that_are_not_there, .text = "house->replies == 0"},
        {.breaks = break_with_events_that_are_not_there,
         .text = "domi_house_count_events(house) == 0"},
        {.breaks = break_with_stacks_that_are_not_there,
         .text = "domi_house_count_parked_conversations(house) == 0"},
        {.breaks = break_with_asks_that_are_not_there, .text = "asks == house->asks"},
        {.marks = DOMI_MARK_BARRIER, .text = "DOMI_MARK_BARRIER"},
        {.marks = DOMI_MARK_SATURATED, .text = "DOMI_MARK_SATURATED"},
        {.marks = DOMI_MARK_RECEIVING, .text = "DOMI_MARK_RECEIVING"},
        {.marks = DOMI_MARK_FRESH, .text = "DOMI_MARK_FRESH"},
        {.marks = DOMI_MARK_FATAL, .text = "DOMI_MARK_FATAL"},
        {.marks = DOMI_MARK_STOPPING, .text = "DOMI_MARK_STOPPING"},
        {.marks = DOMI_MARK_PASSIVATES, .text = "DOMI_MARK_PASSIVATES"},
        {.marks = DOMI_MARK_ROUTEE, .text = "DOMI_MARK_ROUTEE"},
        {.marks = DOMI_MARK_ORDERED, .text = "DOMI_MARK_ORDERED"},
        {.breaks = break_with_no_room_for_its_order, .text = "house->family->order"},
        {.breaks = break_with_sorted_mail_that_is_not_there, .text = "nodes == strand->count"},
        {.breaks = break_with_sorted_mail_of_a_wrong_kind, .text = "domi_node_is_user_mail(node)"},
        {.breaks = break_with_closed_and_waiting, .text = "DOMI_LIFE_CLOSED"},
        {.breaks = break_with_null_self, .text = "house->self"},
        {.breaks = break_with_run_between_runs, .text = "between runs"},
        {.breaks = break_with_another_home, .text = "house->home == home"},
        {.marks = DOMI_MARK_CHANNELS, .text = "domi_house_is_runnable(house)"},
        {.breaks = break_with_free_and_marked, .text = "DOMI_MARK_DEAD"},
    };

    open_world();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        domt_check_child_aborts(break_house_and_check, (void *)(uintptr_t)&rows[i], rows[i].text);
    domt_world_end(&domt_talk.world);
}

/* --- a promise -------------------------------------------------------------------------------- */

static void check_promise(void *promise)
{
    domi_promise_check_fields(promise);
}

DOMT_TEST(each_invariant_of_a_promise_is_checked)
{
    static const struct {
        domi_promise promise;
        const char *text; /* what the failed check prints; NULL: the promise is sound */
    } rows[] = {
        {{.state = DOMI_PROMISE_FREE, .node.slab = DOMI_SLAB_STACK_PROMISE}, NULL},
        {{.state = DOMI_PROMISE_FREE, .node.slab = DOMI_SLAB_PROMISE}, "DOMI_SLAB_STACK_PROMISE"},
        {{.state = DOMI_PROMISE_FREE, .node.slab = DOMI_SLAB_STACK_PROMISE, .queued = true},
         "!promise->queued"},
        {{.state = DOMI_PROMISE_FREE, .node.slab = DOMI_SLAB_STACK_PROMISE, .timed = true},
         "!promise->timed"},
        {{.state = DOMI_PROMISE_WAITING, .kind = DOMI_PROMISE_ASK}, NULL},
        {{.state = DOMI_PROMISE_WAITING, .kind = DOMI_PROMISE_SLEEP, .uncounted = true}, NULL},
        {{.state = DOMI_PROMISE_WAITING, .kind = DOMI_PROMISE_SLEEP}, "promise->uncounted"},
        {{.state = DOMI_PROMISE_WAITING, .queued = true}, "!promise->queued"},
        {{.state = DOMI_PROMISE_WAITING, .timed = true, .noted = true}, "promise->timed"},
        {{.state = DOMI_PROMISE_FAILED, .queued = true, .timed = true}, NULL},
        {{.state = DOMI_PROMISE_FAILED}, "promise->queued && !promise->noted"},
        {{.state = DOMI_PROMISE_FAILED, .queued = true, .noted = true}, "!promise->noted"},
        {{.state = DOMI_PROMISE_FAILED, .queued = true, .uncounted = true}, "promise->uncounted"},
        {{.state = DOMI_PROMISE_DONE, .queued = true}, NULL},
        {{.state = DOMI_PROMISE_DONE, .queued = true, .noted = true}, "promise->queued"},
        {{.state = DOMI_PROMISE_DONE, .uncounted = true}, "!promise->uncounted"},
        {{.state = DOMI_PROMISE_DEAD, .noted = true}, NULL},
        {{.state = DOMI_PROMISE_DEAD}, "promise->queued != promise->noted"},
        {{.state = 9}, "no state"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domi_promise promise = rows[i].promise;
        if (rows[i].text != NULL)
            domt_check_child_aborts(check_promise, &promise, rows[i].text);
        else
            domi_promise_check_fields(&promise);
    }
}

/* --- the owner -------------------------------------------------------------------------------- */

static void *take_arrivals_as_stranger(void *manager)
{
    (void)domi_manager_take_arrivals(manager);
    return NULL;
}

static void take_turn_on_another_thread(void *manager)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, take_arrivals_as_stranger, manager) == 0)
        (void)pthread_join(thread, NULL);
}

DOMT_TEST(only_the_thread_that_owns_a_home_takes_its_turns)
{
    open_world();
    domt_check_child_aborts(take_turn_on_another_thread, domt_talk.world.managers[0],
                            "domi_manager_is_owned_by_caller");
    domt_world_end(&domt_talk.world);
}

/* --- the states of a promise ------------------------------------------------------------------ */

/* Returns whether the drawing of a promise's states has this arrow; the arrows are written out here
 * a second time, so that the table of moves cannot change unseen. */
static bool is_arrow_of_promise_drawing(domi_promise_state from, domi_promise_state to)
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

    domi_promise_change_state(&promise, now->to);
}

DOMT_TEST(allowed_moves_of_a_promise_pass)
{
    unsigned allowed = 0;

    for (unsigned from = 0; from < DOMI_PROMISE_STATES; from++) {
        for (unsigned to = 0; to < DOMI_PROMISE_STATES; to++) {
            if (!is_arrow_of_promise_drawing((domi_promise_state)from, (domi_promise_state)to))
                continue;
            domi_promise promise = {.state = (uint8_t)from};
            domi_promise_change_state(&promise, (domi_promise_state)to);
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
            if (is_arrow_of_promise_drawing(now.from, now.to))
                continue;
            snprintf(text, sizeof text, "a promise moves from %s to %s", names[from], names[to]);
            domt_check_child_aborts(move_promise, &now, text);
        }
    }
}

/* --- the functions that end a promise --------------------------------------------------------- */

static void finish_promise(domi_promise *promise)
{
    domi_promise_finish(NULL, promise, NULL);
}

static void finish_and_release_promise(domi_promise *promise)
{
    domi_promise_finish_and_release(NULL, promise);
}

static void abandon_promise(domi_promise *promise)
{
    domi_promise_abandon(NULL, promise);
}

static void release_promise(domi_promise *promise)
{
    domi_promise_release(NULL, promise);
}

typedef struct an_end {
    void (*ends)(domi_promise *promise);
    uint8_t state;
    const char *text;
} an_end;

static void end_promise_in_state(void *context)
{
    const an_end *end = context;
    domi_promise promise = {.state = end->state, .node.slab = DOMI_SLAB_STACK_PROMISE};

    end->ends(&promise);
}

DOMT_TEST(each_end_of_a_promise_checks_its_state)
{
    static an_end ends[] = {
        {finish_promise, DOMI_PROMISE_FREE, "from FREE to DONE"},
        {finish_promise, DOMI_PROMISE_DONE, "from DONE to DONE"},
        {finish_promise, DOMI_PROMISE_DEAD, "from DEAD to DONE"},
        {finish_and_release_promise, DOMI_PROMISE_FREE, "DOMI_PROMISE_WAITING"},
        {finish_and_release_promise, DOMI_PROMISE_FAILED, "DOMI_PROMISE_WAITING"},
        {finish_and_release_promise, DOMI_PROMISE_DONE, "DOMI_PROMISE_WAITING"},
        {finish_and_release_promise, DOMI_PROMISE_DEAD, "DOMI_PROMISE_WAITING"},
        {abandon_promise, DOMI_PROMISE_FREE, "domi_promise_is_awaited"},
        {abandon_promise, DOMI_PROMISE_DONE, "domi_promise_is_awaited"},
        {abandon_promise, DOMI_PROMISE_DEAD, "domi_promise_is_awaited"},
        {release_promise, DOMI_PROMISE_FREE, "from FREE to FREE"},
    };

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        domt_check_child_aborts(end_promise_in_state, &ends[i], ends[i].text);
}

DOMT_SUITE(60)
