/* Fuzzes the stage of packets with a length before them. The first byte of an input is the form of
 * the length, the second one the limit of a packet's size. */
#include "tests/fuzz/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const domus_length_options options = {
        .role = DOMUS_ROLE_CLIENT,
        .width = (uint8_t)(1u << data[0] % 4),
        .little_endian = (data[0] & 4) != 0,
        .counts_itself = (data[0] & 8) != 0,
        .size_max = domt_fuzz_limit_of_choice(data[1], 65528),
    };
    const domus_pipeline_stage stages[] = {{&domus_length_stage, &options}, {NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages};

    domt_fuzz_check_same_packets_in_pieces(&pipeline, data + 2, size - 2);
    return 0;
}
