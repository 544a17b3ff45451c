/* Buckets of the simulated JetStream, and the doors between the files of the store.
 *
 * A bucket is a stream of messages, of which each has a sequence; those that are there form a list
 * in that order. All of it is at one leader, which handles one request after the other, so changes
 * of a key have an order that all agree on. */
#ifndef DOMI_CLUSTER_TESTKIT_STORE_PARTS_H
#define DOMI_CLUSTER_TESTKIT_STORE_PARTS_H

#include "protocols/cluster/testkit/sim.h"

/* The calendar time at which the cluster's clock shows 0: 2023-11-14 22:13:20 UTC. */
#define DOMI_SIM_EPOCH_NS UINT64_C(1700000000000000000)

typedef struct domi_sim_entry {
    struct domi_sim_entry *next;
    domi_sim_message *message;
    uint64_t sequence;
    uint64_t written_ns; /* of the cluster's clock */
    uint64_t expire_ns;  /* when it goes; DOMI_SIM_NEVER */
    uint32_t hash;       /* of the subject */
    bool is_last;        /* no later one has its subject */
} domi_sim_entry;

typedef struct domi_sim_consumer {
    struct domi_sim_consumer *next;
    char *deliver; /* subject */
    char *filter;
    char name[16];
    uint64_t next_sequence; /* the first one that was not looked at */
    uint64_t snapshot;      /* up to here only the last entries of their subjects are sent */
    uint64_t sent;          /* deliveries so far */
    uint64_t last_sent;     /* the sequence of the last one */
    uint64_t heartbeat_ns;  /* 0: none */
    uint64_t beat_ns;       /* when the next one is due */
    uint64_t inactive_ns;   /* 0: it stays */
    uint64_t heard_ns;      /* when there was a subscriber last */
    bool headers_only;
    bool is_heard; /* by a subscription that `leader` knew at `known_changes` */
    uint32_t leader;
    uint64_t known_changes; /* of the cluster, and one; 0: it was not looked at */
} domi_sim_consumer;

struct domi_sim_bucket {
    domi_sim_bucket *next;
    char *stream; /* "KV_" and the name */
    char *prefix; /* "$KV.name." */
    char *config; /* JSON, as it was given */
    uint64_t made_ns;
    uint64_t history; /* entries of a subject */
    uint64_t age_ns;  /* 0: they stay */
    uint64_t bytes_max;
    uint64_t value_max;
    domi_sim_entry *entries;
    domi_sim_entry *last_entry;
    uint64_t count;
    uint64_t bytes;
    uint64_t last; /* sequence */
    domi_sim_consumer *consumers;
    uint32_t consumer_count;
};

uint32_t domi_sim_hash(const char *text);

/* The last entry of a subject; NULL. */
domi_sim_entry *domi_sim_last_of(const domi_sim_bucket *bucket, const char *subject);
domi_sim_bucket *domi_sim_find_bucket(const domi_sim *sim, const char *stream);
/* Bytes of an entry, as `bytes` of its bucket counts them. */
uint64_t domi_sim_size(const domi_sim_message *message);
/* Append an entry. Returns NULL without memory, which is noted. */
domi_sim_entry *domi_sim_add_entry(domi_sim *sim, domi_sim_bucket *bucket,
                                   domi_sim_message *message);
/* Remove the oldest entries of a subject, so that `keep` are left. */
void domi_sim_trim(domi_sim_bucket *bucket, const char *subject, uint64_t keep);
/* Remove entries whose time is over. */
void domi_sim_sweep(domi_sim *sim, domi_sim_bucket *bucket);
void domi_sim_bucket_free(domi_sim_bucket *bucket);
/* Handle a change of a key. */
void domi_sim_change(domi_sim *sim, domi_sim_bucket *bucket, domi_sim_message *message);

/* Answer a request; one without a reply gets none. */
void domi_sim_reply(domi_sim *sim, const domi_sim_message *request, const domi_sim_parts *parts);
void domi_sim_reply_text(domi_sim *sim, const domi_sim_message *request, const char *text);
void domi_sim_reply_error(domi_sim *sim, const domi_sim_message *request, uint32_t status,
                          uint32_t number, const char *text);
/* Send a message of the leader. Ownership: `message` is consumed. */
void domi_sim_serve(domi_sim *sim, domi_sim_message *message);

/* Handle a request of the API (store_api.c). */
void domi_sim_api(domi_sim *sim, domi_sim_message *message);

/* Consumers (store_watch.c). Send what one is owed. */
void domi_sim_consume(domi_sim *sim, domi_sim_bucket *bucket, domi_sim_consumer *consumer);
/* How many entries it will be sent of those that are there. */
uint64_t domi_sim_pending(const domi_sim_bucket *bucket, const domi_sim_consumer *consumer);
void domi_sim_consumer_free(domi_sim_consumer *consumer);
void domi_sim_end_consumers(domi_sim *sim);

#endif
