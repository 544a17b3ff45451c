/* Decodes replies, for a client: finds where one ends, and checks it on the way. The message
 * is the reply's bytes, in which a reader (reader.c) finds the values again. */
#include "protocols/resp/resp.h"
#include "protocols/resp/scan.h"

#include <errno.h>

_Static_assert(DOMUS_RESP_NESTING_MAX <= 32, "attributes are bits of a word");

static int record_that_reply_is_too_long(domi_resp_state *state)
{
    return domi_resp_record_why_bytes_are_wrong(state, DOMI_RESP_SIZE);
}

/* Note that a value of the reply is whole. Returns whether the whole reply is. */
static bool count_whole_value_of_reply(domi_resp_state *state)
{
    while (state->in.open.depth != 0) {
        uint32_t top = state->in.open.depth - 1;
        if (--state->in.open.rest[top] != 0)
            return false;
        state->in.open.depth = top;
        if ((state->in.open.attributes >> top & 1) != 0)
            return false; /* an attribute is followed by the value that it belongs to */
    }
    return true;
}

/* Begin the value of a reply whose head is `item`. Returns 1 when the reply is whole with it; 0
 * when it is not; or an error. */
static int begin_value_by_its_head(domi_resp_state *state, const domi_resp_item *item)
{
    uint32_t depth = state->in.open.depth;
    bool is_attribute = item->kind == DOMUS_RESP_ATTRIBUTE;

    if (depth == 0 && !is_attribute)
        state->is_push = item->kind == DOMUS_RESP_PUSH;
    if (item->kind == DOMUS_RESP_PUSH && depth == 0 && state->form == DOMUS_RESP_EXACT)
        state->form = DOMUS_RESP_PUSHED;
    else if (item->only_3)
        state->form = DOMUS_RESP_ONLY_3;
    if (item->count != 0) {
        if (depth == state->options.nesting_max)
            return record_that_reply_is_too_long(state);
        state->in.open.rest[depth] = item->count;
        state->in.open.attributes &= ~(UINT32_C(1) << depth);
        state->in.open.attributes |= (uint32_t)is_attribute << depth;
        state->in.open.depth++;
        return 0;
    }
    if (item->body != 0) {
        state->left = item->body;
        domi_resp_set_bound_of_gathered_bytes(state, state->at + item->body);
        return 0;
    }
    return !is_attribute && count_whole_value_of_reply(state) ? 1 : 0;
}

/* Pass over the bytes that have come of a bulk string. Returns 1 when the reply is whole; 0 when it
 * is not; or an error. */
static int skip_bytes_of_bulk_string(domi_resp_state *state, const char *bytes, size_t size)
{
    while (state->left != 0 && state->at < size) {
        uint32_t there = (uint32_t)size - state->at;
        if (state->left <= 2) {
            if (bytes[state->at] != (state->left == 2 ? '\r' : '\n'))
                return -EPROTO;
            there = 1;
        } else if (there > state->left - 2) {
            there = state->left - 2;
        }
        state->at += there;
        state->left -= there;
    }
    return state->left == 0 && count_whole_value_of_reply(state) ? 1 : 0;
}

static bool is_reply_too_long(const domi_resp_state *state, const domi_resp_item *item)
{
    uint64_t all = (uint64_t)state->bytes.size + state->at + item->body;

    return all > state->options.message_max ||
           (item->body != 0 && item->body - 2 > state->options.bulk_max);
}

/* Look at the reply's bytes from `at` on. Returns 1 when the reply is whole; 0 when more bytes are
 * needed; or an error. */
static int scan_reply(domi_resp_state *state, const char *bytes, size_t size)
{
    domi_resp_item item;

    for (;;) {
        if (state->left != 0) {
            int result = skip_bytes_of_bulk_string(state, bytes, size);
            if (result != 0 || state->left != 0)
                return result;
        }
        if (state->at == size)
            return 0;
        uint32_t looked = state->in.open.looked;
        int used = domi_resp_scan_head_of_value(bytes + state->at, size - state->at, looked, &item);
        if (used < 0)
            return used;
        if (used == 0) {
            /* the last byte may be the '\r' of a line end, so it is looked at again */
            state->in.open.looked = (uint32_t)size - state->at - 1;
            return 0;
        }
        state->in.open.looked = 0;
        state->at += (uint32_t)used;
        if (is_reply_too_long(state, &item))
            return record_that_reply_is_too_long(state);
        int result = begin_value_by_its_head(state, &item);
        if (result != 0)
            return result;
    }
}

/* Move the bytes of the reply that were looked at to the gathered ones. */
static int gather_scanned_bytes_of_reply(domi_resp_state *state, const char *bytes)
{
    uint32_t at = state->at;

    if (state->bytes.size + at > state->bytes.size_max)
        state->bytes.size_max = state->options.message_max;
    int error = at != 0 ? domus_append(&state->bytes, bytes, at) : 0;
    state->gathering = true;
    state->at = 0;
    return error != 0 ? error : (int)at;
}

static domus_resp_reply *make_message_of_reply(domus_wire *wire, const domi_resp_state *state)
{
    return state->is_push || state->options.role == DOMUS_ROLE_PEER
               ? domus_wire_notice(wire, &domus_resp_push_type)
               : domus_wire_answer(wire, &domus_resp_reply_type, DOMUS_NO_ID);
}

/* Make the message of a whole reply, which ends at `at`. Returns the bytes used, or an error. */
static int make_message_and_end_whole_reply(domus_wire *wire, domi_resp_state *state,
                                            const char *bytes)
{
    uint32_t used = state->at;

    if (state->gathering) {
        int error = gather_scanned_bytes_of_reply(state, bytes);
        if (error < 0)
            return error;
    }
    domus_resp_reply *reply = make_message_of_reply(wire, state);
    if (reply == NULL)
        return -ENOMEM;
    if (!state->gathering) {
        reply->bytes = domus_wire_slice(wire, bytes, used);
    } else {
        int error = domus_append_end(&state->bytes, &reply->bytes);
        if (error != 0)
            return error;
    }
    reply->values = 1;
    reply->form = state->form;
    domi_resp_reset_half_received_message(state);
    return (int)used;
}

int domi_resp_decode_reply(domus_wire *wire, domi_resp_state *state, const char *bytes, size_t size)
{
    int result = scan_reply(state, bytes, size);

    if (result < 0)
        return result;
    if (result == 1)
        return make_message_and_end_whole_reply(wire, state, bytes);
    uint64_t whole = (uint64_t)state->at + state->left;
    if (state->gathering || whole > DOMI_RESP_GATHER_LEAST || size == DOMUS_WINDOW_MAX)
        return gather_scanned_bytes_of_reply(state, bytes);
    if (whole > size)
        domus_wire_need(wire, (size_t)whole);
    return 0;
}
