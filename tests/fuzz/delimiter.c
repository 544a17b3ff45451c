/* Fuzzes the stage of delimited packets. The first byte of an input is the delimiter, the second
 * one the limit of a packet's size. */
#include "tests/fuzz/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const domus_delimiter_options options = {
        .role = DOMUS_ROLE_PEER,
        .delimiter = (char)data[0],
        .size_max = domt_fuzz_limit_of_choice(data[1], 65535),
    };
    const domus_pipeline_stage stages[] = {{&domus_delimiter_stage, &options}, {NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages};

    domt_fuzz_check_same_packets_in_pieces(&pipeline, data + 2, size - 2);
    return 0;
}
