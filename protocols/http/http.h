/* The state of the HTTP stage for a channel, and the functions that its files call of each other.
 *
 * A message whose bytes lie whole in the window is made of slices of it. One that does not is
 * gathered: its head and its body are appended as they come, and used. With `streams` the message
 * is made when its head is complete, and its body comes in pieces. */
#ifndef DOMI_PROTOCOLS_HTTP_H
#define DOMI_PROTOCOLS_HTTP_H

#include <domus/http.h>

#include "protocols/http/body.h"

/* A body that is incomplete in the window is gathered if its head and the body together exceed this
 * size. The bound is a quarter of the window, so a connection never holds more for a message that
 * may stay incomplete. */
#define DOMI_HTTP_GATHER_LEAST (DOMUS_WINDOW_MAX / 4)

#define DOMI_HTTP_ASKED_MAX   1024u /* unanswered requests of a client on one connection, at most */
#define DOMI_HTTP_INTERIM_MAX 32u   /* interim responses (1xx) before a final one, at most */

typedef enum domi_http_phase {
    DOMI_HTTP_IN_HEAD,
    /* the stage waits for a body that will lie whole in the window, behind its head */
    DOMI_HTTP_WAITING,
    DOMI_HTTP_GATHERING, /* the stage gathers the message in `head_bytes` and `body_bytes` */
    DOMI_HTTP_STREAMING, /* the message was made, and its body comes in pieces */
} domi_http_phase;

/* How a client sends the body of its last request (wait.c). */
typedef enum domi_http_wait {
    DOMI_HTTP_GOES,  /* the body of the request is sent as it comes */
    DOMI_HTTP_WAITS, /* the body of the request waits for 100 Continue */
    /* the final answer came before the body of the request, of which nothing more is sent */
    DOMI_HTTP_UNWANTED,
} domi_http_wait;

/* The state of the change to another protocol (proxy_parts.h), for the last request that was
 * decoded or sent on the connection. */
typedef enum domi_http_tunnel {
    DOMI_HTTP_NO_TUNNEL,
    DOMI_HTTP_TUNNEL_ASKED, /* a tunnel was asked for, and the answer is awaited */
    DOMI_HTTP_TUNNEL_OPEN,  /* the tunnel is open: both sides send bytes of the other protocol */
} domi_http_tunnel;

/* The bits of a request's id, from which the stage knows the request again when its answer
 * comes. */
enum {
    DOMI_HTTP_ID_HEAD = 1,    /* bit of a request's id: its method is HEAD */
    DOMI_HTTP_ID_NEW = 2,     /* bit of a request's id: it is HTTP/1.1 */
    DOMI_HTTP_ID_CLOSE = 4,   /* bit of a request's id: the connection ends with its answer */
    DOMI_HTTP_ID_UPGRADE = 8, /* bit of a request's id: the peer wants another protocol */
    /* bit of a request's id: the peer accepts gzip, and the options allow it */
    DOMI_HTTP_ID_GZIP = 16,
    DOMI_HTTP_ID_TRAILERS = 32, /* bit of a request's id: trailers of its answer are sent */
    /* place in a request's id of the request's number, which has 32 bits */
    DOMI_HTTP_ID_NUMBER = 8,
};

typedef struct domi_http_state {
    domus_http_options options; /* options of the stage, with zeros replaced by defaults */
    uint8_t phase;              /* how far the current message is decoded: domi_http_phase */
    uint8_t empty_lines; /* number of empty lines before the head; their bytes count for it */
    /* the peer waits for 100 Continue before it sends the body of the current request */
    bool waits_for_100;
    bool owes_100;        /* 100 Continue must be sent behind the answers to earlier requests */
    uint8_t wait;         /* on a client: how it sends its last body, a domi_http_wait */
    uint8_t tunnel;       /* state of a change of protocol: domi_http_tunnel */
    bool waits_in_chunks; /* the body that waits for 100 Continue is sent in chunks */
    /* number of requests that a server has decoded; it is also the number of the last one */
    uint32_t made;
    uint32_t unanswered; /* number of requests on the connection that have no answer yet */
    uint32_t head_size;  /* bytes of the current message's head, once it was read */
    uint32_t interims;   /* number of interim responses (1xx) that a client has ignored */
    domi_http_head head;
    domi_http_body body;
    domus_appender head_bytes;
    domus_appender body_bytes;
    /* on a client: the body that waits for 100 Continue, or its first piece, which the stage
     * owns */
    domus_slice waiting;
    uint64_t charged; /* memory of `head_bytes` and `body_bytes` that the budget counts */
    /* decompresses the body that a client gathers; NULL: the body is not compressed */
    struct domi_http_inflater *inflater;
    /* streams that compress answers of a server which have begun and not ended */
    struct domi_http_deflater *deflaters;
    /* the exchanges of the connection's chain (chain.h); NULL: there was none yet */
    struct domi_http_chained *chained;
    struct { /* on a client: the unanswered requests, from the oldest */
        uint32_t first;
        uint32_t count;
        /* two bits for each unanswered request (asked.c), in memory that only a client has */
        char *marks;
        domus_appender room;
    } asked;
} domi_http_state;

static inline bool domi_http_is_server(const domi_http_state *state)
{
    return state->options.role == DOMUS_ROLE_SERVER;
}

/* --- decode ----------------------------------------------------------------------------------- */

int domi_http_decode_bytes(domus_wire *wire, domi_http_state *state, const char *bytes,
                           size_t size);
int domi_http_decode_end_of_bytes(domus_wire *wire, domi_http_state *state, size_t left);

/* Decide, when the head of a message was read, which body follows it (server.c, client.c). Returns
 * 1; 0 when the head was ignored and makes no message; or a negative errno. */
int domi_http_decide_body_of_request(domi_http_state *state);
int domi_http_decide_body_of_response(domus_wire *wire, domi_http_state *state);

/* The place of the bytes of which a message is made: the window, or slices that were gathered. */
typedef struct domi_http_source {
    const char *head; /* the head of the message in the window; NULL: it was gathered */
    const char *body; /* the body in the window; NULL: it does not lie there as a whole */
    size_t body_size;
    bool unzipped;          /* the body of the message was decompressed */
    domus_slice head_slice; /* the gathered head of the message; the caller owns and frees it */
    domus_slice body_slice; /* the gathered body, which the message owns from when it is made */
} domi_http_source;

/* Make the message whose head was read (server.c, client.c). With `in_pieces` its body follows in
 * pieces. Returns 0; -ENOMEM. */
int domi_http_make_request(domus_wire *wire, domi_http_state *state, const domi_http_source *from,
                           bool in_pieces);
int domi_http_make_response(domus_wire *wire, domi_http_state *state, const domi_http_source *from,
                            bool in_pieces);

/* Cut slices for a message out of its bytes (gather.c): `size` bytes of the head, from `at` on; the
 * whole body. Return 0; -ENOMEM. */
int domi_http_cut_slice_of_head(domus_wire *wire, const domi_http_source *from, uint32_t at,
                                uint32_t size, domus_slice *ret_slice);
domus_slice domi_http_cut_body_slice(domus_wire *wire, const domi_http_source *from);

/* Returns the bytes of a message's head, which may be changed before slices of them are made. */
char *domi_http_changeable_bytes_of_head(domus_wire *wire, const domi_http_source *from,
                                         uint32_t at, uint32_t size);

/* Begin to gather a message with its head; gather bytes of its body; end, and get the place of its
 * bytes. Return 0; -ENOMEM; -EMSGSIZE beyond `body_max`; the end -EPROTO, if a compressed body is
 * not whole (gather.c). */
int domi_http_begin_to_gather_message(domi_http_state *state, const char *head);
int domi_http_gather_body_bytes(domi_http_state *state, const char *bytes, size_t size);
int domi_http_end_gathered_message(domi_http_state *state, domi_http_source *ret_source);

/* Free the head and the body that were gathered. */
void domi_http_free_gathered_message(domi_http_state *state);

/* --- unanswered requests of a client (asked.c) ------------------------------------------------ */

/* Allocate the memory for the marks of unanswered requests; free it. Returns 0; -ENOMEM. */
int domi_http_allocate_marks_of_requests(domi_http_state *state);
void domi_http_free_marks_of_requests(domi_http_state *state);

/* Record that a request was sent and is unanswered. Returns false if too many are. */
bool domi_http_add_marks_of_sent_request(domi_http_state *state, bool is_head, bool upgrades);

/* Return whether the oldest unanswered request has the method HEAD; whether it wants to upgrade. */
bool domi_http_is_oldest_request_head(const domi_http_state *state);
bool domi_http_does_oldest_want_upgrade(const domi_http_state *state);
void domi_http_drop_marks_of_oldest_request(domi_http_state *state);

/* --- bodies of a client that wait for 100 Continue (wait.c) ----------------------------------- */

/* Let the body of a request wait for 100 Continue, after its head was encoded. `body` is the whole
 * body, which this function takes, or empty if the body comes in pieces. */
void domi_http_let_body_wait_for_100(domus_wire *wire, domi_http_state *state, domus_slice body,
                                     const uint64_t *stream);

/* Encode a piece of a request whose body waits or is unwanted, or its trailers if `piece` is NULL.
 * Returns 0; or a negative errno. */
int domi_http_encode_piece_of_waiting_body(domus_wire *wire, domi_http_state *state,
                                           const domus_piece *piece,
                                           const domus_http_trailers *trailers);

/* Append the body that waits for 100 Continue, without freeing it:
 * domi_http_end_wait_after_body_was_sent() does, because bytes of a call that fails later are taken
 * back. Returns 0; -ENOMEM. */
int domi_http_append_body_waiting_for_100(domus_wire *wire, const domi_http_state *state);
void domi_http_end_wait_after_body_was_sent(domus_wire *wire, domi_http_state *state);

/* Send the body that waits for 100 Continue, because the server has asked for it, or the time of
 * waiting is over. Returns 0; -ENOMEM. */
int domi_http_send_waiting_body(domus_wire *wire, domi_http_state *state);

/* Discard the body that waits for 100 Continue, because the head of the final answer has come. */
void domi_http_discard_body_waiting_for_100(domus_wire *wire, domi_http_state *state);

/* --- encode ----------------------------------------------------------------------------------- */

/* Encode what a handler answers on a server (answer.c); encode what is asked on a client
 * (ask.c). */
int domi_http_encode_answer_of_server(domus_wire *wire, domi_http_state *state, uint64_t id,
                                      const domus_type *type, const void *payload);
int domi_http_encode_ask_of_client(domus_wire *wire, domi_http_state *state, uint64_t id,
                                   const domus_type *type, const void *payload);

int domi_http_answer_failed_request(domus_wire *wire, domi_http_state *state, uint64_t id,
                                    const domus_type *request, int error);

/* Finish an answer: send a 100 Continue that is owed behind it (answer.c). Returns 0; -ENOMEM. */
int domi_http_count_answer_and_send_owed_100(domus_wire *wire, domi_http_state *state, uint64_t id);

/* Returns whether the peer waits for permission to send the body of this request, or the bytes of
 * another protocol, and will not get it. It is then unknown whether such bytes come before the next
 * request, so the connection ends with the answer (answer.c). */
bool domi_http_may_refused_body_still_come(const domi_http_state *state, uint64_t id);

/* Send 100 Continue, so that the peer sends the body of its request. Returns 0; -ENOMEM
 * (answer.c). */
int domi_http_send_100_continue(domus_wire *wire, domi_http_state *state);

#endif
