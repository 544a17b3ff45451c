/* The channel's part of the messages between clients: its subscriptions, and what it
 * tells its peer. */
#include "pubsub.h"

#include "transaction.h"
#include "watch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* longest time that a connection waits for its own publication */
#define OWN_NS UINT64_C(1000000000)

static uint64_t hash_of_name(domus_slice name)
{
    return kv_hash_of_bytes(domus_slice_data(name), name.size);
}

static int ask_actor_with_copy_of_command(domus_stack *stack, domus_address to,
                                          const domus_type *type, const domus_resp_command *command,
                                          domus_resumed *then)
{
    domus_resp_command kept;
    int error = kv_keep_command_without_copy(command, &kept);

    if (error != 0)
        return error;
    error = domus_ask(stack, to, type, &kept, then);
    if (error != DOMUS_PARKED)
        domus_resp_command_type.release(&kept);
    return error;
}

/* --- confirmations ---------------------------------------------------------------------------- */

/* The state of the confirmations that answer one SUBSCRIBE or UNSUBSCRIBE. The last confirmation is
 * the answer of the command. */
struct confirming {
    domus_stack *stack;
    const struct kv_session *session;
    const char *word;
    uint64_t count; /* number of all subscriptions that the connection has */
    bool has_one;   /* whether `push` is built; it is sent when another one follows */
    domus_resp_reply push;
};

static int send_pending_confirmation_to_client(struct confirming *confirming)
{
    domus_channel *channel = domus_channel_running(confirming->stack);

    if (!confirming->has_one)
        return 0;
    confirming->has_one = false;
    return domus_channel_write_slice(confirming->stack, channel, confirming->push.bytes);
}

/* Add the confirmation of one name to the answer; NULL: the command had no name to confirm. */
static int send_last_and_make_next_confirmation(struct confirming *confirming,
                                                const domus_slice *name)
{
    domus_resp_builder builder = {.version = confirming->session->version};
    int error = send_pending_confirmation_to_client(confirming);

    (void)domus_resp_add_push(&builder, 3);
    (void)domus_resp_add_bulk(&builder, confirming->word, strlen(confirming->word));
    (void)(name != NULL ? domus_resp_add_bulk(&builder, domus_slice_data(*name), name->size)
                        : domus_resp_add_null(&builder));
    (void)domus_resp_add_integer(&builder, (int64_t)confirming->count);
    if (error != 0) {
        domus_resp_drop(&builder);
        return error;
    }
    error = domus_resp_end(&builder, &confirming->push);
    confirming->has_one = error == 0;
    return error;
}

static int answer_with_last_confirmation(struct confirming *confirming, int error)
{
    if (error == 0)
        return kv_answer_or_gather_answer(confirming->stack, &domus_resp_push_type,
                                          &confirming->push);
    if (confirming->has_one)
        domus_slice_free(confirming->push.bytes);
    return error;
}

/* --- subscribing ------------------------------------------------------------------------------ */

static const char *const words[2][2] = {{"subscribe", "psubscribe"},
                                        {"unsubscribe", "punsubscribe"}};

void kv_subscriber_free(struct kv_session *session)
{
    struct kv_subscriber *subscriber = session->subscriber;

    if (subscriber == NULL)
        return;
    kv_table_clear(&subscriber->names[KV_CHANNEL], &subscriber->memory);
    kv_table_clear(&subscriber->names[KV_PATTERN], &subscriber->memory);
    free(subscriber);
    session->subscriber = NULL;
}

/* End the subscriber of a connection that has no subscription left. */
static void free_subscriber_if_without_names(domus_stack *stack, struct kv_session *session)
{
    if (session->subscriber != NULL && kv_count_subscriptions_of_client(session->subscriber) == 0) {
        (void)domus_group_leave(stack, kv_subscribers);
        kv_subscriber_free(session);
    }
    kv_session_update_whether_plain(session);
}

static int record_and_confirm_subscribed_names(domus_stack *stack, void *self,
                                               const domus_answer *answer)
{
    const domus_resp_command *command = *(const domus_resp_command *const *)domus_frame(stack);
    struct kv_session *session = self;
    struct kv_subscriber *subscriber = session->subscriber;
    enum kv_named kind = kv_channel_or_pattern_of_command(command);
    struct confirming confirming = {stack, session, words[0][kind], 0, false, {{0}, 0, 0, {0}}};
    int error = answer->error;

    if (domus_channel_running(stack) == NULL)
        return -ENOTCONN;
    /* the ask has failed, so nobody knows what the connection has subscribed to: it ends */
    if (error != 0) {
        (void)domus_channel_reset(stack, domus_channel_running(stack), error);
        return error;
    }
    if (answer->type != &domus_resp_ok_type) {
        free_subscriber_if_without_names(stack, session);
        return domus_reply(stack, answer->type, answer->payload);
    }
    for (uint32_t i = 1; i < command->count && error == 0; i++) {
        domus_slice name = domus_resp_argument(command, i);
        if (kv_table_find(&subscriber->names[kind], hash_of_name(name), name) == NULL &&
            kv_table_add(&subscriber->names[kind], &subscriber->memory, hash_of_name(name), name,
                         0) == NULL)
            error = -ENOMEM;
        confirming.count = kv_count_subscriptions_of_client(subscriber);
        if (error == 0)
            error = send_last_and_make_next_confirmation(&confirming, &name);
    }
    free_subscriber_if_without_names(stack, session);
    return answer_with_last_confirmation(&confirming, error);
}

int kv_serve_subscribe(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    struct kv_session *session = self;

    session->version = command->version;
    if (session->subscriber == NULL) {
        session->subscriber = calloc(1, sizeof *session->subscriber);
        if (session->subscriber == NULL)
            return -ENOMEM;
    }
    if (kv_count_subscriptions_of_client(session->subscriber) + command->count - 1 >
        kv_settings.subscriptions_max) {
        free_subscriber_if_without_names(stack, session);
        return kv_answer_error(stack, "ERR too many subscriptions");
    }
    /* Join the group before the switchboard learns of the connection, so that no later message is
     * missed. */
    int error = domus_group_join(stack, kv_subscribers);
    if (error != 0) {
        free_subscriber_if_without_names(stack, session);
        return error == -ENOSPC ? kv_answer_error(stack, "ERR too many subscribers") : error;
    }
    memcpy(domus_frame(stack), &command, sizeof command);
    return ask_actor_with_copy_of_command(stack, kv_switchboard, &kv_subscribe_type, command,
                                          record_and_confirm_subscribed_names);
}

/* --- unsubscribing ---------------------------------------------------------------------------- */

static int remove_name_and_make_confirmation(struct confirming *confirming,
                                             struct kv_subscriber *subscriber, enum kv_named kind,
                                             domus_slice name)
{
    struct kv_item **link = subscriber != NULL
                                ? kv_table_find(&subscriber->names[kind], hash_of_name(name), name)
                                : NULL;
    domus_slice copy;
    int error = domus_slice_copy(domus_slice_data(name), name.size, &copy);

    if (error != 0)
        return error;
    if (link != NULL)
        kv_table_remove(&subscriber->names[kind], &subscriber->memory, link);
    confirming->count = subscriber != NULL ? kv_count_subscriptions_of_client(subscriber) : 0;
    error = send_last_and_make_next_confirmation(confirming, &copy);
    domus_slice_free(copy);
    return error;
}

/* Remove all channels, or all patterns, of a connection, and confirm each. */
static int remove_all_names_and_confirm_each(struct confirming *confirming,
                                             struct kv_subscriber *subscriber, enum kv_named kind)
{
    struct kv_table *table = subscriber != NULL ? &subscriber->names[kind] : NULL;
    int error = 0;

    if (table == NULL || table->count == 0) {
        confirming->count = subscriber != NULL ? kv_count_subscriptions_of_client(subscriber) : 0;
        return send_last_and_make_next_confirmation(confirming, NULL);
    }
    /* take the first name each time, because a removal may move all other names */
    while (table->count != 0 && error == 0) {
        struct kv_item *item = NULL;
        for (uint64_t at = 0; item == NULL; at++)
            item = kv_table_first_item_of_bucket(table, at);
        error = remove_name_and_make_confirmation(
            confirming, subscriber, kind,
            (domus_slice){&(domus_page){item->bytes}, 0, item->key_size});
    }
    return error;
}

static int confirm_end_of_names_in_command(domus_stack *stack, struct kv_session *session,
                                           const domus_resp_command *command)
{
    enum kv_named kind = kv_channel_or_pattern_of_command(command);
    struct confirming confirming = {stack, session, words[1][kind], 0, false, {{0}, 0, 0, {0}}};
    int error = 0;

    for (uint32_t i = 1; i < command->count && error == 0; i++)
        error = remove_name_and_make_confirmation(&confirming, session->subscriber, kind,
                                                  domus_resp_argument(command, i));
    if (command->count == 1)
        error = remove_all_names_and_confirm_each(&confirming, session->subscriber, kind);
    free_subscriber_if_without_names(stack, session);
    return answer_with_last_confirmation(&confirming, error);
}

static int confirm_unsubscribed_names_of_command(domus_stack *stack, void *self,
                                                 const domus_answer *answer)
{
    if (answer->error != 0 || domus_channel_running(stack) == NULL)
        return answer->error != 0 ? answer->error : -ENOTCONN;
    return confirm_end_of_names_in_command(stack, self,
                                           *(const domus_resp_command *const *)domus_frame(stack));
}

int kv_serve_unsubscribe(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    struct kv_session *session = self;

    session->version = command->version;
    if (session->subscriber == NULL)
        return confirm_end_of_names_in_command(stack, session, command);
    memcpy(domus_frame(stack), &command, sizeof command);
    return ask_actor_with_copy_of_command(stack, kv_switchboard, &kv_unsubscribe_type, command,
                                          confirm_unsubscribed_names_of_command);
}

/* --- messages --------------------------------------------------------------------------------- */

/* Send a push to the client. If it cannot be sent as a whole, the connection ends. */
static void send_push_to_client_or_reset(domus_stack *stack, const struct kv_session *session,
                                         domus_channel *channel, domus_slice push)
{
    domus_slice bytes;
    int error = domus_slice_keep(push, &bytes);

    /* In RESP 2 a push is sent as an array: only its first byte differs. */
    if (error == 0 && session->version == 2) {
        error = domus_channel_append(stack, channel, "*", 1);
        bytes.offset++;
        bytes.size--;
        if (error != 0)
            domus_slice_free(bytes);
    }
    if (error == 0)
        error = domus_channel_write_slice(stack, channel, bytes);
    if (error != 0)
        (void)domus_channel_reset(stack, channel, error);
}

int kv_send_publication_if_subscribed(domus_stack *stack, void *self, const void *payload)
{
    const struct kv_publication *publication = payload;
    const struct kv_session *session = self;
    struct kv_subscriber *subscriber = session->subscriber;
    domus_channel *channel = domus_channel_running(stack);

    if (subscriber == NULL || channel == NULL)
        return 0;
    subscriber->seen = publication->number;
    if (kv_table_find(&subscriber->names[publication->kind], publication->hash,
                      publication->name) != NULL)
        send_push_to_client_or_reset(stack, session, channel, publication->push.bytes);
    return 0;
}

/* --- PUBLISH ---------------------------------------------------------------------------------- */

/* A client that publishes a message, and also gets it as a subscriber, waits until the message has
 * come, because it comes before the answer. */
struct own {
    uint64_t number;
    int64_t receivers;
};
static_assert(sizeof(struct own) <= KV_FRAME, "it is in the frame of a command");

static const domus_pattern publications = {
    .types = (const domus_type *const[]){&kv_publication_type, NULL}};

static int answer_when_own_publication_has_come(domus_stack *stack, void *self,
                                                const domus_answer *answer)
{
    const struct kv_session *session = self;
    struct own own;

    memcpy(&own, domus_frame(stack), sizeof own);
    if (answer->error == 0 && answer->type == &kv_publication_type)
        (void)kv_send_publication_if_subscribed(stack, self, answer->payload);
    /* Wait until the connection has got its own publication. If it has not come in time, the group
     * has passed the connection over, because too much waits for it. */
    if (answer->error == 0 && session->subscriber != NULL && session->subscriber->seen < own.number)
        return domus_receive_within(stack, &publications, OWN_NS,
                                    answer_when_own_publication_has_come);
    return kv_answer_integer(stack, own.receivers);
}

static int wait_for_own_copy_of_publication(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    static const domus_answer none;
    const struct kv_published *published = answer->payload;

    if (answer->error != 0)
        return answer->error;
    struct own own = {published->number, published->receivers};
    memcpy(domus_frame(stack), &own, sizeof own);
    return answer_when_own_publication_has_come(stack, self, &none);
}

int kv_serve_publish(domus_stack *stack, void *self, const void *payload)
{
    const struct kv_session *session = self;

    if (session->subscriber == NULL)
        return domus_forward(stack, kv_actor_to_ask_for_publication());
    return ask_actor_with_copy_of_command(stack, kv_actor_to_ask_for_publication(),
                                          &kv_publish_type, payload,
                                          wait_for_own_copy_of_publication);
}

int kv_serve_pubsub(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_forward(stack, kv_switchboard);
}

int kv_answer_ping_with_array_in_resp_2(domus_stack *stack, const domus_resp_command *command)
{
    domus_resp_builder builder = {.version = command->version};
    domus_slice text = domus_resp_argument(command, 1);

    (void)domus_resp_add_array(&builder, 2);
    (void)domus_resp_add_bulk(&builder, "pong", 4);
    (void)domus_resp_add_bulk(&builder, domus_slice_data(text), text.size);
    return kv_answer_what_builder_has_made(stack, &builder);
}

/* --- RESET ------------------------------------------------------------------------------------ */

/* Make the switchboard forget all channels, or all patterns, of the connection. The answer is
 * ignored. */
static void ask_switchboard_to_forget_all_names(domus_stack *stack, const char *word)
{
    const domus_resp_bytes name = {word, strlen(word)};
    domus_resp_command command;

    if (domus_resp_command_make(&name, 1, &command) == 0 &&
        domus_ask_add(stack, kv_switchboard, &kv_unsubscribe_type, &command, 0, 0) != 0)
        domus_resp_command_type.release(&command);
}

int kv_reset_session_and_answer(domus_stack *stack, void *self, const void *payload)
{
    struct kv_session *session = self;
    domus_resp_builder builder = {.version = 2};

    (void)payload;
    if (session->subscriber != NULL) {
        ask_switchboard_to_forget_all_names(stack, "unsubscribe");
        ask_switchboard_to_forget_all_names(stack, "punsubscribe");
        (void)domus_group_leave(stack, kv_subscribers);
        kv_subscriber_free(session);
    }
    kv_transaction_free(session->transaction);
    session->transaction = NULL;
    kv_tell_shard_to_unwatch(stack, session);
    session->version = 2;
    session->admitted = kv_settings.password[0] == '\0';
    kv_session_update_whether_plain(session);
    (void)domus_resp_add_simple(&builder, "RESET");
    return kv_answer_and_set_answering_of_client(stack, session, &builder, DOMUS_RESP_ANSWERS);
}
