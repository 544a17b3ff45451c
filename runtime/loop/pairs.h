/* Counts of the houses that a thread has run for each other thread: those that it stole, and those
 * that it ran in the place of a sleeper. */
#ifndef DOMI_RUNTIME_LOOP_PAIRS_H
#define DOMI_RUNTIME_LOOP_PAIRS_H

#include "runtime/system/thread.h"

typedef struct domi_pair_counters {
    domi_counter steals;
    domi_counter stand_ins;
} domi_pair_counters;

/* Count that the thread is about to run a house of the thread `victim`. Only the thief counts, so
 * two thieves of one victim write to memory of their own. */
void domi_pairs_count_run(domi_thread *thief, uint32_t victim, bool stands_in);

/* Free the counts of a thread that has ended. */
void domi_pairs_free(domi_thread *thread);

#endif
