/* A link: the batches from one gateway to one gateway of another node, and back. Over a broker that
 * may lose messages, it delivers them in order, each once.
 *
 * Each direction is a *session*, in which batches are numbered from 1. The sender keeps each batch
 * until the other side has confirmed it, and sends all kept batches again when the other side
 * reports that some are missing, when its own connection was made anew, or when nothing was
 * confirmed for a time that doubles. The receiver accepts batches only in the order of their
 * numbers, each once. Every batch confirms the other direction; if there is none to send, one
 * without envelopes does.
 *
 * When one side gives up (domi_link_end_session()), its session is over: what was not confirmed is
 * lost, and the next session begins. It also treats the other side's session as over, and tells so
 * (DOMI_BATCH_RESET) with each probe and in answer to every batch of that session that still comes.
 * Until it has received the other side's next session it sends nothing else: an ask that was
 * accepted there now would be answered in a session that is about to end. So both sides learn of
 * it, in whatever order they reach each other again, and nothing of an old session is accepted in a
 * new one.
 *
 * A link does no IO and reads no clock. Only its gateway uses it. */
#ifndef DOMI_CLUSTER_LINK_H
#define DOMI_CLUSTER_LINK_H

#include "protocols/cluster/wire.h"

/* Size of a link's next batch, in bytes, from which on no envelope is added to it. */
#define DOMI_LINK_FULL (64u * 1024u)

/* A batch of a link that was sent and is not confirmed by the other side yet. */
typedef struct domi_link_batch {
    domus_slice bytes;
    uint64_t sent_ns;
    uint32_t messages;
    bool resent;
} domi_link_batch;

typedef struct domi_link {
    uint64_t here, there; /* ids of this node, and of the node at the other end of the link */
    uint16_t gateway;     /* index of the gateway at this end of the link */

    /* Members for the direction in which this side sends. */
    uint64_t session;
    uint64_t last; /* number of the last batch that this side has sent */
    /* number up to which the other side has confirmed the batches of this side */
    uint64_t confirmed;
    /* batches that were sent and not confirmed: number n lies at n & (kept_room - 1) */
    domi_link_batch *kept;
    uint32_t kept_room;  /* number of places in the array `kept`: 0, or a power of two */
    domus_appender next; /* the batch that is being built, and is sent at the next flush */
    uint32_t next_messages;
    uint32_t torn_messages; /* number of messages that this link has lost as memory was short */
    bool is_torn;           /* the link has lost messages, so domi_link_end_session() must follow */
    uint64_t queued_bytes;  /* bytes of the batches in `kept` and of the one that is being built */
    /* time since which batches in `kept` wait for a confirmation; 0: none is kept */
    uint64_t waits_ns;
    uint64_t resend_ns; /* time at which all batches in `kept` are sent again; 0: never */
    /* times in a row that the batches in `kept` were sent again, and no confirmation came */
    uint32_t resends;
    uint64_t rtt_ns; /* round trip time of the last batch that was confirmed; 0: none was yet */

    /* Members for the direction in which the other side sends. */
    uint64_t their_session; /* number of the other side's session; 0: no batch of it has come yet */
    uint64_t their_last;    /* number of the last batch of the other side that was accepted */
    uint64_t over_session;  /* all sessions of the other side up to this number are over */
    /* this side has given up its session, and the other side has not begun a new one yet */
    bool is_broken;
    uint32_t owed; /* number of batches that were accepted and are not confirmed yet */
    bool owes;     /* a confirmation must be sent at the next flush, even if `owed` is 0 */
    bool misses;   /* batches of the other side are missing, and the other side must be told so */
    bool resets;   /* the other side must be told that its session `reset_session` is over */
    uint64_t reset_session; /* the session of the other side that is over, while `resets` is set */
} domi_link;

void domi_link_init(domi_link *link, uint64_t here, uint64_t there, uint16_t gateway);

/* Free everything that the link holds: its kept batches, and the batch that is being built. */
void domi_link_fini(domi_link *link);

/* Add an envelope to the batch that is being built. Returns 0; -EMSGSIZE when it fits into no
 * batch; -ENOBUFS when it fits after a flush; -EHOSTDOWN while the link is broken; -ENOMEM, and the
 * link is torn if earlier envelopes are lost, too. */
int domi_link_add_envelope(domi_link *link, const domi_wire_envelope *envelope);

/* Mark the link as torn, because something that the other side must not miss could not be added. */
static inline void domi_link_mark_torn(domi_link *link)
{
    link->is_torn = !link->is_broken;
}

/* Returns whether the batch that is being built is full, so that it should be sent at once. */
static inline bool domi_link_is_next_batch_full(const domi_link *link)
{
    return link->next.size >= DOMI_LINK_FULL;
}

/* Get the next batch to be sent: the one that was built, or else, if a confirmation is due (or
 * wanted by `probes`), one without envelopes. The caller owns and publishes it. Returns 1; 0: there
 * is nothing to send; -ENOMEM: nothing can be sent now, and either the next call tries again or the
 * link is torn. */
int domi_link_get_next_batch(domi_link *link, uint64_t now_ns, bool probes, domus_slice *ret_batch);

/* Get the kept batches that are to be sent again now, one with each call; `*cursor` begins as 0.
 * With `all`, kept batches that are not due are sent again, too. Returns 1; 0: all were returned;
 * -ENOMEM. */
int domi_link_get_batch_to_resend(domi_link *link, uint64_t now_ns, bool all, uint64_t *cursor,
                                  domus_slice *ret_batch);

/* The consequences of a received batch, which the gateway acts on. */
typedef struct domi_link_news {
    bool takes; /* the envelopes of the received batch are to be handled */
    /* the other side has begun a new session, so everything of its old session is over */
    bool renewed;
    /* the other side treats this side's session as over, so domi_link_end_session() must follow */
    bool is_over;
    /* the received batch has confirmed batches of this side that were not confirmed yet */
    bool confirms;
} domi_link_news;

/* Handle the foot of a batch that has come over the link. Returns what the gateway must do. */
domi_link_news domi_link_update_by_received_foot(domi_link *link, const domi_batch_foot *foot,
                                                 uint64_t now_ns);

/* End the session of this side; and unless the other side has ended it first (`is_told`), treat the
 * other side's session as over, too. Returns how many messages are lost. */
uint64_t domi_link_end_session(domi_link *link, bool is_told);

#endif
