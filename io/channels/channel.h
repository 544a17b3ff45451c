/* Channels inside: the state machine of a connection (drawn in channel.c). Owner thread. */
#ifndef DOMI_IO_CHANNELS_CHANNEL_H
#define DOMI_IO_CHANNELS_CHANNEL_H

#include "io/resources/buffer.h"

#include <sys/uio.h>

#define DOMI_GATHER_MAX 16 /* buffers in one send */

typedef enum domi_channel_state {
    DOMI_CHANNEL_OPEN,
    DOMI_CHANNEL_FLUSHING,  /* closed by its actor: sends what is queued */
    DOMI_CHANNEL_LINGERING, /* FIN sent: reads and throws away until the peer closes */
    DOMI_CHANNEL_CLOSING,   /* waits until nothing is in flight */
    DOMI_CHANNEL_CLOSED,    /* the descriptor is closed; on_close is due */
    DOMI_CHANNEL_STATES,
} domi_channel_state;

typedef struct domi_buffer_list {
    domus_buffer *head;
    domus_buffer *tail;
} domi_buffer_list;

struct domus_channel {
    domi_io *io;
    domi_house *house;
    void *data;
    domi_peer *peer; /* the address that it is counted on; NULL: it is not counted */
    int fd;
    uint32_t slot;
    uint32_t generation;
    int error; /* for on_close */
    uint8_t state;
    uint8_t cancels;     /* cancel operations in flight */
    bool receiving : 1;  /* a receive is armed */
    bool cancelling : 1; /* ... and is being ended */
    bool sending : 1;
    bool opened : 1; /* on_open was called */
    bool ended : 1;  /* the peer has finished sending */
    bool end_told : 1;
    bool paused : 1;  /* back-pressure: does not receive */
    bool blocked : 1; /* ... as too much waits to be sent: on_read is not called either */
    bool high : 1;    /* ... more than channel.sendHigh, and not yet less than channel.sendLow */
    bool crowded : 1; /* ... more than its part of the thread's bound (crowd.h); in the list */
    bool once : 1;    /* the receive that is armed brings one piece */
    bool starved : 1; /* waits for buffers */
    bool ready : 1;   /* in its actor's ready list */
    bool dirty : 1;   /* in the tick's send list */
    bool cancelled_all : 1;
    bool abort : 1;         /* close with RST */
    bool drain : 1;         /* the system stops: close once all that had come is answered */
    bool close_due : 1;     /* half closed without on_end: close when `conversations` is 0 */
    uint32_t held;          /* pieces it received that are not freed yet */
    uint32_t conversations; /* how many that its bytes began (on_read parked) have not ended */
    domi_buffer_list inbound;
    domi_buffer_list outbound;
    uint64_t queued_bytes; /* in outbound */
    uint64_t unsent_bytes; /* that were thrown away: on_close may ask for them */
    uint64_t cost;         /* what outbound takes (domi_buffer_cost) */
    uint64_t copied;       /* what heap buffers in inbound take */
    uint64_t sent_bytes;   /* that the kernel has taken, ever */
    uint64_t peer_took;    /* bytes that the peer had acknowledged ... */
    uint64_t peer_seen_ns; /* ... when it was last seen to take some (shed.c) */
    uint32_t head_offset;  /* of outbound's first buffer, sent already */
    uint64_t drain_bytes;  /* that were in the socket when the drain began, still to be read */
    uint64_t active_ns;    /* the last byte came or went */
    uint64_t silent_ns;    /* since when its peer might have sent its first byte; 0: it has */
    uint64_t send_ns;      /* the send in flight began */
    domi_io_timer timer;   /* idle, or linger */
    domus_channel *next_ready;
    domus_channel *next_dirty;
    domus_channel *next_starved;
    domus_channel *next_crowded;
    domus_channel *previous_crowded;
    domus_channel *next; /* among its house's */
    domus_channel *previous;
    struct msghdr message;
    struct iovec vector[DOMI_GATHER_MAX];
};

/* A house's channels; house->channels.set. */
typedef struct domi_channels {
    domus_channel *all;
    domus_channel *ready_head;
    domus_channel *ready_tail;
    uint32_t count;
    struct domi_acceptor *acceptor; /* an acceptor's house has this instead */
} domi_channels;

static inline void domi_buffer_list_put(domi_buffer_list *list, domus_buffer *buffer)
{
    buffer->next = NULL;
    if (list->head == NULL)
        list->head = buffer;
    else
        list->tail->next = buffer;
    list->tail = buffer;
}

static inline domus_buffer *domi_buffer_list_take(domi_buffer_list *list)
{
    domus_buffer *buffer = list->head;

    if (buffer != NULL)
        list->head = buffer->next;
    return buffer;
}

/* --- channel.c: the machine ------------------------------------------------------------------ */

/* Take `fd` and its count on `peer` (NULL: none) over for the actor in `house`. Returns 0; -ENOMEM,
 * and both are still the caller's. */
int domi_channel_adopt(domi_io *io, domi_house *house, int fd, domi_peer *peer);

/* Take the next steps of its state: arm a receive, send FIN, cancel, close. */
void domi_channel_settle(domus_channel *channel);

/* domus_channel_close(). */
int domi_channel_flush(domus_channel *channel);

/* Close with `error`; with `abort`, by RST. */
void domi_channel_shut(domus_channel *channel, int error, bool abort);

/* The ring has failed, and what it has in flight does not come back: count what is cut, and close
 * with `error`, by RST. The socket is disconnected first, because the kernel may still hold a send
 * of bytes that are freed here, and a send to a socket without a peer reads none of them. */
void domi_channel_fail(domus_channel *channel, int error);

/* Its actor has to look at it: put it on the ready list and make the house ready. */
void domi_channel_make_ready(domus_channel *channel);

/* on_close has returned: free the slot. */
void domi_channel_free(domus_channel *channel);

/* What finds a channel as long as it is there; afterwards NULL. */
uint64_t domi_channel_key(const domus_channel *channel);
domus_channel *domi_channel_of_key(const domi_io *io, uint64_t key);

/* `pooled` is a conversation that this channel's bytes began: count it until it has ended. */
void domi_channel_count_conversation(domus_channel *channel, domus_stack *pooled);

/* domi_manager.conversation_ended. The channel of `key` may be gone: then nothing happens. */
void domi_channel_conversation_ended(domi_manager *manager, uint64_t key);

/* The peer has finished sending, and there is no on_end: close when the last conversation that its
 * bytes began has ended; at once when there is none. */
void domi_channel_close_when_answered(domus_channel *channel);

/* Throw away what came and was not read; how many bytes that is. */
void domi_channel_drop_inbound(domus_channel *channel);
uint64_t domi_channel_inbound_bytes(const domus_channel *channel);

/* A timer of the io wheel belongs to a channel: idle or linger time is over. */
void domi_channel_timer(domus_channel *channel);

/* --- channel_check.c -------------------------------------------------------------------------- */

/* For DOMI_CHECK_SLOW when a channel has settled: what is true in its state. Returns true. */
bool domi_channel_is_sound(const domus_channel *channel);

/* --- drain.c: the end of a thread's channels -------------------------------------------------- */

/* The system stops: answer what has come so far, then close. */
void domi_channel_drain(domus_channel *channel);

/* Close a draining channel if everything is answered. */
void domi_channel_drain_step(domus_channel *channel);

/* Bytes that the kernel holds for a socket: FIONREAD, those that nobody has read; SIOCOUTQ, those
 * that the peer has not acknowledged. 0 if `fd` is negative or the kernel does not say. */
uint64_t domi_socket_bytes(int fd, unsigned long request);

/* Whether the kernel still has bytes that the peer has not acknowledged. */
bool domi_channel_has_undelivered(const domus_channel *channel);

/* The library is about to end this channel by itself: count it, with its bytes that were received
 * and not answered, or answered and not delivered, and with `lost_bytes`, which it no longer has.
 * Counts nothing when nothing is owed. */
void domi_channel_count_cut(domus_channel *channel, uint64_t lost_bytes);

/* --- receive.c ------------------------------------------------------------------------------- */

void domi_channel_received(domus_channel *channel, const domi_completion *completion);
bool domi_channel_wants_receive(const domus_channel *channel);
void domi_channel_arm_receive(domus_channel *channel);

/* End the receive that is armed, if one is. */
void domi_channel_end_receive(domus_channel *channel);

/* Back-pressure: stop or go on receiving, by what is queued and held. */
void domi_channel_pressure(domus_channel *channel);

/* The next piece for its actor; NULL: there is none. */
domus_buffer *domi_channel_take_inbound(domus_channel *channel);

/* It will never receive again: leave the queue of the starved. */
void domi_channel_unstarve(domus_channel *channel);

/* --- send.c ---------------------------------------------------------------------------------- */

void domi_channel_sent(domus_channel *channel, const domi_completion *completion);
void domi_channel_send(domus_channel *channel);
void domi_channel_drop_outbound(domus_channel *channel);

/* --- run.c: the actor's side ----------------------------------------------------------------- */

/* domi_manager.conversation_failed: the channel that has begun it is reset. */
bool domi_channel_conversation_failed(domi_manager *manager, const domus_stack *stack, int error);

/* domi_manager.run_channels, .stop_channels and .take_event. */
uint32_t domi_channels_run(domi_manager *manager, domi_house *house, uint32_t budget);
uint32_t domi_channels_stop(domi_manager *manager, domi_house *house);
bool domi_channels_event(domi_manager *manager, domi_house *house, domi_envelope *message);

#endif
