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
 * When one side gives up (domi_link_break()), its session is over: what was not confirmed is lost,
 * and the next session begins. It also treats the other side's session as over, and tells so
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

/* Bytes of a batch from which on it is full, so that nothing is added. */
#define DOMI_LINK_FULL (64u * 1024u)

/* A batch that was sent and is not confirmed. */
typedef struct domi_link_batch {
    domus_slice bytes;
    uint64_t sent_ns;
    uint32_t messages;
    bool resent;
} domi_link_batch;

typedef struct domi_link {
    uint64_t here, there; /* ids of this node and of the other node */
    uint16_t gateway;     /* index of this side's gateway */

    /* Members for sending to the other side. */
    uint64_t session;
    uint64_t last;         /* number of the last batch that was sent */
    uint64_t confirmed;    /* number of the last batch that was confirmed, with all before it */
    domi_link_batch *kept; /* batches after `confirmed`: number n lies at n & (kept_room - 1) */
    uint32_t kept_room;    /* places in `kept`: 0, or a power of two */
    domus_appender next;   /* the batch that is being built */
    uint32_t next_messages;
    uint32_t torn_messages; /* messages that were lost for want of memory */
    bool is_torn;           /* messages were lost, so domi_link_break() must follow */
    uint64_t queued_bytes;  /* bytes of the kept batches and of the next one */
    uint64_t waits_ns;      /* time since which the oldest kept batch is unconfirmed; 0: none is */
    uint64_t resend_ns;     /* time at which all kept batches are sent again; 0: never */
    uint32_t resends;       /* times in a row that batches were sent again without a confirmation */
    uint64_t rtt_ns;        /* round trip of the last batch that was confirmed; 0: none yet */

    /* Members for receiving from the other side. */
    uint64_t their_session; /* the other side's session; 0: nothing has come yet */
    uint64_t their_last;    /* number of the last batch that was taken */
    uint64_t over_session;  /* sessions of the other side up to this one are over */
    bool is_broken;         /* this side has given up, and has not received the next session yet */
    uint32_t owed;          /* batches that were taken and not confirmed yet */
    bool owes;              /* send a confirmation at the next flush, even if none is owed */
    bool misses;            /* batches from the other side are missing */
    bool resets;            /* tell the other side that its session is over */
    uint64_t reset_session; /* the session that is over */
} domi_link;

void domi_link_init(domi_link *link, uint64_t here, uint64_t there, uint16_t gateway);

/* Free everything that the link holds. */
void domi_link_fini(domi_link *link);

/* Add an envelope to the next batch. Returns 0; -EMSGSIZE when it fits into no batch; -ENOBUFS when
 * it fits after a flush; -EHOSTDOWN while the link is broken; -ENOMEM, and the link is torn if
 * earlier envelopes are lost, too. */
int domi_link_add(domi_link *link, const domi_wire_envelope *envelope);

/* Mark the link as torn, because something that the other side must not miss could not be added. */
static inline void domi_link_tear(domi_link *link)
{
    link->is_torn = !link->is_broken;
}

/* Returns whether the next batch is full, and should be sent at once. */
static inline bool domi_link_is_full(const domi_link *link)
{
    return link->next.size >= DOMI_LINK_FULL;
}

/* Get the next batch to be sent; if there is none, and a confirmation is due (or wanted by
 * `probes`), a batch without envelopes. The caller owns and publishes it. Returns 1; 0: there is
 * nothing to send; -ENOMEM: nothing to send now, and it is tried again at the next call, or the
 * link is torn. */
int domi_link_flush(domi_link *link, uint64_t now_ns, bool probes, domus_slice *ret_batch);

/* Get the batches that are to be sent again now, one with each call; `*cursor` begins as 0. With
 * `all`, also those that are not due. Returns 1; 0: there is no further one; -ENOMEM. */
int domi_link_resend(domi_link *link, uint64_t now_ns, bool all, uint64_t *cursor,
                     domus_slice *ret_batch);

/* The meaning of a received batch for the link. */
typedef struct domi_link_news {
    bool takes;   /* its envelopes are to be handled */
    bool renewed; /* the other side has begun a new session, so everything of its old one is over */
    /* the peer treats this side's session as over, so domi_link_break() must follow */
    bool is_over;
    bool confirms; /* a batch of this side was confirmed */
} domi_link_news;

/* Handle the foot of a batch that has come. */
domi_link_news domi_link_receive(domi_link *link, const domi_batch_foot *foot, uint64_t now_ns);

/* End the session of this side, and, unless the other side has ended it (`is_told`), treat the
 * other side's session as over. Returns how many messages are lost. */
uint64_t domi_link_break(domi_link *link, bool is_told);

#endif
