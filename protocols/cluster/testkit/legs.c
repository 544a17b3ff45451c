/* Legs: queues of packets between nodes and servers, which take time, may be cut, and may lose
 * messages. */
#include "protocols/cluster/testkit/sim.h"

#include <errno.h>
#include <stdlib.h>

domi_sim_packet *domi_sim_packet_new(domi_sim *sim, domi_sim_kind kind, domi_sim_message *message)
{
    domi_sim_packet *packet = calloc(1, sizeof *packet);

    if (packet == NULL) {
        sim->failed = -ENOMEM;
        return NULL;
    }
    packet->kind = kind;
    packet->message = message != NULL ? domi_sim_message_keep(message) : NULL;
    return packet;
}

void domi_sim_packet_free(domi_sim_packet *packet)
{
    if (packet == NULL)
        return;
    domi_sim_message_drop(packet->message);
    if (packet->interest != NULL)
        packet->interest->packets--;
    free(packet);
}

/* Returns whether a packet carries a message: only such packets may be lost by chance. */
static bool has_packet_a_message(const domi_sim_packet *packet)
{
    return packet->kind == DOMI_SIM_MESSAGE || packet->kind == DOMI_SIM_PICK ||
           packet->kind == DOMI_SIM_REQUEST;
}

static uint64_t size_of_packet_on_leg(const domi_sim_packet *packet)
{
    return has_packet_a_message(packet) ? domi_sim_message_size(packet->message) + DOMI_SIM_OVERHEAD
                                        : 0;
}

void domi_sim_append_packet_to_leg(domi_sim_leg *leg, domi_sim_packet *packet)
{
    packet->next = NULL;
    if (leg->tail != NULL)
        leg->tail->next = packet;
    else
        leg->head = packet;
    leg->tail = packet;
    leg->bytes += size_of_packet_on_leg(packet);
}

domi_sim_packet *domi_sim_take_first_packet_of_leg(domi_sim_leg *leg)
{
    domi_sim_packet *packet = leg->head;

    if (packet == NULL)
        return NULL;
    leg->head = packet->next;
    if (leg->head == NULL)
        leg->tail = NULL;
    packet->next = NULL;
    leg->bytes -= size_of_packet_on_leg(packet);
    return packet;
}

static void count_and_free_lost_packet(domi_sim *sim, domi_sim_packet *packet, domi_sim_loss loss)
{
    if (packet->kind == DOMI_SIM_REQUEST)
        loss.fate = DOMUS_FATE_LOST_REQUEST;
    if (has_packet_a_message(packet))
        domi_sim_count_lost_message(sim, packet->message, loss);
    domi_sim_packet_free(packet);
}

void domi_sim_send_or_lose_packet(domi_sim *sim, domi_sim_leg *leg, domi_sim_packet *packet,
                                  domi_sim_loss loss)
{
    const domi_sim_way *way = leg->way;

    if (packet == NULL)
        return;
    if (has_packet_a_message(packet) &&
        (way->cut == DOMUS_CUT_LOSES || domi_sim_draw_whether_happens(sim, way->loss_ppm))) {
        count_and_free_lost_packet(sim, packet, loss);
        return;
    }
    uint64_t jitter_ns =
        way->jitter_ns != 0 ? domi_sim_draw_number_below(sim, way->jitter_ns + 1) : 0;
    uint64_t due_ns = sim->now_ns + way->latency_ns + jitter_ns;
    leg->last_ns = packet->due_ns = due_ns > leg->last_ns ? due_ns : leg->last_ns;
    domi_sim_append_packet_to_leg(leg, packet);
}

uint64_t domi_sim_due_time_of_leg(const domi_sim_leg *leg)
{
    return leg->head != NULL && leg->way->cut == 0 ? leg->head->due_ns : DOMI_SIM_NEVER;
}

void domi_sim_lose_packets_of_leg(domi_sim *sim, domi_sim_leg *leg, domi_sim_loss loss)
{
    for (domi_sim_packet *packet; (packet = domi_sim_take_first_packet_of_leg(leg)) != NULL;)
        count_and_free_lost_packet(sim, packet, loss);
}

void domi_sim_lose_messages_of_leg(domi_sim *sim, domi_sim_leg *leg, domi_sim_loss loss)
{
    domi_sim_leg kept = *leg;

    kept.head = kept.tail = NULL;
    kept.bytes = 0;
    for (domi_sim_packet *packet; (packet = domi_sim_take_first_packet_of_leg(leg)) != NULL;) {
        if (has_packet_a_message(packet))
            count_and_free_lost_packet(sim, packet, loss);
        else
            domi_sim_append_packet_to_leg(&kept, packet);
    }
    *leg = kept;
}
