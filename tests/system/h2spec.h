/* Cases after the public list of h2spec (github.com/summerwind/h2spec), in tables: the frames that
 * a client sends, and the allowed outcomes. The names of rows are the places in that list, whose
 * cases follow RFC 7540 and RFC 7541.
 *
 * As in h2spec, an error of the connection may be seen as its GOAWAY or as the end of the
 * connection, and an error of the connection may replace an error of a stream. Frames that say
 * nothing about the case are skipped. DOMT_H2_SAY=1 prints the outcome of each row. */
#ifndef DOMT_H2SPEC_H
#define DOMT_H2SPEC_H

#include "tests/system/h2.h"

/* Kinds of outcome, as bits. A case passes if one of its allowed outcomes comes. */
enum {
    DOMT_H2_CLOSED = 1u << 0,    /* the server closes the connection */
    DOMT_H2_GOES_AWAY = 1u << 1, /* the server sends GOAWAY with one of the outcome's codes */
    DOMT_H2_RESETS = 1u << 2,    /* the server sends RST_STREAM with one of the outcome's codes */
    DOMT_H2_ANSWERS = 1u << 3,   /* the server sends HEADERS on stream 1 */
    DOMT_H2_PONG = 1u << 4,      /* the server answers the ping of DOMT_H2_PING_OURS */
    DOMT_H2_SETS = 1u << 5,      /* the server sends SETTINGS without the flag ACK */
    DOMT_H2_ACKNOWLEDGES = 1u << 6, /* the server sends SETTINGS with the flag ACK */
    DOMT_H2_SENDS = 1u << 7,        /* the server sends DATA, of `size` bytes if that is not 0 */
    DOMT_H2_ENDS_STREAM = 1u << 8,  /* the server sends the last frame of an answer */
    DOMT_H2_FIRST_FRAME = 1u << 9,  /* further condition: the outcome is the very first frame */
};

typedef struct domt_h2_outcome {
    uint32_t kinds;
    uint32_t codes; /* allowed error codes, one bit for each */
    uint32_t size;
} domt_h2_outcome;

typedef struct domt_h2_text {
    const char *at;
    size_t size;
} domt_h2_text;

typedef enum domt_h2_step_kind {
    DOMT_H2_DONE, /* no step: marks the end of a case's steps */
    DOMT_H2_SAY,  /* send a frame whose payload is `front`, then the fields, then `back` */
    DOMT_H2_RAW,  /* send the bytes of `front` unchanged */
    DOMT_H2_HEAR, /* wait until the server has sent `outcome`, or fail */
    DOMT_H2_CALL, /* send bytes that a function adds; the function returns false to skip the case */
} domt_h2_step_kind;

typedef struct domt_h2_step {
    domt_h2_step_kind kind;
    uint8_t type, flags;
    uint32_t stream;
    domt_h2_text front;
    const char *fields;
    uint32_t from, to; /* which bytes of the block of fields are sent; `to` 0: up to its end */
    domt_h2_text back;
    domt_h2_outcome outcome;
    bool (*call)(const domt_h2 *h2, domt_h2_bytes *to);
} domt_h2_step;

typedef struct domt_h2_case {
    const char *place;
    const char *name;
    const domt_h2_step *steps;
    domt_h2_outcome outcome;
    bool is_bare; /* true: the connection begins without a preface */
} domt_h2_case;

/* Run the cases against the server under test, if there is one; the test fails if a case fails.
 * With settings, up to a NULL, only the example `web` is tested, which is started with them. */
void domt_h2spec_run_cases(const domt_h2_case *cases, size_t count, const char *const settings[]);

/* --- macros for the tables -------------------------------------------------------------------- */

#define BYTES(text)                                                                                \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }
#define SAY(type_, flags_, stream_, ...)                                                           \
    {                                                                                              \
        .kind = DOMT_H2_SAY, .type = DOMT_H2_##type_, .flags = (flags_), .stream = (stream_),      \
        __VA_ARGS__                                                                                \
    }
#define FRAME(type_, flags_, stream_, payload) SAY(type_, flags_, stream_, .front = BYTES(payload))
#define HEAD(stream_, flags_, fields_)         SAY(HEADERS, flags_, stream_, .fields = (fields_))
#define DATA(stream_, flags_, payload)         FRAME(DATA, flags_, stream_, payload)
#define MORE(stream_, flags_, text)            SAY(CONTINUATION, flags_, stream_, .fields = (text))
#define PING()                                 FRAME(PING, 0, 0, DOMT_H2_PING_OURS)
#define HEAR(...)                                                                                  \
    {                                                                                              \
        .kind = DOMT_H2_HEAR, .outcome = __VA_ARGS__                                               \
    }
#define CALL(function)                                                                             \
    {                                                                                              \
        .kind = DOMT_H2_CALL, .call = (function)                                                   \
    }
#define STEPS(...)                                                                                 \
    (const domt_h2_step[])                                                                         \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            .kind = DOMT_H2_DONE                                                                   \
        }                                                                                          \
    }

#define END_STREAM  DOMT_H2_END_STREAM
#define END_HEADERS DOMT_H2_END_HEADERS
#define WHOLE       (DOMT_H2_END_STREAM | DOMT_H2_END_HEADERS)
#define GET         DOMT_H2_GET
#define POST        DOMT_H2_POST

/* A line with a field of 4,000 bytes. */
#define LONG_FIELD "x-dummy0: %4000\n"

/* The payload of PRIORITY: no dependency, weight 256. */
#define NO_DEPENDENCY "\0\0\0\0\xff"

#define DOMT_H2_PING_OURS "h2 judge"

#define CODE(name) (1u << DOMT_H2_##name)
#define ANY_CODE   UINT32_MAX
#define CONNECTION_ERROR(codes_)                                                                   \
    {                                                                                              \
        .kinds = DOMT_H2_CLOSED | DOMT_H2_GOES_AWAY, .codes = (codes_)                             \
    }
#define STREAM_ERROR(codes_)                                                                       \
    {                                                                                              \
        .kinds = DOMT_H2_CLOSED | DOMT_H2_GOES_AWAY | DOMT_H2_RESETS, .codes = (codes_)            \
    }
#define OUTCOME(...)                                                                               \
    {                                                                                              \
        .kinds = (__VA_ARGS__)                                                                     \
    }
#define ANSWERED OUTCOME(DOMT_H2_ANSWERS)
#define PONG     OUTCOME(DOMT_H2_PONG)
#define CLOSED   OUTCOME(DOMT_H2_CLOSED)

#endif
