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

#include "house/conversation/asks.h"
#include "house/message/owned.h"
#include "io/channels/ready.h"
#include "io/pipelines/asked.h"
#include "io/wire/wire.h"

/* A request, from its decoding until its answer is queued. */
typedef struct domi_request {
    uint64_t id;            /* the identifier that the stage has given to the request */
    const domus_type *type; /* type of the request; NULL: it stands for bytes that are wrong */
    domi_buffer_list bytes; /* the answer, while it waits for its turn */
    uint64_t size;          /* number of bytes in `bytes` */
    bool answered;
    /* the answer was queued before its turn, because requests have ids, and the request is not
     * counted any more */
    bool over;
    bool alone;     /* the stage has marked the request as DOMUS_ALONE */
    bool streaming; /* the answer has begun, and leaves in pieces */
    bool late;      /* the request's body did not come in time */
    int cut;        /* the error with which that stream has ended before its end; 0: none */
    uint64_t note;  /* number that the stage keeps for that stream */
} domi_request;

/* The body that the peer sends now, or has sent last (body.h). */
typedef struct domi_body {
    uint32_t number;    /* number of the body in the wire; 0: there was none */
    uint32_t request;   /* the number of the request to which the body belongs */
    bool open;          /* the body has not ended */
    bool of_answer;     /* the body belongs to an answer, which is under way until the body ends */
    bool is_rest;       /* the body is all that the peer still sends (domus_wire_rest()) */
    bool wanted;        /* a piece of the body was read, so the stage knows that it is wanted */
    bool over;          /* nobody may read it any more */
    bool skipping;      /* nobody reads the rest, which is thrown away */
    int error;          /* the error that cut the body; 0: the body was not cut */
    uint32_t readers;   /* number of asks in `reader`: 0 or 1 */
    domi_node *reader;  /* the ask for the next piece; NULL: no read waits */
    uint64_t skip_left; /* bytes that may still be skipped */
} domi_body;

/* The request of this side that leaves in pieces now, or has last (upload.h). */
typedef struct domi_upload {
    uint32_t number; /* number of the upload's ask */
    bool open;       /* the end of the upload was not sent */
    bool ended;      /* the end was sent, or the upload was cut, and later asks still wait */
    bool answered;   /* the answer of the peer has come */
    bool told;       /* the answer has come, and the writer was told so */
    bool ask_over;   /* the answer has come, and has no body or its body has ended */
    /* the upload was cut: the error of the reset that follows behind the body of the answer; 0:
     * none */
    int doomed;
    uint64_t note;            /* number that the stage keeps for the upload */
    domi_envelope *ask;       /* the ask of the upload; valid until it is answered */
    const domus_stack *asker; /* the conversation that has begun it */
    /* serial of that stack; it has another one when the conversation is over */
    uint32_t asker_serial;
    uint64_t deadline_ns; /* deadline of the upload; 0: none */
} domi_upload;

/* The time of the peer for the rest of a body (late.h). */
typedef struct domi_awaited {
    uint32_t body;    /* number of the body, if it comes in pieces; 0: it comes as a whole */
    uint64_t seen;    /* value of received_bytes at the last check */
    uint64_t left_ns; /* time in stock in nanoseconds, while the time does not run */
} domi_awaited;

/* most requests from the oldest unanswered one on. With ids there may be more than
 * channel.requestsMax, because answers do not wait for earlier ones */
#define DOMI_REQUESTS_MOST 65536u

typedef struct domi_pipe {
    domus_channel *channel;
    domus_wire *wire;
    /* stack with the promises of requests that have left the house; NULL: none yet */
    domus_stack *holder;

    domi_request *places; /* places of requests: request n is in places[n & (places_count - 1)] */
    uint32_t places_count;
    uint32_t first;     /* number of the oldest request that is not over */
    uint32_t next;      /* number that the next request gets */
    uint32_t answering; /* number of the request whose answer is encoded now, or was encoded last */
    domi_request place; /* the first place, which is enough for a peer that waits for each answer */

    domi_envelope *made; /* the envelope in which a stage fills a payload; NULL: none */
    /* the message that is handled now and has not left the turn; NULL: none */
    domi_envelope *current;
    domi_envelope *held; /* a request that may not begin yet */
    uint64_t held_id;    /* identifier of `held` */
    uint32_t held_marks;
    uint32_t queue_count; /* number of asks in `queue` */
    domus_buffer *used;   /* the piece whose last byte the message at hand has used */

    domi_asked asked;      /* asks with the peer; their number is channel->asks */
    domi_node *queue;      /* asks that wait to be sent */
    uint64_t looked_ns;    /* time at which expired asks were last removed from `queue` */
    uint32_t next_ask;     /* number of the next ask, for protocols with ids */
    uint32_t writer_count; /* number of writes in `writers` */

    domi_body body;
    domi_awaited awaited;
    domi_upload upload;
    /* list of inner channels with news for the stage that carries them (io/inner/) */
    struct domi_inner *news;
    struct domi_inner *news_last;
    domi_node *writers; /* writes to streams (stream.h) that wait until the next piece may come */

    /* the pipeline that follows when the requests so far are answered (life.h); NULL: none */
    const domus_pipeline *change;
    bool change_clean; /* the peer must have sent no further bytes when the change is carried out */
    bool asked_last;   /* no further ask is sent, and the channel closes when all are answered */
    /* fate of the sent asks, as the stage has declared it (returned.h); 0: none declared */
    uint8_t fate;
    /* an answer for this channel itself was decoded, and has to be handled first */
    bool own_answer;

    bool seen_all;  /* in a drain: all bytes that had come when it began were decoded */
    bool has_newer; /* in a drain: a body has begun since then */

    bool stopped; /* decoding has stopped for `own_answer` or an upload, or an upload has ended */

    /* number of the last round in which the pipeline had its turn (time.h) */
    uint32_t served_round;
    /* number of the last round in which the pipeline waited for its turn (time.h) */
    uint32_t waits_round;

    bool running; /* messages are being handled, and the run goes on with the rest */
    bool alone;   /* a request that is alone is not answered yet */
    /* a request that is alone is not answered yet, and the actor has to be told at once when the
     * peer has ended */
    bool hears;
    /* a request that is alone is not answered yet, and the channel closes when the peer has
     * ended */
    bool ends;
    /* a request that is alone with one of these two marks, also after the actor was told */
    bool heard;
    /* the last message shows bytes where they were received, because there was no memory to copy
     * them out; the channel was reset */
    bool undone;
    bool dry; /* all received bytes were decoded */
    /* the bytes are wrong, or the last message was made: nothing more is decoded, and the channel
     * will close */
    bool failed;
} domi_pipe;

/* Returns the number of requests that are not over. */
static inline uint32_t domi_pipe_requests(const domi_pipe *pipe)
{
    return pipe->next - pipe->first;
}

/* Returns the channel of a house; NULL: the house belongs to no channel, or the channel is gone. */
static inline domus_channel *domi_pipe_channel_of(const domi_house *house)
{
    return domi_house_is_channel(house) ? house->channels.owned : NULL;
}

/* Returns the pipeline of the channel of a house; NULL: there is none, or none any more. */
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

/* Free the piece whose last byte was used, when no message shows it any more. */
static inline void domi_pipe_free_used(domi_pipe *pipe)
{
    if (pipe->used != NULL) /* mostly there is none, and this test spares a call */
        domus_buffer_free(pipe->used);
    pipe->used = NULL;
}

/* Mark the open body as one that nobody may read any more: the next run handles the rest of it
 * (body.h). */
static inline void domi_pipe_end_body(domi_pipe *pipe)
{
    pipe->body.over = true;
    if (!pipe->running)
        domi_channel_make_ready(pipe->channel);
}

/* Let the bytes that are encoded next belong to the answer of this request. If they have to wait
 * for their turn, byte stages wrap them when they leave. */
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

/* Returns true once, when the answer to the upload has come and its writer was not told yet. */
static inline bool domi_upload_mark_writer_told(domi_pipe *pipe)
{
    bool is_news = pipe->upload.answered && !pipe->upload.told;

    pipe->upload.told = pipe->upload.told || is_news;
    return is_news;
}

#endif
