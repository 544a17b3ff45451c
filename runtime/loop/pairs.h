/* Counts for each other thread how many of its houses this thread has run, stolen ones and those
 * of a sleeper for which it stood in. */
#ifndef DOMI_RUNTIME_LOOP_PAIRS_H
#define DOMI_RUNTIME_LOOP_PAIRS_H

#include "runtime/system/thread.h"

typedef struct domi_pair_counters {
    domi_counter steals;
    domi_counter stand_ins;
} domi_pair_counters;

/* Count that a thread is about to run a house of the thread `victim`, and whether it stands in
 * for that thread. Each thief has counters of its own, so two thieves of one victim write to
 * different memory. */
void domi_pairs_count_run_for_victim(domi_thread *thief, uint32_t victim, bool stands_in);

/* Free the counters of a thread that has ended. */
void domi_pairs_free_counters(domi_thread *thread);

#endif
