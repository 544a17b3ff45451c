/* The arithmetic of budgets; budget.h says what each function is for. All sums avoid overflow and
 * never go below 0. */
#include "runtime/system/budget.h"

#include <domus/memory.h>

#define MIB       (1024 * 1024)     /* bytes of a MiB */
#define MS_NS     UINT64_C(1000000) /* nanoseconds of a millisecond */
#define WAY_LEAST MIB               /* bytes; a shorter way to the next mark counts as this */
/* the shortest time between two looks while memory does not grow, some eighty times that of a look
 */
#define CALM_LEAST_NS (4 * MS_NS)
#define LEAST_SHARE   8 /* a budget is at least the limit divided by this */

static uint64_t get_percent_of_bytes(uint64_t bytes, uint32_t percent)
{
    return bytes / 100 * percent + bytes % 100 * percent / 100;
}

static uint64_t get_larger(uint64_t bytes, uint64_t least)
{
    return bytes > least ? bytes : least;
}

domi_marks domi_marks_of(uint64_t limit, uint32_t high_percent, uint32_t critical_percent)
{
    return (domi_marks){
        .high = get_percent_of_bytes(limit, high_percent),
        .critical = get_percent_of_bytes(limit, critical_percent),
    };
}

domi_budget domi_budget_of(const domi_usage *usage, int64_t held, domi_marks marks)
{
    uint64_t counted = held > 0 ? (uint64_t)held : 0;
    uint64_t own = counted < usage->used ? counted : usage->used;
    uint64_t foreign = usage->used - own;
    uint64_t least = usage->limit / LEAST_SHARE;

    return (domi_budget){
        .own = own,
        .foreign = foreign,
        .marks = {get_larger(domi_bytes_subtract(marks.high, foreign), least),
                  get_larger(domi_bytes_subtract(marks.critical, foreign), least)},
    };
}

uint32_t domi_level_after(uint32_t level, uint64_t bytes, domi_marks marks)
{
    if (bytes >=
        (level == DOMUS_MEMORY_CRITICAL ? domi_level_end_bytes(marks.critical) : marks.critical))
        return DOMUS_MEMORY_CRITICAL;
    if (bytes >= (level != DOMUS_MEMORY_NORMAL ? domi_level_end_bytes(marks.high) : marks.high))
        return DOMUS_MEMORY_HIGH;
    return DOMUS_MEMORY_NORMAL;
}

/* Returns the time until the next look while memory does not grow: it may begin to grow by 1 MiB in
 * a millisecond. */
static uint64_t get_calm_ns(uint64_t quarter)
{
    return get_larger(quarter / MIB * MS_NS, CALM_LEAST_NS);
}

uint64_t domi_look_after(uint64_t interval_ns, uint64_t way, uint64_t grown, uint64_t took_ns)
{
    uint64_t quarter = get_larger(way, WAY_LEAST) / 4;
    uint64_t after_ns = get_calm_ns(quarter) < interval_ns ? get_calm_ns(quarter) : interval_ns;

    if (grown == 0 || took_ns == 0)
        return after_ns;
    /* Quotients are used here, because a product of bytes and nanoseconds may overflow. */
    uint64_t grows_ns = UINT64_MAX;
    if (grown >= quarter)
        grows_ns = took_ns / (grown / quarter);
    else if (quarter / grown <= interval_ns / took_ns)
        grows_ns = took_ns * (quarter / grown);
    return get_larger(grows_ns < after_ns ? grows_ns : after_ns, DOMI_LOOK_LEAST_NS);
}

uint64_t domi_budget_queue(uint64_t budget, uint32_t percent, uint32_t threads)
{
    return get_larger(get_percent_of_bytes(budget, percent) / threads, DOMI_QUEUE_LEAST);
}
