/* Compressed bodies: a client decompresses them while they come, and threads share the streams
 * that compress. */
#include "protocols/http/coding.h"
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

/* A client decompresses bodies of answers while they come. The result is the same wherever the
 * bytes are cut; bodies may have several parts; their size has a bound; and an incomplete body is
 * an error. */

#define HEAD "HTTP/1.1 200 OK\r\n"
#define GZIP HEAD "Content-Encoding: gzip\r\n"

static const domus_http_options options = {
    .role = DOMUS_ROLE_CLIENT, .host = "a", .unzip = true, .body_max = 2000};

static char packed[1u << 20]; /* a compressed body, of one or more parts of gzip */
static size_t packed_size;
static char answer[1u << 20];
static size_t answer_size;

/* Append a part of gzip to the compressed body. */
static void append_gzip(const char *bytes, size_t size)
{
    z_stream zlib = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)size};

    ck_assert_int_eq(deflateInit2(&zlib, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    zlib.next_out = (Bytef *)packed + packed_size;
    zlib.avail_out = (uInt)(sizeof packed - packed_size);
    ck_assert_int_eq(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    packed_size = sizeof packed - zlib.avail_out;
    (void)deflateEnd(&zlib);
}

static void compress_text(const char *text)
{
    packed_size = 0;
    append_gzip(text, strlen(text));
}

/* Make an answer whose body is the compressed one, with a length or in chunks. */
static void make_answer_of_packed_body(const char *head, bool in_chunks)
{
    int size =
        in_chunks
            ? snprintf(answer, sizeof answer, "%sTransfer-Encoding: chunked\r\n\r\n%zx\r\n", head,
                       packed_size)
            : snprintf(answer, sizeof answer, "%sContent-Length: %zu\r\n\r\n", head, packed_size);

    memcpy(answer + size, packed, packed_size);
    answer_size = (size_t)size + packed_size;
    if (in_chunks) {
        memcpy(answer + answer_size, "\r\n0\r\n\r\n", 7);
        answer_size += 7;
    }
}

static void expect_trace_of_decoded_answer(const char *expected)
{
    domt_http_expect_trace(&options, "G", answer, answer_size, expected);
}

DOMT_TEST(body_is_decompressed_while_it_comes)
{
    compress_text("hello");
    make_answer_of_packed_body(GZIP, true);
    expect_trace_of_decoded_answer(
        "200 1.1 (Content-Encoding: gzip|Transfer-Encoding: chunked) [hello]\n");
    make_answer_of_packed_body(HEAD "Content-Encoding: X-GZIP\r\n", true);
    expect_trace_of_decoded_answer(
        "200 1.1 (Content-Encoding: X-GZIP|Transfer-Encoding: chunked) [hello]\n");
    append_gzip(" ", 1);
    append_gzip("", 0);
    append_gzip("world", 5);
    make_answer_of_packed_body(GZIP, true);
    expect_trace_of_decoded_answer(
        "200 1.1 (Content-Encoding: gzip|Transfer-Encoding: chunked) [hello world]\n");
    packed_size = 0;
    make_answer_of_packed_body(GZIP "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false);
    answer_size = strlen(GZIP "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    expect_trace_of_decoded_answer("200 1.1 (Content-Encoding: gzip|Transfer-Encoding: chunked)\n");
    make_answer_of_packed_body(GZIP, false);
    expect_trace_of_decoded_answer("200 1.1 (Content-Encoding: gzip|Content-Length: 0)\n");
}

/* Decode the answer as a client. Returns the size of the last response's body; SIZE_MAX if there is
 * no response. */
static size_t size_of_decoded_body(const domus_http_options *with, size_t step, int *ret_error,
                                   bool *ret_unzipped)
{
    domt_codec http;
    domus_stage_message message;
    size_t size = SIZE_MAX;
    int result = 0;

    domt_http_start_codec(&http, with);
    domt_http_encode_requests(&http, "G");
    for (size_t at = 0; at < answer_size && result >= 0; at += step) {
        size_t part = answer_size - at < step ? answer_size - at : step;
        ck_assert_int_eq(domus_stage_kit_feed(http.kit, answer + at, part), 0);
        while ((result = domus_stage_kit_next(http.kit, &message)) == 1) {
            size = ((const domus_http_response *)message.payload)->body.size;
            *ret_unzipped = ((const domus_http_response *)message.payload)->unzipped;
        }
    }
    *ret_error = result;
    domt_codec_stop(&http);
    return size;
}

static size_t size_of_body_decoded_at_once(int *ret_error)
{
    bool unzipped = false;
    size_t size = size_of_decoded_body(&options, sizeof answer, ret_error, &unzipped);

    ck_assert(unzipped || size == SIZE_MAX);
    return size;
}

static const char *half_a_million_zeros(void)
{
    static const char bytes[500000];

    return bytes;
}

DOMT_TEST(bound_of_a_body_counts_decompressed_bytes)
{
    int error;

    for (int in_chunks = 0; in_chunks < 2; in_chunks++) {
        packed_size = 0;
        append_gzip(half_a_million_zeros(), 2000);
        make_answer_of_packed_body(GZIP, in_chunks != 0);
        ck_assert_uint_eq(size_of_body_decoded_at_once(&error), 2000);
        packed_size = 0;
        append_gzip(half_a_million_zeros(), 2001);
        make_answer_of_packed_body(GZIP, in_chunks != 0);
        ck_assert_uint_eq(size_of_body_decoded_at_once(&error), SIZE_MAX);
        ck_assert_int_eq(error, -EMSGSIZE);
        packed_size = 0;
        append_gzip(half_a_million_zeros(), 500000);
        make_answer_of_packed_body(GZIP, in_chunks != 0);
        ck_assert_uint_eq(size_of_body_decoded_at_once(&error), SIZE_MAX);
        ck_assert_int_eq(error, -EMSGSIZE);
    }
}

/* Decode an answer under a limit of the largest block of memory: the window of 64 KiB, and the body
 * with spare room. */
static int decode_answer_of_large_body(void *unused)
{
    static const domus_http_options large = {
        .role = DOMUS_ROLE_CLIENT, .host = "a", .unzip = true, .body_max = 1u << 20};
    bool unzipped;
    int error;

    ck_assert_uint_eq(size_of_decoded_body(&large, 1000, &error, &unzipped), 500000);
    return error;
}

DOMT_TEST(large_body_is_decompressed_in_steps)
{
    packed_size = 0;
    append_gzip(half_a_million_zeros(), 500000);
    make_answer_of_packed_body(GZIP, true);
    ck_assert_int_eq(decode_answer_of_large_body(NULL), 0);
    make_answer_of_packed_body(GZIP, false);
    ck_assert_int_eq(decode_answer_of_large_body(NULL), 0);
}

DOMT_TEST(compressed_body_that_is_cut_or_wrong_fails)
{
    int error;

    compress_text("hello, hello, hello, hello");
    size_t size = packed_size;
    for (size_t cut = 1; cut < size; cut++) {
        packed_size = cut;
        make_answer_of_packed_body(GZIP, true);
        ck_assert_uint_eq(size_of_body_decoded_at_once(&error), SIZE_MAX);
        ck_assert_int_eq(error, -EPROTO);
    }
    for (size_t at = 0; at < size; at++) {
        if (at >= 4 && at < 10)
            continue; /* the bytes of time, level and system in the header may have any value */
        compress_text("hello, hello, hello, hello");
        packed[at] ^= 0x10;
        make_answer_of_packed_body(GZIP, false);
        ck_assert_uint_eq(size_of_body_decoded_at_once(&error), SIZE_MAX);
        ck_assert_int_eq(error, -EPROTO);
    }
    static const char *const tails[] = {"a", "abc", "hello, hello, hello", "\x1f"};
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        compress_text("hello");
        memcpy(packed + packed_size, tails[i], strlen(tails[i]));
        packed_size += strlen(tails[i]);
        make_answer_of_packed_body(GZIP, true);
        ck_assert_uint_eq(size_of_body_decoded_at_once(&error), SIZE_MAX);
        ck_assert_int_eq(error, -EPROTO);
    }
}

DOMT_TEST(trailers_come_behind_a_body_of_any_size)
{
    static char trailers[5000];
    int error;

    memset(trailers, 'a', sizeof trailers);
    packed_size = 0;
    append_gzip(half_a_million_zeros(), 1500);
    make_answer_of_packed_body(GZIP, true);
    answer_size -= 2;
    answer_size += (size_t)snprintf(answer + answer_size, 6000, "A: %.*s\r\n\r\n", 4000, trailers);
    ck_assert_uint_eq(size_of_body_decoded_at_once(&error), 1500);
    ck_assert_int_eq(error, 0);
}

DOMT_TEST(bodies_that_are_not_gzip_are_left_as_they_are)
{
    bool unzipped = true;
    int error;
    domus_http_options plain = options;

    compress_text("hello");
    make_answer_of_packed_body(HEAD "Content-Encoding: br\r\n", true);
    ck_assert_uint_eq(size_of_decoded_body(&options, 1000, &error, &unzipped), packed_size);
    ck_assert(!unzipped);
    make_answer_of_packed_body(HEAD "Content-Encoding: gzip, br\r\n", true);
    ck_assert_uint_eq(size_of_decoded_body(&options, 1000, &error, &unzipped), packed_size);
    make_answer_of_packed_body(GZIP "Content-Encoding: br\r\n", true);
    ck_assert_uint_eq(size_of_decoded_body(&options, 1000, &error, &unzipped), packed_size);
    make_answer_of_packed_body(GZIP "Content-Encoding: gzip\r\n", true);
    ck_assert_uint_eq(size_of_decoded_body(&options, 1000, &error, &unzipped), packed_size);
    make_answer_of_packed_body(HEAD, true);
    ck_assert_uint_eq(size_of_decoded_body(&options, 1000, &error, &unzipped), packed_size);
    plain.unzip = false;
    make_answer_of_packed_body(GZIP, true);
    ck_assert_uint_eq(size_of_decoded_body(&plain, 1000, &error, &unzipped), packed_size);
    ck_assert(!unzipped);
}

DOMT_TEST(requests_say_that_gzip_is_accepted)
{
    domt_codec http;

    domus_http_request request = {.target = domt_slice_of_text("/")};
    domt_http_start_codec(&http, &options);
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, 0, &domus_http_request_type, &request), 0);
    ck_assert_ptr_nonnull(strstr(domt_codec_take_output(&http), "\r\nAccept-Encoding: gzip\r\n"));
    request.fields = domt_slice_of_text("Accept-Encoding: br\r\n");
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, 0, &domus_http_request_type, &request), 0);
    const char *sent = domt_codec_take_output(&http);
    ck_assert(strstr(sent, "gzip") == NULL && strstr(sent, "Accept-Encoding: br") != NULL);
    domus_http_request_type.release(&request);
    domt_codec_stop(&http);
    const domus_http_options wrong[] = {
        {.unzip = true}, {.role = DOMUS_ROLE_CLIENT, .unzip = true, .streams = true}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_http_stage.check(&wrong[i]), -EINVAL);
}

static int decode_answer_of_hello(void *unused)
{
    domt_codec http = {.stages = {{&domus_http_stage, &options}}};
    domus_stage_message message;
    domus_http_request request = {.target = {NULL, 0, 0}};

    http.pipeline.stages = http.stages;
    int error = domus_stage_kit_new(&http.pipeline, &http.kit);
    if (error != 0)
        return error;
    error = domus_slice_copy("/", 1, &request.target);
    if (error == 0)
        error = domus_stage_kit_encode(http.kit, 0, &domus_http_request_type, &request);
    domus_http_request_type.release(&request);
    for (size_t at = 0; at < answer_size && error == 0; at += 50) {
        error = domus_stage_kit_feed(http.kit, answer + at,
                                     answer_size - at < 50 ? answer_size - at : 50);
        while (error == 0 && (error = domus_stage_kit_next(http.kit, &message)) == 1)
            error = 0;
    }
    domus_stage_kit_free(http.kit);
    return error;
}

static bool zlib_fails;

int inflateInit2_(z_streamp zlib, int bits, const char *version, int size)
{
    int (*init)(z_streamp, int, const char *, int);

    *(void **)&init = dlsym(RTLD_NEXT, "inflateInit2_");
    return zlib_fails ? Z_MEM_ERROR : init(zlib, bits, version, size);
}

DOMT_TEST(failing_memory_is_an_error_of_decompression)
{
    packed_size = 0;
    append_gzip(half_a_million_zeros(), 1500);
    make_answer_of_packed_body(GZIP, true);
    domt_fail_each_allocation(decode_answer_of_hello, NULL);
    zlib_fails = true;
    ck_assert_int_eq(decode_answer_of_hello(NULL), -ENOMEM);
}

/* --- deflate ---------------------------------------------------------------------------------- */

/* protocols/http/deflate.c: several threads take streams of compression from one pool and give
 * them back. */

#define THREADS 4
#define ROUNDS  300

static domus_http_gzip gzip = {.streams_max = 3};
static uint32_t refused[THREADS], done[THREADS];

static void *compress_again_and_again(void *index_)
{
    const uint32_t *index = index_;
    static const char text[] = "hello, hello, hello, hello, hello, hello, hello, hello, hello";

    for (int i = 0; i < ROUNDS; i++) {
        domus_slice compressed;
        domi_http_deflater *deflater = domi_http_deflater_take_from_pool(&gzip);
        if (deflater == NULL) {
            refused[*index]++;
            continue;
        }
        if (domi_http_deflate_whole_body(deflater, text, sizeof text - 1, &compressed) == 0 &&
            compressed.size < 40) {
            done[*index]++;
            domus_slice_free(compressed);
        }
        domi_http_deflater_give_back(deflater);
    }
    return NULL;
}

DOMT_TEST(threads_share_the_deflate_streams)
{
    pthread_t threads[THREADS];
    uint32_t indexes[THREADS];

    for (uint32_t i = 0; i < THREADS; i++) {
        indexes[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, compress_again_and_again, &indexes[i]),
                         0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_uint_eq(done[i] + refused[i], ROUNDS);
    }
    ck_assert_uint_le(gzip.streams, 3);
    domus_http_gzip_trim(&gzip);
    ck_assert_uint_eq(gzip.streams, 0);
}

DOMT_TEST(lists_of_deflate_streams_end_with_their_channel)
{
    domi_http_deflater *list = NULL;
    domi_http_deflater *some[3];

    for (int i = 0; i < 3; i++) {
        some[i] = domi_http_deflater_take_from_pool(&gzip);
        ck_assert_ptr_nonnull(some[i]);
        domi_http_deflater_add_to_list(some[i], &list);
    }
    ck_assert_ptr_null(domi_http_deflater_take_from_pool(&gzip));
    domi_http_deflater_give_back(some[1]);
    domi_http_deflater_give_back(some[2]);
    domi_http_deflaters_give_all_back(&list);
    ck_assert_ptr_null(list);
    ck_assert_uint_eq(gzip.streams, 3);
    domus_http_gzip_trim(&gzip);
    ck_assert_uint_eq(gzip.streams, 0);
}

DOMT_SUITE(60)
