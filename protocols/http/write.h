/* Writes heads: text goes to a place whose room was made before, and what frames a message is
 * decided here, never by the fields of the user. */
#ifndef DOMI_PROTOCOLS_HTTP_WRITE_H
#define DOMI_PROTOCOLS_HTTP_WRITE_H

#include "protocols/http/http.h"

#include <errno.h>
#include <string.h>

#define DOMI_HTTP_DIGITS_MAX 20u /* digits of a number */
#define DOMI_HTTP_DATE_SIZE  37u /* "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" */

/* The most bytes of a head without its fields, target, host and media type. */
#define DOMI_HTTP_HEAD_ROOM 320u

/* Fields up to this size and a body up to this size are copied behind the head. */
#define DOMI_HTTP_COPIED_MAX 2048u

static inline char *domi_http_put(char *to, const char *text, size_t size)
{
    memcpy(to, text, size);
    return to + size;
}

/* Put a constant. */
#define DOMI_HTTP_PUT(to, text) domi_http_put(to, text, sizeof(text) - 1)

static inline char *domi_http_put_number(char *to, uint64_t number)
{
    char digits[DOMI_HTTP_DIGITS_MAX];
    char *from = digits + sizeof digits;

    do
        *--from = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    return domi_http_put(to, from, (size_t)(digits + sizeof digits - from));
}

/* Let an appender fail with -EINVAL, unless it has failed already. Returns its error. */
static inline int domi_http_fail_fields(domus_appender *fields)
{
    if (fields->error == 0) {
        domus_append_drop(fields);
        fields->error = -EINVAL;
    }
    return fields->error;
}

/* Put the field Date, of this second (date.c). */
char *domi_http_put_date(char *to);

/* Put "HTTP/1.1 200 OK\r\n"; the status is one that may be sent. */
char *domi_http_put_status(char *to, unsigned status);

/* Fields that a message which is to be sent has. */
enum {
    DOMI_HTTP_FIELD_HOST = 1,
    DOMI_HTTP_FIELD_DATE = 2,
    DOMI_HTTP_FIELD_EXPECT = 4,
};

/* Check fields before they are sent: lines that are fields and nothing else, none of which frames
 * the message. Returns what they have; -EINVAL (check.c). */
int domi_http_check_fields(domus_slice fields);

/* Check trailers in the same way. Returns 0; -EINVAL. */
static inline int domi_http_check_trailers(domus_slice fields)
{
    int has = domi_http_check_fields(fields);

    return has < 0 || (has & DOMI_HTTP_FIELD_HOST) != 0 ? -EINVAL : 0;
}

/* Whether the peer of a request takes fields behind the body of its answer. */
static inline bool domi_http_may_have_trailers(uint64_t id)
{
    const uint64_t both = DOMI_HTTP_ID_NEW | DOMI_HTTP_ID_TRAILERS;

    return (id & both) == both;
}

/* The word of a stream (domus_wire_stream()): how its pieces leave, and how many bytes are left of
 * a known length. */
#define DOMI_HTTP_STREAM_CHUNKS  (UINT64_C(1) << 60)
#define DOMI_HTTP_STREAM_COUNTED (UINT64_C(2) << 60)
#define DOMI_HTTP_STREAM_PLAIN   (UINT64_C(3) << 60) /* up to the end of the connection */
#define DOMI_HTTP_STREAM_NONE    (UINT64_C(4) << 60) /* an answer to HEAD: nothing leaves */
#define DOMI_HTTP_STREAM_GZIP                                                                      \
    (UINT64_C(5) << 60) /* in chunks, by the deflater in the other bits                            \
                         */
#define DOMI_HTTP_STREAM_TUNNEL (UINT64_C(6) << 60) /* as it is, once the tunnel is open */
#define DOMI_HTTP_STREAM_HOW    (UINT64_C(15) << 60)
#define DOMI_HTTP_LENGTH_MAX    (DOMI_HTTP_STREAM_CHUNKS - 1)

/* Append a piece of a stream, its end, or its trailers. Return 0, or a negative
 * errno (pieces.c). */
int domi_http_encode_piece(domus_wire *wire, uint64_t *stream, const domus_piece *piece);
int domi_http_encode_trailers(domus_wire *wire, uint64_t *stream,
                              const domus_http_trailers *trailers);

/* A stream is over, and has not reached its end: give back what it has. */
void domi_http_drop_stream(uint64_t *stream);

#endif
