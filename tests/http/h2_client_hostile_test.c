/* Servers that send what the protocol forbids, or too much of what it allows: the stream or the
 * connection ends with the right code, each request gets one answer, and other streams go on. */
#include "tests/http/h2_script.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS DOMT_SERVED_MS

/* Blocks of HPACK: statuses from the static table, and a field without index. */
#define S204         "\x89"
#define STATUS(text) "\x08\x03" text
#define LENGTH(text) "\x0f\x0d\x01" text
#define FIELD(n, v)  "\x00" n v

static domt_h2c h2c;
static domt_h2s script;

static void begin_script_with_client_of_small_limits(void)
{
    domt_h2s_begin_kit(
        &script, &h2c,
        &(domus_http_client_options){.connection = &domt_h2c_small, .connections_max = 1});
}

static void send_request(domus_http_method method)
{
    domt_h2c_send_request(&h2c, method, DOMT_H2S_URL("/a"), "", 0);
}

/* Begin with one request that the client never sends again, such as a POST. */
static void set_up_with_request(domus_http_method method)
{
    begin_script_with_client_of_small_limits();
    send_request(method);
    domt_h2s_accept_connection(&script);
    /* wait until the client's counts of frames in the last second are over */
    domt_h2s_advance_and_read(&script, 1000 * MS);
    ck_assert_uint_eq(script.asked, 1);
}

/* Check that the connection still works: a further request on it is answered. */
static void check_connection_still_works(void)
{
    send_request(DOMUS_HTTP_POST);
    domt_h2s_advance_and_read(&script, 0);
    domt_h2s_answer_and_expect_at_client(&script, &h2c, script.last, "well");
    ck_assert(!script.is_away);
}

static void expect_goaway(uint32_t code)
{
    domt_h2s_advance_and_read(&script, 10 * MS);
    ck_assert(script.is_away);
    ck_assert_uint_eq(script.away, code);
    ck_assert(domus_peer_has_end(script.peer) || domus_peer_error(script.peer) != 0);
}

typedef struct frame {
    uint8_t type, flags;
    const char *bytes;
    size_t size;
} frame;

/* A wrong answer resets only its own stream, and the other streams go on. */
DOMT_TEST(a_wrong_answer_resets_its_stream_alone)
{
    static const struct {
        domus_http_method method;
        frame frames[3];
    } cases[] = {
        {DOMUS_HTTP_POST, {{HEADERS, WHOLE, BYTES(S200 LENGTH("1"))}, {DATA, LAST, BYTES("ab")}}},
        {DOMUS_HTTP_POST, {{HEADERS, WHOLE, BYTES(S200 LENGTH("3"))}, {DATA, LAST, BYTES("ab")}}},
        {DOMUS_HTTP_POST, {{HEADERS, WHOLE | LAST, BYTES("\x0f\x0d\x00")}}},
        {DOMUS_HTTP_POST, {{HEADERS, WHOLE, BYTES(S204)}, {DATA, LAST, BYTES("ab")}}},
        {DOMUS_HTTP_POST, {{HEADERS, WHOLE | LAST, BYTES(STATUS("101"))}}},
        {DOMUS_HTTP_POST, {{HEADERS, WHOLE | LAST, BYTES(STATUS("999"))}}},
        {DOMUS_HTTP_POST, {{HEADERS, WHOLE | LAST, BYTES(STATUS("000"))}}},
        {DOMUS_HTTP_POST, {{HEADERS, WHOLE | LAST, BYTES(S200 S200)}}},
        {DOMUS_HTTP_POST, {{HEADERS, WHOLE | LAST, BYTES("\x83")}}},
        {DOMUS_HTTP_POST,
         {{HEADERS, WHOLE | LAST, BYTES(S200 FIELD("\012connection", "\005close"))}}},
        {DOMUS_HTTP_POST, {{HEADERS, WHOLE | LAST, BYTES(S200 FIELD("\007upgrade", "\001x"))}}},
        {DOMUS_HTTP_POST,
         {{HEADERS, WHOLE, BYTES(S200 FIELD("\021transfer-encoding", "\007chunked"))}}},
        {DOMUS_HTTP_HEAD, {{HEADERS, WHOLE, BYTES(S200)}, {DATA, LAST, BYTES("ab")}}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_up_with_request(cases[i].method);
        for (const frame *at = cases[i].frames; at->bytes != NULL; at++)
            domt_h2s_send_frame(&script, at->type, at->flags, 1, at->bytes, at->size);
        domt_h2s_advance_and_read(&script, 0);
        /* the client sends a request that may be repeated once more */
        if (cases[i].method == DOMUS_HTTP_HEAD) {
            ck_assert_int_eq(script.last, 3);
            domt_h2s_send_frame(&script, HEADERS, WHOLE | LAST, 3, BYTES(S200));
            domt_h2c_expect_answer(&h2c, 200, "");
        } else {
            domt_h2c_expect_error(&h2c, -EPIPE);
        }
        ck_assert_msg(script.reset_code == NGHTTP2_PROTOCOL_ERROR && script.reset_id == 1,
                      "%zu: %u", i, script.reset_code);
        check_connection_still_works();
        domt_h2c_end_kit(&h2c);
    }
}

/* A head of the largest size, or with the largest number of fields, is accepted; one byte or field
 * more is refused. */
DOMT_TEST(heads_of_answers_are_bounded_by_size_and_fields)
{
    static const struct {
        size_t value; /* number of bytes in the value of the first field */
        unsigned fields;
        bool holds;
    } cases[] = {
        {DOMT_H2C_SMALL_HEAD - 42 - 33, 1, true},
        {DOMT_H2C_SMALL_HEAD - 42 - 33 + 1, 1, false},
        {1, DOMT_H2C_SMALL_FIELDS, true},
        {1, DOMT_H2C_SMALL_FIELDS + 1, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t head[2048] = {0x88, 0x00, 1, 'a', 0x7f};
        size_t size = 5, value = cases[i].value;
        set_up_with_request(DOMUS_HTTP_POST);
        if (value > 127) {
            head[size++] = (uint8_t)(((value - 127) & 0x7f) | 0x80);
            head[size++] = (uint8_t)((value - 127) >> 7);
        } else {
            head[4] = (uint8_t)value;
        }
        memset(head + size, 'x', value);
        size += value;
        for (unsigned f = 1; f < cases[i].fields; f++) {
            memcpy(head + size, "\000\001b\001c", 5);
            size += 5;
        }
        domt_h2s_send_frame(&script, HEADERS, WHOLE | LAST, 1, head, size);
        domt_h2s_advance_and_read(&script, 0);
        if (cases[i].holds)
            domt_h2c_expect_answer(&h2c, 200, "");
        else
            domt_h2c_expect_error(&h2c, -EPIPE);
        ck_assert_uint_eq(script.resets, !cases[i].holds);
        check_connection_still_works();
        domt_h2c_end_kit(&h2c);
    }
}

/* The server sends more bytes in one DATA frame than the client has given credit for. */
DOMT_TEST(more_bytes_than_the_window_of_a_stream_are_refused)
{
    static char bytes[DOMT_H2C_SMALL_WINDOW + 1];

    for (unsigned more = 0; more < 2; more++) {
        set_up_with_request(DOMUS_HTTP_POST);
        domt_h2s_send_frame(&script, HEADERS, WHOLE, 1, BYTES(S200));
        domt_h2s_send_frame(&script, DATA, LAST, 1, bytes, DOMT_H2C_SMALL_WINDOW + more);
        domt_h2s_advance_and_read(&script, 0);
        if (more == 0) {
            ck_assert_uint_eq(domt_h2c_expect_answer(&h2c, 200, NULL), DOMT_H2C_SMALL_WINDOW);
            check_connection_still_works();
        } else {
            domt_h2c_expect_error(&h2c, -EPIPE);
            domt_h2s_advance_and_read(&script, 0);
            ck_assert(script.reset_code == NGHTTP2_FLOW_CONTROL_ERROR ||
                      script.away == NGHTTP2_FLOW_CONTROL_ERROR);
        }
        domt_h2c_end_kit(&h2c);
    }
}

static void send_empty_settings(void)
{
    domt_h2s_send_frame(&script, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

static void send_ping(void)
{
    domt_h2s_send_frame(&script, NGHTTP2_PING, 0, 0, "12345678", 8);
}

static void send_priority(void)
{
    domt_h2s_send_frame(&script, NGHTTP2_PRIORITY, 0, 1, "\0\0\0\0\1", 5);
}

static void send_interim_answer(void)
{
    domt_h2s_send_frame(&script, HEADERS, WHOLE, 1, BYTES(STATUS("103")));
}

static void send_empty_data(void)
{
    domt_h2s_send_frame(&script, DATA, 0, 1, NULL, 0);
}

static void send_window_update(void)
{
    domt_h2s_send_frame(&script, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4);
}

static void send_padded_data(void)
{
    domt_h2s_send_frame(&script, DATA, NGHTTP2_FLAG_PADDED, 1, "\2\0\0", 3);
}

static void send_reset_of_ended_stream(void)
{
    domt_h2s_reset_stream(&script, 1, NGHTTP2_CANCEL);
}

static void send_update_of_ended_stream(void)
{
    domt_h2s_send_frame(&script, NGHTTP2_WINDOW_UPDATE, 0, 1, "\0\0\0\1", 4);
}

static void send_head_of_ended_stream(void)
{
    domt_h2s_send_frame(&script, HEADERS, WHOLE, 1, BYTES(S200));
}

static void send_frame_of_unknown_type(void)
{
    domt_h2s_send_frame(&script, 77, 0, 1, NULL, 0);
}

/* As many frames within one second as are allowed do no harm, and one frame more ends the
 * connection. */
DOMT_TEST(floods_of_a_server_end_the_connection)
{
    static const struct {
        void (*send)(void);
        /* before the flood, the server answers the request; or it sends the head of the answer
         * only */
        bool is_answered;
        bool has_head;
    } cases[] = {
        {.send = send_empty_settings},
        {.send = send_ping},
        {.send = send_priority},
        {.send = send_interim_answer},
        {.send = send_window_update},
        {.send = send_empty_data, .has_head = true},
        {.send = send_padded_data, .has_head = true},
        {.send = send_reset_of_ended_stream, .is_answered = true},
        {.send = send_update_of_ended_stream, .is_answered = true},
        {.send = send_head_of_ended_stream, .is_answered = true},
        {.send = send_empty_data, .is_answered = true},
        {.send = send_padded_data, .is_answered = true},
        {.send = send_frame_of_unknown_type},
        {.send = send_frame_of_unknown_type, .is_answered = true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_up_with_request(DOMUS_HTTP_POST);
        if (cases[i].is_answered) {
            domt_h2s_answer_and_expect_at_client(&script, &h2c, 1, "ab");
        }
        if (cases[i].has_head)
            domt_h2s_send_frame(&script, HEADERS, WHOLE, 1, BYTES(S200));
        domt_h2s_advance_and_read(&script, 1000 * MS);
        for (unsigned n = 0; n < DOMT_H2C_SMALL_CONTROLS; n++)
            cases[i].send();
        domt_h2s_advance_and_read(&script, 0);
        ck_assert_msg(!script.is_away, "%zu", i);
        cases[i].send();
        domt_h2s_advance_and_read(&script, 10 * MS);
        ck_assert_msg(script.is_away, "%zu", i);
        expect_goaway(NGHTTP2_ENHANCE_YOUR_CALM);
        if (!cases[i].is_answered)
            domt_h2c_expect_error(&h2c, -EPIPE);
        domt_h2c_end_kit(&h2c);
    }
}

/* Frames that a server may never send end the connection. */
DOMT_TEST(wrong_frames_of_a_server_end_the_connection)
{
    static const struct {
        uint8_t type, flags;
        int32_t id;
        const char *bytes;
        size_t size;
        uint32_t code;
    } cases[] = {
        {NGHTTP2_PUSH_PROMISE, WHOLE, 1, BYTES("\0\0\0\2\x82"), NGHTTP2_PROTOCOL_ERROR},
        {HEADERS, WHOLE, 99, BYTES(S200), NGHTTP2_PROTOCOL_ERROR},
        {HEADERS, WHOLE, 2, BYTES(S200), NGHTTP2_PROTOCOL_ERROR},
        {HEADERS, WHOLE, 0, BYTES(S200), NGHTTP2_PROTOCOL_ERROR},
        {DATA, 0, 99, BYTES("ab"), NGHTTP2_PROTOCOL_ERROR},
        /* DATA comes before the head of the answer */
        {DATA, LAST, 1, BYTES("ab"), NGHTTP2_PROTOCOL_ERROR},
        {HEADERS, WHOLE, 1, BYTES("\xff\xff\xff\xff\xff"), NGHTTP2_COMPRESSION_ERROR},
        {NGHTTP2_SETTINGS, 0, 0, BYTES("\0"), NGHTTP2_FRAME_SIZE_ERROR},
        {NGHTTP2_SETTINGS, 0, 0, BYTES("\0\2\0\0\0\1"), NGHTTP2_PROTOCOL_ERROR},
        {NGHTTP2_WINDOW_UPDATE, 0, 0, BYTES("\x7f\xff\xff\xff"), NGHTTP2_FLOW_CONTROL_ERROR},
        {NGHTTP2_CONTINUATION, WHOLE, 1, BYTES(S200), NGHTTP2_PROTOCOL_ERROR},
        {NGHTTP2_RST_STREAM, 0, 99, BYTES("\0\0\0\0"), NGHTTP2_PROTOCOL_ERROR},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_up_with_request(DOMUS_HTTP_POST);
        domt_h2s_send_frame(&script, cases[i].type, cases[i].flags, cases[i].id, cases[i].bytes,
                            cases[i].size);
        domt_h2s_advance_and_read(&script, 10 * MS);
        ck_assert_msg(script.is_away && script.away == cases[i].code, "%zu: %u", i, script.away);
        domt_h2c_expect_error(&h2c, -EPIPE);
        domt_h2c_end_kit(&h2c);
    }
}

/* Bytes that were under way when the client reset their stream do not count as a flood. */
DOMT_TEST(late_bytes_of_a_reset_stream_are_no_flood)
{
    set_up_with_request(DOMUS_HTTP_POST);
    domt_h2s_answer_and_expect_at_client(&script, &h2c, 1, "ab");
    for (unsigned n = 0; n < 10 * DOMT_H2C_SMALL_CONTROLS; n++)
        domt_h2s_send_frame(&script, DATA, 0, 1, "ab", 2);
    domt_h2s_advance_and_read(&script, 0);
    check_connection_still_works();
    domt_h2c_end_kit(&h2c);
}

/* A head may have eight CONTINUATION frames, and not one more. */
DOMT_TEST(the_frames_of_a_head_are_bounded)
{
    for (unsigned more = 0; more < 2; more++) {
        set_up_with_request(DOMUS_HTTP_POST);
        domt_h2s_send_frame(&script, HEADERS, LAST, 1, BYTES(S200));
        for (unsigned i = 0; i < 7 + more; i++)
            domt_h2s_send_frame(&script, NGHTTP2_CONTINUATION, 0, 1, NULL, 0);
        domt_h2s_send_frame(&script, NGHTTP2_CONTINUATION, WHOLE, 1, NULL, 0);
        domt_h2s_advance_and_read(&script, 0);
        if (more == 0) {
            domt_h2c_expect_answer(&h2c, 200, "");
            check_connection_still_works();
        } else {
            expect_goaway(NGHTTP2_ENHANCE_YOUR_CALM);
            domt_h2c_expect_error(&h2c, -EPIPE);
        }
        domt_h2c_end_kit(&h2c);
    }
}

DOMT_TEST(a_head_without_an_end_ends_the_connection)
{
    set_up_with_request(DOMUS_HTTP_POST);
    domt_h2s_send_frame(&script, HEADERS, 0, 1, BYTES(S200));
    for (unsigned i = 0; i < 30; i++)
        domt_h2s_send_frame(&script, NGHTTP2_CONTINUATION, 0, 1, BYTES(FIELD("\001a", "\001b")));
    domt_h2s_advance_and_read(&script, 10 * MS);
    domt_h2c_expect_error(&h2c, -EPIPE);
    domt_h2c_end_kit(&h2c);
    /* if the server sends no more frames, the request's time-out ends the connection */
    set_up_with_request(DOMUS_HTTP_POST);
    domt_h2s_send_frame(&script, HEADERS, 0, 1, BYTES(S200));
    domt_h2s_advance_and_read(&script, 9000 * MS);
    ck_assert(!domus_peer_has_end(script.peer));
    domt_h2s_advance_and_read(&script, 3000 * MS);
    domt_h2c_expect_error(&h2c, -EPIPE);
    domt_h2c_end_kit(&h2c);
}

/* A server that does not speak HTTP/2 gets no request. */
DOMT_TEST(a_server_of_another_protocol_gets_no_request)
{
    static const struct {
        const char *text;
        int error;
    } cases[] = {{"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", -EPROTO},
                 {"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n", -EPROTO},
                 {NULL, -ENOTCONN}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_script_with_client_of_small_limits();
        send_request(DOMUS_HTTP_POST);
        ck_assert_int_eq(domus_peer_accept(script.listener, DOMT_SERVED_S, &script.peer), 0);
        if (cases[i].text != NULL)
            ck_assert_int_eq(domus_peer_send(script.peer, cases[i].text, strlen(cases[i].text)), 0);
        else
            domus_peer_finish(script.peer);
        domt_h2s_advance_and_read(&script, 0);
        domus_peer_close(script.peer);
        domt_h2c_expect_error(&h2c, cases[i].error);
        ck_assert_uint_eq(script.asked, 0);
        domt_h2c_end_kit(&h2c);
    }
}

DOMT_SUITE(120)
