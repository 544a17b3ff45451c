/* The bytes between nodes: heartbeats, and batches of envelopes. All numbers are little-endian, at
 * fixed places. Reading trusts nothing: a function returns false for invalid bytes.
 *
 * Any thread; nothing here has a state. */
#ifndef DOMI_CLUSTER_WIRE_H
#define DOMI_CLUSTER_WIRE_H

#include <domus/cluster.h>
#include <domus/remote.h>

/* --- heartbeats ------------------------------------------------------------------------------- */

enum domi_heartbeat_state { DOMI_BEAT_UP = 1, DOMI_BEAT_LEAVING = 2, DOMI_BEAT_LEFT = 3 };

typedef struct domi_heartbeat {
    uint64_t id;
    /* number of the node's start: it grows with each start of a node with this name */
    uint64_t incarnation;
    uint16_t gateways;
    uint8_t state; /* state of the node: enum domi_heartbeat_state */
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
    bool hosts_grains; /* the node may have parts of the grains */
    /* number of other nodes that the heartbeat lists as heard; each takes 8 further bytes */
    uint32_t heard_count;
    /* ids of the nodes that the heartbeat lists as heard, in the bytes that were read */
    const unsigned char *heard;
} domi_heartbeat;

/* bytes of a heartbeat, at most */
#define DOMI_HEARTBEAT_MAX (96u + 8u * DOMUS_CLUSTER_NODES_MAX)

/* Write a heartbeat into `bytes`; `heard` are the ids of the nodes that it lists as heard. Returns
 * its size, at most DOMI_HEARTBEAT_MAX. */
uint32_t domi_heartbeat_write(const domi_heartbeat *beat, const uint64_t *heard,
                              unsigned char *bytes);
bool domi_heartbeat_read(const unsigned char *bytes, uint32_t size, domi_heartbeat *ret_beat);

/* Returns whether the heartbeat lists the node with this id as heard. */
bool domi_heartbeat_lists_node(const domi_heartbeat *beat, uint64_t id);

/* --- batches ---------------------------------------------------------------------------------- */

/* Bytes of a batch's foot. A batch is a row of envelopes with a foot at its end, because what the
 * foot says is known only when the batch is sent. */
#define DOMI_BATCH_FOOT 64u
/* bytes of a batch, at most; a NATS server accepts messages of 1 MiB */
#define DOMI_BATCH_MAX (960u * 1024u)

/* Flag of a batch's foot: the sender treats the session that the foot confirms as over. */
#define DOMI_BATCH_RESET 1u
/* Flag of a batch's foot: batches behind the confirmed one are missing. */
#define DOMI_BATCH_MISSING 2u
/* Flag of a batch's foot: the receiver must confirm at once. */
#define DOMI_BATCH_PROBE 4u

typedef struct domi_batch_foot {
    uint64_t from, to; /* ids of the node that sends the batch, and of the node that receives it */
    uint16_t gateway;  /* index of the gateway that sends the batch */
    uint16_t flags;
    uint64_t session; /* session of the direction in which the batch is sent */
    /* number of the batch in its session, from 1; 0: the batch has no envelopes */
    uint64_t number;
    uint64_t last;              /* number of the last batch that was sent in the same session */
    uint64_t confirmed_session; /* session of the opposite direction, whose batches are confirmed */
    uint64_t confirmed;         /* all batches of `confirmed_session` up to this number have come */
} domi_batch_foot;

void domi_batch_foot_write(const domi_batch_foot *foot, unsigned char *bytes);
bool domi_batch_foot_read(const unsigned char *batch, uint32_t size, domi_batch_foot *ret_foot);

/* --- envelopes -------------------------------------------------------------------------------- */

enum domi_kind_of_envelope {
    DOMI_TO_NOTICE = 1, /* envelope of a notice: the rest is the message */
    DOMI_TO_ASK,        /* envelope of an ask: `id`, `time_ns` (0: no time-out), the message */
    DOMI_TO_REPLY,      /* envelope of a reply to an ask: `id`, the message */
    DOMI_TO_FAIL,       /* envelope of the failure of an ask: `id`, `error` */
    DOMI_TO_CANCEL,     /* envelope of the cancel of an ask: `id` */
    DOMI_TO_WATCH,      /* envelope: the actor `to` is to be watched for the sender */
    DOMI_TO_DOWN,       /* envelope: the watched actor `from` has ended, with `error` */
    DOMI_TO_STOP,       /* envelope: the actor `to` must stop */
    DOMI_TO_STOP_LAST,  /* envelope: the actor `to` must stop when it has handled its mail */
    /* envelope: spawn an actor: `id`, `time_ns`, a name with its length before it, the input */
    DOMI_TO_SPAWN,
    DOMI_TO_SPAWNED, /* envelope: a spawn has succeeded: `id`, `from` is the new actor */
    /* envelope: which of these actors, names of 16 bytes, have ended? a DOWN answers for each */
    DOMI_TO_ARE_ALIVE,
    /* envelope of a publication: a message, the name of its group, and the length of the name in a
     * byte */
    DOMI_TO_PUBLISH,
    /* envelope with changes `time_ns` + 1 to `id` of the groups that have members (wide.h) */
    DOMI_TO_INTEREST,
    DOMI_TO_HELD, /* envelope of a confirmation: all changes of groups up to `id` have come */
    /* In all kinds of envelopes below, the rest begins with the name of the grain (grains.c). */
    DOMI_TO_GRAIN_NOTICE, /* envelope of a notice to a grain: the message */
    DOMI_TO_GRAIN_ASK,    /* envelope of an ask to a grain: `id`, `time_ns`, the message */
    /* envelope: a message to a grain, of the kind `error`, was not accepted and is returned */
    DOMI_TO_RETURN,
    /* envelope of a fence: all messages for the part `id` were sent before it, and those that are
     * not accepted must be returned before it is answered */
    DOMI_TO_FENCE,
    DOMI_TO_FENCED, /* envelope of the answer to a fence of the part `id` */
    /* envelope: messages wait for the part `id`, which the receiver should have, and may not
     * know of */
    DOMI_TO_DOUBT,
    DOMI_TO_KINDS,
};

#define DOMI_ENVELOPE_BYTES 56u /* bytes of the fixed part of an envelope, before its rest */

typedef struct domi_wire_envelope {
    uint8_t kind;
    int32_t error;
    domus_remote_name from; /* name of the envelope's sender; a lease of 0: it has none */
    /* Name of the receiver. Its node is left out, because the whole batch goes to that node. */
    domus_remote_name to;
    uint64_t id;
    uint64_t time_ns;
    /* bytes behind the fixed part of the envelope, in the batch that was read */
    const unsigned char *rest;
    uint32_t rest_size;
} domi_wire_envelope;

/* Append an envelope, and its rest behind it, to a batch. Returns 0; -ENOMEM; -EMSGSIZE. */
int domi_envelope_append(domus_appender *batch, const domi_wire_envelope *envelope);

/* Read the envelope at offset `*at` of a batch, and move `*at` behind it. Returns false if it is
 * invalid. */
bool domi_envelope_read(const unsigned char *bytes, uint32_t size, uint32_t *at,
                        domi_wire_envelope *ret_envelope);

/* --- names ------------------------------------------------------------------------------------ */

#define DOMI_NAME_BYTES 18u /* bytes of an actor's name on the wire, with the id of its node */

void domi_remote_name_write(const domus_remote_name *name, unsigned char *bytes);
void domi_remote_name_read(const unsigned char *bytes, domus_remote_name *ret_name);

#endif
