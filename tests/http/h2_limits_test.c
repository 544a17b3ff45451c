/* The limits of a connection of HTTP/2, each at exactly its size, and bytes that are no valid
 * request. */
#include "tests/http/h2_peer.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

#define MS DOMT_SERVED_MS

static domt_h2 h2;

static void begin_client_of_small_service(void)
{
    domt_h2_begin_nghttp2_client(&h2, domt_served_start_kit(NULL, &domt_h2_by_small, 1));
}

DOMT_TEST(no_more_streams_than_the_limit_are_served_at_a_time)
{
    int32_t ids[DOMT_H2_SMALL_STREAMS + 1];

    begin_client_of_small_service();
    domt_h2_send_output_and_advance(&h2, 0);
    /* nghttp2, which is the client here, sends no more streams than the limit that it knows */
    for (size_t i = 0; i <= DOMT_H2_SMALL_STREAMS; i++)
        ids[i] = domt_h2_begin_request(&h2, "GET", "/sleep/50", 0, NULL);
    domt_h2_send_output_and_advance(&h2, 0);
    ck_assert_uint_eq(domt_served_now.begun, DOMT_H2_SMALL_STREAMS);
    domt_h2_send_output_and_advance(&h2, 200 * MS);
    for (size_t i = 0; i <= DOMT_H2_SMALL_STREAMS; i++)
        domt_h2_expect_answer(&h2, ids[i], 200, "slept\n");
    domt_h2_end_client_and_kit(&h2);
}

/* GET of http://a/now, as HPACK writes it without its table. */
static const uint8_t get_now[] = {0x82, 0x86, 0x04, 0x04, '/', 'n', 'o', 'w', 0x01, 0x01, 'a'};

static const uint8_t get_hang[] = {0x82, 0x86, 0x04, 0x05, '/',  'h',
                                   'a',  'n',  'g',  0x01, 0x01, 'a'};

/* Returns how many frames of a type the server has sent since the client last read. */
static unsigned count_received_frames_of_type(uint8_t type)
{
    size_t size;
    const uint8_t *got = (const uint8_t *)domus_peer_got(h2.peer, &size);
    unsigned count = 0;

    for (size_t at = 0; at + 9 <= size;) {
        count += got[at + 3] == type;
        at += 9 + ((size_t)got[at] << 16) + ((size_t)got[at + 1] << 8) + got[at + 2];
    }
    return count;
}

/* Streams beyond the limit are refused, whether the peer knows the limit or not, one as well as
 * many. */
DOMT_TEST(streams_beyond_the_limit_are_refused)
{
    static const unsigned beyond[] = {1, 500};

    for (size_t i = 0; i < 4; i++) {
        begin_client_of_small_service();
        if (i % 2 != 0)
            domt_h2_send_output_and_advance(&h2, 0);
        for (unsigned n = 0; n < DOMT_H2_SMALL_STREAMS + beyond[i / 2]; n++)
            domt_h2_send_frame(&h2, NGHTTP2_HEADERS,
                               NGHTTP2_FLAG_END_STREAM | NGHTTP2_FLAG_END_HEADERS,
                               1 + 2 * (int32_t)n, get_hang, sizeof get_hang);
        ck_assert_int_eq(domus_testkit_advance(h2.kit, 100 * MS), 0);
        ck_assert_uint_eq(domt_served_now.begun, DOMT_H2_SMALL_STREAMS);
        ck_assert_uint_eq(count_received_frames_of_type(NGHTTP2_RST_STREAM), beyond[i / 2]);
        ck_assert_uint_eq(count_received_frames_of_type(NGHTTP2_GOAWAY), 0);
        ck_assert(!domus_peer_has_end(h2.peer));
        domt_h2_end_client_and_kit(&h2);
    }
}

/* The server's SETTINGS contain the limits of its configuration. */
DOMT_TEST(the_limit_of_streams_is_told)
{
    begin_client_of_small_service();
    domt_h2_send_output_and_advance(&h2, 0);
    ck_assert_uint_eq(
        nghttp2_session_get_remote_settings(h2.session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS),
        DOMT_H2_SMALL_STREAMS);
    ck_assert_uint_eq(
        nghttp2_session_get_remote_settings(h2.session, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE),
        DOMT_H2_SMALL_WINDOW);
    domt_h2_end_client_and_kit(&h2);
}

/* A request that is refused before its body has come gets an answer; then a reset without an error
 * tells the peer not to send the body. */
DOMT_TEST(uploads_that_are_refused_have_their_answer)
{
    char value[DOMT_H2_SMALL_HEAD];

    begin_client_of_small_service();
    memset(value, 'v', sizeof value);
    value[sizeof value - 1] = '\0';
    int32_t id =
        domt_h2_begin_request(&h2, "POST", "/bytes", 1, (const char *const[]){"n", value, NULL});
    domt_h2_stream_of_id(&h2, id)->to_send = 0;
    domt_h2_stream_of_id(&h2, id)->holds_end = true;
    domt_h2_send_output_and_advance(&h2, 0);
    domt_h2_expect_answer(&h2, id, 431, "");
    ck_assert(!domt_h2_stream_of_id(&h2, id)->closed);
    domt_h2_send_frame(&h2, NGHTTP2_DATA, 0, id, "more", 4);
    domt_h2_send_output_and_advance(&h2, 0);
    domt_h2_expect_reset(&h2, id, NGHTTP2_NO_ERROR);
    domt_h2_expect_connection_works(&h2);
    domt_h2_end_client_and_kit(&h2);
}

DOMT_TEST(heads_of_requests_are_bounded)
{
    /* size of the other fields by the limit's rule: the four pseudo fields of a request for /now,
     * and a field with a name of one letter */
    const size_t others = 7 + 3 + 7 + 4 + 10 + 1 + 5 + 4 + 4 * 32 + 1 + 32;
    char value[DOMT_H2_SMALL_HEAD + 2];
    const char *fields[2 * DOMT_H2_SMALL_FIELDS + 3] = {NULL};

    for (size_t over = 0; over < 2; over++) {
        begin_client_of_small_service();
        memset(value, 'v', sizeof value);
        value[DOMT_H2_SMALL_HEAD - others + over] = '\0';
        (void)domt_h2_request_and_expect_answer(&h2, "GET", "/now", 0,
                                                (const char *const[]){"n", value, NULL}, 0,
                                                over != 0 ? 431 : 200, over != 0 ? "" : "now\n");
        for (size_t i = 0; i < DOMT_H2_SMALL_FIELDS + over; i++) {
            fields[2 * i] = "n";
            fields[2 * i + 1] = "v";
        }
        (void)domt_h2_request_and_expect_answer(&h2, "GET", "/now", 0, fields, 0,
                                                over != 0 ? 431 : 200, over != 0 ? "" : "now\n");
        domt_h2_expect_connection_works(&h2);
        domt_h2_end_client_and_kit(&h2);
    }
}

/* Credit follows the bytes that the handler has read: of a body that nobody reads only as much
 * comes as the window has, and a body that is read comes whole. */
DOMT_TEST(body_that_is_not_read_gets_no_more_credit)
{
    begin_client_of_small_service();
    /* lets the client read the window's size, which is 65,535 bytes by default */
    domt_h2_send_output_and_advance(&h2, 0);
    int32_t id = domt_h2_begin_request(&h2, "POST", "/hang", 100000, NULL);
    domt_h2_send_output_and_advance(&h2, 100 * MS);
    size_t left = domt_h2_stream_of_id(&h2, id)->to_send;
    ck_assert_uint_eq(left, 100000 - DOMT_H2_SMALL_WINDOW);
    int32_t read = domt_h2_begin_request(&h2, "POST", "/bytes", 100000, NULL);
    domt_h2_send_output_and_advance(&h2, 1000 * MS);
    domt_h2_expect_answer(&h2, read, 200, "100000\n");
    ck_assert_uint_eq(domt_h2_stream_of_id(&h2, id)->to_send, left);
    domt_h2_end_client_and_kit(&h2);
}

DOMT_TEST(streams_that_are_taken_back_are_counted)
{
    for (uint32_t over = 0; over < 2; over++) {
        begin_client_of_small_service();
        for (uint32_t i = 0; i < DOMT_H2_SMALL_RESETS + over; i++) {
            int32_t id = domt_h2_begin_request(&h2, "GET", "/hang", 0, NULL);
            domt_h2_send(&h2, "", 0);
            ck_assert_int_eq(nghttp2_submit_rst_stream(h2.session, 0, id, NGHTTP2_CANCEL), 0);
            domt_h2_send(&h2, "", 0);
        }
        domt_h2_send_output_and_advance(&h2, 100 * MS);
        if (over != 0)
            domt_h2_expect_goaway(&h2, NGHTTP2_ENHANCE_YOUR_CALM);
        else
            domt_h2_expect_connection_works(&h2);
        domt_h2_end_client_and_kit(&h2);
    }
}

DOMT_TEST(counts_against_floods_begin_anew_with_each_second)
{
    begin_client_of_small_service();
    for (uint32_t i = 0; i < 3 * DOMT_H2_SMALL_RESETS; i++) {
        int32_t id = domt_h2_begin_request(&h2, "GET", "/hang", 0, NULL);
        domt_h2_send_output_and_advance(&h2, 0);
        ck_assert_int_eq(nghttp2_submit_rst_stream(h2.session, 0, id, NGHTTP2_CANCEL), 0);
        domt_h2_send_output_and_advance(&h2, 400 * MS);
    }
    ck_assert_uint_eq(domt_served_now.begun, 3 * DOMT_H2_SMALL_RESETS);
    domt_h2_expect_connection_works(&h2);
    domt_h2_end_client_and_kit(&h2);
}

/* Frames that request nothing are counted. The client's own SETTINGS, and its acknowledgement of
 * the server's, have counted already. */
DOMT_TEST(frames_that_ask_for_nothing_are_counted)
{
    static const struct {
        uint8_t type, flags;
        int32_t id;
        size_t size;
        const char *bytes;
    } cases[] = {
        {NGHTTP2_PING, 0, 0, 8, "12345678"},
        {NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, 8, "12345678"},
        {NGHTTP2_SETTINGS, 0, 0, 0, NULL},
        {NGHTTP2_WINDOW_UPDATE, 0, 0, 4, "\0\0\0\1"},
        {NGHTTP2_WINDOW_UPDATE, 0, 1, 4, "\0\0\0\1"},
        {NGHTTP2_DATA, 0, 1, 0, NULL},
        {NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, 1, ""},
        {NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, 3, "\2\0"},
        {NGHTTP2_PRIORITY_UPDATE, 0, 0, 7, "\0\0\0\1u=1"},
        {NGHTTP2_PRIORITY, 0, 1, 5, "\0\0\0\0\1"},
        {77, 0, 0, 0, NULL}, /* a type of frame that HTTP/2 does not define */
        {77, 0, 1, 3, "abc"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t over = 0; over < 2; over++) {
            begin_client_of_small_service();
            int32_t id = domt_h2_begin_request(&h2, "POST", "/hang", 1, NULL);
            domt_h2_stream_of_id(&h2, id)->holds_end = true;
            domt_h2_send_output_and_advance(&h2, 0);
            for (uint32_t n = 0; n + 2 < DOMT_H2_SMALL_CONTROLS + over; n++)
                domt_h2_send_frame(&h2, cases[i].type, cases[i].flags, cases[i].id, cases[i].bytes,
                                   cases[i].size);
            domt_h2_send_output_and_advance(&h2, 100 * MS);
            ck_assert_msg(h2.is_away == (over != 0), "case %zu, over %u", i, over);
            if (over != 0)
                domt_h2_expect_goaway(&h2, NGHTTP2_ENHANCE_YOUR_CALM);
            domt_h2_end_client_and_kit(&h2);
        }
    }
}

/* A stream that has ended needs no credit; only two updates are free of charge, for the one frame
 * of its body. The client's SETTINGS and its acknowledgement were counted a second earlier. */
DOMT_TEST(updates_of_streams_that_are_over_are_counted)
{
    for (uint32_t over = 0; over < 2; over++) {
        begin_client_of_small_service();
        int32_t id =
            domt_h2_request_and_expect_answer(&h2, "GET", "/now", 0, NULL, 1100 * MS, 200, NULL);
        for (uint32_t n = 0; n < 2 + DOMT_H2_SMALL_CONTROLS + over; n++)
            domt_h2_send_frame(&h2, NGHTTP2_WINDOW_UPDATE, 0, id, "\0\0\0\1", 4);
        domt_h2_send_output_and_advance(&h2, 100 * MS);
        ck_assert_msg(h2.is_away == (over != 0), "over %u", over);
        if (over != 0)
            domt_h2_expect_goaway(&h2, NGHTTP2_ENHANCE_YOUR_CALM);
        domt_h2_end_client_and_kit(&h2);
    }
}

DOMT_TEST(window_updates_for_sent_bytes_are_no_flood)
{
    begin_client_of_small_service();
    domt_h2_send_output_and_advance(&h2, 0);
    int32_t id = domt_h2_request_and_expect_answer(&h2, "GET", "/give/1000000", 0, NULL, 100 * MS,
                                                   200, NULL);
    ck_assert_uint_eq(domt_h2_stream_of_id(&h2, id)->size, 1000000);
    domt_h2_expect_connection_works(&h2);
    domt_h2_end_client_and_kit(&h2);
}

/* A block of fields may have 8 CONTINUATION frames. All frames come in one piece, because nghttp2
 * counts each piece of a frame header as a frame. */
DOMT_TEST(blocks_of_fields_are_bounded)
{
    static const uint8_t first[] = {0, 0, sizeof get_now, NGHTTP2_HEADERS, 1, 0, 0, 0, 1};
    static const uint8_t more[] = {0, 0, 0, NGHTTP2_CONTINUATION, 0, 0, 0, 0, 1};

    for (size_t over = 0; over < 2; over++) {
        uint8_t block[200];
        size_t size = sizeof first + sizeof get_now;
        begin_client_of_small_service();
        memcpy(block, first, sizeof first);
        memcpy(block + sizeof first, get_now, sizeof get_now);
        for (size_t i = 0; i < 8 + over; i++, size += sizeof more)
            memcpy(block + size, more, sizeof more);
        block[size - 5] = NGHTTP2_FLAG_END_HEADERS;
        domt_h2_send(&h2, block, size);
        ck_assert_int_eq(domus_testkit_advance(h2.kit, 100 * MS), 0);
        ck_assert_uint_eq(domt_served_now.begun, over == 0 ? 1 : 0);
        ck_assert(domus_peer_has_end(h2.peer) == (over != 0));
        if (over != 0) {
            domt_h2_send_output_and_advance(&h2, 0);
            domt_h2_expect_goaway(&h2, NGHTTP2_ENHANCE_YOUR_CALM);
        }
        domt_h2_end_client_and_kit(&h2);
    }
}

/* The rest of a block of fields has to come within channel.headTimeout. */
DOMT_TEST(a_block_that_drips_ends_the_connection)
{
    begin_client_of_small_service();
    domt_h2_send_frame(&h2, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, get_now, sizeof get_now);
    ck_assert_int_eq(domus_testkit_advance(h2.kit, 8 * DOMT_SERVED_S), 0);
    /* the client sends nothing for 8 s, and the connection is still open */
    ck_assert(!domus_peer_has_end(h2.peer));
    ck_assert_int_eq(domus_testkit_advance(h2.kit, 4 * DOMT_SERVED_S), 0);
    ck_assert(domus_peer_has_end(h2.peer));
    ck_assert_uint_eq(domt_served_now.begun, 0);
    domt_h2_end_client_and_kit(&h2);
}

/* A request that two servers could read in two ways never reaches a handler. */
DOMT_TEST(malformed_requests_are_reset)
{
    static const struct {
        const char *path;
        const char *fields[4];
    } cases[] = {{"/now\r\nx: y", {NULL}},         {"/now", {"x", "a\r\nb: c", NULL}},
                 {"/now", {"x:", "a", NULL}},      {"/now", {"keep-alive", "1", NULL}},
                 {"/now", {"x y", "a", NULL}},     {"/now", {"connection", "close", NULL}},
                 {"/now", {"x", "a\nb", NULL}},    {"/now", {"content-length", "1", NULL}},
                 {"/now", {"host", "b", NULL}},    {"/now", {"content-length", "x", NULL}},
                 {"/now", {"te", "gzip", NULL}},   {"/now", {"proxy-connection", "close", NULL}},
                 {"/now", {":path", "/", NULL}},   {"/now", {"transfer-encoding", "chunked", NULL}},
                 {"/now", {"x", "a\001b", NULL}},  {"*", {NULL}},
                 {"/now", {":other", "/", NULL}},  {"now", {NULL}},
                 {"/now", {"upgrade", "x", NULL}}, {"/no w", {NULL}}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_client_of_small_service();
        int32_t id = domt_h2_begin_request(&h2, "GET", cases[i].path, 0, cases[i].fields);
        domt_h2_send_output_and_advance(&h2, 0);
        ck_assert_msg(domt_served_now.begun == 0, "case %zu was served", i);
        ck_assert_msg(h2.is_away || domt_h2_stream_of_id(&h2, id)->code == NGHTTP2_PROTOCOL_ERROR,
                      "case %zu", i);
        domt_h2_end_client_and_kit(&h2);
    }
}

/* nghttp2 checks the paths of the schemes http and https only. */
DOMT_TEST(paths_of_other_schemes_begin_with_a_slash)
{
    static const uint8_t fields[] = {0x82, 0x06, 1, 'x', 0x04, 3, 'n', 'o', 'w', 0x01, 1, 'a'};

    begin_client_of_small_service();
    domt_h2_send_frame(&h2, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM | NGHTTP2_FLAG_END_HEADERS, 1,
                       fields, sizeof fields);
    ck_assert_int_eq(domus_testkit_advance(h2.kit, 100 * MS), 0);
    ck_assert_uint_eq(count_received_frames_of_type(NGHTTP2_RST_STREAM), 1);
    ck_assert_uint_eq(count_received_frames_of_type(NGHTTP2_HEADERS), 0);
    ck_assert_uint_eq(domt_served_now.begun, 0);
    domt_h2_end_client_and_kit(&h2);
}

/* A body with more bytes than its Content-Length says, and one with fewer. */
DOMT_TEST(bodies_that_break_their_length_are_reset)
{
    static const char *const lengths[] = {"9", "11"};

    for (size_t i = 0; i < 2; i++) {
        begin_client_of_small_service();
        int32_t id = domt_h2_begin_request(
            &h2, "POST", "/bytes", 10, (const char *const[]){"content-length", lengths[i], NULL});
        domt_h2_send_output_and_advance(&h2, 0);
        domt_h2_expect_reset(&h2, id, NGHTTP2_PROTOCOL_ERROR);
        domt_h2_expect_connection_works(&h2);
        domt_h2_end_client_and_kit(&h2);
    }
}

/* Inner channels count as connections: if three connections are allowed, one connection can have
 * two inner channels. */
DOMT_TEST(inner_channels_count_as_connections)
{
    domus_config config;
    int32_t ids[3];

    domt_served_init_config(&config);
    config.channel.connections_max = 3;
    domt_h2_begin_nghttp2_client(&h2, domt_served_start_kit(&config, &domt_h2_by_whole, 1));
    for (size_t i = 0; i < 3; i++)
        ids[i] = domt_h2_begin_request(&h2, "GET", "/sleep/100", 0, NULL);
    domt_h2_send_output_and_advance(&h2, 300 * MS);
    domt_h2_expect_answer(&h2, ids[0], 200, "slept\n");
    domt_h2_expect_answer(&h2, ids[1], 200, "slept\n");
    domt_h2_expect_reset(&h2, ids[2], NGHTTP2_REFUSED_STREAM);
    domt_h2_expect_connection_works(&h2);
    domt_h2_end_client_and_kit(&h2);
}

/* A peer does not read one of its streams: that stream is reset after channel.sendTimeout, and the
 * other streams go on. */
DOMT_TEST(a_stream_that_stalls_is_reset)
{
    domus_config config;

    domt_served_init_config(&config);
    config.channel.send_timeout_ns = 500 * MS;
    domt_h2_begin_nghttp2_client(&h2, domt_served_start_kit(&config, &domt_h2_by_streams, 1));
    h2.keeps_window = true;
    int32_t id = domt_h2_begin_request(&h2, "GET", "/give/200000", 0, NULL);
    domt_h2_send_output_and_advance(&h2, 2000 * MS);
    domt_h2_expect_reset(&h2, id, NGHTTP2_CANCEL);
    ck_assert_uint_eq(domt_h2_stream_of_id(&h2, id)->size, 65535);
    ck_assert(!h2.is_away);
    domt_h2_end_client_and_kit(&h2);
}

DOMT_SUITE(240)
