/* Makes looks at programs that share their time badly, or lack something of io. */
#include "tests/observe/cases.h"

static void set_runs_cut_short(domt_looks *looks, uint32_t iterations, uint32_t times)
{
    COUNTERS.iterations = iterations;
    COUNTERS.deadline_expiries = times;
}

MAKER_OF_ILL_LOOKS(make_looks_of_io_starves_state)
{
    domt_looks_set_time_shares(looks, 0, over ? 30 : 31, 0);
    set_runs_cut_short(looks, 20000, 15000);
    COUNTERS.ready_ns = 8 * looks->after.threads[0].phases.state;
    SETTINGS.io_ratio = 90;
}

MAKER_OF_ILL_LOOKS(make_looks_of_io_starves_few)
{
    domt_looks_set_time_shares(looks, 0, 20, 0);
    set_runs_cut_short(looks, 20000, 15000);
    COUNTERS.ready_ns = (over ? 8 : 7) * looks->after.threads[0].phases.state;
}

MAKER_OF_ILL_LOOKS(make_looks_of_state_starves_io)
{
    domt_looks_set_time_shares(looks, 0, over ? 50 : 49, 0);
    COUNTERS.io_behind_ns = COUNTERS.completions * 1000000;
    SETTINGS.io_ratio = 49;
}

MAKER_OF_ILL_LOOKS(make_looks_of_phases_are_short)
{
    make_looks_of_state_starves_io(looks, true);
    COUNTERS.io_behind_ns -= over ? 0 : 1;
}

/* Even shares of time make phases short, unless runs are cut off by the deadline of phase 3. */
MAKER_OF_ILL_LOOKS(make_looks_of_state_is_cut_short)
{
    make_looks_of_state_starves_io(looks, true);
    set_runs_cut_short(looks, 10000, over ? 5000 : 4999);
    SETTINGS.io_ratio = 50;
}

/* If single runs are long, another share of time for state actors does not help. */
MAKER_OF_ILL_LOOKS(make_looks_of_few_runs)
{
    make_looks_of_state_starves_io(looks, true);
    COUNTERS.runs = over ? 20000 : 19999;
}

MAKER_OF_ILL_LOOKS(make_looks_of_least_budget_is_long)
{
    make_looks_of_state_is_cut_short(looks, over);
    SETTINGS.min_budget_ns = 5000000;
}

MAKER_OF_ILL_LOOKS(make_looks_of_least_budget_beside_io_is_long)
{
    make_looks_of_state_is_cut_short(looks, over);
    SETTINGS.min_budget_busy_ns = 5000000;
}

MAKER_OF_ILL_LOOKS(make_looks_of_state_has_no_deadline)
{
    make_looks_of_state_starves_io(looks, over);
    SETTINGS.io_ratio = 100;
}

/* With an ioRatio of auto, io waits for up to scheduler.waitMax; the rule speaks only if that time
 * is long. */
MAKER_OF_ILL_LOOKS(make_looks_of_auto_lets_io_wait)
{
    make_looks_of_state_is_cut_short(looks, true);
    SETTINGS.io_ratio = DOMI_LOOK_IO_RATIO_AUTO;
    SETTINGS.wait_max_ns = over ? 8000000 : 7999999;
}

MAKER_OF_ILL_LOOKS(make_looks_of_auto_is_no_share_of_io)
{
    make_looks_of_io_starves_state(looks, true);
    SETTINGS.io_ratio = over ? 50 : DOMI_LOOK_IO_RATIO_AUTO;
}

MAKER_OF_ILL_LOOKS(make_looks_of_long_runs)
{
    domt_looks_set_time_shares(looks, 0, 90, 0);
    set_runs_cut_short(looks, 6000, 4000);
    COUNTERS.deadline_overrun_ns = 4000 * (over ? UINT64_C(1000000) : UINT64_C(999000));
}

MAKER_OF_ILL_LOOKS(make_looks_of_hot_actor)
{
    domt_looks_set_number_of_actors(looks, 1, 0);
    domt_looks_set_time_shares(looks, 0, 70, 20);
    looks->after.actors[0].counts.run_ns = SECOND_NS / 10 * (over ? 60 : 59);
}

MAKER_OF_ILL_LOOKS(make_looks_of_two_hot_actors)
{
    make_looks_of_hot_actor(looks, true);
    domt_looks_set_number_of_actors(looks, over ? 1 : 2, 0);
}

MAKER_OF_ILL_LOOKS(make_looks_of_all_near)
{
    domt_looks_set_number_of_actors(looks, over ? 4 : 3, 0);
    domt_looks_set_time_shares(looks, 0, 80, 10);
}

MAKER_OF_ILL_LOOKS(make_looks_of_pool_full)
{
    for (uint32_t i = 0; i < 2; i++)
        looks->after.runners[i].times.run_ns = SECOND_NS / 100 * (over || i == 0 ? 950 : 949);
}

MAKER_OF_ILL_LOOKS(make_looks_of_steal_unreached)
{
    domt_looks_set_time_shares(looks, 0, 80, 10);
    COUNTERS.runs = 20000;
    COUNTERS.ready_ns = 8 * looks->after.threads[0].phases.state;
    COUNTERS.steals = over ? 99 : 100;
}

MAKER_OF_ILL_LOOKS(make_looks_of_steal_of_short_runs)
{
    make_looks_of_steal_unreached(looks, true);
    COUNTERS.runs = looks->after.threads[1].counters.runs = over ? 100000 : 10000000;
}

MAKER_OF_ILL_LOOKS(make_looks_of_steal_off)
{
    make_looks_of_steal_unreached(looks, true);
    SETTINGS.steal_enabled = over ? 0 : 1;
}

MAKER_OF_ILL_LOOKS(make_looks_of_steal_costly)
{
    for (uint32_t i = 0; i < 2; i++)
        /* these runs took 4 s in all */
        looks->after.threads[i].counters.runs = over ? 2001000 : 1999000;
    COUNTERS.steals = 10000;
    SETTINGS.steal_min_run_ns = 0;
}

MAKER_OF_ILL_LOOKS(make_looks_of_steals_few)
{
    make_looks_of_steal_costly(looks, true);
    COUNTERS.steals = over ? 10000 : 9999;
}

AT(buffers_starved, COUNTERS.receivers_starved = over ? 100 : 99)

MAKER_OF_ILL_LOOKS(make_looks_of_requests_full)
{
    COUNTERS.channels_busy = 100;
    domt_looks_set_time_shares(looks, 1, 5, 95);
    domt_looks_set_time_shares(looks, 0, 5, over ? 90 : 89);
}

MAKER_OF_ILL_LOOKS(make_looks_of_small_writes)
{
    for (uint32_t i = 0; i < 2; i++)
        looks->after.threads[i].counters.sends = over ? 130000 : 129999;
    SETTINGS.delays = 1;
}

MAKER_OF_ILL_LOOKS(make_looks_of_small_writes_of_listener)
{
    make_looks_of_small_writes(looks, true);
    SETTINGS.delays = over ? 2 : 0;
}

MAKER_OF_ILL_LOOKS(make_looks_of_writes_to_few)
{
    make_looks_of_small_writes(looks, true);
    looks->after.ports[0].counts.open = over ? 5200 : 5201;
}

MAKER_OF_ILL_LOOKS(make_looks_of_large_writes)
{
    make_looks_of_small_writes(looks, true);
    /* as many bytes as the rule's limit for 260,000 writes */
    COUNTERS.sent_bytes = over ? 366480000 : 366480001;
}

MAKER_OF_ILL_LOOKS(make_looks_of_slow_readers)
{
    looks->before.threads[0].counters.queued_bytes = 30000000;
    COUNTERS.queued_bytes = over ? 20000000 : 19999999;
}

MAKER_OF_ILL_LOOKS(make_looks_of_wakeups_empty)
{
    COUNTERS.wakeups_received = 4000;
    COUNTERS.wakeups_empty = over ? 2000 : 1999;
}

MAKER_OF_ILL_LOOKS(make_looks_of_epoll)
{
    domi_look_copy_name(looks->after.backend, DOMI_LOOK_NAME, "epoll");
    MACHINE.cpu_ns = SECOND_NS * 2 - (over ? 0 : 1000000);
}

const domt_case domt_cases_of_time[] = {
    {"io-starves-state", make_looks_of_io_starves_state, "scheduler: {ioRatio: 45}"},
    {"io-starves-state", make_looks_of_io_starves_few, "scheduler: {ioRatio: 25}"},
    {"state-starves-io", make_looks_of_state_starves_io,
     "scheduler: {ioRatio: 50, maxBudget: 1ms}"},
    {"state-starves-io", make_looks_of_phases_are_short,
     "scheduler: {ioRatio: 50, maxBudget: 1ms}"},
    {"state-starves-io", make_looks_of_state_is_cut_short,
     "scheduler: {ioRatio: 70, maxBudget: 1ms}"},
    {"state-starves-io", make_looks_of_few_runs, "ioRatio: 50"},
    {"state-starves-io", make_looks_of_least_budget_is_long, "minBudget: 50us"},
    {"state-starves-io", make_looks_of_least_budget_beside_io_is_long, "minBudgetBusy: 50us"},
    {"state-starves-io", make_looks_of_state_has_no_deadline, "scheduler: {ioRatio: 50, "},
    {"state-starves-io", make_looks_of_auto_lets_io_wait, "scheduler: {waitMax: 4ms}"},
    {"io-starves-state", make_looks_of_auto_is_no_share_of_io, "scheduler: {ioRatio: 25}"},
    {"long-runs", make_looks_of_long_runs, "domus_blocking()"},
    {"hot-actor", make_looks_of_hot_actor, "in the list of pools: {name: work}"},
    {"hot-actor", make_looks_of_two_hot_actors, "router"},
    {"all-near", make_looks_of_all_near, "DOMUS_SPREAD"},
    {"pool-full", make_looks_of_pool_full, "in the list of pools: {name: work, runners: 5}"},
    {"steal-unreached", make_looks_of_steal_unreached, "scheduler: {steal: {floor: 2}}"},
    {"steal-unreached", make_looks_of_steal_of_short_runs, "floor"},
    {"steal-off", make_looks_of_steal_off, "scheduler: {steal: {enabled: true}}"},
    {"steal-costly", make_looks_of_steal_costly, "scheduler: {steal: {minRun: 2us}}"},
    {"steal-costly", make_looks_of_steals_few, "minRun"},
    {"buffers-starved", buffers_starved, "io: {buffers: {count: 4096}}"},
    {"requests-full", make_looks_of_requests_full, "channel: {requestsMax: 512}"},
    {"small-writes", make_looks_of_small_writes, "channel: {socket: {noDelay: true}}"},
    {"small-writes", make_looks_of_small_writes_of_listener, "of the listener"},
    {"small-writes", make_looks_of_writes_to_few, "at once"},
    {"small-writes", make_looks_of_large_writes, "at once"},
    {"slow-readers", make_looks_of_slow_readers, "channel: {sendTimeout: 5s, sendHigh: 64KiB}"},
    {"wakeups-empty", make_looks_of_wakeups_empty, "scheduler: {idle: {standIn: 0}}"},
    {"epoll", make_looks_of_epoll, "io: {backend: auto}"},
    {NULL, NULL, NULL}};
