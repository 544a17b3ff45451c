/* Grains over nodes: a library spreads the grains of some kinds over several systems
 * (domus/remote.h, which has the words). These grains fall into *parts* by a hash of kind and key
 * that is the same everywhere.
 *
 * A message to such a grain goes to the grains of this system only if two things hold: the thread
 * of its sender has opened the part, and the sender is at home there. The thread's gateway has
 * opened the part while nothing waited in its mailbox, so the message overtakes none that was sent
 * before. Each other message goes into the mailbox of the sender's gateway, as a message to a
 * remote actor does; a tail behind its payload names the grain. The gateway sends it to another
 * system, or passes it on to the grain here: a put to the address `here` reads the tail.
 *
 * A life is made only in a part that has a fence, and keeps this number. */
#ifndef DOMI_HOUSE_DIRECTORY_GRAIN_PARTS_H
#define DOMI_HOUSE_DIRECTORY_GRAIN_PARTS_H

#include "house/directory/grain.h"

#include <errno.h>

/* The tail behind a payload, which names the grain that the message is for. */
typedef struct domi_grain_tail {
    domi_grain_kind *kind;
    uint32_t part;
    char key[DOMI_NAME_MAX + 1];
} domi_grain_tail;

/* Returns the tail of a message that has come to a gateway. */
const domi_grain_tail *domi_grain_tail_of_message(const domi_envelope *message);

/* Put a message to a grain whose kind is spread over nodes: to this system or to the gateway.
 * Owner. */
int domi_grain_put_here_or_to_gateway(domi_manager *manager, domi_manager *near,
                                      domi_grain_kind *kind, const char *key, domi_node *node,
                                      uint32_t mail, domus_address *ret_address);

/* Put a message that has a tail to the grain of this system. Returns as
 * domi_grain_put_wherever_it_lives(). Owner. */
int domi_grain_put_by_tail_of_message(domi_manager *manager, domi_node *node);

/* Put a message to the grain `key`, wherever it lives, as domi_grain_put_in_this_system() does. The
 * message to a grain elsewhere goes to an address that only gateways know. -EINVAL for a NULL kind.
 * Owner. */
static inline int domi_grain_put_wherever_it_lives(domi_manager *manager, domi_manager *near,
                                                   domi_grain_kind *kind, const char *key,
                                                   domi_node *node, uint32_t mail,
                                                   domus_address *ret_address)
{
    if (kind == NULL)
        return -EINVAL;
    if (DOMI_UNLIKELY(atomic_load_explicit(&kind->parts, memory_order_relaxed) != NULL))
        return domi_grain_put_here_or_to_gateway(manager, near, kind, key, node, mail, ret_address);
    return domi_grain_put_in_this_system(manager, near, kind, key, node, mail, ret_address);
}

#endif
