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
    uint64_t written_ns; /* time of the write, by the cluster's clock */
    uint64_t expire_ns;  /* time at which the entry expires; DOMI_SIM_NEVER */
    uint32_t hash;       /* hash of the subject */
    bool is_last;        /* no later entry has the same subject */
} domi_sim_entry;

typedef struct domi_sim_consumer {
    struct domi_sim_consumer *next;
    char *deliver; /* subject to which entries are delivered */
    char *filter;
    char name[16];
    uint64_t next_sequence; /* sequence number of the first entry that was not considered yet */
    /* up to this sequence number only the last entry of each subject is sent */
    uint64_t snapshot;
    uint64_t sent;         /* number of deliveries so far */
    uint64_t last_sent;    /* sequence number of the last entry that was sent */
    uint64_t heartbeat_ns; /* ns between heartbeats; 0: none */
    uint64_t beat_ns;      /* time at which the next heartbeat is due */
    uint64_t inactive_ns;  /* ns without a subscriber after which it ends; 0: never */
    uint64_t heard_ns;     /* time at which it last had a subscriber */
    bool headers_only;
    bool is_heard; /* it has a subscriber, according to `leader` at `known_changes` */
    uint32_t leader;
    /* `known_changes` of the cluster plus one, when that was found out; 0: it was not */
    uint64_t known_changes;
} domi_sim_consumer;

struct domi_sim_bucket {
    domi_sim_bucket *next;
    char *stream; /* "KV_" and the name of the bucket */
    char *prefix; /* "$KV.name." */
    char *config; /* JSON of the configuration, as it was given */
    uint64_t made_ns;
    uint64_t history; /* entries that are kept for each subject */
    uint64_t age_ns;  /* ns that entries are kept; 0: for ever */
    uint64_t bytes_max;
    uint64_t value_max;
    domi_sim_entry *entries;
    domi_sim_entry *last_entry;
    uint64_t count;
    uint64_t bytes;
    uint64_t last; /* sequence number of the last entry */
    domi_sim_consumer *consumers;
    uint32_t consumer_count;
};

uint32_t domi_sim_hash(const char *text);

/* Returns the last entry of a subject; NULL if there is none. */
domi_sim_entry *domi_sim_last_of(const domi_sim_bucket *bucket, const char *subject);
domi_sim_bucket *domi_sim_find_bucket(const domi_sim *sim, const char *stream);
/* Returns the bytes of an entry, as `bytes` of its bucket counts them. */
uint64_t domi_sim_size(const domi_sim_message *message);
/* Append an entry. Returns NULL without memory, which is recorded. */
domi_sim_entry *domi_sim_add_entry(domi_sim *sim, domi_sim_bucket *bucket,
                                   domi_sim_message *message);
/* Remove the oldest entries of a subject, so that `keep` remain. */
void domi_sim_trim(domi_sim_bucket *bucket, const char *subject, uint64_t keep);
/* Remove entries that have expired. */
void domi_sim_sweep(domi_sim *sim, domi_sim_bucket *bucket);
void domi_sim_bucket_free(domi_sim_bucket *bucket);
/* Handle a change of a key. */
void domi_sim_change(domi_sim *sim, domi_sim_bucket *bucket, domi_sim_message *message);

/* Answer a request, unless it has no reply subject. */
void domi_sim_reply(domi_sim *sim, const domi_sim_message *request, const domi_sim_parts *parts);
void domi_sim_reply_text(domi_sim *sim, const domi_sim_message *request, const char *text);
void domi_sim_reply_error(domi_sim *sim, const domi_sim_message *request, uint32_t status,
                          uint32_t number, const char *text);
/* Send a message of the leader. Ownership: `message` is consumed. */
void domi_sim_serve(domi_sim *sim, domi_sim_message *message);

/* Handle a request of the API (store_api.c). */
void domi_sim_api(domi_sim *sim, domi_sim_message *message);

/* Send what a consumer owes to its subscriber (store_watch.c). */
void domi_sim_consume(domi_sim *sim, domi_sim_bucket *bucket, domi_sim_consumer *consumer);
/* Returns how many of the existing entries a consumer will send. */
uint64_t domi_sim_pending(const domi_sim_bucket *bucket, const domi_sim_consumer *consumer);
void domi_sim_consumer_free(domi_sim_consumer *consumer);
void domi_sim_end_consumers(domi_sim *sim);

#endif
