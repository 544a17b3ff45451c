/* This file measures memory, and sets the words of levels.h that follow from that. Each look takes
 * one reading, computes the levels and when the next look is due, and stores them; pressure.h says
 * what a look is. */
#include "runtime/system/pressure.h"

#include "house/family/memory_watch.h"
#include "runtime/system/budget.h"
#include "runtime/system/logs.h"
#include "runtime/system/system.h"

#include <malloc.h>
#include <stddef.h>

/* least bytes that the library allocates between two looks at memory */
#define STEP_MIN     (256 * 1024)
#define HEAP_TRIM_NS UINT64_C(1000000000) /* nanoseconds between two trims of the heap */
/* nanoseconds for which the heap is still trimmed after memory was short */
#define HEAP_TRIM_FOR_NS (10 * HEAP_TRIM_NS)

/* Returns the mark `full` of memory in bytes, which is halfway from critical to the limit. */
static uint64_t mark_of_full_memory(uint64_t limit, domi_marks marks)
{
    return limit - (limit - marks.critical) / 2;
}

/* Returns the mark `scarce` of memory in bytes, which is halfway from critical to full. The memory
 * above it is kept for messages. */
static uint64_t mark_of_scarce_memory(uint64_t limit, domi_marks marks)
{
    return marks.critical + (mark_of_full_memory(limit, marks) - marks.critical) / 2;
}

/* Returns how many free bytes a manager keeps in its slabs. */
static uint64_t free_bytes_in_slabs_of_manager(const domi_manager *manager)
{
    return domi_counter_read(&manager->memory.spare_bytes) +
           domi_counter_read(&manager->births.slots.free_bytes);
}

static uint64_t sum_free_bytes_in_slabs(const domus_system *system)
{
    uint64_t sum = free_bytes_in_slabs_of_manager(&system->outside);

    for (uint32_t i = 0; i < system->count; i++)
        sum += free_bytes_in_slabs_of_manager(&system->threads[i].manager);
    return sum;
}

/* Make `*way` the number of bytes from `from` up to the mark `to`, if that is less and `to` is not
 * reached. */
static void keep_shorter_way_to_mark(uint64_t *way, uint64_t from, uint64_t to)
{
    if (from < to && to - from < *way)
        *way = to - from;
}

/* One look at memory: the figures that it has read, and the figures computed from them. */
typedef struct look {
    uint64_t used;      /* bytes in use, with those that are about to be allocated */
    uint64_t spare;     /* free bytes that the library's slabs keep, a part of `used` */
    uint64_t limit;     /* limit of memory: bytes that may be in use */
    domi_marks marks;   /* marks `high` and `critical` of the limit */
    domi_budget budget; /* own and foreign memory, and how much own memory there may be */
} look;

/* Set at how many held bytes the next look is due: when a quarter of the way to the next mark has
 * been taken. Each byte that the library takes brings it one byte nearer to its budgets and to the
 * marks of the limit. */
static void set_held_bytes_at_next_look(domi_pressure *pressure, const look *now)
{
    uint64_t all = domi_bytes_subtract_down_to_zero(now->used, now->spare);
    uint64_t own = domi_bytes_subtract_down_to_zero(now->budget.own, now->spare);
    uint64_t way = now->limit;

    keep_shorter_way_to_mark(&way, all, now->marks.high);
    keep_shorter_way_to_mark(&way, all, now->marks.critical);
    keep_shorter_way_to_mark(&way, own, now->budget.marks.high);
    keep_shorter_way_to_mark(&way, own, now->budget.marks.critical);
    keep_shorter_way_to_mark(&way, now->used, mark_of_scarce_memory(now->limit, now->marks));
    keep_shorter_way_to_mark(&way, now->used, mark_of_full_memory(now->limit, now->marks));
    pressure->way = way;
    int64_t step = way / 4 > STEP_MIN ? (int64_t)(way / 4) : STEP_MIN;
    atomic_store_explicit(&pressure->meter.look_at,
                          atomic_load_explicit(&pressure->meter.held, memory_order_relaxed) + step,
                          memory_order_relaxed);
}

/* Which marks the memory in use has passed: `tight` (high), `scarce`, `full`. Each of them forbids
 * one way to allocate memory (base/memory.h). */
typedef struct doors {
    bool tight, scarce, full;
} doors;

/* Store a word of levels.h if it changes. Relaxed, as for all these words: each is complete by
 * itself, and a thread that reads an old value acts one look later. */
static void set_word_of_level_if_it_changes(_Atomic uint32_t *word, uint32_t value)
{
    if (atomic_load_explicit(word, memory_order_relaxed) != value)
        atomic_store_explicit(word, value, memory_order_relaxed);
}

static void set_levels_and_count_changes(domi_pressure *pressure, uint32_t level,
                                         uint32_t own_level, doors shut)
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
    set_word_of_level_if_it_changes(&pressure->level, level);
    set_word_of_level_if_it_changes(&pressure->own_level, own_level);
    /* release: a thread that reads the number of changes also reads the levels that belong to it */
    if (changes)
        atomic_fetch_add_explicit(&pressure->changes, 1, memory_order_release);
    set_word_of_level_if_it_changes(&pressure->meter.tight, shut.tight);
    set_word_of_level_if_it_changes(&pressure->meter.scarce, shut.scarce);
    set_word_of_level_if_it_changes(&pressure->meter.full, shut.full);
}

/* Set both levels to normal, because memory is not measured any more; otherwise the last levels
 * would stay for ever. */
static void set_memory_levels_to_normal(domi_pressure *pressure)
{
    set_levels_and_count_changes(pressure, DOMUS_MEMORY_NORMAL, DOMUS_MEMORY_NORMAL, (doors){0});
    atomic_store_explicit(&pressure->queue_max, UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&pressure->shared.excess, 0, memory_order_relaxed);
}

/* Set a counter of memory for reports. Relaxed: no other data depends on the counter. */
static void set_counter_of_memory(domi_counter *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* Returns how many bytes io has to shed (free by resetting channels) until the level of own memory
 * ends. */
static int64_t bytes_that_io_has_to_shed(const look *now, uint32_t own_level)
{
    if (own_level == DOMUS_MEMORY_NORMAL)
        return 0;
    return (int64_t)domi_bytes_subtract_down_to_zero(
        domi_bytes_subtract_down_to_zero(now->budget.own, now->spare),
        domi_memory_bytes_at_end_of_level(now->budget.marks.high) - 1);
}

/* Store the figures of a look where reports and other threads read them. */
static void publish_figures_of_look(domus_system *system, const look *now)
{
    domi_pressure *pressure = &system->pressure;

    domi_counter_add(&pressure->looks, 1);
    set_counter_of_memory(&pressure->used, now->used);
    set_counter_of_memory(&pressure->limit, now->limit);
    set_counter_of_memory(&pressure->own, now->budget.own);
    set_counter_of_memory(&pressure->foreign, now->budget.foreign);
    set_counter_of_memory(&pressure->budget, now->budget.marks.high);
    set_counter_of_memory(&pressure->last_budget, now->budget.marks.critical);
    set_counter_of_memory(
        &pressure->queue_max,
        domi_bytes_thread_may_queue_for_peers(
            now->budget.marks.high, DOMI_LIVE(system, memory.queued_percent), system->count));
}

/* Measure memory, and set the levels and figures. `wanted` is how many bytes are about to be
 * allocated; the count of held bytes has them already. */
static void measure_memory_and_set_levels(domus_system *system, uint64_t wanted)
{
    const uint32_t high_percent = DOMI_LIVE(system, memory.high_percent);
    domi_pressure *pressure = &system->pressure;
    domi_usage usage;

    if (!domi_footprint_read_fullest_gauge(&pressure->footprint, high_percent / 2, &usage)) {
        set_memory_levels_to_normal(pressure);
        return;
    }
    usage.used += wanted;
    look now = {.used = usage.used, .spare = sum_free_bytes_in_slabs(system), .limit = usage.limit};
    int64_t held = atomic_load_explicit(&pressure->meter.held, memory_order_relaxed) +
                   (int64_t)usage.socket_bytes;
    now.marks = domi_memory_marks_of_limit(usage.limit, high_percent,
                                           DOMI_LIVE(system, memory.critical_percent));
    now.budget = domi_budget_of_used_memory(&usage, held, now.marks);
    uint32_t level = domi_memory_level_that_follows(
        atomic_load_explicit(&pressure->level, memory_order_relaxed),
        domi_bytes_subtract_down_to_zero(now.used, now.spare), now.marks);
    uint32_t own_level = domi_memory_level_that_follows(
        atomic_load_explicit(&pressure->own_level, memory_order_relaxed),
        domi_bytes_subtract_down_to_zero(now.budget.own, now.spare), now.budget.marks);
    /* At the mark `scarce` slabs that are never trimmed stop growing, because they would take what
     * messages need. But foreign memory alone is no reason to stop them. */
    bool is_scarce = now.used >= mark_of_scarce_memory(now.limit, now.marks) &&
                     now.budget.own >= now.budget.marks.high;
    publish_figures_of_look(system, &now);
    set_word_of_level_if_it_changes(&pressure->counts_sockets, usage.socket_bytes != 0);
    atomic_store_explicit(&pressure->shared.excess, bytes_that_io_has_to_shed(&now, own_level),
                          memory_order_relaxed);
    set_levels_and_count_changes(
        pressure, level, own_level,
        (doors){.tight = now.used >= now.marks.high,
                .scarce = is_scarce,
                .full = now.used >= mark_of_full_memory(now.limit, now.marks)});
    set_held_bytes_at_next_look(pressure, &now);
}

/* Begin a look at memory, unless another thread takes one. acquire, and release in
 * end_look_at_memory(): the next thread that looks sees what this one has written. */
static bool try_to_begin_look_at_memory(domi_pressure *pressure)
{
    return atomic_exchange_explicit(&pressure->looking, 1, memory_order_acquire) == 0;
}

/* End a look at memory. release: pairs with the acquire in try_to_begin_look_at_memory(). */
static void end_look_at_memory(domi_pressure *pressure)
{
    atomic_store_explicit(&pressure->looking, 0, memory_order_release);
}

/* Look at memory in the middle of an allocation, if a look is due; called as domi_meter.grown. The
 * calling thread's own manager learns of a new level at once, so a handler that sends in a loop is
 * refused within that loop. */
static void look_at_memory_while_growing(domi_meter *meter, size_t bytes)
{
    domi_pressure *pressure =
        (domi_pressure *)(void *)((char *)meter - offsetof(domi_pressure, meter));

    bool due = atomic_load_explicit(&meter->held, memory_order_relaxed) >=
               atomic_load_explicit(&meter->look_at, memory_order_relaxed);
    if (due && try_to_begin_look_at_memory(pressure)) {
        measure_memory_and_set_levels(pressure->system, bytes);
        end_look_at_memory(pressure);
    }
    if (domi_thread_manager != NULL)
        domi_manager_reread_memory_level(domi_thread_manager);
}

/* Set when the next look at memory is due. The library counts what it allocates at once, but the
 * application's own growth is seen only by a look, and may pass all marks within one interval. So
 * the next look comes sooner while memory grows, and also while it does not, if the next mark is
 * near. */
static void set_time_of_next_look(domi_pressure *pressure, uint64_t interval_ns, uint64_t now_ns)
{
    uint64_t used = domi_counter_read(&pressure->used);
    uint64_t after_ns = domi_time_until_next_look_at_memory(
        interval_ns, pressure->way, domi_bytes_subtract_down_to_zero(used, pressure->looked_used),
        domi_bytes_subtract_down_to_zero(now_ns, pressure->looked_ns));

    pressure->looked_ns = now_ns;
    pressure->looked_used = used;
    atomic_store_explicit(&pressure->next_ns, now_ns + after_ns, memory_order_relaxed);
}

void domi_pressure_look_at_memory(domus_system *system)
{
    domi_pressure *pressure = &system->pressure;

    if (!try_to_begin_look_at_memory(pressure))
        return;
    uint64_t now_ns = domi_clock_now(&system->clock);
    domi_footprint_read_cgroup_limits_again(&pressure->footprint);
    measure_memory_and_set_levels(system, 0);
    set_time_of_next_look(pressure, DOMI_LIVE(system, memory.interval_ns), now_ns);
    /* After a shortage the heap is still trimmed for some time, so that memory which is freed at
     * the shortage's end is given back. */
    if (atomic_load_explicit(&pressure->level, memory_order_relaxed) != DOMUS_MEMORY_NORMAL ||
        atomic_load_explicit(&pressure->meter.tight, memory_order_relaxed) != 0)
        pressure->heap_last_ns = now_ns + HEAP_TRIM_FOR_NS;
    domi_pressure_record_whether_shedding(pressure, now_ns);
    bool trims = now_ns < pressure->heap_last_ns && now_ns >= pressure->heap_trim_ns;
    if (trims)
        pressure->heap_trim_ns = now_ns + HEAP_TRIM_NS;
    end_look_at_memory(pressure);
    if (trims)
        /* malloc_trim() gives back memory of payloads that were too large for slabs; it takes
         * milliseconds, and is called at most once a second */
        (void)malloc_trim(0);
}

static uint32_t read_word_of_memory_level(const _Atomic uint32_t *word)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)word, memory_order_relaxed);
}

static domus_memory_level read_level_of_memory(const _Atomic uint32_t *word)
{
    return (domus_memory_level)read_word_of_memory_level(word);
}

/* Read the levels of memory. acquire of `changes`: pairs with the release in
 * set_levels_and_count_changes(), so the levels that are read after it are those of this change or
 * of a later one. */
uint32_t domi_pressure_read_levels(const domi_manager *manager, domus_memory_change *ret_change)
{
    const domi_pressure *pressure = &((const domus_system *)manager->system)->pressure;
    uint32_t number = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&pressure->changes,
                                           memory_order_acquire);

    *ret_change = (domus_memory_change){
        .level = read_level_of_memory(&pressure->level),
        .own_level = read_level_of_memory(&pressure->own_level),
        .limit_bytes = domi_counter_read(&pressure->limit),
        .own_bytes = domi_counter_read(&pressure->own),
        .foreign_bytes = domi_counter_read(&pressure->foreign),
    };
    return number;
}

/* Wake the threads that sleep and have actors that watch memory, because they would not find the
 * change themselves in time. */
static void wake_threads_that_watch_memory(domus_system *system)
{
    domi_pressure *pressure = &system->pressure;
    uint32_t now = atomic_load_explicit(&pressure->changes, memory_order_relaxed);

    if (atomic_load_explicit(&pressure->woken_for, memory_order_relaxed) == now ||
        atomic_exchange_explicit(&pressure->woken_for, now, memory_order_relaxed) == now)
        return;
    for (uint32_t i = 0; i < system->count; i++) {
        domi_manager *manager = &system->threads[i].manager;

        /* This does what domi_manager_notify_of_push() does, but the calling thread need not have a
         * manager. */
        if (domi_memory_is_watched(manager) && manager->hooks.wake != NULL &&
            domi_park_try_notify(&manager->park))
            manager->hooks.wake(manager);
    }
}

void domi_pressure_look_if_due(domus_system *system, uint32_t thread, uint64_t now_ns)
{
    /* Relaxed: two threads may both find that a look is due, and then one of them looks. */
    if (now_ns >= atomic_load_explicit(&system->pressure.next_ns, memory_order_relaxed))
        domi_pressure_look_at_memory(system);
    wake_threads_that_watch_memory(system);
    domi_pressure_report_in_log(system, thread);
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

void domi_pressure_begin_to_measure(domus_system *system)
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

void domi_pressure_end_measuring(domus_system *system)
{
    domi_pressure *pressure = &system->pressure;

    atomic_store_explicit(&pressure->meter.look_at, INT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&pressure->next_ns, UINT64_MAX, memory_order_relaxed);
    /* the end waits, because a detached actor or a foreign thread may just take a look */
    while (!try_to_begin_look_at_memory(pressure))
        continue;
    set_memory_levels_to_normal(pressure);
    domi_footprint_close(&pressure->footprint);
    end_look_at_memory(pressure);
}

domi_io_pressure domi_pressure_get_state_for_io(const domi_pressure *pressure)
{
    uint32_t own_level = read_word_of_memory_level(&pressure->own_level);

    return (domi_io_pressure){
        .pauses = own_level != DOMUS_MEMORY_NORMAL ||
                  read_word_of_memory_level(&pressure->meter.full) != 0,
        .spares = own_level == DOMUS_MEMORY_CRITICAL,
        .counts_sockets = read_word_of_memory_level(&pressure->counts_sockets) != 0,
        .queue_max = domi_counter_read(&pressure->queue_max),
    };
}

void domus_system_memory(const domus_system *system, domus_memory *ret_memory)
{
    const domi_pressure *pressure = &system->pressure;

    *ret_memory = (domus_memory){
        .level = read_level_of_memory(&pressure->level),
        .used_bytes = domi_counter_read(&pressure->used),
        .limit_bytes = domi_counter_read(&pressure->limit),
        .highs = domi_counter_read(&pressure->highs),
        .criticals = domi_counter_read(&pressure->criticals),
        .fulls = domi_counter_read(&pressure->fulls),
        .looks = domi_counter_read(&pressure->looks),
        .own_level = read_level_of_memory(&pressure->own_level),
        .own_bytes = domi_counter_read(&pressure->own),
        .foreign_bytes = domi_counter_read(&pressure->foreign),
        .budget_bytes = domi_counter_read(&pressure->budget),
        .last_budget_bytes = domi_counter_read(&pressure->last_budget),
        .channels_reset = domi_counter_read(&pressure->shared.shed),
        .channels_reset_bytes = domi_counter_read(&pressure->shared.shed_bytes),
    };
}
