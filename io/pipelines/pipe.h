/* The pipeline of one channel: its wire (io/wire/), the requests of its peer that are not answered
 * yet, and the asks that the peer has to answer. The inside of domus/pipeline.h.
 *
 * Its parts: open.c makes and ends it; change.c changes its stages; decode.c takes messages out of
 * the bytes and handles them, within the run of the channel's actor; answers.c brings answers back
 * in the order of the requests; late.c bounds the time for the rest of a message; mail.c sends what
 * actors have for the peer, and gives them its answers; body.c gives bodies to their readers,
 * stream.c sends answers in pieces, and upload.c requests.
 *
 * Requests are numbered in the order in which they came. A window of numbers, from the oldest that
 * is not answered to the newest, has a place each in `places`. The request at the front may write
 * to the channel; an answer behind it is encoded when it is there, and its bytes wait in its place.
 *
 * Owner thread. */
#ifndef DOMI_IO_PIPELINES_PIPE_H
#define DOMI_IO_PIPELINES_PIPE_H

#include "house/conversation/peer.h"
#include "house/message/owned.h"
#include "io/channels/ready.h"
#include "io/pipelines/asked.h"
#include "io/wire/wire.h"

/* A request, from its decoding until its answer is queued. */
typedef struct domi_request {
    uint64_t id;            /* the identifier that the stage has given to the request */
    const domus_type *type; /* NULL: it stands for bytes that are wrong */
    domi_buffer_list bytes; /* the answer, which waits for its turn */
    uint64_t size;          /* bytes of that */
    bool answered;
    bool over; /* with ids: its answer was queued before its turn, and it is not counted any more */
    bool alone;     /* DOMUS_ALONE */
    bool streaming; /* the answer has begun, and leaves in pieces */
    bool late;      /* the request's body did not come in time */
    int cut;        /* the error with which that stream has ended before its end; 0: it has not */
    uint64_t note;  /* the word that the stage keeps for that stream */
} domi_request;

/* The body that the peer sends now, or has sent last (body.h). */
typedef struct domi_body {
    uint32_t number;    /* in the wire; 0: there was none */
    uint32_t request;   /* the number of the request to which the body belongs */
    bool open;          /* the end of the body has not come */
    bool of_answer;     /* the body belongs to an answer, which is under way until the body ends */
    bool is_rest;       /* the body is all that the peer still sends (domus_wire_rest()) */
    bool wanted;        /* the body was read once, so the stage knows that somebody wants it */
    bool over;          /* nobody may read it any more */
    bool skipping;      /* nobody reads the rest, which is thrown away */
    int error;          /* the error that cut the body; 0: the body was not cut */
    uint32_t readers;   /* asks in `reader`: 0 or 1 */
    domi_node *reader;  /* the ask for the next piece; NULL: nobody reads */
    uint64_t skip_left; /* bytes that may still be skipped */
} domi_body;

/* The request of this side that leaves in pieces now, or has last (upload.h). */
typedef struct domi_upload {
    uint32_t number; /* the number of the upload's ask */
    bool open;       /* the end of the upload was not sent */
    bool ended;      /* the end was sent, or the upload was cut, and later asks still wait */
    bool answered;   /* the answer of the peer has come */
    bool told;       /* and the writer has heard of it */
    bool ask_over;   /* and that answer has no body, or the body has ended */
    int doomed;      /* it was cut: the error of the reset behind the body of the answer; 0: none */
    uint64_t note;   /* a number that belongs to the stage */
    domi_envelope *ask;       /* valid until it is answered */
    const domus_stack *asker; /* the conversation that has begun it */
    uint32_t asker_serial;    /* that stack has another one when the conversation is over */
    uint64_t deadline_ns;     /* 0: none */
} domi_upload;

/* The time of the peer for the rest of a body (late.h). */
typedef struct domi_awaited {
    uint32_t body;    /* the number of the body in pieces; 0: it is one that comes whole */
    uint64_t seen;    /* received_bytes at the last look */
    uint64_t left_ns; /* time in stock, while it does not run */
} domi_awaited;

/* Requests from the oldest that is not answered on, at most. With ids that may be more than
 * channel.requestsMax, because answers do not wait for those before them. */
#define DOMI_REQUESTS_MOST 65536u

typedef struct domi_pipe {
    domus_channel *channel;
    domus_wire *wire;
    domus_stack *holder; /* the promises of requests that have left the house; NULL: none yet */

    domi_request *places; /* the request n is in places[n & (places_count - 1)] */
    uint32_t places_count;
    uint32_t first;     /* number of the oldest request that is not over */
    uint32_t next;      /* number that the next request gets */
    uint32_t answering; /* number of the request whose answer is encoded now, or was last */
    domi_request place; /* the first place, which is enough for a peer that waits for answers */

    domi_envelope *made;    /* the envelope in which a stage fills a payload; NULL: none */
    domi_envelope *current; /* the message that is handled now and that has not left; NULL: none */
    domi_envelope *held;    /* a request that may not begin yet */
    uint64_t held_id;       /* the identifier of `held` */
    uint32_t held_marks;
    uint32_t queue_count; /* asks in `queue` */
    domus_buffer *used;   /* the piece whose last byte the message at hand has used */

    domi_asked asked;      /* asks with the peer; channel->asks is their number */
    domi_node *queue;      /* asks that wait */
    uint64_t looked_ns;    /* when `queue` was last looked through for asks that have expired */
    uint32_t next_ask;     /* the number that the next ask gets, for protocols with ids */
    uint32_t writer_count; /* in `writers` */

    domi_body body;
    domi_awaited awaited;
    domi_upload upload;
    /* inner channels with news for the stage that carries them (io/inner/) */
    struct domi_inner *news;
    struct domi_inner *news_last;
    domi_node *writers; /* writes to streams (stream.h) that wait until the next piece may come */

    /* the pipeline that follows when the requests so far are answered (change.h); NULL: none */
    const domus_pipeline *change;
    bool change_clean; /* the peer must have sent nothing by then */
    bool asked_last;   /* no ask is sent any more, and the channel closes when all are answered */
    uint8_t fate; /* what its stage has said of the asks that were sent (returned.h); 0: nothing */
    bool own_answer; /* an answer for this channel itself was decoded, and is to be handled first */

    bool seen_all;  /* in a drain: all was looked at that had come when it began, */
    bool has_newer; /* and a body has begun since then */

    bool stopped; /* for one of these two nothing more is decoded, or an upload has ended */

    uint32_t served_round; /* the last round in which it had its turn, and the last in which it */
    uint32_t waits_round;  /* waited for it (time.h) */

    bool running; /* messages are being handled, and the run goes on with what is left */
    bool alone;   /* a request that is alone is not answered yet */
    bool hears;   /* the same, and the actor is to hear at once that the peer has ended */
    bool ends;    /* the same, and the channel is closed then */
    bool heard;   /* it is one of those, also when it has heard of that */
    /* the last message shows bytes where they were received, because there was no memory to copy
     * them out; the channel was reset */
    bool undone;
    bool dry; /* everything that came was looked at */
    /* the bytes are wrong, or the last message was made: nothing more is decoded, and the channel
     * will close */
    bool failed;
} domi_pipe;

/* Requests that are not over. */
static inline uint32_t domi_pipe_requests(const domi_pipe *pipe)
{
    return pipe->next - pipe->first;
}

/* The channel of a house; NULL: it is not that of a channel, or the channel is gone. */
static inline domus_channel *domi_pipe_channel_of(const domi_house *house)
{
    return domi_house_is_channel(house) ? house->channels.owned : NULL;
}

/* The pipeline of the channel of a house; NULL: there is none, or none any more. */
static inline domi_pipe *domi_pipe_of(const domi_house *house)
{
    const domus_channel *channel = domi_pipe_channel_of(house);

    return channel != NULL ? channel->pipe : NULL;
}

/* Throw away a message of the peer that was not handled. NULL is allowed. */
static inline void domi_pipe_drop_message(domi_manager *manager, domi_envelope *message)
{
    if (message != NULL)
        domi_envelope_end(manager, message);
}

/* No message shows the piece any more whose last byte was used. */
static inline void domi_pipe_free_used(domi_pipe *pipe)
{
    if (pipe->used != NULL) /* mostly there is none: this spares a call */
        domus_buffer_free(pipe->used);
    pipe->used = NULL;
}

/* Nobody may read the open body any more: what is left of it is for the next run (body.h). */
static inline void domi_pipe_end_body(domi_pipe *pipe)
{
    pipe->body.over = true;
    if (!pipe->running)
        domi_channel_make_ready(pipe->channel);
}

/* The next thing to be encoded belongs to the answer of this request. If that has to wait for its
 * turn, byte stages wrap it when it leaves. */
static inline void domi_pipe_begin_answer(domi_pipe *pipe, uint32_t number)
{
    pipe->answering = number;
    if (DOMI_UNLIKELY(pipe->channel->wraps))
        pipe->wire->plain = number != pipe->first && !pipe->wire->pipeline->by_id;
}

static inline domi_request *domi_pipe_request(domi_pipe *pipe, uint32_t number)
{
    return &pipe->places[number & (pipe->places_count - 1)];
}

/* True if the body of the upload with this number is open. */
static inline bool domi_upload_is_open(const domi_pipe *pipe, uint32_t number)
{
    return pipe->upload.open && pipe->upload.number == number;
}

/* True once, when the answer to the upload has come and its writer has not heard of it. */
static inline bool domi_upload_tell_answered(domi_pipe *pipe)
{
    bool is_news = pipe->upload.answered && !pipe->upload.told;

    pipe->upload.told = pipe->upload.told || is_news;
    return is_news;
}

#endif
