/* A request whose body is under way when the system stops: the rest of the body is awaited, within
 * its time and that of the drain, and the request is answered. A request that has not come up to
 * its body is not. (Requests that were read: drain_test.c; HTTP/2: h2_drain_test.c.) */
#include "tests/http/served.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MS           DOMT_SERVED_MS
#define SECOND       DOMT_SERVED_S
#define GET(how)     "GET " how " HTTP/1.1\r\nHost: a\r\n\r\n"
#define POST(fields) "POST /bytes HTTP/1.1\r\nHost: a\r\n" fields "\r\n\r\n"
#define COUNTED      POST("Content-Length: 5")
#define CHUNKED      POST("Transfer-Encoding: chunked")
#define SLEPT        DOMT_SERVED_OK("6", "slept\n")
#define FIVE         DOMT_SERVED_LAST("2", "5\n")
#define GO_ON        "HTTP/1.1 100 Continue\r\n\r\n"

#define LATENCY (100 * MS)

/* Hold that these bytes come, and then the end. The link may be slow. */
static void hold_rest(domus_testkit *kit, domus_peer *peer, const char *text)
{
    size_t size;

    domt_served_pass(kit, 2 * LATENCY);
    const char *got = domus_peer_got(peer, &size);
    ck_assert_msg(size == strlen(text) && memcmp(got, text, size) == 0, "%.*s instead of %s",
                  (int)size, got, text);
    ck_assert(domus_peer_has_end(peer));
    ck_assert_int_eq(domus_peer_error(peer), 0);
}

/* Let a client send `first` and get `before`; then send `rest`, which comes when the stop has
 * begun. Hold that it gets `after`, and the end. */
static void hold_stop(const domus_behaviour *behaviour, const char *first, const char *before,
                      const char *rest, const char *after)
{
    static const domus_net_faults slow = {.latency_min_ns = LATENCY, .latency_max_ns = LATENCY};
    domus_testkit *kit = domt_served_start(NULL, behaviour, 1);
    domus_peer *peer = domt_served_peer(kit);

    domt_served_send(peer, first);
    domt_served_expect(kit, peer, before);
    domt_served_pass(kit, 10 * MS);
    ck_assert_int_eq(domus_testkit_net_set(kit, &slow), 0);
    if (*rest != '\0')
        domt_served_send(peer, rest);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    hold_rest(kit, peer, after);
    domus_testkit_free(kit);
}

DOMT_TEST(a_body_that_is_under_way_may_end)
{
    static const struct {
        const char *first, *before, *rest, *after;
    } cases[] = {
        {COUNTED "ab", "", "cde", FIVE},
        {COUNTED, "", "abcde", FIVE},
        {CHUNKED "5\r\nab", "", "cde\r\n0\r\n\r\n", FIVE},
        {CHUNKED, "", "5\r\nabcde\r\n0\r\n\r\n", FIVE},
        {POST("Content-Length: 5\r\nExpect: 100-continue"), GO_ON, "abcde", FIVE},
        {GET("/sleep/50") COUNTED "ab", "", "cde", SLEPT FIVE},
        {GET("/sleep/500") COUNTED "ab", "", "cde", SLEPT FIVE},
        {GET("/now") COUNTED "ab", DOMT_SERVED_OK("4", "now\n"), "cde", FIVE},
        {COUNTED "ab", "", "cde" GET("/now"),
         DOMT_SERVED_OK("2", "5\n") DOMT_SERVED_LAST("4", "now\n")},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hold_stop(&domt_served_by_whole, cases[i].first, cases[i].before, cases[i].rest,
                  cases[i].after);
        hold_stop(&domt_served_by_streams, cases[i].first, cases[i].before, cases[i].rest,
                  cases[i].after);
    }
}

/* A body that waits with its request behind another one, and is looked at late. */
DOMT_TEST(a_body_of_a_request_that_waits_may_end)
{
    static const domus_net_faults slow = {.latency_min_ns = LATENCY, .latency_max_ns = LATENCY};
    const domus_behaviour *behaviours[] = {&domt_served_by_whole, &domt_served_by_streams};

    for (size_t i = 0; i < 2; i++) {
        domus_config config;
        domt_served_configure(&config);
        config.channel.requests_max = 1;
        domus_testkit *kit = domt_served_start(&config, behaviours[i], 1);
        domus_peer *peer = domt_served_peer(kit);
        domt_served_send(peer, GET("/sleep/500") COUNTED "ab");
        domt_served_pass(kit, 10 * MS);
        ck_assert_int_eq(domus_testkit_net_set(kit, &slow), 0);
        domt_served_send(peer, "cde");
        ck_assert_int_eq(domus_testkit_stop(kit), 0);
        hold_rest(kit, peer, SLEPT FIVE);
        domus_testkit_free(kit);
    }
}

/* A body that does not lie whole in the window is gathered. */
DOMT_TEST(a_large_body_may_end)
{
    const size_t size = 200000;
    char *rest = calloc(1, size);

    ck_assert_ptr_nonnull(rest);
    memset(rest, 'a', size - 1);
    hold_stop(&domt_served_by_whole, POST("Content-Length: 200000") "a", "", rest,
              DOMT_SERVED_LAST("7", "200000\n"));
    hold_stop(&domt_served_by_streams, POST("Content-Length: 200000") "a", "", rest,
              DOMT_SERVED_LAST("7", "200000\n"));
    free(rest);
}

/* A request whose head is not there, or that has no body, keeps nobody waiting. */
DOMT_TEST(a_part_of_a_head_is_not_awaited)
{
    static const char *const parts[] = {"P", "POST /bytes HTTP/1.1\r\nHost: a\r\n",
                                        "POST /bytes HTTP/1.1\r\nContent-Length: 5\r\n"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        hold_stop(&domt_served_by_whole, parts[i], "", "", "");
}

/* The end of a body comes with the begin of the next request, whose body is under way then: the
 * drain would last as long as the peer goes on so. */
DOMT_TEST(the_next_body_is_not_awaited)
{
    hold_stop(&domt_served_by_whole, COUNTED "ab", "", "cde" COUNTED "ab",
              DOMT_SERVED_OK("2", "5\n"));
    hold_stop(&domt_served_by_whole, COUNTED "ab", "", "cde" CHUNKED "5\r\nab",
              DOMT_SERVED_OK("2", "5\n"));
    /* one that would come in pieces is not begun */
    hold_stop(&domt_served_by_streams, COUNTED "ab", "", "cde" COUNTED "ab", FIVE);
    hold_stop(&domt_served_by_streams, CHUNKED "5\r\nab", "",
              "cde\r\n0\r\n\r\n" CHUNKED "5\r\nab\r\n", FIVE);
    ck_assert_uint_eq(domt_served_now.begun, 1);
}

/* A body that does not come has its time as ever (channel.bodyRate), and that of the drain. */
DOMT_TEST(a_body_that_does_not_come_has_its_time)
{
    static const struct {
        const domus_behaviour *behaviour;
        uint64_t timeout_ns;
        const char *after; /* NULL: a reset */
    } cases[] = {
        {&domt_served_by_whole, 15 * SECOND, DOMT_SERVED_408},
        {&domt_served_by_streams, 15 * SECOND, DOMT_SERVED_408},
        {&domt_served_by_whole, 5 * SECOND, NULL},
        {&domt_served_by_streams, 5 * SECOND, NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        domus_config config;
        domt_served_configure(&config);
        config.shutdown.drain_timeout_ns = cases[i].timeout_ns;
        domus_testkit *kit = domt_served_start(&config, cases[i].behaviour, 1);
        domus_peer *peer = domt_served_peer(kit);
        domt_served_send(peer, COUNTED "ab");
        domt_served_pass(kit, 10 * MS);
        ck_assert_int_eq(domus_testkit_stop(kit), cases[i].after == NULL);
        if (cases[i].after != NULL)
            hold_rest(kit, peer, cases[i].after);
        else
            ck_assert_int_eq(domus_peer_error(peer), -ECONNRESET);
        domus_testkit_free(kit);
    }
}

/* A peer that ends within its body is not waited for. */
DOMT_TEST(a_peer_that_ends_within_its_body_is_not_awaited)
{
    domus_testkit *kit = domt_served_start(NULL, &domt_served_by_whole, 1);
    domus_peer *peer = domt_served_peer(kit);

    domt_served_send(peer, COUNTED "ab");
    domt_served_pass(kit, 10 * MS);
    domus_peer_finish(peer);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    hold_rest(kit, peer, "");
    domus_testkit_free(kit);
}

DOMT_SUITE(120)
