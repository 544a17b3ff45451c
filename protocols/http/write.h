/* Writes the heads of messages: their text is written where room was made before, and the fields
 * that frame a message are decided here, never by the user. */
#ifndef DOMI_PROTOCOLS_HTTP_WRITE_H
#define DOMI_PROTOCOLS_HTTP_WRITE_H

#include "protocols/http/http.h"

#include <errno.h>
#include <string.h>

#define DOMI_HTTP_DIGITS_MAX 20u /* digits of a number of 64 bits, at most */
/* bytes of the field "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" */
#define DOMI_HTTP_DATE_SIZE 37u

/* Bytes of a head without its fields, target, host and media type, at most. */
#define DOMI_HTTP_HEAD_ROOM 320u

/* Bytes of fields, or of a body, that are copied behind the head, at most; longer ones are sent
 * from where they lie. */
#define DOMI_HTTP_COPIED_MAX 2048u

static inline char *domi_http_put_bytes(char *to, const char *text, size_t size)
{
    memcpy(to, text, size);
    return to + size;
}

/* Write a constant text to `to`. Returns where it ends. */
#define DOMI_HTTP_PUT(to, text) domi_http_put_bytes(to, text, sizeof(text) - 1)

static inline char *domi_http_put_decimal_number(char *to, uint64_t number)
{
    char digits[DOMI_HTTP_DIGITS_MAX];
    char *from = digits + sizeof digits;

    do
        *--from = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    return domi_http_put_bytes(to, from, (size_t)(digits + sizeof digits - from));
}

/* Make an appender of fields fail with -EINVAL, unless it has failed already. Returns its error. */
static inline int domi_http_fail_appender_of_fields(domus_appender *fields)
{
    if (fields->error == 0) {
        domus_append_drop(fields);
        fields->error = -EINVAL;
    }
    return fields->error;
}

/* Write the field Date with the current second (date.c). */
char *domi_http_put_date_field(char *to);

/* Write the status line of an answer, such as "HTTP/1.1 200 OK\r\n", for a valid status. */
char *domi_http_put_status_line(char *to, unsigned status);

/* Flags for the fields of a message that is to be sent. */
enum {
    DOMI_HTTP_FIELD_HOST = 1,
    DOMI_HTTP_FIELD_DATE = 2,
    DOMI_HTTP_FIELD_EXPECT = 4,
};

/* Check the fields of a message before it is sent: they must be complete lines, and none may tell
 * where the message ends. Returns flags for the fields; -EINVAL (check.c). */
int domi_http_check_fields(domus_slice fields);

/* Check trailers before they are sent, as domi_http_check_fields() checks fields. Returns 0;
 * -EINVAL. */
static inline int domi_http_check_trailers(domus_slice fields)
{
    int has = domi_http_check_fields(fields);

    return has < 0 || (has & DOMI_HTTP_FIELD_HOST) != 0 ? -EINVAL : 0;
}

/* Returns whether the peer that has sent a request accepts trailers in its answer. */
static inline bool domi_http_does_peer_accept_trailers(uint64_t id)
{
    const uint64_t both = DOMI_HTTP_ID_NEW | DOMI_HTTP_ID_TRAILERS;

    return (id & both) == both;
}

/* The word of a stream (domus_wire_stream()): how the pieces of its body are sent, and how many
 * bytes of an announced length are missing. */
#define DOMI_HTTP_STREAM_CHUNKS  (UINT64_C(1) << 60)
#define DOMI_HTTP_STREAM_COUNTED (UINT64_C(2) << 60)
#define DOMI_HTTP_STREAM_PLAIN   (UINT64_C(3) << 60) /* stream: the body ends with the connection */
/* stream: an answer to HEAD, of whose body nothing is sent */
#define DOMI_HTTP_STREAM_NONE (UINT64_C(4) << 60)
/* stream: in chunks, compressed by the deflater whose address is in the other bits */
#define DOMI_HTTP_STREAM_GZIP (UINT64_C(5) << 60)
/* stream: bytes of a tunnel, sent unchanged once the tunnel is open */
#define DOMI_HTTP_STREAM_TUNNEL (UINT64_C(6) << 60)
#define DOMI_HTTP_STREAM_HOW    (UINT64_C(15) << 60)
#define DOMI_HTTP_LENGTH_MAX    (DOMI_HTTP_STREAM_CHUNKS - 1)

/* Append a piece of a stream; append the end of the body; append trailers. Return 0, or a negative
 * errno (pieces.c). */
int domi_http_append_piece_of_stream(domus_wire *wire, uint64_t *stream, const domus_piece *piece);
int domi_http_append_trailers_of_stream(domus_wire *wire, uint64_t *stream,
                                        const domus_http_trailers *trailers);

/* Release what a stream still holds when its body stops before the end. */
void domi_http_give_back_deflater_of_stream(uint64_t *stream);

#endif
