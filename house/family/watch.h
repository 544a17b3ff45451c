/* Watches: an actor that watches another one is told of its end, or of room in its mailbox.
 *
 * A watch needs no memory after it was made (M11): it is one record, which travels to the watched
 * house, stays attached there, and comes back as the event itself. If the watch is taken back, a
 * second node in the record travels after the first. So two nodes can be under way at once; each is
 * a leg, the record counts its legs, and the thread that ends the last leg frees the record.
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
        /* the message that tells the watcher what has happened to the watched actor */
        domi_envelope event;
        struct {
            domi_node node; /* unused; lies over the node of `event` */
            /* type of the watch's event: domus_down_type or domus_room_type */
            DOMI_KEEP_PLACE(8) const domus_type *type;
            /* the watch of the other direction, if this watch is the one of a link on the side that
             * made the link; else NULL */
            DOMI_KEEP_PLACE(8) domi_watch *peer;
            /* number of the watch's legs that have not ended */
            DOMI_KEEP_PLACE(8) _Atomic uint32_t legs;
            bool link;      /* whether the watch belongs to a link, which has two watches */
            bool attached;  /* whether the watch is in the list `attached` of the watched house */
            bool cancelled; /* whether the watch was taken back, so that its event is not handled */
            _Atomic bool owned; /* whether the watch is in its watcher's list of watches */
            /* the event's payload: which actor has ended, and why */
            DOMI_KEEP_PLACE(8) domus_down down;
        };
    };
    domi_node unwatch;      /* node that travels to the watched house to take the watch back */
    domi_house *watcher;    /* the actor that watches */
    uint32_t watcher_lease; /* lease of the actor that watches */
    /* grows when the watch's record is taken again, so that old handles are stale */
    _Atomic uint32_t generation;
    domi_watch *next;             /* next watch in the watcher's list */
    domi_watch *previous;         /* previous watch in the watcher's list */
    DOMI_AT_LINK domi_link link_; /* link of the watch in the watched house's list `attached` */
};

static_assert(sizeof(domi_watch) == 128, "two cache lines");
static_assert(offsetof(domi_watch, down) == offsetof(domi_envelope, payload),
              "the event's payload");
static_assert(offsetof(domi_watch, link_) == DOMI_LINK_OFFSET, "as a timer's");

/* Handle a node of a watch (the watch itself, or the node that takes it back) that has come to the
 * watched house. Home only. */
void domi_watch_attach_or_detach_by_node(domi_manager *manager, domi_house *house, domi_node *node);

/* Drop a node of a watch, because its mailbox is emptied or the node came too late. */
void domi_watch_drop_unhandled_node(domi_manager *manager, domi_node *node);

/* Prepare the event of a watch, which the watcher is about to handle. Returns false if there is
 * nothing to handle. domi_watch_drop_reference_after_event() has to follow in every case. */
bool domi_watch_prepare_event_to_handle(domi_manager *manager, domi_house *house, domi_node *node);
void domi_watch_drop_reference_after_event(domi_manager *manager, domi_house *house,
                                           domi_node *node);

/* Send the events of all watches on `house`, because it ends. Home only. */
void domi_watch_tell_all_of_end(domi_manager *manager, domi_house *house);

/* If the mailbox of `house` has room again, clear FULL, and send the events of all watches that
 * wait for room. Home only. */
void domi_watch_tell_of_room_if_there_is(domi_manager *manager, domi_house *house);

/* Send the events of all watches on `house` that wait for room. Home; for the house of a remote
 * actor, the gateway that owns the address. */
void domi_watch_tell_of_room(domi_manager *manager, domi_house *house);

/* Record whether the channel of `house` has more to send than it may. If it has, the mailbox is
 * full, and watches for room wait. Home only. */
void domi_house_set_backlogged(domi_manager *manager, domi_house *house, bool backlogged);

/* Take back all watches that the actor of the house has made, because it ends or restarts. */
void domi_watch_take_back_all_of_house(domi_manager *manager, domi_house *house);

#endif
