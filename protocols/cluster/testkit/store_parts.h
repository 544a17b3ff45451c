/* Buckets of the simulated JetStream, and the functions that the files of the store call of each
 * other.
 *
 * A bucket is a stream of messages, each with a sequence number; stored messages form a list in
 * that order. All of it is at one leader, which handles one request after the other, so all changes
 * of a key have one order. */
#ifndef DOMI_CLUSTER_TESTKIT_STORE_PARTS_H
#define DOMI_CLUSTER_TESTKIT_STORE_PARTS_H

#include "protocols/cluster/testkit/sim.h"

/* The calendar time at which the cluster's clock shows 0: 2023-11-14 22:13:20 UTC. */
#define DOMI_SIM_EPOCH_NS UINT64_C(1700000000000000000)

typedef struct domi_sim_entry {
    struct domi_sim_entry *next;
    domi_sim_message *message;
    uint64_t sequence;
    uint64_t written_ns; /* time at which the entry was written, by the cluster's clock */
    uint64_t expire_ns;  /* time at which the entry expires; DOMI_SIM_NEVER: it does not */
    uint32_t hash;       /* hash of the entry's subject */
    bool is_last;        /* no later entry of the bucket has the same subject */
} domi_sim_entry;

typedef struct domi_sim_consumer {
    struct domi_sim_consumer *next;
    char *deliver; /* subject to which the consumer's entries are delivered */
    char *filter;
    char name[16];
    /* sequence number of the first entry that the consumer has not considered yet */
    uint64_t next_sequence;
    /* up to this sequence number the consumer sends only the last entry of each subject */
    uint64_t snapshot;
    uint64_t sent;         /* number of the consumer's deliveries so far */
    uint64_t last_sent;    /* sequence number of the last entry that the consumer has sent */
    uint64_t heartbeat_ns; /* ns between two heartbeats of the consumer; 0: it sends none */
    uint64_t beat_ns;      /* time at which the consumer's next heartbeat is due */
    /* ns without a subscriber after which the consumer ends; 0: it never does */
    uint64_t inactive_ns;
    uint64_t heard_ns; /* time at which the consumer last had a subscriber */
    bool headers_only;
    /* the consumer has a subscriber, as the server `leader` knew when `known_changes` (below) was
     * set */
    bool is_heard;
    uint32_t leader;
    /* the cluster's `known_changes` plus one, when `is_heard` was found out; 0: it was not */
    uint64_t known_changes;
} domi_sim_consumer;

struct domi_sim_bucket {
    domi_sim_bucket *next;
    char *stream; /* name of the bucket's stream: "KV_" and the name of the bucket */
    char *prefix; /* begin of the bucket's subjects: "$KV.name." */
    char *config; /* JSON of the bucket's configuration, as it was given */
    uint64_t made_ns;
    uint64_t history; /* number of entries that the bucket keeps for each subject */
    uint64_t age_ns;  /* ns that the bucket keeps entries; 0: for ever */
    uint64_t bytes_max;
    uint64_t value_max;
    domi_sim_entry *entries;
    domi_sim_entry *last_entry;
    uint64_t count;
    uint64_t bytes;
    uint64_t last; /* sequence number of the bucket's last entry */
    domi_sim_consumer *consumers;
    uint32_t consumer_count;
};

uint32_t domi_sim_hash_text(const char *text);

/* Returns the last entry of a subject in a bucket; NULL if there is none. */
domi_sim_entry *domi_sim_last_entry_of_subject(const domi_sim_bucket *bucket, const char *subject);
domi_sim_bucket *domi_sim_find_bucket(const domi_sim *sim, const char *stream);
/* Returns the bytes that an entry adds to `bytes` of its bucket. */
uint64_t domi_sim_size_of_entry(const domi_sim_message *message);
/* Append an entry to a bucket. Returns NULL without memory, and the error is recorded. */
domi_sim_entry *domi_sim_append_entry_to_bucket(domi_sim *sim, domi_sim_bucket *bucket,
                                                domi_sim_message *message);
/* Remove the oldest entries of a subject from a bucket, so that `keep` of them remain. */
void domi_sim_trim_entries_of_subject(domi_sim_bucket *bucket, const char *subject, uint64_t keep);
/* Remove the entries of a bucket that have expired. */
void domi_sim_remove_expired_entries(domi_sim *sim, domi_sim_bucket *bucket);
void domi_sim_bucket_free(domi_sim_bucket *bucket);
/* Handle a request to change a key of a bucket. */
void domi_sim_store_put_or_removal_of_key(domi_sim *sim, domi_sim_bucket *bucket,
                                          domi_sim_message *message);

/* Answer a request for the buckets, unless it has no reply subject. */
void domi_sim_reply_to_request_with_parts(domi_sim *sim, const domi_sim_message *request,
                                          const domi_sim_parts *parts);
void domi_sim_reply_to_request_with_text(domi_sim *sim, const domi_sim_message *request,
                                         const char *text);
void domi_sim_reply_to_request_with_error(domi_sim *sim, const domi_sim_message *request,
                                          uint32_t status, uint32_t number, const char *text);
/* Send a message from the server that leads the buckets. `message` is consumed. */
void domi_sim_send_or_lose_message_of_leader(domi_sim *sim, domi_sim_message *message);

/* Handle a request of JetStream's API (store_api.c). */
void domi_sim_dispatch_request_of_api(domi_sim *sim, domi_sim_message *message);

/* Send the entries that a consumer owes to its subscriber (store_watch.c). */
void domi_sim_send_entries_of_consumer(domi_sim *sim, domi_sim_bucket *bucket,
                                       domi_sim_consumer *consumer);
/* Returns how many of the entries that exist a consumer will send. */
uint64_t domi_sim_count_pending_entries(const domi_sim_bucket *bucket,
                                        const domi_sim_consumer *consumer);
void domi_sim_consumer_free(domi_sim_consumer *consumer);
void domi_sim_end_all_consumers(domi_sim *sim);

#endif
