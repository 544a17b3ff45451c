/* Counts as the observation port writes them: as metrics and as JSON. */
#ifndef DOMI_PROTOCOLS_OBSERVE_WRITERS_H
#define DOMI_PROTOCOLS_OBSERVE_WRITERS_H

#include "protocols/observe/families.h"

/* ---- behaviours.c -----------------------------------------------------------------------------*/

/* Counts of each behaviour, as metrics and as JSON. */

/* The counts of all behaviours, by the places where actors run (threads, pools, the outside). */
typedef struct domi_places {
    uint32_t threads;
    uint32_t count;
    struct domi_place *each;
} domi_places;

/* Read the counts of all behaviours at all places. Returns 0; -ENOMEM.
 * domi_places_free_behaviours() frees them. */
int domi_places_read_behaviours(domus_system *system, domi_places *ret_places);
void domi_places_free_behaviours(domi_places *places);

/* Write the counts of behaviours as metrics. */
void domi_behaviours_write_metrics(domi_metrics *to, const domi_places *places);

/* Write the counts of behaviours as a JSON array with an object for each place and name. Foreign
 * threads and detached actors have "thread": "outside". */
void domi_behaviours_write_json(domus_appender *json, const domi_places *places);

/* ---- histograms.c -----------------------------------------------------------------------------*/

/* Histograms of the threads, as metrics and as JSON. */

/* Which kinds of histograms a viewer wants: no kind, all kinds, or the number of one kind. */
#define DOMI_HISTOGRAMS_NONE (-1)
#define DOMI_HISTOGRAMS_ALL  DOMUS_HISTOGRAMS

/* Read from a query's `histograms` which kinds of histograms are wanted: 1 for all, or the name of
 * a kind; without it none. Returns 0; -EINVAL. */
int domi_histograms_read_kinds_from_query(domus_slice query, int *ret_kinds);

/* Write the kinds of histograms that any thread has measured, as classic histograms of
 * Prometheus. */
void domi_histograms_write_metrics(domi_metrics *to, const domus_system *system);

/* Write the histograms of a thread: {"iteration": {"count": 1, "sum_ns": 1, "max_ns": 1, "buckets":
 * [[2, 1]]}, ...}. For each place that counts times, "buckets" has the end of the place, which
 * exceeds its times, and their count. max_ns is the longest time of the last such place. */
void domi_histograms_write_json(domus_appender *json, const domus_system *system, uint32_t thread,
                                int kinds);

/* Write the times of answers as [["visitor", {"count": 1, ...}], ...]: for each pipeline of a
 * thread the behaviour of its channels, and the histogram of how long its answers took. */
void domi_answer_times_write_json(domus_appender *json, const domus_system *system,
                                  uint32_t thread);

/* ---- listeners.c ------------------------------------------------------------------------------*/

/* Counts of the listeners of the observed system, as metrics and as JSON. */

/* Write a family of metrics for each count, with the label `listener`: the listener's name, or
 * "(actors)" for those that actors have made. */
void domi_listeners_write_metrics(domi_metrics *to, const domus_system *system);

/* Write the counts of listeners as JSON: [{"listener": "127.0.0.1:7005", "name": "web", "accepted":
 * 1, ...}, ...]. */
void domi_listeners_write_json(domus_appender *json, const domus_system *system);

/* ---- pairs.c ----------------------------------------------------------------------------------*/

/* Pairs of threads, of which the first has run actors of the second, as metrics and as JSON. */

/* Pairs of threads in a text, at most: all pairs of 64 threads. Further pairs are left out. */
#define DOMI_PAIRS_MAX 4032u

/* Write a family of metrics for steals and one for stand-ins of pairs of threads, if there are any
 * pairs. If there is no memory, both are left out. */
void domi_thread_pairs_write_metrics(domi_metrics *to, const domus_system *system);

/* Write the pairs of threads as a JSON list. */
void domi_thread_pairs_write_json(domus_appender *json, const domus_system *system);

#endif
