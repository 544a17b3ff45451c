/* A bucket of JetStream sends the requests of its protocol and reads the answers; answers with
 * another content than asked are errors. */
#include "tests/nats/js_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define OPENED                                                                                     \
    "{\"config\":{\"name\":\"KV_b\",\"max_msgs_per_subject\":3,\"max_age\":1000000000,"            \
    "\"storage\":\"memory\",\"num_replicas\":1,\"max_bytes\":-1},"                                 \
    "\"state\":{\"messages\":7,\"bytes\":99,\"first_seq\":1,\"last_seq\":12}}"
#define OPENED_DIRECT                                                                              \
    "{\"config\":{\"max_msgs_per_subject\":1,\"allow_direct\":true},\"state\":{\"messages\":0}}"
#define WRONG_SEQUENCE                                                                             \
    "{\"error\":{\"code\":400,\"err_code\":10071,\"description\":\"wrong last sequence: 4\"},"     \
    "\"stream\":\"KV_b\",\"seq\":0}"

static domt_js_world world;

static void make_bucket_in_kit(void)
{
    domus_nats_kv_options options = {.bucket = "b"};

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_bucket(&world, &options), 0);
}

/* Make a kit with a bucket that accepts the answer of any server to a get. */
static void make_bucket_reading_from_any(void)
{
    domus_nats_kv_options options = {.bucket = "b", .reads_any = true};

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_bucket(&world, &options), 0);
}

static void expect_opening_of_bucket(const char *answer)
{
    domt_js_expect_request(&world, "$JS.API.STREAM.INFO.KV_b", NULL, "");
    domt_js_answer_request(&world, NULL, answer);
}

static void ask_bucket_to_get(const char *key, uint64_t revision)
{
    domus_nats_kv_get ask = {.revision = revision};

    memcpy(ask.key, key, strlen(key) + 1);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_get_type, &ask), 0);
}

static void ask_bucket_to_put(const char *key, const char *value, domus_nats_kv_operation operation,
                              domus_nats_kv_condition condition, uint64_t revision)
{
    domus_nats_kv_put ask = {
        .operation = (uint8_t)operation, .condition = (uint8_t)condition, .revision = revision};

    memcpy(ask.key, key, strlen(key) + 1);
    ck_assert_int_eq(domus_slice_copy(value, strlen(value), &ask.value), 0);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_put_type, &ask), 0);
}

static void expect_answer_with_revision(uint64_t revision)
{
    domus_nats_kv_revision got;

    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_kv_revision_type, DOMT_SECOND, &got), 0);
    ck_assert_uint_eq(got.revision, revision);
}

static domus_nats_kv_entry expect_answer_with_entry(const char *key, const char *value,
                                                    uint64_t revision)
{
    domus_nats_kv_entry entry;

    int error = domus_probe_expect(world.user, &domus_nats_kv_entry_type, DOMT_SECOND, &entry);
    ck_assert_msg(error == 0, "%s", domus_testkit_error(world.kit));
    ck_assert(domt_js_slice_has_text(domus_nats_kv_key(&entry), key));
    ck_assert(domt_js_slice_has_text(domus_nats_kv_value(&entry), value));
    ck_assert_uint_eq(entry.revision, revision);
    ck_assert_uint_eq(entry.operation, DOMUS_NATS_KV_PUT);
    domus_slice_free(entry.bytes);
    return entry;
}

DOMT_TEST(get_reads_json_answer_of_leader)
{
    make_bucket_in_kit();
    ask_bucket_to_get("x", 0);
    /* the stream allows any server to answer, but the bucket asks the leader */
    expect_opening_of_bucket(OPENED_DIRECT);
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.KV_b", NULL,
                           "{\"last_by_subj\":\"$KV.b.x\"}");
    domt_js_answer_request(&world, NULL,
                           "{\"message\":{\"subject\":\"$KV.b.x\",\"seq\":2,\"data\":\"dHdv\","
                           "\"time\":\"2026-11-29T04:46:58.517928504Z\"}}");
    ck_assert_uint_eq(expect_answer_with_entry("x", "two", 2).written_ns,
                      UINT64_C(1795927618517928504));
    ask_bucket_to_get("x", 2); /* the bucket has been opened by the first ask */
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.KV_b", NULL, "{\"seq\":2}");
    domt_js_answer_request(&world, NULL, "{\"message\":{\"subject\":\"$KV.b.x\",\"seq\":2}}");
    (void)expect_answer_with_entry("x", "", 2);
    ask_bucket_to_get("x", 3);
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.KV_b", NULL, "{\"seq\":3}");
    domt_js_answer_request(&world, NULL, "{\"message\":{\"subject\":\"$KV.b.xy\",\"seq\":3}}");
    domt_js_expect_failed_ask(&world, -ENOENT);
    domt_js_world_end(&world);
}

DOMT_TEST(get_reads_direct_answer_of_any_server)
{
    make_bucket_reading_from_any();
    ask_bucket_to_get("a.b", 0);
    expect_opening_of_bucket(OPENED_DIRECT);
    domt_js_expect_request(&world, "$JS.API.DIRECT.GET.KV_b.$KV.b.a.b", NULL, "");
    domt_js_answer_request(&world,
                           "NATS/1.0\r\nNats-Sequence: 99\r\nNats-Subject: $KV.b.other\r\n"
                           "Nats-Stream: KV_b\r\nNats-Subject: $KV.b.a.b\r\nNats-Sequence: 5\r\n"
                           "Nats-Time-Stamp: 1970-01-01T00:00:01Z\r\n\r\n",
                           "value");
    ck_assert_uint_eq(expect_answer_with_entry("a.b", "value", 5).written_ns, DOMT_SECOND);
    ask_bucket_to_get("a.b", 4);
    domt_js_expect_request(&world, "$JS.API.DIRECT.GET.KV_b", NULL, "{\"seq\":4}");
    domt_js_answer_request(&world, "NATS/1.0 404 Message Not Found\r\n\r\n", "");
    domt_js_expect_failed_ask(&world, -ENOENT);
    domt_js_world_end(&world);
}

DOMT_TEST(deleted_key_has_no_value)
{
    make_bucket_reading_from_any();
    ask_bucket_to_get("x", 0);
    expect_opening_of_bucket(OPENED_DIRECT);
    domt_js_expect_request(&world, "$JS.API.DIRECT.GET.KV_b.$KV.b.x", NULL, "");
    domt_js_answer_request(&world,
                           "NATS/1.0\r\nKV-Operation: DEL\r\nNats-Subject: $KV.b.x\r\n"
                           "Nats-Sequence: 3\r\n\r\n",
                           "");
    domt_js_expect_failed_ask(&world, -ENOENT);
    ask_bucket_to_get("x", 0);
    domt_js_expect_request(&world, "$JS.API.DIRECT.GET.KV_b.$KV.b.x", NULL, "");
    domt_js_answer_request(&world,
                           "NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\nNats-Subject: $KV.b.x\r\n"
                           "Nats-Sequence: 3\r\n\r\n",
                           "");
    domt_js_expect_failed_ask(&world, -ENOENT);
    domt_js_world_end(&world);
}

DOMT_TEST(change_sends_its_condition_as_headers)
{
    make_bucket_in_kit();
    ask_bucket_to_put("x", "v", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0);
    expect_opening_of_bucket(OPENED);
    domt_js_expect_request(&world, "$KV.b.x", NULL, "v");
    domt_js_answer_request(&world, NULL, "{\"stream\":\"KV_b\", \"seq\":8}");
    expect_answer_with_revision(8);
    ask_bucket_to_put("x", "w", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_IF_REVISION, 8);
    domt_js_expect_request(&world, "$KV.b.x",
                           "Nats-Expected-Last-Subject-Sequence: 8\r\nNats-Msg-Id: x@8", "w");
    domt_js_answer_request(&world, NULL, WRONG_SEQUENCE);
    domt_js_expect_failed_ask(&world, -EEXIST);
    ask_bucket_to_put("x", "", DOMUS_NATS_KV_DELETE, DOMUS_NATS_KV_ALWAYS, 0);
    domt_js_expect_request(&world, "$KV.b.x", "KV-Operation: DEL", "");
    domt_js_answer_request(&world, NULL, "{\"seq\":9}");
    expect_answer_with_revision(9);
    ask_bucket_to_put("x", "", DOMUS_NATS_KV_PURGE, DOMUS_NATS_KV_IF_REVISION, 9);
    domt_js_expect_request(&world, "$KV.b.x",
                           "Nats-Expected-Last-Subject-Sequence: 9\r\nNats-Msg-Id: x@9\r\n"
                           "KV-Operation: PURGE\r\nNats-Rollup: sub",
                           "");
    domt_js_answer_request(&world, NULL, "{\"seq\":10}");
    expect_answer_with_revision(10);
    domt_js_world_end(&world);
}

/* Several replicas of nats-server 2.9 store both of two changes at one revision that are under way
 * at the same time, unless the changes have the same id; with the id, the second one is answered as
 * a duplicate of the first. */
DOMT_TEST(second_change_at_same_revision_fails)
{
    make_bucket_in_kit();
    ask_bucket_to_put("x", "v", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_IF_REVISION, 8);
    expect_opening_of_bucket(OPENED);
    domt_js_expect_request(&world, "$KV.b.x",
                           "Nats-Expected-Last-Subject-Sequence: 8\r\nNats-Msg-Id: x@8", "v");
    domt_js_answer_request(&world, NULL, "{\"stream\":\"KV_b\",\"seq\":9,\"duplicate\":true}");
    domt_js_expect_failed_ask(&world, -EEXIST);
    ask_bucket_to_put("x", "v", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_IF_REVISION, 8);
    domt_js_expect_request(&world, "$KV.b.x",
                           "Nats-Expected-Last-Subject-Sequence: 8\r\nNats-Msg-Id: x@8", "v");
    domt_js_answer_request(&world, NULL, "{\"error\":{\"code\":409,\"err_code\":10158}}");
    domt_js_expect_failed_ask(&world, -EEXIST);
    domt_js_world_end(&world);
}

DOMT_TEST(create_succeeds_over_delete_marker)
{
    make_bucket_in_kit();
    ask_bucket_to_put("x", "v", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_IF_NONE, 0);
    expect_opening_of_bucket(OPENED);
    domt_js_expect_request(&world, "$KV.b.x", "Nats-Expected-Last-Subject-Sequence: 0", "v");
    domt_js_answer_request(&world, NULL, WRONG_SEQUENCE);
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.KV_b", NULL, NULL);
    domt_js_answer_request(&world, NULL,
                           "{\"message\":{\"subject\":\"$KV.b.x\",\"seq\":4,"
                           "\"hdrs\":\"TkFUUy8xLjANCktWLU9wZXJhdGlvbjogREVMDQoNCg==\"}}");
    domt_js_expect_request(&world, "$KV.b.x",
                           "Nats-Expected-Last-Subject-Sequence: 4\r\nNats-Msg-Id: x@4", "v");
    domt_js_answer_request(&world, NULL, "{\"seq\":5}");
    expect_answer_with_revision(5);
    domt_js_world_end(&world);
}

DOMT_TEST(create_of_existing_key_fails)
{
    make_bucket_in_kit();
    ask_bucket_to_put("x", "v", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_IF_NONE, 0);
    expect_opening_of_bucket(OPENED);
    domt_js_expect_request(&world, "$KV.b.x", "Nats-Expected-Last-Subject-Sequence: 0", "v");
    domt_js_answer_request(&world, NULL, WRONG_SEQUENCE);
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.KV_b", NULL, NULL);
    domt_js_answer_request(&world, NULL, "{\"message\":{\"subject\":\"$KV.b.x\",\"seq\":4}}");
    domt_js_expect_failed_ask(&world, -EEXIST);
    domt_js_world_end(&world);
}

DOMT_TEST(create_gives_up_after_lost_races)
{
    make_bucket_in_kit();
    ask_bucket_to_put("x", "v", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_IF_NONE, 0);
    expect_opening_of_bucket(OPENED);
    for (int i = 0; i < 2; i++) {
        domt_js_expect_request(&world, "$KV.b.x", "Nats-Expected-Last-Subject-Sequence: 0", "v");
        domt_js_answer_request(&world, NULL, WRONG_SEQUENCE);
        domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.KV_b", NULL, NULL);
        domt_js_answer_request(&world, NULL, "{\"error\":{\"code\":404,\"err_code\":10037}}");
    }
    domt_js_expect_request(&world, "$KV.b.x", "Nats-Expected-Last-Subject-Sequence: 0", "v");
    domt_js_answer_request(&world, NULL, WRONG_SEQUENCE);
    domt_js_expect_failed_ask(&world, -EEXIST);
    domt_js_world_end(&world);
}

DOMT_TEST(missing_bucket_is_looked_up_by_each_ask)
{
    make_bucket_in_kit();
    ask_bucket_to_get("x", 0);
    expect_opening_of_bucket(
        "{\"error\":{\"code\":404,\"err_code\":10059,\"description\":\"stream not found\"}}");
    domt_js_expect_failed_ask(&world, -ENXIO);
    ask_bucket_to_put("x", "v", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0);
    expect_opening_of_bucket(OPENED);
    domt_js_expect_request(&world, "$KV.b.x", NULL, "v");
    ck_assert_int_eq(domus_probe_fail(world.client, -ECONNREFUSED), 0);
    domt_js_expect_failed_ask(&world, -ECONNREFUSED);
    /* the bucket was removed after it had been opened, so this ask opens it again */
    ask_bucket_to_get("x", 0);
    expect_opening_of_bucket(OPENED);
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.KV_b", NULL, NULL);
    ck_assert_int_eq(domus_probe_fail(world.client, -EPIPE), 0);
    domt_js_expect_failed_ask(&world, -EPIPE);
    ask_bucket_to_get("x", 0);
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.KV_b", NULL, NULL);
    ck_assert_int_eq(domus_probe_fail(world.client, -ETIMEDOUT), 0);
    domt_js_expect_failed_ask(&world, -ETIMEDOUT);
    domt_js_world_end(&world);
}

/* The servers elect a leader of all streams, who alone says whether a bucket exists, and a leader
 * of each stream. */
DOMT_TEST(known_bucket_is_retried_while_no_leader_exists)
{
    static const char no_leader[] = "{\"error\":{\"code\":503,\"err_code\":10008}}";

    make_bucket_in_kit();
    ask_bucket_to_get("x", 0);
    expect_opening_of_bucket(no_leader);
    domt_js_expect_failed_ask(&world, -EAGAIN);
    ask_bucket_to_put("x", "v", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0);
    expect_opening_of_bucket(OPENED);
    domt_js_expect_request(&world, "$KV.b.x", NULL, "v");
    ck_assert_int_eq(domus_probe_fail(world.client, -ECONNREFUSED), 0);
    domt_js_expect_failed_ask(&world, -ECONNREFUSED);
    ask_bucket_to_put("x", "w", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0);
    expect_opening_of_bucket(no_leader);
    domt_js_expect_request(&world, "$KV.b.x", NULL, "w");
    domt_js_answer_request(&world, NULL, "{\"seq\":9}");
    expect_answer_with_revision(9);
    domt_js_world_end(&world);
}

DOMT_TEST(asks_wait_while_bucket_is_opened)
{
    make_bucket_in_kit();
    ask_bucket_to_put("x", "1", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0);
    ask_bucket_to_put("x", "2", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0);
    expect_opening_of_bucket(OPENED);
    domt_js_expect_request(&world, "$KV.b.x", NULL, "1");
    domt_js_answer_request(&world, NULL, "{\"seq\":1}");
    domt_js_expect_request(&world, "$KV.b.x", NULL, "2");
    domt_js_answer_request(&world, NULL, "{\"seq\":2}");
    expect_answer_with_revision(1);
    expect_answer_with_revision(2);
    domt_js_world_end(&world);
}

DOMT_TEST(bucket_is_created_with_its_options)
{
    domus_nats_kv_config config = {.description = "d",
                                   .storage = DOMUS_NATS_MEMORY,
                                   .history = 5,
                                   .replicas = 3,
                                   .value_max = 100,
                                   .bytes_max = 1000,
                                   .ttl_ns = 10 * DOMT_SECOND};
    domus_nats_kv_options options = {.bucket = "leases", .create = &config};
    domus_nats_kv_status status;

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_bucket(&world, &options), 0);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_look_type, NULL), 0);
    domt_js_expect_request(
        &world, "$JS.API.STREAM.CREATE.KV_leases", NULL,
        "{\"name\":\"KV_leases\",\"description\":\"d\",\"subjects\":[\"$KV.leases.>\"],"
        "\"storage\":\"memory\",\"retention\":\"limits\",\"discard\":\"new\",\"num_replicas\":3,"
        "\"max_consumers\":-1,\"max_msgs\":-1,\"max_msgs_per_subject\":5,\"max_bytes\":1000,"
        "\"max_msg_size\":100,\"max_age\":10000000000,\"duplicate_window\":10000000000,"
        "\"allow_direct\":true,\"allow_rollup_hdrs\":true,\"deny_delete\":true,"
        "\"deny_purge\":false}");
    domt_js_answer_request(&world, NULL, OPENED_DIRECT);
    domt_js_expect_request(&world, "$JS.API.STREAM.INFO.KV_leases", NULL, "");
    domt_js_answer_request(&world, NULL, OPENED);
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_kv_status_type, DOMT_SECOND, &status), 0);
    ck_assert_uint_eq(status.entries, 7);
    ck_assert_uint_eq(status.bytes, 99);
    ck_assert_uint_eq(status.revision, 12);
    ck_assert_uint_eq(status.history, 3);
    ck_assert_uint_eq(status.ttl_ns, DOMT_SECOND);
    ck_assert_uint_eq(status.bytes_max, 0);
    ck_assert_int_eq(status.storage, DOMUS_NATS_MEMORY);
    ck_assert(!status.allow_direct);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_remove_type, NULL),
                     0);
    domt_js_expect_request(&world, "$JS.API.STREAM.DELETE.KV_leases", NULL, "");
    domt_js_answer_request(&world, NULL, "{\"success\":true}");
    ck_assert_int_eq(domus_probe_expect(world.user, &domus_nats_done_type, DOMT_SECOND, NULL), 0);
    domt_js_world_end(&world);
}

DOMT_TEST(wrong_bucket_names_and_options_are_refused)
{
    static const char *const buckets[] = {NULL, "", "a.b", "a b", "a*", "a/b", "\xc3\xa4"};
    domus_nats_kv_config config = {.history = 65};
    domus_nats_kv_options options = {.bucket = "b", .create = &config};

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_bucket(&world, &options), -EINVAL);
    config = (domus_nats_kv_config){.ttl_ns = 99999999};
    ck_assert_int_eq(domt_js_open_bucket(&world, &options), -EINVAL);
    config = (domus_nats_kv_config){.replicas = 6};
    ck_assert_int_eq(domt_js_open_bucket(&world, &options), -EINVAL);
    config = (domus_nats_kv_config){.bytes_max = UINT64_MAX};
    ck_assert_int_eq(domt_js_open_bucket(&world, &options), -EINVAL);
    options.create = NULL;
    for (size_t i = 0; i < sizeof buckets / sizeof buckets[0]; i++) {
        options.bucket = buckets[i];
        ck_assert_int_eq(domt_js_open_bucket(&world, &options), -EINVAL);
    }
    options.bucket = "b";
    ck_assert_int_eq(domt_js_open_bucket(&world, &options), 0);
    ask_bucket_to_get("", 0);
    domt_js_expect_failed_ask(&world, -EINVAL);
    ask_bucket_to_get("a b", 0);
    domt_js_expect_failed_ask(&world, -EINVAL);
    ask_bucket_to_get("a.>", 0);
    domt_js_expect_failed_ask(&world, -EINVAL);
    ask_bucket_to_put("x", "v", DOMUS_NATS_KV_DELETE, DOMUS_NATS_KV_ALWAYS, 0);
    domt_js_expect_failed_ask(&world, -EINVAL);
    ask_bucket_to_put("x", "", DOMUS_NATS_KV_DELETE, DOMUS_NATS_KV_IF_NONE, 0);
    domt_js_expect_failed_ask(&world, -EINVAL);
    domt_js_world_end(&world);
}

DOMT_TEST(malformed_answers_become_errors)
{
    static const char *const acks[] = {"",
                                       "{",
                                       "[]",
                                       "{}",
                                       "{\"seq\":0}",
                                       "{\"seq\":-1}",
                                       "{\"seq\":\"1\"}",
                                       "{\"seq\":1.5}",
                                       "{\"seq\":1,\"seq\":2}",
                                       "{\"seq\":99999999999999999999}",
                                       "{\"seq\":1,\"duplicate\":1}",
                                       "{\"error\":1,\"seq\":1}",
                                       "{\"error\":{\"code\":\"x\"},\"seq\":1}",
                                       "null",
                                       "1"};
    static const char *const messages[] = {
        "{\"message\":{\"subject\":\"$KV.b.x\",\"seq\":0}}",
        "{\"message\":{\"subject\":\"$KV.c.x\",\"seq\":1}}",
        "{\"message\":{\"subject\":\"$KV.b\",\"seq\":1}}",
        "{\"message\":{\"subject\":\"$KV.b.\",\"seq\":1}}",
        "{\"message\":{\"subject\":1,\"seq\":1}}",
        "{\"message\":{\"subject\":\"$KV.b.x\",\"seq\":1,\"data\":\"a\"}}",
        "{\"message\":{\"subject\":\"$KV.b.x\",\"seq\":1,\"data\":\"a===\"}}",
        "{\"message\":{\"subject\":\"$KV.b.x\",\"seq\":1,\"data\":\"a\\u0000==\"}}",
        "{\"message\":[]}",
        "{\"message\":null}"};

    make_bucket_in_kit();
    ask_bucket_to_put("x", "v", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0);
    expect_opening_of_bucket(OPENED);
    domt_js_expect_request(&world, "$KV.b.x", NULL, "v");
    /* The answer has headers, which the bucket ignores. */
    domt_js_answer_request(&world, "NATS/1.0\r\nA: b\r\n\r\n", "{\"seq\":1}");
    expect_answer_with_revision(1);
    for (size_t i = 0; i < sizeof acks / sizeof acks[0]; i++) {
        ask_bucket_to_put("x", "v", DOMUS_NATS_KV_PUT, DOMUS_NATS_KV_ALWAYS, 0);
        domt_js_expect_request(&world, "$KV.b.x", NULL, "v");
        domt_js_answer_request(&world, NULL, acks[i]);
        domt_js_expect_failed_ask(&world, -EPROTO);
    }
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        ask_bucket_to_get("x", 0);
        domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.KV_b", NULL, NULL);
        domt_js_answer_request(&world, NULL, messages[i]);
        domt_js_expect_failed_ask(&world, -EPROTO);
    }
    ask_bucket_to_get("x", 0);
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.KV_b", NULL, NULL);
    domt_js_answer_request(&world, "NATS/1.0\r\nNats-Subject: $KV.b.x\r\nNats-Sequence: 1x\r\n\r\n",
                           "v");
    domt_js_expect_failed_ask(&world, -EPROTO);
    ask_bucket_to_get("x", 0);
    domt_js_expect_request(&world, "$JS.API.STREAM.MSG.GET.KV_b", NULL, NULL);
    domt_js_answer_request(&world, "NATS/1.0 503\r\n\r\n", "");
    domt_js_expect_failed_ask(&world, -EAGAIN);
    domt_js_world_end(&world);
}

DOMT_SUITE(20)
