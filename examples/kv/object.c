/* The commands OBJECT and MEMORY, which tell how a value is stored, and how much memory it
 * takes. */
#include "hash.h"
#include "list.h"
#include "subcommand.h"

#include <stdlib.h>
#include <string.h>

/* most bytes of a string that Redis stores together with its key (encoding embstr) */
#define EMBEDDED_MAX 44u
/* The number of nodes or fields that MEMORY USAGE looks at, unless its option SAMPLES says another
 * number. */
#define SAMPLES_GIVEN 5
#define SAMPLES_MOST  65536 /* most nodes or fields that MEMORY USAGE looks at */

/* --- OBJECT ----------------------------------------------------------------------------------- */

static const char *name_of_redis_encoding(const struct kv_item *item)
{
    domus_resp_bytes bytes;
    int64_t number;

    if (item->kind == KV_LIST)
        return "quicklist";
    if (item->kind == KV_HASH)
        return kv_is_hash_a_table_in_redis(item) ? "hashtable" : "listpack";
    bytes = kv_item_string(item);
    if (kv_read_integer_in_text(bytes.data, bytes.size, &number))
        return "int";
    return bytes.size <= EMBEDDED_MAX ? "embstr" : "raw";
}

/* Returns whether Redis would store a string as one of its shared integers, 0 to 9999. */
static bool is_shared_integer(const struct kv_item *item)
{
    int64_t number;

    if (!kv_is_string(item))
        return false;
    domus_resp_bytes bytes = kv_item_string(item);
    return kv_read_integer_in_text(bytes.data, bytes.size, &number) && number >= 0 &&
           number < 10000;
}

static const struct kv_subcommand of_object[] = {
    {"encoding", 3, 3, "ENCODING <key>",
     "    Return the kind of internal representation that Redis would use for the value of <key>."},
    {"freq", 3, 3, "FREQ <key>", "    An error, because nothing is evicted."},
    {"idletime", 3, 3, "IDLETIME <key>", "    Always 0: the time of an access is not noted."},
    {"refcount", 3, 3, "REFCOUNT <key>",
     "    2147483647 for integers that Redis would share, else 1: values are not shared."},
    {NULL, 0, 0, NULL, NULL}};

int kv_run_object(struct kv_call *call)
{
    int result;
    const struct kv_subcommand *row =
        kv_find_subcommand_or_answer_error(call->stack, call->command, of_object, &result);

    if (row == NULL)
        return result;
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    if (link == NULL)
        return kv_answer_null(call->stack);
    if (strcmp(row->name, "freq") == 0)
        return kv_answer_error(
            call->stack,
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. "
            "Please note that when switching between policies at runtime LRU and LFU "
            "data will take some time to adjust.");
    if (strcmp(row->name, "idletime") == 0)
        return kv_answer_integer(call->stack, 0);
    if (strcmp(row->name, "refcount") == 0)
        return kv_answer_integer(call->stack, is_shared_integer(*link) ? INT32_MAX : 1);
    const char *name = name_of_redis_encoding(*link);
    return kv_answer_bytes_as_bulk_string(call->stack, (domus_resp_bytes){name, strlen(name)});
}

/* --- MEMORY ----------------------------------------------------------------------------------- */

static uint64_t memory_of_item(const struct kv_item *item)
{
    return sizeof *item + item->key_size + item->room +
           (item->kind == KV_LONG ? item->slice.size : 0);
}

/* Returns an estimate of the bytes of all `count` elements, from the `seen` ones, which take
 * `bytes`. */
static uint64_t estimate_bytes_of_all(uint64_t bytes, uint64_t seen, uint64_t count)
{
    return seen != 0 ? (uint64_t)((double)bytes / (double)seen * (double)count) : 0;
}

static uint64_t estimate_memory_of_list(const struct kv_list *list, int64_t samples)
{
    uint64_t bytes = 0, seen = 0;

    for (const struct kv_node *node = list->ends[KV_HEAD]; node != NULL && samples-- > 0;
         node = node->next[KV_TAIL]) {
        bytes += sizeof *node + node->room;
        seen += node->count;
    }
    return sizeof *list + estimate_bytes_of_all(bytes, seen, list->count);
}

static uint64_t estimate_memory_of_hash(const struct kv_table *fields, int64_t samples)
{
    uint64_t bytes = 0, seen = 0;
    uint64_t buckets = kv_table_count_buckets(fields);

    for (uint64_t at = 0; at < buckets && (int64_t)seen < samples; at++) {
        for (const struct kv_item *item = kv_table_first_item_of_bucket(fields, at); item != NULL;
             item = item->next, seen++)
            bytes += memory_of_item(item);
    }
    return sizeof *fields + buckets * sizeof(struct kv_item *) +
           estimate_bytes_of_all(bytes, seen, fields->count);
}

static const struct kv_subcommand of_memory[] = {
    {"usage", 3, KV_ANY_NUMBER, "USAGE <key> [SAMPLES <count>]",
     "    Return memory in bytes used by <key> and its value, about."},
    {NULL, 0, 0, NULL, NULL}};

int kv_run_memory(struct kv_call *call)
{
    int result;
    int64_t samples = SAMPLES_GIVEN;

    if (kv_find_subcommand_or_answer_error(call->stack, call->command, of_memory, &result) == NULL)
        return result;
    for (uint32_t i = 3; i < call->command->count; i += 2) {
        if (!domus_resp_is(domus_resp_argument(call->command, i), "SAMPLES") ||
            i + 1 == call->command->count)
            return kv_answer_error(call->stack, KV_SYNTAX);
        if (!kv_read_integer_argument(call, i + 1, &samples))
            return kv_answer_error(call->stack, KV_NO_INTEGER);
        if (samples < 0)
            return kv_answer_error(call->stack, KV_SYNTAX);
    }
    /* SAMPLES 0 means that all elements are looked at */
    if (samples == 0 || samples > SAMPLES_MOST)
        samples = SAMPLES_MOST;
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    if (link == NULL)
        return kv_answer_null(call->stack);
    uint64_t bytes = memory_of_item(*link);
    if ((*link)->kind == KV_LIST)
        bytes += estimate_memory_of_list((*link)->list, samples);
    else if ((*link)->kind == KV_HASH)
        bytes += estimate_memory_of_hash((*link)->fields, samples);
    return kv_answer_integer(call->stack, (int64_t)bytes);
}
