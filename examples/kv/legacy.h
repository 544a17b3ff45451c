/* The legacy of a shard: the keys that it leaves on its node when it moves to another one, because
 * nodes have come or gone. Its next life fetches them, before it handles its first message.
 *
 * 1. The shard stops, and puts its table into the slot of its number
 * (kv_legacy_leave_if_store_is_whole()).
 * 2. This node asks the shard for something, so that the next life begins
 * (kv_legacy_free_old_or_wake_shards()).
 * 3. The next life has a porter spawned on each other node, which looks into the slot there. It
 *    takes the legacy of the latest life, by its fence (domus_grain_fence()). The others are older
 *    than what that life has had, and are dropped.
 * 4. It fetches the keys as commands that make them anew, in pieces, and the porter frees them.
 *
 * A node that leaves brings its keys to another one before (legacy_leave.c).
 *
 * A legacy that nobody has fetched is freed after a while. That of a node that has died is lost. */
#ifndef KV_LEGACY_H
#define KV_LEGACY_H

#include "nodes.h"

struct kv_legacy {
    struct kv_table table;
    struct kv_memory memory;
    uint64_t expiring;
    uint64_t fence;
    uint64_t left_ns; /* time at which the legacy was left, on the clock of domus_now_ns() */
};

/* Leave the keys of a shard that stops as a legacy. Returns false, and the keys stay in the store,
 * if there is no cluster, if the shard has not fetched all of them, or without memory. */
bool kv_legacy_leave_if_store_is_whole(const domus_stack *stack, struct kv_store *store);

/* Move the keys of a store, as a legacy, into the slot of its shard. Returns false without
 * memory. */
bool kv_legacy_make_of_store_in_slot(struct kv_store *store, uint64_t fence, uint64_t now_ns);

/* kv_legacy_take_out_of_slot() takes the legacy out of the slot of a shard; NULL: there is none.
 * kv_legacy_put_newest_into_slot() puts it back, unless a later life's legacy is there.
 * Thread-safety: any thread. */
struct kv_legacy *kv_legacy_take_out_of_slot(uint32_t shard);
/* kv_legacy_take_and_count_porter() takes the legacy out for a porter.
 * kv_legacy_count_porter_as_done() notes that the porter has given it back or freed it.
 * kv_legacy_has_any_porter_it() returns whether a porter has a legacy of the shard. */
struct kv_legacy *kv_legacy_take_and_count_porter(uint32_t shard);
void kv_legacy_count_porter_as_done(uint32_t shard);
bool kv_legacy_has_any_porter_it(uint32_t shard);
void kv_legacy_put_newest_into_slot(uint32_t shard, struct kv_legacy *legacy);
void kv_legacy_free(struct kv_legacy *legacy); /* Free a legacy; NULL is allowed. */

/* Look after the legacies in the slots: free the old ones, and wake the shards of the others. An
 * actor calls it regularly. */
void kv_legacy_free_old_or_wake_shards(domus_stack *stack);

/* Fetch the legacy of the last life of a shard, when the shard begins. Returns as on_mount does. */
int kv_legacy_begin_fetch_at_mount(domus_stack *stack, struct kv_store *store);

/* --- nodes that leave ------------------------------------------------------------------------- */

/* An ask without payload: a shard that lives here, or all shards of this node, must bring their
 * keys to another node. It is answered when that is done. */
extern const domus_type kv_evacuate_type;
domus_handler kv_evacuate_shard_to_other_node, kv_ask_all_shards_to_evacuate;
/* The behaviour of a shard whose keys were brought to another node, and that answers nothing any
 * more. */
extern const domus_behaviour kv_shard_without_keys;

#define KV_KEEPER "kv.keeper"

/* An ask to a keeper, an actor on another node: fetch the keys of a shard from its porter, and put
 * them into the slot of the keeper's node. */
struct kv_keep {
    uint32_t shard;
    uint64_t fence;
    domus_address porter;
};
extern const domus_type kv_keep_type;
extern const domus_behaviour kv_keeper;

/* --- porters ---------------------------------------------------------------------------------- */

#define KV_PORTER "kv.porter"

/* The payload of an ask to a porter for its next piece. In the first ask, `looks` must be set; its
 * answer has no bytes. */
struct kv_fetch {
    uint32_t shard;
    bool looks;
};

/* A piece of the commands that make the keys anew. The commands are run when a piece has come that
 * ends the last of them. */
struct kv_piece_of_legacy {
    uint64_t fence; /* fence of the life that has left the legacy; 0: the porter has no legacy */
    domus_slice bytes;
    /* whether the last command of the piece is complete, so that none continues in the next
     * piece */
    bool ends_commands;
    bool ends_all;
};

extern const domus_type kv_fetch_type, kv_legacy_piece_type;
/* The type of a notice to a porter: its legacy is not needed any more. The porter ends then. */
extern const domus_type kv_drop_type;
extern const domus_behaviour kv_porter;

#define KV_LEGACY_PIECE (256u * 1024) /* most bytes of a piece of a legacy */

#endif
