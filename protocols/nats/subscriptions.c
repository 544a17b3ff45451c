/* Subscriptions: which actor gets the messages with which number. A number contains the place of
 * its subscription, and how many subscriptions the place has had, so that a message for an ended
 * one finds no subscriber. The client sends all subscriptions to the server of each new connection.
 *
 * A subscription that ends by its last message ends in a turn of the channel. Only the client can
 * end the watch of its subscriber, so the client frees it later. */
#include "protocols/nats/state.h"

#include <domus/message.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_LEAST 16u
/* bits of a subscription's number that are its place; the bits above are the generation */
#define PLACE_BITS 20u

const domus_type domi_nats_tidy_type = {.name = "nats tidies"};

/* --- places ----------------------------------------------------------------------------------- */

static uint32_t *bucket_of_subscriptions_of_owner(domi_nats_client *client, domus_address to)
{
    return &client->owners[domus_address_hash(to) & (client->places - 1)];
}

/* Double the number of places in the table of subscriptions. Returns 0; -ENOBUFS; -ENOMEM. */
static int double_places_of_subscriptions(domi_nats_client *client)
{
    uint32_t count = client->places != 0 ? 2 * client->places : PLACES_LEAST;

    if (client->places >= client->options.subscriptions_max)
        return -ENOBUFS;
    uint32_t *owners = malloc(count * sizeof *owners);
    domi_nats_subscription *grown =
        owners != NULL ? realloc(client->subscriptions, count * sizeof *grown) : NULL;
    if (grown == NULL) {
        free(owners);
        return -ENOMEM;
    }
    memset(grown + client->places, 0, (count - client->places) * sizeof *grown);
    free(client->owners);
    client->subscriptions = grown;
    client->owners = owners;
    client->places = count;
    memset(owners, 0xff, count * sizeof *owners);
    for (uint32_t i = 0; i < client->places_used; i++) {
        if (grown[i].subject == NULL)
            continue;
        uint32_t *owner = bucket_of_subscriptions_of_owner(client, grown[i].to);
        grown[i].of_owner = *owner;
        *owner = i;
    }
    return 0;
}

/* Get a free place in the table of subscriptions. Returns 0; -ENOBUFS; -ENOMEM. */
static int get_free_place_of_subscription(domi_nats_client *client, uint32_t *ret_place)
{
    if (client->subscriptions_count >= client->options.subscriptions_max)
        return -ENOBUFS;
    if (client->free_place != DOMI_NATS_NONE) {
        *ret_place = client->free_place;
        client->free_place = client->subscriptions[*ret_place].next;
        return 0;
    }
    int error = client->places_used == client->places ? double_places_of_subscriptions(client) : 0;
    if (error == 0)
        *ret_place = client->places_used++;
    return error;
}

static uint64_t number_of_subscription(const domi_nats_client *client, uint32_t place)
{
    return (uint64_t)client->subscriptions[place].generation << PLACE_BITS | place;
}

/* Returns the subscription with this number; NULL if it has ended or there never was one. */
static domi_nats_subscription *find_subscription(domi_nats_client *client, uint64_t number)
{
    uint64_t place = number & ((1u << PLACE_BITS) - 1);

    if (place >= client->places_used)
        return NULL;
    domi_nats_subscription *found = &client->subscriptions[place];
    return found->subject != NULL && !found->is_finished &&
                   found->generation == number >> PLACE_BITS
               ? found
               : NULL;
}

static uint32_t place_of_subscription(const domi_nats_client *client,
                                      const domi_nats_subscription *subscription)
{
    return (uint32_t)(subscription - client->subscriptions);
}

/* Free the place of a subscription that has ended. Only the client's actor calls this. */
static void free_ended_subscription(domus_stack *stack, domi_nats_client *client, uint32_t place)
{
    domi_nats_subscription *ended = &client->subscriptions[place];
    uint32_t *at = bucket_of_subscriptions_of_owner(client, ended->to);

    while (*at != place)
        at = &client->subscriptions[*at].of_owner;
    *at = ended->of_owner;
    (void)domus_unwatch(stack, ended->watch);
    free(ended->subject);
    ended->subject = NULL;
    ended->next = client->free_place;
    client->free_place = place;
    client->subscriptions_count--;
}

/* Free the subscriptions that have ended in turns of the channel, which cannot free them. */
static void free_all_ended_subscriptions(domus_stack *stack, domi_nats_client *client)
{
    while (client->finished != DOMI_NATS_NONE) {
        uint32_t place = client->finished;
        client->finished = client->subscriptions[place].next;
        free_ended_subscription(stack, client, place);
    }
}

int domi_nats_free_ended_subscriptions(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    free_all_ended_subscriptions(stack, self);
    return 0;
}

/* Mark a subscription as ended in a turn of the channel, and leave it to the client's actor to free
 * it. */
static void mark_ended_and_let_client_free_it(domus_stack *stack, domi_nats_client *client,
                                              uint32_t place)
{
    domi_nats_subscription *ended = &client->subscriptions[place];

    ended->is_finished = true;
    ended->next = client->finished;
    /* if the client refuses this notice, the next subscribe frees the subscription */
    if (client->finished == DOMI_NATS_NONE)
        (void)domus_notice(stack, client->self, &domi_nats_tidy_type, NULL);
    client->finished = place;
}

/* --- messages to the server ------------------------------------------------------------------- */

/* Tell the server after how many further messages a subscription ends. */
static int send_unsub_with_messages_left(domus_stack *stack, domi_nats_client *client,
                                         uint32_t place)
{
    const domi_nats_subscription *subscription = &client->subscriptions[place];
    const domus_nats_unsub unsub = {.number = number_of_subscription(client, place),
                                    .messages_max = subscription->messages_max -
                                                    subscription->delivered_before};

    return domus_channel_send(stack, client->channel, &domus_nats_unsub_type, &unsub);
}

/* Tell the server of a new subscription, and of its limit of messages. */
static int send_sub_and_its_limit_to_server(domus_stack *stack, domi_nats_client *client,
                                            uint32_t place)
{
    domi_nats_subscription *subscription = &client->subscriptions[place];
    const domus_nats_sub sub = {.number = number_of_subscription(client, place),
                                .subject = subscription->subject,
                                .queue = subscription->queue};
    int error = domus_channel_send(stack, client->channel, &domus_nats_sub_type, &sub);

    if (error != 0)
        return error;
    subscription->delivered_before = subscription->delivered;
    return subscription->messages_max != 0 ? send_unsub_with_messages_left(stack, client, place)
                                           : 0;
}

/* Returns whether the subscription at this place was sent to the server of the current connection,
 * which must then be told of changes, too. */
static bool was_sent_to_server(const domi_nats_client *client, uint32_t place)
{
    return domi_nats_is_logged_in(client) && place < client->renewed;
}

int domi_nats_renew_next_subscription(domus_stack *stack, domi_nats_client *client)
{
    const domi_nats_subscription *next = &client->subscriptions[client->renewed];
    int error = next->subject != NULL && !next->is_finished
                    ? send_sub_and_its_limit_to_server(stack, client, client->renewed)
                    : 0;

    client->renewed += error == 0;
    return error;
}

int domi_nats_send_unsub_of_subscription(domus_stack *stack, domi_nats_client *client,
                                         uint32_t place)
{
    const domi_nats_subscription *subscription = &client->subscriptions[place];
    const domus_nats_unsub unsub = {.number = number_of_subscription(client, place)};

    if (!was_sent_to_server(client, place) || subscription->subject == NULL ||
        subscription->is_finished)
        return 0;
    return domus_channel_send(stack, client->channel, &domus_nats_unsub_type, &unsub);
}

/* --- handlers of asks ------------------------------------------------------------------------- */

/* Copy the subject and queue group of a subscribe into one block. Returns 0; -EINVAL; -ENOMEM. */
static int copy_texts_of_subscribe(const domus_nats_subscribe *subscribe,
                                   domi_nats_subscription *to)
{
    domi_nats_bytes subject = domi_nats_bytes_of_slice(subscribe->subject);
    domi_nats_bytes queue = domi_nats_bytes_of_slice(subscribe->queue);

    if (!domi_nats_is_valid_subject(subject) ||
        (queue.size != 0 && !domi_nats_is_valid_queue_group(queue)))
        return -EINVAL;
    to->subject = calloc(1, (size_t)subject.size + 1 + queue.size + 1);
    if (to->subject == NULL)
        return -ENOMEM;
    memcpy(to->subject, subject.data, subject.size);
    to->queue = queue.size != 0 ? to->subject + subject.size + 1 : NULL;
    if (to->queue != NULL)
        memcpy(to->queue, queue.data, queue.size);
    return 0;
}

/* Make the subscription that the current ask wants. Returns 0 or a negative errno. */
static int make_subscription_of_ask(domus_stack *stack, domi_nats_client *client,
                                    const domus_nats_subscribe *subscribe, uint64_t *ret_number)
{
    domi_nats_subscription made = {
        .to = subscribe->to, .tag = subscribe->tag, .messages_max = subscribe->messages_max};
    uint32_t place;

    if (made.to.house == NULL)
        made.to = domus_sender(stack);
    if (made.to.house == NULL)
        return -EINVAL;
    int error = copy_texts_of_subscribe(subscribe, &made);
    if (error != 0)
        return error;
    error = get_free_place_of_subscription(client, &place);
    if (error == 0) {
        error = domus_watch_actor(stack, made.to, &made.watch);
        if (error != 0) {
            client->subscriptions[place].next = client->free_place;
            client->free_place = place;
        }
    }
    if (error != 0) {
        free(made.subject);
        return error;
    }
    uint32_t *owner = bucket_of_subscriptions_of_owner(client, made.to);
    made.of_owner = *owner;
    *owner = place;
    made.generation = client->subscriptions[place].generation + 1;
    /* generation 0 is left out, because with it place 0 would have the number of the inbox */
    made.generation += made.generation == 0;
    client->subscriptions[place] = made;
    client->subscriptions_count++;
    *ret_number = number_of_subscription(client, place);
    /* if earlier subscriptions were not sent to the server yet, this one waits behind them */
    if (domi_nats_is_logged_in(client) && client->renewed == place)
        client->renewed++;
    if (was_sent_to_server(client, place) &&
        send_sub_and_its_limit_to_server(stack, client, place) != 0)
        (void)domus_channel_reset(stack, client->channel, -ENOBUFS);
    return 0;
}

int domi_nats_add_subscription_and_reply(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    domus_nats_subscription subscription = {.number = 0};

    free_all_ended_subscriptions(stack, client);
    int error = client->draining
                    ? -ESHUTDOWN
                    : make_subscription_of_ask(stack, client, payload, &subscription.number);
    if (error != 0)
        return domi_nats_count_and_fail_current_ask(stack, client, error);
    (void)domus_reply(stack, &domus_nats_subscription_type, &subscription);
    return 0;
}

int domi_nats_limit_or_end_subscription(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    const domus_nats_unsubscribe *unsubscribe = payload;
    domi_nats_subscription *subscription = find_subscription(client, unsubscribe->number);

    if (subscription == NULL) {
        (void)domus_fail(stack, -ENOENT);
        return 0;
    }
    uint32_t place = place_of_subscription(client, subscription);
    int error = 0;
    if (unsubscribe->messages_max > subscription->delivered) {
        subscription->messages_max = unsubscribe->messages_max;
        if (was_sent_to_server(client, place))
            error = send_unsub_with_messages_left(stack, client, place);
    } else {
        error = domi_nats_send_unsub_of_subscription(stack, client, place);
        free_ended_subscription(stack, client, place);
    }
    /* the unsubscribe could not be sent, so the connection ends: the server must not go on
     * sending */
    if (error != 0 && client->channel != NULL)
        (void)domus_channel_reset(stack, client->channel, error);
    (void)domus_reply(stack, &domus_nats_done_type, NULL);
    return 0;
}

void domi_nats_end_subscriptions_of_actor(domus_stack *stack, domi_nats_client *client,
                                          domus_address who)
{
    free_all_ended_subscriptions(stack, client);
    if (client->places == 0)
        return;
    uint32_t place = *bucket_of_subscriptions_of_owner(client, who);
    while (place != DOMI_NATS_NONE) {
        const domi_nats_subscription *subscription = &client->subscriptions[place];
        uint32_t next = subscription->of_owner;
        if (domus_address_equals(subscription->to, who)) {
            (void)domi_nats_send_unsub_of_subscription(stack, client, place);
            free_ended_subscription(stack, client, place);
        }
        place = next;
    }
}

void domi_nats_free_all_subscriptions(domi_nats_client *client)
{
    for (uint32_t i = 0; i < client->places_used; i++)
        free(client->subscriptions[i].subject);
    free(client->subscriptions);
    free(client->owners);
}

/* --- delivery of messages --------------------------------------------------------------------- */

int domi_nats_deliver_to_subscriber(domus_stack *stack, domi_nats_client *client,
                                    const domus_nats_message *message)
{
    domi_nats_subscription *subscription = find_subscription(client, message->subscription);
    domus_message *passed;

    if (subscription == NULL) {
        client->counted.unknown++;
        return 0;
    }
    subscription->delivered++;
    int error = domus_message_take(stack, &passed);
    if (error == 0) {
        domus_nats_message *tagged = domus_message_payload(passed);
        tagged->tag = subscription->tag;
        error = domus_message_send(stack, subscription->to, passed);
        if (error != 0)
            domus_message_free(stack, passed);
    }
    client->counted.lost += error != 0;
    if (subscription->messages_max != 0 && subscription->delivered >= subscription->messages_max)
        mark_ended_and_let_client_free_it(stack, client,
                                          place_of_subscription(client, subscription));
    return 0;
}
