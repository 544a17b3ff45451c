/* Streams: answers to requests of the peer that leave in pieces (domus/stream.h), and the writers
 * of all streams; what is special to requests of this side is in upload.h.
 *
 * Their heads and pieces are asks of the library to the channel's actor. Each is encoded when it
 * comes; its bytes go to the peer if it is the turn of its request, and wait in the place of the
 * request otherwise. The ask of a piece waits until the next piece may come: until the requests
 * before are answered, and at most sendHigh bytes wait for the peer. The end of a stream is the
 * answer to its request, as any other (answers.c). Owner thread. */
#ifndef DOMI_IO_PIPELINES_STREAM_H
#define DOMI_IO_PIPELINES_STREAM_H

#include "io/pipelines/pipe.h"

typedef enum domi_part_kind {
    DOMI_PART_HEAD,  /* only of an answer: that of a request is an ask for the peer (upload.h) */
    DOMI_PART_PIECE, /* `bytes` */
    DOMI_PART_TURN,  /* nothing is sent: `message` comes back when the answer has its turn */
    DOMI_PART_END,   /* only of a request, as the next one: an answer ends as any answer does */
    DOMI_PART_CUT,
} domi_part_kind;

/* A part of a stream. */
typedef struct domi_part {
    uint32_t number;        /* the number of the request */
    uint8_t kind;           /* a domi_part_kind */
    bool of_request;        /* the stream is a request of this side */
    const domus_type *type; /* the type of `message`; NULL: there is none */
    void *message;          /* the head, or what stands behind the last piece; on the heap */
    domus_slice bytes;      /* the bytes of a piece */
    /* this is an end, and its writer waits until the end is sent, not for an answer of the peer */
    bool waits;
    /* the serial of the promise that any other end completes; its return names none */
    uint32_t serial;
} domi_part;

extern const domus_type domi_part_type;
extern const domus_type domi_taken_type; /* the answer to a part */

/* Give a part its message, with a copy of the payload. If the part is not put then, the caller owns
 * on what that owns. Returns 0; -EMSGSIZE; -ENOMEM. */
int domi_part_set_message(domi_part *part, const domus_type *type, const void *payload);

/* Take a part of an answer. The channel is open. */
void domi_stream_take(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask);

/* True if a write to the same stream waits. */
bool domi_stream_has_writer(const domi_pipe *pipe, const domi_part *part);

/* The bytes of a piece are queued, or it has none: let its writer go on, or wait until it may. */
void domi_stream_let_wait(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask);

/* Let those writes go on that may. */
void domi_stream_go_on(domi_manager *manager, domi_pipe *pipe);

/* The channel ends: no write waits any more. */
void domi_stream_end(domi_manager *manager, domi_pipe *pipe);

#endif
