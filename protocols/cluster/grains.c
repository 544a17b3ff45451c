/* Writes and reads the grain to which a message goes, and returns messages that other nodes have
 * sent for grains of parts that this node does not have. */
#include "protocols/cluster/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Write a text with its length in one byte before it. Returns how many bytes that takes. */
static uint32_t write_text_with_length(const char *text, unsigned char *bytes)
{
    size_t length = strnlen(text, DOMUS_GRAIN_KEY_MAX);

    bytes[0] = (unsigned char)length;
    memcpy(bytes + 1, text, length);
    return (uint32_t)length + 1;
}

uint32_t domi_grain_name_write(const domus_remote_grain *grain, unsigned char *bytes)
{
    uint32_t size = write_text_with_length(grain->kind, bytes);

    return size + write_text_with_length(grain->key, bytes + size);
}

/* Read a text with its length before it at `*at`, and move `*at` behind it. Returns false if it is
 * cut, or has not 1..63 bytes. */
static bool read_text_with_length(const unsigned char *bytes, uint32_t size, uint32_t *at,
                                  char ret_text[DOMUS_GRAIN_KEY_MAX + 1])
{
    uint32_t length = *at < size ? bytes[*at] : 0;

    if (length == 0 || length > DOMUS_GRAIN_KEY_MAX || size - *at - 1 < length)
        return false;
    memcpy(ret_text, bytes + *at + 1, length);
    ret_text[length] = '\0';
    *at += length + 1;
    return strlen(ret_text) == length;
}

int domi_grain_name_read(const domi_cluster_gateway *gateway, const unsigned char *bytes,
                         uint32_t size, domi_grain_name *ret_name)
{
    char kind[DOMUS_GRAIN_KEY_MAX + 1];

    ret_name->bytes = 0;
    if (!read_text_with_length(bytes, size, &ret_name->bytes, kind) ||
        !read_text_with_length(bytes, size, &ret_name->bytes, ret_name->key))
        return -EBADMSG;
    int error = domus_remote_grains_find(gateway->stack, kind, &ret_name->grains);
    if (error != 0)
        return error;
    int part = domus_remote_part_of(ret_name->grains, ret_name->key);
    if (part < 0)
        return -EBADMSG;
    ret_name->part = (uint32_t)part;
    return 0;
}

/* --- messages that are returned --------------------------------------------------------------- */

/* Return a message for a grain to the node that has sent it. If the way to that node is full, an
 * ask fails there instead, and a notice is dropped. */
static void return_message_of_grain_to_node(domi_cluster_gateway *gateway, domi_peer *peer,
                                            uint16_t to_gateway, const domi_wire_envelope *envelope)
{
    domi_wire_envelope back = *envelope;

    back.kind = DOMI_TO_RETURN;
    back.error = envelope->kind;
    if (domi_peer_has_room_on_way(gateway, peer))
        domi_add_envelope_or_mark_link_torn(gateway, peer, to_gateway, &back);
    else if (envelope->kind == DOMI_TO_GRAIN_ASK)
        domi_send_failure_of_ask_to_node(gateway, peer, to_gateway, envelope->id, -ENOBUFS);
    else
        atomic_fetch_add_explicit(&gateway->cluster->dropped, 1, memory_order_relaxed);
}

bool domi_grain_accept_or_return_message(domi_cluster_gateway *gateway, domi_peer *peer,
                                         uint16_t from_gateway, uint32_t part,
                                         const domi_wire_envelope *envelope)
{
    unsigned char *byte = &peer->returns[from_gateway][part / 8];
    unsigned char bit = (unsigned char)(1u << part % 8);
    bool is_here = gateway->routes != NULL && gateway->routes[part].state == DOMI_ROUTE_HERE &&
                   domi_cluster_holds_lease(gateway->cluster, gateway->stack);

    if (is_here && (*byte & bit) == 0)
        return true;
    *byte |= bit;
    domi_part_let_warden_check_holder(gateway->cluster, part);
    return_message_of_grain_to_node(gateway, peer, from_gateway, envelope);
    return false;
}

void domi_grain_confirm_fence_of_part(domi_cluster_gateway *gateway, domi_peer *peer,
                                      uint16_t from_gateway, uint64_t part)
{
    const domi_wire_envelope answer = {.kind = DOMI_TO_FENCED, .id = part};

    if (part < DOMUS_REMOTE_PARTS)
        peer->returns[from_gateway][part / 8] &= (unsigned char)~(1u << part % 8);
    domi_add_envelope_or_mark_link_torn(gateway, peer, from_gateway, &answer);
}

void domi_grain_forget_returned_parts(domi_peer *peer, uint16_t from_gateway)
{
    memset(peer->returns[from_gateway], 0, sizeof *peer->returns);
}

/* --- counts ----------------------------------------------------------------------------------- */

static uint64_t load_relaxed_counter(const _Atomic uint64_t *count)
{
    return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)count, memory_order_relaxed);
}

domus_cluster_grain_counts domus_cluster_count_grains(const domus_cluster *cluster)
{
    const domi_parts *parts = cluster->parts;

    return (domus_cluster_grain_counts){
        .parts = load_relaxed_counter(&parts->held),
        .taken = load_relaxed_counter(&parts->taken),
        .given = load_relaxed_counter(&parts->given),
        .lost = load_relaxed_counter(&parts->lost),
        .waiting = load_relaxed_counter(&parts->waiting),
        .returned = load_relaxed_counter(&parts->returned),
    };
}
