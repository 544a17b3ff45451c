/* Makes and frees the wire of a channel, and encodes what goes out. */
#include "io/wire/wire.h"

#include "base/memory.h"
#include "io/wire/wrap.h"

#include <errno.h>

#define ANSWER_TIMEOUT_MOST UINT64_C(3600000000000) /* 1 h */
#define STATE_MAX           65536u                  /* bytes of the state of a stage */

static int check_stage(const domus_pipeline_stage *entry, bool is_last)
{
    const domus_stage *stage = entry->stage;
    bool is_right = is_last ? stage->encode != NULL && stage->wrap == NULL
                            : stage->wrap != NULL && stage->encode == NULL;

    if (stage->name == NULL || stage->decode == NULL || !is_right || stage->state_size > STATE_MAX)
        return -EINVAL;
    return stage->check != NULL ? stage->check(entry->options) : 0;
}

static uint32_t count_stages(const domus_pipeline *pipeline)
{
    uint32_t count = 0;

    while (count <= DOMUS_STAGES_MAX && pipeline->stages[count].stage != NULL)
        count++;
    return count;
}

int domi_pipeline_check(const domus_pipeline *pipeline)
{
    if (pipeline->stages == NULL || pipeline->answer_timeout_ns > ANSWER_TIMEOUT_MOST)
        return -EINVAL;
    uint32_t count = count_stages(pipeline);
    if (count == 0 || count > DOMUS_STAGES_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        int error = check_stage(&pipeline->stages[i], i + 1 == count);
        if (error != 0)
            return error;
    }
    return 0;
}

domus_wire *domi_wire_new(const domus_pipeline *pipeline)
{
    uint32_t count = count_stages(pipeline);
    size_t states = 0;

    for (uint32_t i = 0; i < count; i++)
        states += (pipeline->stages[i].stage->state_size + 15u) & ~(size_t)15;
    size_t head = (sizeof(domus_wire) + count * sizeof(domi_wire_stage) + 15) & ~(size_t)15;
    domus_wire *wire = domi_memory_new(head + states);
    if (wire == NULL)
        return NULL;
    char *state = (char *)wire + head;
    wire->pipeline = pipeline;
    wire->count = count;
    for (uint32_t i = 0; i < count; i++) {
        wire->stages[i].stage = pipeline->stages[i].stage;
        wire->stages[i].state = wire->stages[i].stage->state_size != 0 ? state : NULL;
        state += (wire->stages[i].stage->state_size + 15u) & ~(size_t)15;
    }
    return wire;
}

void domi_wire_free(domus_wire *wire)
{
    if (wire == NULL)
        return;
    for (uint32_t i = 0; i < wire->count; i++) {
        domi_wire_stage *at = &wire->stages[i];
        if (at->opened && at->stage->close != NULL)
            at->stage->close(wire, at->state);
        domi_window_clear(&at->window);
    }
    if (wire->page != NULL)
        domi_page_drop(wire->page);
    domi_memory_free(wire);
}

static int open_stage(domus_wire *wire, uint32_t index)
{
    domi_wire_stage *at = &wire->stages[index];

    if (at->stage->open == NULL)
        return 0;
    domi_mark begun = domi_wire_begin_out(wire, index);
    int error = at->stage->open(wire, at->state, wire->pipeline->stages[index].options);
    return domi_wire_end_out(wire, index, begun, error);
}

int domi_wire_open(domus_wire *wire)
{
    for (uint32_t i = 0; i < wire->count; i++) {
        int error = open_stage(wire, i);
        if (error < 0)
            return error;
        wire->stages[i].opened = true;
    }
    return 0;
}

int domi_wire_encode(domus_wire *wire, uint64_t id, const domus_type *type, const void *payload)
{
    uint32_t last = wire->count - 1;
    domi_wire_stage *at = &wire->stages[last];

    if (wire->broken != 0)
        return wire->broken;
    domi_mark begun = domi_wire_begin_out(wire, last);
    int error = at->stage->encode(wire, at->state, id, type, payload);
    error = domi_wire_end_out(wire, last, begun, error);
    return error < 0 ? error : 0;
}

int domi_wire_fail(domus_wire *wire, uint64_t id, const domus_type *request, int error)
{
    uint32_t last = wire->count - 1;
    domi_wire_stage *at = &wire->stages[last];

    if (wire->broken != 0)
        return wire->broken;
    if (at->stage->fail == NULL)
        return error < 0 ? error : -EINVAL;
    domi_mark begun = domi_wire_begin_out(wire, last);
    int result = at->stage->fail(wire, at->state, id, request, error);
    result = domi_wire_end_out(wire, last, begun, result);
    return result < 0 ? result : 0;
}
