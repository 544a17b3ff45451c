/* Commands for keys whose values may be of any kind, such as DEL, EXISTS, TYPE and DBSIZE. */
#include "kv.h"
#include "observed.h"

static struct kv_item **find_item_at_key_argument(struct kv_call *call, uint32_t i)
{
    kv_make_argument_key_of_call(call, i);
    return kv_find_item_at_key_of_call(call);
}

int kv_run_del(struct kv_call *call)
{
    int64_t count = 0;

    for (uint32_t i = 1; i < call->command->count; i++) {
        struct kv_item **link = find_item_at_key_argument(call, i);
        if (link == NULL)
            continue;
        kv_store_remove(call->store, link);
        count++;
    }
    return kv_answer_integer(call->stack, count);
}

int kv_run_exists(struct kv_call *call)
{
    int64_t count = 0;

    for (uint32_t i = 1; i < call->command->count; i++)
        count += find_item_at_key_argument(call, i) != NULL;
    return kv_answer_integer(call->stack, count);
}

int kv_run_mget(struct kv_call *call)
{
    domus_resp_builder builder = {.version = call->command->version,
                                  .bytes.size_max = kv_most_bytes_of_one_answer()};

    (void)domus_resp_add_array(&builder, call->command->count - 1);
    for (uint32_t i = 1; i < call->command->count; i++) {
        struct kv_item **link = find_item_at_key_argument(call, i);
        if (link != NULL && kv_is_string(*link)) {
            domus_resp_bytes bytes = kv_item_string(*link);
            (void)domus_resp_add_bulk(&builder, bytes.data, bytes.size);
        } else {
            (void)domus_resp_add_null(&builder);
        }
    }
    return kv_answer_what_builder_has_made(call->stack, &builder);
}

const char *kv_name_of_type(const struct kv_item *item)
{
    return item->kind == KV_LIST ? "LIST" : item->kind == KV_HASH ? "HASH" : "STRING";
}

int kv_run_type(struct kv_call *call)
{
    static const char *const names[] = {
        [KV_SHORT] = "string", [KV_LONG] = "string", [KV_LIST] = "list", [KV_HASH] = "hash"};
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    domus_resp_simple name = {link != NULL ? names[(*link)->kind] : "none"};

    return kv_answer_or_gather_answer(call->stack, &domus_resp_simple_type, &name);
}

int kv_run_dbsize(struct kv_call *call)
{
    return kv_answer_integer(call->stack, (int64_t)call->store->table.count);
}

int kv_run_flush_of_shard(struct kv_call *call)
{
    domus_slice word = domus_resp_argument(call->command, 1);

    if (call->command->count > 2 || (call->command->count == 2 && !domus_resp_is(word, "ASYNC") &&
                                     !domus_resp_is(word, "SYNC")))
        return kv_answer_error(call->stack, KV_SYNTAX);
    if (call->store->observed != NULL)
        kv_tell_clients_that_all_keys_change(call->store);
    kv_store_clear(call->store);
    return kv_answer_ok(call->stack);
}
