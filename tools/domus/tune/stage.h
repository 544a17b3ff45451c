/* One stage of a search: tries the values of one key, in rounds (tools/domus/tune/search.h). */
#ifndef DOMUS_TOOL_TUNE_STAGE_H
#define DOMUS_TOOL_TUNE_STAGE_H

#include "tools/domus/tune/search.h"

/* Begin the stage of search->key with its first round. */
void tune_stage_begin(tune_search *search);

/* Record all outcomes of a round, and begin the next one. Returns whether the stage continues. */
bool tune_stage_end_round(tune_search *search);

/* End the stage, and put its best value into search->best. Sets search->verdict if the base has
 * failed. Returns whether the chosen value breaks the bounds. */
bool tune_stage_end(tune_search *search);

/* Returns the best rival so far. */
const tune_rival *tune_stage_best(const tune_search *search);

/* Returns the logarithm of the ratio to the base that occurs by chance in at most 5 of 100 cases
 * after the rounds so far; INFINITY if it is unknown. */
double tune_stage_noise(const tune_search *search);

#endif
