/* The functions that all files of a simulated client use: its timer, its events, and its refusals
 * of asks. */
#include "protocols/cluster/testkit/client_parts.h"

#include <domus/conversation.h>
#include <domus/timer.h>

#include <errno.h>
#include <stdio.h>

const domus_type domi_sim_timer_type = {.name = "simulated nats timer"};

void domi_sim_send_event_of_client(domus_stack *stack, domi_sim_client *client,
                                   domus_nats_happening happening, int error, const char *text)
{
    domus_nats_event event = {.happening = happening, .error = error, .of = client->self};

    (void)snprintf(event.text, sizeof event.text, "%s", text);
    (void)domus_notice(stack, client->events, &domus_nats_event_type, &event);
}

int domi_sim_refuse_ask_to_client(domus_stack *stack, domi_sim_client *client, int error)
{
    client->counted.refused++;
    client->node->sim->counts.refused++;
    domi_sim_add_line_to_trace(client->node->sim, DOMI_SIM_CLIENT " refuses: %d",
                               DOMI_SIM_CLIENT_OF(client), error);
    (void)domus_fail(stack, error); /* for a notice this does nothing, as it has no answer */
    return 0;
}

/* Returns the next time at which a simulated client has something to do. */
static uint64_t next_due_time_of_client(const domi_sim_client *client)
{
    uint64_t next_ns = client->slots_used != 0 ? client->expire_ns : DOMI_SIM_NEVER;

    if (client->state == DOMI_SIM_CONNECTED && client->ping_ns < next_ns)
        next_ns = client->ping_ns;
    if (client->state != DOMI_SIM_CONNECTED && client->retry_ns < next_ns)
        next_ns = client->retry_ns;
    return client->drain_ns < next_ns ? client->drain_ns : next_ns;
}

void domi_sim_set_timer_of_client(domus_stack *stack, domi_sim_client *client)
{
    uint64_t next_ns = next_due_time_of_client(client);
    uint64_t now_ns = domus_now_ns(stack);

    if (next_ns >= client->armed_ns)
        return; /* the timer that is set fires earlier, and then sets the next one */
    if (client->armed_ns != DOMI_SIM_NEVER)
        (void)domus_timer_cancel(stack, client->timer);
    client->armed_ns = DOMI_SIM_NEVER;
    if (domus_after(stack, next_ns > now_ns ? next_ns - now_ns : 0, &domi_sim_timer_type, NULL,
                    &client->timer) == 0)
        client->armed_ns = next_ns;
    else
        client->node->sim->failed = -ENOMEM;
}
