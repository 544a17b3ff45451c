/* The kit of domus/stage_kit.h, by which tests call stages, and the inner channels that it may have
 * (domus/inner_kit.h). One thread at a time. */
#ifndef DOMI_IO_WIRE_KIT_H
#define DOMI_IO_WIRE_KIT_H

#include "io/wire/wire.h"

#include <domus/inner_kit.h>

struct domus_stage_kit {
    domus_wire *wire;
    domi_out out;
    domi_out aside;
    /* delay of the last domus_wire_wake() of a stage in the kit, in nanoseconds */
    uint64_t wake_ns;
    bool last;   /* a stage of the kit has called domus_wire_last() */
    bool drains; /* the test has called domus_stage_kit_drain() */
    char *fed;   /* the bytes that the test has fed to the kit, in a block of exactly their size */
    const char *left;
    size_t left_size;
    char *joined;  /* the output of the kit's stages in one piece; NULL: nobody has asked for it */
    void *payload; /* the payload of the last message that the kit's stages have made */
    const domus_type *type;
    struct domi_kit_inners *inners; /* the inner channels of the kit; NULL: it has none */
};

/* Free the inner channels of a kit whose stages are closed (kit_inner.c). */
void domi_kit_free_inner_channels(domus_stage_kit *kit);

/* Make the stages of the kit due to be called, because they have to be told of something besides
 * news of inner channels. */
void domi_kit_schedule_carrying_stages(const domus_stage_kit *kit);

#endif
