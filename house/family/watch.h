/* Watches: an actor that watches another one hears of its end, or of room in its mailbox.
 *
 * A watch is paid for when it is made (M11): it is one record, which travels to the watched
 * house, stays attached there, and comes back as the event itself. A second node in the record
 * travels after it if the watch is taken back. So two nodes can be under way at once; each is a
 * leg, the record counts its legs, and the thread that ends the last leg frees the record.
 * `attached` and `link_` belong to the home of the watched house; `cancelled`, `next` and
 * `previous` belong to the watcher. */
#ifndef DOMI_HOUSE_FAMILY_WATCH_H
#define DOMI_HOUSE_FAMILY_WATCH_H

#include "house/message/link.h"
#include "house/message/manager.h"

#include <domus/supervise.h>

typedef struct domi_watch domi_watch;

struct domi_watch {
    union {
        domi_envelope event; /* the message that tells the watcher */
        struct {
            domi_node node;                            /* lies over the node of `event` */
            DOMI_KEEP_PLACE(8) const domus_type *type; /* type of the event: down or room */
            /* on the side that made a link: the watch of the other direction; else NULL */
            DOMI_KEEP_PLACE(8) domi_watch *peer;
            DOMI_KEEP_PLACE(8) _Atomic uint32_t legs; /* legs that have not ended */
            bool link;          /* the watch is one of the two watches of a link */
            bool attached;      /* the watch is in the list `attached` of the watched house */
            bool cancelled;     /* the watch was taken back, so its event is not handled */
            _Atomic bool owned; /* the watch is in its watcher's list */
            /* the event's payload: which actor has ended, and why */
            DOMI_KEEP_PLACE(8) domus_down down;
        };
    };
    domi_node unwatch;      /* travels to the watched house to take the watch back */
    domi_house *watcher;    /* the actor that watches */
    uint32_t watcher_lease; /* lease of that actor */
    /* grows when the watch is freed, so that old handles are known */
    _Atomic uint32_t generation;
    domi_watch *next;             /* links in the watcher's list */
    domi_watch *previous;         /* links the watcher's list backwards */
    DOMI_AT_LINK domi_link link_; /* links in the house's list of what is attached to it */
};

static_assert(sizeof(domi_watch) == 128, "two cache lines");
static_assert(offsetof(domi_watch, down) == offsetof(domi_envelope, payload),
              "the event's payload");
static_assert(offsetof(domi_watch, link_) == DOMI_LINK_OFFSET, "as a timer's");

/* A node of a watch (the watch itself, or the node that takes it back) has come to the watched
 * house. Home only. */
void domi_watch_handle_arrival(domi_manager *manager, domi_house *house, domi_node *node);

/* Throw a node of a watch away, because its mailbox is emptied or the node came too late. */
void domi_watch_drop_node(domi_manager *manager, domi_node *node);

/* The watcher is about to handle the event. Returns false if there is nothing to handle.
 * domi_watch_end_event() has to follow in every case. */
bool domi_watch_begin_event(domi_manager *manager, domi_house *house, domi_node *node);
void domi_watch_end_event(domi_manager *manager, domi_house *house, domi_node *node);

/* Send the events of all watches on `house`, because it ends. Home only. */
void domi_watch_fire_all(domi_manager *manager, domi_house *house);

/* If there is room in the mailbox of `house` again, clear FULL, and send the events of all watches
 * that wait for room. Home only. */
void domi_watch_fire_room(domi_manager *manager, domi_house *house);

/* Send the events of all watches on `house` that wait for room. Home; or, if it is that of a remote
 * actor, the gateway that owns the address. */
void domi_watch_fire_room_now(domi_manager *manager, domi_house *house);

/* The channel of `house` has more to send than it may, or no longer. While it has, the mailbox is
 * full, and watches for room wait. Home only. */
void domi_house_set_backlogged(domi_manager *manager, domi_house *house, bool backlogged);

/* Take back all watches that the house has made, because it ends or restarts. */
void domi_watch_cancel_all(domi_manager *manager, domi_house *house);

#endif
