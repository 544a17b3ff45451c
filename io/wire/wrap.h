/* The output of a stage: bytes of the stage next to the wire go to the block of the owner; bytes of
 * the others are gathered beside it and wrapped by the stages before them. */
#ifndef DOMI_IO_WIRE_WRAP_H
#define DOMI_IO_WIRE_WRAP_H

#include "io/wire/state.h"

/* A place in an output, to which the output is cut back if a stage fails. */
typedef struct domi_mark {
    domi_out *out;
    uint32_t size, pieces;
} domi_mark;

/* Prepare a call of the stage at `index`: the bytes that it appends go to `out`, or to `aside` if
 * they have to be wrapped. */
static inline domi_mark domi_wire_begin_output_of_stage(domus_wire *wire, uint32_t index)
{
    domi_mark begun = {wire->out, wire->out->size, wire->out->pieces_count};

    wire->current = index;
    if (index != 0 && !wire->plain)
        wire->out = wire->aside;
    return begun;
}

/* Let the stages before the one at `index` wrap the bytes that it appended, or drop these bytes if
 * its `result` is an error. Returns `result`, or the error of a stage that wraps. */
int domi_wire_wrap_and_append(domus_wire *wire, uint32_t index, domi_mark begun, int result);

static inline int domi_wire_end_output_of_stage(domus_wire *wire, uint32_t index, domi_mark begun,
                                                int result)
{
    return index == 0 && result >= 0 ? result
                                     : domi_wire_wrap_and_append(wire, index, begun, result);
}

#endif
