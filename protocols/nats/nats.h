/* The state of the stage of NATS for a channel, and the functions that its files call of each
 * other.
 *
 * A message that lies whole in the window is made where it lies. A message that is not whole, and
 * is too long to wait for, is gathered: its bytes are appended as they come, and used. */
#ifndef DOMI_PROTOCOLS_NATS_H
#define DOMI_PROTOCOLS_NATS_H

#include <domus/nats.h>

/* A message of which a part has not come, and which has more bytes than this, is gathered. The
 * bound is a quarter of the window, so a connection never holds more for a message that may stay
 * incomplete. */
#define DOMI_NATS_GATHER_LEAST (DOMUS_WINDOW_MAX / 4)

typedef struct domi_nats_state {
    domus_nats_stage_options limits; /* the options of the stage, with zeros replaced by defaults */
    uint32_t looked; /* bytes of the current line that were already searched for the line's end */
    uint32_t left;   /* bytes of the gathered message that have not come yet */
    int failed; /* error for wrong bytes of the server, with which the connection ends; 0: none */
    bool gathering;
    /* the message that is being gathered, of which only the sizes are set */
    domus_nats_message message;
    domus_appender bytes; /* bytes of the gathered message that have come, from its subject on */
} domi_nats_state;

/* Decode the bytes that have come, as `decode` of a stage does (decode.c). */
int domi_nats_decode_bytes_of_server(domus_wire *wire, domi_nats_state *state, const char *bytes,
                                     size_t size);

/* Append a message for the server, as `encode` of a stage does (encode.c). */
int domi_nats_encode_for_server(domus_wire *wire, const domus_type *type, const void *payload);

/* A request as the client encodes it: the message of the user, with a subject of the client's inbox
 * as its reply subject. */
typedef struct domi_nats_inboxed {
    const domus_nats_publish *publish;
    const char *reply;
    uint32_t reply_size;
} domi_nats_inboxed;

extern const domus_type domi_nats_inboxed_type;

/* --- parts of a message that is sent (publish.c) ---------------------------------------------- */

static inline domus_slice domi_nats_empty_slice(void)
{
    return (domus_slice){NULL, 0, 0};
}

/* Bytes that somebody else owns: a pointer and their number. */
typedef struct domi_nats_bytes {
    const char *data;
    uint32_t size;
} domi_nats_bytes;

static inline domi_nats_bytes domi_nats_bytes_of_slice(domus_slice slice)
{
    return (domi_nats_bytes){domus_slice_data(slice), slice.size};
}

/* Returns the bytes of a part of a message to send: those of the slice, or the `size` bytes at `at`
 * in the message itself. */
static inline domi_nats_bytes
domi_nats_bytes_of_slice_or_inline_part(const domus_nats_publish *publish, domus_slice slice,
                                        uint8_t at, uint8_t size)
{
    if (slice.size != 0)
        return domi_nats_bytes_of_slice(slice);
    return (domi_nats_bytes){publish->bytes + at, size};
}

static inline domi_nats_bytes domi_nats_subject_of_publish(const domus_nats_publish *publish)
{
    return domi_nats_bytes_of_slice_or_inline_part(publish, publish->subject, publish->subject_at,
                                                   publish->subject_size);
}

static inline domi_nats_bytes domi_nats_reply_of_publish(const domus_nats_publish *publish)
{
    return domi_nats_bytes_of_slice_or_inline_part(publish, publish->reply, publish->reply_at,
                                                   publish->reply_size);
}

static inline domi_nats_bytes domi_nats_payload_of_publish(const domus_nats_publish *publish)
{
    return domi_nats_bytes_of_slice_or_inline_part(publish, publish->payload, publish->payload_at,
                                                   publish->payload_size);
}

/* Check whether the subject, reply subject and sizes of a message to send are valid (encode.c).
 * Returns 0; -EINVAL; -EMSGSIZE. */
int domi_nats_check_parts_of_publish(const domus_nats_publish *publish, domi_nats_bytes reply);

/* Returns whether the parts that a message has inside lie within its bytes; a user may have filled
 * it wrongly. */
bool domi_nats_are_inline_parts_valid(const domus_nats_publish *publish);

/* Returns how many bytes the headers and the payload of a message have together. */
static inline uint64_t domi_nats_size_of_publish(const domus_nats_publish *publish)
{
    return (uint64_t)publish->headers.size + domi_nats_payload_of_publish(publish).size;
}

/* Returns whether the bytes may be a subject: tokens of printable bytes with "." between them, none
 * of which is empty. */
bool domi_nats_is_valid_subject(domi_nats_bytes subject);

/* Returns whether the bytes may be the name of a queue group: printable bytes. */
bool domi_nats_is_valid_queue_group(domi_nats_bytes word);

/* Returns whether a text is UTF-8, and so may be written as JSON (encode.c). */
bool domi_nats_is_utf8(const char *text);

/* Returns whether the bytes may be a block of headers: a first line "NATS/1.0", and an empty line
 * at the end. */
bool domi_nats_is_block_of_headers(domi_nats_bytes headers);

/* Returns the status in the first line of a valid block of headers; 0 if there is none. */
uint16_t domi_nats_status_of_headers(domi_nats_bytes headers);

/* Copy bytes as a text with a zero at its end, cut to `room` bytes; each byte that is not printable
 * becomes "?". */
void domi_nats_copy_printable(char *text, size_t room, domi_nats_bytes bytes);

#endif
