/* This file counts and logs the stalls of runners: handlers that hold their runner for too long;
 * runners.h says more. */
#include "runtime/pools/runners.h"

#include "house/message/types.h"
#include "runtime/system/logs.h"

#include <domus/pool_config.h>

#include <inttypes.h>

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static void log_stall_of_runner(domus_runner *runner, uint64_t length_ns)
{
    domi_watched *watched = &runner->pool->watched;
    const domi_manager *manager = &runner->manager;

    domi_log_line(runner->pool->system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE,
                  "pool %s: runner %" PRIu32 " is stuck for %" PRIu64
                  " ms in %.64s, handling %.64s; %" PRIu64 " actors wait (%" PRIu32
                  " stalls of this pool were not told)",
                  runner->pool->settings->name, runner->number, length_ns / MS,
                  domi_behaviour_name(domi_manager_running_behaviour(manager)),
                  domi_type_name(domi_manager_type_being_handled(manager)),
                  domi_pool_count_queued_jobs(runner->pool), watched->stalls_untold);
    watched->stalls_untold = 0;
}

/* Add the stall of a runner to the history of stalls, which viewers read. */
static void add_stall_to_history(domus_runner *runner)
{
    domus_system *system = runner->pool->system;
    const domi_manager *manager = &runner->manager;
    domi_stall_record record = {.began_ns = runner->pulse.beat_ns,
                                .pool = runner->pool->settings->name,
                                .index = runner->number};

    domi_stall_record_set_name(record.behaviour,
                               domi_behaviour_name(domi_manager_running_behaviour(manager)));
    domi_stall_record_set_name(record.type,
                               domi_type_name(domi_manager_type_being_handled(manager)));
    runner->pulse.stall_number =
        domi_stall_history_add_stall(&system->stall_history, &system->clock, &record);
}

void domi_runner_look_for_stall(domus_runner *runner, uint64_t now_ns)
{
    uint64_t threshold_ns = DOMI_LIVE(runner->pool->system, stall.threshold_ns);
    domi_watched *watched = &runner->pool->watched;
    domi_pulse *pulse = &runner->pulse;
    uint64_t length_ns = now_ns - pulse->beat_ns;

    if (threshold_ns == 0 || pulse->is_stalled || length_ns < threshold_ns)
        return;
    pulse->is_stalled = true;
    domi_counter_add(&runner->counters.stalls.count, 1);
    if (watched->stall_told_ns != 0 && now_ns - watched->stall_told_ns < SECOND) {
        watched->stalls_untold++;
        return;
    }
    watched->stall_told_ns = now_ns;
    log_stall_of_runner(runner, length_ns);
    add_stall_to_history(runner);
}

void domi_runner_end_stall(domus_runner *runner, uint64_t now_ns)
{
    domi_pulse *pulse = &runner->pulse;
    uint64_t length_ns = now_ns - pulse->beat_ns;

    if (!pulse->is_stalled)
        return;
    pulse->is_stalled = false;
    domi_stall_history_end_stall(&runner->pool->system->stall_history, pulse->stall_number,
                                 length_ns);
    pulse->stall_number = 0;
    domi_stall_counts_add_length(&runner->counters.stalls, length_ns);
}
