/* A bucket of domus and one of libnats give the same results on Debian's nats-server. */
#include "tests/nats/bucket.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#ifdef DOMT_LIBNATS
#include <nats/nats.h>

static natsConnection *connection;
static jsCtx *context;

static void connect_libnats_to_server(void)
{
    char url[100];

    snprintf(url, sizeof url, "nats://%s", domt_bucket.js.server.url);
    ck_assert_int_eq(natsConnection_ConnectTo(&connection, url), NATS_OK);
    ck_assert_int_eq(natsConnection_JetStream(&context, connection, NULL), NATS_OK);
}

static void disconnect_libnats(void)
{
    jsCtx_Destroy(context);
    natsConnection_Destroy(connection);
    nats_Close();
}

static kvStore *open_bucket_by_libnats(const char *name, int history)
{
    kvConfig config;
    kvStore *store = NULL;

    kvConfig_Init(&config);
    config.Bucket = name;
    config.History = (uint8_t)history;
    ck_assert_int_eq(js_CreateKeyValue(&store, context, &config), NATS_OK);
    return store;
}

/* Change a key through libnats. Returns whether the change was made. */
static bool change_key_by_libnats(kvStore *store, int operation, const char *key, const char *value,
                                  uint64_t revision, uint64_t *ret_revision)
{
    switch (operation) {
    case 0:
        return kvStore_PutString(ret_revision, store, key, value) == NATS_OK;
    case 1:
        return kvStore_CreateString(ret_revision, store, key, value) == NATS_OK;
    case 2:
        return kvStore_UpdateString(ret_revision, store, key, value, revision) == NATS_OK;
    case 3:
        return kvStore_Delete(store, key) == NATS_OK;
    default:
        return kvStore_Purge(store, key, NULL) == NATS_OK;
    }
}

static bool change_key_by_domus(int operation, const char *key, const char *value,
                                uint64_t revision, uint64_t *ret_revision)
{
    static const struct {
        domus_nats_kv_operation operation;
        domus_nats_kv_condition condition;
    } rows[] = {{DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS},
                {DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_IF_NONE},
                {DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_IF_REVISION},
                {DOMUS_NATS_KV_DELETE, DOMUS_NATS_KV_ALWAYS},
                {DOMUS_NATS_KV_PURGE, DOMUS_NATS_KV_ALWAYS}};
    int error = domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, key,
                                         operation < 3 ? value : NULL, rows[operation].operation,
                                         rows[operation].condition, revision, ret_revision);

    ck_assert_msg(error == 0 || error == -EEXIST, "%s", strerrorname_np(-error));
    return error == 0;
}

/* Check that domus and libnats read the same value of a key at this revision, or its newest value
 * if `revision` is 0. */
static void check_libnats_reads_same_value(kvStore *store, const char *key, uint64_t revision)
{
    domus_nats_kv_entry own;
    kvEntry *entry = NULL;
    natsStatus status = revision != 0 ? kvStore_GetRevision(&entry, store, key, revision)
                                      : kvStore_Get(&entry, store, key);
    int error = domt_js_server_get_entry(&domt_bucket.js, domt_bucket.address, key, revision, &own);

    ck_assert_int_eq(status == NATS_OK, error == 0);
    if (error != 0) {
        ck_assert_int_eq(error, -ENOENT);
        return;
    }
    ck_assert_uint_eq(own.revision, kvEntry_Revision(entry));
    ck_assert(domus_slice_equals(domus_nats_kv_value(&own), kvEntry_Value(entry),
                                 (size_t)kvEntry_ValueLen(entry)));
    domus_slice_free(own.bytes);
    kvEntry_Destroy(entry);
}

DOMT_TEST(bucket_gives_same_results_as_libnats)
{
    domus_nats_kv_config config = {.history = 4};
    unsigned chance = 1;
    char key[8], value[16];

    domt_js_server_start_with_client(&domt_bucket.js);
    connect_libnats_to_server();
    kvStore *store = open_bucket_by_libnats("theirs", 4);
    domt_bucket_open_at_server("own", &config);
    uint32_t rounds = domt_tenfold_if_tests_are_long(400);
    for (uint32_t i = 0; i < rounds; i++) {
        chance = chance * 1103515245 + 12345;
        int operation = (int)(chance >> 16) % 5;
        uint64_t own = 0, theirs = 0;
        domus_nats_kv_entry entry;
        snprintf(key, sizeof key, "k.%u", (chance >> 20) % 5);
        snprintf(value, sizeof value, "v%u", i);
        uint64_t revision = 0;
        if (domt_js_server_get_entry(&domt_bucket.js, domt_bucket.address, key, 0, &entry) == 0) {
            /* every second time, the change names an outdated revision */
            revision = entry.revision - (chance >> 24) % 2;
            domus_slice_free(entry.bytes);
        }
        bool is_made = change_key_by_domus(operation, key, value, revision, &own);
        ck_assert_int_eq(change_key_by_libnats(store, operation, key, value, revision, &theirs),
                         is_made);
        if (is_made && operation < 3)
            ck_assert_uint_eq(own, theirs);
        check_libnats_reads_same_value(store, key, 0);
        check_libnats_reads_same_value(store, key, 1 + (chance >> 8) % (i + 1));
    }
    kvStore_Destroy(store);
    disconnect_libnats();
    domt_js_server_stop_with_client(&domt_bucket.js);
}

DOMT_TEST(domus_and_libnats_share_one_bucket)
{
    domus_nats_kv_config config = {.history = 4};
    kvEntry *entry = NULL;
    kvStore *store = NULL;
    uint64_t revision = 0;

    domt_js_server_start_with_client(&domt_bucket.js);
    connect_libnats_to_server();
    store = open_bucket_by_libnats("theirs", 4);
    ck_assert_int_eq(kvStore_PutString(&revision, store, "x", "1"), NATS_OK);
    /* domus opens libnats's bucket with an equal configuration */
    domt_bucket_open_at_server("theirs", &config);
    ck_assert(domt_bucket_has_recent_value("x", "1"));
    ck_assert_uint_eq(domt_bucket_put_value("x", "2"), revision + 1);
    (void)domt_bucket_watch_keys("x", DOMT_SECOND);
    domt_bucket_expect_change("x", "2", DOMUS_NATS_KV_PUT);
    (void)domt_js_server_receive_notice(&domt_bucket.js, &domus_nats_kv_initial_type, DOMT_SECOND);
    ck_assert_int_eq(kvStore_Delete(store, "x"), NATS_OK);
    domt_bucket_expect_change("x", "", DOMUS_NATS_KV_DELETE);
    kvStore_Destroy(store);
    domt_bucket_open_at_server("own", &config);
    (void)domt_bucket_put_value("y.z", "3");
    ck_assert_int_eq(js_KeyValue(&store, context, "own"), NATS_OK);
    ck_assert_int_eq(kvStore_Get(&entry, store, "y.z"), NATS_OK);
    ck_assert_str_eq(kvEntry_ValueString(entry), "3");
    kvEntry_Destroy(entry);
    domt_bucket_remove_key("y.z");
    ck_assert_int_eq(kvStore_Get(&entry, store, "y.z"), NATS_NOT_FOUND);
    ck_assert_int_eq(kvStore_CreateString(&revision, store, "y.z", "4"), NATS_OK);
    ck_assert(domt_bucket_has_recent_value("y.z", "4"));
    kvStore_Destroy(store);
    disconnect_libnats();
    domt_js_server_stop_with_client(&domt_bucket.js);
}

#else

DOMT_TEST(bucket_gives_same_results_as_libnats)
{
    ck_abort_msg("this test was built without libnats (Debian: libnats-dev)");
}

DOMT_TEST(domus_and_libnats_share_one_bucket)
{
    ck_abort_msg("this test was built without libnats (Debian: libnats-dev)");
}

#endif

DOMT_SUITE(60)
