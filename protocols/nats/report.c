/* Reports to the user what happens to a client, such as a lost connection, by events. */
#include "protocols/nats/state.h"

#include <string.h>

void domi_nats_send_event_to_user(domus_stack *stack, const domi_nats_client *client,
                                  domus_nats_happening happening, int error, const char *text)
{
    domus_nats_event event = {.happening = happening, .error = error};

    if (client->options.events.house == NULL)
        return;
    event.of = client->self;
    domi_nats_copy_printable(event.text, sizeof event.text,
                             (domi_nats_bytes){text, (uint32_t)strnlen(text, sizeof event.text)});
    (void)domus_notice(stack, client->options.events, &domus_nats_event_type, &event);
}
