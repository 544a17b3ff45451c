/* The inside of a channel: the state machine of a connection, which channel.c draws. Owner thread.
 */
#ifndef DOMI_IO_CHANNELS_CHANNEL_H
#define DOMI_IO_CHANNELS_CHANNEL_H

#include "io/resources/buffer.h"

#include <sys/uio.h>

#define DOMI_GATHER_MAX 16 /* most buffers in one send */

typedef enum domi_channel_state {
    DOMI_CHANNEL_OPEN,
    DOMI_CHANNEL_FLUSHING,  /* its actor has closed it: the queued bytes are being sent */
    DOMI_CHANNEL_LINGERING, /* FIN is sent: it reads and throws away until the peer closes */
    DOMI_CHANNEL_CLOSING,   /* it waits until no operation is in flight */
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
    domi_peer *peer; /* the address on which it is counted; NULL: it is not counted */
    int fd;
    uint32_t slot;
    uint32_t generation;
    int error; /* the error for on_close; 0: none */
    uint8_t state;
    uint8_t cancels;     /* number of cancel operations in flight */
    bool receiving : 1;  /* a receive is in flight */
    bool cancelling : 1; /* a cancel of that receive is in flight */
    bool sending : 1;
    bool opened : 1; /* on_open has been called, or there is none */
    bool ended : 1;  /* the peer has finished sending */
    bool end_told : 1;
    bool paused : 1;  /* back-pressure: it does not receive */
    bool blocked : 1; /* too much waits to be sent: on_read is not called either */
    bool high : 1;    /* more than sendHigh is queued, or not yet less than sendLow */
    bool crowded : 1; /* more is queued than its part (crowd.h); it is in that list */
    bool once : 1;    /* the receive in flight brings one piece only */
    bool starved : 1; /* it waits for a receive buffer */
    bool ready : 1;   /* it is in the ready list of its actor */
    bool dirty : 1;   /* it is in the list of channels with something to send */
    bool cancelled_all : 1;
    bool abort : 1;         /* the close sends RST */
    bool drain : 1;         /* the system drains: close once everything received is answered */
    bool close_due : 1;     /* there is no on_end: close when `conversations` is 0 */
    uint32_t held;          /* received pieces that are not freed yet */
    uint32_t conversations; /* conversations that on_read began and that have not ended */
    domi_buffer_list inbound;
    domi_buffer_list outbound;
    uint64_t queued_bytes; /* bytes in outbound that are not sent */
    uint64_t unsent_bytes; /* bytes that were dropped unsent; on_close may ask for them */
    uint64_t cost;         /* memory of outbound in bytes (domi_buffer_cost) */
    uint64_t copied;       /* memory of heap buffers in inbound in bytes */
    uint64_t sent_bytes;   /* bytes that the kernel has taken since the channel opened */
    uint64_t peer_took;    /* bytes that the peer had acknowledged at peer_seen_ns */
    uint64_t peer_seen_ns; /* when the peer was last seen to acknowledge enough (shed.c) */
    uint32_t head_offset;  /* bytes of the first buffer of outbound that are sent */
    uint64_t drain_bytes;  /* bytes in the socket when the drain began, not yet read */
    uint64_t active_ns;    /* when the last byte came or went */
    uint64_t silent_ns;    /* begin of the wait for the peer's first byte; 0: it has come */
    uint64_t send_ns;      /* when the send in flight began */
    domi_io_timer timer;   /* fires at the earliest of its time-outs, or before */
    domus_channel *next_ready;
    domus_channel *next_dirty;
    domus_channel *next_starved;
    domus_channel *next_crowded;
    domus_channel *previous_crowded;
    domus_channel *next; /* links of the list of all channels of its house */
    domus_channel *previous;
    struct msghdr message;
    struct iovec vector[DOMI_GATHER_MAX];
};

/* The channels of a house, in `house->channels.set`. */
typedef struct domi_channels {
    domus_channel *all;
    domus_channel *ready_head;
    domus_channel *ready_tail;
    uint32_t count;
    struct domi_acceptor *acceptor; /* only in the house of an acceptor, which has no channels */
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

/* Make a channel of `fd` for the actor in `house`. The channel takes over `fd` and its count on
 * `peer` (NULL: it is not counted). Returns 0; -ENOMEM, and then both still belong to the caller.
 */
int domi_channel_adopt(domi_io *io, domi_house *house, int fd, domi_peer *peer);

/* Take each step that the state of the channel makes due: arm a receive, send FIN, cancel, close.
 */
void domi_channel_settle(domus_channel *channel);

/* Does the work of domus_channel_close(): send what is queued, then FIN. Returns 0; -EALREADY if it
 * is closed. */
int domi_channel_flush(domus_channel *channel);

/* End the channel with `error` for on_close, without sending what is queued. With `abort` the peer
 * gets RST. */
void domi_channel_end(domus_channel *channel, int error, bool abort);

/* End the channel with `error` and RST, because the ring has failed and its operations do not come
 * back. The bytes that are lost are counted (domi_channel_count_cut). The socket is disconnected
 * first: the kernel may still hold a send of bytes that are freed here, and a send on a socket
 * without a peer reads none of them. */
void domi_channel_fail(domus_channel *channel, int error);

/* Put the channel on the ready list of its actor, and make the house ready, because the actor has
 * something to do for it. */
void domi_channel_make_ready(domus_channel *channel);

/* Free the channel and its slot, after on_close has returned. */
void domi_channel_free(domus_channel *channel);

/* A number that names a channel for ever. domi_channel_of_key() returns NULL once that channel has
 * been freed. */
uint64_t domi_channel_key(const domus_channel *channel);
domus_channel *domi_channel_of_key(const domi_io *io, uint64_t key);

/* Count `pooled`, a conversation that the bytes of this channel began, until it has ended. */
void domi_channel_count_conversation(domus_channel *channel, domus_stack *pooled);

/* This is domi_manager.conversation_ended. If the channel of `key` is gone, nothing happens. */
void domi_channel_conversation_ended(domi_manager *manager, uint64_t key);

/* Called when the peer has finished sending and the actor has no on_end. The channel is closed when
 * the last conversation that its bytes began has ended; at once if there is none. */
void domi_channel_close_when_answered(domus_channel *channel);

/* Throw away the received bytes that were not read. */
void domi_channel_drop_inbound(domus_channel *channel);
uint64_t domi_channel_inbound_bytes(const domus_channel *channel);

/* Called when the timer of the channel fires: a time-out may be over. */
void domi_channel_handle_timer(domus_channel *channel);

/* --- channel_check.c -------------------------------------------------------------------------- */

/* Check what has to be true in the state of the channel, after it has settled. Always returns true,
 * so that it can stand in DOMI_CHECK_SLOW. */
bool domi_channel_is_sound(const domus_channel *channel);

/* --- drain.c: the end of a thread's channels -------------------------------------------------- */

/* Called when a drain begins: note how many bytes have come so far, which will be answered before
 * the channel closes. */
void domi_channel_drain(domus_channel *channel);

/* Close a draining channel if everything that it had received is answered. */
void domi_channel_drain_step(domus_channel *channel);

/* Bytes that the kernel holds for a socket. With FIONREAD these are bytes that nobody has read,
 * with SIOCOUTQ bytes that the peer has not acknowledged. Returns 0 if `fd` is negative or the
 * kernel does not tell. */
uint64_t domi_socket_bytes(int fd, unsigned long request);

/* Whether the kernel still holds bytes that the peer has not acknowledged. */
bool domi_channel_has_undelivered(const domus_channel *channel);

/* Count a channel that the library is about to end by itself, with the bytes that it owes. These
 * are bytes that were received and not answered, answers that were not delivered, and `lost_bytes`,
 * which the channel no longer holds. Nothing is counted if nothing is owed. */
void domi_channel_count_cut(domus_channel *channel, uint64_t lost_bytes);

/* --- receive.c ------------------------------------------------------------------------------- */

/* Called with each completion of a receive. */
void domi_channel_handle_receive(domus_channel *channel, const domi_completion *completion);
/* Whether a receive should be armed, if none is in flight. */
bool domi_channel_wants_receive(const domus_channel *channel);
void domi_channel_arm_receive(domus_channel *channel);

/* Cancel the receive that is in flight, if one is. */
void domi_channel_end_receive(domus_channel *channel);

/* Back-pressure: decide by the bytes queued and the buffers held whether the channel receives. */
void domi_channel_decide_receive(domus_channel *channel);

/* Take the next piece for the actor. Returns NULL when there is none. */
domus_buffer *domi_channel_take_inbound(domus_channel *channel);

/* Take the channel off the queue of starved receivers, because it will never receive again. */
void domi_channel_unstarve(domus_channel *channel);

/* --- send.c ---------------------------------------------------------------------------------- */

/* Called with the completion of a send. */
void domi_channel_handle_send(domus_channel *channel, const domi_completion *completion);
/* Queue one send of the bytes that wait, unless one is in flight or the channel closes. */
void domi_channel_send(domus_channel *channel);
/* Throw away the bytes that are not sent. No send may be in flight. */
void domi_channel_drop_outbound(domus_channel *channel);

/* --- run.c: the actor's side ----------------------------------------------------------------- */

/* This is domi_manager.conversation_failed: reset the channel for which the conversation was begun.
 * Returns false if it was begun for none. */
bool domi_channel_conversation_failed(domi_manager *manager, const domus_stack *stack, int error);

/* These are domi_manager.run_channels, stop_channels and take_event. */
uint32_t domi_channels_run(domi_manager *manager, domi_house *house, uint32_t budget);
uint32_t domi_channels_stop(domi_manager *manager, domi_house *house);
bool domi_channels_handle_event(domi_manager *manager, domi_house *house, domi_envelope *message);

#endif
