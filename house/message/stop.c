/* Asks actors to stop: by one compare-exchange, and by one put if the actor lives on another
 * home. */
#include "house/message/stop.h"

#include "base/check.h"
#include "house/message/doors.h"
#include "house/message/mailbox.h"

#include <errno.h>

/* Set `bits` (STOP, or STOP and HASTE) in an actor's life word. If one of them is new, rouse the
 * house, or put its node to its home if that is another thread. Returns 0; -ESTALE: the actor has
 * ended; or the error of the put. */
static int set_stop_bits_and_rouse_house(domi_manager *manager, domus_address address,
                                         uint64_t bits)
{
    domi_house *house = address.house;

    DOMI_CHECK_SLOW(domi_manager_is_owned_by_caller(manager));
    if (house == NULL || house == manager->asker)
        return -ESTALE;
    if (house->home == NULL)
        return domi_doors.stop_face(manager, address);

    uint64_t life = domi_house_life_word(house);
    uint64_t next;
    do {
        if (DOMI_LIFE_LEASE(life) != address.lease || (life & DOMI_LIFE_CLOSED) != 0)
            return -ESTALE;
        if ((life & bits) == bits)
            return 0;
        next = life | bits;
        if (house->home != manager)
            next |= DOMI_LIFE_NODE;
        /* One word holds the lease and the bits, so a stale stop cannot hit the slot's
         * next actor (M9).
         * acquire: pairs with home's release of the node in domi_house_handle_own_node(). */
    } while (!atomic_compare_exchange_weak_explicit(&house->life, &life, next, memory_order_acquire,
                                                    memory_order_relaxed));
    if (house->home == manager) {
        domi_house_let_act_on_change(manager, house);
    } else if ((life & DOMI_LIFE_NODE) == 0) {
        house->node.kind = DOMI_STOP;
        house->node.lease = address.lease;
        int error = domi_mailbox_put_slow(manager, house, &house->node);
        /* The put succeeds while the system runs, because the bit DOMI_LIFE_NODE keeps the house
         * from being freed. */
        DOMI_CHECK(error == 0 || manager->ending.has_stopped);
        return error;
    } /* the house's node is under way already, and home checks STOP when the node has come */
    return 0;
}

int domi_house_ask_to_stop(domi_manager *manager, domus_address address)
{
    return set_stop_bits_and_rouse_house(manager, address, DOMI_LIFE_STOP);
}

int domi_house_ask_to_stop_hastily(domi_manager *manager, domus_address address)
{
    return set_stop_bits_and_rouse_house(manager, address, DOMI_LIFE_STOP | DOMI_LIFE_HASTE);
}
