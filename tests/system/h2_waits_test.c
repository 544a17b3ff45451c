/* Time-outs of the example `web` for peers that speak HTTP/2 and let the server wait: for a window,
 * for the rest of a body or of a head, for the rest of the preface, and for any byte at all. */
#include "tests/support/suite.h"
#include "tests/system/h2spec.h"

#define NO_WINDOW FRAME(SETTINGS, 0, 0, "\0\4\0\0\0\0")
#define RAW(bytes)                                                                                 \
    {                                                                                              \
        .kind = DOMT_H2_RAW, .front = BYTES(bytes)                                                 \
    }
#define RESET                                                                                      \
    {                                                                                              \
        .kinds = DOMT_H2_RESETS, .codes = ANY_CODE                                                 \
    }

static const domt_h2_case waits[] = {
    {"waits/1", "an answer waits for a window, and the connection goes on",
     STEPS(NO_WINDOW, HEAD(1, WHOLE, GET), HEAR(RESET), PING()), PONG, false},
    {"waits/2", "an answer waits behind its first byte",
     STEPS(FRAME(SETTINGS, 0, 0, "\0\4\0\0\0\1"), HEAD(1, WHOLE, GET)), RESET, false},
    {"waits/3",
     "the rest of a body does not come",
     STEPS(HEAD(1, END_HEADERS,
                ":method: PUT\n:scheme: http\n:path: /kv/a\n:authority: @A\ncontent-length: 9\n"),
           DATA(1, 0, "a part")),
     {.kinds = DOMT_H2_ANSWERS | DOMT_H2_RESETS, .codes = ANY_CODE},
     false},
    {"waits/4", "the rest of a frame of fields does not come",
     STEPS(RAW("\0\0\x64\1\5\0\0\0\1\x82\x86")), CONNECTION_ERROR(ANY_CODE), false},
    {"waits/5", "the rest of a block of fields does not come", STEPS(HEAD(1, END_STREAM, GET)),
     CONNECTION_ERROR(ANY_CODE), false},
    {"waits/6", "the rest of the preface does not come", STEPS(RAW("PRI * HTTP/2.0\r\n\r\nSM")),
     CLOSED, true},
    {"waits/7", "the settings behind the preface do not come",
     STEPS(RAW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")), CLOSED, true},
    {"waits/8", "nothing is asked for", STEPS(PING(), HEAR(PONG)), CLOSED, false},
};

DOMT_TEST(h2_peers_that_let_the_server_wait_are_ended)
{
    domt_h2spec_run_cases(
        waits, sizeof waits / sizeof waits[0],
        (const char *const[]){"channel.sendTimeout=500ms", "channel.minRateGrace=300ms",
                              "channel.headTimeout=500ms", "channel.idleTimeout=1500ms",
                              "channel.firstByteTimeout=500ms", NULL});
}

DOMT_SUITE(300)
