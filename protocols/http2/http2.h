/* One connection of HTTP/2, and the functions that the files of this library call of each other.
 *
 * nghttp2 reads and writes frames, and does no IO. The stage gives it the bytes of the peer, and
 * appends the frames that it makes (stage.c, session.c). A request becomes the text of HTTP/1.1
 * (request.c), which a lane passes to its inner channel; the answer is read from there, and becomes
 * frames (answer.c, fields.c, body.c). guard.c counts frames that a peer should not send often.
 *
 * The text is canonical: it is made here, of parts that were checked, so a client cannot hide one
 * request in another. All functions are called within a call of the stage, in which `wire` is
 * set. */
#ifndef DOMI_PROTOCOLS_HTTP2_H
#define DOMI_PROTOCOLS_HTTP2_H

#include <domus/http2.h>

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A buffer of bytes that grows, up to a bound that the appending function gives. */
typedef struct domi_h2_text {
    char *bytes;
    size_t size;
    size_t room;
} domi_h2_text;

/* The part of an inner channel's message to which its next bytes belong. */
typedef enum domi_h2_phase {
    DOMI_H2_HEAD,
    DOMI_H2_COUNTED, /* phase: within a body of known length, of which `left` bytes have not come */
    DOMI_H2_SIZE,    /* phase: within the line of a chunk's size, in a body in chunks */
    DOMI_H2_CHUNK,   /* phase: within a chunk of a body, of which `left` bytes have not come */
    DOMI_H2_AFTER,   /* phase: within the line end behind a chunk */
    DOMI_H2_TRAILERS, /* phase: within the lines behind the last chunk */
    DOMI_H2_REST,     /* phase: within a body that ends where the inner channel's bytes end */
    DOMI_H2_DONE,     /* phase: the whole answer was read */
} domi_h2_phase;

struct domi_h2;

/* A lane of a connection: an inner channel, and the stream that it serves now, or none. */
typedef struct domi_h2_lane {
    struct domi_h2 *of;
    domus_inner *inner;
    /* the next lane in the same list: that of idle lanes, of busy ones or of those in `read` */
    struct domi_h2_lane *next;
    struct domi_h2_lane *previous;
    int32_t id;       /* number of the lane's stream; 0: it has none, as an idle lane */
    uint8_t phase;    /* part of the inner channel's message that is read next: domi_h2_phase */
    bool is_head;     /* the method of the stream's request is HEAD */
    bool in_chunks;   /* the body of the request is passed to the inner channel in chunks */
    bool is_passed;   /* the request was passed to the inner channel to its end */
    bool closes;      /* the inner channel ends behind this answer */
    bool tunnels;     /* the stream's request wants to become a WebSocket (websocket.c) */
    bool is_open;     /* the stream is a WebSocket, whose tunnel is open */
    bool is_cut;      /* this side is resetting the lane's stream */
    bool is_busy;     /* on a client: the lane is lent to an ask, and its stream is not over */
    bool is_sent;     /* on a client: the head of the lane's request was sent */
    bool is_answered; /* on a client: the head of the final answer has come on the lane */
    uint32_t heard;   /* on a client: `heard` of the connection when the lane's request began */
    /* bytes behind the piece that is sent now: they only end the body, and are skipped */
    uint8_t skipped;
    uint64_t left;      /* bytes of the inner channel's body, or of its chunk, that have not come */
    uint64_t data;      /* bytes of the body from the peer that were passed to the inner channel */
    uint64_t credited;  /* bytes of `data` for which the peer got credit in its window */
    domi_h2_text lines; /* the incomplete head, or trailers, of the inner channel's message */
    domi_h2_text early; /* bytes of the peer that wait until the tunnel is open */
} domi_h2_lane;

/* Counts of a peer's costly frames in the current second (guard.c). */
typedef struct domi_h2_guard {
    uint64_t begun_ns;
    uint32_t resets;
    uint32_t controls;
} domi_h2_guard;

/* The block of fields (a head or trailers) that is being received. */
typedef struct domi_h2_block {
    bool open;         /* the end of the block has not come yet */
    bool is_trailers;  /* the block has trailers, and no head */
    bool is_tunnel;    /* the request's method is CONNECT, and its protocol WebSocket */
    bool has_length;   /* the block has a field Content-Length */
    uint16_t status;   /* status with which the request is refused; 0: it is not refused */
    uint16_t code;     /* on a client: status of the answer; 0: it has not come */
    bool is_malformed; /* the block is no valid request, so its stream ends by PROTOCOL_ERROR */
    uint32_t fields;
    uint32_t bytes; /* size of the block's fields, as SETTINGS_MAX_HEADER_LIST_SIZE counts it */
    /* method of the request; NULL, as the next three, before its field has come */
    nghttp2_rcbuf *method;
    nghttp2_rcbuf *path;
    nghttp2_rcbuf *authority;
    nghttp2_rcbuf *host;
    domi_h2_text text;
    domi_h2_text cookie; /* the values of all the request's Cookie fields, joined */
} domi_h2_block;

/* The position in the bytes of the peer, by which heads of frames are found (late.c). */
typedef struct domi_h2_frames {
    /* bytes of the peer's current frame, or at first of its preface, that have not come */
    uint32_t left;
    uint8_t have; /* bytes of the next frame's head that are in `head` */
    uint8_t head[9];
} domi_h2_frames;

/* The functions in which a server (session.c) and a client (client_session.c) differ. */
typedef struct domi_h2_side {
    int (*make)(nghttp2_session **, const nghttp2_session_callbacks *, void *h2,
                const nghttp2_option *, nghttp2_mem *);
    void (*set_callbacks)(nghttp2_session_callbacks *callbacks);
    /* submits the SETTINGS of this side; returns 0; -ENOMEM */
    int (*submit_settings)(struct domi_h2 *h2);
    /* checks the head of a frame for which nghttp2 calls no callback
     * (domi_h2_find_head_of_unreported_frame()) */
    void (*look)(struct domi_h2 *h2, const nghttp2_frame_hd *head);
    uint32_t preface_size; /* bytes of the peer's preface, before its first frame */
} domi_h2_side;

typedef struct domi_h2 {
    const domi_h2_side *side;
    nghttp2_session *session;
    domus_wire *wire;
    domus_http2_options options; /* the options of HTTP/2, with zeros replaced by defaults */
    domi_h2_lane *idle;
    domi_h2_lane *busy;
    domi_h2_lane *read; /* on a client: lanes whose answers have come, and were not used yet */
    /* number of streams of the connection that have a lane, those of lanes in `read` included */
    uint32_t streams;
    uint64_t memory;  /* bytes that nghttp2 has allocated for the connection */
    uint64_t counted; /* bytes of `memory` that are counted as memory of the library */
    /* how much the peer was told of the connection's end: 1: that it will end; 2: its last stream,
     * too */
    uint8_t drain;
    uint64_t reset_ns; /* time at which this side has last reset a stream; 0: it has not */
    /* a GOAWAY for an error was queued, so further bytes of the peer are ignored */
    bool is_over;
    bool is_finishing; /* the connection is closing, so no further bytes of bodies are sent */
    bool is_away;      /* on a client: the server accepts no further request */
    bool is_dead;      /* on a client: the server answers nothing any more, so nothing is sent */
    bool is_pinged; /* on a client: a PING was submitted, to find out whether the server responds */
    /* on a client: time at which the PING that tests the server was sent; 0: not yet, or bytes have
     * come since */
    uint64_t pinged_ns;
    uint32_t heard;     /* on a client: how often bytes of the server have come */
    bool is_deserted;   /* the peer has ended its side of the connection */
    bool has_announced; /* the SETTINGS of this side were sent */
    /* the peer's SETTINGS have come, so the begin of the connection is over */
    bool heard_settings;
    domi_h2_guard guard;
    /* number of WINDOW_UPDATEs that the peer may send for the bodies that were sent to it */
    uint32_t updates_due;
    uint32_t continuations; /* number of CONTINUATION frames of the current block of fields */
    domi_h2_block block;
    domi_h2_frames frames;
} domi_h2;

/* --- stage.c ---------------------------------------------------------------------------------- */

/* Check that each option of a domus_http2_options is 0, or within the bounds of domus/http2.h.
 * `options` may be NULL. Returns 0; -EINVAL. */
int domi_h2_check_options(const void *options);

/* --- session.c -------------------------------------------------------------------------------- */

extern const domi_h2_side domi_h2_server;

/* Make the state of a connection of HTTP/2 with its session. `options` may be NULL. Returns 0;
 * -ENOMEM. */
int domi_h2_new_connection(domus_wire *wire, const domi_h2_side *side,
                           const domus_http2_options *options, domi_h2 **ret_h2);
void domi_h2_free_connection(domi_h2 *h2);

/* Handle bytes that the peer has sent. Returns 0, or a negative errno. */
int domi_h2_receive_bytes_of_peer(domi_h2 *h2, const char *bytes, size_t size);

/* Append the frames that nghttp2 wants to send, while the wire has room. Returns 0, or a negative
 * errno. */
int domi_h2_append_frames_to_wire(domi_h2 *h2);

/* --- late.c ----------------------------------------------------------------------------------- */

/* Check a frame of the peer on a stream that may be closed. If it is, the connection ends with
 * STREAM_CLOSED, unless this side has reset a stream just now, which the peer may not know yet (RFC
 * 9113 5.1). Returns whether the stream is closed. */
bool domi_h2_count_or_punish_late_frame(domi_h2 *h2, int32_t id);

/* Returns whether a frame belongs to a stream that nghttp2 has never known, or has forgotten. */
bool domi_h2_is_stream_of_frame_unknown(nghttp2_session *session, const nghttp2_frame_hd *head);

/* Find in the peer's bytes the head of the next frame for which nghttp2 calls no callback (DATA on
 * closed streams, and unknown kinds). Returns the number of bytes before the last byte of that
 * head, and the head; `size` if there is none. */
size_t domi_h2_find_head_of_unreported_frame(domi_h2_frames *frames, const char *bytes, size_t size,
                                             nghttp2_frame_hd *ret_head);

/* --- text.c ----------------------------------------------------------------------------------- */

/* Append bytes to a buffer; free all its bytes. Return 0; -ENOMEM. */
int domi_h2_append_text(domi_h2_text *text, const void *bytes, size_t size);
void domi_h2_free_text(domi_h2_text *text);

#define DOMI_H2_PUT(text, string) domi_h2_append_text(text, string, sizeof(string) - 1)

/* --- request.c -------------------------------------------------------------------------------- */

void domi_h2_begin_block_of_fields(domi_h2 *h2, bool is_trailers);
void domi_h2_drop_block_of_fields(domi_h2 *h2);

/* Handle a field of the block that is being received. Returns 0; -ENOMEM. */
int domi_h2_take_field_of_block(domi_h2 *h2, nghttp2_rcbuf *name, nghttp2_rcbuf *value);

/* End the block that was received: its request begins, or its trailers end a request. Return 0;
 * -ENOMEM. */
int domi_h2_end_block_of_fields(domi_h2 *h2, int32_t id, bool is_last);

/* Checks of a field, for server and client: whether its name is `text`; whether its name or its
 * value is valid; whether it belongs to a connection of HTTP/1.1, so that the message is
 * malformed. */
bool domi_h2_is_field_named(nghttp2_vec name, const char *text);
bool domi_h2_is_valid_field_name(nghttp2_vec name);
bool domi_h2_is_valid_field_value(nghttp2_vec value);
bool domi_h2_is_field_of_connection(nghttp2_vec name);

/* Count a field of the received block. Returns whether the block is within the limits; if not, its
 * `status` is set. */
bool domi_h2_count_field_within_limits(domi_h2 *h2, nghttp2_vec name, nghttp2_vec value);

/* Append a field as a line of HTTP/1.1. Returns 0; -ENOMEM. */
int domi_h2_append_field_as_line(domi_h2_text *text, nghttp2_vec name, nghttp2_vec value);

/* Pass a part of a request's body to the lane of its stream; pass the body's end. Return 0;
 * -ENOMEM. */
int domi_h2_pass_part_of_body(domi_h2 *h2, int32_t id, const uint8_t *bytes, size_t size);
int domi_h2_pass_end_of_body(domi_h2 *h2, int32_t id);

/* --- websocket.c ------------------------------------------------------------------------------ */

/* Append the fields by which a request of HTTP/1.1 asks for a WebSocket. Returns 0; -ENOMEM. */
int domi_h2_append_websocket_fields(domi_h2_text *text);

/* Returns whether a field of a CONNECT for a WebSocket is passed on in the request. */
bool domi_h2_is_field_passed_to_websocket(nghttp2_vec name);

/* Returns whether a field of an answer belongs to the WebSocket handshake, and is not sent in the
 * stream. */
bool domi_h2_is_websocket_handshake_field(const nghttp2_nv *field);

/* Pass bytes of the peer to the lane's tunnel; pass the end of these bytes. Return 0; -ENOMEM. */
int domi_h2_pass_bytes_to_tunnel(domi_h2_lane *lane, const uint8_t *bytes, size_t size);
void domi_h2_pass_end_to_tunnel(domi_h2_lane *lane);

/* Open the tunnel of a lane whose stream is a WebSocket from now on; or refuse it. Returns 0;
 * -ENOMEM. */
int domi_h2_open_tunnel_of_lane(domi_h2_lane *lane);
void domi_h2_refuse_tunnel_of_lane(domi_h2_lane *lane);

/* --- lane.c ----------------------------------------------------------------------------------- */

/* Returns the lane of a stream, by the stream's number; NULL if the stream has no lane. */
static inline domi_h2_lane *domi_h2_lane_of_stream(const domi_h2 *h2, int32_t id)
{
    return nghttp2_session_get_stream_user_data(h2->session, id);
}

/* Add a lane to a list of lanes; remove it from its list. */
void domi_h2_link_lane(domi_h2_lane **list, domi_h2_lane *lane);
void domi_h2_unlink_lane(domi_h2_lane **list, domi_h2_lane *lane);

/* Make a lane busy that has no stream yet, for an ask. Returns as
 * domi_h2_make_lane_busy_for_stream().
 */
int domi_h2_make_idle_or_new_lane_busy(domi_h2 *h2, domi_h2_lane **ret_lane);

/* End the inner channel of a lane that is in no list, and free the lane; free the lane only. */
void domi_h2_end_channel_and_free_lane(domi_h2_lane *lane, int error);
void domi_h2_free_lane(domi_h2_lane *lane);

/* Take an idle lane, or make a new one, for a stream. Returns 0; a negative errno. */
int domi_h2_make_lane_busy_for_stream(domi_h2 *h2, int32_t id, domi_h2_lane **ret_lane);

/* Release the lane of a stream that is over. It becomes idle if both request and answer have ended,
 * and otherwise its inner channel ends. */
void domi_h2_idle_or_end_lane_of_stream(domi_h2_lane *lane, int error);

/* End a lane that serves no stream, with its inner channel. */
void domi_h2_end_lane_without_stream(domi_h2_lane *lane);

/* Reset the stream of a lane, which stays until the reset was sent. */
void domi_h2_reset_stream_of_lane(domi_h2_lane *lane, uint32_t code);

/* Returns whether the lane's stream is answered completely, and its inner channel accepts no more
 * of the request. The stream is reset (RFC 9113 8.1) only when the peer sends more, because some
 * clients discard an answer when a reset follows it. */
bool domi_h2_is_answered_before_request_end(const domi_h2_lane *lane);

/* Reset the streams that are answered while their requests still come
 * (domi_h2_is_answered_before_request_end()). */
void domi_h2_reset_streams_answered_early(domi_h2 *h2);

/* Give the peer credit in its window for the bytes of the request's body that the inner channel has
 * used. */
void domi_h2_credit_used_bytes_to_peer(domi_h2_lane *lane);

/* Tell all inner channels of the connection that the peer has ended its side. */
void domi_h2_tell_channels_of_peer_end(domi_h2 *h2);

/* End all lanes of a connection, with their inner channels. */
void domi_h2_end_all_lanes(domi_h2 *h2);

/* --- answer.c, fields.c, body.c --------------------------------------------------------------- */

/* Continue the answer of a lane with the bytes that its inner channel has. Returns 0; -ENOMEM. */
int domi_h2_send_more_of_lane_answer(domi_h2_lane *lane);

/* Call `read` with the next head that the inner channel has sent, with its empty line; `read`
 * returns 0 or a negative errno. This returns 1 if a head was read, or if more of it may be there;
 * 0 if it is incomplete; a negative errno. */
typedef int domi_h2_read_head(domi_h2_lane *lane, const char *head, size_t size);
int domi_h2_read_next_head_of_inner_channel(domi_h2_lane *lane, domi_h2_read_head *read);

#define DOMI_H2_FIELDS_MAX  128u  /* fields of an inner channel's message, at most */
#define DOMI_H2_NAMES_BYTES 4096u /* bytes of the names of all these fields, at most */
/* The fields of a message that an inner channel has sent, and what they tell of its body. */
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

/* Read the fields of a message from `lines`, each with its line end, into `fields`, whose `names`
 * has their names in small letters. Returns 0; a negative errno. */
int domi_h2_read_fields_of_message(const char *lines, size_t size, domi_h2_fields *fields);

/* Discard the bytes of a body that the inner channel has sent so far. Returns 0; a negative
 * errno. */
int domi_h2_discard_body_bytes(domi_h2_lane *lane);

/* The callbacks by which nghttp2 announces and sends a frame of a body. */
ssize_t domi_h2_tell_size_of_next_body_frame(nghttp2_session *session, int32_t id, uint8_t *to,
                                             size_t size, uint32_t *flags,
                                             nghttp2_data_source *source, void *h2);
int domi_h2_send_body_frame(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                            size_t size, nghttp2_data_source *source, void *h2);

/* --- guard.c ---------------------------------------------------------------------------------- */

/* End the connection by a GOAWAY with an error code of HTTP/2. */
void domi_h2_end_connection_with_error(domi_h2 *h2, uint32_t code);

/* Count a stream that the peer has reset, or has begun in a wrong way, and end the connection if it
 * is one too many. */
void domi_h2_count_reset_stream(domi_h2 *h2);

/* Count a frame of the peer that asks for nothing, and end the connection if it is one too many. */
void domi_h2_count_frame_that_asks_nothing(domi_h2 *h2);

/* Count a frame of the peer that begins, if it continues a block of fields (CONTINUATION). */
void domi_h2_count_continuation_frame(domi_h2 *h2, const nghttp2_frame_hd *head);

/* Count a WINDOW_UPDATE of the peer, unless a body that was sent to it calls for one. */
void domi_h2_count_window_update(domi_h2 *h2);

/* Count a frame of a body, with `size` bytes, that was sent: the peer may send WINDOW_UPDATEs for
 * it. */
void domi_h2_count_sent_body_frame(domi_h2 *h2, size_t size);

#endif
