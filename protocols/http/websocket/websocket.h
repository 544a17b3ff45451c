/* The state of the WebSocket stage for a channel, and the functions that its files call of each
 * other.
 *
 * Most messages come as one frame that lies whole in the window: it is unmasked there, and the
 * message is a slice of it. Any other message is gathered: the bytes of its frames are unmasked
 * into an appender as they come, and used. Nothing else is kept, so an idle connection has only
 * this state. */
#ifndef DOMI_PROTOCOLS_HTTP_WEBSOCKET_H
#define DOMI_PROTOCOLS_HTTP_WEBSOCKET_H

#include <domus/websocket.h>

#include "protocols/http/websocket/utf8.h"

#include <assert.h>
#include <errno.h>

#define DOMI_WEBSOCKET_HEAD_MAX    14u  /* bytes of the head of a WebSocket frame, at most */
#define DOMI_WEBSOCKET_CONTROL_MAX 125u /* bytes of the payload of a control frame, at most */
#define DOMI_WEBSOCKET_KEY         4u   /* bytes of the key by which a payload is masked */

enum {
    DOMI_WEBSOCKET_CONTINUATION = 0,
    DOMI_WEBSOCKET_TEXT = 1,
    DOMI_WEBSOCKET_BINARY = 2,
    DOMI_WEBSOCKET_CLOSE = 8,
    DOMI_WEBSOCKET_PING = 9,
    DOMI_WEBSOCKET_PONG = 10,
    /* bit of a frame's first byte: the frame is the last one of its message */
    DOMI_WEBSOCKET_FIN = 0x80,
    DOMI_WEBSOCKET_MASKED = 0x80, /* bit of a frame's second byte: its payload is masked */
};

typedef struct domi_websocket_state {
    const domus_websocket_options *options;
    domus_appender bytes; /* bytes that were gathered of a message in several frames */
    uint64_t charged;     /* bytes of the gathered message that the budget counts */
    uint64_t left;        /* bytes of the current frame's payload that have not come */
    uint32_t fragments;   /* number of frames of the current message that have come */
    unsigned char key[DOMI_WEBSOCKET_KEY]; /* key by which the current frame's payload is masked */
    /* index in `key` of the byte for the next byte of the payload */
    uint8_t key_at;
    /* close code for bytes of the peer that were refused; 0: none were */
    uint16_t wrong;
    domi_utf8 text;      /* state of the UTF-8 check of the current text message */
    bool in_message : 1; /* a frame of a message has come, but not its last frame */
    bool in_frame : 1;  /* the head of the current frame was read, and its payload not to its end */
    bool is_last : 1;   /* the current frame is the last one of its message */
    bool is_binary : 1; /* the current message is binary, and no text */
    bool has_closed : 1; /* this side has sent a close frame */
    bool was_heard : 1;  /* bytes of the peer have come since the timer last fired */
    bool was_pinged : 1; /* this side sent a ping when the timer last fired */
} domi_websocket_state;

static_assert(sizeof(domi_websocket_state) <= 80, "an idle connection keeps little");

static inline bool domi_websocket_is_server(const domi_websocket_state *state)
{
    return state->options->role == DOMUS_ROLE_SERVER;
}

/* Record the close code for bytes of the peer that are refused. Returns the negative errno for
 * it. */
static inline int domi_websocket_record_close_code(domi_websocket_state *state, uint16_t code)
{
    state->wrong = code;
    return code == DOMUS_WEBSOCKET_TOO_BIG ? -EMSGSIZE : -EPROTO;
}

/* The head of a WebSocket frame, as it was read. */
typedef struct domi_websocket_head {
    uint8_t opcode;
    bool is_last;
    uint8_t size;    /* bytes of the frame's head */
    uint64_t length; /* bytes of the frame's payload */
    /* key by which the payload is masked; zeros: it is not masked */
    unsigned char key[DOMI_WEBSOCKET_KEY];
} domi_websocket_head;

/* Read the head of a frame of the peer. Returns 1; 0 when more bytes are needed; or a negative
 * errno (head.c). */
int domi_websocket_read_frame_head(domus_wire *wire, domi_websocket_state *state, const char *bytes,
                                   size_t size, domi_websocket_head *ret_head);

/* Write the head of a control frame, or of a whole message, in at most DOMI_WEBSOCKET_HEAD_MAX
 * bytes. Returns where it ends (head.c). */
char *domi_websocket_write_frame_head(char *to, unsigned opcode, bool is_masked, uint64_t length);

/* Copy `size` bytes of a payload, and mask or unmask them by the key; they lie `at` bytes behind
 * the start of the payload; `to` may be `from` (mask.c). */
void domi_websocket_mask_payload(char *to, const char *from, size_t size, const unsigned char *key,
                                 size_t at);

/* Draw random bytes that nobody can predict. Returns 0, or the error of getrandom(2) (mask.c). */
int domi_websocket_draw_random_bytes(void *to, size_t size);

/* Handle bytes of a message: its frame has begun, or lies whole in the window (message.c). Return
 * how many were used, or a negative errno. */
int domi_websocket_begin_message_frame(domus_wire *wire, domi_websocket_state *state,
                                       const domi_websocket_head *head, const char *bytes,
                                       size_t size);
int domi_websocket_continue_message_frame(domus_wire *wire, domi_websocket_state *state,
                                          const char *bytes, size_t size);

/* Free the bytes of a message that were gathered. */
void domi_websocket_free_gathered_bytes(domi_websocket_state *state);

/* Handle a control frame of the peer, which lies whole behind its head (control.c). Returns 0, or a
 * negative errno. */
int domi_websocket_handle_control_frame(domus_wire *wire, domi_websocket_state *state,
                                        const domi_websocket_head *head, const char *bytes);

/* Append a control frame; append a close frame with this code, where 0 stands for none (control.c).
 * Return 0; a negative errno. */
int domi_websocket_send_control_frame(domus_wire *wire, const domi_websocket_state *state,
                                      unsigned opcode, const char *bytes, size_t size);
int domi_websocket_send_close_frame(domus_wire *wire, domi_websocket_state *state, uint16_t code,
                                    domus_slice reason);

/* Returns whether a close frame with this code may be sent. */
bool domi_websocket_is_valid_close_code(unsigned code);

int domi_websocket_encode_message(domus_wire *wire, domi_websocket_state *state, uint64_t id,
                                  const domus_type *type, const void *payload);

#endif
