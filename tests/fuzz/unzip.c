/* Fuzzes the decompression of a client of HTTP. The first byte of an input is the size of the
 * pieces, the rest is a body of gzip: zlib decompresses it at once, and the stage in steps. Both
 * return the same bytes, or both fail. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/http.h>
#include <domus/stage_kit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define BODY_MAX 100000u

static const domus_http_options options = {
    .role = DOMUS_ROLE_CLIENT, .host = "a", .unzip = true, .body_max = BODY_MAX};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &options}, {NULL, NULL}}};

/* Decompress the whole body with zlib. Returns the number of bytes; -1 if the body is wrong or too
 * large. */
static int64_t inflate_by_zlib(const uint8_t *data, size_t size, unsigned char *to)
{
    z_stream zlib = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size};
    int result = Z_STREAM_END;

    domt_fuzz_abort_unless(inflateInit2(&zlib, 15 + 16) == Z_OK);
    zlib.next_out = to;
    zlib.avail_out = BODY_MAX + 1;
    while (zlib.avail_in != 0 && result == Z_STREAM_END) {
        domt_fuzz_abort_unless(inflateReset(&zlib) == Z_OK);
        result = inflate(&zlib, Z_FINISH);
    }
    int64_t bytes = BODY_MAX + 1 - zlib.avail_out;
    (void)inflateEnd(&zlib);
    return result == Z_STREAM_END && bytes <= BODY_MAX ? bytes : -1;
}

/* Check that the next message of the stage, if there is one, is a response with these bytes as its
 * body. */
static int read_response_with_body(domus_stage_kit *kit, const unsigned char *expected,
                                   int64_t size)
{
    domus_stage_message message;
    int result = domus_stage_kit_next(kit, &message);

    if (result == 1) {
        const domus_http_response *response = message.payload;
        domt_fuzz_abort_unless(domus_slice_equals(response->body, expected, (size_t)size));
    }
    return result;
}

static void feed_bytes_to_kit(domus_stage_kit *kit, const void *bytes, size_t size)
{
    domt_fuzz_abort_unless(domus_stage_kit_feed(kit, bytes, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char expected[BODY_MAX + 1];
    domus_http_request request = {.target = {NULL, 0, 0}};
    domus_stage_kit *kit;
    char head[128];
    int result = 0;

    if (size < 2 || size > 50000)
        return 0;
    size_t step = 1 + (size_t)data[0] * 8;
    data++, size--;
    int64_t body = inflate_by_zlib(data, size, expected);
    domt_fuzz_abort_unless(domus_stage_kit_new(&pipeline, &kit) == 0);
    domt_fuzz_abort_unless(domus_slice_copy("/", 1, &request.target) == 0);
    domt_fuzz_abort_unless(domus_stage_kit_encode(kit, 0, &domus_http_request_type, &request) == 0);
    domus_http_request_type.release(&request);
    int length =
        snprintf(head, sizeof head,
                 "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", size);
    feed_bytes_to_kit(kit, head, (size_t)length);
    for (size_t at = 0; at < size && result == 0; at += step) {
        feed_bytes_to_kit(kit, data + at, size - at < step ? size - at : step);
        result = read_response_with_body(kit, expected, body);
    }
    domt_fuzz_abort_unless(result == (body >= 0 ? 1 : result < 0 ? result : 2));
    domus_stage_kit_free(kit);
    return 0;
}
