/* Changes the pipeline of a wire between two messages, and removes a stage that has nothing to do
 * any more.
 *
 * All steps that can fail are tried before anything is changed, except `open` of the new stages,
 * which can only run when the old ones are closed. A stage's state never moves, because the stage
 * may keep pointers into it. */
#include "io/wire/inner.h"
#include "io/wire/wire.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/pipeline.h"

#include <errno.h>

static bool are_rows_of_stages_equal(const domus_pipeline_stage *one,
                                     const domus_pipeline_stage *other)
{
    return one->stage == other->stage && one->options == other->options;
}

/* Returns the number of stages that stay skipped in the next pipeline (those that the outer channel
 * has): as many as now, if the next pipeline begins with them. */
static uint32_t count_skipped_stages_of_next(const domus_wire *wire, const domus_pipeline *next)
{
    for (uint32_t i = 0; i < wire->skipped; i++) {
        const domus_pipeline_stage *before = &wire->pipeline->stages[i];
        const domus_pipeline_stage *behind = &next->stages[i];
        if (!are_rows_of_stages_equal(before, behind))
            return 0;
    }
    return wire->skipped;
}

/* Returns the number of byte stages with which both the present and the next pipeline begin,
 * including the front. */
static uint32_t count_kept_byte_stages(const domus_wire *wire, const domus_pipeline *next,
                                       uint32_t skipped)
{
    uint32_t count = wire->fronts + domi_pipeline_count_stages(next) - skipped;
    uint32_t most = (count < wire->count ? count : wire->count) - 1;
    uint32_t kept = 0;

    for (; kept < most; kept++) {
        const domus_pipeline_stage *before =
            domi_wire_get_row_of_stage(wire, wire->pipeline, wire->skipped, kept);
        const domus_pipeline_stage *behind = domi_wire_get_row_of_stage(wire, next, skipped, kept);
        if (!are_rows_of_stages_equal(before, behind))
            break;
    }
    return kept;
}

/* Gather the bytes that the stages from `from` on have not used, in the order of the wire: bytes in
 * windows nearer to the messages came first. */
static int gather_unused_bytes_of_stages(const domus_wire *wire, uint32_t from, domi_window *to)
{
    uint64_t size = 0;

    for (uint32_t i = from; i < wire->count; i++) {
        if (wire->stages[i].again)
            return -EPROTO;
        size += wire->stages[i].window.size;
    }
    if (size > DOMI_WINDOW_ROOM)
        return -EMSGSIZE;
    for (uint32_t i = wire->count; i-- > from;) {
        const domi_window *window = &wire->stages[i].window;
        int error = window->size != 0
                        ? domi_window_append_bytes(to, domi_window_first_byte(window), window->size)
                        : 0;
        if (error != 0)
            return error;
    }
    return 0;
}

int domi_wire_change_pipeline(domus_wire *wire, const domus_pipeline *next)
{
    uint32_t skipped = count_skipped_stages_of_next(wire, next);
    uint32_t kept = count_kept_byte_stages(wire, next, skipped);
    uint32_t count = wire->fronts + domi_pipeline_count_stages(next) - skipped;
    domi_wire_stage *made = domi_memory_new(count * sizeof *made);
    domi_window left = {0};

    DOMI_CHECK(!wire->made.any && wire->taken == 0 && wire->failed == 0);
    int error = made == NULL ? -ENOMEM : wire->broken;
    if (error == 0)
        error = gather_unused_bytes_of_stages(wire, kept, &left);
    if (error == 0)
        error = domi_wire_make_stages(wire, next, skipped, kept, count, made);
    if (error != 0) {
        domi_window_free_memory(&left);
        domi_memory_free(made);
        return error;
    }
    for (uint32_t i = kept; i < wire->count; i++)
        domi_wire_close_stage(wire, i);
    for (uint32_t i = 0; i < kept; i++)
        made[i] = wire->stages[i];
    made[kept].window = left;
    if (wire->owns_stages)
        domi_memory_free(wire->stages);
    wire->stages = made;
    wire->owns_stages = true;
    wire->pipeline = next;
    wire->skipped = skipped;
    wire->progress = DOMI_MESSAGE_NONE;
    wire->count = count;
    return domi_wire_open_stages(wire);
}

int domi_wire_remove_leaving_stage(domus_wire *wire)
{
    domi_wire_stage *at = &wire->stages[wire->fronts];
    domi_window *next = &at[1].window;
    int error = 0;

    wire->leaves = false;
    if (next->size == 0) {
        domi_window_free_memory(next);
        *next = at->window;
        at->window = (domi_window){.memory = NULL};
    } else if (at->window.size != 0) {
        error =
            domi_window_append_bytes(next, domi_window_first_byte(&at->window), at->window.size);
    }
    if (error != 0)
        return error;
    next->need = 0;
    next->stuck = false;
    domi_wire_close_stage(wire, wire->fronts);
    wire->count--;
    wire->skipped++;
    for (uint32_t i = wire->fronts; i < wire->count; i++)
        wire->stages[i] = wire->stages[i + 1];
    wire->progress = DOMI_MESSAGE_NONE;
    if (wire->inners != NULL)
        wire->inners->note_left(wire);
    return 0;
}
