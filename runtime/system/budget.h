/* These functions compute how much of a limit the library may hold. They are arithmetic and nothing
 * else.
 *
 * The memory that is used under a limit is either the library's own (messages, buffers, queued
 * bytes, slots) or foreign: the application's, and that of neighbours in the same cgroup. The
 * library can give up its own memory only. So what it does when memory is short depends on its own
 * memory alone, which it compares with two budgets. These are the marks `high` and `critical` of
 * the limit, minus the foreign memory, but never less than an eighth of the limit. With less, the
 * library could not serve the requests that make the application free its memory. */
#ifndef DOMI_RUNTIME_SYSTEM_BUDGET_H
#define DOMI_RUNTIME_SYSTEM_BUDGET_H

#include "runtime/os/footprint.h"

typedef struct domi_marks {
    uint64_t high;     /* bytes of used memory from which on memory is high */
    uint64_t critical; /* bytes of used memory from which on memory is critical */
} domi_marks;

typedef struct domi_budget {
    uint64_t own;     /* own bytes of the library; at most all used bytes */
    uint64_t foreign; /* used bytes that are not the library's own */
    /* marks of the library's own memory: `high` is the budget, `critical` the last budget */
    domi_marks marks;
} domi_budget;

/* Returns a number of bytes: `from` minus `bytes`, but never less than 0. */
static inline uint64_t domi_bytes_subtract_down_to_zero(uint64_t from, uint64_t bytes)
{
    return from > bytes ? from - bytes : 0;
}

/* Returns the marks `high` and `critical` of a limit, which are given percentages of it. */
domi_marks domi_memory_marks_of_limit(uint64_t limit, uint32_t high_percent,
                                      uint32_t critical_percent);

/* Divide the used memory into own and foreign memory, and compute the two budgets. `held` is how
 * many bytes the library has counted as its own; this may be more than is used, because pages that
 * were never written do not count as used. */
domi_budget domi_budget_of_used_memory(const domi_usage *usage, int64_t held, domi_marks marks);

/* Returns how many bytes of used memory a level needs to go on that has begun at `mark` bytes: with
 * five percent less than the mark it ends. */
static inline uint64_t domi_memory_bytes_at_end_of_level(uint64_t mark)
{
    return mark - mark / 20;
}

/* Returns the level of memory (a domus_memory_level) that follows `level` if `bytes` are used. A
 * level begins at its mark and ends five percent below it. */
uint32_t domi_memory_level_that_follows(uint32_t level, uint64_t bytes, domi_marks marks);

/* Returns the nanoseconds until the next look at memory, at most `interval_ns` and at least
 * DOMI_LOOK_LEAST_NS. Memory has grown by `grown` bytes in the `took_ns` since the last look; if it
 * goes on so, the next look comes when a quarter of the `way` to the next mark is gone. A way of
 * less than 1 MiB counts as one.
 *
 * Memory that has not grown may begin to, by 1 MiB in a millisecond: a program that waited for a
 * client goes on, or a thread that slept wakes up. The next look comes before a quarter of the way
 * can be gone like that, but not sooner than in 4 ms for this reason alone. */
#define DOMI_LOOK_LEAST_NS UINT64_C(1000000)
uint64_t domi_time_until_next_look_at_memory(uint64_t interval_ns, uint64_t way, uint64_t grown,
                                             uint64_t took_ns);

/* Returns how many bytes one of `threads` threads may have queued for its peers: an equal part of
 * `percent` of the budget, but at least DOMI_QUEUE_LEAST. */
#define DOMI_QUEUE_LEAST UINT64_C(65536)
uint64_t domi_bytes_thread_may_queue_for_peers(uint64_t budget, uint32_t percent, uint32_t threads);

#endif
