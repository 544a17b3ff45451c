/* The bytes between nodes: heartbeats, and batches of envelopes. All numbers are little-endian, at
 * fixed places. Reading trusts nothing: a function returns false for bytes that cannot be.
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
    uint64_t incarnation; /* grows with each start of a node of this name */
    uint16_t gateways;
    uint8_t state; /* enum domi_heartbeat_state */
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
    bool hosts_grains;    /* the node may have parts of grains */
    uint32_t heard_count; /* nodes that it hears; its heartbeat is larger by 8 bytes for each */
    const unsigned char *heard; /* their ids, where they were read from */
} domi_heartbeat;

#define DOMI_HEARTBEAT_MAX (96u + 8u * DOMUS_CLUSTER_NODES_MAX) /* bytes */

/* Write a heartbeat; `heard` are the ids that it names. Returns its bytes, DOMI_HEARTBEAT_MAX at
 * most. */
uint32_t domi_heartbeat_write(const domi_heartbeat *beat, const uint64_t *heard,
                              unsigned char *bytes);
bool domi_heartbeat_read(const unsigned char *bytes, uint32_t size, domi_heartbeat *ret_beat);

/* True if the heartbeat says that this id is heard. */
bool domi_heartbeat_hears(const domi_heartbeat *beat, uint64_t id);

/* --- batches ---------------------------------------------------------------------------------- */

/* A batch is a row of envelopes and, at its end, a foot: what that says is known last. */
#define DOMI_BATCH_FOOT 64u
#define DOMI_BATCH_MAX  (960u * 1024u) /* bytes; a server takes 1 MiB */

/* The other side regards the session that is confirmed as over. */
#define DOMI_BATCH_RESET 1u
/* Batches behind the one that is confirmed are missing. */
#define DOMI_BATCH_MISSING 2u
/* The other side is to confirm at once. */
#define DOMI_BATCH_PROBE 4u

typedef struct domi_batch_foot {
    uint64_t from, to; /* ids of nodes */
    uint16_t gateway;  /* of the sender */
    uint16_t flags;
    uint64_t session;           /* the session of this direction */
    uint64_t number;            /* of the batch in its session, from 1; 0: it has no envelopes */
    uint64_t last;              /* number of the last batch that was sent in the session */
    uint64_t confirmed_session; /* of the other direction */
    uint64_t confirmed;         /* all batches up to this number have come */
} domi_batch_foot;

void domi_batch_foot_write(const domi_batch_foot *foot, unsigned char *bytes);
bool domi_batch_foot_read(const unsigned char *batch, uint32_t size, domi_batch_foot *ret_foot);

/* --- envelopes -------------------------------------------------------------------------------- */

enum domi_kind_of_envelope {
    DOMI_TO_NOTICE = 1, /* the rest is the message */
    DOMI_TO_ASK,        /* `id`, `time_ns` (0: no time-out), the message */
    DOMI_TO_REPLY,      /* `id`, the message */
    DOMI_TO_FAIL,       /* `id`, `error` */
    DOMI_TO_CANCEL,     /* `id` */
    DOMI_TO_WATCH,      /* `to` is watched */
    DOMI_TO_DOWN,       /* `from` has ended, with `error` */
    DOMI_TO_STOP,       /* `to` */
    DOMI_TO_STOP_LAST,  /* `to`, behind its mail */
    DOMI_TO_SPAWN,      /* `id`, `time_ns`, a name with its length before it, the input */
    DOMI_TO_SPAWNED,    /* `id`, `from` is the new actor */
    DOMI_TO_ARE_ALIVE,  /* names of 16 bytes: who of these has ended? The answer are DOWNs */
    DOMI_TO_PUBLISH,    /* a message, the name of its group, and the length of that in a byte */
    DOMI_TO_INTEREST,   /* changes `time_ns` + 1 to `id` of the groups that have members (wide.h) */
    DOMI_TO_HELD,       /* `id`: all such changes up to this one have come */
    /* The rest of these begins with the grain (grains.c). */
    DOMI_TO_GRAIN_NOTICE, /* the message */
    DOMI_TO_GRAIN_ASK,    /* `id`, `time_ns`, the message */
    DOMI_TO_RETURN,       /* a message of the kind `error` was not taken, and comes back */
    DOMI_TO_FENCE,  /* all that was sent for the part `id` came before this: what is not taken is to
                       be returned before the answer */
    DOMI_TO_FENCED, /* the answer: `id` */
    DOMI_TO_DOUBT,  /* messages wait for the part `id`, which the receiver is to have */
    DOMI_TO_KINDS,
};

#define DOMI_ENVELOPE_BYTES 56u /* bytes before the rest */

typedef struct domi_wire_envelope {
    uint8_t kind;
    int32_t error;
    domus_remote_name from; /* the sender; a lease of 0: it has none */
    domus_remote_name to;   /* without a node: it lives where the batch goes */
    uint64_t id;
    uint64_t time_ns;
    const unsigned char *rest; /* the bytes behind the envelope, where they were read */
    uint32_t rest_size;
} domi_wire_envelope;

/* Append an envelope with its rest to a batch. Returns 0; -ENOMEM; -EMSGSIZE. */
int domi_envelope_append(domus_appender *batch, const domi_wire_envelope *envelope);

/* Read the envelope at `*at`, and move `*at` behind it. */
bool domi_envelope_read(const unsigned char *bytes, uint32_t size, uint32_t *at,
                        domi_wire_envelope *ret_envelope);

/* --- names ------------------------------------------------------------------------------------ */

#define DOMI_NAME_BYTES 18u /* of a name with its node */

void domi_name_write(const domus_remote_name *name, unsigned char *bytes);
void domi_name_read(const unsigned char *bytes, domus_remote_name *ret_name);

#endif
