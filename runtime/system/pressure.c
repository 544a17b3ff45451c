/* This file measures memory, and sets the words that follow from it. pressure.h says what
 * each word means; here each look takes one reading, computes the levels and the next look,
 * and stores them. */
#include "runtime/system/pressure.h"

#include "house/family/memory_watch.h"
#include "runtime/system/budget.h"
#include "runtime/system/logs.h"
#include "runtime/system/system.h"

#include <malloc.h>
#include <stddef.h>

#define STEP_MIN     (256 * 1024)         /* the least bytes that are allocated between two looks */
#define HEAP_TRIM_NS UINT64_C(1000000000) /* time between two trims of the heap */
/* time for which the heap is trimmed after memory was short */
#define HEAP_TRIM_FOR_NS (10 * HEAP_TRIM_NS)

/* Returns the mark `full`, which is halfway from critical to the limit. */
static uint64_t get_full_mark(uint64_t limit, domi_marks marks)
{
    return limit - (limit - marks.critical) / 2;
}

/* Returns the mark `scarce`, which is halfway from critical to full. The memory above it is kept
 * for messages. */
static uint64_t get_scarce_mark(uint64_t limit, domi_marks marks)
{
    return marks.critical + (get_full_mark(limit, marks) - marks.critical) / 2;
}

/* Returns the free bytes that a manager keeps in its slabs. */
static uint64_t get_spare_bytes(const domi_manager *manager)
{
    return domi_counter_read(&manager->memory.spare_bytes) +
           domi_counter_read(&manager->births.slots.free_bytes);
}

static uint64_t sum_spare_bytes(const domus_system *system)
{
    uint64_t sum = get_spare_bytes(&system->outside);

    for (uint32_t i = 0; i < system->count; i++)
        sum += get_spare_bytes(&system->threads[i].manager);
    return sum;
}

/* Make `*way` the number of bytes from `from` up to `to`, if that is less. */
static void keep_smaller_way(uint64_t *way, uint64_t from, uint64_t to)
{
    if (from < to && to - from < *way)
        *way = to - from;
}

/* A look is one measurement: the figures that were read, and the figures computed from them. */
typedef struct look {
    uint64_t used;      /* bytes in use, including those that are about to be taken */
    uint64_t spare;     /* free bytes that the library keeps, a part of `used` */
    uint64_t limit;     /* bytes that may be in use */
    domi_marks marks;   /* the marks `high` and `critical` of the limit */
    domi_budget budget; /* the memory that the library may hold under the limit */
} look;

/* The next look is due when a quarter of the way to the next mark has been taken. Each byte that
 * the library takes brings it one byte nearer to its budgets and to the marks of the limit. */
static void set_mark_of_next_look(domi_pressure *pressure, const look *now)
{
    uint64_t all = domi_bytes_subtract(now->used, now->spare);
    uint64_t own = domi_bytes_subtract(now->budget.own, now->spare);
    uint64_t way = now->limit;

    keep_smaller_way(&way, all, now->marks.high);
    keep_smaller_way(&way, all, now->marks.critical);
    keep_smaller_way(&way, own, now->budget.marks.high);
    keep_smaller_way(&way, own, now->budget.marks.critical);
    keep_smaller_way(&way, now->used, get_scarce_mark(now->limit, now->marks));
    keep_smaller_way(&way, now->used, get_full_mark(now->limit, now->marks));
    pressure->way = way;
    int64_t step = way / 4 > STEP_MIN ? (int64_t)(way / 4) : STEP_MIN;
    atomic_store_explicit(&pressure->meter.look_at,
                          atomic_load_explicit(&pressure->meter.held, memory_order_relaxed) + step,
                          memory_order_relaxed);
}

/* Marks of all memory in use that were passed: `tight` (high), `scarce`, `full`. Each of them
 * forbids one way to allocate memory (base/memory.h). */
typedef struct doors {
    bool tight, scarce, full;
} doors;

/* All of these words are relaxed: each word is complete by itself, and a thread that reads an old
 * value acts one look later. */
static void set_word(_Atomic uint32_t *word, uint32_t value)
{
    if (atomic_load_explicit(word, memory_order_relaxed) != value)
        atomic_store_explicit(word, value, memory_order_relaxed);
}

static void set_levels(domi_pressure *pressure, uint32_t level, uint32_t own_level, doors shut)
{
    uint32_t before = atomic_load_explicit(&pressure->level, memory_order_relaxed);
    bool was_full = atomic_load_explicit(&pressure->meter.full, memory_order_relaxed) != 0;

    if (before == DOMUS_MEMORY_NORMAL && level != DOMUS_MEMORY_NORMAL)
        domi_counter_add(&pressure->highs, 1);
    if (before != DOMUS_MEMORY_CRITICAL && level == DOMUS_MEMORY_CRITICAL)
        domi_counter_add(&pressure->criticals, 1);
    if (!was_full && shut.full)
        domi_counter_add(&pressure->fulls, 1);
    bool changes = before != level ||
                   atomic_load_explicit(&pressure->own_level, memory_order_relaxed) != own_level;
    set_word(&pressure->level, level);
    set_word(&pressure->own_level, own_level);
    /* release: a thread that reads this number also reads the levels that belong to it */
    if (changes)
        atomic_fetch_add_explicit(&pressure->changes, 1, memory_order_release);
    set_word(&pressure->meter.tight, shut.tight);
    set_word(&pressure->meter.scarce, shut.scarce);
    set_word(&pressure->meter.full, shut.full);
}

/* Set all levels to normal, because memory is not measured. Otherwise the last levels would stay
 * for ever. */
static void set_levels_normal(domi_pressure *pressure)
{
    set_levels(pressure, DOMUS_MEMORY_NORMAL, DOMUS_MEMORY_NORMAL, (doors){0});
    atomic_store_explicit(&pressure->queue_max, UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&pressure->shared.excess, 0, memory_order_relaxed);
}

/* Set a counter. Relaxed: the counter guards no other data. */
static void set_counter(domi_counter *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* Returns how many bytes io has to shed (free by resetting channels) to end the level of own
 * memory. */
static int64_t get_bytes_to_shed(const look *now, uint32_t own_level)
{
    if (own_level == DOMUS_MEMORY_NORMAL)
        return 0;
    return (int64_t)domi_bytes_subtract(domi_bytes_subtract(now->budget.own, now->spare),
                                        domi_level_end_bytes(now->budget.marks.high) - 1);
}

/* Store the figures of a look where reports and threads read them. */
static void publish_figures(domus_system *system, const look *now)
{
    domi_pressure *pressure = &system->pressure;

    domi_counter_add(&pressure->looks, 1);
    set_counter(&pressure->used, now->used);
    set_counter(&pressure->limit, now->limit);
    set_counter(&pressure->own, now->budget.own);
    set_counter(&pressure->foreign, now->budget.foreign);
    set_counter(&pressure->budget, now->budget.marks.high);
    set_counter(&pressure->last_budget, now->budget.marks.critical);
    set_counter(&pressure->queue_max,
                domi_budget_queue(now->budget.marks.high, DOMI_LIVE(system, memory.queued_percent),
                                  system->count));
}

/* Measure memory, and set the levels and figures. `wanted` is how many bytes are about to be
 * allocated; the meter's `held` includes them already. */
static void measure_memory(domus_system *system, uint64_t wanted)
{
    const uint32_t high_percent = DOMI_LIVE(system, memory.high_percent);
    domi_pressure *pressure = &system->pressure;
    domi_usage usage;

    if (!domi_footprint_read(&pressure->footprint, high_percent / 2, &usage)) {
        set_levels_normal(pressure);
        return;
    }
    usage.used += wanted;
    look now = {.used = usage.used, .spare = sum_spare_bytes(system), .limit = usage.limit};
    int64_t held = atomic_load_explicit(&pressure->meter.held, memory_order_relaxed) +
                   (int64_t)usage.socket_bytes;
    now.marks =
        domi_marks_of(usage.limit, high_percent, DOMI_LIVE(system, memory.critical_percent));
    now.budget = domi_budget_of(&usage, held, now.marks);
    uint32_t level = domi_level_after(atomic_load_explicit(&pressure->level, memory_order_relaxed),
                                      domi_bytes_subtract(now.used, now.spare), now.marks);
    uint32_t own_level =
        domi_level_after(atomic_load_explicit(&pressure->own_level, memory_order_relaxed),
                         domi_bytes_subtract(now.budget.own, now.spare), now.budget.marks);
    /* At this mark slabs that are never trimmed stop growing, because they would take what messages
     * need. But foreign memory alone is not a reason to stop them. */
    bool is_scarce = now.used >= get_scarce_mark(now.limit, now.marks) &&
                     now.budget.own >= now.budget.marks.high;
    publish_figures(system, &now);
    set_word(&pressure->counts_sockets, usage.socket_bytes != 0);
    atomic_store_explicit(&pressure->shared.excess, get_bytes_to_shed(&now, own_level),
                          memory_order_relaxed);
    set_levels(pressure, level, own_level,
               (doors){.tight = now.used >= now.marks.high,
                       .scarce = is_scarce,
                       .full = now.used >= get_full_mark(now.limit, now.marks)});
    set_mark_of_next_look(pressure, &now);
}

/* acquire, and release in end_look_at_memory(): the next thread that looks sees what this one
 * wrote. */
static bool try_begin_look(domi_pressure *pressure)
{
    return atomic_exchange_explicit(&pressure->looking, 1, memory_order_acquire) == 0;
}

/* End the look. release: pairs with the next try_begin_look(). */
static void end_look_at_memory(domi_pressure *pressure)
{
    atomic_store_explicit(&pressure->looking, 0, memory_order_release);
}

/* Called in the middle of an allocation; this function is domi_meter.grown. The calling thread's
 * own manager learns of a new level at once, so a handler that sends in a loop is refused within
 * that loop. */
static void look_at_memory_while_growing(domi_meter *meter, size_t bytes)
{
    domi_pressure *pressure =
        (domi_pressure *)(void *)((char *)meter - offsetof(domi_pressure, meter));

    bool due = atomic_load_explicit(&meter->held, memory_order_relaxed) >=
               atomic_load_explicit(&meter->look_at, memory_order_relaxed);
    if (due && try_begin_look(pressure)) {
        measure_memory(pressure->system, bytes);
        end_look_at_memory(pressure);
    }
    if (domi_thread_manager != NULL)
        domi_manager_look_at_pressure(domi_thread_manager);
}

/* Set when the next look is due. Allocations of the library are counted as they happen. The
 * application's own growth is seen only by a look, and may pass all marks within one interval. So
 * the next look comes sooner while memory grows, and also while it does not, if the next mark is
 * near. */
static void set_next_look(domi_pressure *pressure, uint64_t interval_ns, uint64_t now_ns)
{
    uint64_t used = domi_counter_read(&pressure->used);
    uint64_t after_ns = domi_look_after(interval_ns, pressure->way,
                                        domi_bytes_subtract(used, pressure->looked_used),
                                        domi_bytes_subtract(now_ns, pressure->looked_ns));

    pressure->looked_ns = now_ns;
    pressure->looked_used = used;
    atomic_store_explicit(&pressure->next_ns, now_ns + after_ns, memory_order_relaxed);
}

void domi_pressure_look(domus_system *system)
{
    domi_pressure *pressure = &system->pressure;

    if (!try_begin_look(pressure))
        return;
    uint64_t now_ns = domi_clock_now(&system->clock);
    domi_footprint_refresh(&pressure->footprint);
    measure_memory(system, 0);
    set_next_look(pressure, DOMI_LIVE(system, memory.interval_ns), now_ns);
    /* The heap is trimmed for some time after the shortage, too, so that memory freed at its end is
     * given back. */
    if (atomic_load_explicit(&pressure->level, memory_order_relaxed) != DOMUS_MEMORY_NORMAL ||
        atomic_load_explicit(&pressure->meter.tight, memory_order_relaxed) != 0)
        pressure->heap_last_ns = now_ns + HEAP_TRIM_FOR_NS;
    domi_pressure_record_shed(pressure, now_ns);
    bool trims = now_ns < pressure->heap_last_ns && now_ns >= pressure->heap_trim_ns;
    if (trims)
        pressure->heap_trim_ns = now_ns + HEAP_TRIM_NS;
    end_look_at_memory(pressure);
    if (trims)
        /* this call frees the memory of payloads that were too large for slabs; it takes
         * milliseconds, and is made at most once a second */
        (void)malloc_trim(0);
}

static uint32_t read_word(const _Atomic uint32_t *word)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)word, memory_order_relaxed);
}

static domus_memory_level read_level(const _Atomic uint32_t *word)
{
    return (domus_memory_level)read_word(word);
}

/* acquire of `changes`: pairs with the release in set_levels(). So the levels that are read after
 * it are those of this change or of a later one. */
uint32_t domi_pressure_read(const domi_manager *manager, domus_memory_change *ret_change)
{
    const domi_pressure *pressure = &((const domus_system *)manager->system)->pressure;
    uint32_t number = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&pressure->changes,
                                           memory_order_acquire);

    *ret_change = (domus_memory_change){
        .level = read_level(&pressure->level),
        .own_level = read_level(&pressure->own_level),
        .limit_bytes = domi_counter_read(&pressure->limit),
        .own_bytes = domi_counter_read(&pressure->own),
        .foreign_bytes = domi_counter_read(&pressure->foreign),
    };
    return number;
}

/* Wake threads that sleep and have actors that watch memory: they would not find the change
 * themselves in time. */
static void wake_watchers(domus_system *system)
{
    domi_pressure *pressure = &system->pressure;
    uint32_t now = atomic_load_explicit(&pressure->changes, memory_order_relaxed);

    if (atomic_load_explicit(&pressure->woken_for, memory_order_relaxed) == now ||
        atomic_exchange_explicit(&pressure->woken_for, now, memory_order_relaxed) == now)
        return;
    for (uint32_t i = 0; i < system->count; i++) {
        domi_manager *manager = &system->threads[i].manager;

        /* The calls below do the same as domi_manager_notify(), but the calling thread need not
         * have a manager. */
        if (domi_memory_is_watched(manager) && manager->hooks.wake != NULL &&
            domi_park_try_notify(&manager->park))
            manager->hooks.wake(manager);
    }
}

void domi_pressure_look_if_due(domus_system *system, uint32_t thread, uint64_t now_ns)
{
    /* Relaxed: two threads may both find that a look is due; then one of them looks. */
    if (now_ns >= atomic_load_explicit(&system->pressure.next_ns, memory_order_relaxed))
        domi_pressure_look(system);
    wake_watchers(system);
    domi_pressure_report(system, thread);
}

void domi_pressure_init(domus_system *system)
{
    domi_pressure *pressure = &system->pressure;

    pressure->system = system;
    pressure->root = "";
    atomic_store_explicit(&pressure->queue_max, UINT64_MAX, memory_order_relaxed);
    pressure->meter.grown = look_at_memory_while_growing;
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
    while (!try_begin_look(pressure)) /* a detached actor or a foreign thread may be in a look */
        continue;
    set_levels_normal(pressure);
    domi_footprint_close(&pressure->footprint);
    end_look_at_memory(pressure);
}

domi_io_pressure domi_pressure_for_io(const domi_pressure *pressure)
{
    uint32_t own_level = read_word(&pressure->own_level);

    return (domi_io_pressure){
        .pauses = own_level != DOMUS_MEMORY_NORMAL || read_word(&pressure->meter.full) != 0,
        .spares = own_level == DOMUS_MEMORY_CRITICAL,
        .counts_sockets = read_word(&pressure->counts_sockets) != 0,
        .queue_max = domi_counter_read(&pressure->queue_max),
    };
}

void domus_system_memory(const domus_system *system, domus_memory *ret_memory)
{
    const domi_pressure *pressure = &system->pressure;

    *ret_memory = (domus_memory){
        .level = read_level(&pressure->level),
        .used_bytes = domi_counter_read(&pressure->used),
        .limit_bytes = domi_counter_read(&pressure->limit),
        .highs = domi_counter_read(&pressure->highs),
        .criticals = domi_counter_read(&pressure->criticals),
        .fulls = domi_counter_read(&pressure->fulls),
        .looks = domi_counter_read(&pressure->looks),
        .own_level = read_level(&pressure->own_level),
        .own_bytes = domi_counter_read(&pressure->own),
        .foreign_bytes = domi_counter_read(&pressure->foreign),
        .budget_bytes = domi_counter_read(&pressure->budget),
        .last_budget_bytes = domi_counter_read(&pressure->last_budget),
        .channels_reset = domi_counter_read(&pressure->shared.shed),
        .channels_reset_bytes = domi_counter_read(&pressure->shared.shed_bytes),
    };
}
