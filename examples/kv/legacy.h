/* The legacy of a shard: the keys that it leaves on its node when it moves to another one, because
 * nodes have come or gone. Its next life fetches them, before it handles its first message.
 *
 * 1. The shard stops, and puts its table into the slot of its number (kv_legacy_leave()).
 * 2. This node asks the shard for something, so that the next life begins (kv_legacy_look()).
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
    uint64_t left_ns; /* when it was left, on the clock of domus_now_ns() */
};

/* The shard stops: leave its keys. Returns false if there is no cluster, if they were not all
 * fetched, or without memory; then they are still the store's. */
bool kv_legacy_leave(const domus_stack *stack, struct kv_store *store);

/* Put what the store has into the slot of its shard. Returns false without memory. */
bool kv_legacy_put(struct kv_store *store, uint64_t fence, uint64_t now_ns);

/* Take the legacy out of its slot; NULL: there is none. Put it back, unless there is one of a later
 * life. Thread-safety: any thread. */
struct kv_legacy *kv_legacy_take(uint32_t shard);
/* Take it for a porter, and (when it has given it back, or freed it) say that it has none; whether
 * one has any. */
struct kv_legacy *kv_legacy_carry(uint32_t shard);
void kv_legacy_set_down(uint32_t shard);
bool kv_legacy_is_carried(uint32_t shard);
void kv_legacy_give_back(uint32_t shard, struct kv_legacy *legacy);
void kv_legacy_free(struct kv_legacy *legacy); /* NULL is allowed */

/* Look after legacies that wait: an actor calls it now and then. */
void kv_legacy_look(domus_stack *stack);

/* A shard begins: fetch what its last life has left. Returns as on_mount does. */
int kv_legacy_fetch(domus_stack *stack, struct kv_store *store);

/* --- nodes that leave ------------------------------------------------------------------------- */

/* An ask without payload: a shard that lives here, or all of them, is to bring its keys to another
 * node. It is answered when that is done. */
extern const domus_type kv_evacuate_type;
domus_handler kv_evacuate, kv_evacuate_all;
/* A shard whose keys have gone. */
extern const domus_behaviour kv_shard_without_keys;

#define KV_KEEPER "kv.keeper"

/* An ask of a keeper: fetch the keys from the porter, and put them into the slot here. */
struct kv_keep {
    uint32_t shard;
    uint64_t fence;
    domus_address porter;
};
extern const domus_type kv_keep_type;
extern const domus_behaviour kv_keeper;

/* --- porters ---------------------------------------------------------------------------------- */

#define KV_PORTER "kv.porter"

/* An ask of a porter. The first one has to be `looks`; the answer is a piece without bytes. */
struct kv_fetch {
    uint32_t shard;
    bool looks;
};

/* A piece of the commands. They are run when a piece ends them. */
struct kv_piece_of_legacy {
    uint64_t fence; /* 0: there is no legacy */
    domus_slice bytes;
    bool ends_commands; /* no command goes on in the next piece */
    bool ends_all;
};

extern const domus_type kv_fetch_type, kv_legacy_piece_type;
/* A notice of a porter: its legacy is of no use any more. It ends. */
extern const domus_type kv_drop_type;
extern const domus_behaviour kv_porter;

#define KV_LEGACY_PIECE (256u * 1024) /* bytes of a piece at most */

#endif
