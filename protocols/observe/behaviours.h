/* Counts of each behaviour, as metrics and as JSON. */
#ifndef DOMI_PROTOCOLS_OBSERVE_BEHAVIOURS_H
#define DOMI_PROTOCOLS_OBSERVE_BEHAVIOURS_H

#include "protocols/observe/families.h"

/* The behaviours at each place where actors run. */
typedef struct domi_places {
    uint32_t threads;
    uint32_t count;
    struct domi_place *each;
} domi_places;

/* Read them. Returns 0; -ENOMEM. Give them back by domi_places_fini(). */
int domi_places_init(domus_system *system, domi_places *ret_places);
void domi_places_fini(domi_places *places);

/* Write them as metrics. */
void domi_behaviours_write_metrics(domi_metrics *to, const domi_places *places);

/* Write an array with an object for each thread or pool and name; foreign threads and detached
 * actors have "thread": "outside". */
void domi_behaviours_write_json(domus_appender *json, const domi_places *places);

#endif
