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
#define PLACE_BITS   20u /* bits of a number that are the place */

const domus_type domi_nats_tidy_type = {.name = "nats tidies"};

/* --- places ----------------------------------------------------------------------------------- */

static uint32_t *first_of_owner(domi_nats_client *client, domus_address to)
{
    return &client->owners[domus_address_hash(to) & (client->places - 1)];
}

/* Double the number of places. Returns 0; -ENOBUFS; -ENOMEM. */
static int make_places(domi_nats_client *client)
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
        uint32_t *owner = first_of_owner(client, grown[i].to);
        grown[i].of_owner = *owner;
        *owner = i;
    }
    return 0;
}

/* Get a free place. Returns 0; -ENOBUFS; -ENOMEM. */
static int get_free_place(domi_nats_client *client, uint32_t *ret_place)
{
    if (client->subscriptions_count >= client->options.subscriptions_max)
        return -ENOBUFS;
    if (client->free_place != DOMI_NATS_NONE) {
        *ret_place = client->free_place;
        client->free_place = client->subscriptions[*ret_place].next;
        return 0;
    }
    int error = client->places_used == client->places ? make_places(client) : 0;
    if (error == 0)
        *ret_place = client->places_used++;
    return error;
}

static uint64_t number_of(const domi_nats_client *client, uint32_t place)
{
    return (uint64_t)client->subscriptions[place].generation << PLACE_BITS | place;
}

/* Returns the subscription with this number; NULL if it has ended or never was. */
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

static uint32_t place_of(const domi_nats_client *client, const domi_nats_subscription *subscription)
{
    return (uint32_t)(subscription - client->subscriptions);
}

/* Free the place of a subscription that has ended. Only the client calls this. */
static void release_subscription(domus_stack *stack, domi_nats_client *client, uint32_t place)
{
    domi_nats_subscription *ended = &client->subscriptions[place];
    uint32_t *at = first_of_owner(client, ended->to);

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

/* Free the subscriptions that have ended in turns of the channel. */
static void release_ended_subscriptions(domus_stack *stack, domi_nats_client *client)
{
    while (client->finished != DOMI_NATS_NONE) {
        uint32_t place = client->finished;
        client->finished = client->subscriptions[place].next;
        release_subscription(stack, client, place);
    }
}

int domi_nats_on_tidy(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    release_ended_subscriptions(stack, self);
    return 0;
}

/* End a subscription in a turn of the channel. */
static void finish_subscription(domus_stack *stack, domi_nats_client *client, uint32_t place)
{
    domi_nats_subscription *ended = &client->subscriptions[place];

    ended->is_finished = true;
    ended->next = client->finished;
    /* if the notice is refused, the next subscribe frees the subscription */
    if (client->finished == DOMI_NATS_NONE)
        (void)domus_notice(stack, client->self, &domi_nats_tidy_type, NULL);
    client->finished = place;
}

/* --- messages to the server ------------------------------------------------------------------- */

/* Tell the server after how many messages a subscription ends. */
static int tell_messages_max(domus_stack *stack, domi_nats_client *client, uint32_t place)
{
    const domi_nats_subscription *subscription = &client->subscriptions[place];
    const domus_nats_unsub unsub = {.number = number_of(client, place),
                                    .messages_max = subscription->messages_max -
                                                    subscription->delivered_before};

    return domus_channel_send(stack, client->channel, &domus_nats_unsub_type, &unsub);
}

/* Tell the server of a subscription. */
static int tell_server_of_subscription(domus_stack *stack, domi_nats_client *client, uint32_t place)
{
    domi_nats_subscription *subscription = &client->subscriptions[place];
    const domus_nats_sub sub = {.number = number_of(client, place),
                                .subject = subscription->subject,
                                .queue = subscription->queue};
    int error = domus_channel_send(stack, client->channel, &domus_nats_sub_type, &sub);

    if (error != 0)
        return error;
    subscription->delivered_before = subscription->delivered;
    return subscription->messages_max != 0 ? tell_messages_max(stack, client, place) : 0;
}

/* Returns whether the subscription at a place was sent to the server of this connection, which must
 * then be told of changes, too. */
static bool was_sent_to_server(const domi_nats_client *client, uint32_t place)
{
    return domi_nats_is_ready(client) && place < client->renewed;
}

int domi_nats_renew(domus_stack *stack, domi_nats_client *client)
{
    const domi_nats_subscription *next = &client->subscriptions[client->renewed];
    int error = next->subject != NULL && !next->is_finished
                    ? tell_server_of_subscription(stack, client, client->renewed)
                    : 0;

    client->renewed += error == 0;
    return error;
}

int domi_nats_tell_end(domus_stack *stack, domi_nats_client *client, uint32_t place)
{
    const domi_nats_subscription *subscription = &client->subscriptions[place];
    const domus_nats_unsub unsub = {.number = number_of(client, place)};

    if (!was_sent_to_server(client, place) || subscription->subject == NULL ||
        subscription->is_finished)
        return 0;
    return domus_channel_send(stack, client->channel, &domus_nats_unsub_type, &unsub);
}

/* --- handlers of asks ------------------------------------------------------------------------- */

/* Copy the texts of a subscribe into one block. Returns 0; -EINVAL; -ENOMEM. */
static int copy_texts(const domus_nats_subscribe *subscribe, domi_nats_subscription *to)
{
    domi_nats_bytes subject = domi_nats_bytes_of(subscribe->subject);
    domi_nats_bytes queue = domi_nats_bytes_of(subscribe->queue);

    if (!domi_nats_is_subject(subject) || (queue.size != 0 && !domi_nats_is_word(queue)))
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

/* Make the subscription of the current ask. Returns 0 or a negative errno. */
static int make_subscription(domus_stack *stack, domi_nats_client *client,
                             const domus_nats_subscribe *subscribe, uint64_t *ret_number)
{
    domi_nats_subscription made = {
        .to = subscribe->to, .tag = subscribe->tag, .messages_max = subscribe->messages_max};
    uint32_t place;

    if (made.to.house == NULL)
        made.to = domus_sender(stack);
    if (made.to.house == NULL)
        return -EINVAL;
    int error = copy_texts(subscribe, &made);
    if (error != 0)
        return error;
    error = get_free_place(client, &place);
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
    uint32_t *owner = first_of_owner(client, made.to);
    made.of_owner = *owner;
    *owner = place;
    made.generation = client->subscriptions[place].generation + 1;
    /* with generation 0, place 0 would have the number of the inbox */
    made.generation += made.generation == 0;
    client->subscriptions[place] = made;
    client->subscriptions_count++;
    *ret_number = number_of(client, place);
    /* earlier subscriptions have to be sent to the server first */
    if (domi_nats_is_ready(client) && client->renewed == place)
        client->renewed++;
    if (was_sent_to_server(client, place) && tell_server_of_subscription(stack, client, place) != 0)
        (void)domus_channel_reset(stack, client->channel, -ENOBUFS);
    return 0;
}

int domi_nats_on_subscribe(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    domus_nats_subscription subscription = {.number = 0};

    release_ended_subscriptions(stack, client);
    int error = client->draining ? -ESHUTDOWN
                                 : make_subscription(stack, client, payload, &subscription.number);
    if (error != 0)
        return domi_nats_refuse(stack, client, error);
    (void)domus_reply(stack, &domus_nats_subscription_type, &subscription);
    return 0;
}

int domi_nats_on_unsubscribe(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    const domus_nats_unsubscribe *unsubscribe = payload;
    domi_nats_subscription *subscription = find_subscription(client, unsubscribe->number);

    if (subscription == NULL) {
        (void)domus_fail(stack, -ENOENT);
        return 0;
    }
    uint32_t place = place_of(client, subscription);
    int error = 0;
    if (unsubscribe->messages_max > subscription->delivered) {
        subscription->messages_max = unsubscribe->messages_max;
        if (was_sent_to_server(client, place))
            error = tell_messages_max(stack, client, place);
    } else {
        error = domi_nats_tell_end(stack, client, place);
        release_subscription(stack, client, place);
    }
    /* the connection ends, because the server must not go on sending */
    if (error != 0 && client->channel != NULL)
        (void)domus_channel_reset(stack, client->channel, error);
    (void)domus_reply(stack, &domus_nats_done_type, NULL);
    return 0;
}

void domi_nats_forget_owner(domus_stack *stack, domi_nats_client *client, domus_address who)
{
    release_ended_subscriptions(stack, client);
    if (client->places == 0)
        return;
    uint32_t place = *first_of_owner(client, who);
    while (place != DOMI_NATS_NONE) {
        const domi_nats_subscription *subscription = &client->subscriptions[place];
        uint32_t next = subscription->of_owner;
        if (domus_address_equals(subscription->to, who)) {
            (void)domi_nats_tell_end(stack, client, place);
            release_subscription(stack, client, place);
        }
        place = next;
    }
}

void domi_nats_drop_subscriptions(domi_nats_client *client)
{
    for (uint32_t i = 0; i < client->places_used; i++)
        free(client->subscriptions[i].subject);
    free(client->subscriptions);
    free(client->owners);
}

/* --- delivery of messages --------------------------------------------------------------------- */

int domi_nats_deliver(domus_stack *stack, domi_nats_client *client,
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
        finish_subscription(stack, client, place_of(client, subscription));
    return 0;
}
