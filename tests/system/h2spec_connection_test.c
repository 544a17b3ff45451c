/* Sections 3 to 7 of h2spec's list "http2": the preface, the format of frames, the states and
 * numbers of streams, errors in each type of frame, and windows. */
#include "tests/support/suite.h"
#include "tests/system/h2spec.h"

/* Sections 6 and 7 of h2spec's list "http2": errors in each type of frame, and how the server
 * respects its windows. */

#define CANCEL        "\0\0\0\x8"
#define FRAME_SIZE    CONNECTION_ERROR(CODE(FRAME_SIZE_ERROR))
#define PROTOCOL      CONNECTION_ERROR(CODE(PROTOCOL_ERROR))
#define WINDOW(bytes) FRAME(SETTINGS, 0, 0, "\0\4" bytes)
#define TAKEN         HEAR(OUTCOME(DOMT_H2_ACKNOWLEDGES))
#define ONE_BYTE                                                                                   \
    {                                                                                              \
        .kinds = DOMT_H2_SENDS, .size = 1                                                          \
    }

static const domt_h2_case frames[] = {
    {"http2/6.1/1", "DATA on stream 0", STEPS(DATA(0, END_STREAM, "test")), PROTOCOL, false},
    {"http2/6.1/2", "DATA on a half-closed stream",
     STEPS(HEAD(1, WHOLE, POST), DATA(1, END_STREAM, "test")), STREAM_ERROR(CODE(STREAM_CLOSED)),
     false},
    {"http2/6.1/3", "DATA with more padding than there is",
     STEPS(HEAD(1, END_HEADERS, POST "content-length: 4\n"),
           DATA(1, END_STREAM | DOMT_H2_PADDED, "\6test")),
     PROTOCOL, false},
    {"http2/6.2/1", "HEADERS without their end, then PRIORITY",
     STEPS(HEAD(1, 0, GET), FRAME(PRIORITY, 0, 1, NO_DEPENDENCY), MORE(1, END_HEADERS, LONG_FIELD)),
     PROTOCOL, false},
    {"http2/6.2/2", "HEADERS without their end, then others",
     STEPS(HEAD(1, 0, GET), HEAD(3, WHOLE, GET), MORE(1, END_HEADERS, LONG_FIELD)), PROTOCOL,
     false},
    {"http2/6.2/3", "HEADERS on stream 0", STEPS(HEAD(0, WHOLE, GET)), PROTOCOL, false},
    {"http2/6.2/4", "HEADERS with more padding than there is",
     STEPS(SAY(HEADERS, WHOLE | DOMT_H2_PADDED, 1, .front = BYTES("\xff"), .fields = GET)),
     STREAM_ERROR(CODE(PROTOCOL_ERROR)), false},
    {"http2/6.3/1", "PRIORITY on stream 0", STEPS(FRAME(PRIORITY, 0, 0, NO_DEPENDENCY)), PROTOCOL,
     false},
    {"http2/6.3/2", "PRIORITY of 4 bytes",
     STEPS(HEAD(1, WHOLE, GET), FRAME(PRIORITY, 0, 1, "\x80\0\0\1")),
     STREAM_ERROR(CODE(FRAME_SIZE_ERROR)), false},
    {"http2/6.3/3", "PRIORITY of an idle stream, then HEADERS of a lower one",
     STEPS(FRAME(PRIORITY, 0, 3, NO_DEPENDENCY), HEAD(1, WHOLE, GET)), ANSWERED, false},
    {"http2/6.4/1", "RST_STREAM on stream 0", STEPS(FRAME(RST_STREAM, 0, 0, CANCEL)), PROTOCOL,
     false},
    {"http2/6.4/2", "RST_STREAM on an idle stream", STEPS(FRAME(RST_STREAM, 0, 1, CANCEL)),
     PROTOCOL, false},
    {"http2/6.4/3", "RST_STREAM of 3 bytes",
     STEPS(HEAD(1, WHOLE, GET), FRAME(RST_STREAM, 0, 1, "\0\0\0")),
     STREAM_ERROR(CODE(FRAME_SIZE_ERROR)), false},
    {"http2/6.5/1", "SETTINGS with ACK and a payload", STEPS(FRAME(SETTINGS, DOMT_H2_ACK, 0, "\0")),
     FRAME_SIZE, false},
    {"http2/6.5/2", "SETTINGS on stream 1", STEPS(FRAME(SETTINGS, 0, 1, "\0\3\0\0\0\x64")),
     PROTOCOL, false},
    {"http2/6.5/3", "SETTINGS of 3 bytes", STEPS(FRAME(SETTINGS, 0, 0, "\0\3\0")),
     STREAM_ERROR(CODE(FRAME_SIZE_ERROR) | CODE(PROTOCOL_ERROR)), false},
    {"http2/6.5.2/1", "ENABLE_PUSH of 2", STEPS(FRAME(SETTINGS, 0, 0, "\0\2\0\0\0\2")), PROTOCOL,
     false},
    {"http2/6.5.2/2", "INITIAL_WINDOW_SIZE of 2^31", STEPS(WINDOW("\x80\0\0\0")),
     CONNECTION_ERROR(CODE(FLOW_CONTROL_ERROR)), false},
    {"http2/6.5.2/3", "MAX_FRAME_SIZE of 2^14-1", STEPS(FRAME(SETTINGS, 0, 0, "\0\5\0\0\x3f\xff")),
     PROTOCOL, false},
    {"http2/6.5.2/4", "MAX_FRAME_SIZE of 2^24", STEPS(FRAME(SETTINGS, 0, 0, "\0\5\1\0\0\0")),
     PROTOCOL, false},
    {"http2/6.5.2/5", "a setting that is unknown",
     STEPS(FRAME(SETTINGS, 0, 0, "\0\xff\0\0\0\1"), PING()), PONG, false},
    {"http2/6.5.3/2", "SETTINGS are acknowledged", STEPS(FRAME(SETTINGS, 0, 0, "\0\2\0\0\0\0")),
     OUTCOME(DOMT_H2_ACKNOWLEDGES), false},
    {"http2/6.7/1", "PING is answered with its payload", STEPS(PING()), PONG, false},
    {"http2/6.7/2", "PING with ACK is not answered",
     STEPS(FRAME(PING, DOMT_H2_ACK, 0, "no reply"), PING()), PONG, false},
    {"http2/6.7/3", "PING on stream 1", STEPS(FRAME(PING, 0, 1, DOMT_H2_PING_OURS)), PROTOCOL,
     false},
    {"http2/6.7/4", "PING of 6 bytes", STEPS(FRAME(PING, 0, 0, "\0\0\0\0\0\0")), FRAME_SIZE, false},
    {"http2/6.8/1", "GOAWAY on stream 1", STEPS(FRAME(GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0")), PROTOCOL,
     false},
    {"http2/6.9/1", "WINDOW_UPDATE by 0", STEPS(FRAME(WINDOW_UPDATE, 0, 0, "\0\0\0\0")), PROTOCOL,
     false},
    {"http2/6.9/2", "WINDOW_UPDATE by 0, on a stream",
     STEPS(HEAD(1, END_HEADERS, GET), FRAME(WINDOW_UPDATE, 0, 1, "\0\0\0\0")),
     STREAM_ERROR(CODE(PROTOCOL_ERROR)), false},
    {"http2/6.9/3", "WINDOW_UPDATE of 3 bytes", STEPS(FRAME(WINDOW_UPDATE, 0, 0, "\0\0\1")),
     FRAME_SIZE, false},
    {"http2/7/1", "GOAWAY with a code that is unknown",
     STEPS(FRAME(GOAWAY, 0, 0, "\0\0\0\0\0\0\0\xff")), CLOSED, false},
    {"http2/7/2", "RST_STREAM with a code that is unknown",
     STEPS(HEAD(1, END_HEADERS, POST), FRAME(RST_STREAM, 0, 1, "\0\0\0\xff"), PING()), PONG, false},
};

static const domt_h2_case windows[] = {
    {"http2/6.5.3/1", "of two settings of one name the last one holds",
     STEPS(FRAME(SETTINGS, 0, 0, "\0\4\0\0\0\x64\0\4\0\0\0\1"), TAKEN, HEAD(1, WHOLE, GET)),
     ONE_BYTE, false},
    {"http2/6.9.1/1", "a window of 1 byte lets 1 byte through",
     STEPS(WINDOW("\0\0\0\1"), TAKEN, HEAD(1, WHOLE, GET)), ONE_BYTE, false},
    {"http2/6.9.1/2",
     "the window of the connection grows above 2^31-1",
     STEPS(FRAME(WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff"),
           FRAME(WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff")),
     {.kinds = DOMT_H2_GOES_AWAY, .codes = CODE(FLOW_CONTROL_ERROR)},
     false},
    {"http2/6.9.1/3",
     "the window of a stream grows above 2^31-1",
     STEPS(HEAD(1, END_HEADERS, POST), FRAME(WINDOW_UPDATE, 0, 1, "\x7f\xff\xff\xff"),
           FRAME(WINDOW_UPDATE, 0, 1, "\x7f\xff\xff\xff")),
     {.kinds = DOMT_H2_RESETS, .codes = CODE(FLOW_CONTROL_ERROR)},
     false},
    {"http2/6.9.2/1", "the initial window grows behind HEADERS",
     STEPS(WINDOW("\0\0\0\0"), TAKEN, HEAD(1, WHOLE, GET), WINDOW("\0\0\0\1"), TAKEN), ONE_BYTE,
     false},
    {"http2/6.9.2/2", "a window becomes negative",
     STEPS(WINDOW("\0\0\0\3"), TAKEN, HEAD(1, WHOLE, GET), HEAR(OUTCOME(DOMT_H2_SENDS)),
           WINDOW("\0\0\0\2"), TAKEN, FRAME(WINDOW_UPDATE, 0, 1, "\0\0\0\2")),
     ONE_BYTE, false},
    {"http2/6.9.2/3", "an initial window above 2^31-1", STEPS(WINDOW("\x80\0\0\0")),
     CONNECTION_ERROR(CODE(FLOW_CONTROL_ERROR)), false},
};

/* A block of fields that continues in CONTINUATION frames. */
#define LONG_MORE(flags) MORE(1, flags, LONG_FIELD)

static const domt_h2_case continuations[] = {
    {"http2/6.10/1", "HEADERS that go on twice",
     STEPS(HEAD(1, END_STREAM, GET), LONG_MORE(0), LONG_MORE(END_HEADERS)), ANSWERED, false},
    {"http2/6.10/2", "DATA behind a CONTINUATION without the end",
     STEPS(HEAD(1, 0, POST), LONG_MORE(0), DATA(1, END_STREAM, "test")), PROTOCOL, false},
    {"http2/6.10/3", "CONTINUATION on stream 0",
     STEPS(HEAD(1, END_STREAM, GET), MORE(0, END_HEADERS, LONG_FIELD)), PROTOCOL, false},
    {"http2/6.10/4", "CONTINUATION behind the end in HEADERS",
     STEPS(HEAD(1, WHOLE, GET), LONG_MORE(END_HEADERS)), PROTOCOL, false},
    {"http2/6.10/5", "CONTINUATION behind the end in CONTINUATION",
     STEPS(HEAD(1, END_STREAM, GET), LONG_MORE(END_HEADERS), LONG_MORE(END_HEADERS)), PROTOCOL,
     false},
    {"http2/6.10/6", "CONTINUATION behind DATA",
     STEPS(HEAD(1, END_HEADERS, POST), DATA(1, END_STREAM, "test"), LONG_MORE(END_HEADERS)),
     PROTOCOL, false},
};

DOMT_TEST(frames_are_handled_as_h2spec_wants)
{
    domt_h2spec_run_cases(frames, sizeof frames / sizeof frames[0], NULL);
}

DOMT_TEST(windows_are_handled_as_h2spec_wants)
{
    domt_h2spec_run_cases(windows, sizeof windows / sizeof windows[0], NULL);
}

DOMT_TEST(continuations_are_handled_as_h2spec_wants)
{
    domt_h2spec_run_cases(continuations, sizeof continuations / sizeof continuations[0], NULL);
}

/* --- h2spec streams --------------------------------------------------------------------------- */

/* Sections 3 to 5 of h2spec's list "http2": the preface, the format of frames, and the states and
 * numbers of streams. */

#define UNKNOWN FRAME(UNKNOWN_TYPE, 0, 0, "\0\0\0\0\0\0\0\0")

/* The longest frame that this test can send. Servers that allow longer frames are not tested. */
#define SENDABLE_MAX 32768u

static bool add_data_of_largest_frame(const domt_h2 *h2, domt_h2_bytes *to, uint32_t more)
{
    static const uint8_t zeros[SENDABLE_MAX + 1];
    uint32_t size = h2->settings[DOMT_H2_MAX_FRAME];

    if (size > SENDABLE_MAX)
        return false;
    domt_h2_add_headers_frame(to, END_HEADERS, 1, POST);
    domt_h2_add_frame(to, DOMT_H2_DATA, END_STREAM, 1, zeros, size + more);
    return true;
}

static bool add_largest_data(const domt_h2 *h2, domt_h2_bytes *to)
{
    return add_data_of_largest_frame(h2, to, 0);
}

static bool add_too_large_data(const domt_h2 *h2, domt_h2_bytes *to)
{
    return add_data_of_largest_frame(h2, to, 1);
}

static bool add_too_large_head(const domt_h2 *h2, domt_h2_bytes *to)
{
    if (h2->settings[DOMT_H2_MAX_FRAME] > SENDABLE_MAX)
        return false;
    domt_h2_add_headers_frame(to, WHOLE, 1,
                              GET "x-dummy0: %10000\nx-dummy1: %10000\nx-dummy2: %10000\n"
                                  "x-dummy3: %4000\n");
    return true;
}

/* Open one stream more than the server allows at a time; the server can end none of them. */
static bool add_too_many_streams(const domt_h2 *h2, domt_h2_bytes *to)
{
    if (!h2->has[DOMT_H2_MAX_STREAMS] || h2->settings[DOMT_H2_MAX_STREAMS] > 500)
        return false;
    domt_h2_add_settings_frame(to, DOMT_H2_INITIAL_WINDOW, 0);
    for (uint32_t i = 0; i <= h2->settings[DOMT_H2_MAX_STREAMS]; i++)
        domt_h2_add_headers_frame(to, WHOLE, 2 * i + 1, GET);
    return true;
}

static const domt_h2_case frames_streams[] = {
    {"http2/3.5/1", "the server's preface comes", STEPS(PING()), PONG, false},
    {"http2/3.5/2", "a preface that is none",
     STEPS({.kind = DOMT_H2_RAW, .front = BYTES("NO PREFACE OF A CONNECTION\r\n\r\n")}), CLOSED,
     true},
    {"http2/4.1/1", "a frame of an unknown type", STEPS(UNKNOWN, PING()), PONG, false},
    {"http2/4.1/2", "flags that are not defined", STEPS(FRAME(PING, 0x16, 0, DOMT_H2_PING_OURS)),
     PONG, false},
    {"http2/4.1/3", "the bit that is reserved",
     STEPS(FRAME(PING, 0x16, 0x80000000u, DOMT_H2_PING_OURS)), PONG, false},
    {"http2/4.2/1", "DATA as large as allowed", STEPS(CALL(add_largest_data)), ANSWERED, false},
    {"http2/4.2/2", "DATA that is larger", STEPS(CALL(add_too_large_data)),
     STREAM_ERROR(CODE(FRAME_SIZE_ERROR)), false},
    {"http2/4.2/3", "HEADERS that are larger", STEPS(CALL(add_too_large_head)),
     CONNECTION_ERROR(CODE(FRAME_SIZE_ERROR)), false},
    {"http2/4.3/1", "a literal that ends behind its first byte",
     STEPS(FRAME(HEADERS, WHOLE, 1, "\x40")), CONNECTION_ERROR(CODE(COMPRESSION_ERROR)), false},
    {"http2/4.3/2", "PRIORITY within a block of fields",
     STEPS(HEAD(1, 0, GET), FRAME(PRIORITY, 0, 1, NO_DEPENDENCY), MORE(1, END_HEADERS, LONG_FIELD)),
     CONNECTION_ERROR(CODE(PROTOCOL_ERROR)), false},
    {"http2/4.3/3", "HEADERS of another stream within a block of fields",
     STEPS(HEAD(1, 0, GET), HEAD(3, WHOLE, GET), MORE(1, END_HEADERS, LONG_FIELD)),
     CONNECTION_ERROR(CODE(PROTOCOL_ERROR)), false},
    {"http2/5.5/1", "an extension that is unknown", STEPS(UNKNOWN, PING()), PONG, false},
    {"http2/5.5/2", "an extension that is unknown, within a block of fields",
     STEPS(HEAD(1, END_STREAM, GET), UNKNOWN, MORE(1, END_HEADERS, LONG_FIELD)),
     CONNECTION_ERROR(CODE(PROTOCOL_ERROR)), false},
};

/* First steps of cases whose stream the client has half closed, has reset, or is closed. */
#define HALF_CLOSED HEAD(1, WHOLE, GET)
#define RESET       HEAD(1, END_HEADERS, GET), FRAME(RST_STREAM, 0, 1, CANCEL)
#define ENDED       HEAD(1, WHOLE, GET), HEAR(OUTCOME(DOMT_H2_ENDS_STREAM))

static const domt_h2_case streams[] = {
    {"http2/5.1/1", "idle: DATA", STEPS(DATA(1, END_STREAM, "test")),
     CONNECTION_ERROR(CODE(PROTOCOL_ERROR)), false},
    {"http2/5.1/2", "idle: RST_STREAM", STEPS(FRAME(RST_STREAM, 0, 1, CANCEL)),
     CONNECTION_ERROR(CODE(PROTOCOL_ERROR)), false},
    {"http2/5.1/3", "idle: WINDOW_UPDATE", STEPS(FRAME(WINDOW_UPDATE, 0, 1, "\0\0\0\x64")),
     CONNECTION_ERROR(CODE(PROTOCOL_ERROR)), false},
    {"http2/5.1/4", "idle: CONTINUATION", STEPS(MORE(1, END_HEADERS, GET)),
     CONNECTION_ERROR(CODE(PROTOCOL_ERROR)), false},
    {"http2/5.1/5", "half closed: DATA", STEPS(HALF_CLOSED, DATA(1, END_STREAM, "test")),
     STREAM_ERROR(CODE(STREAM_CLOSED)), false},
    {"http2/5.1/6", "half closed: HEADERS", STEPS(HALF_CLOSED, HEAD(1, WHOLE, GET)),
     STREAM_ERROR(CODE(STREAM_CLOSED)), false},
    {"http2/5.1/7", "half closed: CONTINUATION", STEPS(HALF_CLOSED, MORE(1, END_HEADERS, GET)),
     STREAM_ERROR(CODE(STREAM_CLOSED) | CODE(PROTOCOL_ERROR)), false},
    {"http2/5.1/8", "reset: DATA", STEPS(RESET, DATA(1, END_STREAM, "test")),
     STREAM_ERROR(CODE(STREAM_CLOSED)), false},
    {"http2/5.1/9", "reset: HEADERS", STEPS(RESET, HEAD(1, WHOLE, GET)),
     STREAM_ERROR(CODE(STREAM_CLOSED)), false},
    {"http2/5.1/10", "reset: CONTINUATION", STEPS(RESET, MORE(1, END_HEADERS, LONG_FIELD)),
     STREAM_ERROR(CODE(STREAM_CLOSED) | CODE(PROTOCOL_ERROR)), false},
    {"http2/5.1/11", "closed: DATA", STEPS(ENDED, DATA(1, END_STREAM, "test")),
     CONNECTION_ERROR(CODE(STREAM_CLOSED)), false},
    {"http2/5.1/12", "closed: HEADERS", STEPS(ENDED, HEAD(1, WHOLE, GET)),
     CONNECTION_ERROR(CODE(STREAM_CLOSED)), false},
    {"http2/5.1/13", "closed: CONTINUATION", STEPS(ENDED, MORE(1, END_HEADERS, LONG_FIELD)),
     CONNECTION_ERROR(CODE(STREAM_CLOSED) | CODE(PROTOCOL_ERROR)), false},
    {"http2/5.1.1/1", "an even number", STEPS(HEAD(2, WHOLE, GET)),
     CONNECTION_ERROR(CODE(PROTOCOL_ERROR)), false},
    {"http2/5.1.1/2", "a number smaller than the last one",
     STEPS(HEAD(5, WHOLE, GET), HEAD(3, WHOLE, GET)), CONNECTION_ERROR(CODE(PROTOCOL_ERROR)),
     false},
    {"http2/5.1.1/3", "the number of a half-closed stream",
     STEPS(HEAD(5, WHOLE, GET), HEAD(5, WHOLE, GET)), STREAM_ERROR(CODE(STREAM_CLOSED)), false},
    {"http2/5.1.2/1", "more streams than allowed", STEPS(CALL(add_too_many_streams)),
     STREAM_ERROR(CODE(PROTOCOL_ERROR) | CODE(REFUSED_STREAM)), false},
    {"http2/5.3.1/1", "HEADERS that depend on themselves",
     STEPS(SAY(HEADERS, WHOLE | DOMT_H2_PRIORITIZED, 1, .front = BYTES("\0\0\0\1\xff"),
               .fields = GET)),
     STREAM_ERROR(CODE(PROTOCOL_ERROR)), false},
    /* RFC 9113 has removed priorities, so a server may ignore them. */
    {"http2/5.3.1/2",
     "PRIORITY that depends on itself",
     STEPS(FRAME(PRIORITY, 0, 1, "\0\0\0\1\xff"), PING()),
     {.kinds = DOMT_H2_CLOSED | DOMT_H2_GOES_AWAY | DOMT_H2_RESETS | DOMT_H2_PONG,
      .codes = CODE(PROTOCOL_ERROR)},
     false},
    {"http2/5.4.1/1", "the connection is closed behind an error",
     STEPS(FRAME(PING, 0, 3, DOMT_H2_PING_OURS)), CLOSED, false},
    {"http2/5.4.1/2",
     "GOAWAY comes for an error",
     STEPS(FRAME(PING, 0, 3, DOMT_H2_PING_OURS)),
     {.kinds = DOMT_H2_GOES_AWAY, .codes = CODE(PROTOCOL_ERROR)},
     false},
};

DOMT_TEST(formats_of_frames_are_checked_as_h2spec_wants)
{
    domt_h2spec_run_cases(frames_streams, sizeof frames_streams / sizeof frames_streams[0], NULL);
}

DOMT_TEST(states_of_streams_are_checked_as_h2spec_wants)
{
    domt_h2spec_run_cases(streams, sizeof streams / sizeof streams[0], NULL);
}

DOMT_SUITE(300)
