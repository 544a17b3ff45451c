/* The asks that the peer of a channel has to answer, by their numbers. Asks are numbered in the
 * order in which they are sent. An answer without an id is for the oldest ask, and one with an id
 * for the ask of that number, in any order. Each costs O(1): ask n is in list n & (lists_count -
 * 1), of about as many lists as there ever were asks at the same time. Owner thread. */
#ifndef DOMI_IO_PIPELINES_ASKED_H
#define DOMI_IO_PIPELINES_ASKED_H

#include "house/message/manager.h"

typedef struct domi_asked {
    /* circular lists of asks with the peer, the oldest ask first; NULL: no ask was sent yet */
    domi_node **lists;
    uint32_t lists_count; /* number of lists in `lists`; a power of 2 */
    uint32_t count;       /* number of asks that the peer has to answer */
    uint32_t oldest;      /* no ask with the peer has a number below this one */
} domi_asked;

/* Make room for one more ask that is sent to the peer. Returns 0; -ENOMEM. */
int domi_asked_make_room_for_ask(domi_asked *asked);

/* Add an ask that is sent to the peer. There must be room for it, and its number is above the
 * numbers of all others. */
void domi_asked_put_ask(domi_asked *asked, domi_envelope *ask, uint32_t number);

/* Returns the oldest ask that the peer has to answer, which stays; NULL: there is none. */
domi_envelope *domi_asked_get_oldest(domi_asked *asked);

/* Remove and return the ask that has this number; NULL: there is none. */
domi_envelope *domi_asked_take_by_number(domi_asked *asked, uint32_t number);

/* Remove and return the oldest ask that the peer has to answer; NULL: there is none. */
domi_envelope *domi_asked_take_oldest(domi_asked *asked);

/* Free the lists of asks with the peer; no ask may be left in them. */
void domi_asked_free_lists(domi_asked *asked);

#endif
