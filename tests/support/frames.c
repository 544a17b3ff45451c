/* Writes and reads frames of WebSocket as the RFC defines them, without the code of the library. */
#include "tests/support/frames.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char key[4] = {(char)0xa5, 0x1c, (char)0xff, 0x07};

size_t domt_websocket_write_frame_head(bool of_client, unsigned first, uint64_t size, char *to)
{
    unsigned mask = of_client ? 0x80 : 0;
    size_t at = 0;
    size_t width = size < 126 ? 0 : size < 65536 ? 2 : 8;

    to[at++] = (char)first;
    to[at++] = (char)(mask | (width == 0 ? (unsigned)size : width == 2 ? 126u : 127u));
    for (size_t i = width; i-- > 0;)
        to[at++] = (char)(size >> (8 * i));
    if (of_client) {
        memcpy(to + at, key, 4);
        at += 4;
    }
    return at;
}

/* Write one frame of WebSocket. Returns its size in bytes. */
static size_t write_websocket_frame(bool of_client, unsigned first, const char *payload,
                                    size_t size, char *to)
{
    size_t head = domt_websocket_write_frame_head(of_client, first, size, to);

    ck_assert_uint_le(head + size, DOMT_FRAMES_ROOM);
    for (size_t i = 0; i < size; i++)
        to[head + i] = of_client ? (char)(payload[i] ^ key[i % 4]) : payload[i];
    return head + size;
}

static size_t write_bytes_of_hex_digits(const char *text, size_t size, char *to)
{
    size_t at = 0;

    for (size_t i = 1; i + 1 < size; i += 2) {
        char digits[3] = {text[i], text[i + 1], '\0'};
        to[at++] = (char)strtoul(digits, NULL, 16);
    }
    return at;
}

size_t domt_websocket_write_frames(bool of_client, const char *text, char *to)
{
    static char stars[DOMT_FRAMES_ROOM];
    size_t at = 0;

    memset(stars, '*', sizeof stars);
    while (*text != '\0') {
        size_t size = strcspn(text, " ");
        if (*text == '=') {
            at += write_bytes_of_hex_digits(text, size, to + at);
        } else {
            unsigned first = (unsigned)strtoul(text, NULL, 16);
            const char *payload = text + 3;
            size_t length = size - 3;
            char bytes[256];
            if (text[2] == '#') {
                ck_assert_uint_lt(size, sizeof bytes);
                length = write_bytes_of_hex_digits(text + 2, size - 2, bytes);
                payload = bytes;
            } else if (length != 0 && *payload == '*') {
                length = strtoul(payload + 1, NULL, 10);
                payload = stars;
            }
            at += write_websocket_frame(of_client, first, payload, length, to + at);
        }
        text += size;
        text += *text == ' ';
    }
    return at;
}

/* --- traces ----------------------------------------------------------------------------------- */

static void write_slice_as_text(domt_text *at, const char *name, domus_slice bytes)
{
    domt_text_append_format(at, bytes.size > 64 ? "%s " : "%s [", name);
    domt_text_append_slice(at, bytes);
    domt_text_append_format(at, bytes.size > 64 ? "\n" : "]\n");
}

static void write_message_as_text(domt_text *at, const domus_stage_message *message)
{
    ck_assert_int_eq(message->kind, DOMUS_STAGE_NOTICE);
    if (message->type == &domus_websocket_message_type) {
        const domus_websocket_message *made = message->payload;
        write_slice_as_text(at, made->binary ? "binary" : "text", made->bytes);
    } else if (message->type == &domus_websocket_close_type) {
        const domus_websocket_close *close = message->payload;
        domt_text_append_format(at, "close %u", close->code);
        write_slice_as_text(at, "", close->reason);
    } else {
        ck_assert_ptr_eq(message->type, &domus_websocket_pong_type);
        write_slice_as_text(at, "pong", *(const domus_slice *)message->payload);
    }
}

/* The head of a close frame has 2 bytes from a server and 6 from a client. Neither the keys of
 * these tests nor codes below 4000 contain a zero byte, so strlen() finds the end of the frame. */
static void write_answer_as_text(domt_text *at, const char *sent)
{
    const unsigned char *byte = (const unsigned char *)sent;

    if (sent == NULL) {
        domt_text_append_format(at, " reset");
    } else if (*sent == '\0') {
        domt_text_append_format(at, " nothing");
    } else if ((byte[1] & 0x80) == 0) {
        ck_assert_uint_eq(byte[0], 0x88);
        ck_assert_uint_eq(byte[1], 2);
        domt_text_append_format(at, " close %u", byte[2] << 8 | byte[3]);
    } else {
        ck_assert_uint_eq(byte[0], 0x88);
        ck_assert_uint_eq(byte[1], 0x82);
        domt_text_append_format(at, " close %u", (byte[6] ^ byte[2]) << 8 | (byte[7] ^ byte[3]));
    }
}

static domt_codec_trace codec_trace_of_websocket(const domus_websocket_options *options)
{
    return (domt_codec_trace){.stage = &domus_websocket_stage,
                              .options = options,
                              .print = write_message_as_text,
                              .print_sent = write_answer_as_text};
}

static bool is_peer_client(const domus_websocket_options *options)
{
    return options == NULL || options->role == DOMUS_ROLE_SERVER;
}

const char *domt_decode_frames_to_text(const domus_websocket_options *options, const char *frames,
                                       size_t cut, size_t step)
{
    static char bytes[DOMT_FRAMES_ROOM];
    domt_codec_trace trace = codec_trace_of_websocket(options);
    size_t size = domt_websocket_write_frames(is_peer_client(options), frames, bytes);

    return domt_codec_decode_to_text(&trace, bytes, size, cut, step);
}

void domt_check_decoded_frames(const domus_websocket_options *options, const char *frames,
                               const char *expected)
{
    static char bytes[DOMT_FRAMES_ROOM];
    domt_codec_trace trace = codec_trace_of_websocket(options);
    size_t size = domt_websocket_write_frames(is_peer_client(options), frames, bytes);

    domt_codec_check_text(&trace, bytes, size, expected);
}

/* --- output ----------------------------------------------------------------------------------- */

/* Write one frame of a stage's output as text. Returns the frame's size in bytes. */
static size_t write_websocket_frame_as_text(domt_text *at, const unsigned char *bytes, size_t size,
                                            bool of_client)
{
    size_t head = 2;
    uint64_t length = bytes[1] & 0x7f;

    ck_assert_uint_ge(size, 2);
    ck_assert_int_eq((bytes[1] & 0x80) != 0, of_client);
    for (size_t width = length < 126 ? 0 : length == 126 ? 2 : 8; head < 2 + width; head++)
        length = (head == 2 ? 0 : length << 8) | bytes[head];
    const unsigned char *mask = bytes + head;
    head += of_client ? 4 : 0;
    ck_assert_uint_ge(size - head, length);
    domt_text_append_format(at, "%02x:", bytes[0]);
    for (uint64_t i = 0; i < length && i < 64; i++) {
        char byte = (char)(bytes[head + i] ^ (of_client ? mask[i % 4] : 0));
        domt_text_append_bytes(at, &byte, 1);
    }
    domt_text_append_format(at, length > 64 ? "..%llu " : " ", (unsigned long long)length);
    return head + (size_t)length;
}

const char *domt_take_sent_frames_as_text(domt_codec *codec, bool of_client)
{
    static char room[DOMT_TEXT_ROOM];
    domt_text at = {room, sizeof room};
    size_t size;
    const char *output = domus_stage_kit_output(codec->kit, &size);

    room[0] = '\0';
    for (size_t done = 0; done < size;)
        done += write_websocket_frame_as_text(&at, (const unsigned char *)output + done,
                                              size - done, of_client);
    domus_stage_kit_clear(codec->kit);
    return room;
}
