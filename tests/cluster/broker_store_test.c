/* The buckets of the simulated cluster answer the requests of JetStream, and all clients see the
 * changes of a key in one order, whatever breaks. */
#include "tests/cluster/broker.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include "base/random.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PASS (5 * DOMT_MS)

static const char create[] =
    "{\"name\":\"KV_b\",\"subjects\":[\"$KV.b.>\"],\"max_msgs_per_subject\":1,\"max_age\":%" PRIu64
    ",\"allow_direct\":true}";

static domt_heard request_and_receive_answer(domt_member *member, const char *subject,
                                             const char *headers, const char *text)
{
    domt_member_request(member, subject, headers, text);
    domt_pass_time(member->cluster, PASS);
    return domt_member_receive_message(member);
}

static void make_bucket_with_age(domt_member *member, uint64_t age_ns)
{
    char text[256];

    snprintf(text, sizeof text, create, age_ns);
    domt_heard heard = request_and_receive_answer(member, "$JS.API.STREAM.CREATE.KV_b", NULL, text);
    ck_assert_ptr_nonnull(strstr(heard.payload, "\"config\""));
}

/* Returns the revision that an answer of the store brings; 0 when the answer is an error. */
static uint64_t revision_in_answer(const domt_heard *heard)
{
    const char *at = strstr(heard->payload, "\"seq\":");

    return at != NULL ? strtoull(at + 6, NULL, 10) : 0;
}

/* Put a value under a key. Returns its revision; 0 when the answer is an error. */
static uint64_t revision_of_put_value(domt_member *member, const char *key, const char *headers,
                                      const char *value)
{
    char subject[64];

    snprintf(subject, sizeof subject, "$KV.b.%s", key);
    domt_heard heard = request_and_receive_answer(member, subject, headers, value);
    return revision_in_answer(&heard);
}

static domt_heard request_value_of_key(domt_member *member, const char *key)
{
    char subject[96];

    snprintf(subject, sizeof subject, "$JS.API.DIRECT.GET.KV_b.$KV.b.%s", key);
    return request_and_receive_answer(member, subject, NULL, "");
}

DOMT_TEST(key_is_put_got_and_compared)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(
        1, &(domus_testkit_cluster_options){.servers = 3}, 2, members);

    domt_member_request(&members[0], "$KV.b.x", NULL, "1");
    domt_pass_time(cluster, PASS);
    /* the put fails, because the bucket does not exist yet */
    domt_member_expect_failure(&members[0], -ECONNREFUSED);
    make_bucket_with_age(&members[0], 0);
    make_bucket_with_age(&members[1], 0); /* making the bucket a second time succeeds */
    ck_assert_uint_eq(request_value_of_key(&members[0], "x").status, 404);
    ck_assert_uint_eq(
        revision_of_put_value(&members[0], "x", "Nats-Expected-Last-Subject-Sequence: 0\r\n", "1"),
        1);
    ck_assert_uint_eq(
        revision_of_put_value(&members[1], "x", "Nats-Expected-Last-Subject-Sequence: 0\r\n", "2"),
        0);
    ck_assert_uint_eq(revision_of_put_value(&members[1], "y", NULL, "3"), 2);
    ck_assert_uint_eq(
        revision_of_put_value(&members[1], "x", "Nats-Expected-Last-Subject-Sequence: 1\r\n", "4"),
        3);
    domt_heard heard = request_value_of_key(&members[0], "x");
    ck_assert_str_eq(heard.payload, "4");
    ck_assert_ptr_nonnull(strstr(heard.headers, "Nats-Sequence: 3\r\n"));
    ck_assert_ptr_nonnull(strstr(heard.headers, "Nats-Subject: $KV.b.x\r\n"));
    ck_assert_ptr_nonnull(strstr(heard.headers, "Nats-Time-Stamp: 2023-11-14T22:13:2"));
    ck_assert_uint_eq(
        revision_of_put_value(&members[0], "x", "KV-Operation: PURGE\r\nNats-Rollup: sub\r\n", ""),
        4);
    ck_assert_ptr_nonnull(
        strstr(request_value_of_key(&members[0], "x").headers, "KV-Operation: PURGE\r\n"));
    heard =
        request_and_receive_answer(&members[0], "$JS.API.STREAM.MSG.GET.KV_b", NULL, "{\"seq\":2}");
    ck_assert_ptr_nonnull(strstr(heard.payload, "\"data\":\"Mw==\""));
    ck_assert_ptr_nonnull(strstr(heard.payload, "\"subject\":\"$KV.b.y\""));
    heard =
        request_and_receive_answer(&members[0], "$JS.API.STREAM.MSG.GET.KV_b", NULL, "{\"seq\":1}");
    ck_assert_ptr_nonnull(strstr(heard.payload, "\"err_code\":10037"));
    heard = request_and_receive_answer(&members[0], "$JS.API.STREAM.INFO.KV_b", NULL, "");
    ck_assert_ptr_nonnull(strstr(heard.payload, "\"messages\":2"));
    ck_assert_ptr_nonnull(strstr(heard.payload, "\"last_seq\":4"));
    heard = request_and_receive_answer(&members[0], "$JS.API.STREAM.DELETE.KV_b", NULL, "");
    ck_assert_ptr_nonnull(strstr(heard.payload, "\"success\":true"));
    heard = request_and_receive_answer(&members[0], "$JS.API.STREAM.INFO.KV_b", NULL, "");
    ck_assert_ptr_nonnull(strstr(heard.payload, "\"err_code\":10059"));
    heard = request_and_receive_answer(&members[0], "$JS.API.STREAM.NAMES", NULL, "");
    ck_assert_ptr_nonnull(strstr(heard.payload, "\"err_code\":10003"));
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(watch_gets_what_is_there_and_what_changes)
{
    domt_member members[2];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(
        2, &(domus_testkit_cluster_options){.servers = 2}, 2, members);

    make_bucket_with_age(&members[0], 0);
    for (uint32_t i = 0; i < 4; i++)
        (void)revision_of_put_value(&members[0], i % 2 == 0 ? "x" : "y", NULL,
                                    i < 2 ? "old" : "new");
    domt_member_subscribe(&members[1], "inbox", NULL);
    domt_pass_time(cluster, PASS);
    domt_member_request(&members[1], "$JS.API.CONSUMER.CREATE.KV_b", NULL,
                        "{\"stream_name\":\"KV_b\",\"config\":{\"deliver_subject\":\"inbox\","
                        "\"deliver_policy\":\"last_per_subject\",\"filter_subject\":\"$KV.b.>\","
                        "\"idle_heartbeat\":1000000000,\"inactive_threshold\":3000000000}}");
    domt_pass_time(cluster, PASS);
    domt_heard made = domt_member_receive_message(&members[1]),
               x = domt_member_receive_message(&members[1]);
    domt_heard y = domt_member_receive_message(&members[1]);
    /* the entries of the watch may come before the answer to its request */
    if (made.subscription != 0) {
        ck_assert_str_eq(x.reply, "");
        domt_heard swapped = made;
        made = x;
        x = swapped;
    }
    ck_assert_ptr_nonnull(strstr(made.payload, "\"num_pending\":2"));
    ck_assert_str_eq(x.payload, "new");
    ck_assert_str_eq(x.subject, "$KV.b.x");
    unsigned sequence, delivery, pending;
    ck_assert_int_eq(
        sscanf(x.reply, "$JS.ACK.KV_b.w1.1.%u.%u.%*u.%u", &sequence, &delivery, &pending), 3);
    ck_assert_uint_eq(sequence, 3);
    ck_assert_uint_eq(delivery, 1);
    ck_assert_uint_eq(pending, 1);
    ck_assert_str_eq(y.subject, "$KV.b.y");
    ck_assert_uint_eq(revision_of_put_value(&members[0], "x", "KV-Operation: DEL\r\n", ""), 5);
    ck_assert_ptr_nonnull(
        strstr(domt_member_receive_message(&members[1]).headers, "KV-Operation: DEL"));
    domt_hear_nothing(&members[1]);
    domt_pass_time(cluster, DOMT_SECOND);
    domt_heard beat = domt_member_receive_message(&members[1]);
    ck_assert_uint_eq(beat.status, 100);
    ck_assert_ptr_nonnull(strstr(beat.headers, "Nats-Last-Consumer: 3\r\n"));
    ck_assert_ptr_nonnull(strstr(beat.headers, "Nats-Last-Stream: 5\r\n"));
    ck_assert_int_eq(domus_testkit_cluster_crash(cluster, members[1].node, false), 0);
    domt_pass_time(cluster, 4 * DOMT_SECOND);
    ck_assert_ptr_nonnull(strstr(
        request_and_receive_answer(&members[0], "$JS.API.STREAM.INFO.KV_b", NULL, "").payload,
        "\"consumer_count\":0"));
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(lease_runs_out_late_and_never_early)
{
    domt_member members[1];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(3, NULL, 1, members);
    const domus_testkit_store_faults faults = {.late_max_ns = DOMT_SECOND};
    char key[16];
    uint32_t late = 0;

    ck_assert_int_eq(domus_testkit_cluster_set_store(cluster, &faults), 0);
    make_bucket_with_age(&members[0], 500 * DOMT_MS);
    for (uint32_t i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "k%u", i);
        ck_assert_uint_ne(revision_of_put_value(&members[0], key, NULL, "x"), 0);
        domt_pass_time(cluster, 480 * DOMT_MS);
        ck_assert_uint_eq(request_value_of_key(&members[0], key).status, 0);
        domt_pass_time(cluster, 520 * DOMT_MS);
        /* a little more than 1 s after the put: a late store may still have the entry */
        late += request_value_of_key(&members[0], key).status == 0;
        domt_pass_time(cluster, 500 * DOMT_MS);
        ck_assert_uint_eq(request_value_of_key(&members[0], key).status, 404);
    }
    /* entries are removed up to a second late, so half of the 20 are still there on average */
    ck_assert_uint_ge(late, 3);
    ck_assert_uint_le(late, 17);
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).expired, 20);
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(answer_may_be_lost_when_the_change_was_made)
{
    domt_member members[1];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(4, NULL, 1, members);
    domus_testkit_store_faults faults = {.answer_loss_ppm = DOMUS_TESTKIT_PPM};

    make_bucket_with_age(&members[0], 0);
    domus_testkit_cluster_set_store(cluster, &faults);
    domt_member_request(&members[0], "$KV.b.x", NULL, "made");
    domt_pass_time(cluster, 6 * DOMT_SECOND);
    domt_member_expect_failure(&members[0], -ETIMEDOUT);
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).lost_answers, 1);
    faults = (domus_testkit_store_faults){.request_loss_ppm = DOMUS_TESTKIT_PPM};
    domus_testkit_cluster_set_store(cluster, &faults);
    domt_member_request(&members[0], "$KV.b.x", NULL, "not made");
    domt_pass_time(cluster, 6 * DOMT_SECOND);
    domt_member_expect_failure(&members[0], -ETIMEDOUT);
    ck_assert_uint_eq(domus_testkit_cluster_count(cluster).lost_requests, 1);
    domus_testkit_cluster_set_store(cluster, &(domus_testkit_store_faults){0});
    ck_assert_str_eq(request_value_of_key(&members[0], "x").payload, "made");
    domus_testkit_cluster_free(cluster);
}

DOMT_TEST(bucket_outlives_its_servers)
{
    domt_member members[1];
    domus_testkit_cluster *cluster = domt_cluster_new_with_members(
        5, &(domus_testkit_cluster_options){.servers = 3}, 1, members);
    uint32_t leader = domus_testkit_cluster_leader(cluster);

    make_bucket_with_age(&members[0], 0);
    ck_assert_uint_eq(revision_of_put_value(&members[0], "x", NULL, "kept"), 1);
    ck_assert_int_eq(domus_testkit_cluster_stop_server(cluster, leader), 0);
    ck_assert_uint_eq(domus_testkit_cluster_leader(cluster), DOMUS_EVERY);
    domt_pass_time(cluster, 5 * DOMT_SECOND);
    ck_assert_uint_ne(domus_testkit_cluster_leader(cluster), DOMUS_EVERY);
    ck_assert_str_eq(request_value_of_key(&members[0], "x").payload, "kept");
    /* Neither of two servers that cannot reach each other has a majority of servers. */
    uint32_t other = domus_testkit_cluster_leader(cluster);
    ck_assert_int_eq(domus_testkit_cluster_cut_route(cluster, other, DOMUS_EVERY), 0);
    domt_pass_time(cluster, 5 * DOMT_SECOND);
    ck_assert_uint_eq(domus_testkit_cluster_leader(cluster), DOMUS_EVERY);
    domt_member_request(&members[0], "$KV.b.x", NULL, "no");
    domt_pass_time(cluster, PASS);
    domt_member_expect_failure(&members[0], -ECONNREFUSED);
    ck_assert_int_eq(domus_testkit_cluster_start_server(cluster, leader), 0);
    domt_pass_time(cluster, 10 * DOMT_SECOND);
    ck_assert_uint_ne(domus_testkit_cluster_leader(cluster), DOMUS_EVERY);
    ck_assert_uint_ne(domus_testkit_cluster_leader(cluster), other);
    domus_testkit_cluster_heal_route(cluster, other, DOMUS_EVERY);
    domt_pass_time(cluster, 5 * DOMT_SECOND);
    ck_assert_str_eq(request_value_of_key(&members[0], "x").payload, "kept");
    domus_testkit_cluster_free(cluster);
}

/* --- one order -------------------------------------------------------------------------------- */

#define MEMBERS    4u
#define OPERATIONS 400u

typedef struct operation {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t expected; /* revision that a change expects and replaces */
    uint64_t revision; /* revision that a change has made, or that a get has seen; 0: none */
    /* error of a change: 0; -EEXIST: refused; any other: it may have been made, or not */
    int error;
    bool is_get;
    char value[24];
} operation;

struct history {
    operation operations[OPERATIONS];
    uint32_t count;
    operation *under_way[MEMBERS];
    uint64_t seen[MEMBERS]; /* newest revision that each member knows of the key */
};

/* If the answer to a member's operation has come, finish that operation. */
static void finish_operation_of_member(struct history *history, domt_member *members,
                                       uint32_t index)
{
    operation *at = history->under_way[index];
    domus_nats_message message;
    int result;

    if (at == NULL)
        return;
    result = domus_probe_expect(members[index].probe, &domus_nats_message_type, 0, &message);
    if (result == -ETIMEDOUT)
        return;
    at->end_ns = domus_testkit_cluster_now_ns(members[0].cluster);
    at->error = 0;
    history->under_way[index] = NULL;
    /* the probe reports that the ask has failed, and which error it was is looked for */
    if (result == -EBADMSG) {
        static const int errors[] = {-EPIPE, -ETIMEDOUT, -ECONNREFUSED};
        for (size_t i = 0; i < 3 && at->error == 0; i++) {
            if (domus_probe_expect_error(members[index].probe, errors[i], 0) == 0)
                at->error = errors[i];
        }
        ck_assert_int_ne(at->error, 0);
        return;
    }
    domt_heard heard = domt_copy_and_free_message(&message);
    if (at->is_get) {
        const char *place = strstr(heard.headers, "Nats-Sequence: ");
        at->revision = place != NULL ? strtoull(place + 15, NULL, 10) : 0;
        snprintf(at->value, sizeof at->value, "%.20s", heard.payload);
    } else {
        at->revision = revision_in_answer(&heard);
        at->error = at->revision != 0 ? 0 : -EEXIST;
    }
    if (at->revision > history->seen[index])
        history->seen[index] = at->revision;
}

static void begin_random_operation(struct history *history, domt_member *members, uint32_t index,
                                   domi_random *random)
{
    char headers[80];

    if (history->under_way[index] != NULL || history->count == OPERATIONS)
        return;
    operation *at = &history->operations[history->count++];
    history->under_way[index] = at;
    at->begin_ns = domus_testkit_cluster_now_ns(members[0].cluster);
    at->end_ns = UINT64_MAX;
    at->error = -EINPROGRESS;
    at->is_get = domi_random_below(random, 2) == 0;
    if (at->is_get) {
        domt_member_request(&members[index], "$JS.API.DIRECT.GET.KV_b.$KV.b.x", NULL, "");
        return;
    }
    at->expected = history->seen[index];
    snprintf(headers, sizeof headers, "Nats-Expected-Last-Subject-Sequence: %" PRIu64 "\r\n",
             at->expected);
    snprintf(at->value, sizeof at->value, "%u", history->count);
    domt_member_request(&members[index], "$KV.b.x", headers, at->value);
}

/* Returns whether a change has succeeded, or may have succeeded. */
static bool may_have_succeeded(const operation *at)
{
    return !at->is_get && (at->error == 0 || at->error == -EPIPE || at->error == -ETIMEDOUT ||
                           at->error == -EINPROGRESS);
}

/* Check that at most one of the changes that expect the same revision was made. */
static void check_one_change_per_revision(const struct history *history)
{
    for (uint32_t i = 0; i < history->count; i++) {
        const operation *one = &history->operations[i];
        if (one->is_get || one->revision == 0)
            continue;
        ck_assert_uint_gt(one->revision, one->expected);
        for (uint32_t k = 0; k < i; k++) {
            const operation *other = &history->operations[k];
            if (!other->is_get && other->revision != 0)
                ck_assert(other->expected != one->expected && other->revision != one->revision);
        }
    }
}

/* Check that an operation that ended before another one began does not come later in the order of
 * revisions. */
static void check_real_time_order(const struct history *history)
{
    for (uint32_t i = 0; i < history->count; i++) {
        const operation *one = &history->operations[i];
        for (uint32_t k = 0; k < history->count; k++) {
            const operation *other = &history->operations[k];
            if (one->error != 0 || other->error != 0 || one->end_ns >= other->begin_ns)
                continue;
            ck_assert_msg(one->revision <= other->revision &&
                              (other->is_get || one->revision < other->revision),
                          "%u has revision %llu, and %u after it %llu", i,
                          (unsigned long long)one->revision, k,
                          (unsigned long long)other->revision);
        }
    }
}

/* Check that a get sees the value of the change with its revision, or of a change whose answer was
 * lost; and that a change was refused only if another one could have come first. */
static void check_got_values_were_put(const struct history *history)
{
    for (uint32_t i = 0; i < history->count; i++) {
        const operation *one = &history->operations[i];
        bool is_found = false;
        if (one->is_get ? one->error != 0 || one->revision == 0 : one->error != -EEXIST)
            continue;
        for (uint32_t k = 0; k < history->count && !is_found; k++) {
            const operation *other = &history->operations[k];
            if (k == i || !may_have_succeeded(other) || other->begin_ns > one->end_ns)
                continue;
            if (one->is_get)
                is_found = strcmp(other->value, one->value) == 0 &&
                           (other->revision == one->revision || other->error != 0);
            else
                is_found = other->revision > one->expected || other->error != 0;
        }
        ck_assert_msg(is_found, "operation %u has no cause", i);
    }
}

static void draw_fault_of_cluster(domus_testkit_cluster *cluster, domi_random *random)
{
    uint32_t server = (uint32_t)domi_random_below(random, 3);
    uint32_t node = (uint32_t)domi_random_below(random, MEMBERS);

    switch (domi_random_below(random, 40)) {
    case 0:
        if (domus_testkit_cluster_stop_server(cluster, server) != 0)
            domus_testkit_cluster_start_server(cluster, server);
        return;
    case 1:
        domus_testkit_cluster_cut_route(cluster, server, DOMUS_EVERY);
        return;
    case 2:
    case 3:
        domus_testkit_cluster_heal_route(cluster, server, DOMUS_EVERY);
        (void)domus_testkit_cluster_start_server(cluster, server);
        return;
    case 4:
        domus_testkit_cluster_disconnect(cluster, node, 0);
        return;
    default:
        return;
    }
}

static int run_and_check_history(uint64_t seed, void *context)
{
    static struct history history;
    const domus_testkit_store_faults faults = {.answer_loss_ppm = 50000, .request_loss_ppm = 50000};
    domus_testkit_cluster_options options = {
        .servers = 3, .request_timeout_ns = 200 * DOMT_MS, .election_ns = 100 * DOMT_MS};
    domt_member members[MEMBERS];
    domus_testkit_cluster *cluster =
        domt_cluster_new_with_members(seed, &options, MEMBERS, members);
    uint32_t *sums = context;
    domi_random random;

    memset(&history, 0, sizeof history);
    domi_random_init(&random, seed);
    make_bucket_with_age(&members[0], 0);
    ck_assert_int_eq(domus_testkit_cluster_set_store(cluster, &faults), 0);
    for (uint32_t round = 0; round < 400; round++) {
        begin_random_operation(&history, members, (uint32_t)domi_random_below(&random, MEMBERS),
                               &random);
        domt_pass_time(cluster, domi_random_below(&random, 2 * DOMT_MS));
        draw_fault_of_cluster(cluster, &random);
        for (uint32_t i = 0; i < MEMBERS; i++)
            finish_operation_of_member(&history, members, i);
    }
    domus_testkit_cluster_free(cluster);
    for (uint32_t i = 0; i < history.count; i++) {
        sums[0] += history.operations[i].error == 0 && !history.operations[i].is_get;
        sums[1] += history.operations[i].error == -EEXIST;
        sums[2] +=
            history.operations[i].error == -EPIPE || history.operations[i].error == -ETIMEDOUT;
    }
    check_one_change_per_revision(&history);
    check_real_time_order(&history);
    check_got_values_were_put(&history);
    return 0;
}

DOMT_TEST(changes_of_a_key_have_one_order)
{
    /* number of changes that were made, that were refused, and whose result is unknown */
    uint32_t sums[3] = {0};

    ck_assert_int_eq(domus_testkit_sweep(1, DOMT_SCALE(domt_tenfold_if_tests_are_long(200), 20),
                                         run_and_check_history, sums, NULL),
                     0);
    if (getenv("DOMUS_SEED") != NULL || DOMT_SANITIZED)
        return;
    ck_assert_uint_ge(sums[0], 200);
    ck_assert_uint_ge(sums[1], 200);
    ck_assert_uint_ge(sums[2], 20);
}

DOMT_SUITE(120)
