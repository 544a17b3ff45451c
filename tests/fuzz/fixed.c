/* Fuzzes the stage of packets of one size. The first two bytes of an input are the size less 1. */
#include "tests/fuzz/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const domus_fixed_options options = {
        .role = DOMUS_ROLE_SERVER,
        .size = ((uint32_t)data[1] << 8 | data[0]) + 1,
    };
    const domus_pipeline_stage stages[] = {{&domus_fixed_stage, &options}, {NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages};

    domt_fuzz_check_same_packets_in_pieces(&pipeline, data + 2, size - 2);
    return 0;
}
