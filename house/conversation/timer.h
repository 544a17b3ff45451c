/* Timers of actors: each pays for its event when it is made (M11), and has one under way at most.
 *
 * A timer's event is embedded in it and goes into the mailbox of its house by the home lane; the
 * wheel belongs to home. Home only. */
#ifndef DOMI_HOUSE_CONVERSATION_TIMER_H
#define DOMI_HOUSE_CONVERSATION_TIMER_H

#include "house/family/watch.h"

typedef struct domi_timer domi_timer;

struct domi_timer {
    domi_envelope event; /* its sender_lease counts missed ticks: events have no sender */
    domi_wheel_node wheel;
    domi_house *house;
    uint64_t period_ns;          /* 0: once */
    _Atomic uint32_t generation; /* written as it is freed */
    bool under_way;              /* its event is in the mailbox, or being handled */
    bool cancelled;              /* ... but is not to be handled, and the timer is freed then */
    bool fixed_delay;            /* armed again when its event was handled, not when it fires */
    bool noted : 1;              /* its event's node is a note for home (notes.h) */
    bool timed : 1;              /* it is on home's wheel, which a thief may not look at */
    bool taken : 1;              /* what its payload owns is its actor's (domus_take()) */
    domi_link link;              /* attached to its house */
};

static_assert(sizeof(domi_timer) == 128, "two cache lines");
static_assert(offsetof(domi_timer, link) == DOMI_LINK_OFFSET, "as a watch's");

static inline bool domi_node_is_timer(const domi_node *node)
{
    return node->slab == DOMI_SLAB_TIMER;
}

/* Relaxed, both: a handle that is stale may be held against it while another thread has the timer
 * by now; of its own timers' ends an actor knows. */
static inline uint32_t domi_timer_generation(const domi_timer *timer)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&timer->generation,
                                memory_order_relaxed);
}

/* Arm a timer of `house`. Returns 0; -ENOMEM; -ENOBUFS at timers_max. */
int domi_timer_new(domi_manager *manager, domi_house *house, uint64_t delay_ns, uint64_t period_ns,
                   const domus_type *type, const void *payload, domi_timer **ret_timer);

void domi_timer_cancel(domi_manager *manager, domi_timer *timer);

/* Home has `by` more; wraps. */
void domi_timers_count(domi_manager *home, uint32_t by);

/* Home: what was noted while its house was away. */
void domi_timer_noted(domi_manager *home, domi_timer *timer);

/* Its time has come: put its event, or count the tick as missed. */
void domi_timer_fire(domi_manager *manager, domi_wheel_node *node);

/* Its event was handled, or dropped with its mailbox. */
void domi_timer_handled(domi_manager *manager, domi_timer *timer);
void domi_timer_dropped(domi_manager *manager, domi_node *node);

/* The house stops or restarts: cancel what it armed, and its watches on descriptors. */
void domi_timer_cancel_all(domi_manager *manager, domi_house *house);

#endif
