/* The house: what wraps an actor. 192 bytes with 16 bytes of state, in three cache lines: what
 * senders touch, what the runner touches, the rest.
 *
 * Its slot belongs to one home thread for the life of the system and is never unmapped before, so
 * any address may be looked at; whether it still means the same actor is told by the lease. */
#ifndef DOMI_HOUSE_MESSAGE_HOUSE_H
#define DOMI_HOUSE_MESSAGE_HOUSE_H

#include "house/message/envelope.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

struct domi_manager;
struct domi_family;
struct domi_link;

typedef enum domi_state {
    DOMI_CREATED,
    DOMI_MOUNTING,
    DOMI_WAITING,
    DOMI_READY,
    DOMI_SCHEDULED,
    DOMI_RUNNING,
    DOMI_STATES,
} domi_state;

/* Marks beside the state. Home's, or the thief's between take and return. */
enum domi_mark {
    DOMI_MARK_BARRIER = 1,       /* a stack raised it: no asks, no notices */
    DOMI_MARK_SATURATED = 2,     /* conversations_max stacks are parked: no asks, no notices */
    DOMI_MARK_STOPPING = 4,      /* no asks, no notices ever more */
    DOMI_MARK_HIGH = 16,         /* sampled when it was queued */
    DOMI_MARK_UNMOUNTED = 32,    /* on_mount failed, or a stop came first: no user code runs */
    DOMI_MARK_CHANNELS = 64,     /* io has something for it: the kind's own work is ready */
    DOMI_MARK_RECEIVING = 128,   /* a stack waits in a receive: only what its pattern takes */
    DOMI_MARK_FRESH = 256,       /* ... and there is mail that no pattern has seen yet */
    DOMI_MARK_SUSPENDED = 512,   /* it failed: no asks, no notices until its parent has decided */
    DOMI_MARK_PASSIVATES = 1024, /* it stops after an idle time: when it last ran is noted */
    DOMI_MARK_PINNED = 2048,     /* never lent */
    DOMI_MARK_FATAL = 4096,      /* ... and going on is no choice */
    DOMI_MARK_RESTART = 8192,    /* it begins anew once its conversations and children are gone */
    DOMI_MARK_DEAD = 16384,      /* gone, but its parent has not heard of it */
    DOMI_MARK_ROUTEE = 32768,    /* a router looks at its load */
};
/* While one of these is set, asks and notices wait; RECEIVING may take one from among them. */
#define DOMI_MARKS_HOLD                                                                            \
    (DOMI_MARK_BARRIER | DOMI_MARK_SATURATED | DOMI_MARK_SUSPENDED | DOMI_MARK_RESTART |           \
     DOMI_MARK_RECEIVING | DOMI_MARK_UNMOUNTED)

/* Control bits beside the lease in `life`; all change by atomic read-modify-writes (M9). */
#define DOMI_LIFE_CLOSED      UINT64_C(1)  /* the slot is free: nothing is taken */
#define DOMI_LIFE_STOP        UINT64_C(2)  /* asked to stop: asks and notices are refused */
#define DOMI_LIFE_FULL        UINT64_C(4)  /* mailbox_max waits: asks and notices are refused */
#define DOMI_LIFE_NODE        UINT64_C(8)  /* the embedded node is in use */
#define DOMI_LIFE_BOUNDED     UINT64_C(16) /* its mailbox has a bound of its own: mail_max */
#define DOMI_LIFE_LEASE(life) ((uint32_t)((life) >> 32))

/* Bits in `slot`, beside the size class. */
#define DOMI_SLOT_CLASS   0x3fu
#define DOMI_SLOT_EXPOSED 0x40u /* a thief may see it, or has it (loan.h) */
#define DOMI_SLOT_PENDING 0x80u /* ... and it was taken off the arrivals meanwhile */

#define DOMI_HOUSE_STATE_INLINE 16u

/* An event in `events`. The bits below hold with which source a run that is too short to keep
 * places begins (dispatch.c): they fit nowhere else in a house of three lines. */
#define DOMI_EVENT_STEP      8u
#define DOMI_EVENT_TURN_MASK (DOMI_EVENT_STEP - 1)

typedef struct domi_house domi_house;

struct domi_house {
    /* Line 0: what senders touch. */
    alignas(64) _Atomic uint64_t inbox; /* depth in the upper 16 bits, the newest node below */
    _Atomic(domi_house *) arrival_next; /* written by who found the inbox empty */
    _Atomic uint64_t life;              /* lease in the upper 32 bits, control bits below */
    struct domi_manager *home;          /* constant; NULL: it is a router's face (router.h) */
    const domus_behaviour *behaviour;   /* constant in a life */
    void *self;                         /* the actor's state; constant in a life */
    domi_node node;                     /* mounts or stops it, through the inbox */

    /* Line 1: what the runner touches. */
    alignas(64) uint8_t state;
    _Atomic uint8_t slot; /* home's: its size class, and DOMI_SLOT_ bits */
    uint16_t marks;
    uint32_t mail;                    /* asks and notices waiting */
    domi_house *next;                 /* in the one queue it is in */
    domi_node *tails[DOMI_MAILBOXES]; /* circular lists: the tail's next is the head */
    uint32_t replies;
    uint32_t events; /* waiting, in DOMI_EVENT_STEPs; the last bits: where a short run begins */

    /* Line 2: the rest. */
    alignas(64) uint32_t asks; /* that it has under way, and whose answers it has not taken */
    uint32_t stacks_count;
    domus_stack *stacks;        /* parked conversations; who raised the barrier is the first */
    struct domi_link *attached; /* its timers, and who watches it */
    struct domi_family *family; /* what few actors need; NULL until one does */
    domi_house *parent;         /* it stops after this one; NULL: spawned from outside */
    uint32_t child_index;       /* its place among the parent's children; the parent's */
    _Atomic uint16_t mail_max; /* its own bound, with DOMI_LIFE_BOUNDED; who is late reads it too */
    int16_t reason;            /* why it failed or ends: 0, or a negative errno */
    union {
        unsigned char room[DOMI_HOUSE_STATE_INLINE]; /* small state; larger slots go on behind it */
        struct {                                     /* a channels actor's state begins behind it */
            void *set;                               /* its channels: io's */
            uint64_t reserved;                       /* a state is aligned to 16 bytes */
        } channels;
    };
};

static_assert(offsetof(domi_house, state) == 64, "line 1");
static_assert(offsetof(domi_house, asks) == 128, "line 2");
static_assert(sizeof(domi_house) == 192, "three lines with 16 bytes of state");

/* Relaxed: home's alone; but who looks at it looks at nothing else with it in one access, for the
 * bytes beside it may be a thief's. */
static inline uint32_t domi_house_slot(const domi_house *house)
{
    return atomic_load_explicit((_Atomic uint8_t *)(uintptr_t)&house->slot, memory_order_relaxed);
}

static inline void domi_house_slot_set(domi_house *house, uint32_t slot)
{
    atomic_store_explicit(&house->slot, (uint8_t)slot, memory_order_relaxed);
}

static inline bool domi_house_is_exposed(const domi_house *house)
{
    return (domi_house_slot(house) & DOMI_SLOT_EXPOSED) != 0;
}

/* Which states may follow which: a byte per state, drawn and explained in house.c. */
#define DOMI_MOVE(from, to) (UINT64_C(1) << ((from)*8 + (to)))
#define DOMI_MOVES                                                                                 \
    (DOMI_MOVE(DOMI_CREATED, DOMI_MOUNTING) | DOMI_MOVE(DOMI_MOUNTING, DOMI_WAITING) |             \
     DOMI_MOVE(DOMI_MOUNTING, DOMI_CREATED) | DOMI_MOVE(DOMI_WAITING, DOMI_READY) |                \
     DOMI_MOVE(DOMI_READY, DOMI_SCHEDULED) | DOMI_MOVE(DOMI_SCHEDULED, DOMI_RUNNING) |             \
     DOMI_MOVE(DOMI_RUNNING, DOMI_READY) | DOMI_MOVE(DOMI_RUNNING, DOMI_WAITING) |                 \
     DOMI_MOVE(DOMI_RUNNING, DOMI_CREATED))

/* The one place where a state changes, checked against the table (M5). */
void domi_house_move_failed(const domi_house *house, domi_state to);

static inline void domi_house_move(domi_house *house, domi_state to)
{
    if (__builtin_expect((DOMI_MOVES >> (house->state * 8 + to) & 1) == 0, 0))
        domi_house_move_failed(house, to);
    house->state = (uint8_t)to;
}

const char *domi_state_name(domi_state state);

/* --- circular lists ---------------------------------------------------------------------- */

static inline void domi_list_push(domi_node **tail, domi_node *node)
{
    domi_node *last = *tail;

    if (last == NULL) {
        node->next = node;
    } else {
        node->next = last->next;
        last->next = node;
    }
    *tail = node;
}

static inline domi_node *domi_list_take(domi_node **tail)
{
    domi_node *last = *tail;
    domi_node *head = last->next;

    if (head == last)
        *tail = NULL;
    else
        last->next = head->next;
    return head;
}

/* Take the node behind `before` out of the middle. */
static inline void domi_list_take_next(domi_node **tail, domi_node *before)
{
    domi_node *node = before->next;

    if (node == before) {
        *tail = NULL;
        return;
    }
    before->next = node->next;
    if (*tail == node)
        *tail = before;
}

/* --- what may run ---------------------------------------------------------------------------- */

/* Channels begin conversations too: at conversations_max they wait as asks and notices do, and so
 * they do until the actor is mounted. */
static inline bool domi_house_channels_runnable(const domi_house *house)
{
    return (house->marks & (DOMI_MARK_CHANNELS | DOMI_MARK_SATURATED | DOMI_MARK_UNMOUNTED)) ==
           DOMI_MARK_CHANNELS;
}

/* The actor stops without having been mounted, so no callback runs for its channels. */
static inline bool domi_house_stops_unmounted(const domi_house *house)
{
    return (house->marks & (DOMI_MARK_UNMOUNTED | DOMI_MARK_STOPPING)) ==
           (DOMI_MARK_UNMOUNTED | DOMI_MARK_STOPPING);
}

/* A receive waits, nothing else holds it back, and it has not seen all that there is. SATURATED
 * does not: it goes on with a conversation, and may be what ends one. */
static inline bool domi_house_receives(const domi_house *house)
{
    return (house->marks & ((DOMI_MARKS_HOLD & ~DOMI_MARK_SATURATED) | DOMI_MARK_FRESH)) ==
           (DOMI_MARK_RECEIVING | DOMI_MARK_FRESH);
}

static inline bool domi_house_runnable(const domi_house *house)
{
    if (house->tails[DOMI_REPLY] != NULL || house->tails[DOMI_EXCEPTION] != NULL ||
        house->tails[DOMI_EVENT] != NULL || domi_house_channels_runnable(house))
        return true;
    /* A receive that only looks has to be told when there is nothing. */
    return (house->mail != 0 && (house->marks & DOMI_MARKS_HOLD) == 0) ||
           domi_house_receives(house);
}

static inline uint32_t domi_house_events(const domi_house *house)
{
    return house->events / DOMI_EVENT_STEP;
}

/* More than 2 replies wait, or more than 4 events, or it has no ask under way. An actor that
 * sleeps, receives or waits for blocking work depends on no other actor, so that makes it no less
 * urgent. */
static inline bool domi_house_high(const domi_house *house)
{
    return house->asks == 0 || house->replies > 2 || house->events >= 5 * DOMI_EVENT_STEP;
}

/* Relaxed: constant in a life. A sender that is late may read it while the slot is born again; what
 * he puts is for the old lease, and dead either way. */
static inline uint32_t domi_house_mail_max(const domi_house *house)
{
    return atomic_load_explicit((_Atomic uint16_t *)(uintptr_t)&house->mail_max,
                                memory_order_relaxed);
}

/* Lease and control bits. Relaxed: of its own a runner sees what it has to at its next look; what
 * others do with it they decide by compare-exchange. */
static inline uint64_t domi_house_life(const domi_house *house)
{
    return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&house->life, memory_order_relaxed);
}

/* It was asked to stop. A stop that is not seen yet is seen before the next message. */
static inline bool domi_house_is_asked_to_stop(const domi_house *house)
{
    return (domi_house_life(house) & DOMI_LIFE_STOP) != 0;
}

/* What it is and becomes. Relaxed: a parent or child on another thread may look at any time. */
static inline const domus_behaviour *domi_house_behaviour(const domi_house *house)
{
    return atomic_load_explicit((_Atomic(const domus_behaviour *) *)(uintptr_t)&house->behaviour,
                                memory_order_relaxed);
}

static inline void domi_house_become(domi_house *house, const domus_behaviour *behaviour)
{
    atomic_store_explicit((_Atomic(const domus_behaviour *) *)(uintptr_t)&house->behaviour,
                          behaviour, memory_order_relaxed);
}

static inline domus_address domi_house_address(const domi_house *house)
{
    return (domus_address){(domi_house *)(uintptr_t)house, DOMI_LIFE_LEASE(domi_house_life(house))};
}

#endif
