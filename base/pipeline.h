/* The table of a pipeline (domus/pipeline.h): its stages are counted, and it is checked when an
 * actor that uses it is made. Any thread. */
#ifndef DOMI_BASE_PIPELINE_H
#define DOMI_BASE_PIPELINE_H

#include <domus/actor.h>
#include <domus/pipeline.h>

/* Returns how many stages a pipeline has, at most DOMUS_STAGES_MAX + 1. */
uint32_t domi_pipeline_count_stages(const domus_pipeline *pipeline);

/* Returns how many stages a listener puts in front of the pipelines of its connections
 * (domus_serve_options), at most DOMUS_FRONT_MAX + 1. `front` may be NULL: none. */
uint32_t domi_front_count_stages(const domus_pipeline_stage *front);

/* Check the stages that a listener puts in front of pipelines, for the behaviour that serves it.
 * Returns 0, -EINVAL (also if there are such stages and the behaviour's channels have no pipeline),
 * or the error that `check` of a stage returned. */
int domi_front_check_stages(const domus_pipeline_stage *front, const domus_behaviour *behaviour);

/* Returns whether a stage of the pipeline may lend inner channels for asks (domus/lend.h). */
bool domi_pipeline_may_lend(const domus_pipeline *pipeline);

/* Check a pipeline before it is used. Returns 0, -EINVAL, or the error that `check` of a stage
 * returned. */
int domi_pipeline_check(const domus_pipeline *pipeline);

#endif
