/* The house to which the address of a remote actor points (directory/remote.h). It has no home,
 * like the face of a router; its behaviour distinguishes it from such a face. */
#ifndef DOMI_HOUSE_MESSAGE_REMOTE_H
#define DOMI_HOUSE_MESSAGE_REMOTE_H

#include "house/message/house.h"

/* The behaviour of the houses of all remote actors. None of its functions is ever called. */
extern const domus_behaviour domi_remote_behaviour;

static inline bool domi_house_is_remote(const domi_house *house)
{
    return house->home == NULL && house->behaviour == &domi_remote_behaviour;
}

#endif
