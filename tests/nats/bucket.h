/* A bucket of a real nats-server, in `domt_bucket`, and functions that use it and check that they
 * succeed. */
#ifndef DOMT_NATS_BUCKET_H
#define DOMT_NATS_BUCKET_H

#include "tests/nats/js_server.h"

#include <stdbool.h>

typedef struct domt_bucket_state {
    /* the nats-server of the bucket and its client, which the test starts and stops */
    domt_js_server js;
    domus_address address;
} domt_bucket_state;

extern domt_bucket_state domt_bucket;

/* Open a bucket; it is created if `config` is not NULL. */
void domt_bucket_open_at_server(const char *name, const domus_nats_kv_config *config);

/* Put a value for a key into `domt_bucket`. Returns the revision. */
uint64_t domt_bucket_put_value(const char *key, const char *value);

void domt_bucket_remove_key(const char *key);

/* Returns whether the key has this value, written within the last minute. */
bool domt_bucket_has_recent_value(const char *key, const char *value);

/* Watch the keys of `domt_bucket` that match `pattern`; the watch's notices have the tag 5. Returns
 * the address of the watch. */
domus_address domt_bucket_watch_keys(const char *pattern, uint64_t heartbeat_ns);

/* Check that the next notice reports this change. */
void domt_bucket_expect_change(const char *key, const char *value,
                               domus_nats_kv_operation operation);

#endif
