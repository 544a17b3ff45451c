/* Functions of domus/nats_kv.h that make an ask from texts and bytes. */
#include "protocols/nats/kv.h"

#include <errno.h>
#include <string.h>

/* Copy a key into the ask that will be sent to a bucket. Returns 0; -EINVAL. */
static int copy_key_into_ask(char to[DOMUS_NATS_KV_KEY_MAX + 1], const char *key)
{
    int error = domus_nats_kv_check_key(key);

    if (error == 0)
        memcpy(to, key, strlen(key) + 1);
    return error;
}

int domus_nats_kv_read(domus_stack *stack, domus_address bucket, const char *key,
                       uint64_t timeout_ns, domus_resumed *then)
{
    domus_nats_kv_get get = {.revision = 0};
    int error = copy_key_into_ask(get.key, key);

    if (error != 0)
        return error;
    return domus_ask_within(stack, bucket, &domus_nats_kv_get_type, &get, timeout_ns, then);
}

/* Ask the bucket's actor for a change of a key. `value` is copied. */
static int ask_bucket_for_change_of_key(domus_stack *stack, domus_address bucket, const char *key,
                                        const void *value, size_t size, domus_nats_kv_put *put,
                                        uint64_t timeout_ns, domus_resumed *then)
{
    int error = copy_key_into_ask(put->key, key);

    if (error == 0)
        error = domus_slice_copy(value, size, &put->value);
    if (error != 0)
        return error;
    error = domus_ask_within(stack, bucket, &domus_nats_kv_put_type, put, timeout_ns, then);
    if (error < 0)
        domus_slice_free(put->value);
    return error;
}

int domus_nats_kv_write(domus_stack *stack, domus_address bucket, const char *key,
                        const void *value, size_t size, uint64_t timeout_ns, domus_resumed *then)
{
    domus_nats_kv_put put = {.operation = DOMUS_NATS_KV_PUT};

    return ask_bucket_for_change_of_key(stack, bucket, key, value, size, &put, timeout_ns, then);
}

int domus_nats_kv_create(domus_stack *stack, domus_address bucket, const char *key,
                         const void *value, size_t size, uint64_t timeout_ns, domus_resumed *then)
{
    domus_nats_kv_put put = {.condition = DOMUS_NATS_KV_IF_NONE};

    return ask_bucket_for_change_of_key(stack, bucket, key, value, size, &put, timeout_ns, then);
}

int domus_nats_kv_update(domus_stack *stack, domus_address bucket, const char *key,
                         const void *value, size_t size, uint64_t revision, uint64_t timeout_ns,
                         domus_resumed *then)
{
    domus_nats_kv_put put = {.condition = DOMUS_NATS_KV_IF_REVISION, .revision = revision};

    return ask_bucket_for_change_of_key(stack, bucket, key, value, size, &put, timeout_ns, then);
}

/* Ask the bucket's actor to delete or purge a key. */
static int ask_bucket_to_delete_or_purge_key(domus_stack *stack, domus_address bucket,
                                             const char *key, domus_nats_kv_operation operation,
                                             uint64_t revision, uint64_t timeout_ns,
                                             domus_resumed *then)
{
    domus_nats_kv_put put = {
        .operation = (uint8_t)operation,
        .condition = revision != 0 ? DOMUS_NATS_KV_IF_REVISION : DOMUS_NATS_KV_ALWAYS,
        .revision = revision,
    };

    return ask_bucket_for_change_of_key(stack, bucket, key, NULL, 0, &put, timeout_ns, then);
}

int domus_nats_kv_delete(domus_stack *stack, domus_address bucket, const char *key,
                         uint64_t revision, uint64_t timeout_ns, domus_resumed *then)
{
    return ask_bucket_to_delete_or_purge_key(stack, bucket, key, DOMUS_NATS_KV_DELETE, revision,
                                             timeout_ns, then);
}

int domus_nats_kv_purge(domus_stack *stack, domus_address bucket, const char *key,
                        uint64_t revision, uint64_t timeout_ns, domus_resumed *then)
{
    return ask_bucket_to_delete_or_purge_key(stack, bucket, key, DOMUS_NATS_KV_PURGE, revision,
                                             timeout_ns, then);
}
