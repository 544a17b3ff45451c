/* Counts as the observation port writes them: as metrics and as JSON. */
#ifndef DOMI_PROTOCOLS_OBSERVE_WRITERS_H
#define DOMI_PROTOCOLS_OBSERVE_WRITERS_H

#include "protocols/observe/families.h"

/* ---- behaviours.c -----------------------------------------------------------------------------*/

/* Counts of each behaviour, as metrics and as JSON. */

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

/* ---- histograms.c -----------------------------------------------------------------------------*/

/* Histograms of the threads, as metrics and as JSON. */

/* Which kinds a viewer wants: no kind, one kind, or all. */
#define DOMI_HISTOGRAMS_NONE (-1)
#define DOMI_HISTOGRAMS_ALL  DOMUS_HISTOGRAMS

/* Read `?histograms=` from a query: 1, or the name of a kind; without it no kinds are wanted.
 * Returns 0; -EINVAL. */
int domi_histograms_read(domus_slice query, int *ret_kinds);

/* Write the kinds that any thread has measured, as classic histograms of Prometheus. */
void domi_histograms_write_metrics(domi_metrics *to, const domus_system *system);

/* Write the histograms of a thread: {"iteration": {"count": 1, "sum_ns": 1, "max_ns": 1, "buckets":
 * [[2, 1]]}, ...}. For each place that counts times, "buckets" has the end of the place, which
 * exceeds its times, and their count. max_ns is the longest time of the last such place. */
void domi_histograms_write_json(domus_appender *json, const domus_system *system, uint32_t thread,
                                int kinds);

/* Write the times of answers as [["visitor", {"count": 1, ...}], ...]: for each pipeline of a
 * thread the behaviour of its channels, and the histogram of how long its answers took. */
void domi_answers_write_json(domus_appender *json, const domus_system *system, uint32_t thread);

/* ---- listeners.c ------------------------------------------------------------------------------*/

/* Counts of the listeners of the observed system, as metrics and as JSON. */

/* Write a family of metrics for each count, with the label `listener`: the listener's name, or
 * "(actors)" for those that actors have made. */
void domi_listeners_write_metrics(domi_metrics *to, const domus_system *system);

/* Write the listeners as JSON: [{"listener": "127.0.0.1:7005", "name": "web", "accepted": 1, ...},
 * ...]. */
void domi_listeners_write_json(domus_appender *json, const domus_system *system);

/* ---- pairs.c ----------------------------------------------------------------------------------*/

/* Pairs of threads, of which the first has run actors of the second, as metrics and as JSON. */

/* Pairs of a text, at most: all pairs of 64 threads. Further ones are left out. */
#define DOMI_PAIRS_MAX 4032u

/* Write a family of metrics for steals and one for stand-ins, if there are any pairs. Without
 * memory both are left out. */
void domi_pairs_write_metrics(domi_metrics *to, const domus_system *system);

/* Write the pairs as a JSON list. */
void domi_pairs_write_json(domus_appender *json, const domus_system *system);

#endif
