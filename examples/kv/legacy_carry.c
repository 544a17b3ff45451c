/* The porter: it turns the keys of a legacy into commands that make them anew, and sends these
 * piece by piece. */
#include "legacy.h"

#include "list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The state of a porter: how far it is in its legacy. */
struct porter {
    uint32_t shard;
    struct kv_legacy *legacy; /* the legacy that the porter has; NULL: none */
    uint64_t at;              /* index of the bucket of the legacy's table that is sent */
    /* item of that bucket that is sent next; NULL: the next bucket follows */
    const struct kv_item *item;
    /* whether the item is a list or a hash of which some elements were sent */
    bool is_within;
    uint64_t left;         /* number of elements of the item's list that are still to be sent */
    struct kv_place place; /* place of the next element of the item's list */
    uint64_t field_at;     /* index of the next bucket of the item's hash */
    /* commands that make keys anew; the bytes from `sent` on are still to be sent */
    domus_slice commands;
    uint32_t sent;
};

static void free_bytes_of_legacy_piece(void *payload)
{
    domus_slice_free(((struct kv_piece_of_legacy *)payload)->bytes);
}

const domus_type kv_fetch_type = {.name = "fetch", .size = sizeof(struct kv_fetch)};
const domus_type kv_legacy_piece_type = {.name = "piece of legacy",
                                         .size = sizeof(struct kv_piece_of_legacy),
                                         .release = free_bytes_of_legacy_piece};
const domus_type kv_drop_type = {.name = "drop legacy"};

/* --- commands --------------------------------------------------------------------------------- */

static void add_text_argument(domus_resp_builder *builder, const char *text)
{
    (void)domus_resp_add_bulk(builder, text, strlen(text));
}

static void add_bytes_argument(domus_resp_builder *builder, domus_resp_bytes bytes)
{
    (void)domus_resp_add_bulk(builder, bytes.data, bytes.size);
}

/* Begin a command of `count` arguments with its name and the key. */
static void begin_command_for_item(domus_resp_builder *builder, uint32_t count, const char *name,
                                   const struct kv_item *item)
{
    (void)domus_resp_add_array(builder, count);
    add_text_argument(builder, name);
    (void)domus_resp_add_bulk(builder, item->bytes, item->key_size);
}

static bool is_piece_full(const domus_resp_builder *builder)
{
    return builder->bytes.size >= KV_LEGACY_PIECE || builder->bytes.error != 0;
}

static void add_set_command_of_string(domus_resp_builder *builder, const struct kv_item *item)
{
    begin_command_for_item(builder, 3, "SET", item);
    add_bytes_argument(builder, kv_item_string(item));
}

/* Add elements of the item's list until the piece is full. Returns whether there are more. */
static bool add_rpush_commands_of_list(struct porter *porter, domus_resp_builder *builder)
{
    const struct kv_list *list = porter->item->list;

    if (!porter->is_within) {
        porter->left = list->count;
        porter->place = kv_list_place_of_index(list, 0);
    }
    for (; porter->left != 0 && !is_piece_full(builder); porter->left--) {
        begin_command_for_item(builder, 3, "RPUSH", porter->item);
        add_bytes_argument(builder, kv_list_element_at_place(porter->place));
        porter->place = kv_list_place_behind(porter->place);
    }
    return porter->left != 0;
}

/* Add fields of the item's hash, a whole bucket at a time, until the piece is full. Returns whether
 * there are more. */
static bool add_hset_commands_of_hash(struct porter *porter, domus_resp_builder *builder)
{
    const struct kv_table *fields = porter->item->fields;

    if (!porter->is_within)
        porter->field_at = 0;
    for (; porter->field_at < kv_table_count_buckets(fields) && !is_piece_full(builder);
         porter->field_at++) {
        for (const struct kv_item *field = kv_table_first_item_of_bucket(fields, porter->field_at);
             field != NULL; field = field->next) {
            begin_command_for_item(builder, 4, "HSET", porter->item);
            (void)domus_resp_add_bulk(builder, field->bytes, field->key_size);
            add_bytes_argument(builder, kv_item_string(field));
        }
    }
    return porter->field_at < kv_table_count_buckets(fields);
}

/* Add the value of the item: its elements or fields until the piece is full, or its string. Returns
 * whether there is more. */
static bool add_commands_of_item_value(struct porter *porter, domus_resp_builder *builder)
{
    if (porter->item->kind == KV_LIST)
        return add_rpush_commands_of_list(porter, builder);
    if (porter->item->kind == KV_HASH)
        return add_hset_commands_of_hash(porter, builder);
    add_set_command_of_string(builder, porter->item);
    return false;
}

/* Add the command that makes the item expire. If it has expired meanwhile, the command has a time
 * of 0, and so removes it. */
static void add_expiry_of_item(domus_resp_builder *builder, const struct kv_item *item,
                               uint64_t now_ms)
{
    char text[24];

    if (item->expires_ms == 0)
        return;
    snprintf(text, sizeof text, "%" PRIu64,
             item->expires_ms > now_ms ? item->expires_ms - now_ms : 0);
    begin_command_for_item(builder, 3, "PEXPIRE", item);
    add_text_argument(builder, text);
}

/* Go to the next item of the legacy that is to be sent. Returns false if there is none. */
static bool find_next_item(struct porter *porter)
{
    const struct kv_table *table = &porter->legacy->table;

    while (porter->item == NULL && porter->at < kv_table_count_buckets(table))
        porter->item = kv_table_first_item_of_bucket(table, porter->at++);
    return porter->item != NULL;
}

/* Make the commands of the next piece of the legacy. */
static int make_commands_of_piece(struct porter *porter, uint64_t now_ms)
{
    domus_resp_builder builder = {.version = 0};
    domus_resp_reply reply = {.values = 0};

    while (!is_piece_full(&builder) && find_next_item(porter)) {
        const struct kv_item *item = porter->item;
        bool is_over = item->expires_ms != 0 && item->expires_ms <= now_ms;
        bool has_begun = porter->is_within;
        porter->is_within = !is_over && add_commands_of_item_value(porter, &builder);
        if (porter->is_within)
            continue;
        if (!is_over || has_begun)
            add_expiry_of_item(&builder, item, now_ms);
        porter->item = item->next;
    }
    if (builder.values == 0 && builder.bytes.error == 0)
        return 0;
    int error = domus_resp_end(&builder, &reply);
    porter->commands = reply.bytes;
    porter->sent = 0;
    return error;
}

/* --- the actor -------------------------------------------------------------------------------- */

static int claim_legacy_and_reply_with_its_fence(domus_stack *stack, struct porter *porter,
                                                 const struct kv_fetch *fetch)
{
    struct kv_piece_of_legacy piece = {.ends_commands = true};

    if (fetch->shard >= kv_shard_count || porter->legacy != NULL)
        return -EINVAL;
    int error = domus_watch_actor(stack, domus_sender(stack), NULL);
    if (error != 0)
        return error;
    porter->shard = fetch->shard;
    porter->legacy = kv_legacy_take_and_count_porter(fetch->shard);
    if (porter->legacy == NULL && kv_legacy_has_any_porter_it(fetch->shard))
        /* another porter has the legacy for a life that has ended, and gives it back in a moment */
        return -EAGAIN;
    piece.fence = porter->legacy != NULL ? porter->legacy->fence : 0;
    return domus_reply(stack, &kv_legacy_piece_type, &piece);
}

static int reply_with_next_piece_of_legacy(domus_stack *stack, void *self, const void *payload)
{
    const struct kv_fetch *fetch = payload;
    struct porter *porter = self;
    int error = 0;

    if (fetch->looks)
        return claim_legacy_and_reply_with_its_fence(stack, porter, fetch);
    if (porter->legacy == NULL)
        return -ENOENT;
    if (porter->sent == porter->commands.size) {
        domus_slice_free(porter->commands);
        porter->commands = (domus_slice){NULL, 0, 0};
        porter->sent = 0;
        error = make_commands_of_piece(porter, domus_now_ns(stack) / 1000000);
    }
    if (error != 0)
        return error;
    struct kv_piece_of_legacy piece = {.fence = porter->legacy->fence};
    uint32_t size = porter->commands.size - porter->sent;
    size = size < KV_LEGACY_PIECE ? size : KV_LEGACY_PIECE;
    domus_slice part = porter->commands;
    part.offset += porter->sent;
    part.size = size;
    error = domus_slice_keep(part, &piece.bytes);
    if (error != 0)
        return error;
    porter->sent += size;
    piece.ends_commands = porter->sent == porter->commands.size;
    piece.ends_all = piece.ends_commands && !find_next_item(porter);
    error = domus_reply(stack, &kv_legacy_piece_type, &piece);
    if (error != 0)
        domus_slice_free(piece.bytes);
    return error;
}

static int free_fetched_legacy_and_stop_porter(domus_stack *stack, void *self, const void *payload)
{
    struct porter *porter = self;

    (void)payload;
    kv_legacy_free(porter->legacy);
    if (porter->legacy != NULL)
        kv_legacy_count_porter_as_done(porter->shard);
    porter->legacy = NULL;
    return domus_stop(stack, domus_self(stack));
}

/* The shard that fetched has ended before it had everything: another life may fetch the legacy. */
static int stop_porter_of_ended_shard(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_stop(stack, domus_self(stack));
}

static void put_legacy_back_at_stop_of_porter(domus_stack *stack, void *self)
{
    struct porter *porter = self;

    (void)stack;
    domus_slice_free(porter->commands);
    kv_legacy_put_newest_into_slot(porter->shard, porter->legacy);
    if (porter->legacy != NULL)
        kv_legacy_count_porter_as_done(porter->shard);
}

const domus_behaviour kv_porter = {
    .name = "porter",
    .state_size = sizeof(struct porter),
    .on = (const domus_on[]){{&kv_fetch_type, reply_with_next_piece_of_legacy, 0},
                             {&kv_drop_type, free_fetched_legacy_and_stop_porter, 0},
                             {&domus_down_type, stop_porter_of_ended_shard, 0},
                             {NULL, NULL, 0}},
    .on_stop = put_legacy_back_at_stop_of_porter,
};
