/* Makes WebSocket messages: from one frame where it was received, or gathered from several
 * frames. */
#include "protocols/http/websocket/websocket.h"

#include <string.h>

#define MESSAGE_DEFAULT   (UINT32_C(1) << 20)
#define FRAGMENTS_DEFAULT 4096u

void domi_websocket_free_gathered_bytes(domi_websocket_state *state)
{
    (void)domus_budget_charge(state->options->budget, &state->charged, 0);
    domus_append_drop(&state->bytes);
}

/* Returns 0 if a frame of this length keeps the message within its limits; otherwise a negative
 * errno. */
static int count_frame_and_check_limits_of_message(domi_websocket_state *state, uint64_t length)
{
    const domus_websocket_options *options = state->options;
    uint32_t message_max = options->message_max != 0 ? options->message_max : MESSAGE_DEFAULT;
    uint32_t frame_max = options->frame_max != 0 ? options->frame_max : message_max;
    uint32_t fragments_max =
        options->fragments_max != 0 ? options->fragments_max : FRAGMENTS_DEFAULT;

    if (length > frame_max || length > message_max - state->bytes.size)
        return domi_websocket_record_close_code(state, DOMUS_WEBSOCKET_TOO_BIG);
    if (++state->fragments > fragments_max)
        return domi_websocket_record_close_code(state, DOMUS_WEBSOCKET_POLICY);
    return 0;
}

/* Make a message of a single frame whose payload lies whole at `bytes`. Returns 0; a negative
 * errno. */
static int make_message_of_single_frame(domus_wire *wire, domi_websocket_state *state,
                                        const domi_websocket_head *head, const char *bytes)
{
    size_t size = (size_t)head->length;
    domus_websocket_message *message;

    if (domi_websocket_is_server(state))
        domi_websocket_mask_payload(domus_wire_edit(wire, bytes, size), bytes, size, head->key, 0);
    if (!state->is_binary && !domi_utf8_is_complete_text(bytes, size))
        return domi_websocket_record_close_code(state, DOMUS_WEBSOCKET_INVALID_DATA);
    /* the message is dropped, because this side has closed and could not answer it */
    if (state->has_closed)
        return 0;
    message = domus_wire_notice(wire, &domus_websocket_message_type);
    if (message == NULL)
        return -ENOMEM;
    message->bytes = domus_wire_slice(wire, bytes, size);
    message->binary = state->is_binary;
    return 0;
}

/* Make a message of the bytes that were gathered from its frames. */
static int make_message_of_gathered_bytes(domus_wire *wire, domi_websocket_state *state)
{
    domus_websocket_message *message;

    if (!state->is_binary && state->text.left != 0)
        return domi_websocket_record_close_code(state, DOMUS_WEBSOCKET_INVALID_DATA);
    if (state->has_closed) {
        domi_websocket_free_gathered_bytes(state);
        return 0;
    }
    message = domus_wire_notice(wire, &domus_websocket_message_type);
    if (message == NULL)
        return -ENOMEM;
    message->binary = state->is_binary;
    int error = domus_append_end(&state->bytes, &message->bytes);
    domi_websocket_free_gathered_bytes(state);
    return error;
}

/* Unmask bytes of the current frame, and append them to the bytes that were gathered. */
static int gather_unmasked_frame_bytes(domi_websocket_state *state, const char *bytes, size_t size)
{
    char *room = domus_append_room(&state->bytes, size);

    if (room == NULL)
        return -ENOMEM;
    domi_websocket_mask_payload(room, bytes, size, state->key, state->key_at);
    state->key_at = (uint8_t)((state->key_at + size) % DOMI_WEBSOCKET_KEY);
    if (!state->is_binary && !domi_utf8_check_further_bytes(&state->text, room, size))
        return domi_websocket_record_close_code(state, DOMUS_WEBSOCKET_INVALID_DATA);
    domus_append_written(&state->bytes, size);
    int error = domus_budget_charge(state->options->budget, &state->charged, state->bytes.room);
    if (error != 0) {
        domi_websocket_free_gathered_bytes(state);
        state->wrong = DOMUS_WEBSOCKET_TRY_LATER;
    }
    return error;
}

int domi_websocket_continue_message_frame(domus_wire *wire, domi_websocket_state *state,
                                          const char *bytes, size_t size)
{
    size_t part = size < state->left ? size : (size_t)state->left;
    int error = part != 0 ? gather_unmasked_frame_bytes(state, bytes, part) : 0;

    if (error != 0)
        return error;
    state->left -= part;
    if (state->left != 0)
        return (int)part;
    state->in_frame = false;
    state->in_message = !state->is_last;
    if (state->is_last)
        error = make_message_of_gathered_bytes(wire, state);
    return error != 0 ? error : (int)part;
}

int domi_websocket_begin_message_frame(domus_wire *wire, domi_websocket_state *state,
                                       const domi_websocket_head *head, const char *bytes,
                                       size_t size)
{
    if (!state->in_message) {
        state->is_binary = head->opcode == DOMI_WEBSOCKET_BINARY;
        state->text = (domi_utf8){0};
        state->fragments = 0;
    }
    int error = count_frame_and_check_limits_of_message(state, head->length);
    if (error != 0)
        return error;
    bytes += head->size;
    size -= head->size;
    if (!state->in_message && head->is_last && size >= head->length) {
        error = make_message_of_single_frame(wire, state, head, bytes);
        return error != 0 ? error : (int)(head->size + head->length);
    }
    state->in_frame = true;
    state->is_last = head->is_last;
    state->left = head->length;
    memcpy(state->key, head->key, sizeof state->key);
    state->key_at = 0;
    int used = domi_websocket_continue_message_frame(wire, state, bytes, size);
    return used < 0 ? used : (int)head->size + used;
}
