/* The state of the HTTP stage for a channel, and the functions that its files call of each other.
 *
 * A message whose bytes lie whole in the window is made of slices of it. One that does not is
 * gathered: its head and its body are appended as they come, and used. With `streams` the message
 * is made when its head is complete, and its body comes in pieces. */
#ifndef DOMI_PROTOCOLS_HTTP_H
#define DOMI_PROTOCOLS_HTTP_H

#include <domus/http.h>

#include "protocols/http/body.h"

/* A body that is incomplete, and ends with its head beyond this, is gathered. The bound is a
 * quarter of the window, so a connection never holds more for a message that may stay
 * incomplete. */
#define DOMI_HTTP_GATHER_LEAST (DOMUS_WINDOW_MAX / 4)

#define DOMI_HTTP_ASKED_MAX   1024u /* unanswered requests of a client, at most */
#define DOMI_HTTP_INTERIM_MAX 32u   /* interim responses before a final one, at most */

typedef enum domi_http_phase {
    DOMI_HTTP_IN_HEAD,
    DOMI_HTTP_WAITING,   /* waiting for a body that will lie whole in the window, behind its head */
    DOMI_HTTP_GATHERING, /* gathering the message in `head_bytes` and `body_bytes` */
    DOMI_HTTP_STREAMING, /* the message was made, and its body comes in pieces */
} domi_http_phase;

/* How the body of the last request that was sent leaves (wait.c). */
typedef enum domi_http_wait {
    DOMI_HTTP_GOES,     /* the body is sent as it comes */
    DOMI_HTTP_WAITS,    /* the body waits for 100 Continue */
    DOMI_HTTP_UNWANTED, /* the final answer came before the body, of which nothing more is sent */
} domi_http_wait;

/* The state of the change to another protocol (proxy_parts.h), for the last request that was
 * decoded or sent. */
typedef enum domi_http_tunnel {
    DOMI_HTTP_NO_TUNNEL,
    DOMI_HTTP_TUNNEL_ASKED, /* the answer to the upgrade is awaited */
    DOMI_HTTP_TUNNEL_OPEN,  /* the tunnel is open: both sides send bytes of the other protocol */
} domi_http_tunnel;

/* The bits of a request's id, by which the stage recognizes the request when it is answered. */
enum {
    DOMI_HTTP_ID_HEAD = 1,      /* the method is HEAD */
    DOMI_HTTP_ID_NEW = 2,       /* the request is HTTP/1.1 */
    DOMI_HTTP_ID_CLOSE = 4,     /* the connection ends with the answer */
    DOMI_HTTP_ID_UPGRADE = 8,   /* the peer wants another protocol */
    DOMI_HTTP_ID_GZIP = 16,     /* the peer accepts gzip, and the options allow it */
    DOMI_HTTP_ID_TRAILERS = 32, /* fields behind the body of the answer reach the peer */
    DOMI_HTTP_ID_NUMBER = 8,    /* first bit of the request's number, which has 32 bits */
};

typedef struct domi_http_state {
    domus_http_options options; /* the options, with zeros replaced by defaults */
    uint8_t phase;              /* domi_http_phase */
    uint8_t empty_lines;        /* empty lines before this head, whose bytes count for it */
    /* the peer waits for 100 Continue before it sends the current body */
    bool waits_for_100;
    bool owes_100;        /* 100 Continue must be sent behind the answers that are missing */
    uint8_t wait;         /* client: domi_http_wait */
    uint8_t tunnel;       /* domi_http_tunnel */
    bool waits_in_chunks; /* the waiting body is sent in chunks */
    /* requests that a server has decoded, which is the number of the last one */
    uint32_t made;
    uint32_t unanswered; /* requests that have no answer yet */
    uint32_t head_size;  /* bytes of the head, once it was read */
    uint32_t interims;   /* interim responses that a client has ignored */
    domi_http_head head;
    domi_http_body body;
    domus_appender head_bytes;
    domus_appender body_bytes;
    /* client: the body that waits for 100 Continue, or its first piece; owned */
    domus_slice waiting;
    uint64_t charged; /* bytes of `head_bytes` and `body_bytes` that the budget counts */
    /* decompresses the body that a client gathers; NULL: it is not compressed */
    struct domi_http_inflater *inflater;
    /* streams that compress answers of a server which have begun */
    struct domi_http_deflater *deflaters;
    /* the exchanges of the chain (chain.h); NULL: there was none yet */
    struct domi_http_chained *chained;
    struct { /* client: the unanswered requests, from the oldest */
        uint32_t first;
        uint32_t count;
        char *marks; /* two bits for each request, in memory that only a client has */
        domus_appender room;
    } asked;
} domi_http_state;

static inline bool domi_http_is_server(const domi_http_state *state)
{
    return state->options.role == DOMUS_ROLE_SERVER;
}

/* --- decode ----------------------------------------------------------------------------------- */

int domi_http_decode(domus_wire *wire, domi_http_state *state, const char *bytes, size_t size);
int domi_http_decode_end(domus_wire *wire, domi_http_state *state, size_t left);

/* Decide, once the head of a message was read, which body follows (server.c, client.c). Returns 1;
 * 0 when the head was ignored and is no message; or a negative errno. */
int domi_http_admit_request(domi_http_state *state);
int domi_http_admit_response(domus_wire *wire, domi_http_state *state);

/* The place of a message's bytes: the window, or slices that were gathered. */
typedef struct domi_http_source {
    const char *head; /* the head in the window; NULL: it was gathered */
    const char *body; /* the body in the window; NULL: it does not lie there as a whole */
    size_t body_size;
    bool unzipped;          /* the body was decompressed */
    domus_slice head_slice; /* the gathered head; the caller owns and frees it */
    domus_slice body_slice; /* the gathered body, which the message owns when it is made */
} domi_http_source;

/* Make the message whose head was read (server.c, client.c). With `in_pieces` its body follows in
 * pieces. Returns 0; -ENOMEM. */
int domi_http_make_request(domus_wire *wire, domi_http_state *state, const domi_http_source *from,
                           bool in_pieces);
int domi_http_make_response(domus_wire *wire, domi_http_state *state, const domi_http_source *from,
                            bool in_pieces);

/* Cut slices for a message out of its bytes (gather.c): `size` bytes of the head, from `at` on; and
 * the body. Return 0; -ENOMEM. */
int domi_http_cut_head(domus_wire *wire, const domi_http_source *from, uint32_t at, uint32_t size,
                       domus_slice *ret_slice);
domus_slice domi_http_cut_body(domus_wire *wire, const domi_http_source *from);

/* Returns the bytes of the head, which may be changed before slices of them are made. */
char *domi_http_edit_head(domus_wire *wire, const domi_http_source *from, uint32_t at,
                          uint32_t size);

/* Begin to gather a message with its head; gather bytes of its body; end, and get the source.
 * Return 0; -ENOMEM (gather.c). */
int domi_http_begin_gathering(domi_http_state *state, const char *head);
int domi_http_gather(domi_http_state *state, const char *bytes, size_t size);
int domi_http_end_gathering(domi_http_state *state, domi_http_source *ret_source);

/* Free what was gathered. */
void domi_http_reset(domi_http_state *state);

/* --- unanswered requests of a client (asked.c) ------------------------------------------------ */

/* Allocate the memory for unanswered requests, and free it. Returns 0; -ENOMEM. */
int domi_http_open_asked(domi_http_state *state);
void domi_http_close_asked(domi_http_state *state);

/* Record that a request was sent. Returns false if too many are unanswered. */
bool domi_http_note_asked(domi_http_state *state, bool is_head, bool upgrades);

/* Return whether the oldest unanswered request is HEAD, or wants to upgrade. */
bool domi_http_asked_head(const domi_http_state *state);
bool domi_http_asked_upgrade(const domi_http_state *state);
void domi_http_note_answered(domi_http_state *state);

/* --- bodies of a client that wait for 100 Continue (wait.c) ----------------------------------- */

/* Begin to wait with the body of a request whose head was encoded. `body` is the whole body, which
 * this function takes, or empty if it comes in pieces. */
void domi_http_begin_wait(domus_wire *wire, domi_http_state *state, domus_slice body,
                          const uint64_t *stream);

/* Encode a piece, or for a NULL `piece` the trailers, of a request whose body waits or is unwanted.
 * Returns 0; or a negative errno. */
int domi_http_encode_waiting(domus_wire *wire, domi_http_state *state, const domus_piece *piece,
                             const domus_http_trailers *trailers);

/* Append the body that waits, without freeing it: domi_http_end_wait() does, because bytes of a
 * call that fails later are taken back. Returns 0; -ENOMEM. */
int domi_http_append_waiting(domus_wire *wire, const domi_http_state *state);
void domi_http_end_wait(domus_wire *wire, domi_http_state *state);

/* Send the body that waits, because the server has asked for it, or the time of waiting is over.
 * Returns 0; -ENOMEM. */
int domi_http_let_body_go(domus_wire *wire, domi_http_state *state);

/* Discard the body that waits, because the head of the final answer has come. */
void domi_http_note_unwanted(domus_wire *wire, domi_http_state *state);

/* --- encode ----------------------------------------------------------------------------------- */

/* `encode` of a server (answer.c) and of a client (ask.c). */
int domi_http_encode_answer(domus_wire *wire, domi_http_state *state, uint64_t id,
                            const domus_type *type, const void *payload);
int domi_http_encode_ask(domus_wire *wire, domi_http_state *state, uint64_t id,
                         const domus_type *type, const void *payload);

int domi_http_fail(domus_wire *wire, domi_http_state *state, uint64_t id, const domus_type *request,
                   int error);

/* Finish an answer: send 100 Continue behind it if it is owed (answer.c). Returns 0; -ENOMEM. */
int domi_http_end_answer(domus_wire *wire, domi_http_state *state, uint64_t id);

/* Returns whether the peer waits for permission to send the body of this request, or the bytes of
 * another protocol, and will not get it. Whether such bytes come before the next request is then
 * unknown, so the connection ends with the answer (answer.c). */
bool domi_http_has_left_body(const domi_http_state *state, uint64_t id);

/* Send 100 Continue, so that the peer sends its body. Returns 0; -ENOMEM (answer.c). */
int domi_http_send_100(domus_wire *wire, domi_http_state *state);

#endif
