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

/* Do a piece of a walk: add elements to the builder until kv_walk_count_visit_and_is_piece_full().
 * Returns 1 if there are more; 0; or a negative errno. */
typedef int kv_piece(struct kv_store *store, struct kv_walk *walk);

struct kv_walk {
    kv_piece *piece;
    domus_resp_builder builder;
    domus_slice pattern;          /* the pattern of KEYS, which the walk owns */
    const struct kv_table *table; /* the table that is walked, from the bucket `at` on */
    uint64_t at;
    /* place of the next element in a list that is walked, of which `left` elements follow */
    struct kv_place place;
    uint64_t left;
    unsigned parts; /* which parts of the fields of a hash are added: names, values or both */
    /* whether the answer is a part, of elements alone: the elements of other shards follow */
    bool is_part;
    /* whether the number of elements is known only at the end: `builder` has a gap for the head */
    bool counts;
    uint32_t pieces;
    uint64_t visited; /* number of items that the current piece of the walk has visited */
    uint32_t begin;   /* number of bytes that the builder had when the current piece began */
};

/* Do a walk in pieces, and answer the call at its end. `walk` is copied. */
int kv_run_walk_and_park_if_long(struct kv_call *call, const struct kv_walk *walk);

/* Count an element of a walk. Returns whether the current piece is long enough, and ends. */
static inline bool kv_walk_count_visit_and_is_piece_full(struct kv_walk *walk)
{
    return ++walk->visited >= 4096 || walk->builder.bytes.size - walk->begin >= 256 * 1024;
}

#endif
