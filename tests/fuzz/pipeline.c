/* Fuzzes pipelines of several stages, whose byte stages change sizes and hold a state. The first
 * byte of an input chooses up to three byte stages, one of which may keep back some output, the
 * second byte the message stage and its limit. */
#include "tests/fuzz/support/fuzz.h"
#include "tests/support/stages.h"

static const domus_stage *const byte_stages[] = {NULL, &domt_stuff_stage, &domt_xor_stage,
                                                 &domt_sip_stage};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    domus_pipeline_stage stages[DOMUS_STAGES_MAX + 1] = {{NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages};
    uint32_t count = 0;

    if (size < 2)
        return 0;
    const domus_line_options line = {.role = DOMUS_ROLE_SERVER,
                                     .size_max = domt_fuzz_limit_of_choice(data[1] >> 2, 65534)};
    const domus_length_options length = {.role = DOMUS_ROLE_SERVER,
                                         .width = 2,
                                         .size_max =
                                             domt_fuzz_limit_of_choice(data[1] >> 2, 65528)};
    const domus_fixed_options fixed = {.role = DOMUS_ROLE_SERVER, .size = (data[1] >> 2) + 1u};
    for (int i = 0; i < 3; i++) {
        const domus_stage *stage = byte_stages[data[0] >> (2 * i) & 3];
        if (i == 2 - (data[0] >> 7) && (data[0] & 0x40) != 0)
            stage = &domt_swell_stage;
        if (stage != NULL)
            stages[count++] = (domus_pipeline_stage){stage, NULL};
    }
    switch (data[1] & 3) {
    case 0:
        stages[count] = (domus_pipeline_stage){&domus_length_stage, &length};
        break;
    case 1:
        stages[count] = (domus_pipeline_stage){&domus_fixed_stage, &fixed};
        break;
    default:
        stages[count] = (domus_pipeline_stage){&domus_line_stage, &line};
        break;
    }
    domt_fuzz_check_same_packets_in_pieces(&pipeline, data + 2, size - 2);
    return 0;
}
