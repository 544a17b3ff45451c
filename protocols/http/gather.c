/* Gathers messages that do not come whole, and cuts slices out of messages. Gathered bytes are
 * counted on the budget, until the message is made. */
#include "protocols/http/unzip.h"

#include <errno.h>

static int charge(domi_http_state *state)
{
    uint64_t bytes = (uint64_t)state->head_bytes.room + state->body_bytes.room;
    int error = domus_budget_charge(state->options.budget, &state->charged, bytes);

    if (error != 0)
        domi_http_reset(state);
    return error;
}

void domi_http_reset(domi_http_state *state)
{
    (void)domus_budget_charge(state->options.budget, &state->charged, 0);
    domus_append_drop(&state->head_bytes);
    domus_append_drop(&state->body_bytes);
    domi_http_unzip_end(state);
}

int domi_http_begin_gathering(domi_http_state *state, const char *head)
{
    int error = domus_append(&state->head_bytes, head, state->head_size);

    state->body_bytes.size_max = (uint32_t)state->options.body_max;
    if (state->body.framing == DOMI_HTTP_COUNTED && state->inflater == NULL)
        state->body_bytes.size_max = (uint32_t)state->body.left;
    return error != 0 ? error : charge(state);
}

int domi_http_gather(domi_http_state *state, const char *bytes, size_t size)
{
    int error = size != 0 ? domus_append(&state->body_bytes, bytes, size) : 0;

    return error != 0 ? error : charge(state);
}

int domi_http_end_gathering(domi_http_state *state, domi_http_source *ret_source)
{
    domi_http_source source = {.head = NULL, .unzipped = state->inflater != NULL};
    int error = source.unzipped && !domi_http_unzip_is_whole(state) ? -EPROTO : 0;

    if (error == 0)
        error = domus_append_end(&state->head_bytes, &source.head_slice);

    if (error == 0)
        error = domus_append_end(&state->body_bytes, &source.body_slice);
    domi_http_reset(state);
    if (error != 0)
        domus_slice_free(source.head_slice);
    else
        *ret_source = source;
    return error;
}

int domi_http_cut_head(domus_wire *wire, const domi_http_source *from, uint32_t at, uint32_t size,
                       domus_slice *ret_slice)
{
    domus_slice part = from->head_slice;

    if (from->head != NULL) {
        *ret_slice = domus_wire_slice(wire, from->head + at, size);
        return 0;
    }
    if (size == 0)
        return 0;
    part.offset += at;
    part.size = size;
    return domus_slice_keep(part, ret_slice);
}

domus_slice domi_http_cut_body(domus_wire *wire, const domi_http_source *from)
{
    if (from->head == NULL)
        return from->body_slice;
    return domus_wire_slice(wire, from->body, from->body_size);
}
