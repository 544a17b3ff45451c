/* One direction of a stream: the bytes between the send of one side and the receive of the other.
 *
 * Each byte has a position, which counts from 0. The positions divide the bytes that the pipe
 * holds:
 *
 *     head             arrived             departed             tail
 *      | can be received  |  is on its way     |  waits to leave  |
 *
 * Bytes are thrown away by resets, and by a reader that has gone. Then they are counted as lost, so
 * that taken == received + lost + (tail - head) at any time. */
#ifndef DOMI_RUNTIME_NETWORK_PIPE_H
#define DOMI_RUNTIME_NETWORK_PIPE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct domi_net_pipe {
    char *bytes;          /* a ring of `capacity` bytes; NULL while `capacity` is 0 */
    uint32_t capacity;    /* 0, or a power of two */
    uint32_t send_max;    /* bytes that wait to leave or are on their way, at most */
    uint32_t receive_max; /* bytes that are on their way or can be received, at most */
    uint64_t head;        /* position of the next byte to be received */
    uint64_t arrived;     /* bytes before this position can be received */
    uint64_t departed;    /* bytes before this position have left */
    uint64_t tail;        /* position of the next byte to be sent */
    uint64_t taken;       /* bytes that were sent in all */
    uint64_t received;    /* bytes that were received in all */
    uint64_t lost;        /* bytes that were thrown away */
    uint64_t clear_ns;    /* when the wire has taken all that has left (bandwidth) */
    uint64_t last_ns;     /* nothing that leaves now arrives before this time */
    uint64_t cut_at;      /* a fault: the connection is reset when this position departs */
    uint64_t end_at;      /* a fault: the stream ends at this position */
    bool is_finished;     /* the sender has finished; the end follows behind all bytes */
    bool end_departed;    /* the end of the stream is on its way, or has arrived */
    bool end_arrived;     /* the reader has come to know the end, behind all bytes */
    bool has_ended_early; /* the stream has ended at `end_at`: more bytes cause a reset */
    bool has_cut;         /* the reset at `cut_at` is on its way */
    bool is_dead;         /* nothing moves in it any more */
    bool reader_gone;     /* the reader is gone: arriving bytes are thrown away */
} domi_net_pipe;

/* Returns how many bytes can be received, and for how many there is room. */
static inline uint64_t domi_net_pipe_readable(const domi_net_pipe *pipe)
{
    return pipe->arrived - pipe->head;
}

static inline uint64_t domi_net_pipe_room(const domi_net_pipe *pipe)
{
    uint64_t waiting = pipe->tail - pipe->arrived;

    return waiting < pipe->send_max ? pipe->send_max - waiting : 0;
}

/* Append bytes; there is room for them. Returns false if there is no memory. */
bool domi_net_pipe_put(domi_net_pipe *pipe, const void *data, uint32_t size);

/* Take bytes that can be received. */
void domi_net_pipe_take(domi_net_pipe *pipe, void *data, uint32_t size);

/* Throw away bytes: those that can be received; those that have not left; all. Returns how many. */
uint64_t domi_net_pipe_drop_readable(domi_net_pipe *pipe);
uint64_t domi_net_pipe_drop_unsent(domi_net_pipe *pipe);
uint64_t domi_net_pipe_drop_all(domi_net_pipe *pipe);

/* Throw away the bytes that have not arrived. Returns how many. */
uint64_t domi_net_pipe_drop_behind(domi_net_pipe *pipe);

#endif
