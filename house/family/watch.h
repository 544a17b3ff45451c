/* Watches: who wants to hear of an actor's end, or of room in its mailbox.
 *
 * A watch is paid for when it is made (M11): one record that travels to the house it is about,
 * stays attached there, and comes back as the event itself. To take it back, a second node in it
 * travels after it. Two nodes can be under way, so the record counts its legs, and who ends the
 * last one frees it. What of a record is whose: `attached` and its links are of the watched house's
 * home; `cancelled` and the own links of the watcher. */
#ifndef DOMI_HOUSE_FAMILY_WATCH_H
#define DOMI_HOUSE_FAMILY_WATCH_H

#include "house/message/manager.h"

#include <domus/supervise.h>

/* What is attached to a house: its timers, and watches on it. It stands at the same place in both.
 */
typedef struct domi_link {
    struct domi_link *next;
    struct domi_link *previous;
} domi_link;

#define DOMI_LINK_OFFSET 112

typedef struct domi_watch domi_watch;

struct domi_watch {
    union {
        domi_envelope event;
        struct {
            domi_node node;
            const domus_type *type; /* of the event: down, room */
            domi_watch *peer;       /* of a link, on the side that made it: the other way's */
            _Atomic uint32_t legs;
            bool link;
            bool attached;
            bool cancelled;
            _Atomic bool owned; /* in its watcher's list */
            domus_down down;
        };
    };
    domi_node unwatch;
    domi_house *watcher;
    uint32_t watcher_lease;
    _Atomic uint32_t generation;
    domi_watch *next; /* among those of its watcher */
    domi_watch *previous;
    domi_link link_;
};

static_assert(sizeof(domi_watch) == 128, "two cache lines");
static_assert(offsetof(domi_watch, down) == offsetof(domi_envelope, payload),
              "the event's payload");
static_assert(offsetof(domi_watch, link_) == DOMI_LINK_OFFSET, "as a timer's");

static inline void domi_link_add(domi_house *house, domi_link *link)
{
    link->previous = NULL;
    link->next = house->attached;
    if (link->next != NULL)
        link->next->previous = link;
    house->attached = link;
}

static inline void domi_link_remove(domi_house *house, domi_link *link)
{
    if (link->next != NULL)
        link->next->previous = link->previous;
    if (link->previous != NULL)
        link->previous->next = link->next;
    else
        house->attached = link->next;
}

static inline domi_node *domi_link_node(domi_link *link)
{
    return (domi_node *)(void *)((char *)link - DOMI_LINK_OFFSET);
}

/* A watch's node, or the one that takes it back, has come to the house that it is about. Home. */
void domi_watch_arrived(domi_manager *manager, domi_house *house, domi_node *node);

/* A node of a watch goes with its mailbox, or came too late. */
void domi_watch_dropped(domi_manager *manager, domi_node *node);

/* The event is on its watcher's turn: false if there is nothing to handle. domi_watch_handled() is
 * to follow in every case. */
bool domi_watch_take(domi_manager *manager, domi_house *house, domi_watch *watch);
void domi_watch_handled(domi_manager *manager, domi_watch *watch);

/* The house ends: tell who watches it. Home. */
void domi_watch_fire_all(domi_manager *manager, domi_house *house);

/* There is room in its mailbox again. Home. */
void domi_watch_room(domi_manager *manager, domi_house *house);

/* The house ends or restarts: take back what it watches. */
void domi_watch_cancel_all(domi_manager *manager, domi_house *house);

#endif
