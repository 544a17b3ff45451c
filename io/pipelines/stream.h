/* Streams: answers to requests of the peer that leave in pieces (domus/stream.h).
 *
 * Their heads and pieces are asks of the library to the channel's actor. Each is encoded when it
 * comes; its bytes go to the peer if it is the turn of its request, and wait in the place of the
 * request otherwise. The ask of a piece waits until the next piece may come: until the requests
 * before are answered, and at most sendHigh bytes wait for the peer. The end of a stream is the
 * answer to its request, as any other (answers.c). Owner thread. */
#ifndef DOMI_IO_PIPELINES_STREAM_H
#define DOMI_IO_PIPELINES_STREAM_H

#include "io/pipelines/pipe.h"

/* A part of a stream. */
typedef struct domi_part {
    uint32_t number;        /* of the request */
    const domus_type *type; /* of the head; NULL: it is a piece */
    void *head;             /* on the heap */
    domus_slice bytes;      /* of the piece */
} domi_part;

extern const domus_type domi_part_type;

/* Take a part. The channel is open. */
void domi_stream_take(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask);

/* Let those writes go on that may. */
void domi_stream_go_on(domi_manager *manager, domi_pipe *pipe);

/* The channel ends: no write waits any more. */
void domi_stream_end(domi_manager *manager, domi_pipe *pipe);

#endif
