/* Watches on how short memory is.
 *
 * A watch is paid for when it is made (M11): one record in the list of its actor's home, which is
 * the event itself. Home puts it when the levels have changed and it is not under way; what it says
 * is read when it is handled, so it is always the latest. The actor may be lent to another thread
 * meanwhile: the list and what is noted in a record are under home's `memory_lock`. */
#ifndef DOMI_HOUSE_FAMILY_MEMORY_WATCH_H
#define DOMI_HOUSE_FAMILY_MEMORY_WATCH_H

#include "house/family/watch.h"

#include <domus/memory.h>

typedef struct domi_memory_watch domi_memory_watch;

struct domi_memory_watch {
    union {
        domi_envelope event;
        struct {
            unsigned char head[DOMI_ENVELOPE_HEAD];
            domus_memory_change change; /* the event's payload */
        };
    };
    domi_house *house;
    domi_memory_watch *next; /* among those of its home; also the one at the tail */
    domi_memory_watch *previous;
    uint32_t lease; /* of the house */
    uint32_t told;  /* the change that it was told last */
    bool under_way; /* it is in the mailbox, or being handled */
    bool cancelled; /* taken back: freed once it is not under way */
    domi_link link;
};

static_assert(sizeof(domi_memory_watch) == 128, "two cache lines");
static_assert(offsetof(domi_memory_watch, link) == DOMI_LINK_OFFSET, "as a timer's");
static_assert(offsetof(domi_memory_watch, change) == DOMI_ENVELOPE_HEAD, "the event's payload");

/* Home, once a tick: put the events of watches that have not been told the latest change, a bounded
 * number of them. */
void domi_memory_watches_tell(domi_manager *manager);

/* Some actor of this home watches. Any thread: what it says may be late. */
bool domi_memory_is_watched(const domi_manager *manager);

/* The event is on its actor's turn: false if there is nothing to handle. */
bool domi_memory_watch_take(domi_manager *manager, domi_memory_watch *watch);

/* It was handled; or it was dropped with its mailbox. */
void domi_memory_watch_handled(domi_manager *manager, domi_memory_watch *watch);
void domi_memory_watch_dropped(domi_manager *manager, domi_memory_watch *watch);

/* The house ends or restarts, or takes it back. */
void domi_memory_watch_cancel(domi_manager *manager, domi_memory_watch *watch);

#endif
