/* Lists of kept asks (domus/waiters.h). A list lies in memory of its actor, and is not told that an
 * asker has gone: it looks for such asks when it has no free place. Owner thread. */
#include <domus/waiters.h>

#include <errno.h>

/* End those kept asks of the list whose askers do not wait any more; the others stay in their
 * order. A cancel does not come for all of them: an asker that goes on without its answer sends no
 * cancel, and its ask would be kept for ever. */
static void end_asks_without_waiting_asker(domus_stack *stack, domus_waiters *waiters)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < waiters->count; i++) {
        domus_waiter waiter = waiters->places[i];
        if (domus_kept_is_wanted(stack, waiter.kept))
            waiters->places[kept++] = waiter;
        else
            (void)domus_kept_fail(stack, waiter.kept, -ECANCELED);
    }
    waiters->count = kept;
}

/* True if the list has a place for one more kept ask of this owner. */
static bool has_list_place_for_ask(const domus_waiters *waiters, uint64_t owner)
{
    uint32_t share = 0;

    if (waiters->count >= waiters->places_max)
        return false;
    if (owner == 0 || waiters->share_max == 0)
        return true;
    for (uint32_t i = 0; i < waiters->count; i++)
        share += waiters->places[i].owner == owner;
    return share < waiters->share_max;
}

int domus_waiters_keep(domus_stack *stack, domus_waiters *waiters, uint64_t owner)
{
    if (!has_list_place_for_ask(waiters, owner)) {
        end_asks_without_waiting_asker(stack, waiters);
        if (!has_list_place_for_ask(waiters, owner))
            return -ENOBUFS;
    }
    domus_waiter *place = &waiters->places[waiters->count];
    int error = domus_keep(stack, &place->kept);
    if (error != 0)
        return error;
    place->owner = owner;
    waiters->count++;
    return 0;
}

uint32_t domus_waiters_reply(domus_stack *stack, domus_waiters *waiters, const domus_type *type,
                             const void *payload)
{
    uint32_t answered = 0;

    if (type->release != NULL || type->size > DOMUS_PAYLOAD_MAX)
        return 0;
    for (uint32_t i = 0; i < waiters->count; i++)
        answered += domus_kept_reply(stack, waiters->places[i].kept, type, payload) == 0;
    waiters->count = 0;
    return answered;
}
