/* In this file a thread of the loop trims slabs (house/message/trim.h), its own and those of the
 * outside, which has no loop. */
#include "runtime/loop/steps.h"

#include "house/message/trim.h"
#include "runtime/outside/visit.h"

/* nanoseconds between two trims of the slabs of the outside */
#define OUTSIDE_WAIT_NS UINT64_C(100000000)

/* Trim the slabs of the outside's manager, but only if no foreign thread uses the outside at the
 * moment. */
static bool trim_slabs_of_outside(domus_system *system, uint64_t now_ns, uint32_t objects)
{
    _Atomic uint64_t *next_ns = &system->pressure.outside_trim_ns;
    bool more = false;

    /* Relaxed: a thread that reads an old time trims a little late, or once more, which does no
     * harm. */
    if (now_ns < atomic_load_explicit(next_ns, memory_order_relaxed) ||
        !domi_outside_try_lock(system))
        return false;
    if (system->stage == DOMI_STAGE_RUNNING) {
        domi_manager_reread_memory_level(&system->outside);
        more = domi_pool_take_trim_step(&system->outside, now_ns, objects);
    }
    atomic_store_explicit(next_ns, more ? 0 : now_ns + OUTSIDE_WAIT_NS, memory_order_relaxed);
    domi_outside_unlock(system);
    return more;
}

bool domi_thread_trim_slabs(domi_thread *thread, uint32_t objects)
{
    uint64_t now_ns = thread->manager.now_ns;
    bool more = domi_pool_take_trim_step(&thread->manager, now_ns, objects);

    return trim_slabs_of_outside(thread->system, now_ns, objects) || more;
}

bool domi_thread_trim_slabs_if_idle(domi_thread *thread)
{
    uint64_t now_ns = thread->manager.now_ns;

    if (now_ns < thread->next_trim_ns)
        return false;
    bool more = domi_thread_trim_slabs(thread, DOMI_TRIM_IDLE);
    thread->next_trim_ns = more ? 0 : now_ns + DOMI_WHEEL_TICK_NS;
    return more;
}
