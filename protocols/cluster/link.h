/* A link: the batches from one gateway to one gateway of another node, and back. It makes a row of
 * messages that come in order, each once, out of a broker that may lose them.
 *
 * Each direction is a *session*, in which batches are numbered from 1. The sender keeps each batch
 * until the other side has confirmed it, and sends all that it keeps again when the other side says
 * that some are missing, when its own connection was made anew, or when nothing was confirmed for
 * a time that doubles. The receiver takes batches in the order of their numbers only, and each
 * once. Every batch confirms the other direction; if there is none to send, one without envelopes
 * does.
 *
 * When one side gives up (domi_link_break()), its session is over: what was not confirmed is lost,
 * and the next session begins. It also regards the other side's session as over, and says so
 * (DOMI_BATCH_RESET) with each probe and to every batch of that session that still comes. Until it
 * has heard the other side's next session it sends nothing else: an ask that was taken there now
 * would be answered in a session that is about to end. So both sides learn of it, in whatever order
 * they hear each other again, and nothing of an old session is taken in a new one.
 *
 * A link does no IO and reads no clock. Its gateway alone uses it. */
#ifndef DOMI_CLUSTER_LINK_H
#define DOMI_CLUSTER_LINK_H

#include "protocols/cluster/wire.h"

/* Bytes from which on a batch is not added to. */
#define DOMI_LINK_FULL (64u * 1024u)

/* A batch that is not confirmed. */
typedef struct domi_link_batch {
    domus_slice bytes;
    uint64_t sent_ns;
    uint32_t messages;
    bool resent;
} domi_link_batch;

typedef struct domi_link {
    uint64_t here, there; /* ids of the nodes */
    uint16_t gateway;     /* of this side */

    /* To the other side. */
    uint64_t session;
    uint64_t last;         /* number of the last batch that was sent */
    uint64_t confirmed;    /* all up to this one are confirmed */
    domi_link_batch *kept; /* batches after `confirmed`: number n lies at n & (kept_room - 1) */
    uint32_t kept_room;    /* 0, or a power of two */
    domus_appender next;   /* the batch that is being built */
    uint32_t next_messages;
    uint32_t torn_messages; /* lost for want of memory */
    bool is_torn;           /* something is lost: domi_link_break() has to follow */
    uint64_t queued_bytes;  /* of all these */
    uint64_t waits_ns;      /* since when the oldest one is not confirmed; 0: all are */
    uint64_t resend_ns;     /* when all are sent again; 0: never */
    uint32_t resends;       /* in a row, without a confirmation */
    uint64_t rtt_ns;        /* of the last batch that was confirmed; 0: none yet */

    /* From the other side. */
    uint64_t their_session; /* 0: nothing has come yet */
    uint64_t their_last;    /* number of the last batch that was taken */
    uint64_t over_session;  /* sessions up to this one are over */
    bool is_broken;         /* this side has given up, and has not heard the next session yet */
    uint32_t owed;          /* batches that were taken and not confirmed yet */
    bool owes;              /* confirm at the next flush, whatever is owed */
    bool misses;            /* batches are missing */
    bool resets;            /* tell the other side that its session is over */
    uint64_t reset_session; /* which */
} domi_link;

void domi_link_init(domi_link *link, uint64_t here, uint64_t there, uint16_t gateway);

/* Free all that it holds. */
void domi_link_fini(domi_link *link);

/* Add an envelope to the next batch. Returns 0; -EMSGSIZE when it fits into no batch; -ENOBUFS when
 * it fits behind a flush; -EHOSTDOWN while the link is broken; -ENOMEM, and the link is torn if
 * those before are lost, too. */
int domi_link_add(domi_link *link, const domi_wire_envelope *envelope);

/* Say that something could not be added that the other side must not miss. */
static inline void domi_link_tear(domi_link *link)
{
    link->is_torn = !link->is_broken;
}

/* True if the next batch is to be sent at once. */
static inline bool domi_link_is_full(const domi_link *link)
{
    return link->next.size >= DOMI_LINK_FULL;
}

/* Make the next batch ready to be sent; if there is none, and a confirmation is due (or `probes`:
 * one is wanted), one without envelopes. The caller publishes it, as its owner. Returns 1; 0: there
 * is nothing to send; -ENOMEM: as 0, and it is tried again at the next call, or the link is torn.
 */
int domi_link_flush(domi_link *link, uint64_t now_ns, bool probes, domus_slice *ret_batch);

/* Get the batches that are to be sent again now, one with each call; `*cursor` begins as 0. With
 * `all`, those that are not due, too. Returns 1; 0: no further one; -ENOMEM. */
int domi_link_resend(domi_link *link, uint64_t now_ns, bool all, uint64_t *cursor,
                     domus_slice *ret_batch);

/* The meaning of a batch that has come. */
typedef struct domi_link_news {
    bool takes;   /* its envelopes are to be taken */
    bool renewed; /* the other side has begun a new session: what it did in the old one is over */
    /* the peer regards this side's session as over: domi_link_break() has to follow */
    bool is_over;
    bool confirms; /* something was confirmed */
} domi_link_news;

/* A batch has come. */
domi_link_news domi_link_receive(domi_link *link, const domi_batch_foot *foot, uint64_t now_ns);

/* Give up the session of this side, and, unless the other side has said that it is over
 * (`is_told`), regard that of the other side as over. Returns how many messages are lost. */
uint64_t domi_link_break(domi_link *link, bool is_told);

#endif
