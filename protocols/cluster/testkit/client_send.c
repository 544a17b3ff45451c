/* Publishes what actors give to a simulated client, and queues its packets while it has no
 * connection, or a slow one. */
#include "protocols/cluster/testkit/client_parts.h"

#include <domus/conversation.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REPLY_SIZE 64u

static domi_sim_loss make_loss_on_way_to_server(const domi_sim_client *client)
{
    return (domi_sim_loss){DOMUS_FATE_LOST_UP, client->node->index,
                           "the leg to the server has lost it"};
}

/* Returns whether the client's connection accepts one more packet now. */
static bool may_send_packet_now(const domi_sim_client *client)
{
    return client->state == DOMI_SIM_CONNECTED && !client->is_over &&
           client->connection->up.bytes < client->node->sim->options.wire_max;
}

/* Mark the flushes that wait for this ping as sent. */
static void mark_flushes_as_sent_by_ping(domi_sim_client *client, uint64_t ping)
{
    for (uint32_t i = 0; i < client->slot_count; i++) {
        domi_sim_slot *slot = &client->slots[i];
        if (slot->is_used && slot->is_flush && slot->ping == ping)
            slot->is_sent = true;
    }
}

static void send_packet_to_server_now(domi_sim_client *client, domi_sim_packet *packet)
{
    if (packet->kind == DOMI_SIM_PING)
        mark_flushes_as_sent_by_ping(client, packet->number);
    if (packet->kind == DOMI_SIM_MESSAGE) {
        client->counted.out_messages++;
        client->counted.out_bytes += domi_sim_message_size(packet->message);
        if (packet->number != 0)
            client->slots[packet->number - 1].is_sent = true;
    }
    domi_sim_send_or_lose_packet(client->node->sim, &client->connection->up, packet,
                                 make_loss_on_way_to_server(client));
}

void domi_sim_send_or_queue_packet(domi_sim_client *client, domi_sim_packet *packet)
{
    if (packet == NULL)
        return;
    if (client->waiting.head == NULL && may_send_packet_now(client))
        send_packet_to_server_now(client, packet);
    else
        domi_sim_append_packet_to_leg(&client->waiting, packet);
}

/* Returns whether the request to which a packet belongs does not wait any more. */
static bool is_request_of_packet_over(const domi_sim_client *client, const domi_sim_packet *packet)
{
    if (packet->kind != DOMI_SIM_MESSAGE || packet->number == 0)
        return false;
    const domi_sim_slot *slot = &client->slots[packet->number - 1];
    return !slot->is_used || slot->generation != packet->limit;
}

void domi_sim_send_waiting_packets(domi_sim_client *client)
{
    while (client->waiting.head != NULL && may_send_packet_now(client)) {
        domi_sim_packet *packet = domi_sim_take_first_packet_of_leg(&client->waiting);
        if (!is_request_of_packet_over(client, packet)) {
            send_packet_to_server_now(client, packet);
            continue;
        }
        domi_sim_count_lost_message(client->node->sim, packet->message,
                                    (domi_sim_loss){DOMUS_FATE_LOST_WAITING, client->node->index,
                                                    "the time of the request is over"});
        domi_sim_packet_free(packet);
    }
}

/* --- messages of actors ----------------------------------------------------------------------- */

typedef struct bytes {
    const char *data;
    uint32_t size;
} bytes;

/* Returns a part of a message that an actor publishes: the bytes of `slice`, or those in the
 * message itself. */
static bytes bytes_of_slice_or_inline_part(const domus_nats_publish *publish, domus_slice slice,
                                           uint8_t at, uint8_t size)
{
    if (slice.size != 0 || (uint32_t)at + size > DOMUS_NATS_INLINE)
        return (bytes){domus_slice_data(slice), slice.size};
    return (bytes){publish->bytes + at, size};
}

static uint16_t status_number_in_first_header_line(domus_slice headers)
{
    const char *text = domus_slice_data(headers);
    unsigned status = 0;

    for (uint32_t i = 9; i < 12 && headers.size > 12 && text[8] == ' '; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        status = status * 10 + (unsigned)(text[i] - '0');
    }
    return (uint16_t)status;
}

static bool is_valid_block_of_headers(domus_slice headers)
{
    const char *text = domus_slice_data(headers);

    return headers.size == 0 || (headers.size >= 12 && memcmp(text, "NATS/1.0", 8) == 0 &&
                                 memcmp(text + headers.size - 4, "\r\n\r\n", 4) == 0);
}

/* Make a simulated message from what an actor publishes, with the reply subject `reply` if that is
 * not NULL. Returns 0, or a negative errno. */
static int make_message_to_publish(const domi_sim_client *client, const domus_nats_publish *publish,
                                   const char *reply, domi_sim_message **ret_message)
{
    bytes subject = bytes_of_slice_or_inline_part(publish, publish->subject, publish->subject_at,
                                                  publish->subject_size);
    bytes back = bytes_of_slice_or_inline_part(publish, publish->reply, publish->reply_at,
                                               publish->reply_size);
    bytes payload = bytes_of_slice_or_inline_part(publish, publish->payload, publish->payload_at,
                                                  publish->payload_size);

    if (reply != NULL && back.size != 0)
        return -EINVAL;
    if (reply != NULL)
        back = (bytes){reply, (uint32_t)strlen(reply)};
    if (!domi_sim_is_valid_subject(subject.data, subject.size, false) ||
        (back.size != 0 && !domi_sim_is_valid_subject(back.data, back.size, false)) ||
        !is_valid_block_of_headers(publish->headers))
        return -EINVAL;
    if ((uint64_t)publish->headers.size + payload.size > client->node->sim->options.payload_max)
        return -EMSGSIZE;
    const domi_sim_parts parts = {.subject = subject.data,
                                  .subject_size = subject.size,
                                  .reply = back.data,
                                  .reply_size = back.size,
                                  .headers = domus_slice_data(publish->headers),
                                  .headers_size = publish->headers.size,
                                  .payload = payload.data,
                                  .payload_size = payload.size,
                                  .status = status_number_in_first_header_line(publish->headers)};
    *ret_message = domi_sim_message_new(&parts);
    return *ret_message != NULL ? 0 : -ENOMEM;
}

static uint32_t hash_payload_of_message(const domi_sim_message *message)
{
    uint32_t hash = 2166136261u; /* the hash of the payload is FNV-1a */

    for (uint32_t i = 0; i < message->payload_size; i++)
        hash = (hash ^ (unsigned char)message->payload[i]) * 16777619u;
    return hash;
}

/* Returns 0 if the client has room for a message of this size; otherwise a negative errno. */
static int check_room_for_message(const domi_sim_client *client, const domus_nats_publish *publish)
{
    uint64_t size = (uint64_t)publish->headers.size + DOMI_SIM_OVERHEAD +
                    (publish->payload.size != 0 ? publish->payload.size : publish->payload_size);

    if (client->is_draining || client->is_over)
        return -ESHUTDOWN;
    if (client->waiting.head == NULL && may_send_packet_now(client))
        return 0;
    return client->waiting.bytes + size > client->node->sim->options.buffer_max ? -ENOBUFS : 0;
}

/* Put a message, with the slot of its ask, into the client's queue to the server. `message` is
 * consumed. */
static void put_message_into_queue(domi_sim_client *client, domi_sim_message *message,
                                   uint32_t slot)
{
    domi_sim *sim = client->node->sim;

    message->number = ++sim->numbers;
    message->node = client->node->index;
    domi_sim_count_and_report_fate(sim, message, DOMUS_FATE_PUBLISHED, message->node);
    domi_sim_add_line_to_trace(sim,
                               DOMI_SIM_CLIENT " publishes %" PRIu64 " to %.64s, %u bytes of %08x",
                               DOMI_SIM_CLIENT_OF(client), message->number, message->subject,
                               message->payload_size, hash_payload_of_message(message));
    domi_sim_packet *packet = domi_sim_packet_new(sim, DOMI_SIM_MESSAGE, message);
    domi_sim_message_drop(message);
    if (packet == NULL)
        return;
    if (slot != DOMI_SIM_NO_SLOT) {
        packet->number = slot + 1;
        packet->limit = client->slots[slot].generation;
    }
    domi_sim_send_or_queue_packet(client, packet);
}

int domi_sim_on_publish_send_message(domus_stack *stack, void *self, const void *payload)
{
    domi_sim_client *client = ((domi_sim_actor *)self)->client;
    domi_sim_message *message = NULL;
    int error = check_room_for_message(client, payload);

    if (error == 0)
        error = make_message_to_publish(client, payload, NULL, &message);
    if (error != 0)
        return domi_sim_refuse_ask_to_client(stack, client, error);
    put_message_into_queue(client, message, DOMI_SIM_NO_SLOT);
    /* for a notice this does nothing, as it has no answer */
    (void)domus_reply(stack, &domus_nats_done_type, NULL);
    return 0;
}

int domi_sim_on_request_send_message(domus_stack *stack, void *self, const void *payload)
{
    domi_sim_client *client = ((domi_sim_actor *)self)->client;
    domi_sim_message *message = NULL;
    char reply[REPLY_SIZE];
    uint32_t slot = DOMI_SIM_NO_SLOT;
    int error = check_room_for_message(client, payload);

    if (error == 0)
        error = domi_sim_keep_ask_in_slot(stack, client, &slot);
    if (error != 0)
        return domi_sim_refuse_ask_to_client(stack, client, error);
    (void)snprintf(reply, sizeof reply, "%s%08x%08x", client->inbox, client->slots[slot].generation,
                   slot);
    /* The ask is kept by now, but its payload stays valid until this turn ends. */
    error = make_message_to_publish(client, payload, reply, &message);
    if (error != 0) {
        (void)domus_kept_fail(stack, client->slots[slot].kept, error);
        domi_sim_free_slot(client, slot);
        return domi_sim_refuse_ask_to_client(stack, client, error);
    }
    put_message_into_queue(client, message, slot);
    domi_sim_set_timer_of_client(stack, client);
    return 0;
}
