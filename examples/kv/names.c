/* Commands that move and copy values from key to key, and OBJECT, which tells how a value is kept.
 */
#include "kv.h"
#include "list.h"

#include <errno.h>
#include <string.h>

/* A value on its way from one key to another. */
struct value {
    uint8_t kind;
    uint64_t expires_ms;
    union {
        domus_slice slice; /* of both kinds of strings */
        struct kv_list *list;
        struct kv_table *fields;
    };
};

static void drop_value(struct kv_memory *memory, struct value *value)
{
    struct kv_item item = {.kind = value->kind, .slice = value->slice};

    if (value->kind == KV_SHORT || value->kind == KV_LONG)
        domus_slice_free(value->slice);
    else
        kv_item_clear(memory, &item);
}

/* Give argument `i` this value, instead of what the key has. Returns 0; -ENOMEM, and the value is
 * still the caller's. */
static int put_value(struct kv_call *call, uint32_t i, const struct value *value)
{
    struct kv_memory *memory = &call->store->memory;

    kv_turn_to(call, i);
    struct kv_item **link = kv_find_or_add(call, DOMUS_RESP_SHORT_MAX);
    if (link == NULL)
        return -ENOMEM;
    kv_item_clear(memory, *link);
    if (value->kind == KV_SHORT || value->kind == KV_LONG) {
        int error = kv_item_set_slice(memory, link, value->slice);
        if (error != 0)
            return error;
    } else {
        (*link)->slice = value->slice; /* the largest of the union, whatever the value is */
        (*link)->kind = value->kind;
    }
    kv_store_set_expiry(call->store, *link, value->expires_ms);
    return 0;
}

static bool are_same(const struct kv_call *call, uint32_t i, uint32_t j)
{
    domus_slice other = domus_resp_argument(call->command, j);

    return domus_slice_equals(domus_resp_argument(call->command, i), domus_slice_data(other),
                              other.size);
}

/* --- moving ----------------------------------------------------------------------------------- */

/* Give the value of the first key to the second one. Only strings are copied on the way, of which
 * long ones are slices, so nothing is lost without memory. */
static int move_value(struct kv_call *call)
{
    struct kv_item *item = *kv_find(call);
    struct value value = {.kind = item->kind, .expires_ms = item->expires_ms};
    bool is_string = kv_is_string(item);
    int error = 0;

    if (is_string)
        error = kv_item_slice(item, &value.slice);
    else
        value.slice = item->slice;
    if (error != 0)
        return error;
    error = put_value(call, 2, &value);
    if (error != 0)
        return error;
    kv_turn_to(call, 1);
    struct kv_item **link = kv_find(call);
    if (!is_string)
        (*link)->kind = KV_SHORT, (*link)->size = 0; /* it owns the value no more */
    kv_store_remove(call->store, link);
    return 0;
}

static int rename_key(struct kv_call *call, bool only_new)
{
    if (kv_find(call) == NULL)
        return kv_error(call->stack, "ERR no such key");
    if (are_same(call, 1, 2))
        return only_new ? kv_integer(call->stack, 0) : kv_ok(call->stack);
    kv_turn_to(call, 2);
    if (only_new && kv_find(call) != NULL)
        return kv_integer(call->stack, 0);
    kv_turn_to(call, 1);
    int error = move_value(call);
    if (error != 0)
        return error;
    return only_new ? kv_integer(call->stack, 1) : kv_ok(call->stack);
}

int kv_run_rename(struct kv_call *call)
{
    return rename_key(call, false);
}

int kv_run_renamenx(struct kv_call *call)
{
    return rename_key(call, true);
}

/* --- copying ---------------------------------------------------------------------------------- */

static int copy_list(struct kv_memory *memory, const struct kv_list *from,
                     struct kv_list **ret_list)
{
    struct kv_list *list = kv_list_new(memory);
    int error = list == NULL ? -ENOMEM : 0;

    for (struct kv_place place = kv_list_seek(from, 0); place.node != NULL && error == 0;
         place = kv_list_next(place)) {
        domus_resp_bytes element = kv_list_at(place);
        error = kv_list_push(memory, list, KV_TAIL, element.data, (uint32_t)element.size);
    }
    if (error != 0 && list != NULL)
        kv_list_free(memory, list);
    else
        *ret_list = list;
    return error;
}

static int copy_fields(struct kv_memory *memory, const struct kv_table *from,
                       struct kv_table **ret_fields)
{
    struct kv_table *fields = kv_allocate(memory, sizeof *fields);
    int error = fields == NULL ? -ENOMEM : 0;

    if (fields != NULL)
        *fields = (struct kv_table){0};
    for (uint64_t at = 0; error == 0 && at < kv_table_buckets(from); at++) {
        for (const struct kv_item *item = kv_table_bucket(from, at); item != NULL && error == 0;
             item = item->next) {
            domus_slice field = {&(domus_page){item->bytes}, 0, item->key_size};
            domus_resp_bytes value = kv_item_string(item);
            uint32_t room = item->kind == KV_SHORT ? item->size : 0;
            if (kv_table_add(fields, memory, item->hash, field, room) == NULL)
                error = -ENOMEM;
            else
                error = kv_item_set(memory, kv_table_find(fields, item->hash, field), value.data,
                                    (uint32_t)value.size);
        }
    }
    if (error != 0 && fields != NULL) {
        kv_table_clear(fields, memory);
        kv_free(memory, fields);
    } else {
        *ret_fields = fields;
    }
    return error;
}

static int copy_value(struct kv_memory *memory, const struct kv_item *item, struct value *ret_value)
{
    ret_value->kind = item->kind;
    ret_value->expires_ms = item->expires_ms;
    if (item->kind == KV_LIST)
        return copy_list(memory, item->list, &ret_value->list);
    if (item->kind == KV_HASH)
        return copy_fields(memory, item->fields, &ret_value->fields);
    return kv_item_slice(item, &ret_value->slice);
}

/* Read DB and REPLACE. Returns NULL, or the error. */
static const char *read_copy(const struct kv_call *call, bool *ret_replaces)
{
    int64_t database;

    for (uint32_t i = 3; i < call->command->count; i++) {
        domus_slice word = domus_resp_argument(call->command, i);
        if (domus_resp_is(word, "REPLACE"))
            *ret_replaces = true;
        else if (!domus_resp_is(word, "DB") || ++i == call->command->count)
            return KV_SYNTAX;
        else if (!kv_argument_integer(call, i, &database))
            return KV_NO_INTEGER;
        else if (database != 0)
            return "ERR DB index is out of range";
    }
    return NULL;
}

int kv_run_copy(struct kv_call *call)
{
    struct kv_memory *memory = &call->store->memory;
    bool replaces = false;
    const char *wrong = read_copy(call, &replaces);
    struct value value = {0};

    if (wrong == NULL && are_same(call, 1, 2))
        wrong = "ERR source and destination objects are the same";
    if (wrong != NULL)
        return kv_error(call->stack, wrong);
    kv_turn_to(call, 2);
    bool is_taken = kv_find(call) != NULL && !replaces;
    kv_turn_to(call, 1);
    struct kv_item **link = kv_find(call);
    if (link == NULL || is_taken)
        return kv_integer(call->stack, 0);
    int error = copy_value(memory, *link, &value);
    if (error == 0 && (error = put_value(call, 2, &value)) != 0)
        drop_value(memory, &value);
    return error != 0 ? error : kv_integer(call->stack, 1);
}

/* --- OBJECT ----------------------------------------------------------------------------------- */

#define EMBEDDED_MAX  44u /* bytes of a string that Redis keeps beside its key */
#define LISTPACK_MOST 128u

static const char *encoding_of(const struct kv_item *item)
{
    domus_resp_bytes bytes;
    int64_t number;

    if (item->kind == KV_LIST)
        return "quicklist";
    if (item->kind == KV_HASH)
        return item->fields->count <= LISTPACK_MOST ? "listpack" : "hashtable";
    bytes = kv_item_string(item);
    if (kv_to_integer(bytes.data, bytes.size, &number))
        return "int";
    return bytes.size <= EMBEDDED_MAX ? "embstr" : "raw";
}

int kv_run_object(struct kv_call *call)
{
    domus_slice word = domus_resp_argument(call->command, 1);
    bool is_encoding = domus_resp_is(word, "ENCODING");
    bool is_known =
        is_encoding || domus_resp_is(word, "REFCOUNT") || domus_resp_is(word, "IDLETIME");

    if (!is_known || call->command->count != 3) {
        domus_resp_error error = domus_resp_error_text(
            is_known ? "ERR wrong number of arguments for 'object|%.*s' command"
                     : "ERR unknown subcommand '%.*s'. Try OBJECT HELP.",
            (int)(word.size < 60 ? word.size : 60), domus_slice_data(word));
        return kv_error(call->stack, error.text);
    }
    struct kv_item **link = kv_find(call);
    if (link == NULL)
        return kv_null(call->stack);
    if (!is_encoding)
        return kv_integer(call->stack, domus_resp_is(word, "REFCOUNT"));
    const char *name = encoding_of(*link);
    return kv_bytes(call->stack, (domus_resp_bytes){name, strlen(name)});
}
