/* The drain of a client: waiting messages are sent, the server is told to end all subscriptions,
 * and a ping behind that brings all messages that are on their way; requests get their answers.
 * Then the client stops. The drain checks repeatedly, by a timer, how far it is, because the
 * connection may break meanwhile and be made again. */
#include "protocols/nats/state.h"

#include <domus/spawn.h>

#include <errno.h>

#define STEP_NS UINT64_C(5000000) /* ns between two checks whether the client has drained */

const domus_type domi_nats_drain_mark_type = {.name = "nats drain mark"};
const domus_type domi_nats_drain_step_type = {.name = "nats drains"};

/* End the drain of a client: answer its asker with `error`, or as done if that is 0, and stop the
 * client. */
static int end_drain_of_client(domus_stack *stack, domi_nats_client *client, int error)
{
    if (client->drain_is_asked && error != 0)
        (void)domus_kept_fail(stack, client->drain, error);
    else if (client->drain_is_asked)
        (void)domus_kept_reply(stack, client->drain, &domus_nats_done_type, NULL);
    (void)domus_stop(stack, client->self);
    return 0;
}

/* Tell the server to end the client's subscriptions, as many as the connection accepts now. */
static void send_unsubscribes_as_room_allows(domus_stack *stack, domi_nats_client *client)
{
    while (client->drain_place < client->places_used &&
           domus_channel_queued(client->channel) < DOMI_NATS_WINDOW) {
        if (domi_nats_send_unsub_of_subscription(stack, client, client->drain_place) != 0)
            return;
        client->drain_place++;
    }
}

/* Send what the drain still has to send: the unsubscribes, and a ping behind everything. Returns
 * whether the server has answered that ping. On a new connection there is nothing to unsubscribe,
 * but a ping is needed, too, because messages published on it must arrive. */
static bool is_everything_sent_and_answered(domus_stack *stack, domi_nats_client *client)
{
    if (!domi_nats_is_logged_in(client) || client->first != NULL)
        return false;
    if (client->drain_epoch != client->epoch) {
        client->drain_epoch = client->epoch;
        client->drain_ping = 0;
    }
    if (client->drain_ping == 0) {
        send_unsubscribes_as_room_allows(stack, client);
        if (client->drain_place >= client->places_used && domi_nats_send_ping(stack, client) == 0)
            client->drain_ping = client->pings;
    }
    return client->drain_ping != 0 && client->pongs >= client->drain_ping;
}

int domi_nats_end_drain_if_done_or_late(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;

    (void)payload;
    if (is_everything_sent_and_answered(stack, client) && client->slots_used == 0)
        return end_drain_of_client(stack, client, 0);
    if (domus_now_ns(stack) >= client->drain_until_ns ||
        domus_after(stack, STEP_NS, &domi_nats_drain_step_type, NULL, NULL) != 0)
        return end_drain_of_client(stack, client, -ETIMEDOUT);
    return 0;
}

int domi_nats_begin_drain_behind_its_mark(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;

    if (!client->drains_soon)
        return 0;
    client->draining = true;
    return domi_nats_end_drain_if_done_or_late(stack, self, payload);
}

/* The asker's notices may still wait in the client's mailbox although they were sent before the
 * drain was asked for. So the drain begins by a notice of the client to itself, which comes behind
 * them. */
int domi_nats_keep_drain_ask_and_send_mark(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;

    (void)payload;
    if (client->drains_soon) {
        (void)domus_fail(stack, -EALREADY);
        return 0;
    }
    int error = domus_notice(stack, client->self, &domi_nats_drain_mark_type, NULL);
    if (error != 0) {
        (void)domus_fail(stack, error);
        return 0;
    }
    client->drains_soon = true;
    client->drain_is_asked = domus_keep(stack, &client->drain) == 0;
    client->drain_until_ns = domus_now_ns(stack) + client->options.drain_timeout_ns;
    return 0;
}
