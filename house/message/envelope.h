/* Envelopes: an envelope is the object in which a message travels. It has 64 bytes for a notice
 * with up to 24 bytes of payload, and 128 bytes for an ask with up to 64.
 *
 * The first 16 bytes are the node. Everything that can be linked into a mailbox begins with a node
 * or has one embedded: an envelope, a house, the event of a timer, a promise, a stack. An envelope
 * has one owner at a time: the thread that handles it, or the house in which it waits. */
#ifndef DOMI_HOUSE_MESSAGE_ENVELOPE_H
#define DOMI_HOUSE_MESSAGE_ENVELOPE_H

#include "base/width.h"

#include <domus/actor.h>

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kinds of nodes. The first five are the kinds of messages: each has its mailbox, and a run
 * takes them in this order. Nodes of the other kinds go to no mailbox: home acts on them when it
 * sorts the inbox. */
enum domi_node_kind {
    DOMI_REPLY,
    DOMI_EXCEPTION,
    DOMI_ASK,
    DOMI_NOTICE,
    DOMI_EVENT,
    DOMI_MAILBOXES,
    DOMI_MOUNT = DOMI_MAILBOXES, /* the house's own node: home has to mount the new actor */
    DOMI_STOP,                   /* the house's own node: the actor was asked to stop */
    /* the house's own node: carries the parent's directive for a failed child, in its field
     * `owner` */
    DOMI_DIRECTIVE,
    /* the house's own node: the parent knows that its child has ended, so home frees the slot */
    DOMI_FREE,
    DOMI_WATCH,  /* a watch on the house that has to be attached to it, or taken back */
    DOMI_MEMBER, /* a member of a group, on its way to the group's shard */
};

/* The slab in which an object lies, or the other object of which it is a part; this is also its
 * kind (kind.h). A pooled object goes back to its slab when it is freed (pool.h). */
enum domi_slab_index {
    DOMI_SLAB_64,
    DOMI_SLAB_128,
    DOMI_SLAB_256,
    DOMI_SLAB_512,
    DOMI_SLAB_1088,
    DOMI_SLAB_STACK_SMALL,
    DOMI_SLAB_STACK_MEDIUM,
    DOMI_SLAB_STACK_LARGE,
    DOMI_SLAB_PROMISE,
    DOMI_SLAB_TIMER,
    DOMI_SLAB_WATCH,
    DOMI_SLAB_DESCRIPTOR, /* objects of io: watches on descriptors */
    DOMI_SLAB_MEMORY_WATCH,
    DOMI_SLAB_MEMBER,
    DOMI_SLABS,
    DOMI_SLAB_HEAP = DOMI_SLABS, /* envelopes from the heap, which are too large for the slabs */
    /* nodes of houses; such a node is a part of its house and not freed by itself */
    DOMI_SLAB_HOUSE,
    DOMI_SLAB_STACK_PROMISE, /* first promises of stacks, each of which is a part of its stack */
    DOMI_SLAB_UNWATCH, /* nodes that take a watch back, each of which is a part of its watch */
    DOMI_SLAB_SHARED,  /* notices of 64 bytes whose payload is shared (shared.h) */
    DOMI_SLAB_KINDS,
};

typedef struct domi_node domi_node;

struct domi_node {
    DOMI_KEEP_PLACE(8) domi_node *next; /* next node in the list that holds this one */
    uint32_t lease;                     /* the lease of the actor to which the node is put */
    /* index of the manager that owns the object; the node of a house uses it otherwise
     * (family.h) */
    uint16_t owner;
    uint8_t slab; /* the slab of the node's object, an enum domi_slab_index */
    uint8_t kind; /* the node's kind, an enum domi_node_kind */
};

typedef struct domi_envelope {
    /* the envelope's node, which links it into an inbox, a mailbox or a free list */
    domi_node node;
    /* the type of the message's payload; NULL in an exception */
    DOMI_KEEP_PLACE(8) const domus_type *type;
    DOMI_KEEP_PLACE(8) struct domi_house *sender; /* the sender of the message; NULL: it has none */
    DOMI_KEEP_PLACE(8) uint32_t sender_lease;     /* lease of the message's sender */
    int32_t error;                                /* negative errno that an exception carries */
    /* the first bytes of the message's payload; more may follow behind the structure */
    DOMI_KEEP_PLACE(8) unsigned char payload[24];
} domi_envelope;

/* The promise that the answer to an ask completes. This structure covers the first 24 bytes of
 * `payload` in the envelopes of asks, replies and exceptions. */
typedef struct domi_return {
    struct domi_promise *promise;
    /* serial that the promise had when the ask was made; if the promise has another one, the answer
     * is late */
    uint32_t serial;
    /* A note of io/pipelines/ in an ask to a peer, of what it has to remember of this ask; 0 in a
     * new ask. In a request that came from a peer and has a promise it is DOMI_NOTE_OF_PEER. */
    uint32_t note;
    /* The deadline, after which nobody waits for the answer (0: there is none), together with the
     * two marks below. A new ask is written in few stores, so the marks have no field of their
     * own. */
    DOMI_KEEP_PLACE(8) uint64_t until;
} domi_return;

/* mark in `until` of an ask: an actor to which the ask was put has forwarded it (asks.h) */
#define DOMI_PASSED_ON UINT64_C(1)
/* mark in `until` of an ask: the end of its asker does not cancel the ask */
#define DOMI_UNFOLLOWED UINT64_C(2)
#define DOMI_ASK_MARKS  (DOMI_PASSED_ON | DOMI_UNFOLLOWED)

/* Value of `note` in a cancel that reaches an ask only if the asked actor has kept it. */
#define DOMI_CANCEL_KEPT 1u

/* Value of domi_return.note in a request that came from a peer and has a promise: the `error` of
 * its envelope holds the number of the request. */
#define DOMI_NOTE_OF_PEER UINT32_C(0x00ffffff)

/* number of bytes that stand before the payload in a notice */
#define DOMI_ENVELOPE_HEAD offsetof(domi_envelope, payload)
/* number of bytes that stand before the payload in an ask */
#define DOMI_ASK_HEAD (DOMI_ENVELOPE_HEAD + sizeof(domi_return))

static_assert(sizeof(domi_node) == 16, "the node is common to all that is linked");
static_assert(sizeof(domi_envelope) == 64, "a small notice is one cache line");
static_assert(sizeof(domi_return) == 24, "an ask's payload begins on its second line");
static_assert(DOMI_ASK_HEAD == 64, "an ask's payload begins on its second line");

/* True if the node is part of a timer, a watch, a house, a stack or a promise, and not of a plain
 * envelope. It is also true for a notice whose payload is shared. */
static inline bool domi_node_is_embedded(const domi_node *node)
{
    return node->slab > DOMI_SLAB_1088 && node->slab != DOMI_SLAB_HEAP;
}

/* True as domi_node_is_embedded() is, but false for a notice whose payload is shared, because such
 * a notice has a sender as every envelope has. */
static inline bool domi_node_is_part_of_object(const domi_node *node)
{
    return domi_node_is_embedded(node) && node->slab != DOMI_SLAB_SHARED;
}

/* True for the kinds ask and notice: users send messages of these two kinds, and a full mailbox
 * refuses them. */
static inline bool domi_node_is_user_mail(const domi_node *node)
{
    return node->kind == DOMI_ASK || node->kind == DOMI_NOTICE;
}

static inline domi_return *domi_envelope_get_return_of_ask(domi_envelope *envelope)
{
    return (domi_return *)(void *)envelope->payload;
}

/* Returns the first time from `time_ns` on that domi_return.until can hold beside its two marks, or
 * the last such time if `time_ns` is behind it. */
static inline uint64_t domi_deadline_round_up_for_marks(uint64_t time_ns)
{
    return time_ns > UINT64_MAX - DOMI_ASK_MARKS ? UINT64_MAX & ~DOMI_ASK_MARKS
                                                 : (time_ns + DOMI_ASK_MARKS) & ~DOMI_ASK_MARKS;
}

/* Returns the deadline of an ask; 0: it has none. */
static inline uint64_t domi_envelope_deadline_ns(const domi_envelope *ask)
{
    return ((const domi_return *)(const void *)ask->payload)->until & ~DOMI_ASK_MARKS;
}

/* Returns the start of a message's payload in its envelope. In asks, replies and exceptions the
 * domi_return stands before it; a notice whose payload is shared holds a pointer to it. `kind` is
 * node.kind, which the caller mostly knows as a constant. */
static inline void *domi_envelope_payload_by_kind(domi_envelope *envelope, uint32_t kind)
{
    if (kind <= DOMI_ASK)
        return (char *)envelope + DOMI_ASK_HEAD;
    if (kind == DOMI_NOTICE && __builtin_expect(envelope->node.slab == DOMI_SLAB_SHARED, 0))
        return *(void **)(void *)envelope->payload;
    return (char *)envelope + DOMI_ENVELOPE_HEAD;
}

static inline void *domi_envelope_get_payload(domi_envelope *envelope)
{
    return domi_envelope_payload_by_kind(envelope, envelope->node.kind);
}

#endif
