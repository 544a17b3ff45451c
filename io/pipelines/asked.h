/* The asks that the peer of a channel has to answer, by their numbers. Asks are numbered in the
 * order in which they are sent. An answer without an id is for the oldest ask, and one with an id
 * for the ask of that number, in any order. Each costs O(1): ask n is in list n & (lists_count -
 * 1), of about as many lists as there ever were asks at the same time. Owner thread. */
#ifndef DOMI_IO_PIPELINES_ASKED_H
#define DOMI_IO_PIPELINES_ASKED_H

#include "house/message/manager.h"

typedef struct domi_asked {
    domi_node **lists;    /* circular lists, the oldest ask first; NULL: no ask was sent yet */
    uint32_t lists_count; /* number of lists; a power of 2 */
    uint32_t count;       /* number of asks */
    uint32_t oldest;      /* no ask has a number below this one */
} domi_asked;

/* Make room for one more ask. Returns 0; -ENOMEM. */
int domi_asked_make_room(domi_asked *asked);

/* Add an ask, for which there is room, and whose number is above those of all others. */
void domi_asked_put(domi_asked *asked, domi_envelope *ask, uint32_t number);

/* Returns the oldest ask, which stays; NULL: there is none. */
domi_envelope *domi_asked_oldest(domi_asked *asked);

/* Remove and return the ask with this number; NULL: there is none. */
domi_envelope *domi_asked_take(domi_asked *asked, uint32_t number);

/* Remove and return the oldest ask; NULL: there is none. */
domi_envelope *domi_asked_take_oldest(domi_asked *asked);

/* Free the lists, in which no ask is left. */
void domi_asked_free(domi_asked *asked);

#endif
