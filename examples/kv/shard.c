/* A shard: the actor that owns a part of the keys, and runs the commands for them one after the
 * other. */
#include "desk.h"
#include "gift.h"
#include "legacy.h"
#include "observed.h"
#include "transaction.h"
#include "trash.h"
#include "wait.h"
#include "watch.h"

#include <errno.h>
#include <string.h>

#define MS_NS     UINT64_C(1000000)
#define EXPIRE_NS (50 * MS_NS)

#define TRASH_NS (1 * MS_NS)

const domus_type kv_expire_type = {.name = "expire"};
static const domus_type trash_type = {.name = "trash"};

uint32_t kv_shard_of_key(domus_slice key)
{
    const char *bytes = domus_slice_data(key);
    const char *open, *close;
    uint32_t size = key.size;

    if (kv_shard_count == 1)
        return 0;
    open = memchr(bytes, '{', size);
    if (open != NULL) {
        close = memchr(open + 1, '}', size - (size_t)(open + 1 - bytes));
        if (close != NULL && close != open + 1) {
            bytes = open + 1;
            size = (uint32_t)(close - bytes);
        }
    }
    return (uint32_t)((kv_hash_of_bytes(bytes, size) >> 32) * kv_shard_count >> 32);
}

void kv_make_argument_key_of_call(struct kv_call *call, uint32_t i)
{
    if (call->store->observed != NULL)
        kv_mark_key_if_command_changed_it(call->store, call->hash, call->key);
    call->key = domus_resp_argument(call->command, i);
    call->hash = kv_hash_of_bytes(domus_slice_data(call->key), call->key.size);
}

struct kv_item **kv_find_item_at_key_of_call(struct kv_call *call)
{
    return kv_store_find(call->store, call->hash, call->key);
}

struct kv_item **kv_find_or_add_item(struct kv_call *call, uint32_t room)
{
    struct kv_store *store = call->store;
    struct kv_item **link = kv_find_item_at_key_of_call(call);

    if (link != NULL)
        return link;
    if (kv_table_add(&store->table, &store->memory, call->hash, call->key, room) == NULL)
        return NULL;
    return kv_table_find(&store->table, call->hash, call->key);
}

bool kv_is_string(const struct kv_item *item)
{
    return item->kind == KV_SHORT || item->kind == KV_LONG;
}

bool kv_store_has_memory_for_bytes(struct kv_store *store, uint64_t size)
{
    if (store->memory.used_bytes + size > store->memory.bytes_max)
        (void)kv_trash_free_some_elements(&store->memory);
    return store->memory.used_bytes + size <= store->memory.bytes_max;
}

void kv_set_store_time_and_arm_timer(domus_stack *stack, struct kv_store *store)
{
    store->now_ms = domus_now_ns(stack) / MS_NS;
    if (__builtin_expect(!store->ticks, false))
        store->ticks = domus_after(stack, EXPIRE_NS, &kv_expire_type, NULL, NULL) == 0;
}

static inline int run_command_unless_memory_is_full(struct kv_call *call,
                                                    const struct kv_command *row)
{
    const struct kv_memory *memory = &call->store->memory;
    uint32_t size = call->command->bytes.size;

    /* Only the memory is checked here: the channel has checked everything else. */
    if ((row->flags & KV_GROWS) != 0 && memory->used_bytes + size > memory->bytes_max &&
        !kv_store_has_memory_for_bytes(call->store, size))
        return kv_answer_error(call->stack, KV_OUT_OF_MEMORY);
    if (row->first != 0)
        kv_make_argument_key_of_call(call, (uint32_t)row->first);
    return row->run(call);
}

/* Run a command while clients watch keys or wait for keys. The answer frees the command, whose key
 * is needed afterwards, so the command is copied. */
static int run_command_while_keys_are_observed(struct kv_call *call, const struct kv_command *row)
{
    struct kv_store *store = call->store;
    domus_resp_command kept;
    int error = kv_keep_command_without_copy(call->command, &kept);

    if (error != 0)
        return error;
    call->command = &kept;
    store->noted = store->memory.changes;
    int result = run_command_unless_memory_is_full(call, row);
    if (store->observed != NULL)
        kv_mark_key_if_command_changed_it(store, call->hash, call->key);
    domus_resp_command_type.release(&kept);
    return result;
}

int kv_run_command_on_store(domus_stack *stack, struct kv_store *store,
                            const domus_resp_command *command, const struct kv_command *row)
{
    struct kv_call call = {.stack = stack, .store = store, .command = command};

    return store->observed != NULL ? run_command_while_keys_are_observed(&call, row)
                                   : run_command_unless_memory_is_full(&call, row);
}

static int run_command_of_connection_on_shard(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    const struct kv_command *row = kv_command_find(domus_resp_argument(command, 0));
    struct kv_store *store = self;
    struct kv_call call = {.stack = stack, .store = store, .command = command};

    kv_set_store_time_and_arm_timer(stack, store);
    if (__builtin_expect(store->observed == NULL, true))
        return run_command_unless_memory_is_full(&call, row);
    int result = run_command_while_keys_are_observed(&call, row);
    kv_serve_clients_that_wait_at_changed(stack, store);
    return result;
}

/* Do what is done between commands: remove expired items, put elements back that came back, and
 * free trash. */
static void remove_expired_and_returned_of_store(domus_stack *stack, struct kv_store *store)
{
    store->now_ms = domus_now_ns(stack) / MS_NS;
    if (kv_removes_expired_keys_at_once())
        kv_store_remove_some_expired_items(store);
    kv_put_all_returned_gifts_back(stack, store);
    kv_store_publish_its_free_memory(store);
    if (store->memory.trash != NULL && !store->frees)
        store->frees = domus_after(stack, TRASH_NS, &trash_type, NULL, NULL) == 0;
}

/* Handle the timer of a store. If no client uses the store, and nothing in it can expire or come
 * back, the timer is not armed again; the next command arms it. */
static int maintain_store_and_arm_timer_if_needed(domus_stack *stack, void *self,
                                                  const void *payload)
{
    struct kv_store *store = self;
    /* while a command is done in pieces, the store must not change between them */
    bool is_held = store->walk != NULL || store->job != NULL;

    (void)payload;
    if (!is_held)
        remove_expired_and_returned_of_store(stack, store);
    store->ticks = (is_held || store->expiring != 0 || store->memory.trash != NULL ||
                    kv_shard_has_gifts_under_way(store->index)) &&
                   domus_after(stack, EXPIRE_NS, &kv_expire_type, NULL, NULL) == 0;
    return 0;
}

static int free_next_piece_of_trash_at_timer(domus_stack *stack, void *self, const void *payload)
{
    struct kv_store *store = self;

    (void)payload;
    store->frees = kv_trash_free_some_elements(&store->memory) &&
                   domus_after(stack, TRASH_NS, &trash_type, NULL, NULL) == 0;
    return 0;
}

static int set_time_and_fetch_legacy_at_mount(domus_stack *stack, void *self)
{
    struct kv_store *store = self;

    kv_store_publish_its_free_memory(store);
    store->wall_ms = kv_wall_clock_ms() - (int64_t)(domus_now_ns(stack) / MS_NS);
    return kv_legacy_begin_fetch_at_mount(stack, store);
}

static void leave_or_free_keys_at_stop_of_shard(domus_stack *stack, void *self)
{
    struct kv_store *store = self;

    kv_store_forget_published_memory(store);
    kv_observed_free(store);
    if (kv_legacy_leave_if_store_is_whole(stack, store))
        return;
    kv_table_clear(&store->table, &store->memory);
    while (kv_trash_free_some_elements(&store->memory))
        ;
    for (struct kv_gift *gift = kv_take_gifts_returned_to_shard(store->index), *next; gift != NULL;
         gift = next) {
        next = gift->next;
        kv_gift_free(gift);
    }
}

const domus_behaviour kv_shard = {
    .name = "shard",
    .state_size = sizeof(struct kv_store),
    .on = (const domus_on[]){{&domus_resp_command_type, run_command_of_connection_on_shard, 0},
                             {&kv_question_type, kv_reply_with_figures_of_shard, 0},
                             {&kv_exec_type, kv_run_transaction_on_shard, 0},
                             {&kv_unwatch_type, kv_end_watch_of_sender_and_answer_ok, 0},
                             {&kv_wait_over_type, kv_answer_null_at_wait_timeout, 0},
                             {&kv_wait_end_type, kv_end_all_waits_of_store, 0},
                             {&kv_unblock_type, kv_end_wait_of_client_as_asked, 0},
                             {&kv_leave_type, kv_end_wait_of_leaving_client, 0},
                             {&domus_down_type, kv_forget_ended_client, 0},
                             {&kv_lookup_type, kv_reply_address_if_settings_agree, 0},
                             {&kv_gift_type, kv_put_sent_gift_back_into_store, 0},
                             {&kv_evacuate_type, kv_evacuate_shard_to_other_node, 0},
                             {&kv_expire_type, maintain_store_and_arm_timer_if_needed, 0},
                             {&trash_type, free_next_piece_of_trash_at_timer, 0},
                             {NULL, NULL, 0}},
    .on_mount = set_time_and_fetch_legacy_at_mount,
    .on_stop = leave_or_free_keys_at_stop_of_shard,
};

/* --- a shard whose keys have gone to another node --------------------------------------------- */

static int refuse_message_to_evacuated_shard(domus_stack *stack, void *self, const void *payload)
{
    (void)stack, (void)self, (void)payload;
    return -ESTALE;
}

static int ignore_message_to_evacuated_shard(domus_stack *stack, void *self, const void *payload)
{
    (void)stack, (void)self, (void)payload;
    return 0;
}

const domus_behaviour kv_shard_without_keys = {
    .name = "shard without keys",
    .state_size = sizeof(struct kv_store),
    .on = (const domus_on[]){{&domus_resp_command_type, refuse_message_to_evacuated_shard, 0},
                             {&kv_question_type, refuse_message_to_evacuated_shard, 0},
                             {&kv_exec_type, refuse_message_to_evacuated_shard, 0},
                             {&kv_unwatch_type, refuse_message_to_evacuated_shard, 0},
                             {&kv_unblock_type, kv_end_wait_of_client_as_asked, 0},
                             {&kv_leave_type, kv_end_wait_of_leaving_client, 0},
                             {&kv_lookup_type, kv_reply_address_if_settings_agree, 0},
                             {&kv_gift_type, refuse_message_to_evacuated_shard, 0},
                             {&kv_evacuate_type, refuse_message_to_evacuated_shard, 0},
                             {&kv_wait_over_type, kv_answer_null_at_wait_timeout, 0},
                             {&domus_down_type, kv_forget_ended_client, 0},
                             {&kv_expire_type, ignore_message_to_evacuated_shard, 0},
                             {&trash_type, ignore_message_to_evacuated_shard, 0},
                             {NULL, NULL, 0}},
    .on_stop = leave_or_free_keys_at_stop_of_shard,
};
