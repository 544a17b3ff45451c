/* Subscriptions of a simulated client: how they begin and end, and how messages are delivered to
 * them. Number 0 means the client's subscription to its inbox, which has no record. */
#include "protocols/cluster/testkit/client_parts.h"

#include <domus/conversation.h>
#include <domus/supervise.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const domus_address nobody = {NULL, 0};

/* --- packets to the server -------------------------------------------------------------------- */

static domi_sim_packet *make_packet_about_subscription(domi_sim_client *client, domi_sim_kind kind,
                                                       uint64_t number, uint64_t limit,
                                                       domi_sim_message *what)
{
    domi_sim_packet *packet = domi_sim_packet_new(client->node->sim, kind, what);

    if (packet == NULL)
        return NULL;
    packet->number = number;
    packet->limit = limit;
    return packet;
}

/* Send a packet to the server before all packets that wait. */
static void send_packet_before_waiting_ones(domi_sim_client *client, domi_sim_packet *packet)
{
    domi_sim_send_or_lose_packet(
        client->node->sim, &client->connection->up, packet,
        (domi_sim_loss){DOMUS_FATE_LOST_UP, client->node->index, "control"});
}

void domi_sim_repeat_subscriptions(domi_sim_client *client)
{
    char subject[DOMI_SIM_INBOX_SIZE + 2];
    int size = snprintf(subject, sizeof subject, "%s*", client->inbox);
    const domi_sim_parts parts = {.subject = subject, .subject_size = (uint32_t)size};
    domi_sim_message *what = domi_sim_message_new(&parts);

    if (what == NULL) {
        client->node->sim->failed = -ENOMEM;
        return;
    }
    send_packet_before_waiting_ones(
        client, make_packet_about_subscription(client, DOMI_SIM_SUBSCRIBE, 0, 0, what));
    domi_sim_message_drop(what);
    for (domi_sim_subscription *at = client->subscriptions; at != NULL; at = at->next) {
        uint64_t limit = at->limit != 0 ? at->limit - at->told : 0;
        at->told_before = at->told;
        send_packet_before_waiting_ones(
            client, make_packet_about_subscription(client, DOMI_SIM_SUBSCRIBE, at->number, limit,
                                                   at->what));
    }
}

/* --- records of subscriptions ----------------------------------------------------------------- */

static domi_sim_subscription *find_subscription_by_number(const domi_sim_client *client,
                                                          uint64_t number)
{
    domi_sim_subscription *at = client->subscriptions;

    while (at != NULL && at->number != number)
        at = at->next;
    return at;
}

/* End a subscription of the client, and tell the server unless it knows. */
static void end_subscription_of_client(domi_sim_client *client, domi_sim_subscription *subscription,
                                       bool tells)
{
    domi_sim_subscription *last = NULL;

    if (tells && client->state == DOMI_SIM_CONNECTED)
        domi_sim_send_or_queue_packet(
            client, make_packet_about_subscription(client, DOMI_SIM_UNSUBSCRIBE,
                                                   subscription->number, 0, NULL));
    for (domi_sim_subscription **link = &client->subscriptions; *link != NULL;) {
        if (*link == subscription) {
            *link = subscription->next;
        } else {
            last = *link;
            link = &last->next;
        }
    }
    client->last_subscription = last;
    client->subscription_count--;
    domi_sim_message_drop(subscription->what);
    free(subscription);
}

void domi_sim_end_all_subscriptions(domi_sim_client *client, bool tells)
{
    while (client->subscriptions != NULL)
        end_subscription_of_client(client, client->subscriptions, tells);
}

static void end_subscriptions_of_actor(domi_sim_client *client, domus_address to)
{
    for (domi_sim_subscription *at = client->subscriptions; at != NULL;) {
        domi_sim_subscription *next = at->next;
        if (domus_address_equals(at->to, to))
            end_subscription_of_client(client, at, true);
        at = next;
    }
}

/* --- handlers of asks ------------------------------------------------------------------------- */

/* Make the record of a new subscription of the client. Returns 0, or a negative errno. */
static int make_record_of_subscription(const domi_sim_client *client,
                                       const domus_nats_subscribe *subscribe, domus_address to,
                                       domi_sim_subscription **ret_subscription)
{
    const char *subject = domus_slice_data(subscribe->subject);
    const char *queue = domus_slice_data(subscribe->queue);

    if (!domi_sim_is_valid_subject(subject, subscribe->subject.size, true) ||
        (subscribe->queue.size != 0 &&
         !domi_sim_is_valid_queue_name(queue, subscribe->queue.size)) ||
        domus_address_equals(to, nobody))
        return -EINVAL;
    if (client->is_draining || client->is_over)
        return -ESHUTDOWN;
    if (client->subscription_count == client->node->sim->options.subscriptions_max)
        return -ENOBUFS;
    const domi_sim_parts parts = {.subject = subject,
                                  .subject_size = subscribe->subject.size,
                                  .reply = queue,
                                  .reply_size = subscribe->queue.size};
    domi_sim_subscription *subscription = calloc(1, sizeof *subscription);
    if (subscription == NULL)
        return -ENOMEM;
    subscription->what = domi_sim_message_new(&parts);
    if (subscription->what == NULL) {
        free(subscription);
        return -ENOMEM;
    }
    subscription->tag = subscribe->tag;
    subscription->limit = subscribe->messages_max;
    subscription->to = to;
    *ret_subscription = subscription;
    return 0;
}

int domi_sim_on_subscribe_add_subscription(domus_stack *stack, void *self, const void *payload)
{
    domi_sim_client *client = ((domi_sim_actor *)self)->client;
    const domus_nats_subscribe *subscribe = payload;
    domus_address to =
        domus_address_equals(subscribe->to, nobody) ? domus_sender(stack) : subscribe->to;
    domi_sim_subscription *made = NULL;
    int error = make_record_of_subscription(client, subscribe, to, &made);

    if (error == 0)
        error = domus_watch_actor(stack, to, NULL);
    if (error != 0) {
        if (made != NULL)
            domi_sim_message_drop(made->what);
        free(made);
        return domi_sim_refuse_ask_to_client(stack, client, error);
    }
    made->number = ++client->next_number;
    if (client->last_subscription != NULL)
        client->last_subscription->next = made;
    else
        client->subscriptions = made;
    client->last_subscription = made;
    client->subscription_count++;
    domi_sim_add_line_to_trace(client->node->sim, DOMI_SIM_CLIENT " subscribes to %.64s %.32s",
                               DOMI_SIM_CLIENT_OF(client), made->what->subject, made->what->reply);
    if (client->state == DOMI_SIM_CONNECTED)
        domi_sim_send_or_queue_packet(
            client, make_packet_about_subscription(client, DOMI_SIM_SUBSCRIBE, made->number,
                                                   made->limit, made->what));
    return domus_reply(stack, &domus_nats_subscription_type,
                       &(domus_nats_subscription){.number = made->number});
}

int domi_sim_on_unsubscribe_limit_or_end(domus_stack *stack, void *self, const void *payload)
{
    domi_sim_client *client = ((domi_sim_actor *)self)->client;
    const domus_nats_unsubscribe *unsubscribe = payload;
    domi_sim_subscription *subscription = find_subscription_by_number(client, unsubscribe->number);

    if (subscription == NULL) {
        (void)domus_fail(stack, -ENOENT); /* for a notice this does nothing, as it has no answer */
        return 0;
    }
    domi_sim_add_line_to_trace(
        client->node->sim, DOMI_SIM_CLIENT " unsubscribes from %.64s after %" PRIu64,
        DOMI_SIM_CLIENT_OF(client), subscription->what->subject, unsubscribe->messages_max);
    subscription->limit = unsubscribe->messages_max;
    if (subscription->limit <= subscription->told) {
        end_subscription_of_client(client, subscription, true);
    } else if (client->state == DOMI_SIM_CONNECTED) {
        domi_sim_send_or_queue_packet(
            client,
            make_packet_about_subscription(client, DOMI_SIM_UNSUBSCRIBE, subscription->number,
                                           subscription->limit - subscription->told_before, NULL));
    }
    /* for a notice this does nothing, as it has no answer */
    (void)domus_reply(stack, &domus_nats_done_type, NULL);
    return 0;
}

int domi_sim_on_down_end_its_subscriptions(domus_stack *stack, void *self, const void *payload)
{
    const domus_down *down = payload;

    (void)stack;
    end_subscriptions_of_actor(((domi_sim_actor *)self)->client, down->who);
    return 0;
}

/* --- delivery of messages --------------------------------------------------------------------- */

/* Send a message that has come to the actor that has subscribed. Returns as domus_notice(). */
static int send_message_to_subscriber(domus_stack *stack, const domi_sim_subscription *subscription,
                                      const domi_sim_message *message)
{
    domus_nats_message notice;
    int error = domi_sim_make_nats_message(message, &notice);

    if (error != 0)
        return error;
    notice.subscription = subscription->number;
    notice.tag = subscription->tag;
    error = domus_notice(stack, subscription->to, &domus_nats_message_type, &notice);
    if (error != 0)
        domus_slice_free(notice.bytes);
    return error;
}

void domi_sim_deliver_to_subscription(domus_stack *stack, domi_sim_client *client, uint64_t number,
                                      domi_sim_message *message)
{
    domi_sim *sim = client->node->sim;
    domi_sim_subscription *subscription = find_subscription_by_number(client, number);

    client->counted.in_messages++;
    client->counted.in_bytes += domi_sim_message_size(message);
    domi_sim_add_line_to_trace(sim, DOMI_SIM_CLIENT " gets %" PRIu64, DOMI_SIM_CLIENT_OF(client),
                               message->number);
    if (number == 0) {
        domi_sim_answer_request_by_message(stack, client, message);
        return;
    }
    int error =
        subscription != NULL ? send_message_to_subscriber(stack, subscription, message) : -ESTALE;
    if (error == 0) {
        domi_sim_count_and_report_fate(sim, message, DOMUS_FATE_DELIVERED, client->node->index);
    } else if (error == -ESTALE) {
        client->counted.unknown++;
        domi_sim_count_and_report_fate(sim, message, DOMUS_FATE_ENDED, client->node->index);
    } else {
        client->counted.lost++;
        domi_sim_count_lost_message(sim, message,
                                    (domi_sim_loss){DOMUS_FATE_LOST_MAILBOX, client->node->index,
                                                    "the subscriber takes no more"});
    }
    if (subscription != NULL && ++subscription->told == subscription->limit)
        end_subscription_of_client(client, subscription, false);
}
