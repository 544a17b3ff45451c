/* Fields of HTTP/2, by h2spec: ordinary frames and each form of HPACK, which a server has to
 * accept (its list "generic"), and requests and blocks that a server has to refuse (section 8 of
 * its list "http2", and its list "hpack"). */
#include "tests/support/suite.h"
#include "tests/system/h2spec.h"

/* Section 8 of h2spec's list "http2", malformed requests, and its list "hpack", blocks of fields
 * that every decoder has to refuse. */

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

/* --- h2spec generic --------------------------------------------------------------------------- */

/* Sections 1 to 5 of h2spec's list "generic": ordinary frames, and fields in each form that HPACK
 * has, which every server has to accept. */

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* A window of size 0, which keeps the server from ending a stream. */
#define NO_WINDOW FRAME(SETTINGS, 0, 0, "\0\4\0\0\0\0")
#define ONE_BYTE  "\0\0\0\1"

static const domt_h2_case frames[] = {
    {"generic/1/1", "the first frame is that of SETTINGS",
     STEPS({.kind = DOMT_H2_RAW, .front = BYTES(PREFACE)},
           FRAME(SETTINGS, 0, 0, "\0\4\0\0\xff\xff")),
     OUTCOME(DOMT_H2_SETS | DOMT_H2_FIRST_FRAME), true},
    {"generic/2/1", "PRIORITY on an idle stream",
     STEPS(FRAME(PRIORITY, 0, 1, NO_DEPENDENCY), PING()), PONG, false},
    {"generic/2/2", "WINDOW_UPDATE on a half-closed stream",
     STEPS(NO_WINDOW, HEAD(1, WHOLE, GET), FRAME(WINDOW_UPDATE, 0, 1, ONE_BYTE)),
     OUTCOME(DOMT_H2_SENDS), false},
    {"generic/2/3", "PRIORITY on a half-closed stream",
     STEPS(NO_WINDOW, HEAD(1, WHOLE, GET), FRAME(PRIORITY, 0, 1, NO_DEPENDENCY),
           FRAME(WINDOW_UPDATE, 0, 1, ONE_BYTE)),
     OUTCOME(DOMT_H2_SENDS), false},
    {"generic/2/4", "RST_STREAM on a half-closed stream",
     STEPS(HEAD(1, WHOLE, GET), FRAME(RST_STREAM, 0, 1, "\0\0\0\x8"), PING()),
     OUTCOME(DOMT_H2_PONG | DOMT_H2_CLOSED), false},
    {"generic/2/5", "PRIORITY on a closed stream",
     STEPS(HEAD(1, WHOLE, GET), HEAR(OUTCOME(DOMT_H2_ENDS_STREAM)),
           FRAME(PRIORITY, 0, 1, NO_DEPENDENCY), PING()),
     PONG, false},
    {"generic/3.1/1", "DATA", STEPS(HEAD(1, END_HEADERS, POST), DATA(1, END_STREAM, "test")),
     ANSWERED, false},
    {"generic/3.1/2", "DATA in two frames",
     STEPS(HEAD(1, END_HEADERS, POST), DATA(1, 0, "test"), DATA(1, END_STREAM, "test")), ANSWERED,
     false},
    {"generic/3.1/3", "DATA with padding",
     STEPS(HEAD(1, END_HEADERS, POST), DATA(1, END_STREAM | DOMT_H2_PADDED, "\6test\0\0\0\0\0\0")),
     ANSWERED, false},
    {"generic/3.2/1", "HEADERS", STEPS(HEAD(1, WHOLE, GET)), ANSWERED, false},
    {"generic/3.2/2", "HEADERS with padding",
     STEPS(SAY(HEADERS, WHOLE | DOMT_H2_PADDED, 1, .front = BYTES("\x8"), .fields = GET,
               .back = BYTES("\0\0\0\0\0\0\0\0"))),
     ANSWERED, false},
    {"generic/3.2/3", "HEADERS with a priority",
     STEPS(SAY(HEADERS, WHOLE | DOMT_H2_PRIORITIZED, 1, .front = BYTES(NO_DEPENDENCY),
               .fields = GET)),
     ANSWERED, false},
    {"generic/3.3/1", "PRIORITY with weight 1",
     STEPS(FRAME(PRIORITY, 0, 1, "\0\0\0\0\0"), HEAD(1, WHOLE, GET)), ANSWERED, false},
    {"generic/3.3/2", "PRIORITY with weight 256",
     STEPS(FRAME(PRIORITY, 0, 1, NO_DEPENDENCY), HEAD(1, WHOLE, GET)), ANSWERED, false},
    {"generic/3.3/3", "PRIORITY with a dependency",
     STEPS(FRAME(PRIORITY, 0, 3, "\0\0\0\1\0"), HEAD(1, WHOLE, GET)), ANSWERED, false},
    {"generic/3.3/4", "PRIORITY that is exclusive",
     STEPS(FRAME(PRIORITY, 0, 1, "\x80\0\0\0\0"), HEAD(1, WHOLE, GET)), ANSWERED, false},
    {"generic/3.3/5", "PRIORITY of an idle stream, then HEADERS of a lower one",
     STEPS(FRAME(PRIORITY, 0, 3, NO_DEPENDENCY), HEAD(1, WHOLE, GET)), ANSWERED, false},
    {"generic/3.4/1", "RST_STREAM",
     STEPS(HEAD(1, END_HEADERS, GET), FRAME(RST_STREAM, 0, 1, "\0\0\0\x8"), PING()),
     OUTCOME(DOMT_H2_PONG | DOMT_H2_CLOSED), false},
    {"generic/3.5/1", "SETTINGS with all that are known",
     STEPS(FRAME(SETTINGS, 0, 0,
                 "\0\1\0\0\x10\0"
                 "\0\2\0\0\0\1"
                 "\0\3\0\0\0\x64"
                 "\0\4\0\0\xff\xff"
                 "\0\5\0\0\x40\0"
                 "\0\6\0\0\0\x64")),
     OUTCOME(DOMT_H2_ACKNOWLEDGES), false},
    {"generic/3.7/1", "PING", STEPS(PING()), PONG, false},
    {"generic/3.8/1", "GOAWAY", STEPS(FRAME(GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0judge")), CLOSED, false},
    {"generic/3.9/1", "WINDOW_UPDATE of the connection",
     STEPS(FRAME(WINDOW_UPDATE, 0, 0, ONE_BYTE), PING()), PONG, false},
    {"generic/3.9/2", "WINDOW_UPDATE of a stream",
     STEPS(HEAD(1, WHOLE, GET), FRAME(WINDOW_UPDATE, 0, 1, ONE_BYTE)), ANSWERED, false},
    {"generic/3.10/1", "CONTINUATION",
     STEPS(SAY(HEADERS, END_STREAM, 1, .fields = GET, .to = 5),
           SAY(CONTINUATION, END_HEADERS, 1, .fields = GET, .from = 5)),
     ANSWERED, false},
    {"generic/3.10/2", "CONTINUATION in two frames",
     STEPS(SAY(HEADERS, END_STREAM, 1, .fields = GET, .to = 5),
           SAY(CONTINUATION, 0, 1, .fields = GET, .from = 5, .to = 10),
           SAY(CONTINUATION, END_HEADERS, 1, .fields = GET, .from = 10)),
     ANSWERED, false},
    {"generic/4/1", "a request GET", STEPS(HEAD(1, WHOLE, GET)), ANSWERED, false},
    {"generic/4/2", "a request HEAD",
     STEPS(HEAD(1, WHOLE, ":method: HEAD\n:scheme: http\n:path: @P\n:authority: @A\n")), ANSWERED,
     false},
    {"generic/4/3", "a request POST",
     STEPS(HEAD(1, END_HEADERS, POST), DATA(1, END_STREAM, "test")), ANSWERED, false},
    {"generic/4/4", "a request POST with trailers",
     STEPS(HEAD(1, END_HEADERS, POST "trailer: x-test\n"), DATA(1, 0, "test"),
           HEAD(1, WHOLE, "x-test: ok\n")),
     ANSWERED, false},
};

/* A request with one more field, in a form of HPACK. Index 58 is user-agent. The Huffman codes of
 * "user-agent", "x-test" and "judge" are those of RFC 7541, appendix B. */
#define FIELD(place, name, bytes)                                                                  \
    {                                                                                              \
        place, name, STEPS(SAY(HEADERS, WHOLE, 1, .fields = GET, .back = BYTES(bytes))), ANSWERED, \
            false                                                                                  \
    }
#define UPDATE(place, name, bytes)                                                                 \
    {                                                                                              \
        place, name, STEPS(SAY(HEADERS, WHOLE, 1, .front = BYTES(bytes), .fields = GET)),          \
            ANSWERED, false                                                                        \
    }
#define JUDGE         "\5judge"
#define JUDGEH        "\x84\xe9\x6c\x93\x17"
#define GENERIC_XTEST "\6x-test"
#define XTESTH        "\x85\xf2\xb2\x4a\x84\xff"

static const domt_h2_case forms[] = {
    FIELD("generic/5/1", "an indexed field", "\xba"),
    FIELD("generic/5/2", "with indexing, indexed name", "\x7a" JUDGE),
    FIELD("generic/5/3", "with indexing, indexed name, Huffman", "\x7a" JUDGEH),
    FIELD("generic/5/4", "with indexing, new name", "\x40" GENERIC_XTEST JUDGE),
    FIELD("generic/5/5", "with indexing, new name, Huffman", "\x40" XTESTH JUDGEH),
    FIELD("generic/5/6", "without indexing, indexed name", "\x0f\x2b" JUDGE),
    FIELD("generic/5/7", "without indexing, indexed name, Huffman", "\x0f\x2b" JUDGEH),
    FIELD("generic/5/8", "without indexing, new name", "\0" GENERIC_XTEST JUDGE),
    FIELD("generic/5/9", "without indexing, new name, Huffman", "\0" XTESTH JUDGEH),
    FIELD("generic/5/10", "never indexed, indexed name", "\x1f\x2b" JUDGE),
    FIELD("generic/5/11", "never indexed, indexed name, Huffman", "\x1f\x2b" JUDGEH),
    FIELD("generic/5/12", "never indexed, new name", "\x10" GENERIC_XTEST JUDGE),
    FIELD("generic/5/13", "never indexed, new name, Huffman", "\x10" XTESTH JUDGEH),
    UPDATE("generic/5/14", "an update of the size of the table", "\x20"),
    UPDATE("generic/5/15", "two updates of the size of the table", "\x20\x3f\xe1\x1f"),
};

DOMT_TEST(h2spec_ordinary_frames_are_accepted)
{
    domt_h2spec_run_cases(frames, sizeof frames / sizeof frames[0], NULL);
}

DOMT_TEST(h2spec_fields_in_every_form_are_accepted)
{
    domt_h2spec_run_cases(forms, sizeof forms / sizeof forms[0], NULL);
}

DOMT_SUITE(300)
