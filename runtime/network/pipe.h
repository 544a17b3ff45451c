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
    char *bytes;       /* a ring of `capacity` bytes; NULL while `capacity` is 0 */
    uint32_t capacity; /* 0, or a power of two */
    /* size of the send buffer: most bytes that wait to leave or are on their way */
    uint32_t send_max;
    /* size of the receive buffer: most bytes that are on their way or can be received */
    uint32_t receive_max;
    uint64_t head;     /* position of the next byte to be received */
    uint64_t arrived;  /* bytes before this position can be received */
    uint64_t departed; /* bytes before this position have left */
    uint64_t tail;     /* position of the next byte that the sender will add */
    uint64_t taken;    /* number of bytes sent so far */
    uint64_t received; /* number of bytes received so far */
    uint64_t lost;     /* number of bytes thrown away so far */
    /* time at which the wire has taken all bytes that have left, by its bandwidth */
    uint64_t clear_ns;
    /* arrival time of what left last; nothing that leaves later arrives before it */
    uint64_t last_ns;
    uint64_t cut_at;      /* a fault: the connection is reset when this position departs */
    uint64_t end_at;      /* a fault: the stream ends at this position */
    bool is_finished;     /* the sender has finished; the end follows behind all bytes */
    bool end_departed;    /* the end of the stream is on its way, or has arrived */
    bool end_arrived;     /* the reader has read the end of the stream, behind all bytes */
    bool has_ended_early; /* the stream has ended at `end_at`: more bytes cause a reset */
    bool has_cut;         /* the reset that was drawn for `cut_at` is on its way */
    bool is_dead;         /* a reset has ended the pipe: no byte moves any more */
    bool reader_gone;     /* the reader is gone: arriving bytes are thrown away */
} domi_net_pipe;

/* domi_net_pipe_count_readable() returns how many bytes can be received; domi_net_pipe_count_room()
 * how many more bytes the sender may add. */
static inline uint64_t domi_net_pipe_count_readable(const domi_net_pipe *pipe)
{
    return pipe->arrived - pipe->head;
}

static inline uint64_t domi_net_pipe_count_room(const domi_net_pipe *pipe)
{
    uint64_t waiting = pipe->tail - pipe->arrived;

    return waiting < pipe->send_max ? pipe->send_max - waiting : 0;
}

/* Append bytes, for which the caller has checked that there is room. Returns false if there is no
 * memory. */
bool domi_net_pipe_append(domi_net_pipe *pipe, const void *data, uint32_t size);

/* Receive bytes: copy them out and remove them from the pipe. */
void domi_net_pipe_receive(domi_net_pipe *pipe, void *data, uint32_t size);

/* Throw away bytes: `drop_readable` those that can be received, `drop_unsent` those that have not
 * left, `drop_all` all bytes. Each returns how many. */
uint64_t domi_net_pipe_drop_readable(domi_net_pipe *pipe);
uint64_t domi_net_pipe_drop_unsent(domi_net_pipe *pipe);
uint64_t domi_net_pipe_drop_all(domi_net_pipe *pipe);

/* Throw away the bytes that have not arrived. Returns how many. */
uint64_t domi_net_pipe_drop_not_arrived(domi_net_pipe *pipe);

#endif
