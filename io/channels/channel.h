/* The inside of a channel, which is a connection that belongs to an actor.
 *
 * The headers of its parts, from the bottom up: ready.h wakes its actor; crowd.h bounds the bytes
 * that are queued; receive.h and send.h have the two directions; state.h moves the channel from
 * state to state; due.h and ends.h say when it ends, and what its peer would miss then; table.h
 * makes and frees it; complete.h takes the completions. Owner thread. */
#ifndef DOMI_IO_CHANNELS_CHANNEL_H
#define DOMI_IO_CHANNELS_CHANNEL_H

#include "io/resources/buffer.h"
#include "io/resources/proxy_header.h"
#include "io/resources/settings.h"

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>

typedef enum domi_channel_state {
    DOMI_CHANNEL_OPEN,
    DOMI_CHANNEL_FLUSHING,  /* the actor has closed the channel: the queued bytes are being sent */
    DOMI_CHANNEL_LINGERING, /* FIN is sent: bytes are read and thrown away until the peer closes */
    DOMI_CHANNEL_CLOSING,   /* the channel waits until no operation is in flight */
    DOMI_CHANNEL_CLOSED,    /* the descriptor is closed; on_close is due */
    DOMI_CHANNEL_STATES,
} domi_channel_state;

/* The functions of a channel that is not the stream of a socket: a channel of datagrams, or an
 * inner channel. The streams of sockets have no such table: their functions are called directly.
 * io/datagrams/ and io/inner/, which are storeys above this one, fill the tables. */
typedef struct domi_channel_ways {
    bool is_inner; /* true: an inner channel, without a descriptor; false: a channel of datagrams */
    void (*receive)(const domus_channel *channel); /* begin the receive */
    /* Handle `size` received bytes in a provided buffer. */
    void (*take)(domus_channel *channel, domus_buffer *buffer, uint32_t size);
    /* Handle the end of a receive that brought no bytes, with a negative errno or 0. */
    void (*receive_failed)(domus_channel *channel, int error);
    /* queue bytes for the connected peer */
    int (*write)(domus_channel *channel, domus_buffer *bytes);
    /* queue sends of the waiting bytes; no send is in flight */
    void (*send)(domus_channel *channel);
    /* handle a kernel that had no room for channel.sendTimeout */
    void (*be_late)(domus_channel *channel);
    /* Forget the destinations of waiting bytes, which will not be sent. */
    void (*forget_outbound)(domus_channel *channel);
    /* record that the descriptor will be closed at once */
    void (*note_end)(domus_channel *channel);
    /* End an inner channel on which everything was sent, and nothing follows. */
    void (*finish)(domus_channel *channel);
    /* Record that a piece of `inbound` of an inner channel was used. */
    void (*note_used)(domus_channel *channel);
} domi_channel_ways;

/* The part of a channel that only channels of datagrams and inner channels have. A longer structure
 * begins with it. */
typedef struct domi_special {
    const domi_channel_ways *ways;
    /* the outer channel of an inner one; NULL: the inner channel is given up */
    domus_channel *outer;
} domi_special;

/* The services of a pipeline to its channel. The table is filled in io/pipelines/, which is a
 * storey above this one. */
typedef struct domi_pipe_ways {
    /* Queue bytes of the actor itself, which go through the byte stages: a copy of `size` bytes at
     * `data`, or, if that is NULL, a slice, which stays the caller's. Returns 0; -EPIPE; -ENOBUFS;
     * -ENOMEM; the error of a stage, and then the channel was reset. */
    int (*write)(domus_channel *channel, const void *data, size_t size, domus_slice slice);
    /* Queue the bytes that end the output of the stages. Returns 0; an error of a stage, and then
     * the caller resets the channel. */
    int (*end_output)(domus_channel *channel);
    /* Call the message stage at the time that it has set (`wake` in domus/stage.h). Returns 0; an
     * error of the stage, and then the caller resets the channel. */
    int (*wake)(domus_channel *channel, bool owed);
    /* Compute how long the peer still has for the rest of a message (message_due_ns). Returns
     * whether it is too late. */
    bool (*is_late)(domus_channel *channel);
    /* Answer a peer whose time for the rest of a message is over: the stage writes the answer, and
     * the channel ends behind its owed answers. Returns false if no message was begun, or if the
     * stage has no answer for that. */
    bool (*answer_late)(domus_channel *channel);
    /* Cancel those asks of the peer's requests that actors keep. */
    void (*cancel_kept)(domus_channel *channel);
    /* Find out, in a drain, whether the peer still has to send the rest of a body whose head had
     * come. Returns whether the channel waits for it. */
    bool (*await_body)(domus_channel *channel);
} domi_pipe_ways;

/* The server to which this side has connected, for stages that verify it (domus_wire_server()). */
typedef struct domi_server {
    uint16_t port;
    char name[]; /* the host name to which this side has connected, or the address as text */
} domi_server;

/* Data that a connection leaves behind at its end, in the memory of its pool on demand. */
typedef struct domi_last_word {
    bool was_used; /* the channel has sent an ask */
    int error;     /* the error of a stage, or of its handshake with the peer; 0: none */
} domi_last_word;

/* The span of time over which the rate of the peer is measured now (rate.c). */
typedef struct domi_rate_span {
    uint64_t begun_ns; /* time at which it began */
    uint64_t received; /* value of received_bytes at that time */
    /* value of answered_bytes at that time, if a message was under way; UINT64_MAX: none was, or
     * this side did not read all the time */
    uint64_t answered;
} domi_rate_span;

/* A channel. Its first four cache lines are those that a message uses on its way in and out. A
 * thread with many connections finds none of this in its near caches, so rarely needed fields stand
 * behind these lines. */
struct domus_channel {
    /* Line 0: identity and state. */
    alignas(64) domi_io *io; /* the io of the channel's thread; constant */
    domi_house *house;       /* the channel's own house, a child of the owner's */
    /* limits and time-outs; the channel counts as one of their users */
    domi_channel_settings *settings;
    struct domi_pipe *pipe;   /* the pipeline (io/pipelines/); NULL: the channel handles bytes */
    domi_proxy_header *proxy; /* the awaited header of a proxy; NULL: none is awaited (proxy.h) */
    int fd;                   /* descriptor of the connected socket; -1: it is closed */
    uint32_t slot;            /* index of the channel in io->slots */
    uint32_t slot_generation; /* generation of `slot` when the channel was made */
    uint32_t held;            /* number of received pieces that are not freed yet */
    uint8_t state;            /* a domi_channel_state; only domi_channel_move() changes it */
    uint8_t cancels;          /* number of cancel operations in flight */
    /* Flags, of which the first seven keep the channel from receiving; domi_channel_is_unhindered()
     * tests all of these but `sated` together. */
    bool paused : 1;  /* back-pressure: the channel does not receive */
    bool blocked : 1; /* on_read is not called either, while the channel is paused */
    bool high : 1;    /* more than sendHigh bytes are queued, or not yet at most sendLow again */
    /* more bytes are queued than the channel's part (crowd.h); it is in the list of crowded
     * channels */
    bool crowded : 1;
    bool busy : 1;       /* as many requests are under way as requestsMax allows */
    bool halted : 1;     /* the actor wants no further input for now */
    bool sated : 1;      /* in a drain: the requests that had come are read, and no more are read */
    bool finished : 1;   /* the actor has finished sending: FIN follows behind the queued bytes */
    bool receiving : 1;  /* a receive is in flight */
    bool cancelling : 1; /* a cancel of that receive is in flight */
    bool sending : 1;    /* a send is in flight */
    bool wraps : 1;      /* the pipeline has byte stages */
    bool says_end : 1;   /* the pipeline has bytes to send before the FIN */
    bool opened : 1;     /* on_open has been called, or the behaviour has none */
    bool ended : 1;      /* the peer has finished sending */
    bool end_told : 1;   /* on_end was called */
    bool once : 1;       /* the receive in flight brings one piece only */
    bool starved : 1;    /* the channel waits for a receive buffer */
    bool dirty : 1;      /* the channel is in the list of those with something to send */
    bool cancelled_all : 1; /* a cancel of all operations on `fd` was submitted */
    bool abort : 1;         /* the close sends RST */
    bool fin_sent : 1;      /* the sending side of the socket was shut down */
    bool aged : 1;          /* channel.maxAge is over: `drain` was set because of that */
    bool drain : 1;         /* the system drains: close once everything received is answered */
    bool relays : 1;      /* the channel belongs to a relay: a drain waits while bytes come or go */
    bool served : 1;      /* in a drain: something was under way since it began */
    bool idle : 1;        /* the drain has ended it, and nothing was under way */
    bool cut : 1;         /* the library has ended it while something was owed */
    bool refused : 1;     /* an error of its actor, or of its peer's bytes, was counted */
    bool is_outbound : 1; /* this side has opened the connection */
    /* the pipeline has bytes that were not decoded yet, or a request that was not begun */
    bool behind : 1;
    /* a piece of a body is wanted, so the channel receives although it is busy */
    bool reading : 1;
    bool broken : 1;  /* a reset follows when the queued bytes are sent (domi_channel_break()) */
    bool tunnels : 1; /* the two directions belong to another protocol, and end with FIN */
    /* the peer has finished, and there is no on_end: close when nothing is under way */
    bool close_due : 1;
    /* asks wait in the pool, and the channel takes the next one when it has room */
    bool pulls : 1;
    bool carries : 1;   /* a stage of the pipeline carries inner channels */
    bool carry_due : 1; /* the channel is in io->carriers: its carrying stage has to be called */
    bool lends : 1;     /* asks for its peer go to inner channels (io/inner/) */
    bool bounds : 1;    /* the deadline of an ask that its peer has ends the channel */
    bool lent : 1;      /* the channel is an inner one, lent for an ask that is not over */
    bool rests : 1;     /* the channel is an inner one that has nothing to do, and soon ends */

    /* Line 1: the receiving side. */
    /* fields of a channel of datagrams, or of an inner one; NULL: the stream of a socket */
    DOMI_KEEP_PLACE(64) domi_special *special;
    domi_buffer_list inbound; /* received pieces that the actor has not got yet */
    uint64_t copied;          /* bytes of memory of the heap buffers in `inbound` */
    uint64_t received_bytes;  /* bytes that came while the channel was OPEN */
    /* the part of received_bytes that belongs to finished messages (due.h) */
    uint64_t answered_bytes;
    /* start of the idle time: the last time when bytes came or went, or this side began to read
     * again */
    uint64_t active_ns;
    uint64_t silent_ns; /* start of the wait for the peer's first byte; 0: a byte has come */

    /* Line 2: the sending side. */
    DOMI_KEEP_PLACE(64) domi_buffer_list outbound; /* written pieces that are not completely sent */
    uint64_t queued_bytes;                         /* bytes in `outbound` that are not sent */
    uint64_t answer_bytes; /* bytes of answers that wait for their turn (io/pipelines/) */
    /* bytes of memory of `outbound` and of those answers (domi_buffer_cost()) */
    uint64_t cost;
    uint64_t sent_bytes;  /* bytes that the kernel has taken since the channel opened */
    uint32_t head_offset; /* number of sent bytes of the first buffer of `outbound` */
    /* 0: nothing may be copied behind the last buffer of `outbound`; else 1 + the free bytes in
     * that buffer */
    uint32_t tail_room;
    domus_channel *next_dirty; /* next channel in io->dirty */

    /* Line 3: fields that most messages read only once. */
    DOMI_KEEP_PLACE(64) uint64_t send_ns; /* time at which the send in flight began */
    /* bytes in the socket when the drain began that were not read yet */
    uint64_t drain_bytes;
    struct domi_promise *flushes; /* list of waits for bytes to leave (flush.h); NULL: none */
    void *data;                   /* the pointer that the user's functions get */
    /* number of conversations that on_read has begun and that have not ended */
    uint32_t conversations;
    uint32_t asks; /* number of asks that the peer has to answer (io/pipelines/) */
    /* time at which the answer to the oldest of these asks is too late; 0: no bound holds */
    uint64_t ask_due_ns;
    domus_buffer *shown; /* the piece that a message showed when `inbound` was dropped */

    /* All further lines: fields that are rarely needed. */
    domi_peer *peer;        /* the address on which the connection is counted; NULL: none */
    domus_endpoint *client; /* the client that a proxy has named; NULL: none */
    /* the pool that gets asks which the peer does not answer; nobody: these asks fail */
    domus_address pool;
    /* record in the memory of the pool that is set when the channel ends, if it `pulls` */
    domi_last_word *last_word;
    /* the server to which this side has connected; NULL: the connection was accepted or adopted */
    domi_server *server;
    uint64_t answer_cost;  /* the part of `cost` for answers that wait for their turn */
    uint64_t unsent_bytes; /* bytes that were dropped unsent; on_close may read this number */
    uint64_t opened_ns;    /* time at which the channel was made */
    uint64_t peer_took;    /* bytes that the peer had acknowledged at peer_seen_ns */
    uint64_t peer_seen_ns; /* time at which the peer was last seen to acknowledge enough (shed.c) */
    uint64_t look_ns;      /* time at which the pipeline checks what it sends in pieces; 0: never */
    uint64_t wake_ns;      /* time at which the message stage wants to be called; 0: never */
    /* time at which kept asks of a peer that has finished are cancelled; 0: never */
    uint64_t kept_ns;
    uint64_t finished_ns; /* time at which the peer has finished, if `kept_ns` was set since */
    /* time at which the peer is too late with the rest of a message (io/pipelines/late.h); 0: no
     * bound */
    uint64_t message_due_ns;
    /* time since which a paused channel is not read, as far as it was not added to
     * message_due_ns; 0: it is read */
    uint64_t unread_ns;
    /* number of bodies that leave in pieces and have not ended; while there are any, a close is
     * a reset */
    uint32_t streams;
    uint32_t carried; /* number of things under way in inner channels; a drain waits for them */
    /* number of these from which on no further ask is sent, if the channel lends */
    uint32_t lent_most;
    /* number of stages of an inner channel's pipeline that the outer channel has */
    uint8_t skipped;
    int error;           /* the error that on_close gets; 0: none */
    domi_rate_span rate; /* measurement of how fast the peer sends */
    domi_io_timer timer; /* timer of the earliest time-out of the channel; it may fire earlier */
    domus_channel *next_starved;     /* next channel in io->starved */
    domus_channel *next_carrier;     /* next channel in io->carriers */
    domus_channel *next_crowded;     /* next channel in the list that io->crowd_head begins */
    domus_channel *previous_crowded; /* previous channel in that list */
};

static_assert(offsetof(domus_channel, special) == 64, "line 1");
static_assert(offsetof(domus_channel, outbound) == 128, "line 2");
static_assert(offsetof(domus_channel, send_ns) == 192, "line 3");

static inline const domi_channel_ways *domi_channel_ways_of(const domus_channel *channel)
{
    return channel->special->ways;
}

static inline bool domi_channel_is_inner(const domus_channel *channel)
{
    return channel->special != NULL && channel->special->ways->is_inner;
}

static inline bool domi_channel_is_of_datagrams(const domus_channel *channel)
{
    return channel->special != NULL && !channel->special->ways->is_inner;
}

/* Set the timer of the channel to `due_ns`; UINT64_MAX: never. */
static inline void domi_channel_set_timer(domus_channel *channel, uint64_t due_ns)
{
    domi_wheel_cancel(&channel->io->wheel, &channel->timer.node);
    if (due_ns != UINT64_MAX)
        domi_wheel_arm(&channel->io->wheel, &channel->timer.node, due_ns);
}

/* Make sure that a stage of the channel that carries inner channels is called at the end of phase
 * 2; does nothing without such a stage. */
static inline void domi_channel_carry(domus_channel *channel)
{
    if (!channel->carries || channel->carry_due || channel->state != DOMI_CHANNEL_OPEN)
        return;
    channel->carry_due = true;
    channel->next_carrier = channel->io->carriers;
    channel->io->carriers = channel;
}

/* Check that the fields of a channel fit to its state, after it has settled (channel_check.c).
 * Always returns true, so that it can stand in DOMI_CHECK_SLOW. */
bool domi_channel_is_sound(const domus_channel *channel);

#endif
