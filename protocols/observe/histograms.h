/* Histograms of the threads, as metrics and as JSON. */
#ifndef DOMI_PROTOCOLS_OBSERVE_HISTOGRAMS_H
#define DOMI_PROTOCOLS_OBSERVE_HISTOGRAMS_H

#include "protocols/observe/families.h"

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

#endif
