/* Counts of each behaviour, as metrics and as JSON. */
#ifndef DOMI_PROTOCOLS_OBSERVE_BEHAVIOURS_H
#define DOMI_PROTOCOLS_OBSERVE_BEHAVIOURS_H

#include "protocols/observe/families.h"

/* The counts of the behaviours at each place where actors run. */
typedef struct domi_places {
    uint32_t threads;
    uint32_t count;
    struct domi_place *each;
} domi_places;

/* Read the counts. Returns 0; -ENOMEM. domi_places_fini() frees them. */
int domi_places_init(domus_system *system, domi_places *ret_places);
void domi_places_fini(domi_places *places);

/* Write the counts as metrics. */
void domi_behaviours_write_metrics(domi_metrics *to, const domi_places *places);

/* Write the counts as an array with an object for each place and name; foreign threads and detached
 * actors have "thread": "outside". */
void domi_behaviours_write_json(domus_appender *json, const domi_places *places);

#endif
