/* Measures the idle time of actors by a timer that fires and looks when the house last ran. So a
 * message costs a store and not a new timer. */
#include "house/family/passivation.h"

#include "house/conversation/stack.h"
#include "house/conversation/timer.h"
#include "house/message/family.h"
#include "house/message/stop.h"

#include <domus/spawn.h>

#include <errno.h>

const domus_type domi_idle_type = {.name = "idle"};

/* True if the house is a life of a grain that still works for an asker, or will at once. The asker
 * knows nothing of lives, so an end of this life must not lose the answer. */
static bool is_grain_life_busy(const domi_house *house)
{
    return house->family->grain != NULL && (house->stacks != NULL || house->mail != 0);
}

void domi_house_check_idle_time(domi_manager *manager, domi_house *house)
{
    domi_family *family = house->family;
    uint64_t now_ns = manager->now_ns;
    uint64_t until_ns = family->last_ns + family->idle_max_ns;
    domi_timer *timer;

    if (family->idle_paused)
        until_ns = now_ns + family->idle_max_ns;
    if (until_ns <= now_ns && house->state == DOMI_RUNNING && !is_grain_life_busy(house)) {
        domi_counter_add(&manager->counters.passivations, 1);
        (void)domi_house_ask_to_stop(manager, domi_house_get_address(house));
        return;
    }
    /* Without memory for the timer of its idle time, the actor stays until something else stops
     * it. */
    (void)domi_timer_new(manager, house,
                         until_ns > now_ns ? until_ns - now_ns : family->idle_max_ns, 0,
                         &domi_idle_type, NULL, &timer);
}

static int set_idle_time_paused(domus_stack *stack, bool paused)
{
    domi_house *house = domi_stack_get_house(stack);

    if ((house->marks & DOMI_MARK_PASSIVATES) == 0)
        return -EINVAL;
    house->family->idle_paused = paused;
    if (!paused)
        house->family->last_ns = stack->manager->now_ns;
    return 0;
}

int domus_passivation_pause(domus_stack *stack)
{
    return set_idle_time_paused(stack, true);
}

int domus_passivation_resume(domus_stack *stack)
{
    return set_idle_time_paused(stack, false);
}
