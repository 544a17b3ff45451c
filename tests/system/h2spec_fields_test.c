/* Section 8 of h2spec's list "http2", malformed requests, and its list "hpack", blocks of fields
 * that every decoder has to refuse. */
#include "tests/support/suite.h"
#include "tests/system/h2spec.h"

#define MALFORMED STREAM_ERROR(CODE(PROTOCOL_ERROR))
#define SCHEME    ":scheme: http\n"
#define AUTHORITY ":authority: @A\n"

#define REFUSED(place, name, fields)                                                               \
    {                                                                                              \
        place, name, STEPS(HEAD(1, WHOLE, fields)), MALFORMED, false                               \
    }

static const domt_h2_case requests[] = {
    {"http2/8.1/1", "a second HEADERS without the end of the stream",
     STEPS(HEAD(1, END_HEADERS, POST), DATA(1, 0, "test"), HEAD(1, END_HEADERS, "x-test: ok\n")),
     MALFORMED, false},
    REFUSED("http2/8.1.2/1", "a name in capitals", GET "X-TEST: ok\n"),
    REFUSED("http2/8.1.2.1/1", "a pseudo field that is unknown", GET ":test: ok\n"),
    REFUSED("http2/8.1.2.1/2", "a pseudo field of answers", GET ":status: 200\n"),
    {"http2/8.1.2.1/3", "a pseudo field in trailers",
     STEPS(HEAD(1, END_HEADERS, POST), DATA(1, 0, "test"), HEAD(1, WHOLE, ":method: POST\n")),
     MALFORMED, false},
    REFUSED("http2/8.1.2.1/4", "a pseudo field behind another one", "x-test: ok\n" GET),
    REFUSED("http2/8.1.2.2/1", "a field of the connection", GET "connection: keep-alive\n"),
    REFUSED("http2/8.1.2.2/2", "te with more than trailers",
            GET "trailers: test\nte: trailers, deflate\n"),
    REFUSED("http2/8.1.2.3/1", "an empty path", ":method: GET\n" SCHEME ":path: \n" AUTHORITY),
    REFUSED("http2/8.1.2.3/2", "no method", SCHEME ":path: @P\n" AUTHORITY),
    REFUSED("http2/8.1.2.3/3", "no scheme", ":method: GET\n:path: @P\n" AUTHORITY),
    REFUSED("http2/8.1.2.3/4", "no path", ":method: GET\n" SCHEME AUTHORITY),
    REFUSED("http2/8.1.2.3/5", "two methods", GET ":method: GET\n"),
    REFUSED("http2/8.1.2.3/6", "two schemes", GET SCHEME),
    REFUSED("http2/8.1.2.3/7", "two paths", GET ":path: @P\n"),
    {"http2/8.1.2.6/1", "a content-length that is not that of DATA",
     STEPS(HEAD(1, END_HEADERS, POST "content-length: 1\n"), DATA(1, END_STREAM, "test")),
     MALFORMED, false},
    {"http2/8.1.2.6/2", "a content-length that is not that of all DATA",
     STEPS(HEAD(1, END_HEADERS, POST "content-length: 1\n"), DATA(1, 0, "test"),
           DATA(1, END_STREAM, "test")),
     MALFORMED, false},
    {"http2/8.2/1", "PUSH_PROMISE",
     STEPS(SAY(PUSH_PROMISE, END_HEADERS, 1, .front = BYTES("\0\0\0\3"), .fields = GET)),
     CONNECTION_ERROR(CODE(PROTOCOL_ERROR)), false},
};

/* An update of the table's size to one byte more than the server's limit. */
static bool add_update_to_too_large_table(const domt_h2 *h2, domt_h2_bytes *to)
{
    static domt_h2_bytes block;
    uint32_t rest = h2->settings[DOMT_H2_TABLE_SIZE] + 1 - 31;

    block.size = 0;
    domt_h2_add_bytes(&block, "\x3f", 1);
    for (; rest >= 128; rest >>= 7)
        domt_h2_add_bytes(&block, &(uint8_t){(uint8_t)(0x80u | (rest & 0x7fu))}, 1);
    domt_h2_add_bytes(&block, &(uint8_t){(uint8_t)rest}, 1);
    domt_h2_add_field_block(&block, GET);
    domt_h2_add_frame(to, DOMT_H2_HEADERS, WHOLE, 1, block.data, block.size);
    return true;
}

#define NO_BLOCK(place, name, bytes)                                                               \
    {                                                                                              \
        place, name, STEPS(SAY(HEADERS, WHOLE, 1, .fields = GET, .back = BYTES(bytes))),           \
            CONNECTION_ERROR(CODE(COMPRESSION_ERROR)), false                                       \
    }

/* The field name x-test in Huffman's code; its value follows. */
#define XTEST "\0\x85\xf2\xb2\x4a\x84\xff"

static const domt_h2_case blocks[] = {
    NO_BLOCK("hpack/2.3.3/1", "an index behind the tables", "\xfe"),
    NO_BLOCK("hpack/2.3.3/2", "a name whose index is behind the tables", "\x7f\x3f\2ok"),
    NO_BLOCK("hpack/4.2/1", "an update of the table behind fields", "\x21"),
    NO_BLOCK("hpack/5.2/1", "more than 7 bits of padding", XTEST "\x84\x49\x50\x9f\xff"),
    NO_BLOCK("hpack/5.2/2", "padding of zeros", XTEST "\x83\x49\x50\x90"),
    NO_BLOCK("hpack/5.2/3", "the end of a string within it",
             XTEST "\x87\xff\xff\xff\xfd\x25\x42\x7f"),
    NO_BLOCK("hpack/6.1/1", "index 0", "\x80"),
    {"hpack/6.3/1", "a table larger than allowed", STEPS(CALL(add_update_to_too_large_table)),
     CONNECTION_ERROR(CODE(COMPRESSION_ERROR)), false},
};

DOMT_TEST(malformed_requests_are_refused)
{
    domt_h2spec_run_cases(requests, sizeof requests / sizeof requests[0], NULL);
}

DOMT_TEST(blocks_that_cannot_be_decoded_are_refused)
{
    domt_h2spec_run_cases(blocks, sizeof blocks / sizeof blocks[0], NULL);
}

DOMT_SUITE(300)
