/* The state of the HTTP stage for a channel, and the doors between its files.
 *
 * A message whose bytes lie whole in the window is made of slices of it. One that does not come
 * whole is gathered: its head and its body are appended as they come, and used. With `streams` the
 * message is made of its head, and its body comes in pieces. */
#ifndef DOMI_PROTOCOLS_HTTP_H
#define DOMI_PROTOCOLS_HTTP_H

#include <domus/http.h>

#include "protocols/http/body.h"

/* A body that is not there yet, and ends with its head beyond this, is gathered. It is a quarter of
 * the window, so a connection keeps no more than that for a message that may never be whole. */
#define DOMI_HTTP_GATHER_LEAST (DOMUS_WINDOW_MAX / 4)

#define DOMI_HTTP_ASKED_MAX   1024u /* requests of a client that are not answered */
#define DOMI_HTTP_INTERIM_MAX 32u   /* interim responses before a final one */

typedef enum domi_http_phase {
    DOMI_HTTP_IN_HEAD,
    DOMI_HTTP_WAITING,   /* for a body that will lie whole in the window, behind its head */
    DOMI_HTTP_GATHERING, /* the message in `head_bytes` and `body_bytes` */
    DOMI_HTTP_STREAMING, /* the message was made, and its body comes in pieces */
} domi_http_phase;

/* The way of the body of the request that was sent last (wait.c). */
typedef enum domi_http_wait {
    DOMI_HTTP_GOES,     /* the body is sent as it comes */
    DOMI_HTTP_WAITS,    /* the body waits for 100 Continue */
    DOMI_HTTP_UNWANTED, /* the answer came before the body: nothing more is sent */
} domi_http_wait;

/* The way to another protocol (tunnel.h), of the request that was decoded or sent last. */
typedef enum domi_http_tunnel {
    DOMI_HTTP_NO_TUNNEL,
    DOMI_HTTP_TUNNEL_ASKED, /* its answer is awaited */
    DOMI_HTTP_TUNNEL_OPEN,  /* both sides send what they like */
} domi_http_tunnel;

/* The id of a request, by which the stage knows it again when it is answered. */
enum {
    DOMI_HTTP_ID_HEAD = 1,      /* the method is HEAD */
    DOMI_HTTP_ID_NEW = 2,       /* HTTP/1.1 */
    DOMI_HTTP_ID_CLOSE = 4,     /* the connection ends with the answer */
    DOMI_HTTP_ID_UPGRADE = 8,   /* the peer wants another protocol */
    DOMI_HTTP_ID_GZIP = 16,     /* the peer accepts gzip, and the options allow it */
    DOMI_HTTP_ID_TRAILERS = 32, /* fields behind the body of the answer reach the peer */
    DOMI_HTTP_ID_NUMBER = 8,    /* from this bit on: the number of the request, 32 bits */
};

typedef struct domi_http_state {
    domus_http_options options; /* with the defaults filled in */
    uint8_t phase;              /* domi_http_phase */
    uint8_t empty_lines;        /* before this head; they count into its bytes */
    bool waits_for_100;         /* the peer waits for it before it sends the body that is open */
    bool owes_100;              /* 100 Continue is sent behind the answers that are missing */
    uint8_t wait;               /* domi_http_wait, of a client */
    uint8_t tunnel;             /* domi_http_tunnel */
    bool waits_in_chunks;       /* the body that waits is in chunks */
    /* requests that a server has decoded; this is also the number of the last one */
    uint32_t made;
    uint32_t unanswered; /* requests that have no answer yet */
    uint32_t head_size;  /* bytes of the head that was read, in the phases behind it */
    uint32_t interims;   /* responses that a client has passed over */
    domi_http_head head;
    domi_http_body body;
    domus_appender head_bytes;
    domus_appender body_bytes;
    domus_slice waiting; /* of a client: the body that waits, or its first piece; owned */
    uint64_t charged;    /* bytes of these two that the budget counts */
    /* decompresses the body that a client gathers; NULL: none */
    struct domi_http_inflater *inflater;
    struct domi_http_deflater *deflaters; /* compress the answers of a server that have begun */
    struct domi_http_chained *chained;    /* the exchanges of its chain (chain.h); NULL: none yet */
    struct { /* of a client: requests that are not answered, from the oldest */
        uint32_t first;
        uint32_t count;
        char *marks; /* two bits for each; in `room`, which a server does not have */
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

/* The head of a message was read: say which body follows (server.c, client.c). Returns 1; 0 when
 * the head is not a message and was passed over; or an error. */
int domi_http_admit_request(domi_http_state *state);
int domi_http_admit_response(domus_wire *wire, domi_http_state *state);

/* Where the bytes of a message are: in the window, or in slices that were gathered. */
typedef struct domi_http_source {
    const char *head; /* NULL: they were gathered */
    const char *body; /* the body, in the window; NULL: it is not there as a whole */
    size_t body_size;
    bool unzipped;          /* the body was decompressed */
    domus_slice head_slice; /* owned by the caller, which frees it */
    domus_slice body_slice; /* the message's, when it is made */
} domi_http_source;

/* Make the message whose head was read (server.c, client.c). Its body comes in pieces if
 * `in_pieces`. Returns 0; -ENOMEM. */
int domi_http_make_request(domus_wire *wire, domi_http_state *state, const domi_http_source *from,
                           bool in_pieces);
int domi_http_make_response(domus_wire *wire, domi_http_state *state, const domi_http_source *from,
                            bool in_pieces);

/* Cut slices for a message out of its bytes (gather.c): `size` bytes of the head, from `at` on; and
 * the body. Return 0; -ENOMEM. */
int domi_http_cut_head(domus_wire *wire, const domi_http_source *from, uint32_t at, uint32_t size,
                       domus_slice *ret_slice);
domus_slice domi_http_cut_body(domus_wire *wire, const domi_http_source *from);

/* Returns the bytes of the head for changes in place, before slices of them are made. */
char *domi_http_edit_head(domus_wire *wire, const domi_http_source *from, uint32_t at,
                          uint32_t size);

/* Gather a message from its head on; take bytes of its body; and end, with its source. Return 0;
 * -ENOMEM (gather.c). */
int domi_http_begin_gathering(domi_http_state *state, const char *head);
int domi_http_gather(domi_http_state *state, const char *bytes, size_t size);
int domi_http_end_gathering(domi_http_state *state, domi_http_source *ret_source);

/* Forget what was gathered. */
void domi_http_reset(domi_http_state *state);

/* --- requests of a client that are not answered (asked.c) ------------------------------------- */

/* Make room for what is noted, once, and free it. Returns 0; -ENOMEM. */
int domi_http_open_asked(domi_http_state *state);
void domi_http_close_asked(domi_http_state *state);

/* Note that a request was sent. Returns false if too many are. */
bool domi_http_note_asked(domi_http_state *state, bool is_head, bool upgrades);

/* Whether the oldest is a HEAD, or wants to upgrade. */
bool domi_http_asked_head(const domi_http_state *state);
bool domi_http_asked_upgrade(const domi_http_state *state);
void domi_http_note_answered(domi_http_state *state);

/* --- bodies of a client that wait for 100 Continue (wait.c) ----------------------------------- */

/* The head of a request was encoded, whose body waits: it is `body`, which this takes, or
 * comes in pieces. */
void domi_http_begin_wait(domus_wire *wire, domi_http_state *state, domus_slice body,
                          const uint64_t *stream);

/* Encode a piece, or the trailers (`piece` is NULL), of a request whose body does not go as it
 * comes. Returns 0; or a negative errno. */
int domi_http_encode_waiting(domus_wire *wire, domi_http_state *state, const domus_piece *piece,
                             const domus_http_trailers *trailers);

/* Append what waits, which is left to domi_http_end_wait(): the bytes of a call that fails later
 * are taken back. Returns 0; -ENOMEM. */
int domi_http_append_waiting(domus_wire *wire, const domi_http_state *state);
void domi_http_end_wait(domus_wire *wire, domi_http_state *state);

/* The body may leave: the server has said so, or its time is over. Returns 0; -ENOMEM. */
int domi_http_let_body_go(domus_wire *wire, domi_http_state *state);

/* The head of the final answer to the oldest request is there: a body of it that waits
 * never leaves. */
void domi_http_note_unwanted(domus_wire *wire, domi_http_state *state);

/* --- encode ----------------------------------------------------------------------------------- */

/* `encode` of a server (answer.c) and of a client (ask.c). */
int domi_http_encode_answer(domus_wire *wire, domi_http_state *state, uint64_t id,
                            const domus_type *type, const void *payload);
int domi_http_encode_ask(domus_wire *wire, domi_http_state *state, uint64_t id,
                         const domus_type *type, const void *payload);

int domi_http_fail(domus_wire *wire, domi_http_state *state, uint64_t id, const domus_type *request,
                   int error);

/* A request was answered: what waits for that may be sent behind the answer (answer.c).
 * Returns 0; -ENOMEM. */
int domi_http_end_answer(domus_wire *wire, domi_http_state *state, uint64_t id);

/* Whether the peer waits to be told to send the body of this request, or the bytes of another
 * protocol, and will not be: then nobody can know whether they come before the next request, so the
 * connection ends with the answer (answer.c). */
bool domi_http_has_left_body(const domi_http_state *state, uint64_t id);

/* Let the peer send its body. Returns 0; -ENOMEM (answer.c). */
int domi_http_send_100(domus_wire *wire, domi_http_state *state);

#endif
