/* Runs transactions in the shard: all commands run in one turn, so nobody sees a part of their
 * effects. */
#include "observed.h"
#include "transaction.h"
#include "wait.h"
#include "watch.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Bytes of the commands that all transactions of the program have queued. Atomic, because a
 * transaction may end on any thread. */
static _Atomic uint64_t queued_bytes;

bool kv_transaction_add_bytes_if_allowed(struct kv_transaction *transaction, uint64_t bytes)
{
    if (atomic_fetch_add(&queued_bytes, bytes) + bytes > kv_settings.transaction_memory) {
        atomic_fetch_sub(&queued_bytes, bytes);
        return false;
    }
    transaction->bytes += bytes;
    return true;
}

void kv_transaction_free(struct kv_transaction *transaction)
{
    if (transaction == NULL)
        return;
    atomic_fetch_sub(&queued_bytes, transaction->bytes);
    for (uint32_t i = 0; i < transaction->count; i++)
        domus_resp_command_type.release(&transaction->queue[i].command);
    domus_slice_free(transaction->array.bytes);
    free(transaction->queue);
    free(transaction);
}

static void free_transaction_of_payload(void *payload)
{
    kv_transaction_free(*(struct kv_transaction **)payload);
}

const domus_type kv_exec_type = {.name = "exec",
                                 .size = sizeof(struct kv_transaction *),
                                 .release = free_transaction_of_payload};
const domus_type kv_executed_type = {.name = "executed",
                                     .size = sizeof(struct kv_transaction *),
                                     .release = free_transaction_of_payload};

/* Run the commands of a transaction that have keys, and make an array of their answers. */
static int run_queued_commands_with_keys(domus_stack *stack, struct kv_store *store,
                                         const struct kv_transaction *transaction,
                                         domus_resp_reply *ret_array)
{
    domus_resp_builder array = {.version = transaction->version,
                                .bytes.size_max = kv_most_bytes_of_one_answer()};

    (void)domus_resp_add_array(&array, transaction->keyed);
    kv_gather_answers_of_transaction_in(&array);
    for (uint32_t i = 0; i < transaction->count; i++) {
        const struct kv_queued *queued = &transaction->queue[i];
        if (queued->row->run == NULL)
            continue;
        int error = kv_run_command_on_store(stack, store, &queued->command, queued->row);
        if (error != 0)
            kv_gather_error_of_failed_command(error);
    }
    kv_gather_answers_of_transaction_in(NULL);
    return domus_resp_end(&array, ret_array);
}

int kv_run_transaction_on_shard(domus_stack *stack, void *self, const void *payload)
{
    struct kv_transaction *transaction = *(struct kv_transaction *const *)payload;
    struct kv_store *store = self;

    kv_set_store_time_and_arm_timer(stack, store);
    bool may_run = !transaction->watches ||
                   kv_end_watch_and_were_keys_unchanged(stack, store, domus_sender(stack));
    if (transaction->growing_bytes != 0 &&
        !kv_store_has_memory_for_bytes(store, transaction->growing_bytes)) {
        kv_store_publish_its_free_memory(store);
        kv_serve_clients_that_wait_at_changed(stack, store);
        return kv_answer_error(stack,
                               "EXECABORT Transaction discarded because of: " KV_OUT_OF_MEMORY);
    }
    if (!may_run) {
        /* Serve the clients that wait, because an expiry may have changed their keys. */
        kv_serve_clients_that_wait_at_changed(stack, store);
        return domus_reply(stack, &domus_resp_null_array_type, NULL);
    }
    int error = run_queued_commands_with_keys(stack, store, transaction, &transaction->array);
    if (error == 0) {
        (void)domus_take(stack);
        error = domus_reply(stack, &kv_executed_type, &transaction);
        if (error != 0)
            kv_transaction_free(transaction);
    }
    kv_serve_clients_that_wait_at_changed(stack, store);
    return error;
}
