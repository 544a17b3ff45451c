/* Restart and passivation: the two changes of a house between its birth and its end.
 *
 * A parent decides on a restart, and the house carries it out in two steps. First everything that
 * the actor does is cancelled. When its last conversation and its last child have ended, the actor
 * begins anew, in a turn of its own, and then gets the mail that waited. The idle time is measured
 * by a timer that fires and looks when the house last ran. So a message costs a store and not a new
 * timer. */
#include "house/conversation/timer.h"
#include "house/conversation/turn.h"
#include "house/directory/router.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/family/watch.h"
#include "house/message/link.h"

#include <errno.h>

const domus_type domi_idle_type = {.name = "idle"};

/* on_restart has no message. This type stands for it when a thread says what it handles. */
static const domus_type restart_type = {.name = "on_restart"};

/* --- restart --------------------------------------------------------------------------------- */

void domi_house_restart_begin(domi_manager *manager, domi_house *house)
{
    if ((house->marks & DOMI_MARK_STOPPING) != 0 || house->state == DOMI_MOUNTING)
        return; /* the actor ends, or has not begun yet */
    house->marks |= DOMI_MARK_RESTART;
    domi_stack_cancel_all(manager, house);
    domi_link_cancel_all(manager, house);
    domi_watch_cancel_all(manager, house);
    domi_router_stop_owned(manager, house); /* the routees are among the actor's children */
    (void)domi_family_stop_children(manager, house);
}

/* Call on_restart. Returns what it returned. */
DOMI_NO_CANARY static int run_restart(domi_manager *manager, domi_house *house)
{
    domus_stack stack;

    domi_stack_begin(&stack, manager, house);
    domi_run_begin(manager, house);
    domi_turn_begin(&stack, &restart_type);
    int result = domi_turn_end_untold(
        &stack, house->behaviour->on_restart(&stack, house->self, house->reason));
    domi_run_end(manager);
    return result;
}

static int begin_anew(domi_manager *manager, domi_house *house)
{
    domi_family *family = house->family;
    const domus_behaviour *behaviour = house->behaviour;

    if (family != NULL && family->born_as != NULL)
        behaviour = family->born_as;
    bool goes_on = behaviour->on_restart != NULL && (house->marks & DOMI_MARK_UNMOUNTED) == 0;
    if (!goes_on)
        domi_house_run_stop(manager, house);
    /* Both are cancelled a second time, because conversations that were cancelled, and on_stop, may
     * have made new ones. */
    domi_link_cancel_all(manager, house);
    domi_watch_cancel_all(manager, house);
    house->marks &= (uint16_t)~DOMI_MARK_RESTART;
    domi_house_set_behaviour(house, behaviour);
    if (family != NULL) { /* begin as a new actor: passivation goes on, and no restart of a child is
                             counted yet */
        family->idle_paused = false;
        family->restarts = 0;
    }
    if (goes_on)
        return run_restart(manager, house);
    domi_house_state_set(house, family != NULL ? family->initial : NULL);
    house->marks &= (uint16_t)~DOMI_MARK_UNMOUNTED;
    return domi_house_run_mount(manager, house);
}

void domi_house_restart_end(domi_manager *manager, domi_house *house)
{
    uint64_t life = domi_house_life(house);

    /* If a stop was asked for meanwhile, the house stops and does not restart. */
    if (house->stacks != NULL || (life & DOMI_LIFE_STOP) != 0 ||
        domi_house_count_children(house) != 0)
        return;
    domi_counter_add(&manager->counters.restarts, 1);
    domi_manager_log(manager, house, DOMI_IS_RESTARTED, house->reason);
    int result = begin_anew(manager, house);
    house->reason = 0;
    if (result < 0) {
        domi_house_fail_mount(manager, house, result);
    } else if ((house->marks & DOMI_MARK_PASSIVATES) != 0) {
        domi_house_look_at_idle_time(manager, house);
    }
}

/* --- passivation ----------------------------------------------------------------------------- */

void domi_house_look_at_idle_time(domi_manager *manager, domi_house *house)
{
    domi_family *family = house->family;
    uint64_t now_ns = manager->now_ns;
    uint64_t until_ns = family->last_ns + family->idle_max_ns;
    domi_timer *timer;

    if (family->idle_paused)
        until_ns = now_ns + family->idle_max_ns;
    if (until_ns <= now_ns && house->state == DOMI_RUNNING) {
        domi_counter_add(&manager->counters.passivations, 1);
        (void)domi_house_stop(manager, domi_house_address(house));
        return;
    }
    /* If there is no memory for the timer, the actor stays until something else stops it. */
    (void)domi_timer_new(manager, house,
                         until_ns > now_ns ? until_ns - now_ns : family->idle_max_ns, 0,
                         &domi_idle_type, NULL, &timer);
}

static int set_paused(domus_stack *stack, bool paused)
{
    domi_house *house = domi_stack_house(stack);

    if ((house->marks & DOMI_MARK_PASSIVATES) == 0)
        return -EINVAL;
    house->family->idle_paused = paused;
    if (!paused)
        house->family->last_ns = stack->manager->now_ns;
    return 0;
}

int domus_passivation_pause(domus_stack *stack)
{
    return set_paused(stack, true);
}

int domus_passivation_resume(domus_stack *stack)
{
    return set_paused(stack, false);
}
