/* The house: the memory that wraps an actor. With 16 bytes of actor state it has 192 bytes, in
 * three cache lines: one that senders touch, one that the runner touches, and one for all other
 * fields.
 *
 * A slot belongs to one home for the life of the system and is not unmapped before the system ends.
 * So any thread may read the atomics in the house of any address at any time. The lease tells
 * whether the actor that the address names still lives there. */
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

/* The marks of a house beside its state, in `marks`. Only home reads and writes them, or the thief,
 * while the house is lent. A holding mark makes asks and notices wait while it is set. */
enum domi_mark {
    DOMI_MARK_BARRIER = 1, /* holding mark: a conversation of the actor has raised a barrier */
    /* holding mark: as many conversations of the actor are parked as may (`conversations_max`) */
    DOMI_MARK_SATURATED = 2,
    /* mark: the actor's stop has begun, and its asks and notices become dead letters */
    DOMI_MARK_STOPPING = 4,
    DOMI_MARK_GONE = 8, /* mark of a channel's actor: its connection is closed */
    /* mark: the house was of high priority when it was exposed to thieves (loan.c) */
    DOMI_MARK_HIGH = 16,
    /* holding mark: the actor is not mounted, because on_mount or on_restart has failed, or a stop
     * came before on_mount; no function of the behaviour is called */
    DOMI_MARK_UNMOUNTED = 32,
    DOMI_MARK_CHANNELS = 64, /* mark of a channels actor: its channels have work for a run */
    /* holding mark: a receive of the actor waits and takes only messages that its pattern
     * accepts */
    DOMI_MARK_RECEIVING = 128,
    /* mark beside RECEIVING: the waiting receives have not looked at all mail yet */
    DOMI_MARK_FRESH = 256,
    /* holding mark: the actor has failed and its parent has not decided yet */
    DOMI_MARK_SUSPENDED = 512,
    /* mark: the actor stops after an idle time, so each of its runs records the time */
    DOMI_MARK_PASSIVATES = 1024,
    DOMI_MARK_PINNED = 2048, /* mark: the house is never lent to another thread */
    /* mark beside SUSPENDED: the failed actor may not resume, only restart or stop */
    DOMI_MARK_FATAL = 4096,
    /* holding mark: the actor's restart waits for the end of its conversations and children */
    DOMI_MARK_RESTART = 8192,
    /* mark: the actor's life is over, but its parent does not know that yet */
    DOMI_MARK_DEAD = 16384,
    /* mark of a living actor: its behaviour has an order, by which asks and notices are taken
     * (order.h). It shares its bit with DEAD */
    DOMI_MARK_ORDERED = DOMI_MARK_DEAD,
    /* mark: a router reads the load of this house, so each run records the load */
    DOMI_MARK_ROUTEE = 32768,
};
/* All holding marks of a house: while one of them is set, asks and notices wait. Only under
 * RECEIVING a receive may take a waiting message. */
#define DOMI_MARKS_HOLD                                                                            \
    (DOMI_MARK_BARRIER | DOMI_MARK_SATURATED | DOMI_MARK_SUSPENDED | DOMI_MARK_RESTART |           \
     DOMI_MARK_RECEIVING | DOMI_MARK_UNMOUNTED)

/* Control bits in `life`, beside the lease. While an actor lives in the slot, each change of them
 * is an atomic read-modify-write (M9). */
#define DOMI_LIFE_CLOSED UINT64_C(1) /* control bit: the slot is free, and every put is refused */
/* control bit: the actor was asked to stop, and asks and notices are refused */
#define DOMI_LIFE_STOP UINT64_C(2)
/* control bit: as many asks and notices wait as may, and further ones are refused */
#define DOMI_LIFE_FULL UINT64_C(4)
/* control bit: the house's embedded node (`node`) is in use */
#define DOMI_LIFE_NODE UINT64_C(8)
/* control bit: the house has a bound of its own for waiting mail, `mail_max` */
#define DOMI_LIFE_BOUNDED UINT64_C(16)
/* Control bit: a restart of the actor's parent, or of one further up, waits for the end of this
 * actor, so its channels wait for no peer. The bit is also set when the actor is about to end,
 * because nothing can hasten it any more. */
#define DOMI_LIFE_HASTE UINT64_C(32)
/* the lease in a life word, which is its upper half */
#define DOMI_LIFE_LEASE(life) ((uint32_t)((life) >> 32))

/* Bits in the field `slot` of a house; the lower five are the size class of the slot. */
#define DOMI_SLOT_CLASS 0x1fu
/* bit: the house is exposed, and a belt has brought a message for it (incoming.h) */
#define DOMI_SLOT_HELD 0x20u
/* bit: the house is exposed: a thief may take it, or has it (loan.h) */
#define DOMI_SLOT_EXPOSED 0x40u
/* bit: home has to sort the house's inbox once the house is back from a thief (loan.h) */
#define DOMI_SLOT_PENDING 0x80u

/* most bytes of an actor's state that lie in the house itself */
#define DOMI_HOUSE_STATE_INLINE 16u

/* Step in which the field `events` of a house counts waiting events. The lower three bits of that
 * field name the source of mail with which the next run begins, if runs are too short to keep
 * places (handle_sources_in_short_run() in run.c). Both share a word because the house's three
 * cache lines are full. */
#define DOMI_EVENT_STEP 8u
/* bits of the field `events` that name the source with which the next run begins */
#define DOMI_EVENT_FIRST_MASK (DOMI_EVENT_STEP - 1)

/* Step in which the field `parked` of a house counts conversations. The byte below the steps is
 * `tally`, because the house's three cache lines are full. */
#define DOMI_PARKED_STEP 256u

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest");

/* The purpose of a channels actor: what io has stored at its house. */
enum domi_owns {
    DOMI_OWNS_NOTHING, /* nothing: an actor of a user, which may have channels as children */
    DOMI_OWNS_CHANNEL,
    DOMI_OWNS_ACCEPTOR,
    /* a connection that is being made; the actor then becomes that of the channel */
    DOMI_OWNS_CONNECT,
};

typedef struct domi_house domi_house;

struct domi_house {
    /* Line 0 of a house: fields that senders touch. */
    /* the inbox: number of nodes in the upper 16 bits, pointer to the newest node below */
    alignas(64) _Atomic uint64_t inbox;
    /* the next house in home's arrivals; written by the put that found the house's inbox empty */
    _Atomic(domi_house *) arrival_next;
    /* the life word: lease in the upper 32 bits, control bits (DOMI_LIFE_) below */
    _Atomic uint64_t life;
    /* home of the house; constant; NULL in a router's face (router.h) */
    struct domi_manager *home;
    const domus_behaviour *behaviour; /* behaviour of the actor; constant in a life */
    void *self;                       /* the actor's state; constant in a life */
    /* the house's own node: carries the birth, stop, failure or end of the actor (family.h) */
    domi_node node;

    /* Line 1 of a house: fields that the runner touches. */
    alignas(64) uint8_t state;
    _Atomic uint8_t slot; /* size class and DOMI_SLOT_ bits of the house; only home writes it */
    uint16_t marks;       /* the marks of the house, each an enum domi_mark */
    /* number of waiting asks and notices, in the mailboxes and in the strands of an order
     * (order.h); right whenever a turn runs. The inbox, the stash and kept asks are not counted. */
    uint32_t mail;
    domi_house *next; /* the next house in the queue in which this house is */
    /* the five mailboxes: circular lists, each by its last node, whose `next` is the first */
    domi_node *tails[DOMI_MAILBOXES];
    uint32_t replies; /* number of replies that wait in the house */
    uint32_t events;  /* number of events that wait in the house, in steps of DOMI_EVENT_STEP */

    /* Line 2 of a house: all other fields. */
    /* number of asks that the actor has made and whose answers it has not taken */
    alignas(64) uint32_t asks;
    union {
        /* number of the actor's conversations in `stacks`, in steps of DOMI_PARKED_STEP */
        uint32_t parked;
        /* index of the actor's behaviour in the tables of counters (tally.h): the lowest byte of
         * `parked`, which counts in steps of 256 */
        uint8_t tally;
    };
    /* parked conversations of the actor; the one that holds the barrier comes first */
    domus_stack *stacks;
    /* objects attached to the house: timers, watches on the house, on descriptors and on memory */
    struct domi_link *attached;
    /* children, name and other rare data of the actor (family.h); NULL: the actor has none */
    struct domi_family *family;
    domi_house *parent; /* the actor that spawned this one; NULL: it was spawned from outside */
    /* link of this house in its parent's list of children; used by the parent's runner */
    uint32_t child_index;
    /* the house's own bound of waiting mail, if DOMI_LIFE_BOUNDED is set; else 0 */
    _Atomic uint16_t mail_max;
    int16_t reason; /* reason why the actor failed or ends: a negative errno; else 0 */
    union {
        /* The actor's state begins here; in larger slots it continues behind the house. */
        unsigned char room[DOMI_HOUSE_STATE_INLINE];
        /* The state of a channels actor begins behind this structure, whose size keeps the state
         * aligned to 16 bytes. */
        struct {
            void *owned; /* the channel or acceptor that io has stored at this house; NULL: none */
            /* purpose of the channels actor, an enum domi_owns, valid also while `owned` is NULL;
             * constant once it is set, except that a connect becomes a channel */
            uint8_t owns;
            /* whether `self` is the state of the actor's parent; constant in a life */
            bool shares_state;
            /* whether the channel has more to send than it may: its actor's mailbox is FULL */
            bool backlogged;
            bool later; /* whether the actor has asked for a run at the end of phase 2 (later.h) */
            /* whether the house is MOUNTING, but in no queue, because its channel has not begun
             * yet */
            bool waits;
            uint8_t reserved[3]; /* unused bytes */
        } channels;
    };
};

static_assert(offsetof(domi_house, state) == 64, "line 1");
static_assert(offsetof(domi_house, asks) == 128, "line 2");
static_assert(sizeof(domi_house) == 192, "three lines with 16 bytes of state");

/* Returns the size class of a house and its DOMI_SLOT_ bits. Relaxed: only home writes this byte.
 * It is atomic so that the compiler reads this byte alone: while the house is lent, the thief
 * writes the bytes beside it. */
static inline uint32_t domi_house_slot_bits(const domi_house *house)
{
    return atomic_load_explicit((_Atomic uint8_t *)(uintptr_t)&house->slot, memory_order_relaxed);
}

static inline void domi_house_set_slot_bits(domi_house *house, uint32_t slot)
{
    atomic_store_explicit(&house->slot, (uint8_t)slot, memory_order_relaxed);
}

static inline bool domi_house_is_exposed(const domi_house *house)
{
    return (domi_house_slot_bits(house) & DOMI_SLOT_EXPOSED) != 0;
}

#define DOMI_MOVE(from, to) (UINT64_C(1) << ((to)*8 + (from)))
/* The allowed moves between states of a house, as a number of 64 bits: its byte N has a bit for
 * each state from which a house may enter state N. house.c draws it as a table. */
#define DOMI_MOVES                                                                                 \
    (DOMI_MOVE(DOMI_CREATED, DOMI_MOUNTING) | DOMI_MOVE(DOMI_MOUNTING, DOMI_WAITING) |             \
     DOMI_MOVE(DOMI_MOUNTING, DOMI_CREATED) | DOMI_MOVE(DOMI_WAITING, DOMI_READY) |                \
     DOMI_MOVE(DOMI_READY, DOMI_SCHEDULED) | DOMI_MOVE(DOMI_SCHEDULED, DOMI_RUNNING) |             \
     DOMI_MOVE(DOMI_RUNNING, DOMI_READY) | DOMI_MOVE(DOMI_RUNNING, DOMI_WAITING) |                 \
     DOMI_MOVE(DOMI_RUNNING, DOMI_CREATED))

/* Fail a check: the table does not allow the move from the state of `house` to `to`. */
_Noreturn void domi_house_fail_forbidden_move(const domi_house *house, domi_state to);

/* Change the state of a house, checked against the table (M5). No other code changes the state. */
static inline void domi_house_change_state(domi_house *house, domi_state to)
{
    /* Computed when the code is compiled, if `to` is a constant. */
    uint32_t sources = DOMI_MOVES >> (to * 8) & 0xff;

    if (__builtin_expect((sources >> house->state & 1) == 0, 0))
        domi_house_fail_forbidden_move(house, to);
    house->state = (uint8_t)to;
}

const char *domi_house_name_of_state(domi_state state);

/* --- channels actors ------------------------------------------------------------------------- */

/* True if the house is that of a channel. */
static inline bool domi_house_is_channel(const domi_house *house)
{
    return house->behaviour->kind == DOMUS_CHANNELS && house->channels.owns == DOMI_OWNS_CHANNEL;
}

/* True if the actor's `self` is the state of its parent. Then it is mounted, restarted and stopped
 * without a call of its behaviour's functions. */
static inline bool domi_house_shares_state(const domi_house *house)
{
    return house->behaviour->kind == DOMUS_CHANNELS && house->channels.shares_state;
}

/* True if the house is that of a channel with more than sendHigh bytes to send. Asks and notices
 * are refused until at most sendLow bytes are left. Home. */
static inline bool domi_house_is_backlogged(const domi_house *house)
{
    return house->behaviour->kind == DOMUS_CHANNELS && house->channels.backlogged;
}

/* --- circular lists ---------------------------------------------------------------------- */

/* Append a node to a circular list. `*tail` is the last node, whose `next` is the first; NULL: the
 * list is empty. */

static inline void domi_list_append_node(domi_node **tail, domi_node *node)
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

static inline domi_node *domi_list_take_first_node(domi_node **tail)
{
    domi_node *last = *tail;
    domi_node *head = last->next;

    if (head == last)
        *tail = NULL;
    else
        last->next = head->next;
    return head;
}

/* Put the nodes of `others` before all nodes of another list. `others` is the last node of its
 * list; NULL: it is empty. */
static inline void domi_list_prepend_list(domi_node **tail, domi_node *others)
{
    if (others == NULL)
        return;
    if (*tail == NULL) {
        *tail = others;
        return;
    }
    domi_node *head = (*tail)->next;
    (*tail)->next = others->next;
    others->next = head;
}

/* Take the node that follows `before` out of a circular list, wherever it is in the list. */
static inline void domi_list_take_node_behind(domi_node **tail, domi_node *before)
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

/* True if a run may handle input of the actor's channel. Such input begins conversations, so it has
 * to wait, as asks and notices do, while `conversations_max` conversations are parked or the actor
 * is not mounted. The close of a connection that is gone begins no conversation, so it need not
 * wait. Most houses have no input, so that is tested first. */
static inline bool domi_house_may_run_channels(const domi_house *house)
{
    if (__builtin_expect((house->marks & DOMI_MARK_CHANNELS) == 0, 1))
        return false;
    return (house->marks & DOMI_MARK_UNMOUNTED) == 0 &&
           (house->marks & (DOMI_MARK_SATURATED | DOMI_MARK_GONE)) != DOMI_MARK_SATURATED;
}

/* True if the house is that of a channel whose connection is gone and was reported as gone, and
 * that has no conversation any more: then the actor has no reason to live. */
static inline bool domi_house_has_outlived_channel(const domi_house *house)
{
    return (house->marks & DOMI_MARK_GONE) != 0 && house->channels.owned == NULL &&
           house->stacks == NULL;
}

/* True if the actor stops while it is not mounted, so that no callback runs for its channels. */
static inline bool domi_house_is_stopping_unmounted(const domi_house *house)
{
    return (house->marks & (DOMI_MARK_UNMOUNTED | DOMI_MARK_STOPPING)) ==
           (DOMI_MARK_UNMOUNTED | DOMI_MARK_STOPPING);
}

/* True if a receive waits, has not looked at all mail yet, and no other mark holds it back.
 * SATURATED does not hold it back, because a receive begins no conversation: it continues a parked
 * one, which may then end. */
static inline bool domi_house_has_receive_to_search(const domi_house *house)
{
    return (house->marks & ((DOMI_MARKS_HOLD & ~DOMI_MARK_SATURATED) | DOMI_MARK_FRESH)) ==
           (DOMI_MARK_RECEIVING | DOMI_MARK_FRESH);
}

/* True if a reply, an exception or an event waits: a run takes these whatever marks the house has.
 * The three pointers are combined, so that one comparison is enough. */
static inline bool domi_house_has_answers_or_events(const domi_house *house)
{
    return ((uintptr_t)house->tails[DOMI_REPLY] | (uintptr_t)house->tails[DOMI_EXCEPTION] |
            (uintptr_t)house->tails[DOMI_EVENT]) != 0;
}

/* True if the house has mail, input of a channel or a waiting receive that a run may handle now. */
static inline bool domi_house_is_runnable(const domi_house *house)
{
    /* Few houses have one of the marks that are tested first. In a house without them a run may
     * take all mail, and no receive and no channel waits for a run. The end of each run calls this
     * function, so the frequent case is short. */
    if (__builtin_expect((house->marks & (DOMI_MARKS_HOLD | DOMI_MARK_CHANNELS)) == 0, 1))
        return house->mail != 0 || domi_house_has_answers_or_events(house);
    if (domi_house_has_answers_or_events(house) || domi_house_may_run_channels(house))
        return true;
    /* A waiting receive is tested for without a look at the mail: a receive that searches only
     * waiting mail has to run in order to find that there is none. */
    return (house->mail != 0 && (house->marks & DOMI_MARKS_HOLD) == 0) ||
           domi_house_has_receive_to_search(house);
}

/* Returns the number of events that wait in a house. */
static inline uint32_t domi_house_count_events(const domi_house *house)
{
    return house->events / DOMI_EVENT_STEP;
}

/* Returns the number of parked conversations of the actor. */
static inline uint32_t domi_house_count_parked_conversations(const domi_house *house)
{
    return house->parked / DOMI_PARKED_STEP;
}

/* True if the house is of high priority: it has no ask under way, or more than 2 replies or more
 * than 4 events wait in it. Only asks count, because an actor that sleeps, receives or waits for
 * blocking work depends on no other actor. */
static inline bool domi_house_has_high_priority(const domi_house *house)
{
    return house->asks == 0 || house->replies > 2 || house->events >= 5 * DOMI_EVENT_STEP;
}

/* Returns the house's own bound of waiting mail. Relaxed: the bound is constant in a life. A sender
 * with an old lease may read it while the next life is being made. Either value will do then,
 * because its message carries the old lease and becomes a dead letter anyway. */
static inline uint32_t domi_house_own_mail_bound(const domi_house *house)
{
    return atomic_load_explicit((_Atomic uint16_t *)(uintptr_t)&house->mail_max,
                                memory_order_relaxed);
}

/* Returns the life word of a house: lease and control bits. Relaxed: the runner may see a bit late,
 * because it reads the word again before its next ask or notice; a thread that acts on the lease (a
 * stop) does so by a compare-exchange, which fails on an old value. */
static inline uint64_t domi_house_life_word(const domi_house *house)
{
    return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&house->life, memory_order_relaxed);
}

/* True if the actor was asked to stop. A stop that this load misses is seen before the next
 * ask or notice. */
static inline bool domi_house_is_asked_to_stop(const domi_house *house)
{
    return (domi_house_life_word(house) & DOMI_LIFE_STOP) != 0;
}

/* True if the end of the actor's next run has to find out whether the actor stops or restarts now.
 * `life` is its life word. Home. */
static inline bool domi_house_must_check_stop_or_restart(const domi_house *house, uint64_t life)
{
    return (life & DOMI_LIFE_STOP) != 0 ||
           (house->marks & (DOMI_MARK_RESTART | DOMI_MARK_STOPPING | DOMI_MARK_GONE)) != 0;
}

/* Returns the behaviour of the actor; domi_house_set_behaviour() changes it. Relaxed: a parent or a
 * child on another thread may read it at any time, and a behaviour is a constant table, so either
 * value is whole. */
static inline const domus_behaviour *domi_house_get_behaviour(const domi_house *house)
{
    return atomic_load_explicit((_Atomic(const domus_behaviour *) *)(uintptr_t)&house->behaviour,
                                memory_order_relaxed);
}

static inline void domi_house_set_behaviour(domi_house *house, const domus_behaviour *behaviour)
{
    atomic_store_explicit((_Atomic(const domus_behaviour *) *)(uintptr_t)&house->behaviour,
                          behaviour, memory_order_relaxed);
}

/* Returns the actor's parent. Relaxed: a walk over the actors of a pool reads this while others run
 * them, and only tests whether there is a parent, which is constant in a life. */
static inline domi_house *domi_house_get_parent(const domi_house *house)
{
    return atomic_load_explicit((_Atomic(domi_house *) *)(uintptr_t)&house->parent,
                                memory_order_relaxed);
}

static inline void domi_house_set_parent(domi_house *house, domi_house *parent)
{
    atomic_store_explicit((_Atomic(domi_house *) *)(uintptr_t)&house->parent, parent,
                          memory_order_relaxed);
}

/* Returns the address of the actor that lives in the house now. */
static inline domus_address domi_house_get_address(const domi_house *house)
{
    return (domus_address){(domi_house *)(uintptr_t)house,
                           DOMI_LIFE_LEASE(domi_house_life_word(house))};
}

#endif
