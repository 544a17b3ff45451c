/* Requests are limited by address or key: buckets fill with time, their memory is fixed, and no
 * client gets more tokens by using many addresses. */
#include "tests/http/chained.h"
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include "protocols/http/buckets.h"
#include "protocols/http/client_address.h"

#include <domus/http_limit.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* --- buckets ---------------------------------------------------------------------------------- */

static const domi_http_rate rate = {.token_us = 1000, .full_us = 3000};

/* Make a hash that leads to this set of buckets, with this mark. */
static uint64_t make_hash_of_set_and_mark(uint64_t set, uint64_t mark)
{
    return mark << 44 | set;
}

static bool has_taken_token(domi_http_buckets *buckets, uint64_t hash, uint64_t now_us)
{
    return domi_http_take_token_from_bucket(buckets, hash, now_us, &rate).is_taken;
}

DOMT_TEST(buckets_of_tokens_fill_by_the_clock)
{
    static const uint64_t starts[] = {1, 1u << 30, (UINT64_C(1) << 44) - 1500, UINT64_C(1) << 45};

    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        domi_http_buckets *buckets = domi_http_buckets_new(8);
        uint64_t at = starts[i];
        for (int n = 0; n < 3; n++)
            ck_assert(has_taken_token(buckets, 7, at));
        ck_assert_uint_eq(domi_http_take_token_from_bucket(buckets, 7, at, &rate).left_us, 1000);
        ck_assert(!has_taken_token(buckets, 7, at + 999));
        ck_assert(has_taken_token(buckets, 7, at + 1000));
        ck_assert(!has_taken_token(buckets, 7, at + 1999));
        /* The hashes 7 and 8 have no mark bits, so both use the mark 1 and share a bucket. The
         * clock of another thread may be behind, which does not fill the bucket. */
        ck_assert(!has_taken_token(buckets, 8, at));
        /* after a long time the bucket is full, and has no more tokens than that */
        for (int n = 0; n < 3; n++)
            ck_assert(has_taken_token(buckets, 7, at + 100000));
        ck_assert(!has_taken_token(buckets, 7, at + 100000));
        /* a time so far in the future that the stored one seems to be long ago */
        ck_assert(has_taken_token(buckets, 7, at + (UINT64_C(1) << 43)));
        domi_http_buckets_free(buckets);
    }
}

DOMT_TEST(a_set_gives_up_the_bucket_nearest_to_full)
{
    domi_http_buckets *buckets = domi_http_buckets_new(16);

    /* all buckets of one set are used; the one of mark 5 is the fullest */
    for (uint64_t mark = 2; mark <= 9; mark++) {
        for (int n = 0; n < (mark == 5 ? 1 : 3); n++)
            ck_assert(has_taken_token(buckets, make_hash_of_set_and_mark(1, mark), 1000000));
    }
    /* this bucket lies in another set, so no bucket of the first set is given up */
    ck_assert(has_taken_token(buckets, make_hash_of_set_and_mark(0, 99), 1000000));
    ck_assert(has_taken_token(buckets, make_hash_of_set_and_mark(1, 10), 1000000));
    for (uint64_t mark = 2; mark <= 9; mark++) {
        if (mark != 5)
            ck_assert(!has_taken_token(buckets, make_hash_of_set_and_mark(1, mark), 1000000));
    }
    for (int n = 0; n < 3; n++) /* mark 5 gets a new, full bucket in place of the one of mark 10 */
        ck_assert(has_taken_token(buckets, make_hash_of_set_and_mark(1, 5), 1000000));
    ck_assert(!has_taken_token(buckets, make_hash_of_set_and_mark(1, 5), 1000000));
    domi_http_buckets_free(buckets);
}

/* --- addresses -------------------------------------------------------------------------------- */

DOMT_TEST(clients_are_found_behind_trusted_proxies)
{
    static const struct {
        uint32_t proxies;
        const char *fields;
        const char *client;
    } rows[] = {
        {0, "X-Forwarded-For: 1.1.1.1\r\n", "9.9.9.9:0"},
        {1, "", "9.9.9.9:0"},
        {1, "X-Forwarded-For: 1.1.1.1\r\n", "1.1.1.1:0"},
        {1, "X-Forwarded-For: 1.1.1.1, 2.2.2.2\r\n", "2.2.2.2:0"},
        {2, "X-Forwarded-For: 1.1.1.1, 2.2.2.2\r\n", "1.1.1.1:0"},
        {2, "X-Forwarded-For: 1.1.1.1\r\nX-FORWARDED-FOR: 2.2.2.2,3.3.3.3\r\n", "2.2.2.2:0"},
        {3, "X-Forwarded-For: 1.1.1.1, 2.2.2.2\r\n", "1.1.1.1:0"},
        {1, "X-Forwarded-For: 1.1.1.1:80\r\n", "1.1.1.1:0"},
        {1, "X-Forwarded-For: 2001:db8::1\r\n", "[2001:db8::1]:0"},
        {1, "X-Forwarded-For: [2001:db8::1]\r\n", "[2001:db8::1]:0"},
        {1, "X-Forwarded-For: [2001:db8::1]:443\r\n", "[2001:db8::1]:0"},
        {1, "X-Forwarded-For: ::ffff:1.1.1.1\r\n", "1.1.1.1:0"},
        {1, "X-Forwarded-For: unknown\r\n", "9.9.9.9:0"},
        {1, "X-Forwarded-For: unix:/run/a\r\n", "9.9.9.9:0"},
        {1, "X-Forwarded-For: 1.1.1.1,\r\n", "9.9.9.9:0"},
    };
    domus_endpoint peer;
    const domus_http_exchange exchange = {.peer = &peer};

    ck_assert_int_eq(domus_endpoint_parse("9.9.9.9:99", &peer), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_slice fields = domt_slice_of_text(rows[i].fields);
        domus_endpoint client;
        char text[DOMUS_ENDPOINT_TEXT_MAX];
        domi_http_find_client_address(&exchange, fields, rows[i].proxies, &client);
        (void)domus_endpoint_text(&client, text, sizeof text);
        ck_assert_msg(strcmp(text, rows[i].client) == 0, "%s: %s", rows[i].fields, text);
        domus_slice_free(fields);
    }
}

/* --- the part of a chain ---------------------------------------------------------------------- */

/* Begin a kit whose service has a table of buckets that no request has used. */
static domus_testkit *start_chain_with_limit(domus_http_limit *limit)
{
    const domus_http_step parts[] = {{&domus_http_limits, limit}, {NULL, NULL}};

    return domt_chained_start_kit(&domt_chained, parts);
}

static void end_chain_and_limit(domus_testkit *kit, domus_http_limit *limit)
{
    domt_served_end_kit(kit);
    domus_http_limit_clear(limit);
}

/* Send a request with these fields from an address, and let 100 ms pass. Returns its status. */
static int status_of_request_from(domus_testkit *kit, const char *from, const char *fields)
{
    char request[512];
    int status = 0;

    (void)snprintf(request, sizeof request, "GET /now HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    const char *got = domt_chained_answer_to_bytes(kit, from, request);
    ck_assert_int_eq(sscanf(got, "HTTP/1.1 %d", &status), 1);
    return status;
}

DOMT_TEST(each_address_has_its_own_bucket)
{
    domus_http_limit limit = {.count = 1, .burst = 3, .period_ns = 10000000000, .tells = true};
    domus_testkit *kit = start_chain_with_limit(&limit);

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(status_of_request_from(kit, "10.0.0.1:0", ""), 200);
    ck_assert_str_eq(
        domt_chained_answer_to_bytes(kit, "10.0.0.1:0", "GET /now HTTP/1.1\r\nHost: a\r\n\r\n"),
        "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n"
        "RateLimit-Policy: \"default\";q=3;w=30\r\nRateLimit: \"default\";r=0;t=10\r\n"
        "Retry-After: 10\r\n\r\n");
    ck_assert_str_eq(
        domt_chained_answer_to_bytes(kit, "10.0.0.2:0", "GET /now HTTP/1.1\r\nHost: a\r\n\r\n"),
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
        "RateLimit-Policy: \"default\";q=3;w=30\r\nRateLimit: \"default\";r=2;t=10\r\n"
        "\r\nnow\n");
    domt_served_advance_kit(kit, 10 * DOMT_SERVED_S);
    ck_assert_int_eq(status_of_request_from(kit, "10.0.0.1:0", ""), 200);
    ck_assert_int_eq(status_of_request_from(kit, "10.0.0.1:0", ""), 429);
    end_chain_and_limit(kit, &limit);
}

DOMT_TEST(another_limit_may_be_set_while_one_holds)
{
    domus_http_limit limit = {.count = 1, .burst = 2, .period_ns = 60000000000, .tells = true};
    domus_testkit *kit = start_chain_with_limit(&limit);

    domus_http_limit wrong = {.count = 1, .buckets = UINT32_C(0x80000001)};
    ck_assert_int_eq(domus_http_limit_set(&wrong, 1, 1, 0), -EINVAL);
    ck_assert_int_eq(domus_http_limit_set(&limit, 0, 1, 0), -EINVAL);
    ck_assert_int_eq(domus_http_limit_set(&limit, 1, 2, DOMUS_HTTP_LIMIT_SPAN_MAX), -EINVAL);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(status_of_request_from(kit, "10.0.0.1:0", ""), 200);
    ck_assert_int_eq(status_of_request_from(kit, "10.0.0.1:0", ""), 429);
    /* the new limit's burst is larger by two requests */
    ck_assert_int_eq(domus_http_limit_set(&limit, 1, 4, 60000000000), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(status_of_request_from(kit, "10.0.0.1:0", ""), 200);
    ck_assert_str_eq(
        domt_chained_answer_to_bytes(kit, "10.0.0.1:0", "GET /now HTTP/1.1\r\nHost: a\r\n\r\n"),
        "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n"
        "RateLimit-Policy: \"default\";q=4;w=240\r\n"
        "RateLimit: \"default\";r=0;t=60\r\nRetry-After: 60\r\n\r\n");
    /* with this new rate, buckets with a debt of 4 minutes are full again */
    ck_assert_int_eq(domus_http_limit_set(&limit, 2, 0, 0), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(status_of_request_from(kit, "10.0.0.1:0", ""), 200);
    ck_assert_uint_eq(limit.burst, 2); /* the options of the limit are as the test has given them */
    domus_http_limit_clear(&limit);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(status_of_request_from(kit, "10.0.0.1:0", ""), 200);
    ck_assert_int_eq(status_of_request_from(kit, "10.0.0.1:0", ""), 429);
    end_chain_and_limit(kit, &limit);
}

/* One thread sets 200,000 rates, one after the other, each with a `full_us` of 3 * `token_us`; the
 * reader never sees the fields of two rates together. */
static void *set_rates_one_after_the_other(void *buckets)
{
    for (uint64_t i = 1; i <= 200000; i++)
        ck_assert_int_eq(domi_http_set_rate_of_buckets(buckets, &(domi_http_rate){i, 3 * i}), 0);
    return NULL;
}

DOMT_TEST(a_rate_that_changes_is_read_whole)
{
    domi_http_buckets *buckets = domi_http_buckets_new(8);
    domi_http_rate seen = {0};
    pthread_t setter;

    ck_assert(!domi_http_read_rate_set_at_runtime(buckets, &seen));
    ck_assert_int_eq(pthread_create(&setter, NULL, set_rates_one_after_the_other, buckets), 0);
    while (seen.token_us < 200000) {
        if (domi_http_read_rate_set_at_runtime(buckets, &seen))
            ck_assert_uint_eq(seen.full_us, 3 * seen.token_us);
    }
    ck_assert_int_eq(pthread_join(setter, NULL), 0);
    buckets->is_changing = true;
    ck_assert_int_eq(domi_http_set_rate_of_buckets(buckets, &seen), -EBUSY);
    domi_http_buckets_free(buckets);
}

DOMT_TEST(addresses_of_one_ipv6_network_share_a_bucket)
{
    domus_http_limit limit = {.count = 1, .period_ns = 60000000000, .proxies = 1};
    domus_testkit *kit = start_chain_with_limit(&limit);

    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Forwarded-For: 2001:db8:0:1::1\r\n"),
                     200);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Forwarded-For: 2001:db8:0:1:ffff::2\r\n"),
                     429);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Forwarded-For: 2001:db8:0:2::1\r\n"),
                     200);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Forwarded-For: 10.0.0.1\r\n"), 200);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Forwarded-For: 10.0.0.2\r\n"), 200);
    end_chain_and_limit(kit, &limit);
    limit.v4_bits = 25;
    limit.v6_bits = 47;
    kit = start_chain_with_limit(&limit);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Forwarded-For: 2001:db8:2::1\r\n"), 200);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Forwarded-For: 2001:db8:3::1\r\n"), 429);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Forwarded-For: 2001:db8:4::1\r\n"), 200);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Forwarded-For: 10.0.0.1\r\n"), 200);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Forwarded-For: 10.0.0.127\r\n"), 429);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Forwarded-For: 10.0.0.128\r\n"), 200);
    end_chain_and_limit(kit, &limit);
}

/* The field X-Key is the key; a request without the field is not limited. */
static bool find_key_in_field_x_key(const domus_http_exchange *exchange,
                                    const domus_http_request *request, const void **ret_key,
                                    size_t *ret_size)
{
    domus_slice key;

    if (!domus_http_field(request->fields, "x-key", &key))
        return false;
    *ret_key = domus_slice_data(key);
    *ret_size = key.size;
    return true;
}

DOMT_TEST(each_key_of_the_program_has_its_own_bucket)
{
    domus_http_limit limit = {.count = 1, .period_ns = 60000000000, .key = find_key_in_field_x_key};
    domus_testkit *kit = start_chain_with_limit(&limit);

    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Key: a\r\n"), 200);
    ck_assert_int_eq(status_of_request_from(kit, "10.0.0.1:0", "X-Key: a\r\n"), 429);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Key: b\r\n"), 200);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Key: \r\n"), 200);
    ck_assert_int_eq(status_of_request_from(kit, NULL, "X-Key: \r\n"), 429);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(status_of_request_from(kit, NULL, ""), 200);
    end_chain_and_limit(kit, &limit);
}

DOMT_TEST(wrong_options_of_limits_are_refused)
{
    const domus_http_limit wrong[] = {
        {.count = 0},
        {.count = 1000001},
        {.count = 1, .period_ns = DOMUS_HTTP_LIMIT_SPAN_MAX + 1},
        {.count = 1, .period_ns = DOMUS_HTTP_LIMIT_SPAN_MAX, .burst = 2},
        {.count = 1, .buckets = 7},
        {.count = 1, .buckets = DOMUS_HTTP_LIMIT_BUCKETS_MAX + 1},
        {.count = 1, .v4_bits = 33},
        {.count = 1, .v6_bits = 129},
        {.count = 1, .proxies = DOMUS_HTTP_LIMIT_PROXIES_MAX + 1},
    };
    const domus_http_limit right[] = {
        {.count = 1},
        {.count = 1000000},
        {.count = 1, .period_ns = DOMUS_HTTP_LIMIT_SPAN_MAX},
        {.count = 1, .buckets = 8},
        {.count = 1,
         .buckets = DOMUS_HTTP_LIMIT_BUCKETS_MAX,
         .v4_bits = 32,
         .v6_bits = 128,
         .proxies = DOMUS_HTTP_LIMIT_PROXIES_MAX},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_http_limits.check(&wrong[i]), -EINVAL);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        ck_assert_int_eq(domus_http_limits.check(&right[i]), 0);
    ck_assert_int_eq(domus_http_limits.check(NULL), -EINVAL);
}

/* All connections of a client count as one client, and so do all addresses of a customer's IPv6
 * network. */
DOMT_TEST(each_client_has_one_number)
{
    static const struct {
        const char *peer;
        const char *fields;
        uint32_t proxies;
        uint64_t number;
    } rows[] = {
        {"1.2.3.4:5", "", 0, 0x01020304},
        {"1.2.3.4:6", "", 0, 0x01020304},
        {"255.2.3.4:6", "", 0, 0xff020304},
        {"[::ffff:1.2.3.4]:5", "", 0, 0x01020304},
        {"[2001:db8:0:1::1]:5", "", 0, 0x20010db800000001},
        {"[2001:db8:0:1:ff::2]:6", "", 0, 0x20010db800000001},
        {"[2001:db8:0:2::1]:5", "", 0, 0x20010db800000002},
        {"[::1]:5", "", 0, 0x100000000},
        {"unix:/run/a", "", 0, 0},
        {"1.2.3.4:5", "X-Forwarded-For: 5.6.7.8\r\n", 0, 0x01020304},
        {"1.2.3.4:5", "X-Forwarded-For: 5.6.7.8\r\n", 1, 0x05060708},
        {"unix:/run/a", "X-Forwarded-For: 9.9.9.9, 5.6.7.8\r\n", 1, 0x05060708},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_endpoint peer;
        const domus_http_exchange exchange = {.peer = &peer};
        domus_http_request request = {.method = DOMUS_HTTP_GET};
        ck_assert_int_eq(domus_endpoint_parse(rows[i].peer, &peer), 0);
        ck_assert_int_eq(domus_slice_copy(rows[i].fields, strlen(rows[i].fields), &request.fields),
                         0);
        ck_assert_uint_eq(domus_http_client_number(&exchange, &request, rows[i].proxies),
                          rows[i].number);
        domus_http_request_type.release(&request);
    }
}

DOMT_SUITE(20)
