/* The server that a test writes frame by frame, which tests/http/h2_script.h describes. */
#include "tests/http/h2_script.h"
#include "tests/support/suite.h"

#include <string.h>

#define HEAD    9u
#define PREFACE 24u

static uint32_t read_big_endian_number(const char *bytes, unsigned count)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < count; i++)
        value = value << 8 | (uint8_t)bytes[i];
    return value;
}

static void write_big_endian_number(uint8_t *to, uint32_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        to[i] = (uint8_t)(value >> 8 * (count - 1 - i));
}

void domt_h2s_begin_kit(domt_h2s *script, domt_h2c *h2c, const domus_http_client_options *options)
{
    domt_h2c_begin_kit(h2c, &domt_h2_by_whole, options);
    domt_h2s_listen_in_kit(script, h2c);
}

void domt_h2s_listen_in_kit(domt_h2s *script, const domt_h2c *h2c)
{
    *script = (domt_h2s){.kit = h2c->kit};
    ck_assert_int_eq(domus_peer_listen(h2c->kit, DOMT_H2C_SCRIPT, 0, &script->listener), 0);
}

void domt_h2s_accept_connection(domt_h2s *script)
{
    *script = (domt_h2s){.kit = script->kit, .listener = script->listener};
    ck_assert_int_eq(domus_peer_accept(script->listener, 10 * DOMT_SERVED_S, &script->peer), 0);
    domt_h2s_send_frame(script, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    domt_h2s_advance_and_read(script, 0);
    domt_h2s_send_frame(script, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
    domt_h2s_advance_and_read(script, 0);
    domt_h2s_advance_and_read(script, 0);
}

static void record_frame_of_client(domt_h2s *script, const char *head, const char *body,
                                   uint32_t size)
{
    uint8_t type = (uint8_t)head[3], flags = (uint8_t)head[4];
    int32_t id = (int32_t)read_big_endian_number(head + 5, 4);

    script->ended += type <= NGHTTP2_HEADERS && (flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (type == NGHTTP2_HEADERS && id > script->last) {
        script->asked++;
        script->last = id;
    } else if (type == NGHTTP2_DATA) {
        script->data += size;
    } else if (type == NGHTTP2_RST_STREAM) {
        script->resets++;
        script->reset_id = id;
        script->reset_code = read_big_endian_number(body, 4);
    } else if (type == NGHTTP2_GOAWAY) {
        script->is_away = true;
        script->away = read_big_endian_number(body + 4, 4);
    } else if (type == NGHTTP2_SETTINGS) {
        script->acks += flags & NGHTTP2_FLAG_ACK;
    } else if (type == NGHTTP2_PING) {
        script->pongs++;
    } else if (type == NGHTTP2_WINDOW_UPDATE && id != 0) {
        script->credit += read_big_endian_number(body, 4);
    }
}

static void read_frames_of_client(domt_h2s *script)
{
    size_t size;
    const char *got = domus_peer_got(script->peer, &size);
    size_t at = 0;

    if (!script->has_preface && size >= PREFACE) {
        ck_assert_int_eq(memcmp(got, NGHTTP2_CLIENT_MAGIC, PREFACE), 0);
        script->has_preface = true;
        at = PREFACE;
    }
    while (script->has_preface && size - at >= HEAD &&
           size - at >= HEAD + read_big_endian_number(got + at, 3)) {
        record_frame_of_client(script, got + at, got + at + HEAD,
                               read_big_endian_number(got + at, 3));
        at += HEAD + read_big_endian_number(got + at, 3);
    }
    domus_peer_take(script->peer, at);
}

void domt_h2s_advance_and_read(domt_h2s *script, uint64_t ns)
{
    domt_served_advance_kit(script->kit, ns);
    read_frames_of_client(script);
}

void domt_h2s_send_frame(domt_h2s *script, uint8_t type, uint8_t flags, int32_t id,
                         const void *bytes, size_t size)
{
    uint8_t head[HEAD] = {[3] = type, [4] = flags};

    write_big_endian_number(head, (uint32_t)size, 3);
    write_big_endian_number(head + 5, (uint32_t)id, 4);
    (void)domus_peer_send(script->peer, head, HEAD);
    if (size != 0)
        (void)domus_peer_send(script->peer, bytes, size);
}

void domt_h2s_answer_stream(domt_h2s *script, int32_t id, const char *body)
{
    domt_h2s_send_frame(script, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id, "\x88", 1);
    domt_h2s_send_frame(script, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, id, body, strlen(body));
}

void domt_h2s_answer_and_expect_at_client(domt_h2s *script, domt_h2c *h2c, int32_t id,
                                          const char *body)
{
    domt_h2s_answer_stream(script, id, body);
    domt_h2c_expect_answer(h2c, 200, body);
}

void domt_h2s_reset_stream(domt_h2s *script, int32_t id, uint32_t code)
{
    uint8_t body[4];

    write_big_endian_number(body, code, 4);
    domt_h2s_send_frame(script, NGHTTP2_RST_STREAM, 0, id, body, sizeof body);
}

void domt_h2s_send_goaway(domt_h2s *script, int32_t last, uint32_t code)
{
    uint8_t body[8];

    write_big_endian_number(body, (uint32_t)last, 4);
    write_big_endian_number(body + 4, code, 4);
    domt_h2s_send_frame(script, NGHTTP2_GOAWAY, 0, 0, body, sizeof body);
}
