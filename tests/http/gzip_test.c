/* Answers are compressed for clients that accept gzip, and say so in their fields; whole answers
 * and pieces, with a bounded number of streams. zlib checks the bytes. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define GET(accepted) "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: " accepted "\r\n\r\n"
#define PLAIN         "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define OLD           "GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"
#define HEAD          "HEAD / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"

static domus_http_gzip gzip;
static const domus_http_options options = {.no_date = true, .gzip = &gzip};

/* The output of the stage as the peer sees it: the head as text, the body without its chunks, and
 * the decompressed body. */
static char head[4096];
static char body[2u << 20];
static size_t body_size;
static char text[4u << 20];
static size_t text_size;

static void read_chunks_of_body(const char *bytes, size_t size)
{
    body_size = 0;
    while (size != 0) {
        char *end;
        size_t chunk = strtoul(bytes, &end, 16);
        ck_assert_int_eq(memcmp(end, "\r\n", 2), 0);
        size_t line = (size_t)(end - bytes) + 2;
        ck_assert_uint_le(line + chunk + 2, size);
        memcpy(body + body_size, bytes + line, chunk);
        body_size += chunk;
        bytes += line + chunk + 2;
        size -= line + chunk + 2;
        if (chunk == 0)
            return;
    }
}

static void inflate_body(void)
{
    z_stream zlib = {.next_in = (Bytef *)body, .avail_in = (uInt)body_size};

    ck_assert_int_eq(inflateInit2(&zlib, 15 + 16), Z_OK);
    zlib.next_out = (Bytef *)text;
    zlib.avail_out = sizeof text;
    int result = inflate(&zlib, Z_SYNC_FLUSH);
    ck_assert_msg(result == Z_STREAM_END || result == Z_OK || result == Z_BUF_ERROR, "%d", result);
    text_size = sizeof text - zlib.avail_out;
    (void)inflateEnd(&zlib);
}

/* Read the output of the stage into these texts. Returns whether the body is compressed. */
static bool is_output_compressed(domt_codec *http)
{
    size_t size;
    const char *output = domus_stage_kit_output(http->kit, &size);
    const char *end = memmem(output, size, "\r\n\r\n", 4);

    ck_assert_ptr_nonnull(end);
    snprintf(head, sizeof head, "%.*s", (int)(end + 4 - output), output);
    body_size = size - strlen(head);
    if (strstr(head, "Transfer-Encoding: chunked\r\n") != NULL)
        read_chunks_of_body(output + strlen(head), body_size);
    else
        memcpy(body, output + strlen(head), body_size);
    text_size = 0;
    bool is_packed = strstr(head, "Content-Encoding: gzip\r\n") != NULL;
    if (is_packed && body_size != 0)
        inflate_body();
    domus_stage_kit_clear(http->kit);
    return is_packed;
}

/* Answer a request with a body of this media type. Returns whether the answer is compressed. */
static bool is_answer_compressed(const char *request, const domus_type *type, const void *payload)
{
    domt_codec http;

    domt_http_start_codec(&http, &options);
    uint64_t id = domt_http_feed_request_text(&http, request);
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, id, type, payload), 0);
    bool is_packed = is_output_compressed(&http);
    domt_codec_stop(&http);
    return is_packed;
}

static bool has_head_line(const char *line)
{
    char whole[256];

    snprintf(whole, sizeof whole, "\r\n%s\r\n", line);
    return strstr(head, whole) != NULL;
}

/* Bodies for the tests: make_compressible_body() can be compressed, make_incompressible_body()
 * cannot. */
static const char *make_compressible_body(size_t size)
{
    static char bytes[2u << 20];

    for (size_t i = 0; i < size; i++)
        bytes[i] = "hello, world. "[i % 14];
    bytes[size] = '\0';
    return bytes;
}

static const char *make_incompressible_body(size_t size)
{
    static char bytes[70000];
    uint32_t chance = 1;

    for (size_t i = 0; i < size; i++) {
        chance = chance * 1664525 + 1013904223;
        bytes[i] = (char)(1 + (chance >> 24) % 255);
    }
    bytes[size] = '\0';
    return bytes;
}

static bool is_text_answer_compressed(const char *request, const char *media, const char *bytes)
{
    const domus_http_text made = {200, media, bytes};

    return is_answer_compressed(request, &domus_http_text_type, &made);
}

DOMT_TEST(whole_body_is_compressed_for_those_who_accept_it)
{
    const char *bytes = make_compressible_body(5000);

    ck_assert(is_text_answer_compressed(GET("gzip"), "text/plain", bytes));
    ck_assert(has_head_line("Vary: Accept-Encoding"));
    ck_assert_uint_lt(body_size, 200);
    ck_assert_uint_eq(text_size, 5000);
    ck_assert_int_eq(memcmp(text, bytes, 5000), 0);
    char length[64];
    snprintf(length, sizeof length, "Content-Length: %zu", body_size);
    ck_assert(has_head_line(length));
    static const char *const accepting[] = {GET("br, gzip;q=0.1"), GET("*"), GET("GZIP"),
                                            GET("identity;q=0.5, gzip"), OLD};
    for (size_t i = 0; i < sizeof accepting / sizeof accepting[0]; i++) {
        ck_assert_msg(is_text_answer_compressed(accepting[i], "text/plain", bytes), "%s",
                      accepting[i]);
        ck_assert_uint_eq(text_size, 5000);
    }
    static const char *const refusing[] = {PLAIN,        GET("br"),     GET("gzip;q=0"),
                                           GET(""),      GET("*;q=0"),  GET("identity, gzip;q=0.5"),
                                           GET("gzipp"), GET("deflate")};
    for (size_t i = 0; i < sizeof refusing / sizeof refusing[0]; i++) {
        ck_assert_msg(!is_text_answer_compressed(refusing[i], "text/plain", bytes), "%s",
                      refusing[i]);
        ck_assert(has_head_line("Vary: Accept-Encoding") && has_head_line("Content-Length: 5000"));
        ck_assert_uint_eq(body_size, 5000);
    }
    domus_http_gzip_trim(&gzip);
    ck_assert_uint_eq(gzip.streams, 0);
}

DOMT_TEST(only_media_that_become_smaller_are_compressed)
{
    static const char *const small[] = {
        "text/html; charset=utf-8", "TEXT/CSS",          "application/json",
        "application/ld+json",      "image/svg+xml",     "text/event-stream",
        "application/javascript;a", "application/wasm ", "application/xml"};
    static const char *const other[] = {"image/png", "application/zip", "application/octet-stream",
                                        "text",      "text/",           "application/jsonx",
                                        "+json",     "video/mp4",       NULL};
    const char *bytes = make_compressible_body(1000);

    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        ck_assert_msg(is_text_answer_compressed(GET("gzip"), small[i], bytes), "%s", small[i]);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        ck_assert(!is_text_answer_compressed(GET("gzip"), other[i], bytes));
        ck_assert(!has_head_line("Vary: Accept-Encoding"));
    }
    ck_assert(!is_text_answer_compressed(GET("gzip"), "text/plain", make_compressible_body(511)));
    ck_assert(!has_head_line("Vary: Accept-Encoding"));
    ck_assert(is_text_answer_compressed(GET("gzip"), "text/plain", make_compressible_body(512)));
    ck_assert(!is_text_answer_compressed(GET("gzip"), "text/plain", make_compressible_body(65537)));
    ck_assert_uint_eq(body_size, 65537);
    ck_assert(is_text_answer_compressed(GET("gzip"), "text/plain", make_compressible_body(65536)));
    ck_assert_uint_eq(text_size, 65536);
    /* compression would make these bytes larger */
    ck_assert(
        !is_text_answer_compressed(GET("gzip"), "text/plain", make_incompressible_body(1000)));
    ck_assert(has_head_line("Vary: Accept-Encoding") && has_head_line("Content-Length: 1000"));
    domus_http_gzip_trim(&gzip);
}

/* Make a response with these fields and a body of 1000 bytes. */
static bool is_answer_with_fields_compressed(const char *request, uint16_t status,
                                             const char *fields)
{
    bool has_body = status != 204 && status != 304;
    domus_http_response response = {
        .status = status,
        .fields = domt_slice_of_text(fields),
        .body = domt_slice_of_text(has_body ? make_compressible_body(1000) : "")};
    bool is_packed = is_answer_compressed(request, &domus_http_response_type, &response);

    domus_http_response_type.release(&response);
    return is_packed;
}

#define TYPE "Content-Type: text/plain\r\n"

DOMT_TEST(fields_match_the_compressed_or_plain_form)
{
    ck_assert(is_answer_with_fields_compressed(GET("gzip"), 200, "ETag: \"a\"\r\n" TYPE));
    ck_assert(has_head_line("ETag: W/\"a\"") && has_head_line("Content-Type: text/plain"));
    ck_assert(!is_answer_with_fields_compressed(PLAIN, 200, "ETag: \"a\"\r\n" TYPE));
    ck_assert(has_head_line("ETag: \"a\""));
    ck_assert(is_answer_with_fields_compressed(GET("gzip"), 404, TYPE "etag:W/\"a\"\r\n"));
    ck_assert(has_head_line("etag:W/\"a\""));
    ck_assert(is_answer_with_fields_compressed(GET("gzip"), 200, TYPE "Vary: Origin\r\n"));
    ck_assert(has_head_line("Vary: Origin") && has_head_line("Vary: Accept-Encoding"));
    ck_assert(
        is_answer_with_fields_compressed(GET("gzip"), 200, TYPE "Vary: a, accept-encoding\r\n"));
    ck_assert(!has_head_line("Vary: Accept-Encoding"));
    ck_assert(is_answer_with_fields_compressed(GET("gzip"), 200, TYPE "Vary: a\r\nVary: *\r\n"));
    ck_assert(!has_head_line("Vary: Accept-Encoding"));
    static const char *const kept[] = {TYPE "Content-Encoding: br\r\n",
                                       TYPE "Content-Encoding: identity\r\n",
                                       TYPE "Content-Range: bytes 0-999/1000\r\n",
                                       TYPE "Cache-Control: public,No-Transform\r\n",
                                       TYPE "Cache-Control: a\r\nCache-Control: no-transform\r\n",
                                       ""};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        ck_assert(!is_answer_with_fields_compressed(GET("gzip"), 200, kept[i]));
        ck_assert(!has_head_line("Vary: Accept-Encoding"));
        ck_assert_uint_eq(body_size, 1000);
    }
    ck_assert(!is_answer_with_fields_compressed(GET("gzip"), 206, TYPE));
    ck_assert(!is_answer_with_fields_compressed(GET("gzip"), 204, TYPE));
    ck_assert(!is_answer_with_fields_compressed(GET("gzip"), 304, "ETag: \"a\"\r\n"));
    ck_assert(has_head_line("Vary: Accept-Encoding"));
    domus_http_gzip_trim(&gzip);
}

DOMT_TEST(gzip_refuses_wrong_fields_of_answers_as_without_it)
{
    static const char *const wrong[] = {TYPE "A", TYPE "A: b\n", TYPE "A:b",
                                        TYPE "Connection: a\r\n", ("A\r\n" TYPE)};
    domt_codec http;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        for (int way = 0; way < 2; way++) {
            uint64_t word = 0;
            domus_http_response response = {.status = 200, .fields = domt_slice_of_text(wrong[i])};
            if (way == 0)
                response.body = domt_slice_of_text(make_compressible_body(1000));
            domt_http_start_codec(&http, &options);
            uint64_t id = domt_http_feed_request_text(&http, GET("gzip"));
            if (way == 1)
                domus_stage_kit_stream(http.kit, &word);
            ck_assert_int_eq(
                domus_stage_kit_encode(http.kit, id, &domus_http_response_type, &response),
                -EINVAL);
            ck_assert_str_eq(domt_codec_take_output(&http), "");
            domt_codec_stop(&http);
            domus_http_response_type.release(&response);
        }
    }
    domus_http_gzip_trim(&gzip);
    ck_assert_uint_eq(gzip.streams, 0);
}

DOMT_TEST(answer_to_head_has_the_fields_of_get_with_gzip)
{
    ck_assert(is_text_answer_compressed(HEAD, "text/plain", make_compressible_body(5000)));
    ck_assert(has_head_line("Vary: Accept-Encoding"));
    ck_assert_ptr_null(strstr(head, "Content-Length"));
    ck_assert_uint_eq(body_size, 0);
    ck_assert(!is_text_answer_compressed(HEAD, "text/plain", make_compressible_body(65537)));
    ck_assert(has_head_line("Content-Length: 65537"));
    const domus_http_response file = {.status = 200, .media = "text/plain", .length = 5000};
    ck_assert(is_answer_compressed(HEAD, &domus_http_response_type, &file));
    ck_assert_ptr_null(strstr(head, "Content-Length"));
    const domus_http_response picture = {.status = 200, .media = "image/png", .length = 5000};
    ck_assert(!is_answer_compressed(HEAD, &domus_http_response_type, &picture));
    ck_assert(has_head_line("Content-Length: 5000"));
    ck_assert_uint_eq(gzip.streams, 0);
}

/* --- pieces ----------------------------------------------------------------------------------- */

static int encode_piece_of_answer(domt_codec *http, uint64_t id, const char *bytes, bool is_last)
{
    domus_piece piece = {.bytes = domt_slice_of_text(bytes), .last = is_last};
    int error = domus_stage_kit_encode(http->kit, id, &domus_piece_type, &piece);

    domus_slice_free(piece.bytes);
    return error;
}

static uint64_t begin_answer_in_pieces(domt_codec *http, const char *request, uint64_t length,
                                       uint64_t *word)
{
    const domus_http_response begun = {
        .status = 200, .media = "text/event-stream", .length = length};

    *word = 0;
    domt_http_start_codec(http, &options);
    uint64_t id = domt_http_feed_request_text(http, request);
    domus_stage_kit_stream(http->kit, word);
    ck_assert_int_eq(domus_stage_kit_encode(http->kit, id, &domus_http_response_type, &begun), 0);
    return id;
}

DOMT_TEST(each_compressed_piece_is_sent_at_once)
{
    size_t size;
    domt_codec http;
    uint64_t word;
    uint64_t id = begin_answer_in_pieces(&http, GET("gzip"), 0, &word);
    static char sent[2u << 20];
    size_t sent_size = 0;
    static const size_t sizes[] = {10, 1, 70000, 100, 1000000, 10, 65536, 20000};
    static char expected[2u << 20];
    size_t expected_size = 0;

    for (size_t i = 0; i <= sizeof sizes / sizeof sizes[0]; i++) {
        bool is_last = i == sizeof sizes / sizeof sizes[0];
        const char *bytes = is_last             ? ""
                            : sizes[i] == 70000 ? make_incompressible_body(69999)
                                                : make_compressible_body(sizes[i]);
        ck_assert_int_eq(encode_piece_of_answer(&http, id, bytes, is_last), 0);
        memcpy(expected + expected_size, bytes, strlen(bytes));
        expected_size += strlen(bytes);
        const char *output = domus_stage_kit_output(http.kit, &size);
        memcpy(sent + sent_size, output, size);
        sent_size += size;
        domus_stage_kit_clear(http.kit);
        const char *end = memmem(sent, sent_size, "\r\n\r\n", 4);
        size_t head_size = (size_t)(end + 4 - sent);
        read_chunks_of_body(sent + head_size, sent_size - head_size);
        inflate_body();
        ck_assert_uint_eq(text_size, expected_size);
        ck_assert_int_eq(memcmp(text, expected, expected_size), 0);
    }
    ck_assert_int_eq(memcmp(sent + sent_size - 5, "0\r\n\r\n", 5), 0);
    domt_codec_stop(&http);
    ck_assert_uint_eq(gzip.streams, 1);
    domus_http_gzip_trim(&gzip);
    ck_assert_uint_eq(gzip.streams, 0);
}

DOMT_TEST(promised_length_of_a_compressed_body_is_held)
{
    domt_codec http;
    uint64_t word;
    domus_http_trailers trailers = {domt_slice_of_text("A: b\r\n")};

    uint64_t id = begin_answer_in_pieces(&http, GET("gzip"), 1000, &word);
    ck_assert_int_eq(encode_piece_of_answer(&http, id, make_compressible_body(999), false), 0);
    ck_assert_int_eq(encode_piece_of_answer(&http, id, "", true), -EINVAL);
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, id, &domus_http_trailers_type, &trailers),
                     -EINVAL);
    ck_assert_int_eq(encode_piece_of_answer(&http, id, "ab", false), -EMSGSIZE);
    ck_assert_int_eq(encode_piece_of_answer(&http, id, "a", false), 0);
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, id, &domus_http_trailers_type, &trailers), 0);
    ck_assert(is_output_compressed(&http));
    ck_assert_uint_eq(text_size, 1000);
    domt_codec_stop(&http);
    domus_slice_free(trailers.fields);
    /* the body of 10 bytes is too small to be compressed */
    id = begin_answer_in_pieces(&http, GET("gzip"), 10, &word);
    ck_assert(!is_output_compressed(&http));
    domt_codec_stop(&http);
    id = begin_answer_in_pieces(&http, OLD, 0, &word);
    ck_assert(!is_output_compressed(&http) && has_head_line("Vary: Accept-Encoding"));
    domt_codec_stop(&http);
    id = begin_answer_in_pieces(&http, HEAD, 1000, &word);
    ck_assert_int_eq(encode_piece_of_answer(&http, id, make_compressible_body(1000), false),
                     -EPIPE);
    ck_assert_int_eq(encode_piece_of_answer(&http, id, "", true), 0);
    ck_assert(is_output_compressed(&http));
    ck_assert(has_head_line("Transfer-Encoding: chunked"));
    domt_codec_stop(&http);
    domus_http_gzip_trim(&gzip);
    ck_assert_uint_eq(gzip.streams, 0);
}

DOMT_TEST(gzip_streams_are_bounded_and_reused)
{
    static domt_codec open[12];
    uint64_t words[12];
    uint64_t ids[12];

    gzip.streams_max = 10;
    for (int i = 0; i < 12; i++) {
        ids[i] = begin_answer_in_pieces(&open[i], GET("gzip"), 0, &words[i]);
        ck_assert_int_eq(
            encode_piece_of_answer(&open[i], ids[i], make_compressible_body(100), false), 0);
        ck_assert_int_eq(is_output_compressed(&open[i]), i < 10);
        ck_assert(has_head_line("Vary: Accept-Encoding"));
    }
    ck_assert(!is_text_answer_compressed(GET("gzip"), "text/plain", make_compressible_body(1000)));
    ck_assert_uint_eq(body_size, 1000);
    domt_codec_stop(&open[0]); /* the end of this connection frees its stream of compression */
    ck_assert(is_text_answer_compressed(GET("gzip"), "text/plain", make_compressible_body(1000)));
    ids[0] = begin_answer_in_pieces(&open[0], GET("gzip"), 0, &words[0]);
    ck_assert(!is_text_answer_compressed(GET("gzip"), "text/plain", make_compressible_body(1000)));
    domus_stage_kit_stream(open[1].kit, &words[1]);
    ck_assert_int_lt(domus_stage_kit_cut(open[1].kit, ids[1], -EPIPE), 0);
    ck_assert(is_text_answer_compressed(GET("gzip"), "text/plain", make_compressible_body(1000)));
    for (int i = 2; i < 12; i++)
        ck_assert_int_eq(encode_piece_of_answer(&open[i], ids[i], "", true), 0);
    for (int i = 0; i < 12; i++)
        domt_codec_stop(&open[i]);
    ck_assert_uint_eq(gzip.streams, DOMUS_HTTP_GZIP_IDLE);
    domus_http_gzip_trim(&gzip);
    ck_assert_uint_eq(gzip.streams, 0);
    gzip.streams_max = 0;
}

DOMT_TEST(options_of_gzip_are_checked)
{
    domus_http_gzip wrong[] = {
        {.streams_max = 65537}, {.whole_max = (1u << 20) + 1}, {.level = 10}};
    domus_http_gzip right = {.streams_max = 65536, .whole_max = 1u << 20, .level = 9};
    domus_http_options checked = {.gzip = &right};

    ck_assert_int_eq(domus_http_stage.check(&checked), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        checked.gzip = &wrong[i];
        ck_assert_int_eq(domus_http_stage.check(&checked), -EINVAL);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool zlib_fails;

int deflateInit2_(z_streamp zlib, int level, int method, int bits, int memory, int strategy,
                  const char *version, int size)
{
    int (*init)(z_streamp, int, int, int, int, int, const char *, int);

    *(void **)&init = dlsym(RTLD_NEXT, "deflateInit2_");
    return zlib_fails ? Z_MEM_ERROR
                      : init(zlib, level, method, bits, memory, strategy, version, size);
}

/* Answer one request whole and one in pieces, while allocations fail. Returns the first error. */
static int answer_whole_then_in_pieces(domus_stage_kit *kit, const domus_stage_message *message)
{
    const domus_http_response begun = {.status = 200, .media = "text/plain"};
    domus_http_response whole = {.status = 200, .media = "text/plain"};
    domus_piece pieces[2] = {{.last = false}, {.last = true}};
    uint64_t word = 0;

    int error = domus_slice_copy(make_compressible_body(50000), 50000, &pieces[0].bytes);
    if (error == 0)
        error = domus_slice_keep(pieces[0].bytes, &whole.body);
    if (error == 0)
        error = domus_slice_copy("ETag: \"a\"\r\n", 11, &whole.fields);
    if (error == 0)
        error = domus_stage_kit_encode(kit, message->id, &domus_http_response_type, &whole);
    domus_stage_kit_stream(kit, &word);
    if (error == 0)
        error = domus_stage_kit_encode(kit, message->id, &domus_http_response_type, &begun);
    for (int i = 0; i < 2 && error == 0; i++)
        error = domus_stage_kit_encode(kit, message->id, &domus_piece_type, &pieces[i]);
    domus_http_response_type.release(&whole);
    domus_slice_free(pieces[0].bytes);
    return error;
}

DOMT_TEST(failing_memory_or_zlib_leaves_answers_plain)
{
    domt_codec_work work = {.stage = {&domus_http_stage, &options},
                            .answer = answer_whole_then_in_pieces,
                            .bytes = GET("gzip"),
                            .size = sizeof GET("gzip") - 1,
                            .step = 1000};

    domt_fail_each_allocation(domt_codec_decode_as_work_says, &work);
    domus_http_gzip_trim(&gzip);
    ck_assert_uint_eq(gzip.streams, 0);
    zlib_fails = true;
    ck_assert(!is_text_answer_compressed(GET("gzip"), "text/plain", make_compressible_body(1000)));
    ck_assert(has_head_line("Vary: Accept-Encoding"));
    ck_assert_uint_eq(gzip.streams, 0);
    zlib_fails = false;
    ck_assert(is_text_answer_compressed(GET("gzip"), "text/plain", make_compressible_body(1000)));
    domus_http_gzip_trim(&gzip);
}

DOMT_SUITE(60)
