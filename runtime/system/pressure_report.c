/* This file decides which shortage of memory is logged, and sees to it that each one is logged
 * once. */
#include "runtime/system/logs.h"

#include <inttypes.h>

/* The states of memory that are logged, from the best to the worst. */
enum trouble {
    NONE,
    FOREIGN, /* memory is short, but not because of what the library itself holds */
    HIGH,
    CRITICAL,
    FULL,
};

static const char *const said[] = {
    [NONE] = "is no longer short: everything goes on",
    [FOREIGN] = "is short, held by others than domus, which goes on",
    [HIGH] = "is short: nothing is let in from outside",
    [CRITICAL] = "is critical: asks and notices are refused",
    [FULL] = "is almost used up: nothing is accepted, and allocations fail",
};

/* Returns the state of memory that is to be logged next. At the mark `full` allocations fail and
 * succeed by turns, so FULL is over only when the level critical, which lies below it, is over,
 * too. */
static enum trouble get_next_state_to_log(domi_pressure *pressure, uint32_t before)
{
    uint32_t level = atomic_load_explicit(&pressure->level, memory_order_relaxed);
    uint32_t own_level = atomic_load_explicit(&pressure->own_level, memory_order_relaxed);

    if (atomic_load_explicit(&pressure->meter.full, memory_order_relaxed) != 0 ||
        (before == FULL && level == DOMUS_MEMORY_CRITICAL))
        return FULL;
    if (own_level != DOMUS_MEMORY_NORMAL)
        return own_level == DOMUS_MEMORY_CRITICAL ? CRITICAL : HIGH;
    return level != DOMUS_MEMORY_NORMAL ? FOREIGN : NONE;
}

static uint64_t read_counter_in_kib(const domi_counter *counter)
{
    return domi_counter_read(counter) / 1024;
}

/* nanoseconds without a reset of a channel after which the resets for memory are over */
#define SHED_OVER_NS UINT64_C(1000000000)

void domi_pressure_record_whether_shedding(domi_pressure *pressure, uint64_t now_ns)
{
    uint64_t count = domi_counter_read(&pressure->shared.shed);

    if (count != pressure->shed_seen) {
        pressure->shed_seen = count;
        pressure->shed_seen_ns = now_ns;
        atomic_store_explicit(&pressure->is_shedding, 1, memory_order_relaxed);
    } else if (now_ns - pressure->shed_seen_ns >= SHED_OVER_NS &&
               atomic_load_explicit(&pressure->own_level, memory_order_relaxed) ==
                   DOMUS_MEMORY_NORMAL) {
        atomic_store_explicit(&pressure->is_shedding, 0, memory_order_relaxed);
    }
}

static void report_resets_for_memory(domus_system *system, uint32_t thread)
{
    domi_pressure *pressure = &system->pressure;
    uint32_t now = atomic_load_explicit(&pressure->is_shedding, memory_order_relaxed);

    if (atomic_load_explicit(&pressure->said_shedding, memory_order_relaxed) == now)
        return;
    /* acq_rel: the thread that logs the end of the resets reads the figures of the thread that
     * logged the last end */
    if (atomic_exchange_explicit(&pressure->said_shedding, now, memory_order_acq_rel) == now)
        return;
    if (now != 0) {
        domi_log_line(system, DOMUS_LOG_WARNING, thread,
                      "connections are reset for want of memory: their peers take nothing of what "
                      "waits for them");
        return;
    }
    uint64_t count = domi_counter_read(&pressure->shared.shed);
    uint64_t bytes = domi_counter_read(&pressure->shared.shed_bytes);
    domi_log_line(system, DOMUS_LOG_INFO, thread,
                  "%" PRIu64 " connections were reset for want of memory; they held %" PRIu64
                  " KiB",
                  count - pressure->shed_said, (bytes - pressure->shed_bytes_said) / 1024);
    pressure->shed_said = count;
    pressure->shed_bytes_said = bytes;
}

void domi_pressure_report_in_log(domus_system *system, uint32_t thread)
{
    domi_pressure *pressure = &system->pressure;
    uint32_t before = atomic_load_explicit(&pressure->said, memory_order_relaxed);
    enum trouble now = get_next_state_to_log(pressure, before);

    report_resets_for_memory(system, thread);
    /* Relaxed: if two threads find the state of memory changed, only the one that exchanges it logs
     * that. */
    if (before == now ||
        atomic_exchange_explicit(&pressure->said, now, memory_order_relaxed) == now)
        return;
    domi_log_line(system, now == NONE ? DOMUS_LOG_INFO : DOMUS_LOG_WARNING, thread,
                  "memory %s (%" PRIu64 " of %" PRIu64 " KiB; domus holds %" PRIu64
                  ", its budget is %" PRIu64 ")",
                  said[now], read_counter_in_kib(&pressure->used),
                  read_counter_in_kib(&pressure->limit), read_counter_in_kib(&pressure->own),
                  read_counter_in_kib(&pressure->budget));
}
