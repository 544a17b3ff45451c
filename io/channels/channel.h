/* The inside of a channel, which is a connection that belongs to an actor.
 *
 * Its parts, from the bottom up: ready.h wakes its actor; crowd.h bounds the bytes that
 * are queued; receive.h and send.h have the two directions; owed.h tells what the peer would miss;
 * state.h moves the channel from state to state; timeouts.h, rate.h and close.h say when it ends;
 * table.h makes and frees it; complete.h takes the completions. Owner thread. */
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

/* A channel of datagrams, and an inner channel (io/inner/), do these things in their own way. The
 * streams of sockets have none of this: their functions are called directly. The tables are filled
 * in io/datagrams/ and io/inner/, which are storeys above this one. */
typedef struct domi_channel_ways {
    bool is_inner; /* the channel has no descriptor; otherwise it is one of datagrams */
    void (*receive)(const domus_channel *channel); /* begin the receive */
    /* A receive has brought `size` bytes in a provided buffer. */
    void (*take)(domus_channel *channel, domus_buffer *buffer, uint32_t size);
    /* The receive has ended with an errno or 0, and without bytes. */
    void (*receive_failed)(domus_channel *channel, int error);
    int (*write)(domus_channel *channel, domus_buffer *bytes); /* to the connected peer */
    void (*send)(domus_channel *channel);    /* queue sends of what waits; no send is in flight */
    void (*be_late)(domus_channel *channel); /* the kernel had no room for sendTimeout */
    /* Whatever waits will not be sent: forget where it goes. */
    void (*forget_outbound)(domus_channel *channel);
    void (*note_end)(domus_channel *channel); /* the descriptor is about to be closed */
    /* Everything was sent on an inner channel, and nothing follows. */
    void (*finish)(domus_channel *channel);
    /* A piece of `inbound` of an inner channel was used. */
    void (*note_used)(domus_channel *channel);
} domi_channel_ways;

/* The part of a channel that only these channels have. A longer structure begins with it. */
typedef struct domi_special {
    const domi_channel_ways *ways;
    domus_channel *outer; /* for an inner channel: its carrier; NULL: it is given up */
} domi_special;

/* The services of a pipeline to its channel. The table is filled in io/pipelines/, which is a
 * storey above this one. */
typedef struct domi_pipe_ways {
    /* Queue bytes of the actor itself, which its byte stages wrap: a copy of `size` bytes at
     * `data`, or, if that is NULL, a slice, which stays the caller's. Returns 0; -EPIPE; -ENOBUFS;
     * -ENOMEM; what a stage returned, and then the channel was reset. */
    int (*write)(domus_channel *channel, const void *data, size_t size, domus_slice slice);
    /* Queue what ends the output of its stages. Returns 0; an error of a stage, and then the
     * channel is to be reset. */
    int (*end_output)(domus_channel *channel);
    /* The time that the message stage has set is over (`wake` in domus/stage.h). Returns 0; an
     * error of the stage, and then the channel is to be reset. */
    int (*wake)(domus_channel *channel, bool owed);
    /* Look how long the peer still has for the rest of a message (message_due_ns). Returns whether
     * it is too late. */
    bool (*is_late)(domus_channel *channel);
    /* The time of the peer is over: if it is to send the rest of a message, let the stage answer
     * that, and the channel end behind what it owes. Returns false if nothing was begun, or if the
     * stage has no words for that. */
    bool (*answer_late)(domus_channel *channel);
    /* Cancel those asks of the peer's requests that actors keep. */
    void (*cancel_kept)(domus_channel *channel);
    /* In a drain: see whether the peer is to send the rest of a body, whose head had come. Returns
     * whether it is waited for. */
    bool (*await_body)(domus_channel *channel);
} domi_pipe_ways;

/* The server to which this side has connected, for stages that verify it (domus_wire_server()). */
typedef struct domi_server {
    uint16_t port;
    char name[]; /* the host name that was connected to, or the address as text */
} domi_server;

/* The last word of a connection of a pool on demand, which lies in the memory of the pool. */
typedef struct domi_last_word {
    bool was_used; /* the channel has sent an ask */
    int error;     /* the error of a stage, or of its dialogue with the peer; 0: none */
} domi_last_word;

/* The time over which the rate of the peer is measured now (rate.c). */
typedef struct domi_rate_span {
    uint64_t begun_ns; /* when it began */
    uint64_t received; /* received_bytes at that time */
    /* answered_bytes at that time, if a message was under way; UINT64_MAX: none was, or this side
     * did not read all the time */
    uint64_t answered;
} domi_rate_span;

/* The first four cache lines are what a message touches on its way in and out. A thread with many
 * connections finds none of this in its near caches, so what is rarely needed stands behind. */
struct domus_channel {
    /* Line 0: what it is, and what it does now. */
    alignas(64) domi_io *io; /* the io of the channel's thread; constant */
    domi_house *house;       /* the channel's own house, a child of the actor that it belongs to */
    domi_channel_settings *settings; /* limits and time-outs; the channel is one of its users */
    struct domi_pipe *pipe;   /* the pipeline (io/pipelines/); NULL: the channel handles bytes */
    domi_proxy_header *proxy; /* the header of a proxy that is awaited; NULL: none is (proxy.h) */
    int fd;                   /* the connected socket; -1: it is closed */
    uint32_t slot;            /* the channel's index in io->slots */
    uint32_t slot_generation; /* the generation of `slot` when the channel was made */
    uint32_t held;            /* received pieces that are not freed yet */
    uint8_t state;            /* a domi_channel_state; only domi_channel_move() changes it */
    uint8_t cancels;          /* number of cancel operations in flight */
    /* Each of these hinders the channel; domi_channel_is_unhindered() asks them together. */
    bool paused : 1;     /* back-pressure: the channel does not receive */
    bool blocked : 1;    /* on_read is not called either */
    bool high : 1;       /* more than sendHigh is queued, or not yet less than sendLow */
    bool crowded : 1;    /* more is queued than the channel's part (crowd.h); it is in that list */
    bool busy : 1;       /* as many requests are under way as may be (requestsMax) */
    bool halted : 1;     /* the actor does not want to be shown more for now */
    bool sated : 1;      /* a drain, and the requests that had come are read: no more are read */
    bool finished : 1;   /* the actor has finished sending: FIN follows what is queued */
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
    bool behind : 1;    /* its pipeline has bytes that were not looked at, or a request not begun */
    bool reading : 1;   /* a piece of a body is wanted, so the channel receives though it is busy */
    bool broken : 1;    /* a reset follows when the queued bytes are sent (domi_channel_break) */
    bool tunnels : 1;   /* the streams belong to another protocol, and end with FIN */
    bool close_due : 1; /* the peer has finished, without on_end: close when nothing is under way */
    bool pulls : 1;     /* asks wait in its pool, and it takes the next one when it has room */
    bool carries : 1;   /* a stage of the pipeline carries inner channels */
    bool carry_due : 1; /* the carrying stage is to be called: the channel is in io->carriers */
    bool lends : 1;     /* asks for its peer go to inner channels (io/inner/) */
    bool bounds : 1;    /* the deadline of an ask that is with its peer ends it */
    bool lent : 1;      /* an inner channel that was lent for an ask which is not over */
    bool rests : 1;     /* an inner channel that has nothing to do, and soon ends */

    /* Line 1: what came. */
    /* of a channel of datagrams, or an inner one; NULL: the stream of a socket */
    DOMI_KEEP_PLACE(64) domi_special *special;
    domi_buffer_list inbound; /* received pieces that the actor was not shown yet */
    uint64_t copied;          /* memory of heap buffers in inbound in bytes */
    uint64_t received_bytes;  /* bytes that came while the channel was OPEN */
    /* the part of received_bytes that belongs to messages that are over (rate.h) */
    uint64_t answered_bytes;
    uint64_t active_ns; /* start of the idle time: when bytes came or went, or this
                    side began to read again */
    uint64_t silent_ns; /* start of the wait for the peer's first byte; 0: it has come */

    /* Line 2: what goes. */
    DOMI_KEEP_PLACE(64) domi_buffer_list outbound; /* written pieces that are not wholly sent */
    uint64_t queued_bytes;                         /* bytes in outbound that are not sent */
    uint64_t answer_bytes; /* bytes of answers that wait for their turn (io/pipelines/) */
    uint64_t cost;         /* memory of outbound and of those answers (domi_buffer_cost) */
    uint64_t sent_bytes;   /* bytes that the kernel has taken since the channel opened */
    uint32_t head_offset;  /* bytes of the first buffer of outbound that are sent */
    /* 0: nothing may be copied behind the last buffer of outbound; else 1 + the bytes free in it */
    uint32_t tail_room;
    domus_channel *next_dirty; /* links in io->dirty */

    /* Line 3: what most messages look at once. */
    DOMI_KEEP_PLACE(64) uint64_t send_ns; /* when the send in flight began */
    uint64_t drain_bytes;         /* bytes in the socket when the drain began, not yet read */
    struct domi_promise *flushes; /* waits for bytes to leave (flush.h); NULL: none */
    void *data;                   /* the pointer that the user's functions are called with */
    uint32_t conversations;       /* conversations that on_read began and that have not ended */
    uint32_t asks;                /* asks that its peer has to answer (io/pipelines/) */
    uint64_t ask_due_ns; /* when the answer to the oldest of them is too late; 0: no bound holds */
    domus_buffer *shown; /* the piece that a message showed when `inbound` was dropped */

    /* The rest. */
    domi_peer *peer;        /* the address on which the connection is counted; NULL: none */
    domus_endpoint *client; /* the client that a proxy has named; NULL: none */
    domus_address pool;     /* asks that its peer does not answer go there; nobody: they fail */
    /* a record of its pool that is set when the channel ends, if it `pulls` */
    domi_last_word *last_word;
    /* the server to which it has connected; NULL: it was accepted or adopted */
    domi_server *server;
    uint64_t answer_cost;  /* the part of `cost` that answers have which wait for their turn */
    uint64_t unsent_bytes; /* bytes that were dropped unsent; on_close may ask for them */
    uint64_t opened_ns;    /* when the channel was made */
    uint64_t peer_took;    /* bytes that the peer had acknowledged at peer_seen_ns */
    uint64_t peer_seen_ns; /* when the peer was last seen to acknowledge enough (shed.c) */
    uint64_t look_ns;      /* when its pipeline looks at what it sends in pieces; 0: never */
    uint64_t wake_ns;      /* when its message stage wants to be called; 0: never */
    uint64_t kept_ns;      /* when kept asks of a peer that has finished are cancelled; 0: never */
    uint64_t finished_ns;  /* when the peer has finished, if `kept_ns` was set since */
    /* when the peer is too late with the rest of a message (io/pipelines/late.h); 0: no bound */
    uint64_t message_due_ns;
    uint64_t unread_ns;  /* since when a paused channel is not read, as far as that was not added to
                            message_due_ns; 0: it is read */
    uint32_t streams;    /* bodies that leave in pieces and have not ended: a close is a reset */
    uint32_t carried;    /* things under way in its inner channels: a drain waits for them */
    uint32_t lent_most;  /* with so many of these no further ask is sent, if it lends */
    uint8_t skipped;     /* of an inner channel: stages of its pipeline that its outer one has */
    int error;           /* the error for on_close; 0: none */
    domi_rate_span rate; /* how fast the peer sends */
    domi_io_timer timer; /* fires at the earliest time-out of the channel, or before */
    domus_channel *next_starved;     /* links in io->starved */
    domus_channel *next_carrier;     /* links in io->carriers */
    domus_channel *next_crowded;     /* links in the list that io->crowd_head begins */
    domus_channel *previous_crowded; /* links the same list backwards */
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

/* Let the timer of the channel fire at `due_ns`; UINT64_MAX: never. */
static inline void domi_channel_set_timer(domus_channel *channel, uint64_t due_ns)
{
    domi_wheel_cancel(&channel->io->wheel, &channel->timer.node);
    if (due_ns != UINT64_MAX)
        domi_wheel_arm(&channel->io->wheel, &channel->timer.node, due_ns);
}

/* If a stage of the channel carries inner channels, let it be called at the end of phase 2. */
static inline void domi_channel_carry(domus_channel *channel)
{
    if (!channel->carries || channel->carry_due || channel->state != DOMI_CHANNEL_OPEN)
        return;
    channel->carry_due = true;
    channel->next_carrier = channel->io->carriers;
    channel->io->carriers = channel;
}

/* Check what has to be true in the state of the channel, after it has settled (channel_check.c).
 * Always returns true, so that it can stand in DOMI_CHECK_SLOW. */
bool domi_channel_is_sound(const domus_channel *channel);

#endif
