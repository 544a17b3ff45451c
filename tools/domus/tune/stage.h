/* One stage of a search: the values of one key, in rounds; see tools/domus/tune/search.h. */
#ifndef DOMUS_TOOL_TUNE_STAGE_H
#define DOMUS_TOOL_TUNE_STAGE_H

#include "tools/domus/tune/search.h"

/* Begin the stage of search->key with its first round. */
void tune_stage_begin(tune_search *search);

/* Take all outcomes of a round in, and begin the next one. Returns whether the stage goes on. */
bool tune_stage_end_round(tune_search *search);

/* Let the best of the stage be part of search->best. Sets search->verdict, if the base has failed.
 * Returns whether the one that was chosen breaks the bounds. */
bool tune_stage_end(tune_search *search);

/* Returns the best rival so far. */
const tune_rival *tune_stage_best(const tune_search *search);

/* Returns the logarithm of the ratio to the base that chance gives in no more than 5 of 100 cases,
 * behind the rounds so far; INFINITY: that is not known yet. */
double tune_stage_noise(const tune_search *search);

#endif
