/* Counts which threads' houses a thread has run. The counters lie in memory that a thread takes
 * when it first steals, so a thread that never steals has none. */
#include "runtime/loop/pairs.h"

#include "base/memory.h"

/* Make a thread's counters of the houses that it runs for others. Returns NULL if there is no
 * memory; the next loan tries again. */
static domi_pair_counters *make_pair_counters(domi_thread *thief)
{
    domi_pair_counters *pairs = domi_memory_new(thief->manager.threads * sizeof *pairs);

    /* release: a thread that reads the pointer sees the zeros in the counters. */
    if (pairs != NULL)
        atomic_store_explicit(&thief->pairs, pairs, memory_order_release);
    return pairs;
}

void domi_pairs_count_run_for_victim(domi_thread *thief, uint32_t victim, bool stands_in)
{
    /* Relaxed: only the thread itself writes the pointer to its counters. */
    domi_pair_counters *pairs = atomic_load_explicit(&thief->pairs, memory_order_relaxed);

    if (DOMI_UNLIKELY(pairs == NULL))
        pairs = make_pair_counters(thief);
    if (pairs == NULL || victim >= thief->manager.threads)
        return;
    domi_counter_add(stands_in ? &pairs[victim].stand_ins : &pairs[victim].steals, 1);
}

void domi_pairs_free_counters(domi_thread *thread)
{
    domi_memory_free(atomic_load_explicit(&thread->pairs, memory_order_relaxed));
    atomic_store_explicit(&thread->pairs, NULL, memory_order_relaxed);
}
