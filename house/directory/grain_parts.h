/* Grains over nodes: the grains of some kinds are spread over several systems by a library
 * (domus/remote.h, which has the words), and fall into *parts* by a hash of kind and key that is
 * the same everywhere.
 *
 * A message to such a grain goes to the grains of this system only if the thread of its sender has
 * opened the part, and if the sender is at home there: the thread's gateway has opened it, in whose
 * mailbox nothing waited, so nothing that was sent before is overtaken. Each other message goes
 * into the mailbox of the sender's gateway, as one to a remote actor does, with the grain noted in
 * a tail behind its payload. The gateway sends it to another system, or passes it on to the grain
 * here: a put to the address `here` reads the tail.
 *
 * A life is made only in a part that has a fence, and keeps this number. */
#ifndef DOMI_HOUSE_DIRECTORY_GRAIN_PARTS_H
#define DOMI_HOUSE_DIRECTORY_GRAIN_PARTS_H

#include "house/directory/grain.h"

#include <errno.h>

/* The grain that a message is for, behind its payload. */
typedef struct domi_grain_tail {
    domi_grain_kind *kind;
    uint32_t part;
    char key[DOMI_NAME_MAX + 1];
} domi_grain_tail;

/* The tail of a message that has come to a gateway. */
const domi_grain_tail *domi_grain_tail_of(const domi_envelope *message);

/* Put a message to a grain of a kind that is spread. Owner. */
int domi_grain_put_placed(domi_manager *manager, domi_manager *near, domi_grain_kind *kind,
                          const char *key, domi_node *node, uint32_t mail,
                          domus_address *ret_address);

/* Put a message that has a tail to the grain of this system. Returns as domi_grain_put(). Owner. */
int domi_grain_put_here(domi_manager *manager, domi_node *node);

/* Put a message to the grain `key`, wherever that lives: as domi_grain_put_local(); the message to
 * a grain elsewhere is for an address that only gateways know. -EINVAL for a NULL kind. Owner. */
static inline int domi_grain_put(domi_manager *manager, domi_manager *near, domi_grain_kind *kind,
                                 const char *key, domi_node *node, uint32_t mail,
                                 domus_address *ret_address)
{
    if (kind == NULL)
        return -EINVAL;
    if (DOMI_UNLIKELY(atomic_load_explicit(&kind->parts, memory_order_relaxed) != NULL))
        return domi_grain_put_placed(manager, near, kind, key, node, mail, ret_address);
    return domi_grain_put_local(manager, near, kind, key, node, mail, ret_address);
}

#endif
