/* Walks: commands whose answer has so many elements that they are done in pieces, between which the
 * thread serves others.
 *
 * The shard runs nothing else meanwhile: its commands wait behind a barrier, so the answer is that
 * of one moment, as with every other command. A walk that is done with its first piece costs
 * nothing more.
 *
 * Thread-safety: the shard that owns the store. */
#ifndef KV_WALK_H
#define KV_WALK_H

#include "kv.h"
#include "list.h"

struct kv_walk;

/* Add elements to the builder until kv_walk_is_full(). Returns 1 if there are more; 0; or a
 * negative errno. */
typedef int kv_piece(struct kv_store *store, struct kv_walk *walk);

struct kv_walk {
    kv_piece *piece;
    domus_resp_builder builder;
    domus_slice pattern;          /* the pattern of KEYS; owned */
    const struct kv_table *table; /* the table that is walked, at the bucket `at` */
    uint64_t at;
    struct kv_place place; /* in a list, of which `left` elements follow */
    uint64_t left;
    unsigned parts; /* of the fields */
    bool is_part;   /* the elements alone are the answer: others are put behind them */
    bool counts; /* the number of elements is known at the end: `builder` has a gap for the head */
    uint32_t pieces;
    uint64_t visited; /* in this piece */
    uint32_t begin;   /* bytes of the builder at its start */
};

/* Walk, and answer the call. `walk` is copied. */
int kv_walk(struct kv_call *call, const struct kv_walk *walk);

/* Counts an element, and returns whether the piece is long enough. */
static inline bool kv_walk_is_full(struct kv_walk *walk)
{
    return ++walk->visited >= 4096 || walk->builder.bytes.size - walk->begin >= 256 * 1024;
}

#endif
