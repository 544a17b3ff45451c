/* Wraps the bytes that a stage appends: the byte stages before it wrap them, one after the other,
 * the nearest to the wire last.
 *
 * Bytes that have to be wrapped are gathered in `aside`. Each stage reads one block and appends to
 * another; only the first stage of the pipeline appends to the block of the owner. So nothing is
 * wrapped, and no state of a byte stage changes, before the stage that appended has succeeded. */
#include "io/wire/wrap.h"

/* Let the stage at `index` wrap `size` bytes, in pieces that fit into its window at the peer. */
static int wrap_bytes_by_stage(domus_wire *wire, uint32_t index, const char *bytes, size_t size)
{
    const domi_wire_stage *at = &wire->stages[index];

    while (size != 0) {
        size_t part = size < DOMUS_WINDOW_MAX ? size : DOMUS_WINDOW_MAX;
        int error = at->stage->wrap(wire, at->state, bytes, part);
        if (error < 0)
            return error;
        bytes += part;
        size -= part;
    }
    return 0;
}

/* Let the stage at `index` wrap all bytes and slices of the output `from`, in their order, into the
 * output `to`. */
static int wrap_output_by_stage(domus_wire *wire, uint32_t index, const domi_out *from,
                                domi_out *to)
{
    domi_out_cursor cursor = {0};
    domi_out_part part;
    int error = 0;

    wire->current = index;
    wire->out = to;
    while (error == 0 && domi_out_get_next_part(from, &cursor, &part))
        error = wrap_bytes_by_stage(wire, index, part.bytes, part.size);
    return error;
}

/* Let the stages before the one at `index` wrap the contents of `aside`, into `out`. A stage that
 * has left the pipeline, which is never the first, wraps nothing. */
static int wrap_aside_output_by_stages_before(domus_wire *wire, uint32_t index, domi_out *out)
{
    domi_out between = {0};
    domi_out *from = wire->aside;
    domi_out *other = &between;
    int error = 0;

    while (error == 0 && index-- > 0) {
        if (wire->stages[index].passes)
            continue;
        domi_out *to = index == 0 ? out : other;
        error = wrap_output_by_stage(wire, index, from, to);
        domi_out_remove_all(from, false);
        other = from;
        from = to;
    }
    domi_out_remove_all(&between, true);
    return error;
}

int domi_wire_wrap_and_append(domus_wire *wire, uint32_t index, domi_mark begun, int result)
{
    if (index != 0 && !wire->plain) {
        int error = result < 0 ? 0 : wrap_aside_output_by_stages_before(wire, index, begun.out);
        domi_out_remove_all(wire->aside, false);
        wire->out = begun.out;
        if (error != 0)
            wire->broken = result = error;
    }
    wire->plain = false;
    if (result < 0)
        domi_out_cut_back(begun.out, begun.size, begun.pieces);
    return result;
}
