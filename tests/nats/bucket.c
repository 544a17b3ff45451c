/* A bucket of Debian's nats-server, and functions that use it. */
#include "tests/nats/bucket.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>
#include <time.h>

domt_bucket_state domt_bucket;

void domt_bucket_open_at_server(const char *name, const domus_nats_kv_config *config)
{
    domus_nats_kv_options options = {.bucket = name, .create = config};

    domt_bucket.address = domt_js_server_open_bucket(&domt_bucket.js, &options);
}

uint64_t domt_bucket_put_value(const char *key, const char *value)
{
    uint64_t revision = 0;
    int error = domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, key, value,
                                         DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0, &revision);

    ck_assert_msg(error == 0, "%s", strerrorname_np(-error));
    return revision;
}

void domt_bucket_remove_key(const char *key)
{
    ck_assert_int_eq(domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, key, NULL,
                                              DOMUS_NATS_KV_DELETE, DOMUS_NATS_KV_ALWAYS, 0, NULL),
                     0);
}

bool domt_bucket_has_recent_value(const char *key, const char *value)
{
    domus_nats_kv_entry entry;
    int error = domt_js_server_get_entry(&domt_bucket.js, domt_bucket.address, key, 0, &entry);

    if (error != 0) {
        ck_assert_int_eq(error, -ENOENT);
        return false;
    }
    bool is_same = domt_slice_has_text(domus_nats_kv_value(&entry), value) &&
                   domt_slice_has_text(domus_nats_kv_key(&entry), key);
    ck_assert(entry.written_ns / DOMT_SECOND >= (uint64_t)time(NULL) - 60 &&
              entry.written_ns / DOMT_SECOND <= (uint64_t)time(NULL) + 1);
    domus_slice_free(entry.bytes);
    return is_same;
}

domus_address domt_bucket_watch_keys(const char *pattern, uint64_t heartbeat_ns)
{
    domus_nats_kv_watch watch = {.heartbeat_ns = heartbeat_ns, .tag = 5};
    domus_nats_kv_watching watching;

    memcpy(watch.pattern, pattern, strlen(pattern) + 1);
    int error =
        domt_js_server_ask_actor(&domt_bucket.js, domt_bucket.address, &domus_nats_kv_watch_type,
                                 &watch, &watching, sizeof watching);
    ck_assert_msg(error == 0, "%s", strerrorname_np(-error));
    return watching.watch;
}

void domt_bucket_expect_change(const char *key, const char *value,
                               domus_nats_kv_operation operation)
{
    const domus_nats_kv_entry *entry =
        domt_js_server_receive_notice(&domt_bucket.js, &domus_nats_kv_entry_type, 20 * DOMT_SECOND);

    ck_assert_uint_eq(entry->tag, 5);
    ck_assert(domt_slice_has_text(domus_nats_kv_key(entry), key));
    ck_assert(domt_slice_has_text(domus_nats_kv_value(entry), value));
    ck_assert_uint_eq(entry->operation, operation);
}
