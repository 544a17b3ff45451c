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
    /* the head; only of an answer, because the head of a request is an ask for the peer
     * (upload.h) */
    DOMI_PART_HEAD,
    DOMI_PART_PIECE, /* a piece: `bytes` */
    /* a request to wait: nothing is sent, and `message` comes back when the answer has its turn */
    DOMI_PART_TURN,
    DOMI_PART_END, /* the end; only of a request, because an answer ends as any answer does */
    DOMI_PART_CUT,
} domi_part_kind;

/* A part of a stream. */
typedef struct domi_part {
    uint32_t number;        /* number of the request */
    uint8_t kind;           /* a domi_part_kind */
    bool of_request;        /* the stream is a request of this side, not an answer */
    const domus_type *type; /* type of `message`; NULL: there is none */
    void *message;          /* the head, or the message behind the last piece; on the heap */
    domus_slice bytes;      /* the bytes of a piece */
    /* the part is an end, and its writer waits until it is sent, not for an answer of the peer */
    bool waits;
    /* serial of the promise that any other end completes; its domi_return names none */
    uint32_t serial;
} domi_part;

extern const domus_type domi_part_type;
extern const domus_type domi_taken_type; /* the type of the answer to a part */

/* Give a part its message, with a copy of the payload. If the part is not put afterwards, the
 * caller still owns what the payload owns. Returns 0; -EMSGSIZE; -ENOMEM. */
int domi_part_set_message(domi_part *part, const domus_type *type, const void *payload);

/* Handle a part of an answer. The channel is open. */
void domi_stream_handle_part(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask);

/* True if a write to the same stream waits. */
bool domi_stream_has_writer(const domi_pipe *pipe, const domi_part *part);

/* Let the writer of a part go on, or wait until it may, after the bytes of the part were queued, or
 * if it has none. */
void domi_stream_answer_part_or_wait(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask);

/* Let all writes go on that may. */
void domi_stream_continue_writes(domi_manager *manager, domi_pipe *pipe);

/* End all waiting writes, because the channel ends. */
void domi_stream_end(domi_manager *manager, domi_pipe *pipe);

#endif
