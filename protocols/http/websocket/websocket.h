/* The state of the WebSocket stage for a channel, and the doors between its files.
 *
 * Most messages come as one frame that lies whole in the window: it is unmasked there, and
 * the message is a slice of it. Any other is gathered: the bytes of its frames are unmasked
 * into an appender as they come, and used. Nothing else is kept, so an idle connection has
 * the state alone. */
#ifndef DOMI_PROTOCOLS_HTTP_WEBSOCKET_H
#define DOMI_PROTOCOLS_HTTP_WEBSOCKET_H

#include <domus/websocket.h>

#include "protocols/http/websocket/utf8.h"

#include <assert.h>
#include <errno.h>

#define DOMI_WEBSOCKET_HEAD_MAX    14u  /* bytes of the head of a frame */
#define DOMI_WEBSOCKET_CONTROL_MAX 125u /* bytes in a frame of control */
#define DOMI_WEBSOCKET_KEY         4u   /* bytes of a mask */

enum {
    DOMI_WEBSOCKET_CONTINUATION = 0,
    DOMI_WEBSOCKET_TEXT = 1,
    DOMI_WEBSOCKET_BINARY = 2,
    DOMI_WEBSOCKET_CLOSE = 8,
    DOMI_WEBSOCKET_PING = 9,
    DOMI_WEBSOCKET_PONG = 10,
    DOMI_WEBSOCKET_FIN = 0x80,    /* of the first byte: the last frame of a message */
    DOMI_WEBSOCKET_MASKED = 0x80, /* of the second byte */
};

typedef struct domi_websocket_state {
    const domus_websocket_options *options;
    domus_appender bytes;                  /* bytes of the message that has come in part */
    uint64_t charged;                      /* how many of these bytes the budget counts */
    uint64_t left;                         /* bytes of the frame at hand that have not come */
    uint32_t fragments;                    /* frames of the message that have come */
    unsigned char key[DOMI_WEBSOCKET_KEY]; /* the mask of the frame at hand */
    uint8_t key_at;                        /* the index of the mask's byte for the next byte */
    uint16_t wrong;                        /* the code for bytes that were refused; 0: none were */
    domi_utf8 text;                        /* where the text of that message is */
    bool in_message : 1;                   /* a frame of a message has come, and not its last one */
    bool in_frame : 1;                     /* the head of a frame of a message was read */
    bool is_last : 1;                      /* that frame ends the message */
    bool is_binary : 1;                    /* the message is binary */
    bool has_closed : 1;                   /* a close was sent */
    bool was_heard : 1;                    /* bytes have come since the last look */
    bool was_pinged : 1;                   /* and a ping was sent at that look */
} domi_websocket_state;

static_assert(sizeof(domi_websocket_state) <= 80, "an idle connection keeps little");

static inline bool domi_websocket_is_server(const domi_websocket_state *state)
{
    return state->options->role == DOMUS_ROLE_SERVER;
}

/* Note the code with which bytes are refused. Returns the error that belongs to it. */
static inline int domi_websocket_refuse(domi_websocket_state *state, uint16_t code)
{
    state->wrong = code;
    return code == DOMUS_WEBSOCKET_TOO_BIG ? -EMSGSIZE : -EPROTO;
}

/* A head of a frame. */
typedef struct domi_websocket_head {
    uint8_t opcode;
    bool is_last;
    uint8_t size;                          /* bytes of the head itself */
    uint64_t length;                       /* bytes behind it */
    unsigned char key[DOMI_WEBSOCKET_KEY]; /* zeros: not masked */
} domi_websocket_head;

/* Read a head. Returns 1; 0 when it needs more; or an error (head.c). */
int domi_websocket_read_head(domus_wire *wire, domi_websocket_state *state, const char *bytes,
                             size_t size, domi_websocket_head *ret_head);

/* Write the head of a whole message, or of a frame of control, without a key, to up to
 * DOMI_WEBSOCKET_HEAD_MAX bytes. Returns its end (head.c). */
char *domi_websocket_write_head(char *to, unsigned opcode, bool is_masked, uint64_t length);

/* Copy `size` bytes, which lie `at` bytes behind the start of what the key masks, masked or
 * unmasked; `to` may be `from` (mask.c). */
void domi_websocket_mask(char *to, const char *from, size_t size, const unsigned char *key,
                         size_t at);

/* Draw bytes that nobody can foresee. Returns 0, or the error of getrandom(2) (mask.c). */
int domi_websocket_draw(void *to, size_t size);

/* Take bytes of a message whose frame has begun or lies whole in the window (message.c). Return how
 * many were used, or an error. */
int domi_websocket_begin_frame(domus_wire *wire, domi_websocket_state *state,
                               const domi_websocket_head *head, const char *bytes, size_t size);
int domi_websocket_go_on(domus_wire *wire, domi_websocket_state *state, const char *bytes,
                         size_t size);

/* Forget what was gathered. */
void domi_websocket_reset(domi_websocket_state *state);

/* Take a frame of control, which lies whole behind its head (control.c). Returns 0, or an error. */
int domi_websocket_control(domus_wire *wire, domi_websocket_state *state,
                           const domi_websocket_head *head, const char *bytes);

/* Append a frame of control (control.c), or a close with this code, and 0 for none.
 * Return 0; an error. */
int domi_websocket_send_control(domus_wire *wire, const domi_websocket_state *state,
                                unsigned opcode, const char *bytes, size_t size);
int domi_websocket_send_close(domus_wire *wire, domi_websocket_state *state, uint16_t code,
                              domus_slice reason);

/* Returns whether this code may be sent. */
bool domi_websocket_is_code(unsigned code);

int domi_websocket_encode(domus_wire *wire, domi_websocket_state *state, uint64_t id,
                          const domus_type *type, const void *payload);

#endif
