/* A bucket of a real nats-server, in `domt_bucket`, and its verbs as calls that have to succeed. */
#ifndef DOMT_NATS_BUCKET_H
#define DOMT_NATS_BUCKET_H

#include "tests/nats/js_server.h"

#include <stdbool.h>

typedef struct domt_bucket_state {
    domt_js_server js; /* the test starts and stops it */
    domus_address address;
} domt_bucket_state;

extern domt_bucket_state domt_bucket;

/* Open a bucket, which is made if `config` is not NULL. */
void domt_bucket_open(const char *name, const domus_nats_kv_config *config);

/* Returns the revision. */
uint64_t domt_bucket_put(const char *key, const char *value);

void domt_bucket_remove(const char *key);

/* True if the key has this value, which was written within the last minute. */
bool domt_bucket_has(const char *key, const char *value);

/* Watch keys with the tag 5. Returns the watch. */
domus_address domt_bucket_watch(const char *pattern, uint64_t heartbeat_ns);

/* Hold that the next notice tells of this change. */
void domt_bucket_hears(const char *key, const char *value, domus_nats_kv_operation operation);

#endif
