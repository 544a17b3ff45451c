/* How much of a limit the library may hold: arithmetic, and nothing else.
 *
 * What is used under a limit is the library's own memory (messages, buffers, queued bytes, slots)
 * or foreign: the application's, and that of neighbours in the same cgroup. Only its own memory can
 * the library give up, so what it does when memory is short depends on its own memory alone, which
 * is held against two budgets: what the marks `high` and `critical` of the limit leave beside the
 * foreign memory, but never less than an eighth of the limit. With less it could not go on serving
 * those who would free the foreign memory. */
#ifndef DOMI_RUNTIME_SYSTEM_BUDGET_H
#define DOMI_RUNTIME_SYSTEM_BUDGET_H

#include "runtime/os/footprint.h"

typedef struct domi_marks {
    uint64_t high;
    uint64_t critical;
} domi_marks;

typedef struct domi_budget {
    uint64_t own;     /* the library's; at most all that is used */
    uint64_t foreign; /* the rest of what is used */
    domi_marks marks; /* of `own`: the budget, and the last budget */
} domi_budget;

/* `from` less `bytes`, but never below 0. */
static inline uint64_t domi_bytes_less(uint64_t from, uint64_t bytes)
{
    return from > bytes ? from - bytes : 0;
}

/* The marks of a limit, by their percentages. */
domi_marks domi_marks_of(uint64_t limit, uint32_t high_percent, uint32_t critical_percent);

/* `held`: bytes that the library has counted as its own; they may be more than are used, because
 * pages that were never written are not. */
domi_budget domi_budget_of(const domi_usage *usage, int64_t held, domi_marks marks);

/* Where a level ends that begins at `mark`. */
static inline uint64_t domi_level_end(uint64_t mark)
{
    return mark - mark / 20;
}

/* The level that follows on `level` (a domus_memory_level) with `bytes`. A level begins at its mark
 * and ends five percent below it. */
uint32_t domi_level_next(uint32_t level, uint64_t bytes, domi_marks marks);

/* After how long to look again, at most `interval_ns` and at least DOMI_LOOK_LEAST_NS. In the
 * `took_ns` since the last look memory has grown by `grown`; if it goes on so, the next look comes
 * when a quarter of the `way` to the next mark is gone. A way of less than a MiB counts as one. */
#define DOMI_LOOK_LEAST_NS UINT64_C(1000000)
uint64_t domi_look_after(uint64_t interval_ns, uint64_t way, uint64_t grown, uint64_t took_ns);

/* The bytes that one of `threads` may have queued for its peers: its part of `percent` of the
 * budget. At least DOMI_QUEUE_LEAST. */
#define DOMI_QUEUE_LEAST UINT64_C(65536)
uint64_t domi_budget_queue(uint64_t budget, uint32_t percent, uint32_t threads);

#endif
