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
    /* state of a channel: its actor has closed it, and the queued bytes are being sent */
    DOMI_CHANNEL_FLUSHING,
    /* state of a channel: FIN is sent, and bytes are read and thrown away until the peer closes */
    DOMI_CHANNEL_LINGERING,
    /* state of a channel: it waits until none of its operations is in flight */
    DOMI_CHANNEL_CLOSING,
    DOMI_CHANNEL_CLOSED, /* state of a channel: the descriptor is closed, and on_close is due */
    DOMI_CHANNEL_STATES,
} domi_channel_state;

/* The functions of a channel that is not the stream of a socket: a channel of datagrams, or an
 * inner channel. The streams of sockets have no such table: their functions are called directly.
 * io/datagrams/ and io/inner/, which are storeys above this one, fill the tables. */
typedef struct domi_channel_ways {
    /* true: these are the functions of an inner channel, without a descriptor; false: of a
     * channel of datagrams */
    bool is_inner;
    void (*receive)(const domus_channel *channel); /* begin the receive of the channel */
    /* Handle `size` bytes that were received into a provided buffer. */
    void (*take)(domus_channel *channel, domus_buffer *buffer, uint32_t size);
    /* Handle the end of a receive that brought no bytes; its result is a negative errno or 0. */
    void (*receive_failed)(domus_channel *channel, int error);
    /* Queue bytes for the peer to which the channel is connected. */
    int (*write)(domus_channel *channel, domus_buffer *bytes);
    /* Queue sends of the waiting bytes. Called while no send of the channel is in flight. */
    void (*send)(domus_channel *channel);
    /* Handle the time-out of a send: the kernel had no room for channel.sendTimeout. */
    void (*be_late)(domus_channel *channel);
    /* Forget the destinations of the datagrams that wait in a closing channel and will not be
     * sent. */
    void (*forget_outbound)(domus_channel *channel);
    /* Record that the channel's descriptor will be closed at once. */
    void (*note_end)(domus_channel *channel);
    /* End an inner channel on which everything was sent, and nothing follows. */
    void (*finish)(domus_channel *channel);
    /* Record that a received piece of an inner channel was used by its actor. */
    void (*note_used)(domus_channel *channel);
} domi_channel_ways;

/* The fields that only channels of datagrams and inner channels have. A longer structure of each
 * kind begins with them. */
typedef struct domi_special {
    const domi_channel_ways *ways;
    /* for an inner channel its outer one; NULL: the outer channel has given it up */
    domus_channel *outer;
} domi_special;

/* The functions that a pipeline provides for its channel. The table is filled in io/pipelines/,
 * which is a storey above this one. */
typedef struct domi_pipe_ways {
    /* Queue bytes of the actor itself, which go through the byte stages: a copy of `size` bytes at
     * `data`, or, if that is NULL, a slice, which stays the caller's. Returns 0; -EPIPE; -ENOBUFS;
     * -ENOMEM; the error of a stage, and then the channel was reset. */
    int (*write)(domus_channel *channel, const void *data, size_t size, domus_slice slice);
    /* Queue the bytes that end the output of the stages. Returns 0; an error of a stage, and then
     * the caller resets the channel. */
    int (*end_output)(domus_channel *channel);
    /* Call the message stage of the channel, because the time that the stage has set has come
     * (`wake` in domus/stage.h). Returns 0; an error of the stage, and then the caller resets the
     * channel. */
    int (*wake)(domus_channel *channel, bool owed);
    /* Compute how long the channel's peer still has for the rest of a message (message_due_ns).
     * Returns whether it is too late. */
    bool (*is_late)(domus_channel *channel);
    /* Answer a peer whose time for the rest of a message is over: the stage writes the answer, and
     * the channel ends behind the answers that it owes. Returns false if no message was begun, or
     * if the stage has no answer for that. */
    bool (*answer_late)(domus_channel *channel);
    /* Cancel those asks that actors keep for requests of the channel's peer. */
    void (*cancel_kept)(domus_channel *channel);
    /* Find out, in a drain, whether the peer still has to send the rest of a body whose head had
     * come before. Returns whether the channel waits for it. */
    bool (*await_body)(domus_channel *channel);
} domi_pipe_ways;

/* The server to which this side has connected, for stages that verify it (domus_wire_server()). */
typedef struct domi_server {
    uint16_t port;
    char name[]; /* the host name to which this side has connected, or the address as text */
} domi_server;

/* Record in the memory of an on-demand pool, into which a connection writes its last data at its
 * end. */
typedef struct domi_last_word {
    bool was_used; /* the connection has sent an ask */
    /* the error of a stage of the connection, or of its handshake with the peer; 0: none */
    int error;
} domi_last_word;

/* The span of time over which the rate of the peer is measured now (rate.c). */
typedef struct domi_rate_span {
    uint64_t begun_ns; /* time at which the measured span of time began */
    uint64_t received; /* value of the channel's received_bytes at the begin of the span */
    /* value of the channel's answered_bytes at the begin of the span, if a message was under way;
     * UINT64_MAX: none was, or this side did not read all the time */
    uint64_t answered;
} domi_rate_span;

/* A channel. Its first four cache lines are those that a message uses on its way in and out. A
 * thread with many connections finds none of this in its near caches, so rarely needed fields stand
 * behind these lines. */
struct domus_channel {
    /* Cache line 0 of a channel: its identity and its state. */
    alignas(64) domi_io *io; /* the io of the channel's thread; it never changes */
    domi_house *house;       /* the channel's own house, a child of its owner's house */
    /* limits and time-outs of the channel, which counts as one of their users */
    domi_channel_settings *settings;
    /* the channel's pipeline (io/pipelines/); NULL: its actor handles bytes */
    struct domi_pipe *pipe;
    /* the header that a proxy has to send first (proxy.h); NULL: none is awaited */
    domi_proxy_header *proxy;
    int fd;                   /* descriptor of the channel's socket; -1: it is closed */
    uint32_t slot;            /* index of the channel in io->slots */
    uint32_t slot_generation; /* generation of the slot `slot` when the channel was made */
    uint32_t held;            /* number of received pieces of the channel that are not freed yet */
    /* state of the channel, a domi_channel_state; only move_channel_to_state() (state.c) changes it
     */
    uint8_t state;
    uint8_t cancels; /* number of the channel's cancel operations in flight */
    /* Flags of the channel. Each of the first seven keeps it from receiving;
     * domi_channel_is_free_to_receive() tests all seven but `sated` at once. */
    bool paused : 1;  /* back-pressure: the channel is not read */
    bool blocked : 1; /* while this is set, a channel that is paused does not call on_read either */
    /* more than sendHigh bytes are queued in the channel, or not yet at most sendLow again */
    bool high : 1;
    /* more bytes are queued than the channel's part (crowd.h); the channel is in the list of
     * crowded ones */
    bool crowded : 1;
    bool busy : 1;   /* as many requests of the channel are under way as requestsMax allows */
    bool halted : 1; /* the channel's actor wants no further input for now */
    /* in a drain: the requests that had come are read, and the channel reads no more */
    bool sated : 1;
    /* the channel's actor has finished sending: FIN follows behind the queued bytes */
    bool finished : 1;
    bool receiving : 1;  /* a receive of the channel is in flight */
    bool cancelling : 1; /* a cancel of the channel's receive is in flight */
    bool sending : 1;    /* a send of the channel is in flight */
    bool wraps : 1;      /* the channel's pipeline has byte stages */
    bool says_end : 1;   /* the channel's pipeline has bytes to send before the FIN */
    bool opened : 1;     /* on_open has been called for the channel, or its behaviour has none */
    bool ended : 1;      /* the channel's peer has finished sending */
    bool end_told : 1;   /* on_end was called for the channel */
    bool once : 1;       /* the channel's receive in flight brings one piece only */
    bool starved : 1;    /* the channel waits for a free receive buffer */
    bool dirty : 1; /* the channel is in the list of channels with something to send (io->dirty) */
    bool cancelled_all : 1; /* a cancel of all operations of the channel was submitted */
    bool abort : 1;         /* the close of the channel sends RST */
    bool fin_sent : 1;      /* the sending side of the channel's socket was shut down */
    bool aged : 1; /* the channel is older than channel.maxAge: `drain` was set because of that */
    /* the channel drains: it closes once everything that it has received is answered */
    bool drain : 1;
    bool relays : 1;  /* the channel belongs to a relay: a drain waits while bytes come or go */
    bool served : 1;  /* in a drain: a request of the channel was under way since the drain began */
    bool idle : 1;    /* the drain has ended the channel, and nothing of it was under way */
    bool cut : 1;     /* the library has ended the channel while it owed bytes to the peer */
    bool refused : 1; /* an error of the channel's actor, or of its peer's bytes, was counted */
    bool is_outbound : 1; /* this side has opened the channel's connection */
    /* the channel's pipeline has bytes that were not decoded yet, or a request that was not
     * begun */
    bool behind : 1;
    /* a piece of a body is wanted, so the channel receives although it is `busy` */
    bool reading : 1;
    /* the channel is reset when its queued bytes are sent (domi_channel_reset_when_sent()) */
    bool broken : 1;
    /* the channel's two directions belong to a tunnelled protocol, and each ends with FIN */
    bool tunnels : 1;
    /* the channel's peer has finished, and there is no on_end: close when nothing is under way */
    bool close_due : 1;
    /* asks wait in the channel's pool, and the channel takes the next one when it has room */
    bool pulls : 1;
    bool carries : 1;   /* a stage of the channel's pipeline carries inner channels */
    bool carry_due : 1; /* the channel is in io->carriers: its carrying stage has to be called */
    bool lends : 1;     /* asks for the channel's peer go to inner channels (io/inner/) */
    /* the deadline of an ask that the channel's peer has to answer ends the channel */
    bool bounds : 1;
    bool lent : 1;  /* the channel is an inner one, which is lent for an ask that is not over */
    bool rests : 1; /* the channel is an inner one that has nothing to do, and soon ends */

    /* Cache line 1 of a channel: the fields of its receiving side. */
    /* fields that only a channel of datagrams or an inner channel has; NULL: the channel is the
     * stream of a socket */
    DOMI_KEEP_PLACE(64) domi_special *special;
    /* received pieces of bytes that the channel's actor has not got yet */
    domi_buffer_list inbound;
    uint64_t copied; /* bytes of memory of those pieces in `inbound` that were copied to the heap */
    uint64_t received_bytes; /* number of bytes that the channel received while it was OPEN */
    /* the part of received_bytes that belongs to finished messages (due.h) */
    uint64_t answered_bytes;
    /* start of the channel's idle time: the last time when bytes came or went, or this side began
     * to read again */
    uint64_t active_ns;
    /* start of the channel's wait for the peer's first byte; 0: a byte has come */
    uint64_t silent_ns;

    /* Cache line 2 of a channel: the fields of its sending side. */
    /* written pieces of bytes that are not completely sent */
    DOMI_KEEP_PLACE(64) domi_buffer_list outbound;
    uint64_t queued_bytes; /* number of bytes in `outbound` that are not sent */
    /* number of bytes of answers that wait behind the answers to earlier requests
     * (io/pipelines/) */
    uint64_t answer_bytes;
    /* bytes of memory of `outbound` and of the answers that wait for their turn
     * (domi_buffer_cost_in_memory()) */
    uint64_t cost;
    uint64_t sent_bytes;  /* number of bytes that the kernel has taken since the channel opened */
    uint32_t head_offset; /* number of bytes of the first buffer of `outbound` that are sent */
    /* 0: nothing may be copied behind the last buffer of `outbound`; else 1 + number of free bytes
     * in that buffer */
    uint32_t tail_room;
    domus_channel *next_dirty; /* next channel in the list io->dirty */

    /* Cache line 3 of a channel: fields that most messages read only once. */
    DOMI_KEEP_PLACE(64) uint64_t send_ns; /* time at which the channel's send in flight began */
    /* number of bytes in the channel's socket that were not read yet when the drain began */
    uint64_t drain_bytes;
    /* list of promises that wait for bytes to leave the channel (flush.h); NULL: none */
    struct domi_promise *flushes;
    void *data; /* the user's pointer for the channel, as domus_channel_data() returns it */
    /* number of conversations that on_read has begun and that have not ended */
    uint32_t conversations;
    uint32_t asks; /* number of asks that the channel's peer has to answer (io/pipelines/) */
    /* time at which the answer to the oldest ask that the peer has is too late; 0: no bound
     * holds */
    uint64_t ask_due_ns;
    /* the received piece whose bytes a message showed when `inbound` was dropped */
    domus_buffer *shown;

    /* All further lines of a channel: fields that are rarely needed. */
    domi_peer *peer; /* the address on which the channel's connection is counted; NULL: none */
    /* the client of the connection, as a proxy has named it; NULL: no proxy has named one */
    domus_endpoint *client;
    /* the pool that gets back asks which the channel's peer does not answer; nobody: these asks
     * fail */
    domus_address pool;
    /* record in the memory of the channel's pool that is set when the channel ends, if it
     * `pulls` */
    domi_last_word *last_word;
    /* the server to which this side has connected; NULL: the connection was accepted or adopted */
    domi_server *server;
    /* the part of the channel's `cost` for answers that wait for their turn */
    uint64_t answer_cost;
    /* number of bytes that the channel dropped unsent; on_close may read this number */
    uint64_t unsent_bytes;
    uint64_t opened_ns; /* time at which this channel was made */
    /* number of bytes that the peer had acknowledged at the time peer_seen_ns */
    uint64_t peer_took;
    /* time at which the channel's peer was last seen to acknowledge enough bytes (shed.c) */
    uint64_t peer_seen_ns;
    /* time at which the pipeline checks the bodies that it sends in pieces; 0: never */
    uint64_t look_ns;
    uint64_t wake_ns; /* time at which the pipeline's message stage wants to be called; 0: never */
    /* time at which asks that actors keep for a finished peer are cancelled; 0: never */
    uint64_t kept_ns;
    /* time at which the channel's peer has finished, if `kept_ns` was set since */
    uint64_t finished_ns;
    /* time at which the peer is too late with the rest of a message (io/pipelines/late.h); 0: no
     * bound */
    uint64_t message_due_ns;
    /* time since which the paused channel is not read, as far as that was not added to
     * message_due_ns; 0: the channel is read */
    uint64_t unread_ns;
    /* number of bodies that leave the channel in pieces and have not ended; while there are any,
     * its close is a reset */
    uint32_t streams;
    /* number of requests and asks under way in inner channels of this one; a drain waits for
     * them */
    uint32_t carried;
    /* if the channel lends inner ones: value of `carried` from which on no further ask is sent */
    uint32_t lent_most;
    /* for an inner channel: number of stages of its pipeline that the outer channel has, too */
    uint8_t skipped;
    int error;           /* the error that the channel's on_close gets; 0: none */
    domi_rate_span rate; /* measurement of how fast the channel's peer sends (rate.c) */
    /* timer of the earliest time-out of the channel; it may fire before that time */
    domi_io_timer timer;
    domus_channel *next_starved; /* next channel in the list io->starved */
    domus_channel *next_carrier; /* next channel in the list io->carriers */
    /* next channel in the list of crowded channels, which begins at io->crowd_head */
    domus_channel *next_crowded;
    domus_channel *previous_crowded; /* previous channel in the list of crowded channels */
};

static_assert(offsetof(domus_channel, special) == 64, "line 1");
static_assert(offsetof(domus_channel, outbound) == 128, "line 2");
static_assert(offsetof(domus_channel, send_ns) == 192, "line 3");

static inline const domi_channel_ways *
domi_channel_get_special_functions(const domus_channel *channel)
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
    domi_wheel_disarm_node(&channel->io->wheel, &channel->timer.node);
    if (due_ns != UINT64_MAX)
        domi_wheel_arm_node(&channel->io->wheel, &channel->timer.node, due_ns);
}

/* Make sure that the stage of the channel that carries inner channels is called at the end of phase
 * 2; nothing happens if it has no such stage. */
static inline void domi_channel_schedule_carrying_stage(domus_channel *channel)
{
    if (!channel->carries || channel->carry_due || channel->state != DOMI_CHANNEL_OPEN)
        return;
    channel->carry_due = true;
    channel->next_carrier = channel->io->carriers;
    channel->io->carriers = channel;
}

/* Check that the fields of a channel fit to its state, after it has settled (channel_check.c).
 * Always returns true, so that it can stand in DOMI_CHECK_SLOW. */
bool domi_channel_fits_its_state(const domus_channel *channel);

#endif
