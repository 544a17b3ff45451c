/* The switchboard: which names have how many subscribers, and which names each subscriber has. */
#include "pubsub.h"

#include "glob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS_BYTES 12u

domus_address kv_switchboard;
domus_group kv_subscribers;

/* The state of the switchboard. The short string of an item in `counts` is its number of
 * subscribers; that of one in `records` a pointer. */
struct switchboard {
    struct kv_table counts[2];
    struct kv_table records; /* records of connections, by the address of the connection */
    struct kv_memory memory;
    uint64_t number; /* number of the last publication */
};

/* The record of a connection that has subscribed to something. */
struct record {
    domus_address address;
    domus_watch down;
    struct kv_table names[2];
};

static void release_command(void *payload)
{
    domus_resp_command_type.release(payload);
}

static void release_publication(void *payload)
{
    domus_slice_free(((struct kv_publication *)payload)->push.bytes);
}

const domus_type kv_subscribe_type = {
    .name = "subscribe", .size = sizeof(domus_resp_command), .release = release_command};
const domus_type kv_unsubscribe_type = {
    .name = "unsubscribe", .size = sizeof(domus_resp_command), .release = release_command};
const domus_type kv_publish_type = {
    .name = "publish", .size = sizeof(domus_resp_command), .release = release_command};
const domus_type kv_published_type = {.name = "published", .size = sizeof(struct kv_published)};
const domus_type kv_publication_type = {
    .name = "publication", .size = sizeof(struct kv_publication), .release = release_publication};

static uint64_t hash_of_name(domus_slice name)
{
    return kv_hash_of_bytes(domus_slice_data(name), name.size);
}

/* --- counts ----------------------------------------------------------------------------------- */

static int64_t subscriber_count_in_table_item(const struct kv_item *item)
{
    int64_t count;

    memcpy(&count, kv_item_short_string(item), sizeof count);
    return count;
}

/* Returns the number of subscribers that a channel or a pattern has. */
static int64_t count_subscribers_of_name(struct kv_table *table, domus_slice name)
{
    struct kv_item **link = kv_table_find(table, hash_of_name(name), name);

    return link != NULL ? subscriber_count_in_table_item(*link) : 0;
}

/* Count one subscriber more of a name (or less, with `by` -1). Returns 0; -ENOMEM. */
static int change_subscriber_count(struct switchboard *board, enum kv_named kind, domus_slice name,
                                   int64_t by)
{
    struct kv_table *table = &board->counts[kind];
    uint64_t hash = hash_of_name(name);
    int64_t value = count_subscribers_of_name(table, name) + by;

    if (value == by && kv_table_add(table, &board->memory, hash, name, sizeof value) == NULL)
        return -ENOMEM;
    struct kv_item **link = kv_table_find(table, hash, name);
    if (value == 0)
        kv_table_remove(table, &board->memory, link);
    else
        return kv_item_set_string(&board->memory, link, (const char *)&value, sizeof value);
    return 0;
}

/* --- records ---------------------------------------------------------------------------------- */

struct address_name {
    char bytes[ADDRESS_BYTES];
    domus_page page;
};

static domus_slice table_name_of_connection_address(domus_address address,
                                                    struct address_name *name)
{
    memcpy(name->bytes, &address.house, sizeof address.house);
    memcpy(name->bytes + sizeof address.house, &address.lease, sizeof address.lease);
    name->page.data = name->bytes;
    return (domus_slice){&name->page, 0, ADDRESS_BYTES};
}

static struct record *record_stored_in_table_item(const struct kv_item *item)
{
    struct record *record;

    memcpy(&record, kv_item_short_string(item), sizeof record);
    return record;
}

static struct record *find_record_of_connection(struct switchboard *board, domus_address address)
{
    struct address_name name;
    domus_slice bytes = table_name_of_connection_address(address, &name);
    struct kv_item **link = kv_table_find(&board->records, hash_of_name(bytes), bytes);

    return link != NULL ? record_stored_in_table_item(*link) : NULL;
}

static struct record *add_record_and_watch_connection(domus_stack *stack, struct switchboard *board,
                                                      domus_address address)
{
    struct address_name name;
    domus_slice bytes = table_name_of_connection_address(address, &name);
    struct record *record = kv_allocate_and_count_memory(&board->memory, sizeof *record);

    if (record == NULL)
        return NULL;
    *record = (struct record){.address = address};
    if (domus_watch_actor(stack, address, &record->down) != 0 ||
        kv_table_add(&board->records, &board->memory, hash_of_name(bytes), bytes, sizeof record) ==
            NULL) {
        (void)domus_unwatch(stack, record->down);
        kv_free_and_uncount_memory(&board->memory, record);
        return NULL;
    }
    (void)kv_item_set_string(&board->memory,
                             kv_table_find(&board->records, hash_of_name(bytes), bytes),
                             (const char *)&record, sizeof record);
    return record;
}

/* Forget that the connection of a record has subscribed to a name. */
static void forget_name_of_record(struct switchboard *board, struct record *record,
                                  enum kv_named kind, domus_slice name)
{
    struct kv_item **link = kv_table_find(&record->names[kind], hash_of_name(name), name);

    if (link == NULL)
        return;
    (void)change_subscriber_count(board, kind, name, -1);
    kv_table_remove(&record->names[kind], &board->memory, link);
}

/* Forget all channels, or all patterns, that the connection of a record has subscribed to. */
static void forget_all_names_of_kind_of_record(struct switchboard *board, struct record *record,
                                               enum kv_named kind)
{
    struct kv_table *table = &record->names[kind];

    for (uint64_t at = 0; at < kv_table_count_buckets(table); at++) {
        for (struct kv_item *item = kv_table_first_item_of_bucket(table, at); item != NULL;
             item = item->next)
            (void)change_subscriber_count(
                board, kind, (domus_slice){&(domus_page){item->bytes}, 0, item->key_size}, -1);
    }
    kv_table_clear(table, &board->memory);
}

/* Remove a record that has no name any more. */
static void remove_record_without_names(domus_stack *stack, struct switchboard *board,
                                        struct record *record)
{
    struct address_name name;
    domus_slice bytes = table_name_of_connection_address(record->address, &name);

    if (record->names[KV_CHANNEL].count + record->names[KV_PATTERN].count != 0)
        return;
    (void)domus_unwatch(stack, record->down);
    kv_table_clear(&record->names[KV_CHANNEL], &board->memory);
    kv_table_clear(&record->names[KV_PATTERN], &board->memory);
    kv_table_remove(&board->records, &board->memory,
                    kv_table_find(&board->records, hash_of_name(bytes), bytes));
    kv_free_and_uncount_memory(&board->memory, record);
}

/* --- subscribing ------------------------------------------------------------------------------ */

static int add_name_to_record(struct switchboard *board, struct record *record, enum kv_named kind,
                              domus_slice name)
{
    struct kv_table *table = &record->names[kind];

    if (kv_table_find(table, hash_of_name(name), name) != NULL)
        return 0;
    if (change_subscriber_count(board, kind, name, 1) != 0)
        return -ENOMEM;
    if (kv_table_add(table, &board->memory, hash_of_name(name), name, 0) != NULL)
        return 0;
    (void)change_subscriber_count(board, kind, name, -1);
    return -ENOMEM;
}

static bool has_memory_for_names_of_command(const struct switchboard *board,
                                            const domus_resp_command *command)
{
    uint64_t bytes = sizeof(struct record);

    for (uint32_t i = 1; i < command->count; i++)
        bytes += 2 * (sizeof(struct kv_item) + domus_resp_argument(command, i).size);
    return board->memory.used_bytes + bytes <= board->memory.bytes_max;
}

/* Subscribe a connection to the names of its command. Without memory for all names it is closed,
 * and with it go its subscriptions. */
static int subscribe_connection(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    struct switchboard *board = self;
    struct record *record = find_record_of_connection(board, domus_sender(stack));
    int error = 0;

    if (!has_memory_for_names_of_command(board, command))
        return kv_answer_error(stack, "ERR too many subscriptions");
    if (record == NULL &&
        (record = add_record_and_watch_connection(stack, board, domus_sender(stack))) == NULL)
        return -ENOMEM;
    for (uint32_t i = 1; i < command->count && error == 0; i++)
        error = add_name_to_record(board, record, kv_channel_or_pattern_of_command(command),
                                   domus_resp_argument(command, i));
    remove_record_without_names(stack, board, record);
    return error != 0 ? error : kv_answer_ok(stack);
}

static int unsubscribe_connection(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    enum kv_named kind = kv_channel_or_pattern_of_command(command);
    struct switchboard *board = self;
    struct record *record = find_record_of_connection(board, domus_sender(stack));

    if (record == NULL)
        return kv_answer_ok(stack);
    for (uint32_t i = 1; i < command->count; i++)
        forget_name_of_record(board, record, kind, domus_resp_argument(command, i));
    if (command->count == 1)
        forget_all_names_of_kind_of_record(board, record, kind);
    remove_record_without_names(stack, board, record);
    return kv_answer_ok(stack);
}

static int forget_ended_connection(domus_stack *stack, void *self, const void *payload)
{
    struct switchboard *board = self;
    struct record *record = find_record_of_connection(board, ((const domus_down *)payload)->who);

    if (record == NULL)
        return 0;
    forget_all_names_of_kind_of_record(board, record, KV_CHANNEL);
    forget_all_names_of_kind_of_record(board, record, KV_PATTERN);
    remove_record_without_names(stack, board, record);
    return 0;
}

/* --- publishing ------------------------------------------------------------------------------- */

/* Publish to the subscribers of a channel, or of a pattern that the channel fits. */
static void publish_to_subscribers_of_pattern(domus_stack *stack, struct switchboard *board,
                                              const domus_resp_command *command,
                                              const struct kv_item *pattern)
{
    domus_slice channel = domus_resp_argument(command, 1);
    domus_slice text = domus_resp_argument(command, 2);
    const char *word = pattern != NULL ? "pmessage" : "message";
    struct kv_publication publication = {.kind = pattern != NULL ? KV_PATTERN : KV_CHANNEL};
    domus_resp_builder builder = {0};
    domus_resp_value value;

    (void)domus_resp_add_push(&builder, pattern != NULL ? 4 : 3);
    (void)domus_resp_add_bulk(&builder, word, strlen(word));
    if (pattern != NULL)
        (void)domus_resp_add_bulk(&builder, pattern->bytes, pattern->key_size);
    (void)domus_resp_add_bulk(&builder, domus_slice_data(channel), channel.size);
    (void)domus_resp_add_bulk(&builder, domus_slice_data(text), text.size);
    if (domus_resp_end(&builder, &publication.push) != 0)
        return;
    domus_resp_reader reader = {publication.push.bytes, 0};
    /* the third value of the push is the name that the subscribers have given: channel or
     * pattern */
    for (int i = 0; i < 3; i++)
        (void)domus_resp_read(&reader, &value);
    publication.name = value.text;
    publication.hash = hash_of_name(publication.name);
    publication.number = ++board->number;
    (void)domus_publish(stack, kv_subscribers, &kv_publication_type, &publication);
}

/* Publish a message. Returns the number of its receivers: one for each subscription to the channel,
 * and one for each to a pattern that the channel fits. */
static int64_t publish_message(domus_stack *stack, struct switchboard *board,
                               const domus_resp_command *command)
{
    domus_slice channel = domus_resp_argument(command, 1);
    struct kv_table *patterns = &board->counts[KV_PATTERN];
    int64_t receivers = count_subscribers_of_name(&board->counts[KV_CHANNEL], channel);

    if (receivers != 0)
        publish_to_subscribers_of_pattern(stack, board, command, NULL);
    for (uint64_t at = 0; at < kv_table_count_buckets(patterns); at++) {
        for (struct kv_item *item = kv_table_first_item_of_bucket(patterns, at); item != NULL;
             item = item->next) {
            if (!kv_matches_pattern(item->bytes, item->key_size, domus_slice_data(channel),
                                    channel.size))
                continue;
            receivers += subscriber_count_in_table_item(item);
            publish_to_subscribers_of_pattern(stack, board, command, item);
        }
    }
    return receivers;
}

static int publish_message_and_reply_receivers(domus_stack *stack, void *self, const void *payload)
{
    struct switchboard *board = self;
    struct kv_published published = {.receivers = publish_message(stack, board, payload)};

    if (published.receivers != 0)
        published.number = board->number;
    return domus_reply(stack, &kv_published_type, &published);
}

/* --- PUBSUB ----------------------------------------------------------------------------------- */

static int answer_pubsub_channels(domus_stack *stack, struct switchboard *board,
                                  const domus_resp_command *command)
{
    domus_resp_builder builder = {.version = command->version,
                                  .bytes.size_max = kv_most_bytes_of_one_answer()};
    domus_resp_builder list = {.version = command->version,
                               .bytes.size_max = kv_most_bytes_of_one_answer()};
    struct kv_table *table = &board->counts[KV_CHANNEL];
    domus_slice pattern = domus_resp_argument(command, 2);
    domus_resp_reply names;
    uint32_t found = 0;

    for (uint64_t at = 0; at < kv_table_count_buckets(table); at++) {
        for (struct kv_item *item = kv_table_first_item_of_bucket(table, at); item != NULL;
             item = item->next) {
            if (command->count == 3 && !kv_matches_pattern(domus_slice_data(pattern), pattern.size,
                                                           item->bytes, item->key_size))
                continue;
            (void)domus_resp_add_bulk(&list, item->bytes, item->key_size);
            found++;
        }
    }
    (void)domus_resp_add_array(&builder, found);
    if (found != 0) {
        int error = domus_resp_end(&list, &names);
        if (error != 0) {
            domus_resp_drop(&builder);
            return error;
        }
        (void)domus_resp_add_reply(&builder, &names);
        domus_slice_free(names.bytes);
    }
    return kv_answer_what_builder_has_made(stack, &builder);
}

static int answer_subscriber_counts(domus_stack *stack, struct switchboard *board,
                                    const domus_resp_command *command)
{
    domus_resp_builder builder = {.version = command->version,
                                  .bytes.size_max = kv_most_bytes_of_one_answer()};

    (void)domus_resp_add_array(&builder, 2 * (command->count - 2));
    for (uint32_t i = 2; i < command->count; i++) {
        domus_slice name = domus_resp_argument(command, i);
        (void)domus_resp_add_bulk(&builder, domus_slice_data(name), name.size);
        (void)domus_resp_add_integer(&builder,
                                     count_subscribers_of_name(&board->counts[KV_CHANNEL], name));
    }
    return kv_answer_what_builder_has_made(stack, &builder);
}

static int refuse_subcommand(domus_stack *stack, domus_slice word)
{
    domus_resp_error error =
        domus_resp_error_text("ERR unknown subcommand '%.*s'. Try PUBSUB HELP.",
                              word.size < 64 ? (int)word.size : 64, domus_slice_data(word));

    return kv_answer_error(stack, error.text);
}

static int answer_pubsub_by_its_subcommand(domus_stack *stack, struct switchboard *board,
                                           const domus_resp_command *command)
{
    domus_slice word = domus_resp_argument(command, 1);

    if (domus_resp_is(word, "CHANNELS")) {
        if (command->count > 3)
            return kv_answer_error(stack, "ERR unknown subcommand or wrong number of arguments for "
                                          "'CHANNELS'. Try PUBSUB HELP.");
        return answer_pubsub_channels(stack, board, command);
    }
    if (domus_resp_is(word, "NUMSUB"))
        return answer_subscriber_counts(stack, board, command);
    if (!domus_resp_is(word, "NUMPAT"))
        return refuse_subcommand(stack, word);
    if (command->count != 2)
        return kv_answer_error(stack, "ERR wrong number of arguments for 'pubsub|numpat' command");
    return kv_answer_integer(stack, (int64_t)board->counts[KV_PATTERN].count);
}

/* Run a command that a connection has forwarded to the switchboard: PUBLISH or PUBSUB. */
static int run_publish_or_pubsub_of_connection(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;

    if (domus_resp_is(domus_resp_argument(command, 0), "PUBLISH"))
        return kv_answer_integer(stack, publish_message(stack, self, command));
    return answer_pubsub_by_its_subcommand(stack, self, command);
}

/* --- the actor -------------------------------------------------------------------------------- */

static int set_memory_limit_at_mount(domus_stack *stack, void *self)
{
    struct switchboard *board = self;

    (void)stack;
    board->memory.bytes_max = kv_settings.subscription_bytes;
    return 0;
}

static void free_all_records_and_counts_at_stop(domus_stack *stack, void *self)
{
    struct switchboard *board = self;

    (void)stack;
    for (uint64_t at = 0; at < kv_table_count_buckets(&board->records); at++) {
        for (struct kv_item *item = kv_table_first_item_of_bucket(&board->records, at);
             item != NULL; item = item->next) {
            struct record *record = record_stored_in_table_item(item);
            kv_table_clear(&record->names[KV_CHANNEL], &board->memory);
            kv_table_clear(&record->names[KV_PATTERN], &board->memory);
            kv_free_and_uncount_memory(&board->memory, record);
        }
    }
    kv_table_clear(&board->records, &board->memory);
    kv_table_clear(&board->counts[KV_CHANNEL], &board->memory);
    kv_table_clear(&board->counts[KV_PATTERN], &board->memory);
}

const domus_behaviour kv_switchboard_behaviour = {
    .name = "switchboard",
    .state_size = sizeof(struct switchboard),
    .on = (const domus_on[]){{&domus_resp_command_type, run_publish_or_pubsub_of_connection, 0},
                             {&kv_publish_type, publish_message_and_reply_receivers, 0},
                             {&kv_subscribe_type, subscribe_connection, 0},
                             {&kv_unsubscribe_type, unsubscribe_connection, 0},
                             {&domus_down_type, forget_ended_connection, 0},
                             {NULL, NULL, 0}},
    .on_mount = set_memory_limit_at_mount,
    .on_stop = free_all_records_and_counts_at_stop,
};
