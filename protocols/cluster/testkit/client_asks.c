/* Answers to a simulated client's requests, and flushes. The reply subject of a request names the
 * request's slot, and how often that slot was used before. */
#include "protocols/cluster/testkit/client_parts.h"

#include <domus/conversation.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A notice that the client sends to itself for a flush: it comes behind those that the asker has
 * sent before. */
struct mark {
    domus_kept kept;
    uint64_t deadline_ns;
};

const domus_type domi_sim_mark_type = {.name = "simulated nats mark", .size = sizeof(struct mark)};

/* --- answers ---------------------------------------------------------------------------------- */

int domi_sim_make_nats_message(const domi_sim_message *message, domus_nats_message *ret_message)
{
    domus_appender bytes = {0};
    uint32_t subject_size = (uint32_t)strlen(message->subject);
    uint32_t reply_size = (uint32_t)strlen(message->reply);
    domus_nats_message made = {.payload_size = message->payload_size,
                               .headers_size = message->headers_size,
                               .subject_size = (uint16_t)subject_size,
                               .reply_at = (uint16_t)(subject_size + 3),
                               .reply_size = (uint16_t)reply_size,
                               .status = message->status};
    /* These are the bytes that a server would send: subject, sid, reply subject, sizes, and then
     * headers and payload. */
    int error = domus_append(&bytes, message->subject, subject_size);
    if (error == 0)
        error = domus_append_text(&bytes, " 1 %s%s%u\r\n", message->reply,
                                  reply_size != 0 ? " " : "", domi_sim_message_size(message));
    if (error == 0 && message->headers_size != 0)
        error = domus_append(&bytes, message->headers, message->headers_size);
    if (error == 0 && message->payload_size != 0)
        error = domus_append(&bytes, message->payload, message->payload_size);
    if (error != 0) {
        domus_append_drop(&bytes);
        return error;
    }
    error = domus_append_end(&bytes, &made.bytes);
    if (error == 0)
        *ret_message = made;
    return error;
}

/* Find the slot of the request that a reply subject names. Returns DOMI_SIM_NO_SLOT if that request
 * does not wait any more. */
static uint32_t find_slot_of_reply_subject(const domi_sim_client *client, const char *subject)
{
    char *end;

    if (strlen(subject) <= strlen(client->inbox))
        return DOMI_SIM_NO_SLOT;
    /* the last token of the reply subject has 8 digits of the generation, and 8 of the slot */
    unsigned long long token = strtoull(subject + strlen(client->inbox), &end, 16);
    uint32_t generation = (uint32_t)(token >> 32), slot = (uint32_t)token;
    if (*end != '\0' || slot >= client->slot_count || !client->slots[slot].is_used ||
        client->slots[slot].is_flush || client->slots[slot].generation != generation)
        return DOMI_SIM_NO_SLOT;
    return slot;
}

void domi_sim_answer_request_by_message(domus_stack *stack, domi_sim_client *client,
                                        domi_sim_message *message)
{
    domi_sim *sim = client->node->sim;
    uint32_t slot = find_slot_of_reply_subject(client, message->subject);
    domus_nats_message answer;
    int error = -ENOENT;

    if (slot != DOMI_SIM_NO_SLOT) {
        domus_kept kept = client->slots[slot].kept;
        domi_sim_free_slot(client, slot);
        if (message->status == 503 && message->payload_size == 0) {
            error = domus_kept_fail(stack, kept, -ECONNREFUSED);
        } else if ((error = domi_sim_make_nats_message(message, &answer)) == 0) {
            error = domus_kept_reply(stack, kept, &domus_nats_message_type, &answer);
            if (error != 0)
                domus_slice_free(answer.bytes);
        } else {
            (void)domus_kept_fail(stack, kept, error);
        }
    }
    if (error == 0) {
        domi_sim_count_and_report_fate(sim, message, DOMUS_FATE_DELIVERED, client->node->index);
        return;
    }
    client->counted.unknown++;
    domi_sim_count_and_report_fate(sim, message, DOMUS_FATE_ENDED, client->node->index);
}

/* --- flushes ---------------------------------------------------------------------------------- */

uint64_t domi_sim_send_ping_to_server(domi_sim_client *client)
{
    domi_sim_packet *packet = domi_sim_packet_new(client->node->sim, DOMI_SIM_PING, NULL);

    if (packet == NULL)
        return 0;
    packet->number = ++client->pings;
    domi_sim_send_or_queue_packet(client, packet);
    return client->pings;
}

void domi_sim_answer_flushes_of_pong(domus_stack *stack, domi_sim_client *client)
{
    if (client->pongs == client->pings)
        client->counted.rtt_ns = domus_now_ns(stack) - client->pinged_ns;
    for (uint32_t i = 0; i < client->slot_count; i++) {
        domi_sim_slot *slot = &client->slots[i];
        if (!slot->is_used || !slot->is_flush || slot->ping > client->pongs)
            continue;
        (void)domus_kept_reply(stack, slot->kept, &domus_nats_done_type, NULL);
        domi_sim_free_slot(client, i);
    }
}

/* For a flush the client sends a notice to itself, which comes behind those that the asker has sent
 * before. */
int domi_sim_on_flush_send_mark_to_itself(domus_stack *stack, void *self, const void *payload)
{
    domi_sim_client *client = ((domi_sim_actor *)self)->client;
    struct mark mark = {.deadline_ns = domi_sim_deadline_of_current_ask(stack, client)};

    (void)payload;
    if (client->is_draining)
        return domi_sim_refuse_ask_to_client(stack, client, -ESHUTDOWN);
    int error = domus_keep(stack, &mark.kept);
    if (error != 0)
        return domi_sim_refuse_ask_to_client(stack, client, error);
    error = domus_notice(stack, client->self, &domi_sim_mark_type, &mark);
    if (error != 0)
        (void)domus_kept_fail(stack, mark.kept, error);
    return 0;
}

int domi_sim_on_mark_of_flush_send_ping(domus_stack *stack, void *self, const void *payload)
{
    domi_sim_client *client = ((domi_sim_actor *)self)->client;
    struct mark mark;
    uint32_t slot;

    memcpy(&mark, payload, sizeof mark);
    int error = domi_sim_find_slot_for_kept_ask(client, mark.kept, mark.deadline_ns, &slot);
    if (error != 0) {
        (void)domus_kept_fail(stack, mark.kept, error);
        return 0;
    }
    client->slots[slot].is_flush = true;
    client->slots[slot].ping = client->pings + 1;
    client->pinged_ns = domus_now_ns(stack);
    if (domi_sim_send_ping_to_server(client) == 0) {
        (void)domus_kept_fail(stack, mark.kept, -ENOMEM);
        domi_sim_free_slot(client, slot);
    }
    domi_sim_set_timer_of_client(stack, client);
    return 0;
}
