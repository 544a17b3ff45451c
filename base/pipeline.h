/* The table of a pipeline (domus/pipeline.h): its stages are counted, and it is checked when an
 * actor that uses it is made. Any thread. */
#ifndef DOMI_BASE_PIPELINE_H
#define DOMI_BASE_PIPELINE_H

#include <domus/pipeline.h>

/* Returns how many stages a pipeline has, at most DOMUS_STAGES_MAX + 1. */
uint32_t domi_pipeline_count(const domus_pipeline *pipeline);

/* Check a pipeline before it is used. Returns 0; -EINVAL; what `check` of a stage returned. */
int domi_pipeline_check(const domus_pipeline *pipeline);

#endif
