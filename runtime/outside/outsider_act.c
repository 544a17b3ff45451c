/* Outsiders watch other actors, and run functions that may do all that the handler of an actor
 * may (domus_outsider_act()). */
#include "runtime/outside/outsider.h"

#include "base/memory.h"
#include "house/conversation/turn.h"

#include <errno.h>

/* --- watching actors -------------------------------------------------------------------------- */

/* Watch an actor, and allocate the place in the seat for the watch's event. The caller has
 * locked the seat. */
static int watch_actor_in_locked_seat(domus_outsider *seat, domus_address address,
                                      domus_watch *ret_watch)
{
    domi_outside_mail *spare = domi_memory_new(sizeof *spare + sizeof(domus_down));
    domus_stack stack;

    if (spare == NULL)
        return -ENOMEM;
    domi_outsider_begin_stack_of_verb(seat, &stack);
    int result = domus_watch_actor(&stack, address, &spare->watch);
    domi_outsider_end_stack_of_verb(seat, &stack);
    if (result != 0) {
        domi_memory_free(spare);
        return result;
    }
    domi_outside_mail_add_to_list(&seat->spares, spare);
    *ret_watch = spare->watch;
    return 0;
}

int domus_outsider_watch(domus_outsider *outsider, domus_address address, domus_watch *ret_watch)
{
    domi_visit visit;
    domus_watch watch;
    int result = domi_outsider_enter_seat_if_alive(outsider, &visit);

    if (result != 0)
        return result;
    result = watch_actor_in_locked_seat(outsider, address, &watch);
    if (result == 0 && ret_watch != NULL)
        *ret_watch = watch;
    domi_outsider_leave_seat(outsider, &visit);
    return result;
}

int domus_outsider_unwatch(domus_outsider *outsider, domus_watch watch)
{
    domi_visit visit;
    domus_stack stack;
    int result = domi_outsider_enter_seat_if_alive(outsider, &visit);

    if (result != 0)
        return result;
    domi_outsider_begin_stack_of_verb(outsider, &stack);
    result = domus_unwatch(&stack, watch);
    domi_outsider_end_stack_of_verb(outsider, &stack);
    domi_outside_mail *spare =
        result == 0 ? domi_outsider_find_event_place_of_watch(outsider, watch.watch) : NULL;
    if (spare != NULL) {
        domi_outside_mail_remove_from_list(&outsider->spares, spare);
        domi_memory_free(spare);
    }
    domi_outsider_leave_seat(outsider, &visit);
    return result;
}

/* --- turns of the actor ----------------------------------------------------------------------- */

DOMI_NO_CANARY int domus_outsider_act(domus_outsider *outsider,
                                      int (*function)(domus_stack *stack, void *argument),
                                      void *argument)
{
    domi_manager *manager = &outsider->detached.manager;
    domi_visit visit;
    domus_stack stack;
    int result = domi_outsider_enter_seat_if_alive(outsider, &visit);

    if (result == 0 && domi_house_is_asked_to_stop(outsider->address.house)) {
        domi_outsider_leave_seat(outsider, &visit);
        result = -ESTALE;
    }
    if (result != 0)
        return result;
    domi_house *house = outsider->address.house;
    manager->now_ns = domi_clock_now(&outsider->detached.system->clock);
    domi_outsider_begin_stack_of_verb(outsider, &stack);
    domi_run_begin(manager, house);
    domi_turn_begin(&stack, NULL);
    outsider->acting = true;
    result = function(&stack, argument);
    outsider->acting = false;
    domi_outsider_end_stack_of_verb(outsider, &stack);
    domi_turn_end(&stack, result);
    domi_run_end(manager);
    domi_seat_queue_actor_if_runnable(outsider);
    domi_outsider_leave_seat(outsider, &visit);
    return result == DOMUS_PARKED ? 0 : result;
}
