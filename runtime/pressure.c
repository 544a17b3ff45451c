/* See the header. */
#include "runtime/log.h"

#include <inttypes.h>
#include <malloc.h>
#include <stddef.h>

#define STEP_MIN         (256 * 1024)
#define HEAP_TRIM_NS     UINT64_C(1000000000)
#define HEAP_TRIM_FOR_NS (10 * HEAP_TRIM_NS)

/* A level ends so much below where it begins. */
static uint64_t end_of(uint64_t mark)
{
    return mark - mark / 20;
}

static uint64_t percent_of(uint64_t limit, uint32_t percent)
{
    return limit / 100 * percent;
}

uint32_t domi_pressure_next(uint32_t level, const domi_usage *usage, uint32_t high_percent,
                            uint32_t critical_percent)
{
    uint64_t high = percent_of(usage->limit, high_percent);
    uint64_t critical = percent_of(usage->limit, critical_percent);

    if (usage->used >= (level == DOMI_PRESSURE_CRITICAL ? end_of(critical) : critical))
        return DOMI_PRESSURE_CRITICAL;
    if (usage->used >= (level != DOMI_PRESSURE_NONE ? end_of(high) : high))
        return DOMI_PRESSURE_HIGH;
    return DOMI_PRESSURE_NONE;
}

/* Halfway from critical to the limit. */
static uint64_t full_mark(const domus_system *system, uint64_t limit)
{
    return limit - (limit - percent_of(limit, system->config.memory.critical_percent)) / 2;
}

/* Halfway from critical to full: an ask that is refused needs a conversation that resumes. */
static uint64_t scarce_mark(const domus_system *system, uint64_t limit)
{
    uint64_t critical = percent_of(limit, system->config.memory.critical_percent);

    return critical + (full_mark(system, limit) - critical) / 2;
}

static uint64_t spare_of(const domi_manager *manager)
{
    return domi_counter_read(&manager->spare_bytes) + domi_counter_read(&manager->slots.free_bytes);
}

static uint64_t spare_bytes(const domus_system *system)
{
    uint64_t sum = spare_of(&system->outside);

    for (uint32_t i = 0; i < system->count; i++)
        sum += spare_of(&system->threads[i].manager);
    return sum;
}

static void keep_less(uint64_t *way, uint64_t from, uint64_t to)
{
    if (from < to && to - from < *way)
        *way = to - from;
}

/* The next look: a quarter of the way to the next mark. */
static void set_look_at(domus_system *system, const domi_usage *counted, uint64_t used)
{
    domi_pressure *pressure = &system->pressure;
    uint64_t way = counted->limit;

    keep_less(&way, counted->used, percent_of(counted->limit, system->config.memory.high_percent));
    keep_less(&way, counted->used,
              percent_of(counted->limit, system->config.memory.critical_percent));
    keep_less(&way, used, scarce_mark(system, counted->limit));
    keep_less(&way, used, full_mark(system, counted->limit));
    int64_t step = way / 4 > STEP_MIN ? (int64_t)(way / 4) : STEP_MIN;
    atomic_store_explicit(&pressure->meter.look_at,
                          atomic_load_explicit(&pressure->meter.held, memory_order_relaxed) + step,
                          memory_order_relaxed);
}

/* What may still be taken, by what is used in truth. */
typedef struct bounds {
    bool tight, scarce, full;
} bounds;

static void set_level(domi_pressure *pressure, uint32_t level, bounds now)
{
    uint32_t before = atomic_load_explicit(&pressure->level, memory_order_relaxed);
    bool was_full = atomic_load_explicit(&pressure->meter.full, memory_order_relaxed) != 0;

    if (before == DOMI_PRESSURE_NONE && level != DOMI_PRESSURE_NONE)
        domi_counter_add(&pressure->highs, 1);
    if (before != DOMI_PRESSURE_CRITICAL && level == DOMI_PRESSURE_CRITICAL)
        domi_counter_add(&pressure->criticals, 1);
    if (!was_full && now.full)
        domi_counter_add(&pressure->fulls, 1);
    /* Relaxed, all: each says all there is to know, and what is late is late by one look. */
    if (level != before)
        atomic_store_explicit(&pressure->level, level, memory_order_relaxed);
    atomic_store_explicit(&pressure->meter.tight, now.tight, memory_order_relaxed);
    atomic_store_explicit(&pressure->meter.scarce, now.scarce, memory_order_relaxed);
    atomic_store_explicit(&pressure->meter.full, now.full, memory_order_relaxed);
}

/* `wanted`: what is about to be taken. */
static void measure(domus_system *system, uint64_t wanted)
{
    domi_pressure *pressure = &system->pressure;
    const uint32_t high = system->config.memory.high_percent;
    domi_usage usage;

    if (!domi_footprint_read(&pressure->footprint, high, &usage)) {
        /* Else it would stay for ever. */
        set_level(pressure, DOMI_PRESSURE_NONE, (bounds){false, false, false});
        return;
    }
    uint64_t used = usage.used + wanted;
    uint64_t spare = spare_bytes(system);
    usage.used = used > spare ? used - spare : 0;
    domi_counter_add(&pressure->looks, 1);
    atomic_store_explicit(&pressure->used, used, memory_order_relaxed);
    atomic_store_explicit(&pressure->limit, usage.limit, memory_order_relaxed);
    uint32_t level =
        domi_pressure_next(atomic_load_explicit(&pressure->level, memory_order_relaxed), &usage,
                           high, system->config.memory.critical_percent);
    set_level(pressure, level,
              (bounds){.tight = used >= percent_of(usage.limit, high),
                       .scarce = used >= scarce_mark(system, usage.limit),
                       .full = used >= full_mark(system, usage.limit)});
    set_look_at(system, &usage, used);
}

/* acquire, and release below: who looks next sees what this one wrote. */
static bool begin(domi_pressure *pressure)
{
    return atomic_exchange_explicit(&pressure->looking, 1, memory_order_acquire) == 0;
}

static void end(domi_pressure *pressure)
{
    atomic_store_explicit(&pressure->looking, 0, memory_order_release);
}

/* domi_meter.grown: on the way of an allocation. The thread's own manager hears of it at once, so
 * that a handler that sends and sends is refused from within its loop. */
static void grown(domi_meter *meter, size_t bytes)
{
    domi_pressure *pressure =
        (domi_pressure *)(void *)((char *)meter - offsetof(domi_pressure, meter));

    bool due = atomic_load_explicit(&meter->held, memory_order_relaxed) >=
               atomic_load_explicit(&meter->look_at, memory_order_relaxed);
    if (due && begin(pressure)) {
        measure(pressure->system, bytes);
        end(pressure);
    }
    if (domi_thread_manager != NULL)
        domi_manager_look_at_pressure(domi_thread_manager);
}

void domi_pressure_look(domus_system *system)
{
    domi_pressure *pressure = &system->pressure;

    if (!begin(pressure))
        return;
    uint64_t now_ns = domi_clock_now(&system->clock);
    atomic_store_explicit(&pressure->next_ns, now_ns + system->config.memory.interval_ns,
                          memory_order_relaxed);
    domi_footprint_refresh(&pressure->footprint);
    measure(system, 0);
    /* What was freed when it was over is given back, too. */
    if (atomic_load_explicit(&pressure->level, memory_order_relaxed) != DOMI_PRESSURE_NONE)
        pressure->heap_last_ns = now_ns + HEAP_TRIM_FOR_NS;
    bool trims = now_ns < pressure->heap_last_ns && now_ns >= pressure->heap_trim_ns;
    if (trims)
        pressure->heap_trim_ns = now_ns + HEAP_TRIM_NS;
    end(pressure);
    if (trims)
        (void)malloc_trim(0); /* payloads beyond the slabs; takes milliseconds, once a second */
}

void domi_pressure_report(domus_system *system, uint32_t thread)
{
    static const char *const said[] = {
        [DOMI_PRESSURE_NONE] = "is no longer short: everything goes on",
        [DOMI_PRESSURE_HIGH] = "is short: nothing is let in from outside",
        [DOMI_PRESSURE_CRITICAL] = "is critical: asks and notices are refused",
    };
    domi_pressure *pressure = &system->pressure;
    uint32_t level = atomic_load_explicit(&pressure->level, memory_order_relaxed);

    if (atomic_load_explicit(&pressure->said, memory_order_relaxed) == level ||
        atomic_exchange_explicit(&pressure->said, level, memory_order_relaxed) == level)
        return;
    domi_log_line(system, level == DOMI_PRESSURE_NONE ? DOMUS_LOG_INFO : DOMUS_LOG_WARNING, thread,
                  "memory %s (%" PRIu64 " of %" PRIu64 " KiB)", said[level],
                  domi_counter_read(&pressure->used) / 1024,
                  domi_counter_read(&pressure->limit) / 1024);
}

void domi_pressure_tick(domus_system *system, uint32_t thread, uint64_t now_ns)
{
    /* Relaxed: two threads may both find it due; then one looks. */
    if (now_ns >= atomic_load_explicit(&system->pressure.next_ns, memory_order_relaxed))
        domi_pressure_look(system);
    domi_pressure_report(system, thread);
}

void domi_pressure_init(domus_system *system)
{
    domi_pressure *pressure = &system->pressure;

    pressure->system = system;
    pressure->root = "";
    pressure->meter.grown = grown;
    atomic_store_explicit(&pressure->meter.look_at, INT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&pressure->next_ns, UINT64_MAX, memory_order_relaxed);
}

void domi_pressure_begin(domus_system *system)
{
    domi_pressure *pressure = &system->pressure;

    if (system->simulator != NULL || !system->config.memory.enabled)
        return;
    domi_footprint_open(&pressure->footprint, pressure->root, system->config.memory.limit_bytes);
    if (pressure->footprint.count == 0)
        return;
    atomic_store_explicit(&pressure->meter.look_at, 0, memory_order_relaxed);
    atomic_store_explicit(&pressure->next_ns, 0, memory_order_relaxed);
}

void domi_pressure_end(domus_system *system)
{
    domi_pressure *pressure = &system->pressure;

    atomic_store_explicit(&pressure->meter.look_at, INT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&pressure->next_ns, UINT64_MAX, memory_order_relaxed);
    while (!begin(pressure)) /* a detached actor, or a foreign thread, may be at it */
        continue;
    set_level(pressure, DOMI_PRESSURE_NONE, (bounds){false, false, false});
    domi_footprint_close(&pressure->footprint);
    end(pressure);
}

void domus_system_memory(const domus_system *system, domus_memory *ret_memory)
{
    const domi_pressure *pressure = &system->pressure;

    *ret_memory = (domus_memory){
        .level = (domus_memory_level)atomic_load_explicit(
            (_Atomic uint32_t *)(uintptr_t)&pressure->level, memory_order_relaxed),
        .used_bytes = domi_counter_read(&pressure->used),
        .limit_bytes = domi_counter_read(&pressure->limit),
        .highs = domi_counter_read(&pressure->highs),
        .criticals = domi_counter_read(&pressure->criticals),
        .fulls = domi_counter_read(&pressure->fulls),
        .looks = domi_counter_read(&pressure->looks),
    };
}
