/* This file finds whether a thread has work, and when it has to do something next. */
#include "house/dispatch/phases.h"
#include "io/completions/tick.h"
#include "runtime/loop/steps.h"
#include "runtime/system/system.h"

bool domi_thread_has_work(const domi_thread *thread)
{
    return domi_manager_has_work(&thread->manager) || domi_io_has_work_before_park(&thread->io) ||
           domi_thread_has_orders_to_follow(thread, memory_order_seq_cst);
}

uint64_t domi_thread_time_of_next_timer(domi_thread *thread)
{
    uint64_t due_ns = domi_wheel_next_ns(&thread->manager.timing.wheel);
    uint64_t deadlines_ns = domi_wheel_next_ns(&thread->manager.timing.deadlines);
    uint64_t io_ns = domi_wheel_next_ns(&thread->io.wheel);

    if (deadlines_ns < due_ns)
        due_ns = deadlines_ns;
    if (io_ns < due_ns)
        due_ns = io_ns;
    /* While the thread drains, it looks at its channels at each tick, because conversations of
     * their actors may have ended. */
    if (thread->io.draining && thread->stamp_ns + DOMI_WHEEL_TICK_NS < due_ns)
        due_ns = thread->stamp_ns + DOMI_WHEEL_TICK_NS;
    return due_ns;
}

uint64_t domi_thread_get_sleep_end(domi_thread *thread)
{
    uint64_t due_ns = domi_thread_time_of_next_timer(thread);
    uint64_t cap_ns = thread->stamp_ns + DOMI_PARK_CAP_NS;
    uint64_t look_ns = thread->stamp_ns + thread->config->memory.interval_ns;

    /* While memory is short, the thread wakes to look whether it still is: paused work has to go
     * on, and perhaps no other thread is awake to notice. */
    if (thread->manager.memory.pressure_seen != DOMUS_MEMORY_NORMAL && look_ns < due_ns)
        due_ns = look_ns;
    return due_ns < cap_ns ? due_ns : cap_ns;
}
