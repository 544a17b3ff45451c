/* Writes and reads heartbeats, batches, envelopes and names, whose numbers stand at fixed places
 * (wire.h). */
#include "protocols/cluster/wire.h"

#include <errno.h>
#include <string.h>

/* The first bytes of a heartbeat and of a batch, whose last letter is the version. */
static const unsigned char heartbeat_magic[4] = {'D', 'H', 'B', '1'};
static const unsigned char batch_magic[4] = {'D', 'B', 'T', '1'};

static void put_little_endian_number(unsigned char *at, uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get_little_endian_number(const unsigned char *at, uint32_t bytes)
{
    uint64_t value = 0;

    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* --- heartbeats ------------------------------------------------------------------------------- */

#define BEAT_HEAD    32u /* bytes of a heartbeat before the node's name */
#define HOSTS_GRAINS 1u  /* bit in the flags of a heartbeat: the node may have parts of grains */

uint32_t domi_heartbeat_write(const domi_heartbeat *beat, const uint64_t *heard,
                              unsigned char *bytes)
{
    uint32_t length = (uint32_t)strlen(beat->name);
    unsigned char *at = bytes + BEAT_HEAD + length;

    memcpy(bytes, heartbeat_magic, sizeof heartbeat_magic);
    put_little_endian_number(bytes + 4, beat->gateways, 2);
    bytes[6] = beat->state;
    bytes[7] = (unsigned char)length;
    put_little_endian_number(bytes + 8, beat->id, 8);
    put_little_endian_number(bytes + 16, beat->incarnation, 8);
    put_little_endian_number(bytes + 24, beat->heard_count, 4);
    put_little_endian_number(bytes + 28, beat->hosts_grains ? HOSTS_GRAINS : 0, 4);
    memcpy(bytes + BEAT_HEAD, beat->name, length);
    for (uint32_t i = 0; i < beat->heard_count; i++)
        put_little_endian_number(at + (size_t)8 * i, heard[i], 8);
    return BEAT_HEAD + length + 8 * beat->heard_count;
}

bool domi_heartbeat_read(const unsigned char *bytes, uint32_t size, domi_heartbeat *ret_beat)
{
    if (size < BEAT_HEAD || memcmp(bytes, heartbeat_magic, sizeof heartbeat_magic) != 0)
        return false;
    uint32_t length = bytes[7];
    uint64_t count = get_little_endian_number(bytes + 24, 4);
    if (length == 0 || length > DOMUS_CLUSTER_NAME_MAX || count > DOMUS_CLUSTER_NODES_MAX ||
        size != BEAT_HEAD + length + 8 * count)
        return false;
    domi_heartbeat beat = {
        .gateways = (uint16_t)get_little_endian_number(bytes + 4, 2),
        .state = bytes[6],
        .hosts_grains = (get_little_endian_number(bytes + 28, 4) & HOSTS_GRAINS) != 0,
        .id = get_little_endian_number(bytes + 8, 8),
        .incarnation = get_little_endian_number(bytes + 16, 8),
        .heard_count = (uint32_t)count,
        .heard = bytes + BEAT_HEAD + length,
    };
    memcpy(beat.name, bytes + BEAT_HEAD, length);
    if (beat.id == 0 || beat.gateways == 0 || beat.state < DOMI_BEAT_UP ||
        beat.state > DOMI_BEAT_LEFT || strlen(beat.name) != length)
        return false;
    *ret_beat = beat;
    return true;
}

bool domi_heartbeat_lists_node(const domi_heartbeat *beat, uint64_t id)
{
    for (uint32_t i = 0; i < beat->heard_count; i++) {
        if (get_little_endian_number(beat->heard + (size_t)8 * i, 8) == id)
            return true;
    }
    return false;
}

/* --- batches ---------------------------------------------------------------------------------- */

void domi_batch_foot_write(const domi_batch_foot *foot, unsigned char *bytes)
{
    memcpy(bytes, batch_magic, sizeof batch_magic);
    put_little_endian_number(bytes + 4, foot->gateway, 2);
    put_little_endian_number(bytes + 6, foot->flags, 2);
    put_little_endian_number(bytes + 8, foot->from, 8);
    put_little_endian_number(bytes + 16, foot->to, 8);
    put_little_endian_number(bytes + 24, foot->session, 8);
    put_little_endian_number(bytes + 32, foot->number, 8);
    put_little_endian_number(bytes + 40, foot->last, 8);
    put_little_endian_number(bytes + 48, foot->confirmed_session, 8);
    put_little_endian_number(bytes + 56, foot->confirmed, 8);
}

bool domi_batch_foot_read(const unsigned char *batch, uint32_t size, domi_batch_foot *ret_foot)
{
    if (size < DOMI_BATCH_FOOT)
        return false;
    const unsigned char *bytes = batch + size - DOMI_BATCH_FOOT;
    if (memcmp(bytes, batch_magic, sizeof batch_magic) != 0)
        return false;
    domi_batch_foot foot = {
        .gateway = (uint16_t)get_little_endian_number(bytes + 4, 2),
        .flags = (uint16_t)get_little_endian_number(bytes + 6, 2),
        .from = get_little_endian_number(bytes + 8, 8),
        .to = get_little_endian_number(bytes + 16, 8),
        .session = get_little_endian_number(bytes + 24, 8),
        .number = get_little_endian_number(bytes + 32, 8),
        .last = get_little_endian_number(bytes + 40, 8),
        .confirmed_session = get_little_endian_number(bytes + 48, 8),
        .confirmed = get_little_endian_number(bytes + 56, 8),
    };
    /* A batch whose number is 0 must have no envelopes. */
    if (foot.from == 0 || foot.session == 0 || foot.number > foot.last ||
        (foot.number == 0) != (size == DOMI_BATCH_FOOT))
        return false;
    *ret_foot = foot;
    return true;
}

/* --- envelopes -------------------------------------------------------------------------------- */

int domi_envelope_append(domus_appender *batch, const domi_wire_envelope *envelope)
{
    unsigned char head[DOMI_ENVELOPE_BYTES];

    put_little_endian_number(head, DOMI_ENVELOPE_BYTES + envelope->rest_size, 4);
    put_little_endian_number(head + 4, envelope->kind, 2);
    put_little_endian_number(head + 6, envelope->from.home, 2);
    put_little_endian_number(head + 8, envelope->from.number, 4);
    put_little_endian_number(head + 12, envelope->from.lease, 4);
    put_little_endian_number(head + 16, envelope->to.number, 4);
    put_little_endian_number(head + 20, envelope->to.lease, 4);
    put_little_endian_number(head + 24, envelope->to.home, 2);
    put_little_endian_number(head + 26, 0, 2);
    put_little_endian_number(head + 28, (uint32_t)envelope->error, 4);
    put_little_endian_number(head + 32, envelope->id, 8);
    put_little_endian_number(head + 40, envelope->time_ns, 8);
    put_little_endian_number(head + 48, envelope->from.node, 8);
    (void)domus_append(batch, head, sizeof head);
    return domus_append(batch, envelope->rest, envelope->rest_size);
}

bool domi_envelope_read(const unsigned char *bytes, uint32_t size, uint32_t *at,
                        domi_wire_envelope *ret_envelope)
{
    const unsigned char *head = bytes + *at;

    if (size - *at < DOMI_ENVELOPE_BYTES)
        return false;
    uint32_t whole = (uint32_t)get_little_endian_number(head, 4);
    if (whole < DOMI_ENVELOPE_BYTES || whole > size - *at)
        return false;
    domi_wire_envelope envelope = {
        .kind = head[4],
        .from = {.node = get_little_endian_number(head + 48, 8),
                 .home = (uint16_t)get_little_endian_number(head + 6, 2),
                 .number = (uint32_t)get_little_endian_number(head + 8, 4),
                 .lease = (uint32_t)get_little_endian_number(head + 12, 4)},
        .to = {.number = (uint32_t)get_little_endian_number(head + 16, 4),
               .lease = (uint32_t)get_little_endian_number(head + 20, 4),
               .home = (uint16_t)get_little_endian_number(head + 24, 2)},
        .error = (int32_t)(uint32_t)get_little_endian_number(head + 28, 4),
        .id = get_little_endian_number(head + 32, 8),
        .time_ns = get_little_endian_number(head + 40, 8),
        .rest = head + DOMI_ENVELOPE_BYTES,
        .rest_size = whole - DOMI_ENVELOPE_BYTES,
    };
    if (envelope.kind == 0 || envelope.kind >= DOMI_TO_KINDS || head[5] != 0)
        return false;
    *at += whole;
    *ret_envelope = envelope;
    return true;
}

/* --- names ------------------------------------------------------------------------------------ */

void domi_remote_name_write(const domus_remote_name *name, unsigned char *bytes)
{
    put_little_endian_number(bytes, name->node, 8);
    put_little_endian_number(bytes + 8, name->number, 4);
    put_little_endian_number(bytes + 12, name->lease, 4);
    put_little_endian_number(bytes + 16, name->home, 2);
}

void domi_remote_name_read(const unsigned char *bytes, domus_remote_name *ret_name)
{
    *ret_name = (domus_remote_name){
        .node = get_little_endian_number(bytes, 8),
        .number = (uint32_t)get_little_endian_number(bytes + 8, 4),
        .lease = (uint32_t)get_little_endian_number(bytes + 12, 4),
        .home = (uint16_t)get_little_endian_number(bytes + 16, 2),
    };
}
