/* Reads and writes the heads of WebSocket frames. */
#include "protocols/http/websocket/websocket.h"

#include <string.h>

#define RESERVED_BITS 0x70
#define OPCODE_BITS   0x0f
#define LENGTH_BITS   0x7f
#define IN_2_BYTES    126
#define IN_8_BYTES    127

static uint64_t read_number_of_payload_bytes(const unsigned char *bytes, size_t size)
{
    uint64_t number = 0;

    for (size_t i = 0; i < size; i++)
        number = number << 8 | bytes[i];
    return number;
}

static bool is_control_frame(unsigned opcode)
{
    return opcode >= DOMI_WEBSOCKET_CLOSE;
}

/* Returns whether a frame whose head has these first two bytes may come now. */
static bool may_frame_come_now(const domi_websocket_state *state, const unsigned char *bytes)
{
    unsigned opcode = bytes[0] & OPCODE_BITS;
    bool is_masked = (bytes[1] & DOMI_WEBSOCKET_MASKED) != 0;

    if ((bytes[0] & RESERVED_BITS) != 0 || is_masked != domi_websocket_is_server(state))
        return false;
    if (is_control_frame(opcode))
        return opcode <= DOMI_WEBSOCKET_PONG && (bytes[0] & DOMI_WEBSOCKET_FIN) != 0 &&
               (bytes[1] & LENGTH_BITS) <= DOMI_WEBSOCKET_CONTROL_MAX;
    if (opcode == DOMI_WEBSOCKET_CONTINUATION)
        return state->in_message;
    return opcode <= DOMI_WEBSOCKET_BINARY && !state->in_message;
}

int domi_websocket_read_frame_head(domus_wire *wire, domi_websocket_state *state,
                                   const char *bytes_, size_t size, domi_websocket_head *ret_head)
{
    const unsigned char *bytes = (const unsigned char *)bytes_;

    if (size < 2) {
        domus_wire_need(wire, 2);
        return 0;
    }
    if (!may_frame_come_now(state, bytes))
        return domi_websocket_record_close_code(state, DOMUS_WEBSOCKET_PROTOCOL_ERROR);
    uint64_t length = bytes[1] & LENGTH_BITS;
    size_t width = length == IN_2_BYTES ? 2 : length == IN_8_BYTES ? 8 : 0;
    size_t key = domi_websocket_is_server(state) ? DOMI_WEBSOCKET_KEY : 0;
    if (size >= 2 + width && width != 0) {
        length = read_number_of_payload_bytes(bytes + 2, width);
        /* refused, unless the payload's length is in its shortest form, with its highest bit 0 */
        if (length < (width == 2 ? IN_2_BYTES : UINT64_C(65536)) || length >> 63 != 0)
            return domi_websocket_record_close_code(state, DOMUS_WEBSOCKET_PROTOCOL_ERROR);
    }
    if (size < 2 + width + key) {
        domus_wire_need(wire, size < 2 + width ? 2 + width : 2 + width + key);
        return 0;
    }
    *ret_head = (domi_websocket_head){.opcode = bytes[0] & OPCODE_BITS,
                                      .is_last = (bytes[0] & DOMI_WEBSOCKET_FIN) != 0,
                                      .size = (uint8_t)(2 + width + key),
                                      .length = length};
    memcpy(ret_head->key, bytes + 2 + width, key);
    return 1;
}

char *domi_websocket_write_frame_head(char *to, unsigned opcode, bool is_masked, uint64_t length)
{
    unsigned mask = is_masked ? DOMI_WEBSOCKET_MASKED : 0;
    unsigned width = length < IN_2_BYTES ? 0 : length < 65536 ? 2 : 8;

    *to++ = (char)(DOMI_WEBSOCKET_FIN | opcode);
    *to++ = (char)(mask | (width == 0 ? (unsigned)length : width == 2 ? IN_2_BYTES : IN_8_BYTES));
    for (unsigned i = width; i-- > 0;)
        *to++ = (char)(length >> (8 * i));
    return to;
}
