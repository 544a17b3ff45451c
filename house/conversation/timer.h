/* Timers of actors. A timer holds the memory of its event from the start (M11), and has at most one
 * event under way.
 *
 * The event is embedded in the timer and goes into the mailbox of its house by the home lane. The
 * wheel belongs to home, so only home puts timers on it and takes them off; a thief notes both for
 * home (notes.h). */
#ifndef DOMI_HOUSE_CONVERSATION_TIMER_H
#define DOMI_HOUSE_CONVERSATION_TIMER_H

#include "house/message/link.h"
#include "house/message/manager.h"

typedef struct domi_timer domi_timer;

struct domi_timer {
    /* the timer's event; its sender_lease counts missed events, its node.lease the ticks by
     * which the timer was postponed */
    domi_envelope event;
    domi_wheel_node wheel; /* node of the timer on home's wheel `timers` */
    domi_house *house;     /* the house of the actor that gets the timer's events */
    uint64_t period_ns;    /* period of the timer in nanoseconds; 0: it fires once */
    /* generation of the timer, which grows when it is freed, so that old handles of it are stale */
    _Atomic uint32_t generation;
    bool under_way; /* whether the timer's event is in the mailbox, or being handled */
    /* whether the timer was cancelled: an event under way is not handled any more, and the timer is
     * freed with it */
    bool cancelled;
    /* whether the timer is armed again when its event was handled, and not when it fires */
    bool fixed_delay;
    bool noted : 1; /* whether the timer's node is a note for home (notes.h) */
    bool timed : 1; /* whether the timer is on home's wheel, which a thief must not change */
    bool taken : 1; /* whether the actor took what the timer's payload owns (domus_take()) */
    DOMI_AT_LINK domi_link link; /* links of the timer in the house's list `attached` */
};

static_assert(sizeof(domi_timer) == 128, "two cache lines");
static_assert(offsetof(domi_timer, link) == DOMI_LINK_OFFSET, "as a watch's");

static inline bool domi_node_is_timer(const domi_node *node)
{
    return node->slab == DOMI_SLAB_TIMER;
}

/* Returns the generation of a timer. Relaxed, as the store in free_timer(): an actor sees the ends
 * of its own timers in order, because its own runs cause them. With a stale handle it may read a
 * timer that belongs to another thread by now, and then finds another generation. */
static inline uint32_t domi_timer_generation(const domi_timer *timer)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&timer->generation,
                                memory_order_relaxed);
}

/* Make a timer of `house` and arm it. Returns 0; -ENOMEM; -ENOBUFS if the home has
 * `timers_max` timers. */
int domi_timer_new(domi_manager *manager, domi_house *house, uint64_t delay_ns, uint64_t period_ns,
                   const domus_type *type, const void *payload, domi_timer **ret_timer);

void domi_timer_cancel(domi_manager *manager, domi_timer *timer);

/* Carry out what a thief noted for this timer while the house was lent (notes.h). Home only. */
void domi_timer_carry_out_note_of_thief(domi_manager *home, domi_timer *timer);

/* Put the event of a timer whose time has come, or count it as missed if the last event is still
 * under way. Home only. */
void domi_timer_put_event_or_count_missed(domi_manager *manager, domi_wheel_node *node);

/* Let the wheel look at a timer again at the next tick, because another thread uses its house.
 * Home, or the thread that has the lock of home's wheel. */
void domi_timer_postpone_to_next_tick(domi_manager *manager, domi_wheel_node *node);

/* Returns the house of a timer, by the timer's node on the wheel. */
domi_house *domi_timer_house_of_wheel_node(domi_wheel_node *node);

/* domi_timer_free_or_rearm_after_event() is called when the timer's event was handled. It frees a
 * timer that fires once or was cancelled, and arms one with a fixed delay again; one with a fixed
 * rate was armed when it fired. domi_timer_free_with_dropped_event() is called when the event is
 * dropped with its mailbox: it frees the timer. */
void domi_timer_free_or_rearm_after_event(domi_manager *manager, domi_timer *timer);
void domi_timer_free_with_dropped_event(domi_manager *manager, domi_node *node);

#endif
