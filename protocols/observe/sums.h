/* The counts of each behaviour, summed over all threads, pools and the outside, for /live. */
#ifndef DOMI_PROTOCOLS_OBSERVE_SUMS_H
#define DOMI_PROTOCOLS_OBSERVE_SUMS_H

#include <domus/domus.h>

/* Behaviours in a sample of /live, at most. If more have changed, the ones with the most time are
 * shown. */
#define DOMI_SUMS_SHOWN 100u

typedef struct domi_sums {
    uint32_t count;
    domus_behaviour_profile *each;
} domi_sums;

/* Read the sums of all behaviours of a system. Returns 0; -ENOMEM. domi_sums_free_behaviours()
 * frees them. */
int domi_sums_read_behaviours(domus_system *system, domi_sums *ret_sums);
void domi_sums_free_behaviours(domi_sums *sums);

/* Write an array of the sums that differ from `before`, or of all if that is NULL: ["name",
 * "state", runs, run_ns, messages, waits, wait_ns, failures, alive, bytes]. */
void domi_sums_write_changed_json(domus_appender *json, const domi_sums *sums,
                                  const domi_sums *before);

#endif
