/* The actor of a NATS client: the handlers of its messages, its start and end, and the publishing
 * of messages. */
#include "protocols/nats/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- publishing ------------------------------------------------------------------------------- */

static int send_or_queue_publish_of_asker(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    const domus_nats_publish *publish = payload;
    int error = -EPIPE;

    if (client->draining)
        error = -ESHUTDOWN;
    else if (domi_nats_may_send_without_queue(client))
        error = domi_nats_send_publish(stack, client, publish);
    /* -EPIPE: there is no connection, or it accepts nothing now, or nothing any more */
    if (error == -EPIPE) {
        error = domi_nats_check_parts_of_publish(publish, domi_nats_reply_of_publish(publish));
        if (error == 0 && domi_nats_is_logged_in(client))
            error = domi_nats_check_against_server_limits(client, publish);
        if (error == 0)
            error = domi_nats_queue_publish_to_wait(stack, client, publish);
    }
    if (error != 0)
        return domi_nats_count_and_fail_current_ask(stack, client, error);
    /* if the message to publish came as a notice, nobody is answered, and this does nothing */
    (void)domus_reply(stack, &domus_nats_done_type, NULL);
    return 0;
}

/* --- ends of connections ---------------------------------------------------------------------- */

/* Report to the user that the connection is lost, and begin to make another one. */
static int report_lost_connection_and_reconnect(domus_stack *stack, domi_nats_client *client)
{
    const char *server = client->servers[client->server].text;
    int error = client->error != 0 ? client->error : -ECONNRESET;

    client->connection = (domus_address){NULL, 0};
    client->phase = DOMI_NATS_IDLE;
    domi_nats_send_event_to_user(stack, client,
                                 client->was_ready ? DOMUS_NATS_DISCONNECTED : DOMUS_NATS_FAILED,
                                 error, server);
    domi_nats_leave_failed_server_out(client, domus_now_ns(stack), error);
    return domi_nats_connect_to_some_server(stack, client);
}

static int reconnect_or_unsubscribe_ended_actor(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    const domus_down *down = payload;

    if (domus_address_equals(down->who, client->connection))
        return report_lost_connection_and_reconnect(stack, client);
    domi_nats_end_subscriptions_of_actor(stack, client, down->who);
    return 0;
}

/* --- life ------------------------------------------------------------------------------------- */

static int set_up_client_and_connect_at_mount(domus_stack *stack, void *self)
{
    domi_nats_client *client = self;

    /* the client's actor was restarted without the state that it was spawned with */
    if (client->servers_count == 0)
        return -EINVAL;
    client->self = domus_self(stack);
    client->free_slot = client->free_place = client->finished = DOMI_NATS_NONE;
    client->first_flush = client->last_flush = DOMI_NATS_NONE;
    client->end = &client->first;
    client->end_of_asks = &client->first_ask;
    int error =
        domus_every(stack, client->options.ping_interval_ns, &domi_nats_tick_type, NULL, NULL);
    return error != 0 ? error : domi_nats_connect_to_some_server(stack, client);
}

static void report_end_and_free_client_at_stop(domus_stack *stack, void *self)
{
    domi_nats_client *client = self;

    domi_nats_send_event_to_user(stack, client, DOMUS_NATS_CLOSED, 0, "");
    domi_nats_free_waiting_messages(client);
    domi_nats_free_all_subscriptions(client);
    free(client->slots);
    explicit_bzero(client, sizeof *client);
}

static const domus_on rows[] = {
    {&domus_nats_publish_type, send_or_queue_publish_of_asker, 0},
    {&domus_nats_request_type, domi_nats_forward_or_queue_request, 0},
    {&domus_nats_subscribe_type, domi_nats_add_subscription_and_reply, 0},
    {&domus_nats_unsubscribe_type, domi_nats_limit_or_end_subscription, 0},
    {&domus_nats_flush_type, domi_nats_keep_flush_and_send_mark, 0},
    {&domi_nats_flush_mark_type, domi_nats_forward_flush_behind_its_mark, 0},
    {&domus_down_type, reconnect_or_unsubscribe_ended_actor, 0},
    {&domi_nats_tidy_type, domi_nats_free_ended_subscriptions, 0},
    {&domi_nats_pump_type, domi_nats_send_waiting_of_logged_in, 0},
    {&domi_nats_look_type, domi_nats_fail_late_waiting_asks, 0},
    {&domi_nats_connect_type, domi_nats_connect_at_timer_if_idle, 0},
    {&domi_nats_late_type, domi_nats_reset_channel_of_late_login, 0},
    {&domi_nats_tick_type, domi_nats_ping_or_reconnect_at_tick, 0},
    {&domus_nats_look_type, domi_nats_reply_with_status_of_client, 0},
    {&domus_nats_drain_type, domi_nats_keep_drain_ask_and_send_mark, 0},
    {&domi_nats_drain_mark_type, domi_nats_begin_drain_behind_its_mark, 0},
    {&domi_nats_drain_step_type, domi_nats_end_drain_if_done_or_late, 0},
    {NULL, NULL, 0},
};

const domus_behaviour domi_nats_client_behaviour = {
    .name = "nats client",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(domi_nats_client),
    .on = rows,
    .on_mount = set_up_client_and_connect_at_mount,
    .on_stop = report_end_and_free_client_at_stop,
    .channel = &domi_nats_channel_behaviour,
};
