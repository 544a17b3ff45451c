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
    /* kind of part: the head; only of an answer, because the head of a request is an ask for the
     * peer (upload.h) */
    DOMI_PART_HEAD,
    DOMI_PART_PIECE, /* kind of part: a piece, the bytes in `bytes` */
    /* kind of part: a request to wait: nothing is sent, and `message` comes back when the answer
     * has its turn */
    DOMI_PART_TURN,
    /* kind of part: the end; only of a request, because an answer ends as any answer does */
    DOMI_PART_END,
    DOMI_PART_CUT,
} domi_part_kind;

/* A part of a stream: the payload of the ask by which a writer sends it. */
typedef struct domi_part {
    uint32_t number;        /* number of the request to which the stream belongs */
    uint8_t kind;           /* kind of the part, a domi_part_kind */
    bool of_request;        /* the stream is a request of this side in pieces, and not an answer */
    const domus_type *type; /* type of the part's `message`; NULL: there is none */
    void *message; /* the head of the stream, or the message behind its last piece; on the heap */
    domus_slice bytes; /* the bytes of the part, if it is a piece */
    /* the part is an end, whose writer waits until it is sent, and not for an answer of the peer */
    bool waits;
    /* serial of the promise that any other end of the stream completes; the return of this ask
     * names none */
    uint32_t serial;
} domi_part;

extern const domus_type domi_part_type;
/* the type of the answer that tells a writer that its part was taken */
extern const domus_type domi_taken_type;

/* Give a part of a stream its message, with a copy of the payload. If the part is not put
 * afterwards, the caller still owns what the payload owns. Returns 0; -EMSGSIZE; -ENOMEM. */
int domi_stream_part_set_message(domi_part *part, const domus_type *type, const void *payload);

/* Handle a part of an answer that leaves in pieces. The channel is open. */
void domi_stream_send_part_of_answer(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask);

/* True if another write to the same stream waits. */
bool domi_stream_has_waiting_write(const domi_pipe *pipe, const domi_part *part);

/* Let the writer of a part of a stream go on, or wait until it may, after the bytes of the part
 * were queued, or if it has none. */
void domi_stream_answer_writer_or_wait(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask);

/* Let all writers of streams go on that may send their next part. */
void domi_stream_continue_writes(domi_manager *manager, domi_pipe *pipe);

/* End all writes to streams that wait, because the channel ends. */
void domi_stream_end_waiting_writes(domi_manager *manager, domi_pipe *pipe);

#endif
