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
    /* ring buffer of `capacity` bytes, with the pipe's bytes; NULL while `capacity` is 0 */
    char *bytes;
    uint32_t capacity; /* size of the ring buffer in bytes: 0, or a power of two */
    /* size of the sender's buffer: most bytes of the pipe that wait to leave or are on their way */
    uint32_t send_max;
    /* size of the receiver's buffer: most bytes that are on their way or can be received */
    uint32_t receive_max;
    uint64_t head;     /* position of the pipe's next byte to be received */
    uint64_t arrived;  /* position before which the bytes have arrived and can be received */
    uint64_t departed; /* position before which the bytes have left the sender */
    uint64_t tail;     /* position of the next byte that the sender will add to the pipe */
    uint64_t taken;    /* number of bytes that the pipe has taken from the sender so far */
    uint64_t received; /* number of bytes that the receiver has taken from the pipe so far */
    uint64_t lost;     /* number of bytes of the pipe that were thrown away so far */
    /* time at which the wire will have taken all bytes that have left, by its bandwidth */
    uint64_t clear_ns;
    /* time at which the bytes that left last arrive; nothing that leaves later arrives before
     * that */
    uint64_t last_ns;
    uint64_t cut_at; /* position of a drawn fault: when it departs, the connection is reset */
    uint64_t end_at; /* position of a drawn fault: at it the stream ends */
    /* true: the sender has finished, and the end of the stream follows behind all bytes */
    bool is_finished;
    bool end_departed; /* true: the end of the stream is on its way, or has arrived */
    bool end_arrived;  /* true: the end of the stream has arrived, behind all bytes */
    /* true: the stream has ended early, at `end_at`; more bytes cause a reset */
    bool has_ended_early;
    bool has_cut;     /* true: the reset that was drawn for `cut_at` is on its way */
    bool is_dead;     /* true: a reset has ended the pipe, and no byte moves any more */
    bool reader_gone; /* true: the reader is gone, so bytes that arrive are thrown away */
} domi_net_pipe;

/* domi_net_pipe_count_readable() returns how many bytes of a pipe can be received;
 * domi_net_pipe_count_room() how many more bytes the sender may add. */
static inline uint64_t domi_net_pipe_count_readable(const domi_net_pipe *pipe)
{
    return pipe->arrived - pipe->head;
}

static inline uint64_t domi_net_pipe_count_room(const domi_net_pipe *pipe)
{
    uint64_t waiting = pipe->tail - pipe->arrived;

    return waiting < pipe->send_max ? pipe->send_max - waiting : 0;
}

/* Append bytes to a pipe; the caller has checked that there is room. Returns false if there is
 * no memory. */
bool domi_net_pipe_append_bytes(domi_net_pipe *pipe, const void *data, uint32_t size);

/* Receive bytes from a pipe: copy them out and remove them. */
void domi_net_pipe_receive_bytes(domi_net_pipe *pipe, void *data, uint32_t size);

/* Throw bytes of a pipe away and return how many. The bytes are, in the order of the functions,
 * those that can be received, those that have not left, and all of them. */
uint64_t domi_net_pipe_drop_readable(domi_net_pipe *pipe);
uint64_t domi_net_pipe_drop_unsent(domi_net_pipe *pipe);
uint64_t domi_net_pipe_drop_all(domi_net_pipe *pipe);

/* Throw the bytes of a pipe away that have not arrived yet, and return how many. */
uint64_t domi_net_pipe_drop_not_arrived(domi_net_pipe *pipe);

#endif
