/* This file reads the histograms of threads, and sets the level of the profile, which says how much
 * threads measure. */
#include "runtime/loop/observing.h"
#include "runtime/system/system.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The kinds of spans stand in the same order as their kinds of histograms, so one is reckoned from
 * the other. */
static_assert(DOMUS_HISTOGRAM_ENTER + (int)DOMI_SPAN_OTHER == (int)DOMUS_HISTOGRAM_OTHER &&
                  DOMUS_HISTOGRAM_ENTER + (int)DOMI_SPAN_STATE == (int)DOMUS_HISTOGRAM_STATE &&
                  DOMUS_HISTOGRAM_ENTER + (int)DOMI_SPAN_EVENTS == (int)DOMUS_HISTOGRAM_EVENTS &&
                  DOMUS_HISTOGRAM_ENTER + (int)DOMI_SPAN_CHANNELS == (int)DOMUS_HISTOGRAM_CHANNELS,
              "a span is found by its kind");

static const domi_histogram *get_histogram_of_kind(const domi_observing *observing,
                                                   domus_histogram_kind kind)
{
    switch (kind) {
    case DOMUS_HISTOGRAM_ITERATION:
        return &observing->iterations;
    case DOMUS_HISTOGRAM_RUN:
        return &observing->runs.runs;
    case DOMUS_HISTOGRAM_WAIT:
        return &observing->runs.waits;
    case DOMUS_HISTOGRAM_DELIVERY:
        return &observing->runs.deliveries;
    case DOMUS_HISTOGRAM_REACTION:
        return &observing->runs.reactions;
    default:
        return &observing->spans[kind - DOMUS_HISTOGRAM_ENTER];
    }
}

int domus_system_histogram(const domus_system *system, uint32_t thread, domus_histogram_kind kind,
                           domus_histogram *ret_histogram)
{
    if (thread >= system->count || (unsigned)kind >= DOMUS_HISTOGRAMS)
        return -EINVAL;
    memset(ret_histogram, 0, sizeof *ret_histogram);
    /* acquire: pairs with the release by which the thread has published its new histograms. */
    const domi_observing *observing =
        atomic_load_explicit(&system->threads[thread].observing, memory_order_acquire);
    if (observing != NULL)
        domi_histogram_add_all_to_copy(get_histogram_of_kind(observing, kind), ret_histogram);
    return 0;
}

int domus_system_answers(const domus_system *system, uint32_t thread, uint32_t index,
                         char ret_behaviour[DOMUS_BEHAVIOUR_NAME_SIZE],
                         domus_histogram *ret_histogram)
{
    if (thread >= system->count)
        return -EINVAL;
    const domi_observing *observing =
        atomic_load_explicit(&system->threads[thread].observing, memory_order_acquire);
    if (observing == NULL || index >= DOMUS_PIPELINES_MAX)
        return -ENOENT;
    /* acquire: pairs with the release by which the thread has published this entry. */
    const domi_answered *entry = atomic_load_explicit(
        (_Atomic(domi_answered *) *)(uintptr_t)&observing->runs.answers.each[index],
        memory_order_acquire);
    if (entry == NULL)
        return -ENOENT;
    snprintf(ret_behaviour, DOMUS_BEHAVIOUR_NAME_SIZE, "%s",
             entry->tally != 0 ? system->behaviours.known[entry->tally].name : "(others)");
    memset(ret_histogram, 0, sizeof *ret_histogram);
    domi_histogram_add_all_to_copy(&entry->times, ret_histogram);
    return 0;
}

int domus_system_set_profile_level(domus_system *system, domus_profile_level level)
{
    if ((unsigned)level > DOMUS_PROFILE_SPANS)
        return -EINVAL;
    /* Relaxed: the level is complete by itself, and each thread looks at it at its next tick. */
    atomic_store_explicit(&system->profile_level, level, memory_order_relaxed);
    return 0;
}

domus_profile_level domus_system_profile_level(const domus_system *system)
{
    return (domus_profile_level)atomic_load_explicit(&system->profile_level, memory_order_relaxed);
}
