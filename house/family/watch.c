/* Carries watches to the watched actors, fires them, and takes them back; also has the public verbs
 * that make them. */
#include "house/family/watch.h"

#include "base/check.h"
#include "house/conversation/stack.h"
#include "house/message/doors.h"
#include "house/message/family.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/remote.h"
#include "house/message/stop.h"

#include <domus/remote.h>

#include <errno.h>
#include <string.h>

const domus_type domus_down_type = {.name = "down", .size = sizeof(domus_down)};
const domus_type domus_room_type = {.name = "room", .size = sizeof(domus_down)};
const domus_type domus_remote_watch_type = {.name = "remote watch",
                                            .size = sizeof(domus_remote_watch)};

static domi_watch *get_watch_of_node(domi_node *node)
{
    if (node->slab == DOMI_SLAB_UNWATCH)
        return (domi_watch *)(void *)((char *)node - offsetof(domi_watch, unwatch));
    return (domi_watch *)(void *)node;
}

/* End `legs` legs of a watch (watch.h). The last leg frees the watch's record. */
static void free_watch_record_with_its_last_leg(domi_manager *manager, domi_watch *watch,
                                                uint32_t legs)
{
    /* acq_rel: all writes of the thread with the other leg come before the record is used again. */
    if (atomic_fetch_sub_explicit(&watch->legs, legs, memory_order_acq_rel) != legs)
        return;
    domi_pool_free_object(manager, &watch->node);
}

/* --- the watched house's side ---------------------------------------------------------------- */

static void send_event_of_watch(domi_manager *manager, domi_watch *watch, int reason)
{
    domus_address watcher = {watch->watcher, watch->watcher_lease};

    watch->down.reason = reason;
    if (domi_mailbox_put(manager, watcher, &watch->node, DOMI_EVENT) != 0)
        free_watch_record_with_its_last_leg(manager, watch, 1);
}

static void detach_watch_from_house(domi_house *house, domi_watch *watch)
{
    watch->attached = false;
    domi_link_detach_from_house(house, &watch->link_);
}

/* True if asks and notices have room in the mailbox. An actor that stops counts as without room; a
 * watch on it only tells that it is gone. */
static bool has_mailbox_room_unless_stopping(const domi_manager *manager, const domi_house *house)
{
    uint64_t life = domi_house_life_word(house);

    return (life & DOMI_LIFE_STOP) == 0 && domi_mailbox_has_room(manager, house);
}

/* Attach a watch on a remote actor to the house of its address, and tell `gateway`, at which the
 * watch has arrived. */
static void attach_watch_to_remote_actor(domi_manager *manager, domi_house *gateway,
                                         domi_watch *watch)
{
    domus_address who = watch->down.who;
    domi_envelope *event =
        domi_envelope_new(manager, DOMI_ENVELOPE_HEAD + sizeof(domus_remote_watch));
    domus_remote_watch told = {.room = watch->type == &domus_room_type};

    if (event == NULL ||
        /* there is memory, but the remote actor has ended meanwhile */
        !domi_doors.read_remote_name(manager, who, &told.name)) {
        if (event != NULL)
            domi_pool_free_object(manager, &event->node);
        send_event_of_watch(manager, watch, event != NULL ? -ESTALE : -ENOMEM);
        return;
    }
    watch->attached = true;
    domi_link_attach_to_house(who.house, &watch->link_);
    event->type = &domus_remote_watch_type;
    event->sender = NULL;
    event->sender_lease = 0;
    memcpy(event->payload, &told, sizeof told);
    /* The event is appended to the mailbox and not put, so that it comes before a later stop of the
     * same actor. */
    event->node.lease = domi_house_get_address(gateway).lease;
    event->node.kind = DOMI_EVENT;
    domi_mailbox_append_node(manager, gateway, &event->node, DOMI_EVENT);
}

/* Returns the house to which a watch has to be attached: that of the watched actor. If the actor is
 * remote, the watch has come to its gateway `house` instead. */
static domi_house *get_house_to_attach_watch_to(const domi_watch *watch, domi_house *house)
{
    return domi_house_is_remote(watch->down.who.house) ? watch->down.who.house : house;
}

void domi_watch_attach_or_detach_by_node(domi_manager *manager, domi_house *house, domi_node *node)
{
    domi_watch *watch = get_watch_of_node(node);

    if (node->slab == DOMI_SLAB_UNWATCH) {
        uint32_t legs = 1;
        if (watch->attached) {
            detach_watch_from_house(get_house_to_attach_watch_to(watch, house), watch);
            legs = 2;
        }
        free_watch_record_with_its_last_leg(manager, watch, legs);
        return;
    }
    if (DOMI_UNLIKELY(domi_house_is_remote(watch->down.who.house))) {
        attach_watch_to_remote_actor(manager, house, watch);
        return;
    }
    if (watch->type == &domus_room_type && has_mailbox_room_unless_stopping(manager, house)) {
        send_event_of_watch(manager, watch, 0);
        return;
    }
    if (watch->type == &domus_room_type)
        domi_mailbox_mark_full(house); /* a marked house looks for room after each of its runs */
    watch->attached = true;
    domi_link_attach_to_house(house, &watch->link_);
}

void domi_watch_drop_unhandled_node(domi_manager *manager, domi_node *node)
{
    domi_watch *watch = get_watch_of_node(node);

    if (node->slab == DOMI_SLAB_WATCH && node->kind == DOMI_WATCH)
        /* the watch has come too late to be attached, so its watcher gets the event at once */
        send_event_of_watch(manager, watch, -ESTALE);
    else
        free_watch_record_with_its_last_leg(manager, watch, 1);
}

/* Returns the reason that the event of a watch gives when the house ends. A remote actor whose node
 * is down may live, and its address may become valid again. */
static int choose_reason_of_down_event(const domi_watch *watch, const domi_house *house)
{
    bool may_live = house->reason == -EHOSTDOWN && domi_house_is_remote(house);

    return watch->type == &domus_room_type && !may_live ? -ESTALE : house->reason;
}

void domi_watch_tell_all_of_end(domi_manager *manager, domi_house *house)
{
    domi_link *next;

    for (domi_link *link = house->attached; link != NULL; link = next) {
        next = link->next;
        if (domi_link_get_node(link)->slab != DOMI_SLAB_WATCH)
            continue;
        domi_watch *watch = get_watch_of_node(domi_link_get_node(link));
        detach_watch_from_house(house, watch);
        send_event_of_watch(manager, watch, choose_reason_of_down_event(watch, house));
    }
}

void domi_watch_tell_of_room_if_there_is(domi_manager *manager, domi_house *house)
{
    if (domi_mailbox_clear_full_if_room(manager, house))
        domi_watch_tell_of_room(manager, house);
}

void domi_watch_tell_of_room(domi_manager *manager, domi_house *house)
{
    domi_link *next;

    for (domi_link *link = house->attached; link != NULL; link = next) {
        next = link->next;
        if (domi_link_get_node(link)->slab != DOMI_SLAB_WATCH)
            continue;
        domi_watch *watch = get_watch_of_node(domi_link_get_node(link));
        if (watch->type != &domus_room_type)
            continue;
        detach_watch_from_house(house, watch);
        send_event_of_watch(manager, watch, 0);
    }
}

void domi_house_set_backlogged(domi_manager *manager, domi_house *house, bool backlogged)
{
    house->channels.backlogged = backlogged;
    if (backlogged)
        domi_mailbox_mark_full(house);
    else if ((domi_house_life_word(house) & (DOMI_LIFE_STOP | DOMI_LIFE_FULL)) == DOMI_LIFE_FULL)
        /* a house that is WAITING has no run at whose end it would look for room */
        domi_watch_tell_of_room_if_there_is(manager, house);
}

/* --- the watcher's side ---------------------------------------------------------------------- */

static void add_watch_to_watcher(domi_family *family, domi_watch *watch)
{
    /* release: a thread that reads `owned` of a record by a stale handle then reads a newer
     * generation, too. */
    atomic_store_explicit(&watch->owned, true, memory_order_release);
    watch->previous = NULL;
    watch->next = family->watches;
    if (watch->next != NULL)
        watch->next->previous = watch;
    family->watches = watch;
}

static void remove_watch_from_watcher(domi_manager *manager, domi_house *house, domi_watch *watch)
{
    /* relaxed: only the thread that runs the watcher sets `owned`, and loans put these threads in
     * an order */
    if (!atomic_load_explicit(&watch->owned, memory_order_relaxed))
        return;
    atomic_store_explicit(&watch->owned, false, memory_order_relaxed);
    if (watch->next != NULL)
        watch->next->previous = watch->previous;
    if (watch->previous != NULL)
        watch->previous->next = watch->next;
    else
        house->family->watches = watch->next;
    if (watch->peer != NULL) { /* the other watch of the link is attached to this house */
        domi_watch *peer = watch->peer;
        watch->peer = NULL;
        detach_watch_from_house(house, peer);
        free_watch_record_with_its_last_leg(manager, peer, 1);
    }
}

static domi_watch *make_watch_of_actor(domi_manager *manager, domus_address watcher,
                                       domus_address who, const domus_type *type)
{
    domi_watch *watch = domi_pool_take_object(manager, DOMI_SLAB_WATCH);

    if (watch == NULL)
        return NULL;
    /* The generation changes when the record is taken and not when it is freed, because a freed
     * record has no owner anyway. Relaxed: add_watch_to_watcher() publishes it by its release. */
    atomic_fetch_add_explicit(&watch->generation, 1, memory_order_relaxed);
    watch->type = type;
    watch->peer = NULL;
    atomic_store_explicit(&watch->legs, 1, memory_order_relaxed);
    watch->link = watch->attached = watch->cancelled = false;
    atomic_store_explicit(&watch->owned, false, memory_order_relaxed);
    watch->down = (domus_down){.who = who};
    watch->unwatch.slab = DOMI_SLAB_UNWATCH;
    watch->watcher = watcher.house;
    watch->watcher_lease = watcher.lease;
    return watch;
}

static void send_watch_to_watched_house(domi_manager *manager, domi_watch *watch)
{
    domus_address who = watch->down.who;

    watch->node.kind = DOMI_WATCH;
    watch->node.lease = who.lease;
    if (domi_mailbox_put_slow(manager, who.house, &watch->node) != 0)
        send_event_of_watch(manager, watch, -ESTALE);
}

static int watch_or_link_actor(domus_stack *stack, domus_address who, const domus_type *type,
                               bool link, domus_watch *ret_watch)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_get_house(stack);
    domus_address self = domi_house_get_address(house);

    if (who.house == NULL || (link && who.house == house))
        return -EINVAL;
    /* an address without a home is that of a router or a remote actor */
    if (DOMI_UNLIKELY(who.house->home == NULL)) {
        if (!domi_house_is_remote(who.house))
            return -EINVAL;
        if (link)
            return -EOPNOTSUPP;
    }
    domi_family *family = domi_family_get_or_make(house);
    domi_watch *watch = family != NULL ? make_watch_of_actor(manager, self, who, type) : NULL;
    if (watch == NULL)
        return -ENOMEM;
    if (link) {
        watch->peer = make_watch_of_actor(manager, who, self, type);
        if (watch->peer == NULL) {
            free_watch_record_with_its_last_leg(manager, watch, 1);
            return -ENOMEM;
        }
        watch->link = watch->peer->link = true;
        watch->peer->attached = true;
        domi_link_attach_to_house(house, &watch->peer->link_);
    }
    add_watch_to_watcher(family, watch);
    if (ret_watch != NULL)
        *ret_watch =
            (domus_watch){watch, atomic_load_explicit(&watch->generation, memory_order_relaxed)};
    send_watch_to_watched_house(manager, watch);
    return 0;
}

int domus_watch_actor(domus_stack *stack, domus_address address, domus_watch *ret_watch)
{
    return watch_or_link_actor(stack, address, &domus_down_type, false, ret_watch);
}

int domus_link_actor(domus_stack *stack, domus_address address, domus_watch *ret_watch)
{
    return watch_or_link_actor(stack, address, &domus_down_type, true, ret_watch);
}

int domus_watch_room(domus_stack *stack, domus_address address, domus_watch *ret_watch)
{
    return watch_or_link_actor(stack, address, &domus_room_type, false, ret_watch);
}

static void take_watch_back(domi_manager *manager, domi_house *house, domi_watch *watch)
{
    domus_address who = watch->down.who;

    watch->cancelled = true;
    remove_watch_from_watcher(manager, house, watch);
    /* Relaxed: the node that takes the watch back is not put yet, and its put publishes the
     * count. */
    atomic_fetch_add_explicit(&watch->legs, 1, memory_order_relaxed);
    watch->unwatch.kind = DOMI_WATCH;
    watch->unwatch.lease = who.lease;
    if (domi_mailbox_put_slow(manager, who.house, &watch->unwatch) != 0)
        free_watch_record_with_its_last_leg(manager, watch, 1);
}

int domus_unwatch(domus_stack *stack, domus_watch handle)
{
    domi_watch *watch = handle.watch;
    domi_house *house = domi_stack_get_house(stack);

    /* The record of a stale handle may belong to another actor by now, also on another
     * thread (thieves take records from their own pools). acquire: pairs with the release
     * in add_watch_to_watcher(). If another actor owns the record, the generation read here is
     * that actor's. */
    if (watch == NULL || !atomic_load_explicit(&watch->owned, memory_order_acquire) ||
        atomic_load_explicit(&watch->generation, memory_order_relaxed) != handle.generation ||
        watch->watcher != house)
        return -ENOENT;
    take_watch_back(stack->manager, house, watch);
    return 0;
}

void domi_watch_take_back_all_of_house(domi_manager *manager, domi_house *house)
{
    while (house->family != NULL && house->family->watches != NULL) {
        domi_watch *watch = house->family->watches;

        if ((house->marks & DOMI_MARK_STOPPING) != 0)
            /* the other watch of the link stays attached: it tells the other actor of this actor's
             * end */
            watch->peer = NULL;
        take_watch_back(manager, house, watch);
    }
}

bool domi_watch_prepare_event_to_handle(domi_manager *manager, domi_house *house, domi_node *node)
{
    domi_watch *watch = get_watch_of_node(node);

    if (watch->cancelled)
        return false;
    remove_watch_from_watcher(manager, house, watch);
    if (!watch->link)
        return true;
    for (const domus_on *on = house->behaviour->on; on != NULL && on->type != NULL; on++) {
        if (on->type == watch->type)
            return true;
    }
    house->reason = (int16_t)watch->down.reason;
    (void)domi_house_ask_to_stop(manager, domi_house_get_address(house));
    return false;
}

void domi_watch_drop_reference_after_event(domi_manager *manager, domi_house *house,
                                           domi_node *node)
{
    (void)house;
    free_watch_record_with_its_last_leg(manager, get_watch_of_node(node), 1);
}
