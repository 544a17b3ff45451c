/* SCAN and HSCAN.
 *
 * A cursor counts the buckets of a table from the highest bit of their number on, and so it stays
 * right when the table grows or shrinks: the buckets of a larger table that come from one bucket of
 * a smaller one follow each other. Whatever is there during a whole scan is returned. The lowest
 * bits of the cursor of SCAN are the shard. */
#include "glob.h"
#include "hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHARD_BITS  8
#define SMALL_HASH  128u /* fields up to which HSCAN returns a hash as a whole */
#define COUNT_GIVEN 10

_Static_assert(KV_SHARDS_MAX == 1u << SHARD_BITS, "a cursor has room for the shard");

struct scan {
    struct kv_store *store;
    domus_resp_builder found;
    uint64_t cursor;
    domus_slice pattern; /* pattern that the names of elements must match; empty: all match */
    domus_slice type;    /* word of the type that values must have; empty: any type */
    bool has_pattern, of_keys;
    int64_t count;
    int64_t elements;
};

/* Read the cursor of a SCAN from its argument. Returns NULL, or the text of the error. */
static const char *read_scan_cursor(domus_slice text, uint64_t *ret_cursor)
{
    uint64_t cursor = 0;

    for (uint32_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)(unsigned char)domus_slice_data(text)[i] - '0';
        if (digit > 9 || cursor > (UINT64_MAX - digit) / 10)
            return "ERR invalid cursor";
        cursor = cursor * 10 + digit;
    }
    *ret_cursor = cursor;
    return text.size != 0 ? NULL : "ERR invalid cursor";
}

static const char *read_scan_options(const struct kv_call *call, uint32_t first, struct scan *scan)
{
    for (uint32_t i = first; i < call->command->count; i += 2) {
        domus_slice word = domus_resp_argument(call->command, i);
        if (i + 1 == call->command->count)
            return KV_SYNTAX;
        if (domus_resp_is(word, "MATCH")) {
            scan->pattern = domus_resp_argument(call->command, i + 1);
            scan->has_pattern = true;
        } else if (domus_resp_is(word, "TYPE") && scan->of_keys) {
            scan->type = domus_resp_argument(call->command, i + 1);
        } else if (!domus_resp_is(word, "COUNT")) {
            return KV_SYNTAX;
        } else if (!kv_read_integer_argument(call, i + 1, &scan->count)) {
            return KV_NO_INTEGER;
        } else if (scan->count < 1) {
            return KV_SYNTAX;
        }
    }
    if (scan->count > (int64_t)kv_settings.scan_max)
        scan->count = (int64_t)kv_settings.scan_max;
    return scan->pattern.size > KV_PATTERN_MAX ? KV_LONG_PATTERN : NULL;
}

static void add_item_to_scan_if_it_matches(struct scan *scan, const struct kv_item *item)
{
    domus_resp_bytes value;

    if (item->expires_ms != 0 && item->expires_ms <= scan->store->now_ms)
        return;
    if (scan->has_pattern && !kv_matches_pattern(domus_slice_data(scan->pattern),
                                                 scan->pattern.size, item->bytes, item->key_size))
        return;
    if (scan->type.size != 0 && !domus_resp_is(scan->type, kv_name_of_type(item)))
        return;
    (void)domus_resp_add_bulk(&scan->found, item->bytes, item->key_size);
    scan->elements++;
    if (scan->of_keys)
        return;
    value = kv_item_string(item);
    (void)domus_resp_add_bulk(&scan->found, value.data, value.size);
    scan->elements++;
}

static void add_matching_items_of_bucket_to_scan(struct scan *scan, const struct kv_item *item)
{
    for (; item != NULL; item = item->next)
        add_item_to_scan_if_it_matches(scan, item);
}

static uint64_t reverse_bits(uint64_t bits)
{
    bits = __builtin_bswap64(bits);
    bits = (bits >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f)) | (bits & UINT64_C(0x0f0f0f0f0f0f0f0f)) << 4;
    bits = (bits >> 2 & UINT64_C(0x3333333333333333)) | (bits & UINT64_C(0x3333333333333333)) << 2;
    return (bits >> 1 & UINT64_C(0x5555555555555555)) | (bits & UINT64_C(0x5555555555555555)) << 1;
}

static uint64_t next_scan_cursor_by_reversed_bits(uint64_t cursor, uint64_t mask)
{
    return reverse_bits(reverse_bits(cursor | ~mask) + 1);
}

/* Visit the bucket of the cursor, and, while the table grows or shrinks, the buckets of the other
 * table that have the same items. */
static void add_bucket_of_cursor_and_advance_it(struct scan *scan, const struct kv_table *table)
{
    if (table->old == NULL) {
        add_matching_items_of_bucket_to_scan(scan, table->buckets[scan->cursor & table->mask]);
        scan->cursor = next_scan_cursor_by_reversed_bits(scan->cursor, table->mask);
        return;
    }
    bool grows = table->old_mask < table->mask;
    struct kv_item *const *small = grows ? table->old : table->buckets;
    struct kv_item *const *large = grows ? table->buckets : table->old;
    uint64_t small_mask = grows ? table->old_mask : table->mask;
    uint64_t large_mask = grows ? table->mask : table->old_mask;
    add_matching_items_of_bucket_to_scan(scan, small[scan->cursor & small_mask]);
    do {
        add_matching_items_of_bucket_to_scan(scan, large[scan->cursor & large_mask]);
        scan->cursor = next_scan_cursor_by_reversed_bits(scan->cursor, large_mask);
    } while ((scan->cursor & (small_mask ^ large_mask)) != 0);
}

static int answer_with_cursor_and_found_elements(struct kv_call *call, struct scan *scan)
{
    domus_resp_builder builder = {.version = call->command->version,
                                  .bytes.size_max = kv_most_bytes_of_one_answer()};
    domus_resp_reply found = {{NULL, 0, 0}, 0, 0, {0}};
    char cursor[24];
    int error = scan->elements != 0 ? domus_resp_end(&scan->found, &found) : 0;

    if (error != 0)
        return error;
    int size = snprintf(cursor, sizeof cursor, "%" PRIu64, scan->cursor);
    (void)domus_resp_add_array(&builder, 2);
    (void)domus_resp_add_bulk(&builder, cursor, (size_t)size);
    (void)domus_resp_add_array(&builder, (uint32_t)scan->elements);
    if (scan->elements != 0)
        (void)domus_resp_add_reply(&builder, &found);
    domus_slice_free(found.bytes);
    return kv_answer_what_builder_has_made(call->stack, &builder);
}

/* Visit buckets of a table from the cursor on, until there are enough elements, or until many
 * buckets were empty. */
static void add_buckets_until_scan_has_enough(struct scan *scan, const struct kv_table *table)
{
    uint64_t mask =
        table->old != NULL && table->old_mask > table->mask ? table->old_mask : table->mask;
    int64_t most = scan->count * 10;

    scan->cursor &= mask;
    if (table->buckets == NULL)
        scan->cursor = 0;
    else
        do
            add_bucket_of_cursor_and_advance_it(scan, table);
        while (scan->cursor != 0 && --most > 0 && scan->elements < scan->count);
}

int kv_run_scan(struct kv_call *call)
{
    struct scan scan = {.store = call->store, .count = COUNT_GIVEN, .of_keys = true};
    uint64_t cursor = 0;
    const char *wrong = read_scan_cursor(domus_resp_argument(call->command, 1), &cursor);

    if (wrong == NULL)
        wrong = read_scan_options(call, 2, &scan);
    if (wrong != NULL)
        return kv_answer_error(call->stack, wrong);
    uint64_t shard = cursor % KV_SHARDS_MAX;
    scan.cursor = cursor >> SHARD_BITS;
    add_buckets_until_scan_has_enough(&scan, &call->store->table);
    scan.cursor = scan.cursor != 0             ? scan.cursor << SHARD_BITS | shard
                  : shard + 1 < kv_shard_count ? shard + 1
                                               : 0;
    return answer_with_cursor_and_found_elements(call, &scan);
}

int kv_serve_scan(domus_stack *stack, void *self, const void *payload)
{
    uint64_t cursor = 0;
    const char *wrong = read_scan_cursor(domus_resp_argument(payload, 1), &cursor);

    (void)self;
    if (wrong != NULL)
        return kv_answer_error(stack, wrong);
    /* The client may send a cursor that this server has not given, so the number of its shard is
     * made valid. */
    return domus_forward(stack, kv_shards[cursor % KV_SHARDS_MAX % kv_shard_count]);
}

int kv_run_hscan(struct kv_call *call)
{
    struct scan scan = {.store = call->store, .count = COUNT_GIVEN};
    const char *wrong = read_scan_cursor(domus_resp_argument(call->command, 2), &scan.cursor);
    struct kv_item **link;

    if (wrong != NULL)
        return kv_answer_error(call->stack, wrong);
    int there = kv_find_hash_at_key_of_call(call, &link);
    if (there < 0)
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    wrong = there != 0 ? read_scan_options(call, 3, &scan) : NULL;
    if (wrong != NULL)
        return kv_answer_error(call->stack, wrong);
    if (there == 0) {
        scan.cursor = 0;
    } else if ((*link)->fields->count <= SMALL_HASH) {
        for (uint64_t at = 0; at < kv_table_count_buckets((*link)->fields); at++)
            add_matching_items_of_bucket_to_scan(
                &scan, kv_table_first_item_of_bucket((*link)->fields, at));
        scan.cursor = 0;
    } else {
        add_buckets_until_scan_has_enough(&scan, (*link)->fields);
    }
    return answer_with_cursor_and_found_elements(call, &scan);
}
