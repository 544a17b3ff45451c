/* The pickler of gifts (gift.h). A gift that was written for another node has left this one:
 * whoever throws it away afterwards must not give its elements back. */
#include "gift.h"
#include "travel.h"

#include <errno.h>

int kv_pickle_gift(domus_pickle_writer *writer, const void *payload)
{
    struct kv_gift *gift = *(struct kv_gift *const *)payload;

    if ((uint64_t)gift->key.size + gift->elements.size > KV_TRAVEL_MAX)
        return domus_pickle_refuse(writer, -EMSGSIZE, "the elements are too large");
    (void)domus_pickle_put_array(writer, 6);
    (void)domus_pickle_put_uint(writer, gift->shard);
    (void)domus_pickle_put_uint(writer, gift->end);
    (void)domus_pickle_put_bool(writer, gift->was_waited_for);
    (void)domus_pickle_put_bytes(writer, domus_slice_data(gift->key), gift->key.size);
    (void)domus_pickle_put_uint(writer, gift->count);
    int error =
        domus_pickle_put_bytes(writer, domus_slice_data(gift->elements), gift->elements.size);
    gift->has_left = error == 0;
    return error;
}

int kv_unpickle_gift(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    domus_slice key = {NULL, 0, 0}, elements = {NULL, 0, 0};
    uint64_t shard = 0, end = 0, count = 0;
    bool was_waited_for = false;
    uint32_t parts = 0;

    (void)version;
    (void)domus_pickle_get_array(reader, 6, &parts);
    (void)domus_pickle_get_uint(reader, 0, kv_shard_count - 1, &shard);
    (void)domus_pickle_get_uint(reader, KV_HEAD, KV_TAIL, &end);
    (void)domus_pickle_get_bool(reader, &was_waited_for);
    (void)domus_pickle_get_slice(reader, DOMUS_SLICE_MAX, &key);
    (void)domus_pickle_get_uint(reader, 0, UINT32_MAX, &count);
    int error = domus_pickle_get_slice(reader, DOMUS_SLICE_MAX, &elements);
    if (error == 0 && count != 0 && !kv_are_bytes_array_of_count(elements, (uint32_t)count))
        error = domus_pickle_reject(reader, -EPROTO, "no array of elements");
    if (error != 0) {
        domus_slice_free(key);
        domus_slice_free(elements);
        return error;
    }
    struct kv_gift *gift = kv_gift_new_of_popped_elements((uint32_t)shard, (enum kv_end)end, key,
                                                          elements, (uint32_t)count);
    domus_slice_free(key);
    if (gift == NULL)
        return -ENOMEM;
    gift->was_waited_for = was_waited_for;
    *(struct kv_gift **)payload = gift;
    return 0;
}
