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
    uint64_t incarnation; /* number that grows with each start of a node with this name */
    uint16_t gateways;
    uint8_t state; /* state: enum domi_heartbeat_state */
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
    bool hosts_grains;          /* the node may have parts of grains */
    uint32_t heard_count;       /* number of nodes that it hears; each takes 8 further bytes */
    const unsigned char *heard; /* ids of those nodes, in the bytes that were read */
} domi_heartbeat;

/* bytes of a heartbeat, at most */
#define DOMI_HEARTBEAT_MAX (96u + 8u * DOMUS_CLUSTER_NODES_MAX)

/* Write a heartbeat; `heard` are the ids that it contains. Returns its bytes, at most
 * DOMI_HEARTBEAT_MAX. */
uint32_t domi_heartbeat_write(const domi_heartbeat *beat, const uint64_t *heard,
                              unsigned char *bytes);
bool domi_heartbeat_read(const unsigned char *bytes, uint32_t size, domi_heartbeat *ret_beat);

/* Returns whether the heartbeat tells that the node with this id is heard. */
bool domi_heartbeat_hears(const domi_heartbeat *beat, uint64_t id);

/* --- batches ---------------------------------------------------------------------------------- */

/* A batch is a row of envelopes with a foot at its end, because the foot is only known last. */
#define DOMI_BATCH_FOOT 64u
#define DOMI_BATCH_MAX  (960u * 1024u) /* bytes of a batch, at most; a server accepts 1 MiB */

/* Flag: the sender treats the session that is confirmed as over. */
#define DOMI_BATCH_RESET 1u
/* Flag: batches behind the one that is confirmed are missing. */
#define DOMI_BATCH_MISSING 2u
/* Flag: the other side must confirm at once. */
#define DOMI_BATCH_PROBE 4u

typedef struct domi_batch_foot {
    uint64_t from, to; /* ids of the sending and of the receiving node */
    uint16_t gateway;  /* gateway of the sender */
    uint16_t flags;
    uint64_t session; /* session of this direction */
    /* number of the batch in its session, from 1; 0: it has no envelopes */
    uint64_t number;
    uint64_t last;              /* number of the last batch that was sent in the session */
    uint64_t confirmed_session; /* session of the other direction that is confirmed */
    uint64_t confirmed;         /* all batches of that session up to this number have come */
} domi_batch_foot;

void domi_batch_foot_write(const domi_batch_foot *foot, unsigned char *bytes);
bool domi_batch_foot_read(const unsigned char *batch, uint32_t size, domi_batch_foot *ret_foot);

/* --- envelopes -------------------------------------------------------------------------------- */

enum domi_kind_of_envelope {
    DOMI_TO_NOTICE = 1, /* a notice; the rest is the message */
    DOMI_TO_ASK,        /* an ask: `id`, `time_ns` (0: no time-out), the message */
    DOMI_TO_REPLY,      /* an answer: `id`, the message */
    DOMI_TO_FAIL,       /* a failure: `id`, `error` */
    DOMI_TO_CANCEL,     /* a cancel: `id` */
    DOMI_TO_WATCH,      /* `to` is to be watched */
    DOMI_TO_DOWN,       /* the watched actor `from` has ended, with `error` */
    DOMI_TO_STOP,       /* `to` must stop */
    DOMI_TO_STOP_LAST,  /* `to` must stop behind its mail */
    DOMI_TO_SPAWN,      /* a spawn: `id`, `time_ns`, a name with its length before it, the input */
    DOMI_TO_SPAWNED,    /* a spawn was done: `id`, `from` is the new actor */
    DOMI_TO_ARE_ALIVE,  /* a question: names of 16 bytes; a DOWN answers for each that has ended */
    /* a publication: a message, the name of its group, and the length of the name in a byte */
    DOMI_TO_PUBLISH,
    DOMI_TO_INTEREST, /* changes `time_ns` + 1 to `id` of the groups that have members (wide.h) */
    DOMI_TO_HELD,     /* a confirmation: all such changes up to `id` have come */
    /* In all kinds below, the rest begins with the grain (grains.c). */
    DOMI_TO_GRAIN_NOTICE, /* a notice to a grain: the message */
    DOMI_TO_GRAIN_ASK,    /* an ask to a grain: `id`, `time_ns`, the message */
    DOMI_TO_RETURN,       /* a message of the kind `error` was not accepted, and is returned */
    /* a fence: all messages for the part `id` were sent before it, and those that are not
     * accepted must be returned before the answer */
    DOMI_TO_FENCE,
    DOMI_TO_FENCED, /* the answer to a fence: `id` */
    DOMI_TO_DOUBT,  /* messages wait for the part `id`, which the receiver should have */
    DOMI_TO_KINDS,
};

#define DOMI_ENVELOPE_BYTES 56u /* bytes of an envelope before its rest */

typedef struct domi_wire_envelope {
    uint8_t kind;
    int32_t error;
    domus_remote_name from; /* name of the sender; a lease of 0: there is none */
    /* name of the receiver, without its node, which is where the batch goes */
    domus_remote_name to;
    uint64_t id;
    uint64_t time_ns;
    const unsigned char *rest; /* bytes behind the envelope, in the batch that was read */
    uint32_t rest_size;
} domi_wire_envelope;

/* Append an envelope with its rest to a batch. Returns 0; -ENOMEM; -EMSGSIZE. */
int domi_envelope_append(domus_appender *batch, const domi_wire_envelope *envelope);

/* Read the envelope at `*at`, and move `*at` behind it. Returns false if it is invalid. */
bool domi_envelope_read(const unsigned char *bytes, uint32_t size, uint32_t *at,
                        domi_wire_envelope *ret_envelope);

/* --- names ------------------------------------------------------------------------------------ */

#define DOMI_NAME_BYTES 18u /* bytes of a name with its node */

void domi_name_write(const domus_remote_name *name, unsigned char *bytes);
void domi_name_read(const unsigned char *bytes, domus_remote_name *ret_name);

#endif
