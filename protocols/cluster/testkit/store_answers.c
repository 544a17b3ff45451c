/* Sends answers of the simulated JetStream, and other messages of its leader. */
#include "protocols/cluster/testkit/store_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void domi_sim_send_or_lose_message_of_leader(domi_sim *sim, domi_sim_message *message)
{
    message->number = ++sim->numbers;
    sim->counts.served++;
    if (message->is_answer && domi_sim_draw_whether_happens(sim, sim->store.faults.answer_loss_ppm))
        domi_sim_count_lost_message(
            sim, message, (domi_sim_loss){DOMUS_FATE_LOST_ANSWER, DOMUS_EVERY, "an answer"});
    else
        domi_sim_send_message_to_subscribers(sim, sim->store.leader, message, NULL, false);
    domi_sim_message_drop(message);
}

void domi_sim_reply_to_request_with_parts(domi_sim *sim, const domi_sim_message *request,
                                          const domi_sim_parts *parts)
{
    domi_sim_parts whole = *parts;

    if (request->reply[0] == '\0')
        return;
    whole.subject = request->reply;
    whole.subject_size = (uint32_t)strlen(request->reply);
    domi_sim_message *message = domi_sim_message_new(&whole);
    if (message == NULL) {
        sim->failed = -ENOMEM;
        return;
    }
    message->is_answer = true;
    domi_sim_send_or_lose_message_of_leader(sim, message);
}

void domi_sim_reply_to_request_with_text(domi_sim *sim, const domi_sim_message *request,
                                         const char *text)
{
    const domi_sim_parts parts = {.payload = text, .payload_size = (uint32_t)strlen(text)};

    domi_sim_reply_to_request_with_parts(sim, request, &parts);
}

void domi_sim_reply_to_request_with_error(domi_sim *sim, const domi_sim_message *request,
                                          uint32_t status, uint32_t number, const char *text)
{
    char json[256];

    (void)snprintf(json, sizeof json,
                   "{\"error\":{\"code\":%u,\"err_code\":%u,\"description\":\"%s\"}}", status,
                   number, text);
    domi_sim_add_line_to_trace(sim, "the buckets refuse %" PRIu64 ": %s", request->number, text);
    domi_sim_reply_to_request_with_text(sim, request, json);
}
