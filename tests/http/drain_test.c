/* A system that stops answers every request that it has read, and the last answer of a connection
 * has "Connection: close" (domus_wire_is_closing()). It waits for the rest of a body under way,
 * within the time of the body and that of the drain. The same holds for a connection that has
 * become too old. (HTTP/2: h2_requests_test.c.) */
#include "base/random.h"
#include "tests/http/served.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS       DOMT_SERVED_MS
#define SECOND   DOMT_SERVED_S
#define GET(how) "GET " how " HTTP/1.1\r\nHost: a\r\n\r\n"
#define OLD(how) "GET " how " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
#define SLEPT    DOMT_SERVED_OK("6", "slept\n")
#define GOT      DOMT_SERVED_OK("4", "now\n")
#define KEPT                                                                                       \
    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: keep-alive\r\n"                           \
    "Content-Type: text/plain\r\n\r\nnow\n"

/* Let a client send `text`, stop the system 50 ms later, and check that the client has got `before`
 * by then, gets `after` from then on, and then the end of the connection. */
static void check_answers_around_stop(const domus_behaviour *behaviour, const char *text,
                                      const char *before, const char *after)
{
    domus_testkit *kit = domt_served_start_kit(NULL, behaviour, 1);
    domus_peer *peer = domt_served_connect_peer(kit);
    size_t size;

    domt_served_send_text(peer, text);
    domt_served_expect_text(kit, peer, before);
    domt_served_advance_kit(kit, 50 * MS);
    (void)domus_peer_got(peer, &size);
    ck_assert_uint_eq(size, 0);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    const char *got = domus_peer_got(peer, &size);
    ck_assert_msg(size == strlen(after) && memcmp(got, after, size) == 0, "%.*s instead of %s",
                  (int)size, got, after);
    ck_assert(domus_peer_has_end(peer));
    ck_assert_int_eq(domus_peer_error(peer), 0);
    domus_testkit_free(kit);
}

DOMT_TEST(requests_under_way_are_answered_and_the_last_one_says_close)
{
    const domus_behaviour *by = &domt_served_by_whole;

    check_answers_around_stop(by, GET("/sleep/100"), "", DOMT_SERVED_LAST("6", "slept\n"));
    check_answers_around_stop(by, GET("/now") GET("/sleep/100"), GOT,
                              DOMT_SERVED_LAST("6", "slept\n"));
    check_answers_around_stop(by, GET("/sleep/100") GET("/sleep/200") GET("/sleep/300"), "",
                              SLEPT SLEPT DOMT_SERVED_LAST("6", "slept\n"));
    check_answers_around_stop(by, OLD("/now") OLD("/sleep/100"), KEPT,
                              DOMT_SERVED_LAST("6", "slept\n"));
    check_answers_around_stop(by, GET("/sleep/100") "GET", "", DOMT_SERVED_LAST("6", "slept\n"));
}

DOMT_TEST(idle_connections_are_closed_without_a_word)
{
    check_answers_around_stop(&domt_served_by_whole, "", "", "");
    check_answers_around_stop(&domt_served_by_whole, GET("/now"), GOT, "");
    check_answers_around_stop(&domt_served_by_whole, OLD("/now"), KEPT, "");
    check_answers_around_stop(&domt_served_by_whole, GET("/now") "GET", GOT, "");
}

/* The answer to the last request was encoded before the drain began, so it lacks "Connection:
 * close". */
DOMT_TEST(an_encoded_answer_that_waits_is_not_changed_by_a_drain)
{
    check_answers_around_stop(&domt_served_by_whole, GET("/sleep/100") GET("/now"), "", SLEPT GOT);
}

static const char body_head[] = "POST /bytes HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";

/* A drain answers a request whose body has come in part, and a request that waits because of
 * requestsMax. */
DOMT_TEST(bodies_and_requests_that_wait_are_read_in_a_drain)
{
    domus_config config;
    char text[256];

    snprintf(text, sizeof text, GET("/sleep/100") "%sabcde", body_head);
    check_answers_around_stop(&domt_served_by_streams, text, "", SLEPT DOMT_SERVED_OK("2", "5\n"));
    domt_served_init_config(&config);
    config.channel.requests_max = 1;
    domus_testkit *kit = domt_served_start_kit(&config, &domt_served_by_streams, 1);
    domus_peer *peer = domt_served_connect_peer(kit);
    domt_served_send_text(peer, text);
    domt_served_advance_kit(kit, 50 * MS);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    domt_served_expect_text(kit, peer, SLEPT DOMT_SERVED_LAST("2", "5\n"));
    domus_testkit_free(kit);
}

DOMT_TEST(streams_that_have_begun_go_on_to_their_end)
{
    domus_testkit *kit = domt_served_start_kit(NULL, &domt_served_by_whole, 1);
    domus_peer *peer = domt_served_connect_peer(kit);
    size_t size;

    domus_peer_pause(peer);
    domt_served_send_text(peer, GET("/give/3000000"));
    domt_served_advance_kit(kit, 50 * MS);
    domus_peer_resume(peer);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    const char *got = domus_peer_got(peer, &size);
    ck_assert_uint_gt(size, 3000000);
    ck_assert_mem_eq(got + size - 5, "0\r\n\r\n", 5);
    ck_assert(domus_peer_has_end(peer));
    domus_testkit_free(kit);
}

DOMT_TEST(a_connection_that_is_too_old_closes_with_an_answer)
{
    domus_config config;

    domt_served_init_config(&config);
    config.pace.age_max_ns = 10 * SECOND;
    config.pace.age_jitter_percent = 0;
    domus_testkit *kit = domt_served_start_kit(&config, &domt_served_by_whole, 1);
    domus_peer *peer = domt_served_connect_peer(kit);
    domt_served_advance_kit(kit, 9500 * MS);
    domt_served_send_text(peer, GET("/sleep/1000") GET("/sleep/2000"));
    domt_served_expect_text(kit, peer, SLEPT DOMT_SERVED_LAST("6", "slept\n"));
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domus_peer_close(peer);
    domt_served_end_kit(kit);
}

/* --- many clients, over seeds ----------------------------------------------------------------- */

#define CLIENTS 12u

typedef struct visitor {
    domus_peer *peer;
    uint32_t sent;       /* number of requests that this client has sent */
    uint32_t answered;   /* number of their answers that have come */
    bool owed;           /* a request of this client was not answered when the stop began */
    const char *problem; /* text about the error that was found; NULL: none */
} visitor;

/* Remove from the received bytes the whole answers, and check that only the last one says "close".
 * When the connection is over, no partial answer may be left. */
static void remove_whole_answers(visitor *client, bool is_over)
{
    size_t size;
    const char *got = domus_peer_got(client->peer, &size);
    size_t at = 0;
    bool closes = false;

    while (at < size) {
        const char *begin = got + at;
        const char *end = memmem(begin, size - at, "\r\n\r\n", 4);
        const char *length = memmem(begin, size - at, "Content-Length: ", 16);
        if (end == NULL || length == NULL)
            break;
        size_t head = (size_t)(end - begin) + 4;
        size_t whole = head + strtoul(length + 16, NULL, 10);
        if (whole > size - at)
            break;
        if (closes)
            client->problem = "an answer behind the last one";
        closes = memmem(begin, head, "Connection: close", 17) != NULL;
        client->answered++;
        at += whole;
    }
    if (is_over && at != size)
        client->problem = "a part of an answer";
    if (is_over && client->owed && !closes)
        client->problem = "the last answer does not say close";
    if (!is_over && closes)
        client->problem = "an answer says close before the stop";
    domus_peer_take(client->peer, at);
}

static void send_some_requests(domi_random *random, visitor *client)
{
    static const char *const requests[] = {GET("/now"), OLD("/now"), GET("/sleep/5"),
                                           GET("/sleep/30")};
    uint64_t count = 1 + domi_random_below(random, 6);
    bool sleeps = domi_random_below(random, 2) != 0;

    for (uint64_t i = 0; i < count; i++) {
        /* The answers of a client are ready all at once, or the first one sleeps less than the
         * others. So they are ready in the order of the requests, and the last one sent is also the
         * last one encoded. */
        uint64_t which = sleeps ? 2 + (i == 0 ? 0 : 1) : domi_random_below(random, 2);
        domt_served_send_text(client->peer, requests[which]);
        client->sent++;
    }
}

/* In every second seed, make network faults that no client may notice. */
static void make_network_faults(domus_testkit *kit, uint64_t seed)
{
    const domus_net_faults faults = {
        .short_writes = 200000,
        .short_reads = seed % 4 == 1 ? 500000 : 50000,
        .no_buffers = 50000,
        .overflows = 50000,
        .refused_enters = 50000,
    };

    if (seed % 2 != 0)
        ck_assert_int_eq(domus_testkit_net_set(kit, &faults), 0);
}

static int run_stop_under_load_of_seed(uint64_t seed, void *context)
{
    domi_random random;
    domus_testkit *kit = domt_served_start_kit(NULL, &domt_served_by_whole, seed);
    visitor clients[CLIENTS] = {{0}};
    uint64_t deeds;

    domi_random_init(&random, seed);
    make_network_faults(kit, seed);
    deeds = 10 + domi_random_below(&random, 150);
    for (uint32_t i = 0; i < CLIENTS; i++)
        clients[i].peer = domt_served_connect_peer(kit);
    for (uint64_t i = 0; i < deeds; i++) {
        visitor *one = &clients[domi_random_below(&random, CLIENTS)];
        remove_whole_answers(one, false);
        if (one->answered == one->sent)
            send_some_requests(&random, one);
        if (domi_random_below(&random, 4) == 0)
            domt_served_advance_kit(kit, domi_random_below(&random, 8) * MS);
        for (uint64_t steps = domi_random_below(&random, 12); steps != 0; steps--)
            (void)domus_testkit_step(kit);
    }
    /* runs until all requests have come, and some wait in the sockets */
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        remove_whole_answers(&clients[i], false);
        clients[i].owed = clients[i].answered != clients[i].sent;
    }
    int error = domus_testkit_stop(kit);
    uint32_t sent = 0, answered = 0;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        visitor *one = &clients[i];
        remove_whole_answers(one, true);
        if (one->answered != one->sent || !domus_peer_has_end(one->peer) ||
            domus_peer_error(one->peer) != 0)
            one->problem = "a request was not answered, or there was no end";
        if (one->problem != NULL)
            error = -EBADMSG;
        if (one->problem != NULL)
            printf("seed %llu, client %u: %s (%u of %u answered)\n", (unsigned long long)seed, i,
                   one->problem, one->answered, one->sent);
        sent += one->sent;
        answered += one->answered;
    }
    if (domt_served_now.begun != answered || answered != sent)
        error = -EBADMSG;
    domus_testkit_free(kit);
    return error;
}

DOMT_TEST(every_request_is_answered_when_it_stops_under_load)
{
    uint64_t count = DOMT_SCALE(150, 10) * (domt_tests_are_long() ? 50 : 1);
    uint64_t seed = 0;

    ck_assert_msg(domus_testkit_sweep(1, count, run_stop_under_load_of_seed, NULL, &seed) == 0,
                  "seed %llu", (unsigned long long)seed);
}

#define MS           DOMT_SERVED_MS
#define SECOND       DOMT_SERVED_S
#define GET(how)     "GET " how " HTTP/1.1\r\nHost: a\r\n\r\n"
#define POST(fields) "POST /bytes HTTP/1.1\r\nHost: a\r\n" fields "\r\n\r\n"
#define COUNTED      POST("Content-Length: 5")
#define CHUNKED      POST("Transfer-Encoding: chunked")
#define SLEPT_NOT    DOMT_SERVED_OK("6", "slept\n")
#define FIVE         DOMT_SERVED_LAST("2", "5\n")
#define GO_ON        "HTTP/1.1 100 Continue\r\n\r\n"

#define LATENCY (100 * MS)

/* Let the time of two latencies pass, and check that just these bytes have come, and then the end
 * of the connection. */
static void expect_rest_and_end(domus_testkit *kit, domus_peer *peer, const char *text)
{
    size_t size;

    domt_served_advance_kit(kit, 2 * LATENCY);
    const char *got = domus_peer_got(peer, &size);
    ck_assert_msg(size == strlen(text) && memcmp(got, text, size) == 0, "%.*s instead of %s",
                  (int)size, got, text);
    ck_assert(domus_peer_has_end(peer));
    ck_assert_int_eq(domus_peer_error(peer), 0);
}

/* Let a client send `first` and get `before`, then stop the system; `rest` comes after the stop has
 * begun. Checks that the client gets `after`, and then the end. */
static void check_stop_within_requests(const domus_behaviour *behaviour, const char *first,
                                       const char *before, const char *rest, const char *after)
{
    static const domus_net_faults slow = {.latency_min_ns = LATENCY, .latency_max_ns = LATENCY};
    domus_testkit *kit = domt_served_start_kit(NULL, behaviour, 1);
    domus_peer *peer = domt_served_connect_peer(kit);

    domt_served_send_text(peer, first);
    domt_served_expect_text(kit, peer, before);
    domt_served_advance_kit(kit, 10 * MS);
    ck_assert_int_eq(domus_testkit_net_set(kit, &slow), 0);
    if (*rest != '\0')
        domt_served_send_text(peer, rest);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    expect_rest_and_end(kit, peer, after);
    domus_testkit_free(kit);
}

DOMT_TEST(a_body_under_way_is_read_to_its_end_in_a_drain)
{
    static const struct {
        const char *first, *before, *rest, *after;
    } cases[] = {
        {COUNTED "ab", "", "cde", FIVE},
        {COUNTED, "", "abcde", FIVE},
        {CHUNKED "5\r\nab", "", "cde\r\n0\r\n\r\n", FIVE},
        {CHUNKED, "", "5\r\nabcde\r\n0\r\n\r\n", FIVE},
        {POST("Content-Length: 5\r\nExpect: 100-continue"), GO_ON, "abcde", FIVE},
        {GET("/sleep/50") COUNTED "ab", "", "cde", SLEPT_NOT FIVE},
        {GET("/sleep/500") COUNTED "ab", "", "cde", SLEPT_NOT FIVE},
        {GET("/now") COUNTED "ab", DOMT_SERVED_OK("4", "now\n"), "cde", FIVE},
        {COUNTED "ab", "", "cde" GET("/now"),
         DOMT_SERVED_OK("2", "5\n") DOMT_SERVED_LAST("4", "now\n")},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_stop_within_requests(&domt_served_by_whole, cases[i].first, cases[i].before,
                                   cases[i].rest, cases[i].after);
        check_stop_within_requests(&domt_served_by_streams, cases[i].first, cases[i].before,
                                   cases[i].rest, cases[i].after);
    }
}

/* A request waits behind another one, so its body is looked at late, and is still read to its
 * end. */
DOMT_TEST(a_body_of_a_waiting_request_is_read_to_its_end_in_a_drain)
{
    static const domus_net_faults slow = {.latency_min_ns = LATENCY, .latency_max_ns = LATENCY};
    const domus_behaviour *behaviours[] = {&domt_served_by_whole, &domt_served_by_streams};

    for (size_t i = 0; i < 2; i++) {
        domus_config config;
        domt_served_init_config(&config);
        config.channel.requests_max = 1;
        domus_testkit *kit = domt_served_start_kit(&config, behaviours[i], 1);
        domus_peer *peer = domt_served_connect_peer(kit);
        domt_served_send_text(peer, GET("/sleep/500") COUNTED "ab");
        domt_served_advance_kit(kit, 10 * MS);
        ck_assert_int_eq(domus_testkit_net_set(kit, &slow), 0);
        domt_served_send_text(peer, "cde");
        ck_assert_int_eq(domus_testkit_stop(kit), 0);
        expect_rest_and_end(kit, peer, SLEPT_NOT FIVE);
        domus_testkit_free(kit);
    }
}

/* A body that is larger than the window is collected during a drain, and its request is
 * answered. */
DOMT_TEST(a_large_body_is_read_to_its_end_in_a_drain)
{
    const size_t size = 200000;
    char *rest = calloc(1, size);

    ck_assert_ptr_nonnull(rest);
    memset(rest, 'a', size - 1);
    check_stop_within_requests(&domt_served_by_whole, POST("Content-Length: 200000") "a", "", rest,
                               DOMT_SERVED_LAST("7", "200000\n"));
    check_stop_within_requests(&domt_served_by_streams, POST("Content-Length: 200000") "a", "",
                               rest, DOMT_SERVED_LAST("7", "200000\n"));
    free(rest);
}

/* A stop does not wait for the rest of a head, or for a request without a body. */
DOMT_TEST(a_drain_does_not_wait_for_the_rest_of_a_head)
{
    static const char *const parts[] = {"P", "POST /bytes HTTP/1.1\r\nHost: a\r\n",
                                        "POST /bytes HTTP/1.1\r\nContent-Length: 5\r\n"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        check_stop_within_requests(&domt_served_by_whole, parts[i], "", "", "");
}

/* The end of a body comes in one piece with the begin of the next request. The drain does not await
 * the body of that next request: otherwise a peer could prolong it for ever. */
DOMT_TEST(a_drain_does_not_wait_for_the_body_of_the_next_request)
{
    check_stop_within_requests(&domt_served_by_whole, COUNTED "ab", "", "cde" COUNTED "ab",
                               DOMT_SERVED_OK("2", "5\n"));
    check_stop_within_requests(&domt_served_by_whole, COUNTED "ab", "", "cde" CHUNKED "5\r\nab",
                               DOMT_SERVED_OK("2", "5\n"));
    /* a next request whose body would be read in pieces is not begun */
    check_stop_within_requests(&domt_served_by_streams, COUNTED "ab", "", "cde" COUNTED "ab", FIVE);
    check_stop_within_requests(&domt_served_by_streams, CHUNKED "5\r\nab", "",
                               "cde\r\n0\r\n\r\n" CHUNKED "5\r\nab\r\n", FIVE);
    ck_assert_uint_eq(domt_served_now.begun, 1);
}

/* In a drain the rest of a body may take as long as channel.bodyRate allows, and as long as the
 * drain lasts. */
DOMT_TEST(a_drain_waits_for_a_body_as_long_as_its_rate_allows)
{
    static const struct {
        const domus_behaviour *behaviour;
        uint64_t timeout_ns;
        /* the answer that comes after the time-out; NULL: the connection is reset */
        const char *after;
    } cases[] = {
        {&domt_served_by_whole, 15 * SECOND, DOMT_SERVED_408},
        {&domt_served_by_streams, 15 * SECOND, DOMT_SERVED_408},
        {&domt_served_by_whole, 5 * SECOND, NULL},
        {&domt_served_by_streams, 5 * SECOND, NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        domus_config config;
        domt_served_init_config(&config);
        config.shutdown.drain_timeout_ns = cases[i].timeout_ns;
        domus_testkit *kit = domt_served_start_kit(&config, cases[i].behaviour, 1);
        domus_peer *peer = domt_served_connect_peer(kit);
        domt_served_send_text(peer, COUNTED "ab");
        domt_served_advance_kit(kit, 10 * MS);
        ck_assert_int_eq(domus_testkit_stop(kit), cases[i].after == NULL);
        if (cases[i].after != NULL)
            expect_rest_and_end(kit, peer, cases[i].after);
        else
            ck_assert_int_eq(domus_peer_error(peer), -ECONNRESET);
        domus_testkit_free(kit);
    }
}

/* A stop does not wait for a peer that has closed its side within a body. */
DOMT_TEST(a_drain_does_not_wait_for_a_peer_that_ends_in_its_body)
{
    domus_testkit *kit = domt_served_start_kit(NULL, &domt_served_by_whole, 1);
    domus_peer *peer = domt_served_connect_peer(kit);

    domt_served_send_text(peer, COUNTED "ab");
    domt_served_advance_kit(kit, 10 * MS);
    domus_peer_finish(peer);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    expect_rest_and_end(kit, peer, "");
    domus_testkit_free(kit);
}

DOMT_SUITE(600)
