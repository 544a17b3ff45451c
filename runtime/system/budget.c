/* The arithmetic of budgets; budget.h says what each function is for. All sums avoid overflow and
 * never go below 0. */
#include "runtime/system/budget.h"

#include <domus/memory.h>

#define MIB   (1024 * 1024)     /* bytes in a MiB */
#define MS_NS UINT64_C(1000000) /* nanoseconds in a millisecond */
/* bytes: if the way to the next mark of memory is shorter, it counts as this long */
#define WAY_LEAST MIB
/* shortest time between two looks at memory while it does not grow, some eighty times as long as a
 * look takes */
#define CALM_LEAST_NS (4 * MS_NS)
#define LEAST_SHARE   8 /* a budget of the library is at least the limit divided by this */

static uint64_t percent_of_bytes(uint64_t bytes, uint32_t percent)
{
    return bytes / 100 * percent + bytes % 100 * percent / 100;
}

static uint64_t larger_of_bytes(uint64_t bytes, uint64_t least)
{
    return bytes > least ? bytes : least;
}

domi_marks domi_memory_marks_of_limit(uint64_t limit, uint32_t high_percent,
                                      uint32_t critical_percent)
{
    return (domi_marks){
        .high = percent_of_bytes(limit, high_percent),
        .critical = percent_of_bytes(limit, critical_percent),
    };
}

domi_budget domi_budget_of_used_memory(const domi_usage *usage, int64_t held, domi_marks marks)
{
    uint64_t counted = held > 0 ? (uint64_t)held : 0;
    uint64_t own = counted < usage->used ? counted : usage->used;
    uint64_t foreign = usage->used - own;
    uint64_t least = usage->limit / LEAST_SHARE;

    return (domi_budget){
        .own = own,
        .foreign = foreign,
        .marks = {larger_of_bytes(domi_bytes_subtract_down_to_zero(marks.high, foreign), least),
                  larger_of_bytes(domi_bytes_subtract_down_to_zero(marks.critical, foreign),
                                  least)},
    };
}

uint32_t domi_memory_level_that_follows(uint32_t level, uint64_t bytes, domi_marks marks)
{
    if (bytes >= (level == DOMUS_MEMORY_CRITICAL ? domi_memory_bytes_at_end_of_level(marks.critical)
                                                 : marks.critical))
        return DOMUS_MEMORY_CRITICAL;
    if (bytes >=
        (level != DOMUS_MEMORY_NORMAL ? domi_memory_bytes_at_end_of_level(marks.high) : marks.high))
        return DOMUS_MEMORY_HIGH;
    return DOMUS_MEMORY_NORMAL;
}

/* Returns the nanoseconds until the next look while memory does not grow: if it begins to grow by 1
 * MiB in a millisecond, at most `quarter` bytes are gone by then. It is 4 ms at least. */
static uint64_t time_to_next_look_if_memory_is_calm(uint64_t quarter)
{
    return larger_of_bytes(quarter / MIB * MS_NS, CALM_LEAST_NS);
}

uint64_t domi_time_until_next_look_at_memory(uint64_t interval_ns, uint64_t way, uint64_t grown,
                                             uint64_t took_ns)
{
    uint64_t quarter = larger_of_bytes(way, WAY_LEAST) / 4;
    uint64_t after_ns = time_to_next_look_if_memory_is_calm(quarter) < interval_ns
                            ? time_to_next_look_if_memory_is_calm(quarter)
                            : interval_ns;

    if (grown == 0 || took_ns == 0)
        return after_ns;
    /* The times are computed by quotients, because a product of bytes and nanoseconds may
     * overflow. */
    uint64_t grows_ns = UINT64_MAX;
    if (grown >= quarter)
        grows_ns = took_ns / (grown / quarter);
    else if (quarter / grown <= interval_ns / took_ns)
        grows_ns = took_ns * (quarter / grown);
    return larger_of_bytes(grows_ns < after_ns ? grows_ns : after_ns, DOMI_LOOK_LEAST_NS);
}

uint64_t domi_bytes_thread_may_queue_for_peers(uint64_t budget, uint32_t percent, uint32_t threads)
{
    return larger_of_bytes(percent_of_bytes(budget, percent) / threads, DOMI_QUEUE_LEAST);
}
