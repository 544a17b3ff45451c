/* A simulated cluster of nodes with a client of NATS each, and probes that use these clients. Each
 * function checks that it succeeds. */
#ifndef DOMT_BROKER_H
#define DOMT_BROKER_H

#include <domus/testkit_cluster.h>

#define DOMT_MS     UINT64_C(1000000)
#define DOMT_SECOND UINT64_C(1000000000)
#define DOMT_NODES  8u

typedef struct domt_member {
    domus_testkit_cluster *cluster;
    uint32_t node;
    domus_testkit *kit;
    domus_probe *probe; /* the probe that asks the client, and receives messages */
    /* the probe that gets the events which the client reports to its gateway */
    domus_probe *events;
    domus_address client;
    domus_address host; /* the actor that has opened the client */
} domt_member;

/* The parts of a received message, as text. */
typedef struct domt_heard {
    char subject[64];
    char reply[64];
    char headers[256];
    char payload[1024];
    uint64_t subscription;
    uint64_t tag;
    unsigned status;
} domt_heard;

domus_testkit_cluster *domt_cluster_new(uint64_t seed,
                                        const domus_testkit_cluster_options *options);
void domt_pass_time(domus_testkit_cluster *cluster, uint64_t by_ns);

/* Add a node with a client, which connects only when time passes. */
void domt_member_add_with_client(domus_testkit_cluster *cluster,
                                 const domus_testkit_node_options *options,
                                 domt_member *ret_member);
/* Make host, client and probes in the kit of a node that is new. */
void domt_member_start_client(domt_member *member);
/* Make a cluster of nodes whose clients are connected. */
domus_testkit_cluster *domt_cluster_new_with_members(uint64_t seed,
                                                     const domus_testkit_cluster_options *options,
                                                     uint32_t count, domt_member *members);

uint64_t domt_member_subscribe(domt_member *member, const char *subject, const char *queue);
/* Publish a message by a notice to the member's client. */
void domt_member_publish(domt_member *member, const char *subject, const char *reply,
                         const char *text);
void domt_member_publish_bytes(domt_member *member, const char *subject, const void *data,
                               size_t size);
/* Begin a request of the member. `headers` is lines "Name: value\r\n", or NULL. */
void domt_member_request(domt_member *member, const char *subject, const char *headers,
                         const char *text);
/* Returns a message that the member has received; it has to have come already. */
domt_heard domt_member_receive_message(domt_member *member);
void domt_member_expect_text(domt_member *member, const char *text);
void domt_hear_nothing(domt_member *member);
/* Check that the member's ask has failed with this error. */
void domt_member_expect_failure(domt_member *member, int error);
/* Check that the member's ask has got an answer without a payload. */
void domt_member_expect_done(domt_member *member);
void domt_member_expect_event(domt_member *member, domus_nats_happening happening, int error);
domus_nats_status domt_status_of_member(domt_member *member);

/* Copy the parts of a message into texts, and free the message. */
domt_heard domt_copy_and_free_message(domus_nats_message *message);

#endif
