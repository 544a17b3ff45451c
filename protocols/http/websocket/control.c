/* Control frames of WebSocket: pings, pongs and closes. */
#include "protocols/http/websocket/websocket.h"

#include <string.h>

bool domi_websocket_is_valid_close_code(unsigned code)
{
    return (code >= DOMUS_WEBSOCKET_NORMAL && code <= DOMUS_WEBSOCKET_UNSUPPORTED) ||
           (code >= DOMUS_WEBSOCKET_INVALID_DATA && code <= DOMUS_WEBSOCKET_BAD_GATEWAY) ||
           (code >= 3000 && code <= 4999);
}

int domi_websocket_send_control_frame(domus_wire *wire, const domi_websocket_state *state,
                                      unsigned opcode, const char *bytes, size_t size)
{
    char frame[2 + DOMI_WEBSOCKET_KEY + DOMI_WEBSOCKET_CONTROL_MAX];
    bool is_masked = !domi_websocket_is_server(state);
    unsigned char key[DOMI_WEBSOCKET_KEY] = {0};
    char *to = domi_websocket_write_frame_head(frame, opcode, is_masked, size);

    if (is_masked) {
        int error = domi_websocket_draw_random_bytes(key, sizeof key);
        if (error != 0)
            return error;
        memcpy(to, key, sizeof key);
        to += sizeof key;
    }
    domi_websocket_mask_payload(to, bytes, size, key, 0);
    return domus_wire_append(wire, frame, (size_t)(to - frame) + size);
}

int domi_websocket_send_close_frame(domus_wire *wire, domi_websocket_state *state, uint16_t code,
                                    domus_slice reason)
{
    char bytes[DOMI_WEBSOCKET_CONTROL_MAX] = {(char)(code >> 8), (char)code};

    if (reason.size != 0)
        memcpy(bytes + 2, domus_slice_data(reason), reason.size);
    int error = domi_websocket_send_control_frame(wire, state, DOMI_WEBSOCKET_CLOSE, bytes,
                                                  code != 0 ? 2 + reason.size : 0);
    if (error == 0)
        state->has_closed = true;
    return error;
}

/* Handle a close frame of the peer. If this side has sent no close, the peer gets the same code
 * back. Bytes of the peer behind its close are ignored. */
static int answer_close_and_tell_user_of_it(domus_wire *wire, domi_websocket_state *state,
                                            const char *bytes, size_t size)
{
    const unsigned char *byte = (const unsigned char *)bytes;
    uint16_t code = (uint16_t)(size >= 2 ? byte[0] << 8 | byte[1] : 0);

    if (size == 1 || (size != 0 && !domi_websocket_is_valid_close_code(code)))
        return domi_websocket_record_close_code(state, DOMUS_WEBSOCKET_PROTOCOL_ERROR);
    if (size > 2 && !domi_utf8_is_complete_text(bytes + 2, size - 2))
        return domi_websocket_record_close_code(state, DOMUS_WEBSOCKET_INVALID_DATA);
    if (!state->has_closed) {
        int error = domi_websocket_send_close_frame(wire, state, code, (domus_slice){NULL, 0, 0});
        if (error != 0)
            return error;
    }
    domus_websocket_close *close = domus_wire_notice(wire, &domus_websocket_close_type);
    if (close == NULL)
        return -ENOMEM;
    close->code = code != 0 ? code : DOMUS_WEBSOCKET_NO_CODE;
    if (size > 2)
        close->reason = domus_wire_slice(wire, bytes + 2, size - 2);
    domus_wire_wake(wire, 0);
    domus_wire_last(wire);
    return 0;
}

static int tell_user_of_pong_if_wanted(domus_wire *wire, const domi_websocket_state *state,
                                       const char *bytes, size_t size)
{
    if (!state->options->pongs || state->has_closed)
        return 0;
    domus_slice *pong = domus_wire_notice(wire, &domus_websocket_pong_type);
    if (pong == NULL)
        return -ENOMEM;
    *pong = domus_wire_slice(wire, bytes, size);
    return 0;
}

int domi_websocket_handle_control_frame(domus_wire *wire, domi_websocket_state *state,
                                        const domi_websocket_head *head, const char *bytes)
{
    size_t size = (size_t)head->length;

    if (domi_websocket_is_server(state) && size != 0)
        domi_websocket_mask_payload(domus_wire_edit(wire, bytes, size), bytes, size, head->key, 0);
    if (head->opcode == DOMI_WEBSOCKET_CLOSE)
        return answer_close_and_tell_user_of_it(wire, state, bytes, size);
    if (head->opcode == DOMI_WEBSOCKET_PONG)
        return tell_user_of_pong_if_wanted(wire, state, bytes, size);
    return state->has_closed
               ? 0
               : domi_websocket_send_control_frame(wire, state, DOMI_WEBSOCKET_PONG, bytes, size);
}
