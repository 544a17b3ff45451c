/* Fuzzes the stage of lines. The first byte of an input chooses the role and the kind of line end,
 * the second one the limit of a line. */
#include "tests/fuzz/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const domus_line_options options = {
        .role = (domus_role)(data[0] % 3),
        .crlf = (data[0] & 0x80) != 0,
        .size_max = domt_fuzz_limit_of_choice(data[1], 65534),
    };
    const domus_pipeline_stage stages[] = {{&domus_line_stage, &options}, {NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages};

    domt_fuzz_check_same_packets_in_pieces(&pipeline, data + 2, size - 2);
    return 0;
}
