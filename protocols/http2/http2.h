/* One connection of HTTP/2, and the doors between the files of this library.
 *
 * nghttp2 reads and writes frames, and does no IO. The stage gives it the bytes of the peer, and
 * appends what it has to send (stage.c, session.c). A request becomes the text of HTTP/1.1
 * (request.c), which a lane takes to its inner channel; the answer is read there, and becomes
 * frames (answer.c, fields.c, body.c). guard.c counts what a peer should not do often.
 *
 * The text is canonical: it is made here, of parts that were checked. So nobody can put one request
 * into another. All functions are called within a call of the stage, in which `wire` is set. */
#ifndef DOMI_PROTOCOLS_HTTP2_H
#define DOMI_PROTOCOLS_HTTP2_H

#include <domus/http2.h>

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that grow, up to a bound of their user. */
typedef struct domi_h2_text {
    char *bytes;
    size_t size;
    size_t room;
} domi_h2_text;

/* Where the bytes of an answer belong that come next from the inner channel. */
typedef enum domi_h2_phase {
    DOMI_H2_HEAD,
    DOMI_H2_COUNTED,  /* a body of `left` bytes */
    DOMI_H2_SIZE,     /* of a body in chunks: the line of a size */
    DOMI_H2_CHUNK,    /* `left` bytes of a chunk, */
    DOMI_H2_AFTER,    /* and the end of its line */
    DOMI_H2_TRAILERS, /* the lines behind the last chunk */
    DOMI_H2_REST,     /* a body up to the end of the output */
    DOMI_H2_DONE,     /* the answer is whole */
} domi_h2_phase;

struct domi_h2;

/* An inner channel, and the stream that it serves now. */
typedef struct domi_h2_lane {
    struct domi_h2 *of;
    domus_inner *inner;
    struct domi_h2_lane *next; /* in the list of idle lanes, or of busy ones */
    struct domi_h2_lane *previous;
    int32_t id;         /* of the stream; 0: the lane is idle */
    uint8_t phase;      /* domi_h2_phase */
    bool is_head;       /* the method is HEAD */
    bool in_chunks;     /* the body of the request is passed on in chunks */
    bool is_passed;     /* the request was passed on to its end */
    bool closes;        /* the inner channel ends with this answer */
    bool tunnels;       /* the request wants to become a WebSocket (websocket.c) */
    bool is_open;       /* and the answer was that it does */
    bool is_cut;        /* the stream is being reset by this side */
    bool is_busy;       /* of a client: it is lent, and its stream is not over; */
    bool is_sent;       /* the head of the request was sent, */
    bool is_answered;   /* and that of the final answer has come */
    uint32_t heard;     /* of a client: `heard` of the connection when the request began */
    uint8_t skipped;    /* bytes behind the piece that is sent now, which end the body */
    uint64_t left;      /* bytes of the body, or of its chunk, that are to come */
    uint64_t data;      /* bytes of the request's body that were passed on */
    uint64_t credited;  /* bytes of `data` for which the peer got credit */
    domi_h2_text lines; /* the head of the answer, or its trailers, that are not whole */
    domi_h2_text early; /* bytes for a tunnel that is not open yet */
} domi_h2_lane;

/* Counts of the present second (guard.c). */
typedef struct domi_h2_guard {
    uint64_t begun_ns;
    uint32_t resets;
    uint32_t controls;
} domi_h2_guard;

/* The block of fields that is being read. */
typedef struct domi_h2_block {
    bool open;         /* its end has not come */
    bool is_trailers;  /* the block has trailers */
    bool is_tunnel;    /* the method is CONNECT, and the protocol that of WebSocket */
    bool has_length;   /* Content-Length was there */
    uint16_t status;   /* the status with which the request is refused; 0: it is not */
    uint16_t code;     /* of a client: the status of the answer; 0: it has not come */
    bool is_malformed; /* the block is no valid request: PROTOCOL_ERROR */
    uint32_t fields;
    uint32_t bytes;        /* as SETTINGS_MAX_HEADER_LIST_SIZE counts them */
    nghttp2_rcbuf *method; /* these four may be NULL */
    nghttp2_rcbuf *path;
    nghttp2_rcbuf *authority;
    nghttp2_rcbuf *host;
    domi_h2_text text;
    domi_h2_text cookie; /* the values of all Cookie fields, which are one */
} domi_h2_block;

/* Where the frames of the peer begin (late.c). */
typedef struct domi_h2_frames {
    /* bytes of the frame in hand that have not come; at first those of the preface */
    uint32_t left;
    uint8_t have; /* bytes of `head` */
    uint8_t head[9];
} domi_h2_frames;

/* The part that this side plays: a server (session.c), or a client (client_session.c). */
typedef struct domi_h2_side {
    int (*make)(nghttp2_session **, const nghttp2_session_callbacks *, void *h2,
                const nghttp2_option *, nghttp2_mem *);
    void (*set_callbacks)(nghttp2_session_callbacks *callbacks);
    int (*submit_settings)(struct domi_h2 *h2); /* returns 0; -ENOMEM */
    /* look at the head of a frame that domi_h2_before_look() has found */
    void (*look)(struct domi_h2 *h2, const nghttp2_frame_hd *head);
    uint32_t preface_size; /* bytes of the peer before its first frame */
} domi_h2_side;

typedef struct domi_h2 {
    const domi_h2_side *side;
    nghttp2_session *session;
    domus_wire *wire;
    domus_http2_options options; /* with the defaults filled in */
    domi_h2_lane *idle;
    domi_h2_lane *busy;
    domi_h2_lane *read;  /* of a client: those whose answers have come, and were not used yet */
    uint32_t streams;    /* that have a lane, with those of `read` */
    uint64_t memory;     /* bytes that nghttp2 has taken */
    uint64_t counted;    /* bytes of `memory` that count as memory of the library */
    uint8_t drain;       /* 1: the peer was told that the connection will end; 2: and where */
    uint64_t reset_ns;   /* when this side has last reset a stream; 0: never */
    bool is_over;        /* GOAWAY for an error was queued: nothing of the peer is looked at */
    bool is_finishing;   /* no body is sent any more */
    bool is_away;        /* of a client: the server takes no further request, */
    bool is_dead;        /* and answers none: nothing is sent any more */
    bool is_pinged;      /* of a client: it has asked whether the server is there, */
    uint64_t pinged_ns;  /* and that was sent then; 0: it was not, or something has come since */
    uint32_t heard;      /* of a client: how often bytes have come */
    bool is_deserted;    /* the peer has finished sending */
    bool has_announced;  /* the settings of this side were sent */
    bool heard_settings; /* the dialogue with which a connection begins is over */
    domi_h2_guard guard;
    uint32_t updates_due;   /* WINDOW_UPDATEs that the bodies which were sent may call for */
    uint32_t continuations; /* of the block of fields that is being read */
    domi_h2_block block;
    domi_h2_frames frames;
} domi_h2;

/* --- session.c -------------------------------------------------------------------------------- */

extern const domi_h2_side domi_h2_server;

/* Make the session of a connection. `options` may be NULL. Returns 0; -ENOMEM. */
int domi_h2_new(domus_wire *wire, const domi_h2_side *side, const domus_http2_options *options,
                domi_h2 **ret_h2);
void domi_h2_free(domi_h2 *h2);

/* Use bytes of the peer. Returns 0, or a negative errno. */
int domi_h2_receive(domi_h2 *h2, const char *bytes, size_t size);

/* Append frames while there is room. Returns 0, or a negative errno. */
int domi_h2_send(domi_h2 *h2);

/* --- late.c ----------------------------------------------------------------------------------- */

/* Look at a frame on a stream. If that is closed, the connection ends with STREAM_CLOSED, unless
 * this side has reset a stream just now, of which the peer may not have heard (RFC 9113 5.1).
 * Returns whether it is closed. */
bool domi_h2_judge_late(domi_h2 *h2, int32_t id);

/* Returns whether a frame is of a stream that nghttp2 does not know, any more or yet. */
bool domi_h2_is_forgotten(nghttp2_session *session, const nghttp2_frame_hd *head);

/* Returns how many of these bytes lie before the last byte of the head of the next frame for which
 * nghttp2 may call nobody (DATA, and kinds that it does not know), and that head; `size` if there
 * is none. */
size_t domi_h2_before_look(domi_h2_frames *frames, const char *bytes, size_t size,
                           nghttp2_frame_hd *ret_head);

/* --- text.c ----------------------------------------------------------------------------------- */

/* Return 0; -ENOMEM. */
int domi_h2_put(domi_h2_text *text, const void *bytes, size_t size);
void domi_h2_clear(domi_h2_text *text);

#define DOMI_H2_PUT(text, string) domi_h2_put(text, string, sizeof(string) - 1)

/* --- request.c -------------------------------------------------------------------------------- */

void domi_h2_begin_block(domi_h2 *h2, bool is_trailers);
void domi_h2_drop_block(domi_h2 *h2);

/* Take a field. Returns 0; -ENOMEM. */
int domi_h2_take_field(domi_h2 *h2, nghttp2_rcbuf *name, nghttp2_rcbuf *value);

/* The block has ended: its request begins, or its trailers end one. Return 0; -ENOMEM. */
int domi_h2_end_block(domi_h2 *h2, int32_t id, bool is_last);

/* A part of a field, for both sides: is it this text; is it a right name, or value; does the field
 * belong to a connection of HTTP/1.1, so that the message is malformed. */
bool domi_h2_is_named(nghttp2_vec name, const char *text);
bool domi_h2_is_name(nghttp2_vec name);
bool domi_h2_is_value(nghttp2_vec value);
bool domi_h2_is_of_connection(nghttp2_vec name);

/* Count a field of the block. Returns whether it has room; otherwise `status` of that is set. */
bool domi_h2_has_room(domi_h2 *h2, nghttp2_vec name, nghttp2_vec value);

/* Put a line of a field. Returns 0; -ENOMEM. */
int domi_h2_put_field(domi_h2_text *text, nghttp2_vec name, nghttp2_vec value);

/* A part of a body, and its end. Return 0; -ENOMEM. */
int domi_h2_pass_data(domi_h2 *h2, int32_t id, const uint8_t *bytes, size_t size);
int domi_h2_pass_end(domi_h2 *h2, int32_t id);

/* --- websocket.c ------------------------------------------------------------------------------ */

/* Put the fields of a request that wants to be a WebSocket. Returns 0; -ENOMEM. */
int domi_h2_put_wish(domi_h2_text *text);

/* Returns whether a field of such a request is passed on. */
bool domi_h2_is_wish(nghttp2_vec name);

/* Returns whether a field of the answer is sent. */
bool domi_h2_is_of_handshake(const nghttp2_nv *field);

/* Bytes of the peer for a tunnel, and their end. Return 0; -ENOMEM. */
int domi_h2_pass_tunnel(domi_h2_lane *lane, const uint8_t *bytes, size_t size);
void domi_h2_end_tunnel(domi_h2_lane *lane);

/* The answer is there: the stream is a WebSocket from now on, or it is not. Returns 0; -ENOMEM. */
int domi_h2_open_tunnel(domi_h2_lane *lane);
void domi_h2_refuse_tunnel(domi_h2_lane *lane);

/* --- lane.c ----------------------------------------------------------------------------------- */

/* Returns the lane of a stream; NULL: it has none, or none any more. */
static inline domi_h2_lane *domi_h2_lane_of(const domi_h2 *h2, int32_t id)
{
    return nghttp2_session_get_stream_user_data(h2->session, id);
}

/* Put a lane into a list, and take it out. */
void domi_h2_link(domi_h2_lane **list, domi_h2_lane *lane);
void domi_h2_unlink(domi_h2_lane **list, domi_h2_lane *lane);

/* Make a lane busy, which has no stream yet. Returns as domi_h2_take_lane(). */
int domi_h2_reserve_lane(domi_h2 *h2, domi_h2_lane **ret_lane);

/* End a lane that is in no list; or free it alone, if its inner channel was given up. */
void domi_h2_end_lane(domi_h2_lane *lane, int error);
void domi_h2_free_lane(domi_h2_lane *lane);

/* Take a lane for a stream: an idle one, or a new one. Returns 0; a negative errno. */
int domi_h2_take_lane(domi_h2 *h2, int32_t id, domi_h2_lane **ret_lane);

/* The stream is over. Its lane serves another one, if both sides have come to their ends. */
void domi_h2_leave_lane(domi_h2_lane *lane, int error);

/* End a lane that serves no stream. */
void domi_h2_end_idle(domi_h2_lane *lane);

/* Reset the stream, which keeps its lane until that is done. */
void domi_h2_cut(domi_h2_lane *lane, uint32_t code);

/* True if the stream is answered to its end, and its inner channel takes no more of the request.
 * The peer hears of that (RFC 9113 8.1) when it sends more, because some clients forget an answer
 * whose stream is reset behind it. */
bool domi_h2_is_spent(const domi_h2_lane *lane);

/* Reset the streams that are spent. */
void domi_h2_cut_spent(domi_h2 *h2);

/* Give the peer credit for what was used. */
void domi_h2_credit(domi_h2_lane *lane);

/* Tell the inner channels that the peer sends nothing more. */
void domi_h2_tell_end(domi_h2 *h2);

/* End all lanes. */
void domi_h2_end_lanes(domi_h2 *h2);

/* --- answer.c, fields.c, body.c ----------------------------------------------------------------
 */

/* The inner channel has news: go on with the answer. Returns 0; -ENOMEM. */
int domi_h2_go_on(domi_h2_lane *lane);

/* Let `read` have the head that comes next from the inner channel, with its empty line. It returns
 * 0; a negative errno. Returns 1 if a head was read, or if more of it may be there; 0: it is not
 * whole; a negative errno. */
typedef int domi_h2_read_head(domi_h2_lane *lane, const char *head, size_t size);
int domi_h2_next_head(domi_h2_lane *lane, domi_h2_read_head *read);

/* Read the fields of `lines`, each with its line end, into `fields`, with small letters in `names`.
 * Returns how many they are; a negative errno. */
#define DOMI_H2_FIELDS_MAX  128u  /* fields of an answer */
#define DOMI_H2_NAMES_BYTES 4096u /* bytes of their names */
typedef struct domi_h2_fields {
    nghttp2_nv fields[DOMI_H2_FIELDS_MAX];
    size_t count;
    char names[DOMI_H2_NAMES_BYTES];
    size_t names_size;
    bool in_chunks;
    bool has_length;
    bool closes;
    uint64_t length;
} domi_h2_fields;
int domi_h2_read_fields(const char *lines, size_t size, domi_h2_fields *fields);

/* Throw away what has come of a body. Returns 0; a negative errno. */
int domi_h2_skip_body(domi_h2_lane *lane);

/* How nghttp2 reads and sends a body: these are callbacks of its own. */
ssize_t domi_h2_read_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t size,
                          uint32_t *flags, nghttp2_data_source *source, void *h2);
int domi_h2_send_body(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                      size_t size, nghttp2_data_source *source, void *h2);

/* --- guard.c ---------------------------------------------------------------------------------- */

/* End the connection with an error of HTTP/2. */
void domi_h2_end(domi_h2 *h2, uint32_t code);

/* The peer has taken a stream back, or has begun one wrongly. */
void domi_h2_count_reset(domi_h2 *h2);

/* A frame that asks for nothing has come. */
void domi_h2_count_control(domi_h2 *h2);

/* A frame begins: count it, if it goes on with a block of fields. */
void domi_h2_count_continuation(domi_h2 *h2, const nghttp2_frame_hd *head);

/* A WINDOW_UPDATE has come. It asks for nothing if no body that was sent calls for it. */
void domi_h2_count_update(domi_h2 *h2);

/* A frame of a body was sent, with so many bytes. */
void domi_h2_count_sent(domi_h2 *h2, size_t size);

#endif
