/* Watches on the shortage of memory.
 *
 * A watch needs no memory after it was made (M11): it is one record in the list of its actor's
 * home, and the record is the event itself. Home puts the event if the levels have changed and the
 * event is not under way. The levels are read when the event is handled, so an actor always sees
 * the latest ones. The actor may be lent meanwhile, so the list and those fields of a record that
 * both threads use are under the lock of home's `memory.watches`. */
#ifndef DOMI_HOUSE_FAMILY_MEMORY_WATCH_H
#define DOMI_HOUSE_FAMILY_MEMORY_WATCH_H

#include "house/message/link.h"
#include "house/message/manager.h"

#include <domus/memory.h>

typedef struct domi_memory_watch domi_memory_watch;

struct domi_memory_watch {
    union {
        domi_envelope event; /* the watch's message, which tells the actor of a change of memory */
        struct {
            unsigned char head[DOMI_ENVELOPE_HEAD]; /* unused; lies over the head of `event` */
            domus_memory_change change;             /* the event's payload: the levels of memory */
        };
    };
    domi_house *house;                              /* the actor that watches memory */
    DOMI_KEEP_PLACE(8) domi_memory_watch *next;     /* next watch on memory in home's list */
    DOMI_KEEP_PLACE(8) domi_memory_watch *previous; /* previous watch on memory in home's list */
    uint32_t lease;                                 /* lease of the actor that watches memory */
    uint32_t told;  /* number of the last change of memory of which the actor was told */
    bool under_way; /* whether the watch's event is in the mailbox or is being handled */
    /* whether the watch was cancelled; it is freed once its event is not under way */
    bool cancelled;
    DOMI_AT_LINK domi_link link; /* link of the watch in the house's list `attached` */
};

static_assert(sizeof(domi_memory_watch) == 128, "two cache lines");
static_assert(offsetof(domi_memory_watch, link) == DOMI_LINK_OFFSET, "as a timer's");
static_assert(offsetof(domi_memory_watch, change) == DOMI_ENVELOPE_HEAD, "the event's payload");

/* Put the events of a bounded number of watches on memory whose actors were not told of the latest
 * change. `manager` is the calling thread's: that of home, once a tick, or of a runner of home's
 * pool. */
void domi_memory_watches_put_events(domi_manager *manager, domi_manager *home);

/* True if an actor of this home watches memory. Any thread; the answer may be out of date. */
bool domi_memory_is_watched(const domi_manager *manager);

/* Read the levels of memory into an event that is about to be handled. Returns false if the watch
 * was cancelled, so that there is nothing to handle. */
bool domi_memory_watch_read_levels_for_event(domi_manager *manager, domi_memory_watch *watch);

/* End the event of a watch on memory: domi_memory_watch_end_event() after it was handled,
 * domi_memory_watch_drop_node() when it is dropped with its mailbox. */
void domi_memory_watch_end_event(domi_manager *manager, domi_memory_watch *watch);
void domi_memory_watch_drop_node(domi_manager *manager, domi_memory_watch *watch);

/* Cancel a watch on memory, because its house ends or restarts, or wants no more events. */
void domi_memory_watch_cancel(domi_manager *manager, domi_memory_watch *watch);

#endif
