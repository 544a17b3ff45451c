/* Sends messages and pings of the client and its channel to the server, and refuses those that
 * cannot be sent. */
#include "protocols/nats/state.h"

#include <errno.h>

bool domi_nats_may_send_without_queue(const domi_nats_client *client)
{
    return domi_nats_is_logged_in(client) && client->first == NULL &&
           domi_nats_are_subscriptions_renewed(client) && domi_nats_has_send_window_room(client);
}

int domi_nats_count_and_fail_current_ask(domus_stack *stack, domi_nats_client *client, int error)
{
    client->counted.refused++;
    /* if the refused message is a notice, there is nobody to answer, and this call does nothing */
    (void)domus_fail(stack, error);
    return 0;
}

int domi_nats_check_against_server_limits(const domi_nats_client *client,
                                          const domus_nats_publish *publish)
{
    if (client->max_payload != 0 && domi_nats_size_of_publish(publish) > client->max_payload)
        return -EMSGSIZE;
    return publish->headers.size != 0 && !client->has_headers ? -EOPNOTSUPP : 0;
}

int domi_nats_send_publish(domus_stack *stack, domi_nats_client *client,
                           const domus_nats_publish *publish)
{
    int error = domi_nats_check_against_server_limits(client, publish);

    if (error == 0)
        error = domus_channel_send(stack, client->channel, &domus_nats_publish_type, publish);
    if (error != 0)
        return error;
    client->counted.out_messages++;
    client->counted.out_bytes += domi_nats_size_of_publish(publish);
    return 0;
}

int domi_nats_send_ping(domus_stack *stack, domi_nats_client *client)
{
    int error = domus_channel_send(stack, client->channel, &domus_nats_ping_type, NULL);

    if (error != 0)
        return error;
    client->pings++;
    if (client->measured == 0) {
        client->measured = client->pings;
        client->measured_ns = domus_now_ns(stack);
    }
    return 0;
}
