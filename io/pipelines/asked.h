/* The asks that the peer of a channel has to answer, by their numbers. Asks are numbered in the
 * order in which they are sent. An answer without an id is that of the oldest, and one with an id
 * that of its number, in any order. Each costs O(1): the ask n is in the list n & (lists_count - 1)
 * of as many lists as there were asks at a time. Owner thread. */
#ifndef DOMI_IO_PIPELINES_ASKED_H
#define DOMI_IO_PIPELINES_ASKED_H

#include "house/message/manager.h"

typedef struct domi_asked {
    domi_node **lists;    /* circular lists, the oldest ask first; NULL: nothing was asked yet */
    uint32_t lists_count; /* a power of 2 */
    uint32_t count;       /* asks */
    uint32_t oldest;      /* no ask has a number before this one */
} domi_asked;

/* Make room for one more ask. Returns 0; -ENOMEM. */
int domi_asked_make_room(domi_asked *asked);

/* Put an ask, for which there is room, and whose number is above those of all others. */
void domi_asked_put(domi_asked *asked, domi_envelope *ask, uint32_t number);

/* Returns the oldest ask, which stays; NULL: there is none. */
domi_envelope *domi_asked_oldest(domi_asked *asked);

/* Take the ask with this number. NULL: there is none. */
domi_envelope *domi_asked_take(domi_asked *asked, uint32_t number);

/* Take the oldest ask. NULL: there is none. */
domi_envelope *domi_asked_take_oldest(domi_asked *asked);

/* Free what asked has; no ask is left. */
void domi_asked_free(domi_asked *asked);

#endif
