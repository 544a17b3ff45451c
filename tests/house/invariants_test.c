/* Each invariant of a house and of a promise is broken once, and the check that states it ends the
 * process. Also: only the owner of a manager may go through its doors. */
#include "house/dispatch/invariants.h"

#include "house/conversation/stack.h"
#include "house/family/family.h"
#include "house/message/order.h"
#include "tests/house/talk.h"
#include "tests/support/death.h"
#include "tests/support/suite.h"

#include <pthread.h>

static domi_house *house; /* one that waits for nothing */

static void open_world(void)
{
    domt_world_open(&domt_talk.world, 1);
    house =
        domt_spawn(domt_outside(&domt_talk.world), domt_talk.world.managers[0], &domt_agent, NULL)
            .house;
    domt_settle(&domt_talk.world);
    domi_house_check_lists(domt_talk.world.managers[0], house);
}

/* --- a house ---------------------------------------------------------------------------------- */

static void has_mail_that_is_not_there(void)
{
    house->mail = 1;
}

static void has_replies_that_are_not_there(void)
{
    house->replies = 1;
}

static void has_events_that_are_not_there(void)
{
    house->events += DOMI_EVENT_STEP;
}

static void has_stacks_that_are_not_there(void)
{
    house->parked = DOMI_PARKED_STEP;
}

static void has_asks_that_are_not_there(void)
{
    house->asks = 1;
}

static void has_a_barrier_that_nobody_raised(void)
{
    house->marks |= DOMI_MARK_BARRIER;
}

static void is_saturated_by_nothing(void)
{
    house->marks |= DOMI_MARK_SATURATED;
}

static void receives_nothing(void)
{
    house->marks |= DOMI_MARK_RECEIVING;
}

static void looks_at_mail_without_a_receive(void)
{
    house->marks |= DOMI_MARK_FRESH;
}

static void may_not_resume_although_it_runs(void)
{
    house->marks |= DOMI_MARK_FATAL;
}

static void stops_unasked(void)
{
    house->marks |= DOMI_MARK_STOPPING;
}

static void passivates_without_a_family(void)
{
    house->marks |= DOMI_MARK_PASSIVATES;
}

static void is_a_routee_of_nobody(void)
{
    house->marks |= DOMI_MARK_ROUTEE;
}

static void is_ordered_by_nothing(void)
{
    house->marks |= DOMI_MARK_ORDERED;
}

static int compare_nothing(const domus_type *one_type, const void *one,
                           const domus_type *other_type, const void *other)
{
    return 0;
}

static domi_order *order_of_house(void)
{
    static domus_behaviour behaviour;

    behaviour = *house->behaviour;
    behaviour.order = compare_nothing;
    ck_assert_int_eq(domi_order_make(house), 0);
    domi_order_change_behaviour(house, &behaviour);
    return house->family->order;
}

static void has_no_room_for_its_order(void)
{
    (void)order_of_house();
    house->family->order = NULL;
}

static void has_sorted_mail_that_is_not_there(void)
{
    static domi_node nodes[2];
    domi_order *order = order_of_house();

    nodes[0] = (domi_node){.next = &nodes[0], .kind = DOMI_NOTICE};
    order->waiting.at[0] = (domi_strand){&nodes[0], 2};
    order->waiting.count = order->waiting.ranked = 1;
    order->waiting.mail = 2;
    house->mail = 2;
    house->state = DOMI_READY;
}

static void has_sorted_mail_of_a_wrong_kind(void)
{
    static domi_node node;
    domi_order *order = order_of_house();

    node = (domi_node){.next = &node, .kind = DOMI_EVENT};
    order->seen.at[0] = (domi_strand){&node, 1};
    order->seen.count = order->seen.ranked = order->seen.mail = 1;
    house->mail = 1;
    house->state = DOMI_READY;
}

static void is_closed_and_waits(void)
{
    house->life |= DOMI_LIFE_CLOSED;
}

static void has_no_state(void)
{
    house->self = NULL;
}

static void runs_between_runs(void)
{
    house->state = DOMI_RUNNING;
}

static void is_of_another_home(void)
{
    house->home = domt_outside(&domt_talk.world);
}

static void waits_with_work(void)
{
    house->marks |= DOMI_MARK_CHANNELS;
}

static void is_free_with_marks(void)
{
    house->state = DOMI_CREATED;
    house->marks = DOMI_MARK_PINNED;
}

static void break_house(void *context)
{
    void (*const *breaks)(void) = context;

    (*breaks)();
    domi_house_check_lists(domt_talk.world.managers[0], house);
}

DOMT_TEST(each_invariant_of_a_house_is_checked)
{
    static const struct {
        void (*breaks)(void);
        const char *text;
    } rows[] = {
        {has_mail_that_is_not_there, "house->mail == 0"},
        {has_replies_that_are_not_there, "house->replies == 0"},
        {has_events_that_are_not_there, "domi_house_count_events(house) == 0"},
        {has_stacks_that_are_not_there, "domi_house_count_parked(house) == 0"},
        {has_asks_that_are_not_there, "asks == house->asks"},
        {has_a_barrier_that_nobody_raised, "DOMI_MARK_BARRIER"},
        {is_saturated_by_nothing, "DOMI_MARK_SATURATED"},
        {receives_nothing, "DOMI_MARK_RECEIVING"},
        {looks_at_mail_without_a_receive, "DOMI_MARK_FRESH"},
        {may_not_resume_although_it_runs, "DOMI_MARK_FATAL"},
        {stops_unasked, "DOMI_MARK_STOPPING"},
        {passivates_without_a_family, "DOMI_MARK_PASSIVATES"},
        {is_a_routee_of_nobody, "DOMI_MARK_ROUTEE"},
        {is_ordered_by_nothing, "DOMI_MARK_ORDERED"},
        {has_no_room_for_its_order, "house->family->order"},
        {has_sorted_mail_that_is_not_there, "nodes == strand->count"},
        {has_sorted_mail_of_a_wrong_kind, "domi_node_is_user_mail(node)"},
        {is_closed_and_waits, "DOMI_LIFE_CLOSED"},
        {has_no_state, "house->self"},
        {runs_between_runs, "between runs"},
        {is_of_another_home, "house->home == home"},
        {waits_with_work, "domi_house_is_runnable(house)"},
        {is_free_with_marks, "DOMI_MARK_DEAD"},
    };

    open_world();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        domt_dies(break_house, (void *)(uintptr_t)&rows[i].breaks, rows[i].text);
    domt_world_end(&domt_talk.world);
}

/* --- a promise -------------------------------------------------------------------------------- */

static void check_promise(void *promise)
{
    domi_promise_check(promise);
}

DOMT_TEST(each_invariant_of_a_promise_is_checked)
{
    static const struct {
        domi_promise promise;
        const char *text; /* NULL: it is sound */
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
            domt_dies(check_promise, &promise, rows[i].text);
        else
            domi_promise_check(&promise);
    }
}

/* --- the owner -------------------------------------------------------------------------------- */

static void *turn_of_another(void *manager)
{
    (void)domi_manager_take_arrivals(manager);
    return NULL;
}

static void turn_on_another_thread(void *manager)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, turn_of_another, manager) == 0)
        (void)pthread_join(thread, NULL);
}

DOMT_TEST(only_the_owner_takes_a_turn)
{
    open_world();
    domt_dies(turn_on_another_thread, domt_talk.world.managers[0], "domi_manager_is_mine");
    domt_world_end(&domt_talk.world);
}

DOMT_SUITE(60)
