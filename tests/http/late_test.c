/* A peer that is late with a request gets 408, and a peer that has begun no request gets nothing
 * (io/pipelines/late.c). Time is that of a test kit. */
#include "tests/http/served.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_SERVED_MS
#define SECOND DOMT_SERVED_S
#define NOW    "GET /now HTTP/1.1\r\nHost: a\r\n\r\n"
#define GOT    DOMT_SERVED_OK("4", "now\n")

static domus_testkit *kit;

/* Start a service whose configuration a function of the test has changed. */
static void start_service_with_changed_config(const domus_behaviour *behaviour,
                                              void (*change)(domus_config *config))
{
    domus_config config;

    domt_served_init_config(&config);
    if (change != NULL)
        change(&config);
    kit = domt_served_start_kit(&config, behaviour, 1);
}

/* Start a service whose configuration was changed, and let a peer send this text. */
static domus_peer *start_changed_service_and_send_text(const domus_behaviour *behaviour,
                                                       void (*change)(domus_config *config),
                                                       const char *text)
{
    start_service_with_changed_config(behaviour, change);
    domus_peer *peer = domt_served_connect_peer(kit);
    domt_served_send_text(peer, text);
    return peer;
}

static uint64_t count_slow_channels(void)
{
    domus_profile profile[3];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_system_profile(domus_testkit_system(kit), i, &profile[i]), 0);
        sum += profile[i].channels_slow;
    }
    return sum;
}

/* Check that the connection ends with `text`, not before `after_ns` and at most a second later. */
static void expect_text_and_end_after(domus_peer *peer, uint64_t after_ns, const char *text)
{
    ck_assert_int_eq(domus_peer_expect_nothing(peer, after_ns), 0);
    ck_assert_int_eq(domus_peer_expect(peer, text, strlen(text), SECOND), 0);
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    ck_assert_int_eq(domus_peer_error(peer), 0);
    domus_peer_close(peer);
}

DOMT_TEST(a_head_that_is_not_whole_in_time_gets_408)
{
    static const char *const begun[] = {"G", "GET /now HTTP/1.1\r\n",
                                        "GET /now HTTP/1.1\r\nHost: a\r\n", "\r\nGE", NOW "G"};

    start_service_with_changed_config(&domt_served_by_whole, NULL);
    for (size_t i = 0; i < sizeof begun / sizeof begun[0]; i++) {
        domus_peer *peer = domt_served_connect_peer(kit);
        domt_served_advance_kit(kit, 3 * SECOND);
        domt_served_send_text(peer, begun[i]);
        if (strncmp(begun[i], NOW, strlen(NOW)) == 0)
            domt_served_expect_text(kit, peer, GOT);
        expect_text_and_end_after(peer, 9900 * MS, DOMT_SERVED_408);
    }
    ck_assert_uint_eq(count_slow_channels(), sizeof begun / sizeof begun[0]);
    domt_served_end_kit(kit);
}

DOMT_TEST(bytes_that_drip_bring_a_head_no_time)
{
    domus_peer *peer = start_changed_service_and_send_text(&domt_served_by_whole, NULL,
                                                           "GET /now HTTP/1.1\r\nX: ");
    for (uint32_t i = 0; i < 99; i++) {
        domt_served_advance_kit(kit, 100 * MS);
        domt_served_send_text(peer, "x");
    }
    expect_text_and_end_after(peer, 50 * MS, DOMT_SERVED_408);
    domt_served_end_kit(kit);
}

DOMT_TEST(each_head_has_its_own_time)
{
    start_service_with_changed_config(&domt_served_by_whole, NULL);
    domus_peer *peer = domt_served_connect_peer(kit);
    for (uint32_t i = 0; i < 4; i++) {
        domt_served_send_text(peer, "GET /now HTTP/1.1\r\n");
        domt_served_advance_kit(kit, 6 * SECOND);
        domt_served_send_text(peer, "Host: a\r\n\r\nGET /now");
        domt_served_expect_text(kit, peer, GOT);
        domt_served_advance_kit(kit, 6 * SECOND);
        domt_served_send_text(peer, " HTTP/1.1\r\nHost: a\r\n\r\n");
        domt_served_expect_text(kit, peer, GOT);
        ck_assert_int_eq(domus_peer_expect_nothing(peer, 20 * SECOND), 0);
    }
    domus_peer_close(peer);
    ck_assert_uint_eq(count_slow_channels(), 0);
    domt_served_end_kit(kit);
}

static void shorten_idle_timeout(domus_config *config)
{
    config->channel.idle_timeout_ns = 5 * SECOND;
}

static void set_idle_timeout_alone(domus_config *config)
{
    config->channel.idle_timeout_ns = 5 * SECOND;
    config->channel.head_timeout_ns = 0;
    config->channel.body_rate_bytes = 0;
}

DOMT_TEST(idle_connections_without_a_request_end_in_silence)
{
    static const char *const sent[] = {"", "\r", "\r\n", NOW};

    start_service_with_changed_config(&domt_served_by_whole, shorten_idle_timeout);
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        domus_peer *peer = domt_served_connect_peer(kit);
        domt_served_send_text(peer, sent[i]);
        if (strcmp(sent[i], NOW) == 0)
            domt_served_expect_text(kit, peer, GOT);
        expect_text_and_end_after(peer, 4900 * MS, "");
    }
    domt_served_end_kit(kit);
}

/* The time-out of the head begins with the first empty line; but no part of a request has come, so
 * there is no 408. */
DOMT_TEST(empty_lines_that_drip_end_in_silence_when_the_head_is_late)
{
    start_service_with_changed_config(&domt_served_by_whole, NULL);
    domus_peer *peer = domt_served_connect_peer(kit);
    for (uint32_t i = 0; i < 7; i++) {
        domt_served_send_text(peer, i % 2 == 0 ? "\r\n" : "\r");
        domt_served_advance_kit(kit, SECOND);
        domt_served_send_text(peer, i % 2 == 0 ? "" : "\n");
    }
    expect_text_and_end_after(peer, 2900 * MS, "");
    peer = domt_served_connect_peer(kit);
    domt_served_send_text(peer, NOW "\r\n");
    domt_served_expect_text(kit, peer, GOT);
    domt_served_advance_kit(kit, 5 * SECOND);
    domt_served_send_text(peer, "\r\nG");
    expect_text_and_end_after(peer, 4900 * MS, DOMT_SERVED_408);
    domt_served_end_kit(kit);
}

DOMT_TEST(the_idle_time_out_is_answered_within_a_request)
{
    static const char *const begun[] = {
        "GET /now HTTP/1.1\r\n", "POST /bytes HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc",
        "POST /bytes HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc"};
    static const domus_behaviour *const behaviours[] = {&domt_served_by_whole,
                                                        &domt_served_by_streams};

    for (size_t b = 0; b < 2; b++) {
        start_service_with_changed_config(behaviours[b], set_idle_timeout_alone);
        for (size_t i = 0; i < sizeof begun / sizeof begun[0]; i++) {
            domus_peer *peer = domt_served_connect_peer(kit);
            domt_served_send_text(peer, begun[i]);
            expect_text_and_end_after(peer, 4900 * MS, DOMT_SERVED_408);
        }
        ck_assert_uint_eq(count_slow_channels(), 0);
        domt_served_end_kit(kit);
    }
}

/* Send the start of a body, and then `count` times `size` bytes, once each `every_ns`. */
static domus_peer *drip_body(const char *begin, uint32_t size, uint64_t every_ns, uint32_t count)
{
    domus_peer *peer = domt_served_connect_peer(kit);
    char bytes[2001];

    memset(bytes, 'x', sizeof bytes);
    bytes[size] = '\0';
    domt_served_send_text(peer, begin);
    for (uint32_t i = 0; i < count; i++) {
        domt_served_advance_kit(kit, every_ns);
        size_t got;
        (void)domus_peer_got(peer, &got);
        if (got != 0 || domus_peer_has_end(peer))
            break;
        domt_served_send_text(peer, bytes);
    }
    return peer;
}

#define LONG_BODY(path) "POST " path " HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
#define CHUNKS(path)                                                                               \
    "POST " path " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n"

DOMT_TEST(a_body_that_is_too_slow_gets_408)
{
    static const char *const begun[] = {LONG_BODY("/bytes"), CHUNKS("/bytes")};
    static const domus_behaviour *const behaviours[] = {&domt_served_by_whole,
                                                        &domt_served_by_streams};

    for (size_t b = 0; b < 2; b++) {
        start_service_with_changed_config(behaviours[b], NULL);
        for (size_t i = 0; i < 2; i++) {
            uint64_t from_ns = domus_testkit_now_ns(kit);
            domus_peer *peer = drip_body(begun[i], 50, SECOND, 1000);
            uint64_t ns = domus_testkit_now_ns(kit) - from_ns;
            /* bytes at half of channel.bodyRate use up a reserve of ten seconds in twenty
             * seconds */
            ck_assert_uint_ge(ns, 18 * SECOND);
            ck_assert_uint_le(ns, 22 * SECOND);
            domt_served_expect_text(kit, peer, DOMT_SERVED_408);
            ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
            domus_peer_close(peer);
        }
        ck_assert_uint_eq(count_slow_channels(), 2);
        ck_assert_int_eq(domt_served_now.read_error, b == 0 ? 0 : -ETIMEDOUT);
        domt_served_end_kit(kit);
    }
}

DOMT_TEST(a_burst_of_a_body_does_not_pay_for_silence)
{
    start_service_with_changed_config(&domt_served_by_streams, NULL);
    domus_peer *peer = drip_body(LONG_BODY("/bytes"), 2000, MS, 40);
    expect_text_and_end_after(peer, 9900 * MS, DOMT_SERVED_408);
    domt_served_end_kit(kit);
}

DOMT_TEST(a_body_that_is_fast_enough_may_last_any_time)
{
    start_service_with_changed_config(&domt_served_by_streams, NULL);
    domus_peer *peer = drip_body(LONG_BODY("/bytes"), 1000, 9 * SECOND, 100);
    domt_served_expect_text(kit, peer, DOMT_SERVED_OK("7", "100000\n"));
    domus_peer_close(peer);
    domt_served_end_kit(kit);
    start_service_with_changed_config(&domt_served_by_whole, NULL);
    peer = drip_body(LONG_BODY("/bytes"), 1000, 9 * SECOND, 100);
    domt_served_expect_text(kit, peer, DOMT_SERVED_OK("7", "100000\n"));
    domus_peer_close(peer);
    domt_served_end_kit(kit);
}

DOMT_TEST(a_body_that_nobody_reads_is_not_late)
{
    domus_peer *peer = start_changed_service_and_send_text(&domt_served_by_streams, NULL,
                                                           LONG_BODY("/sleep/60000"));
    domt_served_expect_text(kit, peer, DOMT_SERVED_OK("6", "slept\n"));
    /* the rest of the body is skipped now, and its time-out runs again */
    ck_assert_int_eq(domus_peer_expect_nothing(peer, 9900 * MS), 0);
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domus_peer_close(peer);
    domt_served_end_kit(kit);
}

DOMT_TEST(whoever_reads_a_late_body_may_answer)
{
    domus_peer *peer = start_changed_service_and_send_text(&domt_served_by_streams, NULL,
                                                           LONG_BODY("/read") "abc");
    expect_text_and_end_after(peer, 9900 * MS, DOMT_SERVED_LAST("15", "read ETIMEDOUT\n"));
    ck_assert_int_eq(domt_served_now.close_error, 0);
    /* the handler fails with the same errno, although no peer is late */
    peer = domt_served_connect_peer(kit);
    domt_served_send_text(peer, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    domt_served_expect_text(kit, peer,
                            "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 16\r\n"
                            "Content-Type: text/plain\r\n\r\nGateway Timeout\n");
    domus_peer_close(peer);
    domt_served_end_kit(kit);
}

DOMT_TEST(late_requests_are_answered_behind_those_before)
{
    domus_peer *peer = start_changed_service_and_send_text(
        &domt_served_by_whole, NULL, "GET /sleep/15000 HTTP/1.1\r\nHost: a\r\n\r\n" NOW "GET");
    expect_text_and_end_after(peer, 14900 * MS, DOMT_SERVED_OK("6", "slept\n") GOT DOMT_SERVED_408);
    domt_served_end_kit(kit);
}

/* A request that is never answered delays the 408 of the next request only until the idle
 * time-out. */
DOMT_TEST(answers_that_never_come_do_not_keep_a_late_peer)
{
    domus_peer *peer = start_changed_service_and_send_text(
        &domt_served_by_whole, shorten_idle_timeout, "GET /hang HTTP/1.1\r\nHost: a\r\n\r\nGET");
    ck_assert_int_eq(domus_peer_expect_nothing(peer, 9900 * MS), 0);
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domt_served_advance_kit(kit, SECOND);
    ck_assert_int_eq(domt_served_now.close_error, -ETIMEDOUT);
    domus_peer_close(peer);
    domt_served_end_kit(kit);
}

static void shorten_send_timeout(domus_config *config)
{
    config->channel.send_timeout_ns = 4 * SECOND;
    config->channel.head_timeout_ns = 2 * SECOND;
}

DOMT_TEST(a_late_peer_that_does_not_read_is_reset)
{
    start_service_with_changed_config(&domt_served_by_whole, shorten_send_timeout);
    domus_peer *peer = domt_served_connect_peer(kit);
    domus_peer_pause(peer);
    domt_served_send_text(peer, "GET /give/3000000 HTTP/1.1\r\nHost: a\r\n\r\nGET");
    domt_served_advance_kit(kit, 8 * SECOND);
    ck_assert_uint_eq(domt_served_now.closed, 1);
    ck_assert_int_eq(domt_served_now.close_error, -ETIMEDOUT);
    domus_peer_resume(peer);
    ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
    domus_peer_close(peer);
    domt_served_end_kit(kit);
}

static void set_min_rate(domus_config *config)
{
    config->pace.rate_min_bytes = 1000;
    config->pace.rate_grace_ns = 2 * SECOND;
}

DOMT_TEST(a_head_below_the_rate_of_all_messages_gets_408_too)
{
    domus_peer *peer = start_changed_service_and_send_text(&domt_served_by_whole, set_min_rate,
                                                           "GET /now HTTP/1.1\r\n");
    ck_assert_int_eq(domus_peer_expect_nothing(peer, 1900 * MS), 0);
    ck_assert_int_eq(domus_peer_expect(peer, DOMT_SERVED_408, strlen(DOMT_SERVED_408), 3 * SECOND),
                     0);
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domus_peer_close(peer);
    domt_served_end_kit(kit);
}

static void set_one_request_at_a_time(domus_config *config)
{
    config->channel.requests_max = 1;
    config->channel.head_timeout_ns = 2 * SECOND;
}

static void shorten_head_timeout(domus_config *config)
{
    config->channel.head_timeout_ns = 2 * SECOND;
}

/* The time-out of a head that has begun is suspended while the service does not read. */
DOMT_TEST(the_time_out_of_a_head_stands_still_while_nothing_is_read)
{
    domus_peer *peer =
        start_changed_service_and_send_text(&domt_served_by_whole, shorten_head_timeout,
                                            "GET /halt/8000 HTTP/1.1\r\nHost: a\r\n\r\nGET");
    ck_assert_int_eq(domus_peer_expect_nothing(peer, 8 * SECOND), 0);
    domt_served_expect_text(kit, peer, DOMT_SERVED_OK("7", "halted\n"));
    expect_text_and_end_after(peer, 1700 * MS, DOMT_SERVED_408);
    domt_served_end_kit(kit);
}

/* While the service does not read, the rest of a head cannot come, and the time does not count. */
DOMT_TEST(time_in_which_requests_wait_does_not_count_for_a_head)
{
    domus_peer *peer =
        start_changed_service_and_send_text(&domt_served_by_whole, set_one_request_at_a_time,
                                            "GET /sleep/9000 HTTP/1.1\r\nHost: a\r\n\r\n");
    domt_served_advance_kit(kit, 100 * MS);
    domt_served_send_text(peer, "GET /now HTTP/1.1\r\n");
    domt_served_advance_kit(kit, 8 * SECOND);
    domt_served_expect_text(kit, peer, DOMT_SERVED_OK("6", "slept\n"));
    expect_text_and_end_after(peer, 1800 * MS, DOMT_SERVED_408);
    domt_served_end_kit(kit);
}

DOMT_SUITE(20)
