/* The slots in which legacies (legacy.h) wait, one for each shard. A slot is a pointer that is
 * exchanged atomically: the thread that has taken the legacy out owns it. */
#include "legacy.h"

#include "desk.h"
#include "trash.h"

#include <stdatomic.h>
#include <stdlib.h>

/* age at which a legacy that nobody has fetched is freed */
#define KEPT_NS UINT64_C(30000000000)
/* time between two asks that wake a shard, so that its next life begins */
#define WAKE_NS UINT64_C(1000000000)

static _Atomic(struct kv_legacy *) slots[KV_SHARDS_MAX];
/* for each shard the number of its legacies that porters (legacy.h) have taken out */
static _Atomic uint32_t carried[KV_SHARDS_MAX];
/* For each shard: when the legacy in its slot was left, and when its next life was last asked to
 * begin. Relaxed: the times are hints. */
static _Atomic uint64_t left_ns[KV_SHARDS_MAX], woken_ns[KV_SHARDS_MAX];

struct kv_legacy *kv_legacy_take_out_of_slot(uint32_t shard)
{
    /* Acquire: pairs with the release of the exchange that has put the legacy into the slot. */
    return atomic_exchange_explicit(&slots[shard], NULL, memory_order_seq_cst);
}

struct kv_legacy *kv_legacy_take_and_count_porter(uint32_t shard)
{
    struct kv_legacy *legacy;

    /* The count and the slot are accessed in one order for all threads: a thread that finds the
     * slot empty because of this exchange sees the count. */
    atomic_fetch_add_explicit(&carried[shard], 1, memory_order_seq_cst);
    legacy = kv_legacy_take_out_of_slot(shard);
    if (legacy == NULL)
        atomic_fetch_sub_explicit(&carried[shard], 1, memory_order_seq_cst);
    return legacy;
}

void kv_legacy_count_porter_as_done(uint32_t shard)
{
    atomic_fetch_sub_explicit(&carried[shard], 1, memory_order_seq_cst);
}

bool kv_legacy_has_any_porter_it(uint32_t shard)
{
    return atomic_load_explicit(&carried[shard], memory_order_seq_cst) != 0;
}

void kv_legacy_put_newest_into_slot(uint32_t shard, struct kv_legacy *legacy)
{
    while (legacy != NULL) {
        atomic_store_explicit(&left_ns[shard], legacy->left_ns, memory_order_relaxed);
        struct kv_legacy *other =
            atomic_exchange_explicit(&slots[shard], legacy, memory_order_acq_rel);
        if (other == NULL || other->fence <= legacy->fence) {
            kv_legacy_free(other);
            return;
        }
        legacy = other; /* the slot already had the legacy of a later life, which goes in again */
    }
}

void kv_legacy_free(struct kv_legacy *legacy)
{
    if (legacy == NULL)
        return;
    kv_table_clear(&legacy->table, &legacy->memory);
    /* free the large values of the legacy, which are trash (trash.h), step by step */
    while (kv_trash_free_some_elements(&legacy->memory))
        ;
    free(legacy);
}

bool kv_legacy_make_of_store_in_slot(struct kv_store *store, uint64_t fence, uint64_t now_ns)
{
    struct kv_legacy *legacy = malloc(sizeof *legacy);

    if (legacy == NULL)
        return false;
    while (kv_trash_free_some_elements(&store->memory))
        ;
    *legacy = (struct kv_legacy){.table = store->table,
                                 .memory = store->memory,
                                 .expiring = store->expiring,
                                 .fence = fence,
                                 .left_ns = now_ns};
    store->table = (struct kv_table){0};
    store->memory = (struct kv_memory){.bytes_max = store->memory.bytes_max};
    atomic_store_explicit(&woken_ns[store->index], 0, memory_order_relaxed);
    store->expiring = 0;
    kv_legacy_put_newest_into_slot(store->index, legacy);
    return true;
}

/* Leave the legacy of a shard. An empty legacy is left, too: it says that the legacies of earlier
 * lives are out of date. */
bool kv_legacy_leave_if_store_is_whole(const domus_stack *stack, struct kv_store *store)
{
    return store->fence != 0 && !store->is_partial &&
           kv_legacy_make_of_store_in_slot(store, store->fence, domus_now_ns(stack));
}

/* Returns whether a legacy is too old. The clock of the thread that has left it may be ahead of
 * this thread's. */
static bool is_legacy_old(uint64_t since_ns, uint64_t now_ns)
{
    return now_ns > since_ns && now_ns - since_ns > KEPT_NS;
}

/* Free an old legacy in the slot of a shard, unless another one is there by now. */
static void free_legacy_in_slot_if_old(uint32_t shard, uint64_t now_ns)
{
    struct kv_legacy *legacy = kv_legacy_take_and_count_porter(shard);

    if (legacy == NULL)
        return;
    if (is_legacy_old(legacy->left_ns, now_ns))
        kv_legacy_free(legacy);
    else
        kv_legacy_put_newest_into_slot(shard, legacy);
    kv_legacy_count_porter_as_done(shard);
}

static void ask_next_life_of_shard_so_it_wakes(domus_stack *stack, uint32_t shard, uint64_t now_ns)
{
    const struct kv_question question = {.kind = KV_ASK_FIGURES};

    if (now_ns - atomic_load_explicit(&woken_ns[shard], memory_order_relaxed) < WAKE_NS)
        return;
    atomic_store_explicit(&woken_ns[shard], now_ns, memory_order_relaxed);
    /* Wake the next life of the shard by an ask; nobody waits for the answer. */
    (void)domus_ask_add(stack, kv_shards[shard], &kv_question_type, &question, 0, 0);
}

void kv_legacy_free_old_or_wake_shards(domus_stack *stack)
{
    uint64_t now_ns = domus_now_ns(stack);

    for (uint32_t i = 0; i < kv_shard_count; i++) {
        /* Acquire: pairs with the exchange in kv_legacy_put_newest_into_slot() that has put the
         * legacy into the slot. */
        if (atomic_load_explicit(&slots[i], memory_order_acquire) == NULL)
            continue;
        if (is_legacy_old(atomic_load_explicit(&left_ns[i], memory_order_relaxed), now_ns))
            free_legacy_in_slot_if_old(i, now_ns);
        else
            ask_next_life_of_shard_so_it_wakes(stack, i, now_ns);
    }
}
