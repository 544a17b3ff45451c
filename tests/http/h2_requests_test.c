/* Requests and answers over HTTP/2: the service of HTTP/1.1 answers them without knowing of HTTP/2.
 * At the end of a connection in a drain, the peer gets GOAWAY, and its earlier requests are
 * answered. */
#include "tests/http/h2_peer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS DOMT_SERVED_MS

static domt_h2 h2;

static void begin_client_of_service(const domus_behaviour *behaviour)
{
    domt_h2_begin_nghttp2_client(&h2, domt_served_start_kit(NULL, behaviour, 1));
}

DOMT_TEST(requests_are_answered_as_they_are_ready)
{
    int32_t ids[4];

    begin_client_of_service(&domt_h2_by_whole);
    ids[0] = domt_h2_begin_request(&h2, "GET", "/sleep/300", 0, NULL);
    ids[1] = domt_h2_begin_request(&h2, "GET", "/sleep/100", 0, NULL);
    ids[2] = domt_h2_begin_request(&h2, "GET", "/now", 0, NULL);
    ids[3] = domt_h2_begin_request(&h2, "GET", "/late", 0, NULL);
    domt_h2_send_output_and_advance(&h2, 500 * MS);
    domt_h2_expect_answer(&h2, ids[0], 200, "slept\n");
    domt_h2_expect_answer(&h2, ids[1], 200, "slept\n");
    domt_h2_expect_answer(&h2, ids[2], 200, "now\n");
    domt_h2_expect_answer(&h2, ids[3], 504, NULL);
    ck_assert_uint_eq(domt_h2_stream_of_id(&h2, ids[0])->order, 3);
    ck_assert_uint_eq(domt_h2_stream_of_id(&h2, ids[1])->order, 2);
    ck_assert_str_eq(domt_h2_stream_of_id(&h2, ids[0])->field, "text/plain");
    ck_assert_uint_eq(domt_served_now.closed, 0);
    domt_h2_end_client_and_kit(&h2);
}

DOMT_TEST(inner_channels_serve_one_stream_after_the_other)
{
    begin_client_of_service(&domt_h2_by_whole);
    for (unsigned i = 0; i < 150; i++)
        domt_h2_expect_connection_works(&h2);
    ck_assert_uint_eq(domt_served_now.closed, 0);
    domt_h2_end_client_and_kit(&h2);
    /* channels that have closed: the connection, and one inner channel that served all requests */
    ck_assert_uint_eq(domt_served_now.closed, 2);
}

DOMT_TEST(methods_and_bodies_have_their_answers)
{
    static const struct {
        const char *method, *path;
        size_t size;
        const char *fields[6];
        int status;
        const char *text;
    } cases[] = {
        {"HEAD", "/now", 0, {NULL}, 200, ""},
        {"POST", "/bytes", 0, {NULL}, 200, "0\n"},
        {"POST", "/bytes", 10, {NULL}, 200, "10\n"},
        {"POST", "/bytes", 10, {"content-length", "10", NULL}, 200, "10\n"},
        {"POST", "/bytes", 300000, {NULL}, 200, "300000\n"},
        {"POST", "/bytes", 300000, {"content-length", "300000", NULL}, 200, "300000\n"},
        {"POST", "/bytes", 0, {"content-length", "0", NULL}, 200, "0\n"},
        {"POST", "/bytes", 5, {"expect", "100-continue", NULL}, 200, "5\n"},
        {"GET", "/now", 0, {"cookie", "a=1", "cookie", "b=2", NULL}, 200, "now\n"},
        {"GET", "/now", 0, {"te", "trailers", NULL}, 200, "now\n"},
        {"GET", "/now", 0, {"host", "a", NULL}, 200, "now\n"},
        {"GET", "/fields", 0, {NULL}, 200, ""},
        {"HEAD", "/fields", 0, {NULL}, 200, ""},
        {"OPTIONS", "*", 0, {NULL}, 404, NULL},
        {"GET", "/unknown", 0, {NULL}, 404, NULL},
        {"NONSENSE", "/now", 0, {NULL}, 501, NULL},
    };
    const domus_behaviour *const behaviours[] = {&domt_h2_by_whole, &domt_h2_by_streams};

    for (size_t b = 0; b < 2; b++) {
        begin_client_of_service(behaviours[b]);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            int32_t id = domt_h2_begin_request(&h2, cases[i].method, cases[i].path, cases[i].size,
                                               cases[i].fields);
            domt_h2_send_output_and_advance(&h2, 0);
            if (cases[i].status != 404)
                domt_h2_expect_answer(&h2, id, cases[i].status, cases[i].text);
            domt_h2_expect_connection_works(&h2);
        }
        domt_h2_end_client_and_kit(&h2);
    }
}

DOMT_TEST(a_body_that_is_wanted_is_asked_for)
{
    static const char *const expects[] = {"expect", "100-continue", NULL};

    begin_client_of_service(&domt_h2_by_streams);
    int32_t id = domt_h2_begin_request(&h2, "POST", "/bytes", 1, expects);
    domt_h2_stream_of_id(&h2, id)->to_send = 0;
    domt_h2_stream_of_id(&h2, id)->holds_end = true;
    domt_h2_send_output_and_advance(&h2, 0);
    ck_assert_int_eq(domt_h2_stream_of_id(&h2, id)->interims, 1);
    domt_h2_stream_of_id(&h2, id)->to_send = 7;
    domt_h2_stream_of_id(&h2, id)->holds_end = false;
    ck_assert_int_eq(nghttp2_session_resume_data(h2.session, id), 0);
    domt_h2_send_output_and_advance(&h2, 0);
    domt_h2_expect_answer(&h2, id, 200, "7\n");
    domt_h2_end_client_and_kit(&h2);
}

DOMT_TEST(trailers_go_both_ways)
{
    begin_client_of_service(&domt_h2_by_streams);
    for (size_t size = 0; size < 3; size++) {
        int32_t id = domt_h2_begin_request(&h2, "POST", "/bytes", 1 + size, NULL);
        domt_h2_stream_of_id(&h2, id)->trailers = 1;
        domt_h2_send_output_and_advance(&h2, 0);
        domt_h2_expect_answer(&h2, id, 200, size == 0 ? "1\n" : size == 1 ? "2\n" : "3\n");
    }
    /* a request without "TE: trailers" gets an answer without trailers */
    int32_t id = domt_h2_begin_request(&h2, "GET", "/trailed", 0, NULL);
    domt_h2_send_output_and_advance(&h2, 0);
    domt_h2_expect_answer(&h2, id, 200, "trailed\n");
    ck_assert_str_eq(domt_h2_stream_of_id(&h2, id)->field, "end");
    domt_h2_end_client_and_kit(&h2);
}

/* Long answers on several streams: each comes whole, however small the window of the client is. */
DOMT_TEST(answers_in_pieces_come_whole)
{
    int32_t ids[5];

    begin_client_of_service(&domt_h2_by_streams);
    for (size_t i = 0; i < 5; i++)
        ids[i] =
            domt_h2_begin_request(&h2, "GET", i % 2 == 0 ? "/give/200000" : "/give/5000", 0, NULL);
    domt_h2_send_output_and_advance(&h2, 1000 * MS);
    for (size_t i = 0; i < 5; i++) {
        domt_h2_expect_answer(&h2, ids[i], 200, NULL);
        ck_assert_uint_eq(domt_h2_stream_of_id(&h2, ids[i])->size, i % 2 == 0 ? 200000 : 5000);
    }
    domt_h2_end_client_and_kit(&h2);
}

/* RFC 9218: the more urgent answer comes first, although its request came last. */
DOMT_TEST(urgent_answers_come_first)
{
    static const char *const later[] = {"priority", "u=5", NULL};
    static const char *const sooner[] = {"priority", "u=1", NULL};
    int32_t ids[3];

    begin_client_of_service(&domt_h2_by_streams);
    ids[0] = domt_h2_begin_request(&h2, "GET", "/give/150000", 0, later);
    ids[1] = domt_h2_begin_request(&h2, "GET", "/give/150000", 0, NULL);
    ids[2] = domt_h2_begin_request(&h2, "GET", "/give/150000", 0, sooner);
    domt_h2_send_output_and_advance(&h2, 1000 * MS);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(domt_h2_stream_of_id(&h2, ids[i])->order, 2 - i);
    domt_h2_end_client_and_kit(&h2);
}

/* When the peer cancels a stream, its answer is cut, and other streams go on. */
DOMT_TEST(a_stream_that_the_peer_takes_back_ends_its_request)
{
    begin_client_of_service(&domt_h2_by_whole);
    int32_t gone = domt_h2_begin_request(&h2, "GET", "/hang", 0, NULL);
    domt_h2_send_output_and_advance(&h2, 0);
    ck_assert_int_eq(nghttp2_submit_rst_stream(h2.session, NGHTTP2_FLAG_NONE, gone, NGHTTP2_CANCEL),
                     0);
    domt_h2_send_output_and_advance(&h2, 0);
    ck_assert_uint_eq(domt_served_now.closed, 1);
    ck_assert_int_eq(domt_served_now.close_error, -ECONNRESET);
    domt_h2_expect_connection_works(&h2);
    domt_h2_end_client_and_kit(&h2);
}

DOMT_TEST(a_handlers_101_on_a_stream_is_an_error)
{
    begin_client_of_service(&domt_h2_by_whole);
    /* this request did not ask for another protocol, so the handler's 101 is an error */
    (void)domt_h2_request_and_expect_answer(&h2, "GET", "/up", 0, NULL, 0, 500, NULL);
    domt_h2_end_client_and_kit(&h2);
}

/* An inner channel without a stream ends after a second or so, and gives its place back; an inner
 * channel with a stream stays. */
DOMT_TEST(inner_channels_without_streams_end)
{
    begin_client_of_service(&domt_h2_by_whole);
    for (unsigned i = 0; i < 20; i++)
        (void)domt_h2_begin_request(&h2, "GET", "/sleep/10", 0, NULL);
    int32_t slow = domt_h2_begin_request(&h2, "GET", "/sleep/3000", 0, NULL);
    domt_h2_send_output_and_advance(&h2, 500 * MS);
    ck_assert_uint_eq(domt_served_now.closed, 0);
    domt_h2_send_output_and_advance(&h2, 1000 * MS);
    ck_assert_uint_eq(domt_served_now.closed, 20);
    ck_assert_int_eq(domt_served_now.close_error, 0);
    domt_h2_send_output_and_advance(&h2, 2000 * MS);
    domt_h2_expect_answer(&h2, slow, 200, "slept\n");
    domt_h2_expect_connection_works(&h2);
    domt_h2_end_client_and_kit(&h2);
    ck_assert_uint_eq(domt_served_now.closed, 22);
}

/* An inner channel that has rested and serves again may take as long as others: here the body of
 * its request comes late, and no handler waits for it yet. */
DOMT_TEST(inner_channels_that_serve_again_stay)
{
    begin_client_of_service(&domt_h2_by_whole);
    domt_h2_expect_connection_works(&h2);
    int32_t id = domt_h2_begin_request(&h2, "POST", "/bytes", 5, NULL);
    domt_h2_stream_of_id(&h2, id)->holds_end = true;
    domt_h2_send_output_and_advance(&h2, 3000 * MS);
    domt_h2_stream_of_id(&h2, id)->to_send = 5;
    domt_h2_stream_of_id(&h2, id)->holds_end = false;
    ck_assert_int_eq(nghttp2_session_resume_data(h2.session, id), 0);
    domt_h2_send_output_and_advance(&h2, 0);
    domt_h2_expect_answer(&h2, id, 200, "10\n");
    ck_assert_uint_eq(domt_served_now.closed, 0);
    domt_h2_end_client_and_kit(&h2);
}

/* A request was answered before its body has ended; when the peer's FIN comes, nothing is left to
 * wait for, and the connection ends. */
DOMT_TEST(a_half_close_ends_a_connection_whose_requests_are_answered)
{
    begin_client_of_service(&domt_h2_by_streams);
    int32_t id = domt_h2_begin_request(&h2, "POST", "/now\xff", 10, NULL);
    domt_h2_stream_of_id(&h2, id)->holds_end = true;
    domt_h2_send_output_and_advance(&h2, 0);
    domt_h2_expect_answer(&h2, id, 400, NULL);
    domus_peer_finish(h2.peer);
    domt_h2_send_output_and_advance(&h2, 100 * MS);
    domt_h2_expect_goaway(&h2, NGHTTP2_NO_ERROR);
    domt_h2_end_client(&h2);
    domt_served_end_kit(h2.kit);
}

/* A peer that sends its FIN right after its requests gets the answers, and then the end. */
DOMT_TEST(answers_come_behind_a_half_close)
{
    int32_t ids[3];

    begin_client_of_service(&domt_h2_by_streams);
    ids[0] = domt_h2_begin_request(&h2, "GET", "/sleep/500", 0, NULL);
    ids[1] = domt_h2_begin_request(&h2, "GET", "/give/5000", 0, NULL);
    ids[2] = domt_h2_begin_request(&h2, "POST", "/bytes", 10, NULL);
    /* this request's body has no end, so the request stays under way */
    domt_h2_stream_of_id(&h2, ids[2])->holds_end = true;
    domt_h2_send_output_and_advance(&h2, 0);
    domus_peer_finish(h2.peer);
    domt_h2_send_output_and_advance(&h2, 100 * MS);
    ck_assert(!domus_peer_has_end(h2.peer));
    domt_h2_send_output_and_advance(&h2, 1000 * MS);
    domt_h2_expect_answer(&h2, ids[0], 200, "slept\n");
    domt_h2_expect_answer(&h2, ids[1], 200, NULL);
    ck_assert_int_ne(domt_h2_stream_of_id(&h2, ids[2])->status, 200);
    domt_h2_expect_goaway(&h2, NGHTTP2_NO_ERROR);
    ck_assert_int_eq(domus_peer_error(h2.peer), 0);
    domt_h2_end_client(&h2);
    domt_served_end_kit(h2.kit);
}

/* Bytes without the preface are not read as HTTP/2, however they are split. */
DOMT_TEST(connections_without_the_preface_speak_http_1)
{
    static const char *const texts[] = {"GET /now HTTP/1.1\r\nHost: a\r\n\r\n",
                                        "PUT /now HTTP/1.1\r\nHost: a\r\n\r\n",
                                        "PROPFIND /now HTTP/1.1\r\nHost: a\r\n\r\n"};
    domus_testkit *kit = domt_served_start_kit(NULL, &domt_h2_by_whole, 1);

    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        for (size_t at = 1; at < 12; at++) {
            domus_peer *peer = domt_served_connect_peer(kit);
            ck_assert_int_eq(domus_peer_send(peer, texts[t], at), 0);
            domt_served_advance_kit(kit, MS);
            domt_served_send_text(peer, texts[t] + at);
            domt_served_expect_text(kit, peer, DOMT_SERVED_OK("4", "now\n"));
            domt_served_send_text(peer, texts[t]);
            domt_served_expect_text(kit, peer, DOMT_SERVED_OK("4", "now\n"));
            domt_served_send_text(peer, "GET /up HTTP/1.1\r\nHost: a\r\n"
                                        "Connection: upgrade\r\nUpgrade: lines\r\n\r\n");
            domt_served_advance_kit(kit, MS);
            domus_peer_close(peer);
        }
    }
    domt_served_end_kit(kit);
}

/* The beginning of the preface is not read as a request, and gets no answer. */
DOMT_TEST(a_part_of_the_preface_is_waited_for)
{
    domus_testkit *kit = domt_served_start_kit(NULL, &domt_h2_by_whole, 1);
    domus_peer *peer = domt_served_connect_peer(kit);

    domt_served_send_text(peer, "PRI * HTTP/2.0\r\n\r\nSM\r\n");
    domt_served_advance_kit(kit, MS);
    domus_peer_finish(peer);
    ck_assert_int_eq(domus_peer_expect_end(peer, 10 * DOMT_SERVED_S), 0);
    domt_served_end_kit(kit);
}

static void begin_client_of_streams(void)
{
    domt_h2_begin_nghttp2_client(&h2, domt_served_start_kit(NULL, &domt_h2_by_streams, 1));
}

/* Read the bytes that have come while the system was stopping. */
static void read_bytes_after_stop(void)
{
    size_t size;
    const char *got = domus_peer_got(h2.peer, &size);

    ck_assert_int_eq(nghttp2_session_mem_recv(h2.session, (const uint8_t *)got, size),
                     (ssize_t)size);
}

DOMT_TEST(streams_under_way_are_answered)
{
    int32_t ids[3];

    begin_client_of_streams();
    ids[0] = domt_h2_begin_request(&h2, "GET", "/sleep/200", 0, NULL);
    ids[1] = domt_h2_begin_request(&h2, "GET", "/sleep/900", 0, NULL);
    ids[2] = domt_h2_begin_request(&h2, "GET", "/give/20000", 0, NULL);
    domt_h2_send_output_and_advance(&h2, 100 * MS);
    ck_assert_int_eq(domus_testkit_stop(h2.kit), 0);
    read_bytes_after_stop();
    domt_h2_expect_answer(&h2, ids[0], 200, "slept\n");
    domt_h2_expect_answer(&h2, ids[1], 200, "slept\n");
    domt_h2_expect_answer(&h2, ids[2], 200, NULL);
    domt_h2_expect_goaway(&h2, NGHTTP2_NO_ERROR);
    ck_assert_uint_eq(h2.aways, 2); /* one GOAWAY announces the end, one names the last stream */
    ck_assert_int_eq(h2.last, ids[2]);
    ck_assert_int_eq(domus_peer_error(h2.peer), 0);
    domt_h2_end_client(&h2);
    domus_testkit_free(h2.kit);
}

DOMT_TEST(an_idle_connection_gets_goaway_at_the_stop)
{
    begin_client_of_streams();
    domt_h2_expect_connection_works(&h2);
    ck_assert_int_eq(domus_testkit_stop(h2.kit), 0);
    read_bytes_after_stop();
    domt_h2_expect_goaway(&h2, NGHTTP2_NO_ERROR);
    ck_assert_uint_eq(h2.aways, 1);
    domt_h2_end_client(&h2);
    domus_testkit_free(h2.kit);
}

/* Bodies are under way, and the rest of them comes after the drain has begun. */
DOMT_TEST(bodies_under_way_are_read_to_their_end_in_a_drain)
{
    static const domus_behaviour *const behaviours[] = {&domt_h2_by_whole, &domt_h2_by_streams};
    static const domus_net_faults slow = {.latency_min_ns = 100 * MS, .latency_max_ns = 100 * MS};
    static const char *const length[] = {"content-length", "150", NULL};

    for (size_t i = 0; i < 2; i++) {
        int32_t ids[3];
        domt_h2_begin_nghttp2_client(&h2, domt_served_start_kit(NULL, behaviours[i], 1));
        ids[0] = domt_h2_begin_request(&h2, "POST", "/bytes", 100, NULL);
        ids[1] = domt_h2_begin_request(&h2, "POST", "/bytes", 100, length);
        ids[2] = domt_h2_begin_request(&h2, "POST", "/bytes", 1, NULL);
        for (size_t n = 0; n < 3; n++)
            domt_h2_stream_of_id(&h2, ids[n])->holds_end = true;
        domt_h2_send_output_and_advance(&h2, 50 * MS);
        for (size_t n = 0; n < 2; n++) {
            *domt_h2_stream_of_id(&h2, ids[n]) = (domt_h2_stream){.to_send = 50};
            (void)nghttp2_session_resume_data(h2.session, ids[n]);
        }
        ck_assert_int_eq(
            nghttp2_submit_rst_stream(h2.session, NGHTTP2_FLAG_NONE, ids[2], NGHTTP2_CANCEL), 0);
        ck_assert_int_eq(domus_testkit_net_set(h2.kit, &slow), 0);
        domt_h2_send(&h2, "", 0);
        ck_assert_int_eq(domus_testkit_stop(h2.kit), 0);
        domt_served_advance_kit(h2.kit, 200 * MS);
        read_bytes_after_stop();
        domt_h2_expect_answer(&h2, ids[0], 200, "150\n");
        domt_h2_expect_answer(&h2, ids[1], 200, "150\n");
        domt_h2_expect_goaway(&h2, NGHTTP2_NO_ERROR);
        ck_assert_int_eq(h2.last, ids[2]);
        domt_h2_end_client(&h2);
        domus_testkit_free(h2.kit);
    }
}

/* A connection that is too old (channel.maxAge) ends when its streams have ended. */
DOMT_TEST(an_old_connection_ends_behind_its_streams)
{
    domus_config config;

    domt_served_init_config(&config);
    config.pace.age_max_ns = 1000 * MS;
    config.pace.age_jitter_percent = 0;
    domt_h2_begin_nghttp2_client(&h2, domt_served_start_kit(&config, &domt_h2_by_streams, 1));
    (void)domt_h2_request_and_expect_answer(&h2, "GET", "/sleep/1800", 0, NULL, 4000 * MS, 200,
                                            "slept\n");
    domt_h2_expect_goaway(&h2, NGHTTP2_NO_ERROR);
    domt_h2_end_client_and_kit(&h2);
}

/* One packet of the peer cancels a stream and begins the next one. The cancel leads to GOAWAY,
 * which names the cancelled stream as the last one; so the new stream may not be processed. */
DOMT_TEST(a_stream_behind_the_last_one_is_refused)
{
    static const char packet[] =
        "\0\0\4\3\0\0\0\0\3"
        "\0\0\0\x8" /* the frame RST_STREAM with the code CANCEL */
        "\0\0\xb\1\5\0\0\0\5"
        "\x82\x86\x04\x04/now\x01\001a"; /* the frame HEADERS with END_STREAM and END_HEADERS */
    static const char refused[] = "\0\0\4\3\0\0\0\0\5\0\0\0\7";
    static const char away[] = "\0\0\x8\7\0\0\0\0\0\0\0\0\3\0\0\0";
    domus_config config;
    size_t size;

    domt_served_init_config(&config);
    config.pace.age_max_ns = 1000 * MS;
    config.pace.age_jitter_percent = 0;
    domt_h2_begin_nghttp2_client(&h2, domt_served_start_kit(&config, &domt_h2_by_streams, 1));
    (void)domt_h2_begin_request(&h2, "GET", "/sleep/1800", 0, NULL);
    ck_assert_int_eq(domt_h2_begin_request(&h2, "GET", "/hang", 0, NULL), 3);
    domt_h2_send_output_and_advance(&h2, 1500 * MS);
    domt_h2_send(&h2, packet, sizeof packet - 1);
    domt_served_advance_kit(h2.kit, 100 * MS);
    const char *got = domus_peer_got(h2.peer, &size);
    ck_assert_ptr_nonnull(memmem(got, size, refused, sizeof refused - 1));
    ck_assert_ptr_nonnull(memmem(got, size, away, sizeof away - 1));
    ck_assert_uint_eq(domt_served_now.begun, 2);
    domt_h2_end_client_and_kit(&h2);
}

/* When the connection breaks, nothing of its streams is left behind. */
DOMT_TEST(streams_end_with_their_connection)
{
    begin_client_of_streams();
    for (unsigned i = 0; i < 5; i++)
        (void)domt_h2_begin_request(&h2, "GET", "/hang", 0, NULL);
    domt_h2_send_output_and_advance(&h2, 0);
    domus_peer_reset(h2.peer);
    domt_served_advance_kit(h2.kit, 100 * MS);
    ck_assert_uint_eq(domt_served_now.closed, 6);
    domt_h2_end_client(&h2);
    domt_served_end_kit(h2.kit);
}

DOMT_SUITE(120)
