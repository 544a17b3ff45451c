/* Buckets of Debian's nats-server: values, times to live, bounds, and a watch that
 * lives through the end of its server. */
#include "tests/nats/js_server.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static domt_js_server js;
static domus_address bucket;

static void open_bucket(const char *name, const domus_nats_kv_config *config)
{
    domus_nats_kv_options options = {.bucket = name, .create = config};

    bucket = domt_js_server_kv(&js, &options);
}

static uint64_t put(const char *key, const char *value)
{
    uint64_t revision = 0;
    int error = domt_js_server_put(&js, bucket, key, value, DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS,
                                   0, &revision);

    ck_assert_msg(error == 0, "%s", strerrorname_np(-error));
    return revision;
}

static void remove_key(const char *key)
{
    ck_assert_int_eq(domt_js_server_put(&js, bucket, key, NULL, DOMUS_NATS_KV_DELETE,
                                        DOMUS_NATS_KV_ALWAYS, 0, NULL),
                     0);
}

static bool has(const char *key, const char *value)
{
    domus_nats_kv_entry entry;
    int error = domt_js_server_get(&js, bucket, key, 0, &entry);

    if (error != 0) {
        ck_assert_int_eq(error, -ENOENT);
        return false;
    }
    bool is_same = domt_slice_is(domus_nats_kv_value(&entry), value) &&
                   domt_slice_is(domus_nats_kv_key(&entry), key);
    ck_assert(entry.written_ns / DOMT_SECOND >= (uint64_t)time(NULL) - 60 &&
              entry.written_ns / DOMT_SECOND <= (uint64_t)time(NULL) + 1);
    domus_slice_free(entry.bytes);
    return is_same;
}

static void hold_values(bool reads_any)
{
    domus_nats_kv_config config = {.history = 3};
    domus_nats_kv_options options = {.bucket = "b", .create = &config, .reads_any = reads_any};
    domus_nats_kv_entry entry;
    char *large = malloc(300001);

    domt_js_server_start(&js);
    bucket = domt_js_server_kv(&js, &options);
    uint64_t revision = put("a.b", "one");
    ck_assert(has("a.b", "one"));
    ck_assert_uint_eq(put("a.b", ""), revision + 1);
    ck_assert(has("a.b", ""));
    ck_assert_int_eq(domt_js_server_get(&js, bucket, "a.b", revision, &entry), 0);
    ck_assert(domt_slice_is(domus_nats_kv_value(&entry), "one"));
    domus_slice_free(entry.bytes);
    ck_assert_int_eq(domt_js_server_get(&js, bucket, "a.c", revision, &entry), -ENOENT);
    ck_assert_int_eq(domt_js_server_get(&js, bucket, "a.b", 99, &entry), -ENOENT);
    memset(large, 'x', 300000);
    large[300000] = '\0';
    (void)put("large", large);
    ck_assert(has("large", large));
    remove_key("large");
    ck_assert(!has("large", large));
    ck_assert(!has("nothing", ""));
    free(large);
    domt_js_server_stop(&js);
}

DOMT_TEST(values_come_back_from_the_leader)
{
    hold_values(false);
}

DOMT_TEST(values_come_back_from_any_server)
{
    hold_values(true);
}

DOMT_TEST(bucket_has_to_be_there_and_the_same)
{
    domus_nats_kv_config config = {.history = 2};
    domus_nats_kv_config other = {.history = 3};
    domus_nats_kv_config many = {.replicas = 3};
    domus_nats_kv_status status;

    domt_js_server_start(&js);
    open_bucket("b", NULL);
    ck_assert_int_eq(
        domt_js_server_put(&js, bucket, "x", "v", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0, NULL),
        -ENXIO);
    domus_address before = bucket;
    open_bucket("b", &config);
    (void)put("x", "v");
    open_bucket("b", &other);
    ck_assert_int_eq(
        domt_js_server_ask(&js, bucket, &domus_nats_kv_look_type, NULL, &status, sizeof status),
        -EEXIST);
    open_bucket("c", &many); /* a single server has no replicas */
    ck_assert_int_eq(
        domt_js_server_ask(&js, bucket, &domus_nats_kv_look_type, NULL, &status, sizeof status),
        -EOPNOTSUPP);
    open_bucket("b", &config);
    ck_assert_int_eq(
        domt_js_server_ask(&js, bucket, &domus_nats_kv_look_type, NULL, &status, sizeof status), 0);
    ck_assert_uint_eq(status.entries, 1);
    ck_assert_uint_eq(status.history, 2);
    bucket = before; /* it finds the bucket now */
    ck_assert(has("x", "v"));
    ck_assert_int_eq(domt_js_server_ask(&js, bucket, &domus_nats_kv_remove_type, NULL, NULL, 0), 0);
    ck_assert_int_eq(domt_js_server_ask(&js, bucket, &domus_nats_kv_remove_type, NULL, NULL, 0),
                     -ENXIO);
    domt_js_server_stop(&js);
}

DOMT_TEST(entries_end_with_their_time)
{
    domus_nats_kv_config config = {.ttl_ns = 3 * DOMT_SECOND / 2, .storage = DOMUS_NATS_MEMORY};
    uint64_t revision = 0;

    domt_js_server_start(&js);
    open_bucket("leases", &config);
    ck_assert_int_eq(domt_js_server_put(&js, bucket, "leader", "one", DOMUS_NATS_KV_PUT,
                                        DOMUS_NATS_KV_IF_NONE, 0, &revision),
                     0);
    ck_assert_int_eq(domt_js_server_put(&js, bucket, "leader", "two", DOMUS_NATS_KV_PUT,
                                        DOMUS_NATS_KV_IF_NONE, 0, &revision),
                     -EEXIST);
    for (int i = 0; i < 4; i++) { /* renewed in time, it stays */
        nanosleep(&(struct timespec){.tv_nsec = 450000000}, NULL);
        ck_assert_int_eq(domt_js_server_put(&js, bucket, "leader", "one", DOMUS_NATS_KV_PUT,
                                            DOMUS_NATS_KV_IF_REVISION, revision, &revision),
                         0);
    }
    bool is_over = false;
    for (int i = 0; i < 50 && !is_over; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        is_over = domt_js_server_put(&js, bucket, "leader", "two", DOMUS_NATS_KV_PUT,
                                     DOMUS_NATS_KV_IF_NONE, 0, NULL) == 0;
    }
    ck_assert(is_over);
    ck_assert_int_eq(domt_js_server_put(&js, bucket, "leader", "one", DOMUS_NATS_KV_PUT,
                                        DOMUS_NATS_KV_IF_REVISION, revision, NULL),
                     -EEXIST);
    domt_js_server_stop(&js);
}

DOMT_TEST(full_bucket_says_so)
{
    domus_nats_kv_config config = {.bytes_max = 2000, .value_max = 1500};
    char value[1600];

    domt_js_server_start(&js);
    open_bucket("b", &config);
    memset(value, 'v', sizeof value);
    value[1000] = '\0';
    (void)put("x", value);
    ck_assert_int_eq(domt_js_server_put(&js, bucket, "y", value, DOMUS_NATS_KV_PUT,
                                        DOMUS_NATS_KV_ALWAYS, 0, NULL),
                     -ENOSPC);
    value[1000] = 'v';
    value[1599] = '\0';
    ck_assert_int_eq(domt_js_server_put(&js, bucket, "y", value, DOMUS_NATS_KV_PUT,
                                        DOMUS_NATS_KV_ALWAYS, 0, NULL),
                     -EMSGSIZE);
    domt_js_server_stop(&js);
}

/* --- watches and lists ------------------------------------------------------------------------ */

static domus_address watch_keys(const char *pattern, uint64_t heartbeat_ns)
{
    domus_nats_kv_watch watch = {.heartbeat_ns = heartbeat_ns, .tag = 5};
    domus_nats_kv_watching watching;

    memcpy(watch.pattern, pattern, strlen(pattern) + 1);
    int error = domt_js_server_ask(&js, bucket, &domus_nats_kv_watch_type, &watch, &watching,
                                   sizeof watching);
    ck_assert_msg(error == 0, "%s", strerrorname_np(-error));
    return watching.watch;
}

static void hears(const char *key, const char *value, domus_nats_kv_operation operation)
{
    const domus_nats_kv_entry *entry =
        domt_js_server_receive(&js, &domus_nats_kv_entry_type, 20 * DOMT_SECOND);

    ck_assert_uint_eq(entry->tag, 5);
    ck_assert(domt_slice_is(domus_nats_kv_key(entry), key));
    ck_assert(domt_slice_is(domus_nats_kv_value(entry), value));
    ck_assert_uint_eq(entry->operation, operation);
}

DOMT_TEST(watch_hears_what_is_there_and_what_changes)
{
    domus_nats_kv_config config = {.history = 5};
    domus_nats_kv_list list;
    domus_nats_kv_keys keys = {.pattern = ""};

    domt_js_server_start(&js);
    open_bucket("b", &config);
    (void)put("a", "1");
    (void)put("b.c", "2");
    (void)put("a", "3");
    (void)put("gone", "4");
    remove_key("gone");
    (void)watch_keys("", DOMT_SECOND);
    hears("b.c", "2", DOMUS_NATS_KV_PUT);
    hears("a", "3", DOMUS_NATS_KV_PUT);
    hears("gone", "", DOMUS_NATS_KV_DELETE);
    (void)domt_js_server_receive(&js, &domus_nats_kv_initial_type, DOMT_SECOND);
    (void)put("a", "5");
    hears("a", "5", DOMUS_NATS_KV_PUT);
    ck_assert_int_eq(domt_js_server_put(&js, bucket, "a", NULL, DOMUS_NATS_KV_PURGE,
                                        DOMUS_NATS_KV_ALWAYS, 0, NULL),
                     0);
    hears("a", "", DOMUS_NATS_KV_PURGE);
    ck_assert_int_eq(
        domt_js_server_ask(&js, bucket, &domus_nats_kv_keys_type, &keys, &list, sizeof list), 0);
    ck_assert_uint_eq(list.count, 1);
    ck_assert(domt_slice_is(list.bytes, "b.c\n"));
    domus_slice_free(list.bytes);
    domt_js_server_stop(&js);
}

DOMT_TEST(watch_lives_through_the_end_of_its_server)
{
    domus_nats_kv_config config = {.history = 1};
    char value[16];

    domt_js_server_start(&js);
    open_bucket("b", &config);
    (void)put("a", "1");
    (void)watch_keys(">", DOMT_SECOND / 5);
    hears("a", "1", DOMUS_NATS_KV_PUT);
    (void)domt_js_server_receive(&js, &domus_nats_kv_initial_type, DOMT_SECOND);
    for (int round = 0; round < 2; round++) {
        domt_js_server_restart(&js);
        snprintf(value, sizeof value, "round %d", round);
        int error = -1;
        for (int i = 0; i < 100 && error != 0; i++) {
            error = domt_js_server_put(&js, bucket, "a", value, DOMUS_NATS_KV_PUT,
                                       DOMUS_NATS_KV_ALWAYS, 0, NULL);
            if (error != 0)
                nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        }
        ck_assert_int_eq(error, 0);
        hears("a", value, DOMUS_NATS_KV_PUT);
    }
    domt_js_server_stop(&js);
}

DOMT_TEST(watch_ends_with_its_bucket)
{
    domus_nats_kv_config config = {.history = 1};

    domt_js_server_start(&js);
    open_bucket("b", &config);
    (void)watch_keys("", DOMT_SECOND / 5);
    (void)domt_js_server_receive(&js, &domus_nats_kv_initial_type, DOMT_SECOND);
    ck_assert_int_eq(domt_js_server_ask(&js, bucket, &domus_nats_kv_remove_type, NULL, NULL, 0), 0);
    const domus_nats_kv_ended *ended =
        domt_js_server_receive(&js, &domus_nats_kv_ended_type, 10 * DOMT_SECOND);
    ck_assert_int_eq(ended->error, -ENXIO);
    domt_js_server_stop(&js);
}

DOMT_TEST(many_changes_are_heard_in_order)
{
    domus_nats_kv_config config = {.history = 1, .storage = DOMUS_NATS_MEMORY};
    enum { CHANGES = 3000 };
    char key[16], last[8] = "";
    uint64_t before = 0;
    unsigned heard = 0;

    domt_js_server_start(&js);
    open_bucket("b", &config);
    (void)watch_keys("", DOMT_SECOND / 5);
    (void)domt_js_server_receive(&js, &domus_nats_kv_initial_type, DOMT_SECOND);
    for (unsigned i = 0; i < CHANGES; i++) { /* nobody receives meanwhile */
        snprintf(key, sizeof key, "k%u", i % 1500);
        snprintf(last, sizeof last, "%u", i);
        domus_nats_kv_put ask = {.operation = DOMUS_NATS_KV_PUT};
        memcpy(ask.key, key, sizeof key);
        ck_assert_int_eq(domus_slice_copy(last, strlen(last), &ask.value), 0);
        ck_assert_int_eq(domus_outsider_ask(js.user.outsider, bucket, &domus_nats_kv_put_type, &ask,
                                            10 * DOMT_SECOND, NULL),
                         0);
    }
    static char newest[1500][8];
    for (;;) { /* of changes that the mailbox had no room for, the newest of each key come later */
        const domus_nats_kv_entry *entry =
            domt_js_server_receive(&js, &domus_nats_kv_entry_type, 10 * DOMT_SECOND);
        domus_slice name = domus_nats_kv_key(entry), value = domus_nats_kv_value(entry);
        ck_assert(entry->revision > before);
        before = entry->revision;
        heard++;
        snprintf(key, sizeof key, "%.*s", (int)name.size, domus_slice_data(name));
        unsigned index = (unsigned)strtoul(key + 1, NULL, 10);
        snprintf(newest[index], sizeof newest[index], "%.*s", (int)value.size,
                 domus_slice_data(value));
        if (entry->revision == CHANGES)
            break;
    }
    for (unsigned i = 0; i < 1500; i++)
        ck_assert_uint_eq(strtoul(newest[i], NULL, 10), i + 1500);
    ck_assert(heard >= 1500);
    domt_js_server_stop(&js);
}

DOMT_SUITE(60)
