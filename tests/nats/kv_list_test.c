/* Lists of keys, and a watcher whose mailbox is full. */
#include "tests/nats/js_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OPENED "{\"config\":{\"max_msgs_per_subject\":1},\"state\":{\"messages\":0}}"
#define CREATE "$JS.API.CONSUMER.CREATE.KV_b"

static domt_js_world world;
static domus_address lister;
static uint64_t tag;

static void make_bucket_in_kit(void)
{
    domus_nats_kv_options options = {.bucket = "b"};

    domt_js_world_begin(&world);
    ck_assert_int_eq(domt_js_open_bucket(&world, &options), 0);
}

static void answer_opening_of_bucket(void)
{
    domt_js_expect_request(&world, "$JS.API.STREAM.INFO.KV_b", NULL, "");
    domt_js_answer_request(&world, NULL, OPENED);
}

static void ask_bucket_for_key_list(const char *pattern)
{
    domus_nats_kv_keys keys = {.pattern = ""};

    memcpy(keys.pattern, pattern, strlen(pattern));
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_keys_type, &keys), 0);
}

static void expect_round_of_lister(const char *filter, uint64_t number, uint64_t pending)
{
    char inbox[64], body[1024], answer[200];

    lister = domt_js_expect_subscription(&world, number, &tag, inbox);
    snprintf(body, sizeof body,
             "{\"stream_name\":\"KV_b\",\"config\":{\"deliver_subject\":\"%s\","
             "\"deliver_policy\":\"last_per_subject\",\"opt_start_seq\":0,\"ack_policy\":\"none\","
             "\"max_deliver\":1,\"filter_subject\":\"%s\",\"flow_control\":true,"
             "\"idle_heartbeat\":5000000000,\"headers_only\":true,\"mem_storage\":true,"
             "\"num_replicas\":1,\"inactive_threshold\":15000000000}}",
             inbox, filter);
    domt_js_expect_request(&world, CREATE, NULL, body);
    snprintf(answer, sizeof answer, "{\"delivered\":{\"stream_seq\":0},\"num_pending\":%llu}",
             (unsigned long long)pending);
    domt_js_answer_request(&world, NULL, answer);
}

static void deliver_entry_to_lister(domus_address to, unsigned delivery, unsigned revision,
                                    unsigned pending, const char *key, const char *headers)
{
    char reply[100], subject[400];

    snprintf(reply, sizeof reply, "$JS.ACK.KV_b.abc.1.%u.%u.1000.%u", revision, delivery, pending);
    snprintf(subject, sizeof subject, "$KV.b.%s", key);
    domt_js_deliver_message(&world, to, tag, domt_js_make_message(subject, reply, headers, ""));
}

static void expect_list_of_keys(uint32_t count, const char *text)
{
    domus_nats_kv_list list;
    int error = domus_probe_expect(world.user, &domus_nats_kv_list_type, DOMT_SECOND, &list);

    ck_assert_msg(error == 0, "%s", domus_testkit_error(world.kit));
    ck_assert_uint_eq(list.count, count);
    ck_assert(domt_js_slice_has_text(list.bytes, text));
    domus_slice_free(list.bytes);
}

DOMT_TEST(list_has_only_keys_with_values)
{
    domus_slice key;
    uint32_t at = 0;

    make_bucket_in_kit();
    ask_bucket_for_key_list("");
    answer_opening_of_bucket();
    expect_round_of_lister("$KV.b.>", 5, 3);
    deliver_entry_to_lister(lister, 1, 3, 2, "one", NULL);
    deliver_entry_to_lister(lister, 2, 5, 1, "two", "NATS/1.0\r\nKV-Operation: DEL\r\n\r\n");
    deliver_entry_to_lister(lister, 3, 6, 0, "three.four", NULL);
    domt_js_expect_unsubscription(&world, 5);
    domus_nats_kv_list list;
    ck_assert_int_eq(domus_probe_expect(world.user, &domus_nats_kv_list_type, DOMT_SECOND, &list),
                     0);
    ck_assert_uint_eq(list.count, 2);
    ck_assert(domus_nats_kv_next(&list, &at, &key) && domt_js_slice_has_text(key, "one"));
    ck_assert(domus_nats_kv_next(&list, &at, &key) && domt_js_slice_has_text(key, "three.four"));
    ck_assert(!domus_nats_kv_next(&list, &at, &key));
    domus_slice_free(list.bytes);
    ask_bucket_for_key_list("a.*");
    expect_round_of_lister("$KV.b.a.*", 6, 0);
    domt_js_expect_unsubscription(&world, 6);
    expect_list_of_keys(0, "");
    domt_js_world_end(&world);
}

DOMT_TEST(list_restarts_after_missing_message)
{
    make_bucket_in_kit();
    ask_bucket_for_key_list("");
    answer_opening_of_bucket();
    expect_round_of_lister("$KV.b.>", 5, 3);
    deliver_entry_to_lister(lister, 1, 3, 2, "one", NULL);
    deliver_entry_to_lister(lister, 3, 6, 0, "three", NULL);
    domt_js_expect_unsubscription(&world, 5);
    expect_round_of_lister("$KV.b.>", 6, 2);
    deliver_entry_to_lister(lister, 1, 3, 1, "one", NULL);
    deliver_entry_to_lister(lister, 2, 6, 0, "three", NULL);
    expect_list_of_keys(2, "one\nthree\n");
    domt_js_world_end(&world);
}

/* Keys may change while they are listed: each key is listed once, and removed keys are not
 * listed. */
DOMT_TEST(list_names_each_key_once)
{
    static const char deleted[] = "NATS/1.0\r\nKV-Operation: DEL\r\n\r\n";
    char key[20], expected[3000] = "back\n";

    make_bucket_in_kit();
    ask_bucket_for_key_list("");
    answer_opening_of_bucket();
    expect_round_of_lister("$KV.b.>", 5, 104);
    deliver_entry_to_lister(lister, 1, 1, 103, "goes", NULL);
    deliver_entry_to_lister(lister, 2, 2, 102, "back", NULL);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "key%u", i);
        deliver_entry_to_lister(lister, 3 + i, 3 + i, 101 - i, key, NULL);
        if (i != 7)
            snprintf(expected + strlen(expected), 24, "%s\n", key);
    }
    deliver_entry_to_lister(lister, 103, 200, 4, "goes", deleted);
    deliver_entry_to_lister(lister, 104, 201, 3, "back", deleted);
    deliver_entry_to_lister(lister, 105, 202, 2, "key7", deleted);
    /* this key comes again before all existing keys have come */
    deliver_entry_to_lister(lister, 106, 203, 0, "back", NULL);
    deliver_entry_to_lister(lister, 107, 204, 1, "never", deleted);
    deliver_entry_to_lister(lister, 108, 205, 0, "other", deleted);
    expect_list_of_keys(100, expected);
    domt_js_world_end(&world);
}

DOMT_TEST(list_fails_after_several_lost_consumers)
{
    make_bucket_in_kit();
    ask_bucket_for_key_list("");
    answer_opening_of_bucket();
    for (uint64_t i = 0; i < 4; i++) {
        expect_round_of_lister("$KV.b.>", 5 + i, 3);
        deliver_entry_to_lister(lister, 2, 3, 2, "one", NULL);
        domt_js_expect_unsubscription(&world, 5 + i);
    }
    domt_js_expect_failed_ask(&world, -EAGAIN);
    domt_js_world_end(&world);
}

DOMT_TEST(list_of_keys_has_limits)
{
    char key[DOMUS_NATS_KV_KEY_MAX + 1];

    make_bucket_in_kit();
    ask_bucket_for_key_list("");
    answer_opening_of_bucket();
    expect_round_of_lister("$KV.b.>", 5, 3);
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    for (unsigned i = 1; i <= DOMUS_NATS_KV_KEYS_BYTES / 256 + 1; i++) {
        memcpy(key, (char[]){(char)('a' + i % 16), (char)('0' + i / 16 % 64)}, 2);
        key[2] = (char)('0' + i / 1024 % 64);
        deliver_entry_to_lister(lister, i, i, 2, key, NULL);
        if (i % 64 == 0)
            ck_assert_int_eq(domus_testkit_run(world.kit), 0);
    }
    domt_js_expect_failed_ask(&world, -E2BIG);
    ask_bucket_for_key_list(">.a");
    domt_js_expect_unsubscription(&world, 5);
    domt_js_expect_failed_ask(&world, -EINVAL);
    domt_js_world_end(&world);
}

/* --- a watcher whose mailbox is full ---------------------------------------------------------- */

static unsigned entries_seen;
static const domus_type nap_type = {.name = "nap"};

static int end_nap_of_watcher(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

/* Sleep behind a barrier, so that notices to this actor wait in its mailbox. */
static int handle_nap_by_sleeping_behind_barrier(domus_stack *stack, void *self,
                                                 const void *payload)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_sleep(stack, 3 * DOMT_SECOND, end_nap_of_watcher);
}

static int handle_entry_by_counting(domus_stack *stack, void *self, const void *payload)
{
    const domus_nats_kv_entry *entry = payload;

    entries_seen++;
    ck_assert_uint_eq(entry->revision, entries_seen);
    return 0;
}

static int handle_initial_mark(domus_stack *stack, void *self, const void *payload)
{
    const domus_nats_kv_initial *initial = payload;

    ck_assert_uint_eq(initial->revision, 0);
    return 0;
}

static const domus_on sleeper_rows[] = {{&nap_type, handle_nap_by_sleeping_behind_barrier, 0},
                                        {&domus_nats_kv_entry_type, handle_entry_by_counting, 0},
                                        {&domus_nats_kv_initial_type, handle_initial_mark, 0},
                                        {.type = NULL}};
static const domus_behaviour sleeper = {.name = "sleeper", .kind = DOMUS_STATE, .on = sleeper_rows};

DOMT_TEST(watch_waits_for_full_mailbox)
{
    const domus_spawn_options options = {.mailbox_max = 2};
    domus_nats_kv_watch watch = {.heartbeat_ns = DOMT_SECOND};
    char inbox[64];

    make_bucket_in_kit();
    entries_seen = 0;
    ck_assert_int_eq(domus_outside_spawn_with(domus_testkit_system(world.kit), &sleeper, NULL,
                                              &options, &watch.to),
                     0);
    ck_assert_int_eq(domus_probe_send(world.user, watch.to, &nap_type, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(world.kit), 0);
    ck_assert_int_eq(domus_probe_ask(world.user, world.opened, &domus_nats_kv_watch_type, &watch),
                     0);
    answer_opening_of_bucket();
    lister = domt_js_expect_subscription(&world, 5, &tag, inbox);
    domt_js_expect_request(&world, CREATE, NULL, NULL);
    domt_js_answer_request(&world, NULL, "{\"delivered\":{\"stream_seq\":0},\"num_pending\":0}");
    ck_assert_int_eq(
        domus_probe_expect(world.user, &domus_nats_kv_watching_type, DOMT_SECOND, NULL), 0);
    /* This entry and the mark behind the existing entries fill the watcher's mailbox. */
    deliver_entry_to_lister(lister, 1, 1, 0, "one", NULL);
    deliver_entry_to_lister(lister, 2, 2, 0, "two", NULL);
    deliver_entry_to_lister(lister, 3, 3, 0, "three", NULL);
    domt_js_expect_unsubscription(&world, 5);
    ck_assert_int_eq(domus_probe_expect_nothing(world.client, DOMT_SECOND), 0);
    lister = domt_js_expect_subscription(&world, 6, &tag, inbox);
    domt_js_expect_request(&world, CREATE, NULL, NULL);
    domt_js_answer_request(&world, NULL, "{\"delivered\":{\"stream_seq\":1},\"num_pending\":2}");
    deliver_entry_to_lister(lister, 1, 2, 1, "two", NULL);
    deliver_entry_to_lister(lister, 2, 3, 0, "three", NULL);
    ck_assert_int_eq(domus_testkit_run(world.kit), 0);
    ck_assert_uint_eq(entries_seen, 3);
    domt_js_world_end(&world);
}

DOMT_TEST(keys_are_made_from_any_bytes)
{
    char key[DOMUS_NATS_KV_KEY_MAX + 1], small[4], bytes[300];
    size_t size = 0;

    ck_assert_int_eq(domus_nats_kv_make_key("a-_Z9", 5, key, sizeof key), 0);
    ck_assert_str_eq(key, "a-_Z9");
    ck_assert_int_eq(domus_nats_kv_make_key("a.b=\0\xff", 6, key, sizeof key), 0);
    ck_assert_str_eq(key, "a=2Eb=3D=00=FF");
    ck_assert_int_eq(domus_nats_kv_check_key(key), 0);
    ck_assert_int_eq(domus_nats_kv_read_key(key, strlen(key), bytes, 6, &size), 0);
    ck_assert_uint_eq(size, 6);
    ck_assert_mem_eq(bytes, "a.b=\0\xff", 6);
    ck_assert_int_eq(domus_nats_kv_read_key(key, strlen(key), bytes, 5, &size), -EMSGSIZE);
    ck_assert_int_eq(domus_nats_kv_make_key("", 0, key, sizeof key), -EINVAL);
    ck_assert_int_eq(domus_nats_kv_make_key("abc", 3, small, sizeof small), 0);
    ck_assert_int_eq(domus_nats_kv_make_key("abcd", 4, small, sizeof small), -EMSGSIZE);
    ck_assert_int_eq(domus_nats_kv_make_key("ab.", 3, small, sizeof small), -EMSGSIZE);
    static const char *const wrong[] = {"",    "=",   "=2",  "=2e", "=61",
                                        "a.b", "a/b", "=G0", "a=",  "=2="};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(
            domus_nats_kv_read_key(wrong[i], strlen(wrong[i]), bytes, sizeof bytes, &size),
            -EINVAL);
    for (unsigned byte = 0; byte < 256; byte++) { /* each byte in a key is read back unchanged */
        unsigned char one = (unsigned char)byte, back = 0;
        ck_assert_int_eq(domus_nats_kv_make_key(&one, 1, key, sizeof key), 0);
        ck_assert_int_eq(domus_nats_kv_check_key(key), 0);
        ck_assert_int_eq(domus_nats_kv_read_key(key, strlen(key), &back, 1, &size), 0);
        ck_assert_uint_eq(back, one);
    }
}

DOMT_TEST(keys_are_validated)
{
    static const char *const right[] = {"a", "a.b", "-/_=.x", "A9", "="};
    static const char *const wrong[] = {"",    ".a",  "a.",       "a..b", "a b",
                                        "a*b", "a.>", "\xc3\xa4", "a\n",  "a:b"};
    char key[DOMUS_NATS_KV_KEY_MAX + 2];

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        ck_assert_int_eq(domus_nats_kv_check_key(right[i]), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_nats_kv_check_key(wrong[i]), -EINVAL);
    memset(key, 'a', sizeof key);
    key[DOMUS_NATS_KV_KEY_MAX] = '\0';
    ck_assert_int_eq(domus_nats_kv_check_key(key), 0);
    key[DOMUS_NATS_KV_KEY_MAX] = 'a';
    key[DOMUS_NATS_KV_KEY_MAX + 1] = '\0';
    ck_assert_int_eq(domus_nats_kv_check_key(key), -EINVAL);
}

DOMT_SUITE(60)
