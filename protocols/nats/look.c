/* Answers asks for the status of a client. */
#include "protocols/nats/state.h"

#include <string.h>

int domi_nats_reply_with_status_of_client(domus_stack *stack, void *self, const void *payload)
{
    const domi_nats_client *client = self;
    domus_nats_status status = client->counted;

    (void)payload;
    status.connected = domi_nats_is_logged_in(client);
    status.draining = client->draining;
    status.servers = client->servers_count;
    status.left_out = domi_nats_count_servers_left_out(client, domus_now_ns(stack));
    status.subscriptions = client->subscriptions_count;
    status.inflight = client->slots_used + client->waiting_asks;
    status.waiting = client->waiting;
    status.waiting_bytes = client->waiting_bytes;
    if (status.connected) {
        status.has_headers = client->has_headers;
        status.has_jetstream = client->has_jetstream;
        status.max_payload = client->max_payload;
        memcpy(status.server, client->servers[client->server].text, sizeof status.server);
        memcpy(status.server_name, client->server_name, sizeof status.server_name);
        memcpy(status.version, client->version, sizeof status.version);
    }
    (void)domus_reply(stack, &domus_nats_status_type, &status);
    return 0;
}
