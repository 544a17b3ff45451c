/* The table of a pipeline is constant, so it is checked once, before the first channel that uses
 * it, and so are the stages that a listener puts in front of it. */
#include "base/pipeline.h"

#include <errno.h>

/* ns in 1 h: the largest answer_timeout_ns of a pipeline */
#define ANSWER_TIMEOUT_MOST UINT64_C(3600000000000)
#define STATE_MAX           65536u /* most bytes of the state that one stage of a pipeline has */

static int check_stage_of_pipeline(const domus_pipeline_stage *entry, bool is_last)
{
    const domus_stage *stage = entry->stage;
    bool is_right = is_last ? stage->encode != NULL && stage->wrap == NULL
                            : stage->wrap != NULL && stage->encode == NULL;

    if (stage->name == NULL || stage->decode == NULL || !is_right || stage->state_size > STATE_MAX)
        return -EINVAL;
    int error = stage->check != NULL ? stage->check(entry->options) : 0;
    return error <= 0 ? error : -EINVAL;
}

/* Count the stages of a table, but count no further than one more than a table may have. */
static uint32_t count_stages(const domus_pipeline_stage *stages, uint32_t most)
{
    uint32_t count = 0;

    while (count <= most && stages[count].stage != NULL)
        count++;
    return count;
}

uint32_t domi_pipeline_count_stages(const domus_pipeline *pipeline)
{
    return count_stages(pipeline->stages, DOMUS_STAGES_MAX);
}

uint32_t domi_front_count_stages(const domus_pipeline_stage *front)
{
    return front != NULL ? count_stages(front, DOMUS_FRONT_MAX) : 0;
}

int domi_front_check_stages(const domus_pipeline_stage *front, const domus_behaviour *behaviour)
{
    uint32_t count = domi_front_count_stages(front);
    const domus_behaviour *channel = behaviour->channel != NULL ? behaviour->channel : behaviour;

    if (count > DOMUS_FRONT_MAX || (count != 0 && channel->pipeline == NULL))
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        int error = check_stage_of_pipeline(&front[i], false);
        if (error != 0)
            return error;
    }
    return 0;
}

bool domi_pipeline_may_lend(const domus_pipeline *pipeline)
{
    for (const domus_pipeline_stage *at = pipeline->stages; at->stage != NULL; at++) {
        if (at->stage->lend != NULL)
            return true;
    }
    return false;
}

int domi_pipeline_check(const domus_pipeline *pipeline)
{
    if (pipeline->stages == NULL || pipeline->answer_timeout_ns > ANSWER_TIMEOUT_MOST)
        return -EINVAL;
    uint32_t count = domi_pipeline_count_stages(pipeline);
    if (count == 0 || count > DOMUS_STAGES_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        int error = check_stage_of_pipeline(&pipeline->stages[i], i + 1 == count);
        /* a stage whose messages have bodies needs answers in the order of the requests */
        if (error == 0 && pipeline->by_id && pipeline->stages[i].stage->has_bodies)
            error = -EINVAL;
        if (error != 0)
            return error;
    }
    return 0;
}
