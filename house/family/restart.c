/* Carries out decisions of parents; above all the restart, the one change of a house between its
 * birth and its end.
 *
 * A restart has two steps. First all work of the actor is cancelled. When its last conversation and
 * its last child have ended, the actor begins anew, in a turn of its own, and then gets the mail
 * that waited. */
#include "base/check.h"
#include "house/conversation/turn.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/family/passivation.h"
#include "house/family/watch.h"
#include "house/message/doors.h"
#include "house/message/link.h"
#include "house/message/order.h"

/* The type that a thread reports while it runs on_restart, which has no message. */
static const domus_type restart_type = {.name = "on_restart"};

void domi_house_begin_restart(domi_manager *manager, domi_house *house)
{
    if ((house->marks & DOMI_MARK_STOPPING) != 0 || house->state == DOMI_MOUNTING)
        return; /* no restart is begun: the actor ends, or has not begun yet */
    house->marks |= DOMI_MARK_RESTART;
    domi_stack_cancel_all_parked_of_house(manager, house);
    domi_link_cancel_attached_objects(manager, house);
    domi_watch_take_back_all_of_house(manager, house);
    /* the routers that the actor made stop; their routees are children of the actor, and stop with
     * these */
    domi_doors.stop_routers(manager, house);
    domi_family_stop_children(manager, house);
}

/* Call on_restart of an actor. Returns its result. */
DOMI_NO_CANARY static int call_on_restart(domi_manager *manager, domi_house *house)
{
    domus_stack stack;

    domi_stack_begin_without_message(&stack, manager, house);
    domi_run_begin(manager, house);
    domi_turn_begin(&stack, &restart_type);
    int result = domi_turn_end_of_callback(
        &stack, house->behaviour->on_restart(&stack, house->self, house->reason));
    domi_run_end(manager);
    return result;
}

static int restart_actor_by_its_callbacks(domi_manager *manager, domi_house *house)
{
    domi_family *family = house->family;
    const domus_behaviour *behaviour = house->behaviour;

    if (family != NULL && family->born_as != NULL)
        behaviour = family->born_as;
    bool goes_on = behaviour->on_restart != NULL && (house->marks & DOMI_MARK_UNMOUNTED) == 0;
    if (!goes_on)
        domi_house_call_on_stop(manager, house);
    /* Links and watches are cancelled a second time here, because conversations that were
     * cancelled, and on_stop, may have made new ones. */
    domi_link_cancel_attached_objects(manager, house);
    domi_watch_take_back_all_of_house(manager, house);
    house->marks &= (uint16_t)~DOMI_MARK_RESTART;
    domi_house_count_under_behaviour(manager, house, behaviour);
    domi_order_set_behaviour_and_resort(house, behaviour);
    /* the actor is as new: its idle time counts again, and no restart of a child is counted yet */
    if (family != NULL) {
        family->idle_paused = false;
        family->restarts = 0;
    }
    if (goes_on)
        return call_on_restart(manager, house);
    domi_house_set_state_as_at_spawn(house, family != NULL ? family->initial : NULL);
    house->marks &= (uint16_t)~DOMI_MARK_UNMOUNTED;
    return domi_house_call_on_mount(manager, house);
}

void domi_house_try_to_end_restart(domi_manager *manager, domi_house *house)
{
    uint64_t life = domi_house_life_word(house);

    /* If a stop was asked for meanwhile, the house stops instead of its restart. */
    if (house->stacks != NULL || (life & DOMI_LIFE_STOP) != 0 ||
        domi_house_count_children(house) != 0)
        return;
    domi_counter_add(&manager->counters.restarts, 1);
    domi_manager_log_event_of_actor(manager, house, DOMI_IS_RESTARTED, house->reason);
    int result = restart_actor_by_its_callbacks(manager, house);
    house->reason = 0;
    if (result < 0) {
        domi_house_record_failed_mount(manager, house, result);
    } else if ((house->marks & DOMI_MARK_PASSIVATES) != 0) {
        domi_house_check_idle_time(manager, house);
    }
}

/* --- the house's own node --------------------------------------------------------------------- */

/* Carry out the parent's directive for a failed child, which has come with the child's node. */
static void carry_out_directive_of_parent(domi_manager *manager, domi_house *house,
                                          domus_directive directive)
{
    bool fatal = (house->marks & DOMI_MARK_FATAL) != 0;
    uint64_t life = domi_house_life_word(house);

    house->marks &= (uint16_t) ~(DOMI_MARK_SUSPENDED | DOMI_MARK_FATAL);
    if (directive == DOMUS_RESTART && domi_house_is_channel(house))
        /* a connection cannot begin again, so a channel stops instead of its restart */
        directive = DOMUS_STOP;
    if (directive == DOMUS_STOP || (directive == DOMUS_RESUME && fatal)) {
        atomic_fetch_or_explicit(&house->life, DOMI_LIFE_STOP, memory_order_relaxed);
    } else if (directive == DOMUS_RESTART) {
        domi_house_begin_restart(manager, house);
    } else if ((life & DOMI_LIFE_STOP) == 0) {
        /* a resumed actor has no failure any more; after a STOP this field may hold the reason
         * of the stop */
        house->reason = 0;
    }
    domi_house_let_act_on_change(manager, house);
}

void domi_house_handle_own_node(domi_manager *manager, domi_house *house, domi_node *node)
{
    uint32_t kind = node->kind;
    uint32_t directive = node->owner;

    DOMI_CHECK(node == &house->node);
    /* From this release on the node of the house is free: a thread that asks for a stop may fill it
     * again, and home may free the slot. release: pairs with the compare-exchange of that thread,
     * so all reads of the node come before its writes. */
    atomic_fetch_and_explicit(&house->life, ~DOMI_LIFE_NODE, memory_order_release);
    if (kind == DOMI_MOUNT)
        domi_house_queue_for_mount(manager, house);
    else if (kind == DOMI_STOP)
        domi_house_let_act_on_change(manager, house);
    else
        carry_out_directive_of_parent(manager, house, (domus_directive)directive);
}
