/* Messages between clients: SUBSCRIBE, PSUBSCRIBE, PUBLISH, PUBSUB.
 *
 * One actor, the switchboard, knows who has subscribed to what. It counts the receivers of a
 * PUBLISH, and publishes the message to the group of all connections that have a subscription. So
 * all of them get all messages in one order, and each passes on to its peer what the peer has
 * subscribed to. The message is encoded once. In a cluster each node has a switchboard, and an
 * exchange passes messages on to those of other nodes (exchange.c).
 *
 * A slow subscriber holds up nobody: while more than channel.sendHigh bytes wait for it, the
 * group passes it over (domus/group.h), so it misses messages, and one that cannot be written at
 * all is closed. */
#ifndef KV_PUBSUB_H
#define KV_PUBSUB_H

#include "kv.h"

#include <domus/domus.h>

enum kv_named { KV_CHANNEL, KV_PATTERN };

/* The subscriptions of one connection. */
struct kv_subscriber {
    struct kv_table names[2]; /* names of channels and patterns, indexed by enum kv_named */
    struct kv_memory memory;
    uint64_t seen; /* number of the last publication that the connection has passed on */
};

static inline uint64_t kv_count_subscriptions_of_client(const struct kv_subscriber *subscriber)
{
    return subscriber->names[KV_CHANNEL].count + subscriber->names[KV_PATTERN].count;
}

/* A message to the group: the push for all that have subscribed to `name`. */
struct kv_publication {
    domus_resp_reply push; /* the message as a push of RESP 3; it owns the bytes */
    domus_slice name;      /* name of the channel, a part of the bytes of `push` */
    uint64_t hash;
    /* number of the publication: publications are numbered in the order in which they were made */
    uint64_t number;
    enum kv_named kind;
};
extern const domus_type kv_publication_type;

/* The address of the switchboard, and the group of all connections that have a subscription. */
extern domus_address kv_switchboard;
extern domus_group kv_subscribers;
extern const domus_behaviour kv_switchboard_behaviour;

/* The address of the exchange, the actor through which all PUBLISH go in a cluster (exchange.c);
 * otherwise nobody. */
extern domus_address kv_exchange;
extern const domus_behaviour kv_exchange_behaviour;

/* Returns the actor that must be asked to publish a message: the exchange or the switchboard. */
static inline domus_address kv_actor_to_ask_for_publication(void)
{
    return kv_exchange.house != NULL ? kv_exchange : kv_switchboard;
}

/* Types of asks to the switchboard, beside the commands that clients are forwarded with. The
 * payload of each is a command. */
/* ask to the switchboard: remember the names of the command, or refuse them */
extern const domus_type kv_subscribe_type;
/* ask to the switchboard: forget the names of the command, or, without names, all of the kind */
extern const domus_type kv_unsubscribe_type;
/* ask to the switchboard: publish a message; the answer is a kv_published */
extern const domus_type kv_publish_type;

struct kv_published {
    int64_t receivers;
    uint64_t number; /* number of the publication that was made last; 0: there was none */
};
extern const domus_type kv_published_type;

/* Handlers of a session for the commands of subscriptions and publications. */
domus_handler kv_serve_subscribe, kv_serve_unsubscribe, kv_serve_publish, kv_serve_pubsub,
    kv_reset_session_and_answer;
/* The handler of a session for a publication, which it passes on to its client. */
domus_handler kv_send_publication_if_subscribed;
/* Answer the PING of a client of RESP 2 that has subscriptions. */
int kv_answer_ping_with_array_in_resp_2(domus_stack *stack, const domus_resp_command *command);
void kv_subscriber_free(struct kv_session *session);

/* Returns what the names of a command are: channels for SUBSCRIBE and UNSUBSCRIBE, patterns for
 * PSUBSCRIBE and PUNSUBSCRIBE. */
static inline enum kv_named kv_channel_or_pattern_of_command(const domus_resp_command *command)
{
    char first = domus_slice_data(domus_resp_argument(command, 0))[0];

    return first == 'P' || first == 'p' ? KV_PATTERN : KV_CHANNEL;
}

#endif
