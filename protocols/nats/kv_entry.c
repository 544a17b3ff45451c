/* Entries of a bucket: messages of its stream, read as keys and values. */
#include "protocols/nats/kv.h"

#include <errno.h>
#include <string.h>

#define PREFIX_SIZE 4u /* bytes of "$KV.", with which subjects of buckets begin */

/* Find the key in a subject "$KV.bucket.key". Returns the key's offset; 0 if the subject begins
 * otherwise. */
static uint32_t find_key_in_subject(const char *bucket, domus_slice subject)
{
    const char *data = domus_slice_data(subject);
    size_t size = strlen(bucket);

    if (subject.size <= PREFIX_SIZE + size + 1 || memcmp(data, "$KV.", PREFIX_SIZE) != 0 ||
        memcmp(data + PREFIX_SIZE, bucket, size) != 0 || data[PREFIX_SIZE + size] != '.')
        return 0;
    return PREFIX_SIZE + (uint32_t)size + 1;
}

/* Returns the operation (put, delete or purge) that an entry's headers tell. A server that itself
 * writes markers for expired entries, from nats-server 2.11 on, uses another header for them. */
static domus_nats_kv_operation read_operation_of_entry(const domus_nats_stream_message *message)
{
    domus_slice value;
    uint32_t from = 0;

    if (domus_nats_stream_header(message, "KV-Operation", &from, &value) == 0) {
        if (domus_slice_equals(value, "DEL", 3))
            return DOMUS_NATS_KV_DELETE;
        return domus_slice_equals(value, "PURGE", 5) ? DOMUS_NATS_KV_PURGE : DOMUS_NATS_KV_PUT;
    }
    from = 0;
    if (domus_nats_stream_header(message, "Nats-Marker-Reason", &from, &value) == 0)
        return domus_slice_equals(value, "Remove", 6) ? DOMUS_NATS_KV_DELETE : DOMUS_NATS_KV_PURGE;
    return DOMUS_NATS_KV_PUT;
}

int domi_kv_read_entry_of_message(const char *bucket, const domus_nats_stream_message *message,
                                  domus_nats_kv_entry *ret_entry)
{
    domus_slice subject = domus_nats_stream_subject(message);
    uint32_t key_at = find_key_in_subject(bucket, subject);

    if (key_at == 0)
        return -EPROTO;
    if (subject.size - key_at > DOMUS_NATS_KV_KEY_MAX)
        return -EMSGSIZE;
    domus_nats_kv_operation operation = read_operation_of_entry(message);
    *ret_entry = (domus_nats_kv_entry){
        .bytes = message->bytes,
        .revision = message->sequence,
        .written_ns = message->stored_ns,
        .pending = message->pending,
        .key_at = message->subject_at + key_at,
        .key_size = (uint16_t)(subject.size - key_at),
        .value_at = message->payload_at,
        .value_size = operation == DOMUS_NATS_KV_PUT ? message->payload_size : 0,
        .operation = (uint8_t)operation,
    };
    return 0;
}
