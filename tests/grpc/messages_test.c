/* Messages that a service of gRPC receives: in pieces of any size, up to their limits, compressed,
 * and wrong; and how much of a message is decompressed in a turn. */
#include "protocols/grpc/gzip.h"
#include "protocols/grpc/reader.h"
#include "tests/grpc/called.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Messages that a service of gRPC receives: in pieces of any size, up to their limits, compressed,
 * and wrong; and calls that end before their handlers do. */

static domt_caller caller;

/* Compress a text with gzip. Returns the compressed size. */
static size_t compress_text_by_gzip(const char *text, size_t size, uint8_t *to, size_t room)
{
    z_stream zlib = {.next_in = (Bytef *)(uintptr_t)text,
                     .avail_in = (uInt)size,
                     .next_out = to,
                     .avail_out = (uInt)room};

    ck_assert_int_eq(deflateInit2(&zlib, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    ck_assert_int_eq(deflateEnd(&zlib), Z_OK);
    return zlib.total_out;
}

DOMT_TEST(messages_are_read_in_pieces_of_any_size)
{
    static const char body[] = "\0\0\0\0\5hello\0\0\0\0\0\0\0\0\0\1a\0\0\0\0\7goodbye";
    const size_t size = sizeof body - 1;

    for (size_t step = 0; step <= size; step++) {
        domt_called_start_service(&caller);
        int32_t up = domt_called_begin_call(&caller, "/t.T/Up", body, size, NULL);
        int32_t both = domt_called_begin_call(&caller, "/t.T/Both", body, size, NULL);
        int32_t one = domt_called_begin_call(&caller, "/t.T/Unary", body, 10, NULL);
        domt_called_find_call(&caller, up)->step = step;
        domt_called_find_call(&caller, both)->step = step;
        domt_called_find_call(&caller, one)->step = step;
        domt_called_advance_time(&caller, DOMT_CALLED_MS);
        const domt_call *call = domt_called_find_call(&caller, up);
        ck_assert(call->status == 0 && call->size == 9 && call->ended);
        ck_assert_int_eq(memcmp(call->bytes, "\0\0\0\0\0044 13", 9), 0);
        call = domt_called_find_call(&caller, both);
        ck_assert(call->status == 0 && call->size == size && call->ended);
        ck_assert_int_eq(memcmp(call->bytes, body, size), 0);
        call = domt_called_find_call(&caller, one);
        ck_assert(call->status == 0 && call->size == 10);
        domt_called_end_service(&caller);
    }
}

/* Calls are handled by actors of other threads, and the client cancels some of them there. */
DOMT_TEST(calls_are_passed_on_to_other_threads)
{
    static const char body[] = "\0\0\0\0\5hello\0\0\0\0\1a";
    int32_t ids[6];

    domt_called_start_service(&caller);
    for (size_t i = 0; i < 6; i++) {
        ids[i] = domt_called_begin_call(&caller, "/t.T/Far", body, sizeof body - 1, NULL);
        domt_called_find_call(&caller, ids[i])->step = i + 1;
        domt_called_find_call(&caller, ids[i])->holds_end = i % 2 == 1;
        domt_called_advance_time(&caller, DOMT_CALLED_MS);
    }
    ck_assert_uint_eq(domt_called_now.begun, 6);
    for (size_t i = 0; i < 6; i++) {
        const domt_call *call = domt_called_find_call(&caller, ids[i]);
        ck_assert(call->size == sizeof body - 1 && memcmp(call->bytes, body, call->size) == 0);
        ck_assert_int_eq(call->status, i % 2 == 1 ? -1 : 0);
        if (i % 2 == 1)
            ck_assert_int_eq(nghttp2_submit_rst_stream(caller.session, NGHTTP2_FLAG_NONE, ids[i],
                                                       NGHTTP2_CANCEL),
                             0);
    }
    domt_called_advance_time(&caller, DOMT_CALLED_MS);
    ck_assert_uint_eq(domt_called_now.cancelled, 3);
    domt_called_end_service(&caller);
}

/* The stage of HTTP gives a short body of a known length as a whole, and not in pieces. */
DOMT_TEST(bodies_of_known_length_come_whole)
{
    static const char *const fields[] = {"content-length", "6", NULL};

    domt_called_start_service(&caller);
    domt_called_make_unary_call_and_check(&caller, "/t.T/Unary", "\0\0\0\0\1a", 6, fields, 0, "a");
    domt_called_make_unary_call_and_check(&caller, "/t.T/Up", "\0\0\0\0\1a", 6, fields, 0, "1 1");
    domt_called_end_service(&caller);
}

DOMT_TEST(malformed_messages_end_their_calls)
{
    static const struct {
        const char *path, *bytes;
        size_t size;
        int status;
    } cases[] = {
        /* This unary call has an empty body, without a message. */
        {"/t.T/Unary", "", 0, DOMUS_GRPC_INTERNAL},
        /* the body of this unary call has two messages */
        {"/t.T/Unary", "\0\0\0\0\1a\0\0\0\0\1b", 12, DOMUS_GRPC_INTERNAL},
        {"/t.T/Unary", "\0\0\0\0\1a\0", 7, DOMUS_GRPC_INTERNAL},
        {"/t.T/Unary", "\0\0\0\0", 4, DOMUS_GRPC_INTERNAL},
        {"/t.T/Unary", "\0\0\0\0\2a", 6, DOMUS_GRPC_INTERNAL},
        {"/t.T/Unary", "\2\0\0\0\1a", 6, DOMUS_GRPC_INTERNAL},
        /* The prefix says that the message is compressed, but the call names no encoding. */
        {"/t.T/Unary", "\1\0\0\0\1a", 6, DOMUS_GRPC_INTERNAL},
        {"/t.T/Unary", "\0\xff\xff\xff\xff", 5, DOMUS_GRPC_RESOURCE_EXHAUSTED},
        {"/t.T/Up", "", 0, DOMUS_GRPC_OK},
        {"/t.T/Up", "\0\0\0\0\1a\0", 7, DOMUS_GRPC_INTERNAL},
        {"/t.T/Up", "\0\0\0\0\1a\0\0\0\0\2b", 12, DOMUS_GRPC_INTERNAL},
        {"/t.T/Up", "\0\0\0\0\1a\3\0\0\0\0", 11, DOMUS_GRPC_INTERNAL},
        {"/t.T/Both", "\0\0\0\0\1a\0\1\0\0\0", 11, DOMUS_GRPC_RESOURCE_EXHAUSTED},
    };

    domt_called_start_service(&caller);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        domt_called_make_unary_call_and_check(&caller, cases[i].path, cases[i].bytes, cases[i].size,
                                              NULL, cases[i].status, NULL);
    domt_called_end_service(&caller);
}

DOMT_TEST(message_size_is_limited)
{
    char text[DOMT_CALLED_MAX + 1];
    domt_frame frame;

    memset(text, 'a', sizeof text);
    domt_called_start_service(&caller);
    frame = domt_called_make_frame(text, DOMT_CALLED_MAX, false);
    const domt_call *call = domt_called_make_unary_call_and_check(
        &caller, "/t.T/Unary", frame.bytes, frame.size, NULL, 0, NULL);
    ck_assert_uint_eq(call->size, frame.size);
    frame = domt_called_make_frame(text, DOMT_CALLED_MAX + 1, false);
    domt_called_make_unary_call_and_check(&caller, "/t.T/Unary", frame.bytes, frame.size, NULL,
                                          DOMUS_GRPC_RESOURCE_EXHAUSTED, NULL);
    domt_called_end_service(&caller);
}

DOMT_TEST(decompressed_message_size_is_limited)
{
    static const char *const gzip[] = {"grpc-encoding", "gzip", NULL};
    static char text[1 << 20];
    uint8_t packed[3000];
    domt_frame frame;

    memset(text, 'a', sizeof text);
    domt_called_start_service(&caller);
    for (size_t more = 0; more < 2; more++) {
        size_t size = compress_text_by_gzip(text, DOMT_CALLED_MAX + more, packed, sizeof packed);
        frame = domt_called_make_frame((const char *)packed, size, true);
        const domt_call *call = domt_called_make_unary_call_and_check(
            &caller, "/t.T/Unary", frame.bytes, frame.size, gzip,
            more != 0 ? DOMUS_GRPC_RESOURCE_EXHAUSTED : DOMUS_GRPC_OK, NULL);
        ck_assert_uint_eq(call->size, more != 0 ? 0 : DOMT_CALLED_MAX + 5);
    }
    size_t size = compress_text_by_gzip(text, 900000, packed, sizeof packed);
    frame = domt_called_make_frame((const char *)packed, size, true);
    domt_called_make_unary_call_and_check(&caller, "/t.T/Unary", frame.bytes, frame.size, gzip,
                                          DOMUS_GRPC_RESOURCE_EXHAUSTED, NULL);
    size = compress_text_by_gzip("hello", 5, packed, sizeof packed);
    /* The compressed message is cut off, whole, or has one byte more. */
    for (size_t part = 0; part <= size + 1; part++) {
        packed[size] = 0;
        frame = domt_called_make_frame((const char *)packed, part, true);
        domt_called_make_unary_call_and_check(&caller, "/t.T/Unary", frame.bytes, frame.size, gzip,
                                              part == size ? DOMUS_GRPC_OK : DOMUS_GRPC_INTERNAL,
                                              part == size ? "hello" : NULL);
    }
    frame = domt_called_make_frame((const char *)packed, size, true);
    /* The compressed message fails, because the call does not name gzip as its encoding. */
    domt_called_make_unary_call_and_check(&caller, "/t.T/Unary", frame.bytes, frame.size, NULL,
                                          DOMUS_GRPC_INTERNAL, NULL);
    frame.bytes[0] = 2; /* the prefix has a flag that gRPC does not define */
    domt_called_make_unary_call_and_check(&caller, "/t.T/Unary", frame.bytes, frame.size, gzip,
                                          DOMUS_GRPC_INTERNAL, NULL);
    frame = domt_called_make_frame("plain", 5, false);
    domt_called_make_unary_call_and_check(&caller, "/t.T/Unary", frame.bytes, frame.size, gzip, 0,
                                          "plain");
    domt_called_end_service(&caller);
}

/* The service takes several turns to read a piece with many small compressed messages, which become
 * large. */
DOMT_TEST(many_compressed_messages_are_all_read)
{
    static const char *const gzip[] = {"grpc-encoding", "gzip", NULL};
    static uint8_t body[100000];
    char text[DOMT_CALLED_MAX];
    uint8_t packed[200];
    size_t used = 0;
    uint32_t count = 0;

    memset(text, 'a', sizeof text);
    size_t size = compress_text_by_gzip(text, sizeof text, packed, sizeof packed);
    domt_frame frame = domt_called_make_frame((const char *)packed, size, true);
    for (; used + frame.size < sizeof body; count++, used += frame.size)
        memcpy(body + used, frame.bytes, frame.size);
    ck_assert_uint_gt(count * sizeof text, 2u << 20);
    domt_called_start_service(&caller);
    int32_t id = domt_called_begin_call(&caller, "/t.T/Up", body, used, gzip);
    domt_called_advance_time(&caller, 0);
    /* Between the turns that read the piece other actors run, so the call has no answer yet. */
    ck_assert_int_eq(domt_called_find_call(&caller, id)->status, -1);
    for (size_t i = 0; i < 10; i++)
        domt_called_advance_time(&caller, 10 * DOMT_CALLED_MS);
    const domt_call *call = domt_called_find_call(&caller, id);
    snprintf(text, sizeof text, "%u %u", count, count * DOMT_CALLED_MAX);
    ck_assert_int_eq(call->status, 0);
    ck_assert_int_eq(memcmp(call->bytes + 5, text, strlen(text)), 0);
    domt_called_end_service(&caller);
}

DOMT_TEST(answers_are_compressed_if_requested)
{
    static const struct {
        const char *accepts;
        size_t size;
        bool is_packed, is_random;
    } cases[] = {{"gzip", 100, true, false},
                 {"gzip", 99, false, false},
                 {"identity, gzip", 500, true, false},
                 {"identity,deflate", 500, false, false},
                 {"gzipx", 500, false, false},
                 {"identity,gzip,br", 500, true, false},
                 {"gzip", 100, false, true}};
    char text[500];

    domt_called_start_service(&caller);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const fields[] = {"grpc-accept-encoding", cases[i].accepts, NULL};
        for (size_t at = 0; at < sizeof text; at++)
            text[at] = cases[i].is_random ? (char)(at * at * 7919 >> 3) : 'a';
        domt_frame frame = domt_called_make_frame(text, cases[i].size, false);
        const domt_call *call = domt_called_make_unary_call_and_check(
            &caller, "/t.T/Unary", frame.bytes, frame.size, fields, 0, NULL);
        ck_assert_uint_eq(call->bytes[0], cases[i].is_packed);
        ck_assert_int_eq(call->size < frame.size, cases[i].is_packed);
        if (cases[i].is_packed)
            ck_assert_str_eq(call->encoding, "gzip");
        if (!cases[i].is_packed)
            ck_assert_int_eq(memcmp(call->bytes, frame.bytes, frame.size), 0);
    }
    domt_called_end_service(&caller);
}

/* A large message is not compressed, because that would take long. */
DOMT_TEST(large_answers_are_not_compressed)
{
    static const char *const fields[] = {"grpc-accept-encoding", "gzip", NULL};

    domt_called_start_service(&caller);
    for (size_t more = 0; more < 2; more++) {
        char text[32];
        snprintf(text, sizeof text, "large %zu", DOMUS_GRPC_PACK_MAX + more);
        domt_frame frame = domt_called_make_frame(text, strlen(text), false);
        const domt_call *call = domt_called_make_unary_call_and_check(
            &caller, "/t.T/Unary", frame.bytes, frame.size, fields, 0, NULL);
        ck_assert_uint_eq(call->bytes[0], more == 0);
    }
    domt_called_end_service(&caller);
}

/* The client cancels three calls: the handler of one sleeps, and those of two wait for messages. */
DOMT_TEST(handlers_hear_of_cancelled_calls)
{
    static const char *const paths[] = {"/t.T/Unary", "/t.T/Up", "/t.T/Both"};

    for (size_t i = 0; i < 3; i++) {
        domt_frame frame = domt_called_make_frame("sleep 5000", 10, false);
        domt_called_start_service(&caller);
        int32_t id = domt_called_begin_call(&caller, paths[i], frame.bytes, frame.size, NULL);
        domt_called_find_call(&caller, id)->holds_end = i != 0;
        domt_called_advance_time(&caller, DOMT_CALLED_MS);
        ck_assert_uint_eq(domt_called_now.begun, 1);
        ck_assert_uint_eq(domt_called_now.cancelled, 0);
        ck_assert_int_eq(
            nghttp2_submit_rst_stream(caller.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL), 0);
        domt_called_advance_time(&caller, DOMT_CALLED_MS);
        ck_assert_msg(domt_called_now.cancelled == 1, "%s", paths[i]);
        domt_called_make_unary_call_and_check(&caller, "/t.T/Unary", "\0\0\0\0\1a", 6, NULL, 0,
                                              "a");
        domt_called_end_service(&caller);
    }
}

/* --- reader ----------------------------------------------------------------------------------- */

/* The reader of messages of gRPC, without a channel: how much of a message it decompresses in one
 * turn. */

/* Make a frame of one compressed message. The caller frees the slice. */
static domus_slice make_frame_of_compressed_message(const uint8_t *message, uint32_t size)
{
    const uint8_t head[] = {1, (uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
                            (uint8_t)size};
    domus_appender bytes = {0};
    domus_slice made;

    (void)domus_append(&bytes, head, sizeof head);
    (void)domus_append(&bytes, message, size);
    ck_assert_int_eq(domus_append_end(&bytes, &made), 0);
    return made;
}

/* Read one message to its end. Returns how often the reader has paused; `ret_size` gets the size of
 * the message. */
static unsigned read_message_and_count_pauses(domus_slice frame, uint32_t *ret_size)
{
    domi_grpc_reader reader = {.max = 16u << 20, .unpacks = true};
    domus_slice message;
    unsigned pauses = 0;
    int result;

    domi_grpc_reader_put_piece(&reader, frame);
    while ((result = domi_grpc_reader_read_message(&reader, &message)) == DOMI_GRPC_PAUSE)
        pauses++;
    ck_assert_int_eq(result, 1);
    ck_assert(domi_grpc_reader_is_between_messages(&reader));
    *ret_size = message.size;
    domus_slice_free(message);
    domi_grpc_reader_free_bytes(&reader);
    return pauses;
}

/* Many empty blocks of deflate, which zlib would read one after the other in one call, cost time
 * although no bytes come out of them. */
DOMT_TEST(empty_deflate_blocks_are_read_in_turns)
{
    static const uint8_t begin[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
    /* an empty block of deflate, which is stored without compression */
    static const uint8_t block[] = {0, 0, 0, 0xff, 0xff};
    static const uint8_t end[] = {1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0};
    const uint32_t count = 100000;
    uint32_t size = sizeof begin + count * (uint32_t)sizeof block + sizeof end;
    uint8_t *message = malloc(size);
    uint32_t made;

    ck_assert_ptr_nonnull(message);
    memcpy(message, begin, sizeof begin);
    for (uint32_t i = 0; i < count; i++)
        memcpy(message + sizeof begin + i * sizeof block, block, sizeof block);
    memcpy(message + size - sizeof end, end, sizeof end);
    unsigned pauses =
        read_message_and_count_pauses(make_frame_of_compressed_message(message, size), &made);
    ck_assert_uint_eq(made, 0);
    ck_assert_uint_ge(pauses, size / (DOMI_GRPC_SPENT_MAX / DOMI_GRPC_COST_IN + 4096));
    free(message);
}

DOMT_TEST(large_decompression_takes_several_turns)
{
    const uint32_t size = 8u << 20;
    uint8_t *text = calloc(1, size);
    uint8_t packed[65536];
    uint32_t made;
    z_stream zlib = {
        .next_in = text, .avail_in = size, .next_out = packed, .avail_out = sizeof packed};

    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(deflateInit2(&zlib, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    ck_assert_int_eq(deflateEnd(&zlib), Z_OK);
    unsigned pauses = read_message_and_count_pauses(
        make_frame_of_compressed_message(packed, (uint32_t)zlib.total_out), &made);
    ck_assert_uint_eq(made, size);
    ck_assert_uint_ge(pauses, 7);
    free(text);
}

DOMT_SUITE(60)
