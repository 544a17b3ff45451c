/* The advice of the doctor depends on the present values of keys: it never goes in the wrong
 * direction, and never beyond what the machine has. */
#include "tests/observe/advice.h"
#include "tests/observe/looks.h"
#include "tests/support/suite.h"

#include <string.h>

#define MAKE(name) static void name(domt_looks *looks)
#define COUNTERS   looks->after.threads[0].counters
#define SETTINGS   looks->after.settings
#define MACHINE    looks->after.machine
#define MEMORY     looks->after.memory
#define SECOND_NS  UINT64_C(1000000000)
#define MIB        UINT64_C(1048576)

static domi_finding findings[DOMI_RULES_MAX];

/* --- memory ----------------------------------------------------------------------------------- */

MAKE(make_looks_of_memory_of_key)
{
    MEMORY = (domi_look_memory){.own_level = 2, .limit_bytes = MIB};
    SETTINGS.memory_limit = MIB;
}

MAKE(make_looks_of_memory_of_cgroup)
{
    make_looks_of_memory_of_key(looks);
    SETTINGS.memory_limit = 2 * MIB;
}

MAKE(make_looks_of_memory_with_small_queues)
{
    make_looks_of_memory_of_key(looks);
    SETTINGS.send_high = 65536;
    SETTINGS.mailbox_max = 1024;
}

MAKE(make_looks_of_memory_with_high_low_mark)
{
    make_looks_of_memory_of_key(looks);
    SETTINGS.send_low = 131072;
}

MAKE(make_looks_of_memory_of_others)
{
    MEMORY = (domi_look_memory){.level = 2, .highs = 1, .criticals = 1, .limit_bytes = MIB};
}

/* --- connections and descriptors -------------------------------------------------------------- */

MAKE(make_looks_of_connections_at_half_limit)
{
    looks->after.ports[0].counts.open = SETTINGS.connections_max = 32768;
}

MAKE(make_looks_of_connections_near_half_limit)
{
    looks->after.ports[0].counts.open = SETTINGS.connections_max = 30000;
}

MAKE(make_looks_of_files_of_few_connections)
{
    MACHINE.files_open = MACHINE.files_max = 1000;
    SETTINGS.connections_max = 800;
}

MAKE(make_looks_of_accepting_fails_without_limit)
{
    COUNTERS.accept_spells = 1;
    MACHINE.files_max = 0;
}

/* --- CPUs ------------------------------------------------------------------------------------- */

MAKE(make_looks_of_full_pool)
{
    for (uint32_t i = 0; i < 2; i++)
        looks->after.runners[i].times.run_ns = looks->after.runners[i].times.wall_ns;
}

MAKE(make_looks_of_full_pool_with_spare)
{
    make_looks_of_full_pool(looks);
    looks->after.runners[1].times.run_ns = 0;
    looks->after.runners[1].is_spare = true;
}

MAKE(make_looks_of_pool_with_hot_actor)
{
    make_looks_of_full_pool(looks);
    looks->after.runners[1].times.run_ns = 0;
}

MAKE(make_looks_of_full_pool_of_quota)
{
    make_looks_of_full_pool(looks);
    MACHINE.quota = 1740; /* the quota of CPU time is 1.7 CPUs, and the program uses 1 */
}

MAKE(make_looks_of_full_pool_of_larger_quota)
{
    make_looks_of_full_pool(looks);
    MACHINE.quota = 1750;
}

MAKE(make_looks_of_full_pool_of_small_machine)
{
    make_looks_of_full_pool(looks);
    MACHINE.cpus_online = 1;
}

MAKE(make_looks_of_full_pool_beside_others)
{
    make_looks_of_full_pool(looks);
    looks->after.threads[1].times.waiting_ns = SECOND_NS;
}

MAKE(make_looks_of_full_pool_that_is_stopped)
{
    make_looks_of_full_pool(looks);
    MACHINE.throttles = 1;
}

MAKE(make_looks_of_stopped_twice_in_moment)
{
    MACHINE.periods = MACHINE.throttles = 2;
    MACHINE.throttled_ns = SECOND_NS;
}

/* The time that a cgroup was stopped by its quota is the sum over the CPUs. */
MAKE(make_looks_of_stopped_seldom_on_many_cpus)
{
    MACHINE.periods = 100;
    MACHINE.throttles = 4;
    MACHINE.throttled_ns = 4 * SECOND_NS;
}

/* --- lines and datagrams ---------------------------------------------------------------------- */

MAKE(make_looks_of_log_of_errors)
{
    COUNTERS.log_lines_dropped = 1;
    SETTINGS.log_level = 0;
}

MAKE(make_looks_of_log_of_many_lines)
{
    COUNTERS.log_lines_dropped = 1;
    SETTINGS.log_lines = 65536;
}

MAKE(make_looks_of_datagrams_of_large_buffer)
{
    COUNTERS.datagrams_lost = 100;
    SETTINGS.receive_buffer = 8 * MIB;
}

MAKE(make_looks_of_datagrams_of_largest_buffer)
{
    COUNTERS.datagrams_lost = 100;
    SETTINGS.receive_buffer = 1024 * MIB;
}

MAKE(make_looks_of_datagrams_that_nobody_reads)
{
    COUNTERS.datagrams_dropped = 100;
}

/* --- io --------------------------------------------------------------------------------------- */

/* Make the same slow peers at the same pace, as two looks with `seconds` seconds between them show
 * them. */
static void make_slow_peers(domt_looks *looks, uint64_t seconds, uint64_t queued)
{
    looks->after.now_ns = looks->after.uptime_ns = seconds * SECOND_NS;
    for (uint32_t i = 0; i < 2; i++)
        looks->after.threads[i].counters.sent_bytes = MIB / 2 * seconds;
    looks->before.threads[0].counters.queued_bytes = COUNTERS.queued_bytes = queued;
}

MAKE(make_looks_of_slow_for_second)
{
    make_slow_peers(looks, 1, 10 * MIB);
}

MAKE(make_looks_of_quick_for_second)
{
    make_slow_peers(looks, 1, 10 * MIB - 1);
}

MAKE(make_looks_of_slow_for_minute)
{
    make_slow_peers(looks, 60, 10 * MIB);
    SETTINGS.send_timeout_ns = SECOND_NS;
    SETTINGS.send_high = 32768;
}

static void make_looks_with_full_requests(domt_looks *looks, uint64_t most, uint64_t own)
{
    COUNTERS.channels_busy = 1000;
    domt_looks_set_time_shares(looks, 0, 5, 95);
    domt_looks_set_time_shares(looks, 1, 5, 95);
    SETTINGS.requests_max = most;
    SETTINGS.listener_requests = own;
}

MAKE(make_looks_of_requests_one_by_one)
{
    make_looks_with_full_requests(looks, 1, 0);
}

MAKE(make_looks_of_requests_of_listener_one_by_one)
{
    make_looks_with_full_requests(looks, 128, 1);
}

MAKE(make_looks_of_requests_of_listener)
{
    make_looks_with_full_requests(looks, 128, 2);
}

MAKE(make_looks_of_wakeups_without_stand_ins)
{
    COUNTERS.wakeups_received = COUNTERS.wakeups_empty = 4000;
    SETTINGS.stand_in_ns = 0;
}

/* --- steals ----------------------------------------------------------------------------------- */

MAKE(make_looks_of_stand_ins_for_short_runs)
{
    for (uint32_t i = 0; i < 2; i++)
        looks->after.threads[i].counters.runs = 4000000;
    COUNTERS.steals = 20000;
    looks->after.stand_ins = 10001;
    SETTINGS.steal_min_run_ns = 0;
}

MAKE(make_looks_of_stand_ins_beside_uneven_threads)
{
    domt_looks_set_time_shares(looks, 0, 80, 10);
    COUNTERS.runs = 20000;
    COUNTERS.ready_ns = 8 * looks->after.threads[0].phases.state;
    COUNTERS.steals = 10000;
    looks->after.stand_ins = 9901;
}

/* --- threads that seem to wait ---------------------------------------------------------------- */

MAKE(make_looks_of_waits_that_are_not_told)
{
    looks->after.threads[0].times.cpu_ns = 1;
}

MAKE(make_looks_of_waits_of_hypervisor)
{
    looks->before.threads[0].times.waiting_ns = looks->after.threads[0].times.waiting_ns = 1;
    looks->after.threads[0].times.cpu_ns = 1 + SECOND_NS / 10 * 35;
    MACHINE.stolen_ns = SECOND_NS;
}

static void set_counted_time_of_threads(domt_looks *looks, uint64_t first, uint64_t second)
{
    looks->after.threads[0].counters.wall_ns = first;
    looks->after.threads[1].counters.wall_ns = second;
}

MAKE(make_looks_of_level_was_off)
{
    set_counted_time_of_threads(looks, 4 * SECOND_NS, 4 * SECOND_NS + 1000000);
}

MAKE(make_looks_of_two_threads_in_runs)
{
    set_counted_time_of_threads(looks, 4 * SECOND_NS, 2 * SECOND_NS);
}

MAKE(make_looks_of_two_threads_in_runs_all_the_time)
{
    set_counted_time_of_threads(looks, 0, 0);
}

/* Let messages be refused: four times the present limit of messages is more memory than the machine
 * has for two threads, or exactly as much. */
static void make_looks_with_refused_messages(domt_looks *looks, uint64_t limit_mib)
{
    COUNTERS.thread_max_refusals = 1;
    SETTINGS.thread_max = 1024 * MIB;
    looks->after.memory.limit_bytes = limit_mib * MIB;
}

MAKE(make_looks_of_messages_beyond_memory)
{
    make_looks_with_refused_messages(looks, 16383);
}

MAKE(make_looks_of_messages_within_memory)
{
    make_looks_with_refused_messages(looks, 16384);
}

static const struct {
    const char *rule;
    void (*make)(domt_looks *looks);
    const char *has;     /* a part of the advice; NULL: the doctor's rule finds nothing */
    const char *has_not; /* a text that must not be in the advice; NULL: any may be */
} cases[] = {
    {"messages-full", make_looks_of_messages_beyond_memory, "see which actors", "memory"},
    {"messages-full", make_looks_of_messages_within_memory, "memory: {threadMax: 4096MiB}", NULL},
    {"memory-critical", make_looks_of_memory_of_key, "memory: {limit: auto}", NULL},
    {"memory-critical", make_looks_of_memory_of_cgroup, "# the limit is that of the cgroup",
     "memory: {"},
    {"memory-critical", make_looks_of_memory_with_small_queues, "memory: {limit: auto}", "channel"},
    {"memory-critical", make_looks_of_memory_with_small_queues, "memory: {limit: auto}",
     "scheduler"},
    {"memory-critical", make_looks_of_memory_with_high_low_mark, "mailboxMax", "sendHigh"},
    {"memory-critical", make_looks_of_memory_of_others, NULL, NULL},
    {"memory-high", make_looks_of_memory_of_others, NULL, NULL},
    {"memory-foreign", make_looks_of_memory_of_others, "see what the program allocates", "channel"},
    {"memory-foreign", make_looks_of_memory_of_key, NULL, NULL},
    {"connections-full", make_looks_of_connections_at_half_limit, "# first raise", "channel: {"},
    {"connections-full", make_looks_of_connections_near_half_limit,
     "channel: {maxConnections: 32768}", NULL},
    {"files-full", make_looks_of_files_of_few_connections, "LimitNOFILE", "channel: {"},
    {"files-full", make_looks_of_accepting_fails_without_limit, "the log", "channel: {"},
    {"pool-full", make_looks_of_full_pool_with_spare, "{name: work, runners: 4}", NULL},
    {"pool-full", make_looks_of_pool_with_hot_actor, NULL, NULL},
    {"pool-full", make_looks_of_full_pool_of_quota, NULL, NULL},
    {"pool-full", make_looks_of_full_pool_of_larger_quota, "{name: work, runners: 3}", NULL},
    {"pool-full", make_looks_of_full_pool_of_small_machine, NULL, NULL},
    {"pool-full", make_looks_of_full_pool_beside_others, NULL, NULL},
    {"pool-full", make_looks_of_full_pool_that_is_stopped, NULL, NULL},
    {"cpu-throttled", make_looks_of_stopped_twice_in_moment, NULL, NULL},
    {"cpu-throttled", make_looks_of_stopped_seldom_on_many_cpus, NULL, NULL},
    {"log-dropped", make_looks_of_log_of_errors, "log: {queueMax: 4096}", "level"},
    {"log-dropped", make_looks_of_log_of_many_lines, "log: {level: warning}", "queueMax"},
    {"datagrams-lost", make_looks_of_datagrams_of_large_buffer, "receiveBuffer: 16MiB", NULL},
    {"datagrams-lost", make_looks_of_datagrams_of_largest_buffer, "rmem_max", "channel: {"},
    {"slow-readers", make_looks_of_slow_for_second, "sendHigh", NULL},
    {"slow-readers", make_looks_of_quick_for_second, NULL, NULL},
    {"slow-readers", make_looks_of_slow_for_minute, "send less", "channel"},
    {"requests-full", make_looks_of_requests_one_by_one, NULL, NULL},
    {"requests-full", make_looks_of_requests_of_listener_one_by_one, NULL, NULL},
    {"requests-full", make_looks_of_requests_of_listener, "of the listener", "channel: {"},
    {"wakeups-empty", make_looks_of_wakeups_without_stand_ins, "aggression", "standIn"},
    {"steal-costly", make_looks_of_stand_ins_for_short_runs, NULL, NULL},
    {"steal-unreached", make_looks_of_stand_ins_beside_uneven_threads, "floor", NULL},
    {"handler-waits", make_looks_of_waits_that_are_not_told, NULL, NULL},
    {"handler-waits", make_looks_of_waits_of_hypervisor, NULL, NULL},
    {"stalls", make_looks_of_level_was_off, NULL, NULL},
    {"stalls", make_looks_of_two_threads_in_runs, "/stalls", NULL},
    {"stalls", make_looks_of_two_threads_in_runs_all_the_time, "/stalls", NULL},
    {"datagrams-lost", make_looks_of_datagrams_that_nobody_reads, "no key helps", "channel: {"},
};

DOMT_TEST(advice_depends_on_present_values)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domt_looks looks;
        domt_looks_make_two_looks(&looks);
        cases[i].make(&looks);
        uint32_t count = domt_looks_judge_span(&looks, findings);
        const domi_finding *found = domt_find_finding_of_rule(findings, count, cases[i].rule);
        const char *change = found != NULL ? found->change : "";
        if (found != NULL)
            domt_advice_check_keys(found, &looks.after.settings);
        ck_assert_msg((found != NULL) == (cases[i].has != NULL), "case %zu, %s", i, cases[i].rule);
        ck_assert_msg(found == NULL || strstr(change, cases[i].has) != NULL, "case %zu: %s", i,
                      change);
        ck_assert_msg(cases[i].has_not == NULL || strstr(change, cases[i].has_not) == NULL,
                      "case %zu: %s", i, change);
        domt_looks_free_both(&looks);
    }
}

DOMT_SUITE(60)
