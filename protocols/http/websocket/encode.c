/* Encodes WebSocket messages of this side, and makes frames that many channels can send. */
#include "protocols/http/websocket/websocket.h"

#include <string.h>

#define PIECE_MAX 32768u /* bytes of a payload that are masked at once, at most */

static bool is_message_binary_or_utf8(const domus_websocket_message *message)
{
    return message->binary ||
           domi_utf8_is_complete_text(domus_slice_data(message->bytes), message->bytes.size);
}

static unsigned opcode_of_message(const domus_websocket_message *message)
{
    return message->binary ? DOMI_WEBSOCKET_BINARY : DOMI_WEBSOCKET_TEXT;
}

int domus_websocket_frame(const domus_websocket_message *message, domus_slice *ret_frame)
{
    domus_appender frame = {0};
    char head[DOMI_WEBSOCKET_HEAD_MAX];

    if (!is_message_binary_or_utf8(message))
        return -EILSEQ;
    size_t size = (size_t)(domi_websocket_write_frame_head(head, opcode_of_message(message), false,
                                                           message->bytes.size) -
                           head);
    if (message->bytes.size > DOMUS_SLICE_MAX - size)
        return -EMSGSIZE;
    /* room for the head and the payload is made at once, so that the frame takes no more memory
     * than it needs */
    char *room = domus_append_room(&frame, size + message->bytes.size);
    if (room != NULL) {
        memcpy(room, head, size);
        memcpy(room + size, domus_slice_data(message->bytes), message->bytes.size);
        domus_append_written(&frame, size + message->bytes.size);
    }
    return domus_append_end(&frame, ret_frame);
}

/* Append a payload that is masked with `key`, piece by piece. */
static int append_masked_payload(domus_wire *wire, domus_slice slice, const unsigned char *key)
{
    const char *bytes = domus_slice_data(slice);

    for (size_t at = 0; at < slice.size;) {
        size_t part = slice.size - at < PIECE_MAX ? slice.size - at : PIECE_MAX;
        char *room = domus_wire_room(wire, part);
        if (room == NULL)
            return -ENOMEM;
        domi_websocket_mask_payload(room, bytes + at, part, key, at);
        domus_wire_written(wire, part);
        at += part;
    }
    return 0;
}

static int encode_message_as_frame(domus_wire *wire, const domi_websocket_state *state,
                                   const domus_websocket_message *message)
{
    char head[DOMI_WEBSOCKET_HEAD_MAX];
    unsigned char key[DOMI_WEBSOCKET_KEY];
    bool is_masked = !domi_websocket_is_server(state);

    if (!is_message_binary_or_utf8(message))
        return -EILSEQ;
    char *end = domi_websocket_write_frame_head(head, opcode_of_message(message), is_masked,
                                                message->bytes.size);
    if (!is_masked) {
        int error = domus_wire_append(wire, head, (size_t)(end - head));
        return error != 0 ? error : domus_wire_append_slice(wire, message->bytes);
    }
    int error = domi_websocket_draw_random_bytes(key, sizeof key);
    if (error != 0)
        return error;
    memcpy(end, key, sizeof key);
    error = domus_wire_append(wire, head, (size_t)(end - head) + sizeof key);
    return error != 0 ? error : append_masked_payload(wire, message->bytes, key);
}

/* Append a prepared frame without changes, after a check that it is complete, unmasked, and of a
 * message. */
static int encode_prepared_frame(domus_wire *wire, const domi_websocket_state *state,
                                 domus_slice frame)
{
    const char *bytes = domus_slice_data(frame);
    char head[DOMI_WEBSOCKET_HEAD_MAX];

    if (!domi_websocket_is_server(state) || frame.size < 2)
        return -EINVAL;
    unsigned opcode = (unsigned char)bytes[0] & 0x0f;
    if (opcode != DOMI_WEBSOCKET_TEXT && opcode != DOMI_WEBSOCKET_BINARY)
        return -EINVAL;
    unsigned form = (unsigned char)bytes[1];
    uint32_t size = form < 126 ? 2 : form == 126 ? 4 : 10;
    if (frame.size < size)
        return -EINVAL;
    (void)domi_websocket_write_frame_head(head, opcode, false, frame.size - size);
    return memcmp(head, bytes, size) == 0 ? domus_wire_append_slice(wire, frame) : -EINVAL;
}

static int encode_control_frame(domus_wire *wire, const domi_websocket_state *state,
                                unsigned opcode, domus_slice bytes)
{
    return bytes.size <= DOMI_WEBSOCKET_CONTROL_MAX
               ? domi_websocket_send_control_frame(wire, state, opcode, domus_slice_data(bytes),
                                                   bytes.size)
               : -EMSGSIZE;
}

#define CLOSE_DEFAULT_NS UINT64_C(5000000000)

static int encode_close_frame(domus_wire *wire, domi_websocket_state *state,
                              const domus_websocket_close *close)
{
    const domus_websocket_options *options = state->options;
    domus_slice reason = close->reason;

    if (close->code != 0 ? !domi_websocket_is_valid_close_code(close->code) : reason.size != 0)
        return -EINVAL;
    if (reason.size > DOMI_WEBSOCKET_CONTROL_MAX - 2)
        return -EMSGSIZE;
    if (!domi_utf8_is_complete_text(domus_slice_data(reason), reason.size))
        return -EILSEQ;
    int error = domi_websocket_send_close_frame(wire, state, close->code, reason);
    if (error == 0)
        domus_wire_wake(wire, options->close_ns != 0 ? options->close_ns : CLOSE_DEFAULT_NS);
    return error;
}

int domi_websocket_encode_message(domus_wire *wire, domi_websocket_state *state, uint64_t id,
                                  const domus_type *type, const void *payload)
{
    if (id != DOMUS_NO_ID)
        /* an ask to a WebSocket channel is refused, because no message of the peer is an answer to
         * it */
        return -EOPNOTSUPP;
    if (state->has_closed)
        return -EPIPE;
    if (type == &domus_websocket_message_type)
        return encode_message_as_frame(wire, state, payload);
    if (type == &domus_websocket_frame_type)
        return encode_prepared_frame(wire, state, *(const domus_slice *)payload);
    if (type == &domus_websocket_close_type)
        return encode_close_frame(wire, state, payload);
    if (type == &domus_websocket_ping_type)
        return encode_control_frame(wire, state, DOMI_WEBSOCKET_PING,
                                    *(const domus_slice *)payload);
    if (type == &domus_websocket_pong_type)
        return encode_control_frame(wire, state, DOMI_WEBSOCKET_PONG,
                                    *(const domus_slice *)payload);
    return -EOPNOTSUPP;
}
