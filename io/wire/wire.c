/* Makes and frees the wire of a channel, opens its stages, and encodes output. */
#include "io/wire/wire.h"

#include "base/memory.h"
#include "base/pipeline.h"
#include "io/wire/wrap.h"

#include <errno.h>

static void free_states_of_stages(domi_wire_stage *stages, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        domi_memory_free(stages[i].state);
}

int domi_wire_make_stages(const domus_wire *wire, const domus_pipeline *pipeline, uint32_t skipped,
                          uint32_t from, uint32_t count, domi_wire_stage *stages)
{
    for (uint32_t i = from; i < count; i++) {
        const domus_stage *stage = domi_wire_get_row_of_stage(wire, pipeline, skipped, i)->stage;
        stages[i] = (domi_wire_stage){.stage = stage};
        if (stage->state_size == 0)
            continue;
        stages[i].state = domi_memory_new(stage->state_size);
        if (stages[i].state == NULL) {
            free_states_of_stages(stages + from, i - from);
            return -ENOMEM;
        }
    }
    return 0;
}

domus_wire *domi_wire_new(const domus_pipeline *pipeline, const domus_pipeline_stage *front,
                          uint32_t skipped)
{
    uint32_t fronts = domi_front_count_stages(front);
    uint32_t count = fronts + domi_pipeline_count_stages(pipeline) - skipped;
    domus_wire *wire = domi_memory_new(sizeof *wire + count * sizeof *wire->stages);

    if (wire == NULL)
        return NULL;
    wire->stages = (domi_wire_stage *)(void *)(wire + 1);
    wire->pipeline = pipeline;
    wire->front = front;
    wire->fronts = fronts;
    wire->skipped = skipped;
    wire->count = count;
    if (domi_wire_make_stages(wire, pipeline, skipped, 0, count, wire->stages) != 0) {
        domi_memory_free(wire);
        return NULL;
    }
    return wire;
}

void *domi_wire_get_state_of_stage(const domus_wire *wire, const domus_stage *stage)
{
    for (uint32_t i = 0; i < wire->count; i++) {
        if (wire->stages[i].opened && wire->stages[i].stage == stage)
            return wire->stages[i].state;
    }
    return NULL;
}

void domi_wire_close_stage(domus_wire *wire, uint32_t index)
{
    domi_wire_stage *at = &wire->stages[index];

    if (at->opened && at->stage->close != NULL)
        at->stage->close(wire, at->state);
    if (wire->agreer == index)
        wire->agreed = NULL;
    domi_window_free_memory(&at->window);
    domi_memory_free(at->state);
}

void domi_wire_free(domus_wire *wire)
{
    if (wire == NULL)
        return;
    for (uint32_t i = 0; i < wire->count; i++)
        domi_wire_close_stage(wire, i);
    if (wire->page != NULL)
        domi_page_drop_owner(wire->page);
    if (wire->owns_stages)
        domi_memory_free(wire->stages);
    domi_memory_free(wire);
}

static int open_stage_of_wire(domus_wire *wire, uint32_t index)
{
    domi_wire_stage *at = &wire->stages[index];

    if (at->stage->open == NULL)
        return 0;
    domi_mark begun = domi_wire_begin_output_of_stage(wire, index);
    const domus_pipeline_stage *row =
        domi_wire_get_row_of_stage(wire, wire->pipeline, wire->skipped, index);
    int error = at->stage->open(wire, at->state, row->options);
    return domi_wire_end_output_of_stage(wire, index, begun, error);
}

int domi_wire_open_stages(domus_wire *wire)
{
    for (uint32_t i = 0; i < wire->count; i++) {
        int error = wire->stages[i].opened ? 0 : open_stage_of_wire(wire, i);
        if (error < 0)
            return error;
        wire->stages[i].opened = true;
    }
    return 0;
}

int domi_wire_encode_message(domus_wire *wire, uint64_t id, const domus_type *type,
                             const void *payload)
{
    uint32_t last = wire->count - 1;
    domi_wire_stage *at = &wire->stages[last];

    if (wire->broken != 0)
        return wire->broken;
    domi_mark begun = domi_wire_begin_output_of_stage(wire, last);
    int error = at->stage->encode(wire, at->state, id, type, payload);
    error = domi_wire_end_output_of_stage(wire, last, begun, error);
    return error < 0 ? error : 0;
}

/* True if the peer's bytes were wrong for a byte stage that has a `finish`: that stage can append
 * what tells the peer, so the channel is closed and not reset. */
static bool may_byte_stage_tell_peer_of_error(const domus_wire *wire)
{
    bool may = false;

    for (uint32_t i = 0; wire->byte_failed && wire->broken == 0 && i + 1 < wire->count; i++)
        may = may || wire->stages[i].stage->finish != NULL;
    return may;
}

int domi_wire_encode_failure_of_request(domus_wire *wire, uint64_t id, const domus_type *request,
                                        int error)
{
    uint32_t last = wire->count - 1;
    domi_wire_stage *at = &wire->stages[last];

    if (wire->broken != 0)
        return wire->broken;
    int result = error < 0 ? error : -EINVAL;
    if (at->stage->fail != NULL) {
        domi_mark begun = domi_wire_begin_output_of_stage(wire, last);
        result = at->stage->fail(wire, at->state, id, request, error);
        result = domi_wire_end_output_of_stage(wire, last, begun, result);
    }
    wire->plain = false;
    return result < 0 && !(request == NULL && may_byte_stage_tell_peer_of_error(wire)) ? result : 0;
}

int domi_wire_encode_that_body_is_wanted(domus_wire *wire)
{
    uint32_t last = wire->count - 1;
    domi_wire_stage *at = &wire->stages[last];

    if (wire->broken != 0 || at->stage->wanted == NULL)
        return wire->broken;
    domi_mark begun = domi_wire_begin_output_of_stage(wire, last);
    int result =
        domi_wire_end_output_of_stage(wire, last, begun, at->stage->wanted(wire, at->state));
    return result < 0 ? result : 0;
}

int domi_wire_encode_cut_of_answer(domus_wire *wire, uint64_t id, int error)
{
    uint32_t last = wire->count - 1;
    domi_wire_stage *at = &wire->stages[last];

    if (wire->broken != 0)
        return wire->broken;
    if (at->stage->cut == NULL) {
        wire->plain = false;
        return error < 0 ? error : -EINVAL;
    }
    domi_mark begun = domi_wire_begin_output_of_stage(wire, last);
    int result = domi_wire_end_output_of_stage(wire, last, begun,
                                               at->stage->cut(wire, at->state, id, error));
    return result < 0 ? result : 0;
}

int domi_wire_call_wake_of_stage(domus_wire *wire, bool owed)
{
    uint32_t last = wire->count - 1;
    domi_wire_stage *at = &wire->stages[last];

    if (wire->broken != 0 || wire->output_ended || at->stage->wake == NULL)
        return wire->broken;
    domi_mark begun = domi_wire_begin_output_of_stage(wire, last);
    int result =
        domi_wire_end_output_of_stage(wire, last, begun, at->stage->wake(wire, at->state, owed));
    return result < 0 ? result : 0;
}

int domi_wire_call_carry_of_stage(domus_wire *wire)
{
    int result = wire->broken;

    for (uint32_t i = 0; result == 0 && i + 1 < wire->count; i++) {
        domi_wire_stage *at = &wire->stages[i];
        if (at->stage->carry == NULL || !at->opened || at->passes || wire->output_ended)
            continue;
        domi_mark begun = domi_wire_begin_output_of_stage(wire, i);
        result = domi_wire_end_output_of_stage(wire, i, begun, at->stage->carry(wire, at->state));
    }
    return result < 0 ? result : 0;
}

int domi_wire_choose_inner_for_ask(domus_wire *wire, domus_inner **ret_inner)
{
    for (uint32_t i = 0; i + 1 < wire->count; i++) {
        domi_wire_stage *at = &wire->stages[i];
        if (at->stage->lend == NULL || !at->opened)
            continue;
        domi_mark begun = domi_wire_begin_output_of_stage(wire, i);
        int result = at->stage->lend(wire, at->state, ret_inner);
        result = domi_wire_end_output_of_stage(wire, i, begun, result);
        return result < 0 ? result : 0;
    }
    return -EOPNOTSUPP;
}

bool domi_wire_carries_inner_channels(const domus_wire *wire)
{
    for (uint32_t i = 0; i < wire->count; i++) {
        if (wire->stages[i].stage->carry != NULL && !wire->stages[i].passes)
            return true;
    }
    return false;
}

bool domi_wire_has_end_of_output(const domus_wire *wire)
{
    for (uint32_t i = 0; i < wire->count; i++) {
        if (wire->stages[i].stage->finish != NULL && !wire->stages[i].passes)
            return true;
    }
    return false;
}

/* Let the byte stages wrap bytes of the wire's owner, which stand in the place of those of the
 * message stage. */
static int wrap_bytes_of_owner(domus_wire *wire, domi_mark begun, int error)
{
    int result = domi_wire_end_output_of_stage(wire, wire->count - 1, begun, error);

    return result < 0 ? result : 0;
}

int domi_wire_append_bytes_of_owner(domus_wire *wire, const void *data, size_t size)
{
    if (wire->broken != 0)
        return wire->broken;
    domi_mark begun = domi_wire_begin_output_of_stage(wire, wire->count - 1);
    return wrap_bytes_of_owner(wire, begun, domi_out_append_bytes(wire->out, data, size));
}

int domi_wire_append_slice_of_owner(domus_wire *wire, domus_slice slice)
{
    if (wire->broken != 0)
        return wire->broken;
    domi_mark begun = domi_wire_begin_output_of_stage(wire, wire->count - 1);
    return wrap_bytes_of_owner(wire, begun, domi_out_append_slice(wire->out, slice));
}

int domi_wire_append_end_of_output(domus_wire *wire)
{
    if (wire->broken != 0 || wire->output_ended)
        return wire->broken;
    wire->output_ended = true;
    for (uint32_t i = wire->count; i-- > 0;) {
        domi_wire_stage *at = &wire->stages[i];
        if (!at->opened || at->passes || at->stage->finish == NULL)
            continue;
        domi_mark begun = domi_wire_begin_output_of_stage(wire, i);
        int result =
            domi_wire_end_output_of_stage(wire, i, begun, at->stage->finish(wire, at->state));
        if (result < 0)
            return wire->broken = result;
    }
    return 0;
}
