/* Envelopes: what a message travels in, 64 bytes for a notice of up to 24, 128 for an ask.
 *
 * The first 16 bytes, the node, are common to all that can be linked into a mailbox: envelopes, a
 * house's own node, a timer's event, a promise that failed. Whoever holds an envelope is its
 * only owner. */
#ifndef DOMI_HOUSE_MESSAGE_ENVELOPE_H
#define DOMI_HOUSE_MESSAGE_ENVELOPE_H

#include <domus/actor.h>

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first five are the mailboxes, in the order in which a run takes them. */
enum domi_node_kind {
    DOMI_REPLY,
    DOMI_EXCEPTION,
    DOMI_ASK,
    DOMI_NOTICE,
    DOMI_EVENT,
    DOMI_MAILBOXES,
    DOMI_MOUNT = DOMI_MAILBOXES, /* the house's own node: mount it */
    DOMI_STOP,                   /* the house's own node: stop it */
    DOMI_DIRECTIVE,              /* ... its parent has decided; `owner` says what */
    DOMI_FREE,                   /* ... its parent has struck it from its list: the slot is free */
    DOMI_WATCH,                  /* attach a watch, or take it back */
    DOMI_MEMBER,                 /* a group's member comes or leaves */
};

/* Where an object goes when it is freed (house/message/pool.h). */
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
    DOMI_SLAB_DESCRIPTOR, /* io's */
    DOMI_SLAB_MEMORY_WATCH,
    DOMI_SLAB_MEMBER,
    DOMI_SLABS,
    DOMI_SLAB_HEAP = DOMI_SLABS, /* an envelope too large for the slabs */
    DOMI_SLAB_HOUSE,             /* embedded in a house: not freed by itself, as those below */
    DOMI_SLAB_STACK_PROMISE,     /* ... in a stack: its first promise */
    DOMI_SLAB_UNWATCH,           /* ... in a watch: takes it back */
    DOMI_SLAB_SHARED,            /* a notice of 64 bytes whose payload is shared (shared.h) */
};

typedef struct domi_node domi_node;

struct domi_node {
    domi_node *next;
    uint32_t lease; /* of the house that it is for */
    uint16_t owner; /* index of the manager whose pool it is from */
    uint8_t slab;   /* enum domi_slab_index */
    uint8_t kind;   /* enum domi_node_kind */
};

typedef struct domi_envelope {
    domi_node node;
    const domus_type *type;
    struct domi_house *sender; /* NULL: nobody */
    uint32_t sender_lease;
    int32_t error; /* of an exception */
    unsigned char payload[24];
} domi_envelope;

/* What an ask's answer completes; the first 24 bytes of its envelope's payload. */
typedef struct domi_return {
    struct domi_promise *promise;
    uint32_t serial; /* of the promise when it was made; another one: the answer is late */
    uint32_t reserved;
    uint64_t deadline_ns; /* nobody waits for it after this; 0: none */
} domi_return;

#define DOMI_ENVELOPE_HEAD offsetof(domi_envelope, payload)
#define DOMI_ASK_HEAD      (DOMI_ENVELOPE_HEAD + sizeof(domi_return))

static_assert(sizeof(domi_node) == 16, "the node is common to all that is linked");
static_assert(sizeof(domi_envelope) == 64, "a small notice is one cache line");
static_assert(sizeof(domi_return) == 24, "an ask's payload begins on its second line");
static_assert(DOMI_ASK_HEAD == 64, "an ask's payload begins on its second line");

/* No envelope of its own: a timer, a watch, a house, a promise; from the pools or not. */
static inline bool domi_node_is_embedded(const domi_node *node)
{
    return node->slab > DOMI_SLAB_1088 && node->slab != DOMI_SLAB_HEAP;
}

static inline domi_return *domi_envelope_return(domi_envelope *envelope)
{
    return (domi_return *)(void *)envelope->payload;
}

/* Asks, replies and exceptions carry the return before their payload; some notices a pointer
 * instead of it. `kind` is node.kind, which the dispatch knows. */
static inline void *domi_envelope_payload_of(domi_envelope *envelope, uint32_t kind)
{
    if (kind <= DOMI_ASK)
        return (char *)envelope + DOMI_ASK_HEAD;
    if (kind == DOMI_NOTICE && __builtin_expect(envelope->node.slab == DOMI_SLAB_SHARED, 0))
        return *(void **)(void *)envelope->payload;
    return (char *)envelope + DOMI_ENVELOPE_HEAD;
}

static inline void *domi_envelope_payload(domi_envelope *envelope)
{
    return domi_envelope_payload_of(envelope, envelope->node.kind);
}

#endif
