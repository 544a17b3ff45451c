/* What may befall a house between its birth and its end: a restart, and passivation.
 *
 * A restart is asked for by the parent, and carried out in two steps: what the actor does is
 * cancelled at once, and when its last conversation and child have ended it begins anew, on its own
 * turn, with the mail that waited. The idle time is a timer that looks, when it fires, at when the
 * house last ran: a message costs a store, not a new timer. */
#include "house/conversation/stack.h"
#include "house/conversation/timer.h"
#include "house/directory/router.h"
#include "house/family/family.h"
#include "house/family/life.h"

#include <errno.h>

const domus_type domi_idle_type = {.name = "idle"};

/* No message: what a thread says that it handles. */
static const domus_type restart_type = {.name = "on_restart"};

/* --- restart --------------------------------------------------------------------------------- */

void domi_house_restart_begin(domi_manager *manager, domi_house *house)
{
    if ((house->marks & DOMI_MARK_STOPPING) != 0 || house->state == DOMI_MOUNTING)
        return; /* it ends, or has not begun */
    house->marks |= DOMI_MARK_RESTART;
    domi_stack_cancel_all(manager, house);
    domi_timer_cancel_all(manager, house);
    domi_watch_cancel_all(manager, house);
    domi_router_stop_owned(manager, house); /* their routees are among its children */
    (void)domi_family_stop(manager, house);
}

static int begin_anew(domi_manager *manager, domi_house *house)
{
    domi_family *family = house->family;
    const domus_behaviour *behaviour = house->behaviour;
    domus_stack stack;

    if (family != NULL && family->born_as != NULL)
        behaviour = family->born_as;
    bool goes_on = behaviour->on_restart != NULL && (house->marks & DOMI_MARK_UNMOUNTED) == 0;
    if (!goes_on)
        domi_house_run_stop(manager, house);
    /* Once more: conversations that were cancelled, and on_stop, may have begun something. */
    domi_timer_cancel_all(manager, house);
    domi_watch_cancel_all(manager, house);
    house->marks &= (uint16_t)~DOMI_MARK_RESTART;
    domi_house_become(house, behaviour);
    if (family != NULL) { /* as new: no pause, and its children will be others */
        family->idle_paused = false;
        family->restarts = 0;
    }
    if (goes_on) {
        domi_stack_begin(&stack, manager, house);
        const domus_behaviour *before = domi_manager_enters(manager, behaviour, &restart_type);
        int result = behaviour->on_restart(&stack, house->self, house->reason);
        domi_manager_runs(manager, before);
        domi_stack_return(&stack, result < 0 ? 0 : result);
        return result;
    }
    domi_house_state_set(house, family != NULL ? family->initial : NULL);
    house->marks &= (uint16_t)~DOMI_MARK_UNMOUNTED;
    return domi_house_run_mount(manager, house);
}

void domi_house_restart_end(domi_manager *manager, domi_house *house)
{
    uint64_t life = domi_house_life(house);

    /* A stop that was asked for meanwhile wins. */
    if (house->stacks != NULL || (life & DOMI_LIFE_STOP) != 0 || domi_house_children(house) != 0)
        return;
    domi_counter_add(&manager->counters.restarts, 1);
    domi_manager_log(manager, house, DOMI_IS_RESTARTED, house->reason);
    int result = begin_anew(manager, house);
    house->reason = 0;
    if (result < 0) {
        domi_house_mount_failed(manager, house, result);
    } else if ((house->marks & DOMI_MARK_PASSIVATES) != 0) {
        domi_house_idle(manager, house);
    }
}

/* --- passivation ----------------------------------------------------------------------------- */

void domi_house_idle(domi_manager *manager, domi_house *house)
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
    /* Without memory for it the actor stays. */
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
