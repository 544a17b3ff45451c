/* The state of the stage of NATS for a channel, and the doors between its files.
 *
 * A message that lies whole in the window is made where it lies. One that is not whole, and is too
 * long to wait for, is gathered: its bytes are appended as they come, and used. */
#ifndef DOMI_PROTOCOLS_NATS_H
#define DOMI_PROTOCOLS_NATS_H

#include <domus/nats.h>

/* A message that is not whole, and has more bytes than this, is gathered. It is a quarter of the
 * window, so a connection keeps no more than that for a message that may never be whole. */
#define DOMI_NATS_GATHER_LEAST (DOMUS_WINDOW_MAX / 4)

typedef struct domi_nats_state {
    domus_nats_stage_options limits; /* with the defaults filled in */
    uint32_t looked;                 /* bytes of the line in which there is no end */
    uint32_t left;                   /* bytes of the gathered message that have not come */
    int failed;                      /* the error of the bytes that have come; 0: none */
    bool gathering;
    domus_nats_message message; /* the sizes of the message that is gathered */
    domus_appender bytes;       /* its bytes, from the subject on */
} domi_nats_state;

/* Look at the bytes that have come, as `decode` of a stage (decode.c). */
int domi_nats_decode(domus_wire *wire, domi_nats_state *state, const char *bytes, size_t size);

/* Append a message for the server, as `encode` of a stage (encode.c). */
int domi_nats_encode(domus_wire *wire, const domus_type *type, const void *payload);

/* A request as the client sends it: that message, with the inbox as its reply. */
typedef struct domi_nats_inboxed {
    const domus_nats_publish *publish;
    const char *reply;
    uint32_t reply_size;
} domi_nats_inboxed;

extern const domus_type domi_nats_inboxed_type;

/* --- parts of a message that is sent (publish.c) ---------------------------------------------- */

static inline domus_slice domi_nats_no_slice(void)
{
    return (domus_slice){NULL, 0, 0};
}

/* Bytes somewhere. */
typedef struct domi_nats_bytes {
    const char *data;
    uint32_t size;
} domi_nats_bytes;

static inline domi_nats_bytes domi_nats_bytes_of(domus_slice slice)
{
    return (domi_nats_bytes){domus_slice_data(slice), slice.size};
}

/* A part of a message: that of the slice, or that in the message itself. */
static inline domi_nats_bytes domi_nats_part_of(const domus_nats_publish *publish,
                                                domus_slice slice, uint8_t at, uint8_t size)
{
    if (slice.size != 0)
        return domi_nats_bytes_of(slice);
    return (domi_nats_bytes){publish->bytes + at, size};
}

static inline domi_nats_bytes domi_nats_subject_of(const domus_nats_publish *publish)
{
    return domi_nats_part_of(publish, publish->subject, publish->subject_at, publish->subject_size);
}

static inline domi_nats_bytes domi_nats_reply_of(const domus_nats_publish *publish)
{
    return domi_nats_part_of(publish, publish->reply, publish->reply_at, publish->reply_size);
}

static inline domi_nats_bytes domi_nats_payload_of(const domus_nats_publish *publish)
{
    return domi_nats_part_of(publish, publish->payload, publish->payload_at, publish->payload_size);
}

/* Whether the form of a message is right (encode.c). Returns 0; -EINVAL; -EMSGSIZE. */
int domi_nats_check(const domus_nats_publish *publish, domi_nats_bytes reply);

/* Whether the inline parts lie within the message, which a user may have filled wrongly. */
bool domi_nats_is_whole(const domus_nats_publish *publish);

/* Bytes of headers and payload. */
static inline uint64_t domi_nats_size_of(const domus_nats_publish *publish)
{
    return (uint64_t)publish->headers.size + domi_nats_payload_of(publish).size;
}

/* Whether bytes may be a subject: tokens that are not empty, of bytes that print. */
bool domi_nats_is_subject(domi_nats_bytes subject);

/* Whether bytes may be a queue group: bytes that print. */
bool domi_nats_is_word(domi_nats_bytes word);

/* Whether a text may be one of JSON (encode.c). */
bool domi_nats_is_utf8(const char *text);

/* Whether bytes may be a block of headers: the first line, and an empty one at the end. */
bool domi_nats_is_headers(domi_nats_bytes headers);

/* The status of a block of headers that may be one; 0: none. */
uint16_t domi_nats_status(domi_nats_bytes headers);

/* Copy bytes as text with a zero at its end, cut off at `room`; those that do not print are "?". */
void domi_nats_print(char *text, size_t room, domi_nats_bytes bytes);

#endif
