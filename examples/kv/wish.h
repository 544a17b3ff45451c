/* Wishes: what a command that pops from lists wants, whether it waits or not. */
#ifndef KV_WISH_H
#define KV_WISH_H

#include "gift.h"
#include "kv.h"

/* The wish of a command: pop an element at the end `from` of the first key that has one; with
 * `moves`, push it to another key at `to`; with a count, pop up to so many, and answer with an
 * array of them. */
struct kv_wish {
    enum kv_end from, to;
    bool moves;
    bool is_direct; /* whether the shard answers the peer itself, because the command never waits */
    /* most elements to be popped, as an array; 0: one element, which stands by itself */
    uint64_t count;
};

/* Fulfil a wish from the key of the call, for the command that has waited (`kept`), or, if that is
 * NULL, for the command that runs. `to` is the key to which an element is moved.
 *
 * Returns 0 if the command was answered; 1 if its key has no element; -ENOENT when its client is
 * gone; or another error. */
int kv_pop_or_move_for_command(struct kv_call *call, const struct kv_wish *wish, domus_slice to,
                               const domus_kept *kept);

/* Put the elements of a gift back into their list, because the client that they were for is
 * gone. */
void kv_push_gift_back_to_its_list(struct kv_call *call, const struct kv_gift *gift);

#endif
