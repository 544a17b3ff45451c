/* WATCH in the shard: the client gets a mark at each key, and is dirty when one of these keys
 * changes. */
#include "watch.h"

#include "wait.h"

#include <errno.h>

int kv_run_watch_of_keys(struct kv_call *call)
{
    struct kv_store *store = call->store;
    struct kv_client *client;
    int error = kv_client_find_or_add(call->stack, store, domus_sender(call->stack), &client);

    if (error != 0)
        return error;
    for (uint32_t i = 1; i < call->command->count && error == 0; i++) {
        kv_make_argument_key_of_call(call, i);
        /* remove the key now if it has expired, so that this is no change after the watch began */
        (void)kv_find_item_at_key_of_call(call);
        kv_mark_key_if_command_changed_it(store, call->hash, call->key);
        error = kv_observe_key_for_client(store, client, KV_WATCHES, call->hash, call->key);
    }
    if (error != 0)
        /* a key cannot be watched, so the client's transaction has to fail */
        client->is_dirty = true;
    kv_forget_client_without_marks(call->stack, store, client);
    return error != 0 ? kv_answer_error(call->stack, "ERR too many keys are watched and waited for")
                      : kv_answer_ok(call->stack);
}

bool kv_end_watch_and_were_keys_unchanged(domus_stack *stack, struct kv_store *store,
                                          domus_address address)
{
    struct kv_client *client = kv_client_find(store, address);

    if (client == NULL)
        return false;
    for (const struct kv_mark *mark = client->marks[KV_WATCHES]; mark != NULL;
         mark = mark->next_of_client)
        (void)kv_store_find(store, mark->chain->hash, kv_key_of_chain(mark->chain));
    bool is_whole = !client->is_dirty && client->marks[KV_WATCHES] != NULL;
    client->is_dirty = false;
    kv_end_observing_all_of_client(store, client, KV_WATCHES);
    kv_forget_client_without_marks(stack, store, client);
    return is_whole;
}

const domus_type kv_unwatch_type = {.name = "unwatch"};

int kv_end_watch_of_sender_and_answer_ok(domus_stack *stack, void *self, const void *payload)
{
    struct kv_store *store = self;

    (void)payload;
    kv_set_store_time_and_arm_timer(stack, store);
    (void)kv_end_watch_and_were_keys_unchanged(stack, store, domus_sender(stack));
    kv_serve_clients_that_wait_at_changed(stack, store);
    return kv_answer_ok(stack);
}
