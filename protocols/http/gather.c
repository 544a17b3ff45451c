/* Gathers messages that do not lie whole in the window, and cuts slices out of messages. Gathered
 * bytes count on the stage's budget until the message is made. */
#include "protocols/http/coding.h"

#include <errno.h>

#define ROOM_LEAST 256u /* bytes that an appender of gathered bytes allocates at first */

/* Set the number of gathered bytes that count on the budget. Returns 0; -ENOMEM, and the gathered
 * bytes are freed. */
static int charge_budget_or_free_gathered(domi_http_state *state, uint64_t bytes)
{
    int error = domus_budget_charge(state->options.budget, &state->charged, bytes);

    if (error != 0)
        domi_http_free_gathered_message(state);
    return error;
}

/* Returns how many bytes an appender allocates by itself when it must hold `need` bytes. */
static uint64_t bytes_that_appender_would_allocate(const domus_appender *to, uint64_t need)
{
    uint64_t room = to->room == 0 ? ROOM_LEAST : 2 * (uint64_t)to->room;

    if (to->size_max != 0 && room > to->size_max)
        room = to->size_max;
    return room > need ? room : need;
}

/* Append gathered bytes, after the memory that the appender will allocate was counted on the
 * budget. The appender doubles its memory while the budget has room for that, and then allocates
 * only what it needs. */
static int append_gathered_bytes(domi_http_state *state, domus_appender *to, const char *bytes,
                                 size_t size)
{
    uint64_t need = (uint64_t)to->size + size;
    uint64_t others = (uint64_t)state->head_bytes.room + state->body_bytes.room - to->room;
    uint32_t size_max = to->size_max;

    if (need <= to->room)
        return domus_append(to, bytes, size);
    if (domus_budget_charge(state->options.budget, &state->charged,
                            others + bytes_that_appender_would_allocate(to, need)) != 0) {
        int error = charge_budget_or_free_gathered(state, others + need);
        if (error != 0)
            return error;
        /* here `need` is at most the appender's own bound, so it fits into 32 bits */
        to->size_max = (uint32_t)need;
    }
    int error = domus_append(to, bytes, size);
    to->size_max = size_max;
    return error;
}

void domi_http_free_gathered_message(domi_http_state *state)
{
    (void)domus_budget_charge(state->options.budget, &state->charged, 0);
    domus_append_drop(&state->head_bytes);
    domus_append_drop(&state->body_bytes);
    domi_http_free_inflater(state);
}

int domi_http_begin_to_gather_message(domi_http_state *state, const char *head)
{
    state->body_bytes.size_max = (uint32_t)state->options.body_max;
    if (state->body.framing == DOMI_HTTP_COUNTED && state->inflater == NULL)
        state->body_bytes.size_max = (uint32_t)state->body.left;
    return append_gathered_bytes(state, &state->head_bytes, head, state->head_size);
}

int domi_http_gather_body_bytes(domi_http_state *state, const char *bytes, size_t size)
{
    return size != 0 ? append_gathered_bytes(state, &state->body_bytes, bytes, size) : 0;
}

int domi_http_end_gathered_message(domi_http_state *state, domi_http_source *ret_source)
{
    domi_http_source source = {.head = NULL, .unzipped = state->inflater != NULL};
    int error = source.unzipped && !domi_http_may_compressed_body_end(state) ? -EPROTO : 0;

    if (error == 0)
        error = domus_append_end(&state->head_bytes, &source.head_slice);

    if (error == 0)
        error = domus_append_end(&state->body_bytes, &source.body_slice);
    domi_http_free_gathered_message(state);
    if (error != 0)
        domus_slice_free(source.head_slice);
    else
        *ret_source = source;
    return error;
}

int domi_http_cut_slice_of_head(domus_wire *wire, const domi_http_source *from, uint32_t at,
                                uint32_t size, domus_slice *ret_slice)
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

char *domi_http_changeable_bytes_of_head(domus_wire *wire, const domi_http_source *from,
                                         uint32_t at, uint32_t size)
{
    if (from->head != NULL)
        return domus_wire_edit(wire, from->head + at, size);
    /* const is cast away: gathered bytes are memory of this stage, constant only for users of
     * slices */
    return (char *)(uintptr_t)domus_slice_data(from->head_slice) + at;
}

domus_slice domi_http_cut_body_slice(domus_wire *wire, const domi_http_source *from)
{
    if (from->head == NULL)
        return from->body_slice;
    return domus_wire_slice(wire, from->body, from->body_size);
}
