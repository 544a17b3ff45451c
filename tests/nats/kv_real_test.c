/* Buckets of Debian's nats-server: values, times to live, limits, and a watch that goes on after
 * its server was killed and started again. */
#include "tests/nats/bucket.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check_values_in_bucket(bool reads_any)
{
    domus_nats_kv_config config = {.history = 3};
    domus_nats_kv_options options = {.bucket = "b", .create = &config, .reads_any = reads_any};
    domus_nats_kv_entry entry;
    char *large = malloc(300001);

    domt_js_server_start_with_client(&domt_bucket.js);
    domt_bucket.address = domt_js_server_open_bucket(&domt_bucket.js, &options);
    uint64_t revision = domt_bucket_put_value("a.b", "one");
    ck_assert(domt_bucket_has_recent_value("a.b", "one"));
    ck_assert_uint_eq(domt_bucket_put_value("a.b", ""), revision + 1);
    ck_assert(domt_bucket_has_recent_value("a.b", ""));
    ck_assert_int_eq(
        domt_js_server_get_entry(&domt_bucket.js, domt_bucket.address, "a.b", revision, &entry), 0);
    ck_assert(domt_slice_has_text(domus_nats_kv_value(&entry), "one"));
    domus_slice_free(entry.bytes);
    ck_assert_int_eq(
        domt_js_server_get_entry(&domt_bucket.js, domt_bucket.address, "a.c", revision, &entry),
        -ENOENT);
    ck_assert_int_eq(
        domt_js_server_get_entry(&domt_bucket.js, domt_bucket.address, "a.b", 99, &entry), -ENOENT);
    memset(large, 'x', 300000);
    large[300000] = '\0';
    (void)domt_bucket_put_value("large", large);
    ck_assert(domt_bucket_has_recent_value("large", large));
    domt_bucket_remove_key("large");
    ck_assert(!domt_bucket_has_recent_value("large", large));
    ck_assert(!domt_bucket_has_recent_value("nothing", ""));
    free(large);
    domt_js_server_stop_with_client(&domt_bucket.js);
}

DOMT_TEST(values_are_read_back_from_leader)
{
    check_values_in_bucket(false);
}

DOMT_TEST(values_are_read_back_from_any_server)
{
    check_values_in_bucket(true);
}

DOMT_TEST(missing_or_different_bucket_is_refused)
{
    domus_nats_kv_config config = {.history = 2};
    domus_nats_kv_config other = {.history = 3};
    domus_nats_kv_config many = {.replicas = 3};
    domus_nats_kv_status status;

    domt_js_server_start_with_client(&domt_bucket.js);
    domt_bucket_open_at_server("b", NULL);
    ck_assert_int_eq(domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, "x", "v",
                                              DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0, NULL),
                     -ENXIO);
    domus_address before = domt_bucket.address;
    domt_bucket_open_at_server("b", &config);
    (void)domt_bucket_put_value("x", "v");
    domt_bucket_open_at_server("b", &other);
    ck_assert_int_eq(domt_js_server_ask_actor(&domt_bucket.js, domt_bucket.address,
                                              &domus_nats_kv_look_type, NULL, &status,
                                              sizeof status),
                     -EEXIST);
    /* a single server cannot have the replicas that these options ask for */
    domt_bucket_open_at_server("c", &many);
    ck_assert_int_eq(domt_js_server_ask_actor(&domt_bucket.js, domt_bucket.address,
                                              &domus_nats_kv_look_type, NULL, &status,
                                              sizeof status),
                     -EOPNOTSUPP);
    domt_bucket_open_at_server("b", &config);
    ck_assert_int_eq(domt_js_server_ask_actor(&domt_bucket.js, domt_bucket.address,
                                              &domus_nats_kv_look_type, NULL, &status,
                                              sizeof status),
                     0);
    ck_assert_uint_eq(status.entries, 1);
    ck_assert_uint_eq(status.history, 2);
    /* the first actor, which had found no bucket, finds it now that it exists */
    domt_bucket.address = before;
    ck_assert(domt_bucket_has_recent_value("x", "v"));
    ck_assert_int_eq(domt_js_server_ask_actor(&domt_bucket.js, domt_bucket.address,
                                              &domus_nats_kv_remove_type, NULL, NULL, 0),
                     0);
    ck_assert_int_eq(domt_js_server_ask_actor(&domt_bucket.js, domt_bucket.address,
                                              &domus_nats_kv_remove_type, NULL, NULL, 0),
                     -ENXIO);
    domt_js_server_stop_with_client(&domt_bucket.js);
}

DOMT_TEST(entries_expire_after_time_to_live)
{
    domus_nats_kv_config config = {.ttl_ns = 3 * DOMT_SECOND / 2, .storage = DOMUS_NATS_MEMORY};
    uint64_t revision = 0;

    domt_js_server_start_with_client(&domt_bucket.js);
    domt_bucket_open_at_server("leases", &config);
    ck_assert_int_eq(domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, "leader", "one",
                                              DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_IF_NONE, 0,
                                              &revision),
                     0);
    ck_assert_int_eq(domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, "leader", "two",
                                              DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_IF_NONE, 0,
                                              &revision),
                     -EEXIST);
    /* the lease outlives its time to live, because it is renewed in time */
    for (int i = 0; i < 4; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 450000000}, NULL);
        ck_assert_int_eq(domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, "leader",
                                                  "one", DOMUS_NATS_KV_PUT,
                                                  DOMUS_NATS_KV_IF_REVISION, revision, &revision),
                         0);
    }
    bool is_over = false;
    for (int i = 0; i < 50 && !is_over; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        is_over = domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, "leader", "two",
                                           DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_IF_NONE, 0, NULL) == 0;
    }
    ck_assert(is_over);
    ck_assert_int_eq(domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, "leader", "one",
                                              DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_IF_REVISION,
                                              revision, NULL),
                     -EEXIST);
    domt_js_server_stop_with_client(&domt_bucket.js);
}

DOMT_TEST(full_bucket_refuses_a_put)
{
    domus_nats_kv_config config = {.bytes_max = 2000, .value_max = 1500};
    char value[1600];

    domt_js_server_start_with_client(&domt_bucket.js);
    domt_bucket_open_at_server("b", &config);
    memset(value, 'v', sizeof value);
    value[1000] = '\0';
    (void)domt_bucket_put_value("x", value);
    ck_assert_int_eq(domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, "y", value,
                                              DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0, NULL),
                     -ENOSPC);
    value[1000] = 'v';
    value[1599] = '\0';
    ck_assert_int_eq(domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, "y", value,
                                              DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0, NULL),
                     -EMSGSIZE);
    domt_js_server_stop_with_client(&domt_bucket.js);
}

/* --- watches and lists ------------------------------------------------------------------------ */

DOMT_TEST(watch_reports_existing_entries_and_changes)
{
    domus_nats_kv_config config = {.history = 5};
    domus_nats_kv_list list;
    domus_nats_kv_keys keys = {.pattern = ""};

    domt_js_server_start_with_client(&domt_bucket.js);
    domt_bucket_open_at_server("b", &config);
    (void)domt_bucket_put_value("a", "1");
    (void)domt_bucket_put_value("b.c", "2");
    (void)domt_bucket_put_value("a", "3");
    (void)domt_bucket_put_value("gone", "4");
    domt_bucket_remove_key("gone");
    (void)domt_bucket_watch_keys("", DOMT_SECOND);
    domt_bucket_expect_change("b.c", "2", DOMUS_NATS_KV_PUT);
    domt_bucket_expect_change("a", "3", DOMUS_NATS_KV_PUT);
    domt_bucket_expect_change("gone", "", DOMUS_NATS_KV_DELETE);
    (void)domt_js_server_receive_notice(&domt_bucket.js, &domus_nats_kv_initial_type, DOMT_SECOND);
    (void)domt_bucket_put_value("a", "5");
    domt_bucket_expect_change("a", "5", DOMUS_NATS_KV_PUT);
    ck_assert_int_eq(domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, "a", NULL,
                                              DOMUS_NATS_KV_PURGE, DOMUS_NATS_KV_ALWAYS, 0, NULL),
                     0);
    domt_bucket_expect_change("a", "", DOMUS_NATS_KV_PURGE);
    ck_assert_int_eq(domt_js_server_ask_actor(&domt_bucket.js, domt_bucket.address,
                                              &domus_nats_kv_keys_type, &keys, &list, sizeof list),
                     0);
    ck_assert_uint_eq(list.count, 1);
    ck_assert(domt_slice_has_text(list.bytes, "b.c\n"));
    domus_slice_free(list.bytes);
    domt_js_server_stop_with_client(&domt_bucket.js);
}

DOMT_TEST(watch_continues_after_server_is_killed)
{
    domus_nats_kv_config config = {.history = 1};
    char value[16];

    domt_js_server_start_with_client(&domt_bucket.js);
    domt_bucket_open_at_server("b", &config);
    (void)domt_bucket_put_value("a", "1");
    (void)domt_bucket_watch_keys(">", DOMT_SECOND / 5);
    domt_bucket_expect_change("a", "1", DOMUS_NATS_KV_PUT);
    (void)domt_js_server_receive_notice(&domt_bucket.js, &domus_nats_kv_initial_type, DOMT_SECOND);
    for (int round = 0; round < 2; round++) {
        domt_js_server_kill_and_restart(&domt_bucket.js);
        snprintf(value, sizeof value, "round %d", round);
        int error = -1;
        for (int i = 0; i < 100 && error != 0; i++) {
            error = domt_js_server_put_entry(&domt_bucket.js, domt_bucket.address, "a", value,
                                             DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0, NULL);
            if (error != 0)
                nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        }
        ck_assert_int_eq(error, 0);
        domt_bucket_expect_change("a", value, DOMUS_NATS_KV_PUT);
    }
    domt_js_server_stop_with_client(&domt_bucket.js);
}

DOMT_TEST(watch_ends_when_bucket_is_removed)
{
    domus_nats_kv_config config = {.history = 1};

    domt_js_server_start_with_client(&domt_bucket.js);
    domt_bucket_open_at_server("b", &config);
    (void)domt_bucket_watch_keys("", DOMT_SECOND / 5);
    (void)domt_js_server_receive_notice(&domt_bucket.js, &domus_nats_kv_initial_type, DOMT_SECOND);
    ck_assert_int_eq(domt_js_server_ask_actor(&domt_bucket.js, domt_bucket.address,
                                              &domus_nats_kv_remove_type, NULL, NULL, 0),
                     0);
    const domus_nats_kv_ended *ended =
        domt_js_server_receive_notice(&domt_bucket.js, &domus_nats_kv_ended_type, 10 * DOMT_SECOND);
    ck_assert_int_eq(ended->error, -ENXIO);
    domt_js_server_stop_with_client(&domt_bucket.js);
}

DOMT_TEST(watch_reports_many_changes_in_order)
{
    domus_nats_kv_config config = {.history = 1, .storage = DOMUS_NATS_MEMORY};
    enum { CHANGES = 3000 };
    char key[16], last[8] = "";
    uint64_t before = 0;
    unsigned heard = 0;

    domt_js_server_start_with_client(&domt_bucket.js);
    domt_bucket_open_at_server("b", &config);
    (void)domt_bucket_watch_keys("", DOMT_SECOND / 5);
    (void)domt_js_server_receive_notice(&domt_bucket.js, &domus_nats_kv_initial_type, DOMT_SECOND);
    /* the test's outsider takes no notices during these changes, so its mailbox fills */
    for (unsigned i = 0; i < CHANGES; i++) {
        snprintf(key, sizeof key, "k%u", i % 1500);
        snprintf(last, sizeof last, "%u", i);
        domus_nats_kv_put ask = {.operation = DOMUS_NATS_KV_PUT};
        memcpy(ask.key, key, sizeof key);
        ck_assert_int_eq(domus_slice_copy(last, strlen(last), &ask.value), 0);
        ck_assert_int_eq(domus_outsider_ask(domt_bucket.js.user.outsider, domt_bucket.address,
                                            &domus_nats_kv_put_type, &ask, 10 * DOMT_SECOND, NULL),
                         0);
    }
    static char newest[1500][8];
    /* For changes that found the mailbox full, the watch reports only the newest of each key,
     * later. */
    for (;;) {
        const domus_nats_kv_entry *entry = domt_js_server_receive_notice(
            &domt_bucket.js, &domus_nats_kv_entry_type, 10 * DOMT_SECOND);
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
    domt_js_server_stop_with_client(&domt_bucket.js);
}

DOMT_SUITE(60)
