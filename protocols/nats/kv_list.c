/* Lists of keys: a watch that tells nobody, and answers with the keys once it has met all of them.
 */
#include "protocols/nats/kv.h"

#include <domus/spawn.h>

#include <errno.h>

int domi_kv_add_to_list(domi_kv_watch *watch, const domus_nats_kv_entry *entry)
{
    domus_slice key = domus_nats_kv_key(entry);

    if (entry->operation != DOMUS_NATS_KV_PUT)
        return 0;
    if (watch->count == DOMUS_NATS_KV_KEYS_MAX)
        return -E2BIG;
    watch->bytes.size_max = DOMUS_NATS_KV_KEYS_BYTES;
    int error = domus_append(&watch->bytes, domus_slice_data(key), key.size);
    if (error == 0)
        error = domus_append(&watch->bytes, "\n", 1);
    if (error != 0)
        return error == -EMSGSIZE ? -E2BIG : error;
    watch->count++;
    return 0;
}

int domi_kv_end_list(domus_stack *stack, domi_kv_watch *watch)
{
    domus_nats_kv_list list = {.count = watch->count};
    int error = domus_append_end(&watch->bytes, &list.bytes);

    if (error != 0)
        return domi_kv_give_up(stack, watch, error);
    watch->is_initial_told = true;
    domi_kv_end_round(stack, watch);
    if (domus_kept_reply(stack, watch->asked, &domus_nats_kv_list_type, &list) != 0)
        domus_slice_free(list.bytes); /* nobody waits for it any more */
    (void)domus_stop(stack, domus_self(stack));
    return 0;
}
