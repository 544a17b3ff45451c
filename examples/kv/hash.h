/* Hashes: items whose value is a table with the fields. */
#ifndef KV_HASH_H
#define KV_HASH_H

#include "kv.h"

/* Returns whether Redis would keep the hash as a table, because it has once exceeded
 * hash-max-listpack-entries or -value. This is stored in the size of the item, which a hash does
 * not need. */
static inline bool kv_is_hash_a_table_in_redis(const struct kv_item *item)
{
    return item->kind == KV_HASH && item->size != 0;
}

/* Find the hash of the key of a call. Returns 1; 0 if there is no such key; -EINVAL for another
 * kind of value. */
int kv_find_hash_at_key_of_call(struct kv_call *call, struct kv_item ***ret_link);

/* Returns the link to the item of a field of a hash; NULL if the hash has no such field. */
struct kv_item **kv_find_field_in_hash(struct kv_item *item, domus_slice field);

/* Find the field of a hash that argument 2 of a call names. Returns 0, with NULL if there is no
 * such key or field; -EINVAL for another kind of value. */
int kv_find_hash_field_of_second_argument(struct kv_call *call, struct kv_item ***ret_field);

/* Set a field of the hash of a call, which is made if it is not there. Returns 1 if the field is
 * new; 0; -ENOMEM, and nothing has changed. */
int kv_set_field_of_hash_at_key(struct kv_call *call, domus_slice field, domus_slice value);

#endif
