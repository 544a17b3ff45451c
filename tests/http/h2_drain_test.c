/* The end of a connection of HTTP/2 in a drain: the peer is told by GOAWAY, and what it had asked
 * for is answered. */
#include "tests/http/h2_peer.h"
#include "tests/support/suite.h"

#include <string.h>

#define MS DOMT_SERVED_MS

static domt_h2 h2;

static void begin(void)
{
    domt_h2_begin(&h2, domt_served_start(NULL, &domt_h2_by_streams, 1));
}

/* Read what came while the system has stopped. */
static void read_rest(void)
{
    size_t size;
    const char *got = domus_peer_got(h2.peer, &size);

    ck_assert_int_eq(nghttp2_session_mem_recv(h2.session, (const uint8_t *)got, size),
                     (ssize_t)size);
}

DOMT_TEST(streams_under_way_are_answered)
{
    int32_t ids[3];

    begin();
    ids[0] = domt_h2_ask(&h2, "GET", "/sleep/200", 0, NULL);
    ids[1] = domt_h2_ask(&h2, "GET", "/sleep/900", 0, NULL);
    ids[2] = domt_h2_ask(&h2, "GET", "/give/20000", 0, NULL);
    domt_h2_pass(&h2, 100 * MS);
    ck_assert_int_eq(domus_testkit_stop(h2.kit), 0);
    read_rest();
    domt_h2_hold(&h2, ids[0], 200, "slept\n");
    domt_h2_hold(&h2, ids[1], 200, "slept\n");
    domt_h2_hold(&h2, ids[2], 200, NULL);
    domt_h2_hold_away(&h2, NGHTTP2_NO_ERROR);
    ck_assert_uint_eq(h2.aways, 2); /* that it ends, and where */
    ck_assert_int_eq(h2.last, ids[2]);
    ck_assert_int_eq(domus_peer_error(h2.peer), 0);
    domt_h2_end(&h2);
    domus_testkit_free(h2.kit);
}

DOMT_TEST(an_idle_connection_says_goodbye)
{
    begin();
    domt_h2_hold_well(&h2);
    ck_assert_int_eq(domus_testkit_stop(h2.kit), 0);
    read_rest();
    domt_h2_hold_away(&h2, NGHTTP2_NO_ERROR);
    ck_assert_uint_eq(h2.aways, 1);
    domt_h2_end(&h2);
    domus_testkit_free(h2.kit);
}

/* Bodies are under way: the rest of them comes when the drain has begun. */
DOMT_TEST(bodies_that_are_under_way_may_end)
{
    static const domus_behaviour *const behaviours[] = {&domt_h2_by_whole, &domt_h2_by_streams};
    static const domus_net_faults slow = {.latency_min_ns = 100 * MS, .latency_max_ns = 100 * MS};
    static const char *const length[] = {"content-length", "150", NULL};

    for (size_t i = 0; i < 2; i++) {
        int32_t ids[3];
        domt_h2_begin(&h2, domt_served_start(NULL, behaviours[i], 1));
        ids[0] = domt_h2_ask(&h2, "POST", "/bytes", 100, NULL);
        ids[1] = domt_h2_ask(&h2, "POST", "/bytes", 100, length);
        ids[2] = domt_h2_ask(&h2, "POST", "/bytes", 1, NULL);
        for (size_t n = 0; n < 3; n++)
            domt_h2_stream_of(&h2, ids[n])->holds_end = true;
        domt_h2_pass(&h2, 50 * MS);
        for (size_t n = 0; n < 2; n++) {
            *domt_h2_stream_of(&h2, ids[n]) = (domt_h2_stream){.to_send = 50};
            (void)nghttp2_session_resume_data(h2.session, ids[n]);
        }
        ck_assert_int_eq(
            nghttp2_submit_rst_stream(h2.session, NGHTTP2_FLAG_NONE, ids[2], NGHTTP2_CANCEL), 0);
        ck_assert_int_eq(domus_testkit_net_set(h2.kit, &slow), 0);
        domt_h2_send(&h2, "", 0);
        ck_assert_int_eq(domus_testkit_stop(h2.kit), 0);
        domt_served_pass(h2.kit, 200 * MS);
        read_rest();
        domt_h2_hold(&h2, ids[0], 200, "150\n");
        domt_h2_hold(&h2, ids[1], 200, "150\n");
        domt_h2_hold_away(&h2, NGHTTP2_NO_ERROR);
        ck_assert_int_eq(h2.last, ids[2]);
        domt_h2_end(&h2);
        domus_testkit_free(h2.kit);
    }
}

/* A connection that is too old ends when its streams have. */
DOMT_TEST(an_old_connection_ends_behind_its_streams)
{
    domus_config config;

    domt_served_configure(&config);
    config.pace.age_max_ns = 1000 * MS;
    config.pace.age_jitter_percent = 0;
    domt_h2_begin(&h2, domt_served_start(&config, &domt_h2_by_streams, 1));
    int32_t id = domt_h2_ask(&h2, "GET", "/sleep/1800", 0, NULL);
    domt_h2_pass(&h2, 4000 * MS);
    domt_h2_hold(&h2, id, 200, "slept\n");
    domt_h2_hold_away(&h2, NGHTTP2_NO_ERROR);
    domus_peer_close(h2.peer);
    domt_h2_end(&h2);
    domt_served_end(h2.kit);
}

/* The peer begins a stream in the packet in which it takes back another one. GOAWAY, which that
 * calls for, names the latter as the last; so nothing of the former may be done. */
DOMT_TEST(a_stream_behind_the_last_one_is_refused)
{
    static const char packet[] = "\0\0\4\3\0\0\0\0\3"
                                 "\0\0\0\x8" /* RST_STREAM, CANCEL */
                                 "\0\0\xb\1\5\0\0\0\5"
                                 "\x82\x86\x04\x04/now\x01\x01"
                                 "a"; /* HEADERS, END_STREAM, END_HEADERS */
    static const char refused[] = "\0\0\4\3\0\0\0\0\5\0\0\0\7";
    static const char away[] = "\0\0\x8\7\0\0\0\0\0\0\0\0\3\0\0\0";
    domus_config config;
    size_t size;

    domt_served_configure(&config);
    config.pace.age_max_ns = 1000 * MS;
    config.pace.age_jitter_percent = 0;
    domt_h2_begin(&h2, domt_served_start(&config, &domt_h2_by_streams, 1));
    (void)domt_h2_ask(&h2, "GET", "/sleep/1800", 0, NULL);
    ck_assert_int_eq(domt_h2_ask(&h2, "GET", "/hang", 0, NULL), 3);
    domt_h2_pass(&h2, 1500 * MS);
    domt_h2_send(&h2, packet, sizeof packet - 1);
    domt_served_pass(h2.kit, 100 * MS);
    const char *got = domus_peer_got(h2.peer, &size);
    ck_assert_ptr_nonnull(memmem(got, size, refused, sizeof refused - 1));
    ck_assert_ptr_nonnull(memmem(got, size, away, sizeof away - 1));
    ck_assert_uint_eq(domt_served_now.begun, 2);
    domus_peer_close(h2.peer);
    domt_h2_end(&h2);
    domt_served_end(h2.kit);
}

/* When the connection breaks, nothing of its streams is left. */
DOMT_TEST(streams_end_with_their_connection)
{
    begin();
    for (unsigned i = 0; i < 5; i++)
        (void)domt_h2_ask(&h2, "GET", "/hang", 0, NULL);
    domt_h2_pass(&h2, 0);
    domus_peer_reset(h2.peer);
    domt_served_pass(h2.kit, 100 * MS);
    ck_assert_uint_eq(domt_served_now.closed, 6);
    domt_h2_end(&h2);
    domt_served_end(h2.kit);
}

DOMT_SUITE(120)
