/* Makes looks at programs that are at their limits, fail, or get too little of the machine. */
#include "tests/observe/cases.h"

AT(connections_full, looks->after.ports[0].counts.open = over ? 9800 : 9799)
AT(address_share, COUNTERS.refused_by_address = over)

MAKER_OF_ILL_LOOKS(make_looks_of_files_full)
{
    MACHINE.files_max = 1024;
    MACHINE.files_open = over ? 922 : 921;
}

AT(accepting_fails, COUNTERS.accept_spells = over)

MAKER_OF_ILL_LOOKS(make_looks_of_connects_fail)
{
    COUNTERS.connects = over ? 6 : 7;
    COUNTERS.connects_failed = 3;
}

AT(mailbox_full, looks->after.outside.refusals = over)
AT(conversations_full, COUNTERS.conversations_full = over)
AT(timers_full, looks->after.runners[0].counters.timers_refused = over)

MAKER_OF_ILL_LOOKS(make_looks_of_detached_full)
{
    looks->before.usage.detached_busy = 64;
    looks->after.usage.detached_busy = over ? 64 : 63;
}

AT(asks_expire, COUNTERS.asks_expired = over ? 100 : 99)
AT(few_silent_clients, COUNTERS.accepted = COUNTERS.channels_silent = over ? 50 : 49)
AT(dead_letters, COUNTERS.dead_letters = over ? 100 : 99)

MAKER_OF_ILL_LOOKS(make_looks_of_mail_waits)
{
    for (uint32_t i = 0; i < 2; i++)
        looks->after.actors[i].counts.wait_ns = over ? SECOND_NS * 10 : SECOND_NS * 10 - 1;
    domt_looks_set_time_shares(looks, 0, 51, 49);
}

/* The threads sleep and the receivers work little, so it is not the lack of CPU that lets messages
 * wait. */
MAKER_OF_ILL_LOOKS(make_looks_of_receiver_waits)
{
    make_looks_of_mail_waits(looks, over);
    domt_looks_set_time_shares(looks, 0, 50, 50);
    for (uint32_t i = 0; i < 2; i++)
        looks->after.actors[i].counts.run_ns = SECOND_NS / 2;
}

/* Thread 0, which has the receiver, is busy for more than half of the time. */
MAKER_OF_ILL_LOOKS(make_looks_of_receiver_beside_work)
{
    make_looks_of_receiver_waits(looks, over);
    domt_looks_set_time_shares(looks, 0, 51, 49);
}

MAKER_OF_ILL_LOOKS(make_looks_of_receiver_works)
{
    make_looks_of_receiver_waits(looks, over);
    looks->after.actors[0].counts.run_ns++;
}

MAKER_OF_ILL_LOOKS(make_looks_of_receiver_is_full)
{
    make_looks_of_receiver_waits(looks, over);
    COUNTERS.conversations_full = 1;
}

MAKER_OF_ILL_LOOKS(make_looks_of_receiver_is_in_pool)
{
    make_looks_of_receiver_waits(looks, over);
    for (uint32_t i = 0; i < 2; i++)
        domi_look_copy_name(looks->after.actors[i].pool, DOMI_LOOK_NAME, "work");
}

MAKER_OF_ILL_LOOKS(make_looks_of_silent_clients)
{
    COUNTERS.channels_silent = 100;
    COUNTERS.accepted = over ? 200 : 201;
}

MAKER_OF_ILL_LOOKS(make_looks_of_askers_gone)
{
    COUNTERS.cancels = 100;
    COUNTERS.asks = over ? 200 : 201;
}

MAKER_OF_ILL_LOOKS(make_looks_of_few_askers_gone)
{
    COUNTERS.asks = COUNTERS.cancels = over ? 100 : 99;
}

MAKER_OF_ILL_LOOKS(make_looks_of_messages_full)
{
    COUNTERS.thread_max_refusals = over;
    SETTINGS.thread_max = 1 << 20;
}

AT(handlers_fail, COUNTERS.failures = over ? 100 : 99)
AT(actors_restart, COUNTERS.restarts = over ? 10 : 9)
AT(mistakes, looks->after.runners[1].counters.waits_lost = over)
AT(requests_fail, COUNTERS.channels_refused = over ? 100 : 99)

MAKER_OF_ILL_LOOKS(make_looks_of_datagrams_lost)
{
    COUNTERS.datagrams_lost = over ? 60 : 59;
    COUNTERS.datagrams_dropped = 40;
}

AT(log_dropped, looks->after.outside.log_lines_dropped = over)

MAKER_OF_ILL_LOOKS(make_looks_of_stalls)
{
    COUNTERS.stalls = over;
    COUNTERS.stalled_ns = 30000000;
}

MAKER_OF_ILL_LOOKS(make_looks_of_one_run_goes_on)
{
    COUNTERS.wall_ns = SECOND_NS * 5 + (over ? 0 : 1000000);
    looks->after.threads[0].phases = (domi_look_phases){.state = SECOND_NS};
}

/* A thread that did not get the CPU only seems to stall, if it has few stalls. */
MAKER_OF_ILL_LOOKS(make_looks_of_stalls_without_cpu)
{
    looks->after.threads[0].times.waiting_ns = SECOND_NS;
    COUNTERS.stalls = over ? 3 : 2;
    COUNTERS.stalled_ns = SECOND_NS;
}

MAKER_OF_ILL_LOOKS(make_looks_of_handler_waits)
{
    domt_looks_set_time_shares(looks, 0, 40, 50);
    looks->before.threads[0].times.waiting_ns = looks->after.threads[0].times.waiting_ns = 1;
    looks->after.threads[0].times.cpu_ns = 1 + SECOND_NS / 100 * (over ? 399 : 401);
}

MAKER_OF_ILL_LOOKS(make_looks_of_helpers_full)
{
    looks->before.usage.helpers_busy = looks->after.usage.helpers_busy = 64;
    looks->before.usage.jobs_queued = over;
    looks->after.usage.jobs_queued = 1;
}

MAKER_OF_ILL_LOOKS(make_looks_of_resolver_full)
{
    looks->before.machine.names_looked_up = MACHINE.names_looked_up = 4;
    looks->before.machine.names_queued = 1;
    MACHINE.names_queued = over;
}

MAKER_OF_ILL_LOOKS(make_looks_of_threads_over_cpus)
{
    MACHINE.cpus = 1;
    MACHINE.cpu_ns = SECOND_NS / 10 * (over ? 50 : 49);
}

AT(quota_under_threads, MACHINE.quota = over ? 1000 : 1001)

MAKER_OF_ILL_LOOKS(make_looks_of_cpu_throttled)
{
    MACHINE.periods = over ? 100 : 101;
    MACHINE.throttles = 5;
}

AT(cpu_stolen, MACHINE.stolen_ns = SECOND_NS * 2 - (over ? 0 : 10000000))

MAKER_OF_ILL_LOOKS(make_looks_of_cpu_denied)
{
    looks->after.threads[0].times.cpu_ns = 1 + SECOND_NS * 9;
    looks->after.threads[0].times.waiting_ns = SECOND_NS / 100 * (over ? 101 : 99);
}

MAKER_OF_ILL_LOOKS(make_looks_of_memory_critical)
{
    looks->after.memory = (domi_look_memory){.own_level = over ? 2 : 1, .limit_bytes = 1000000};
}

AT(messages_are_refused_for_memory, COUNTERS.busy = over)

MAKER_OF_ILL_LOOKS(make_looks_of_memory_high)
{
    looks->after.memory = (domi_look_memory){.own_level = over, .limit_bytes = 1000000, .highs = 1};
}

AT(memory_foreign, looks->after.memory.highs = over)

const domt_case domt_cases_of_limits[] = {
    {"connections-full", connections_full, "channel: {maxConnections: 20000}"},
    {"address-share", address_share, "channel: {maxPerAddress: 20%}"},
    {"files-full", make_looks_of_files_full, "channel: {maxConnections: 819}"},
    {"files-full", accepting_fails, "fs.file-max"},
    {"connects-fail", make_looks_of_connects_fail, "domus/connect.h"},
    {"mailbox-full", mailbox_full, "domus_ask()"},
    {"conversations-full", conversations_full, "scheduler: {conversationsMax: 262144}"},
    {"timers-full", timers_full, "scheduler: {timersMax: 16777216}"},
    {"detached-full", make_looks_of_detached_full, "detached: {threadsMax: 128}"},
    {"asks-expire", asks_expire, "deadline"},
    {"dead-letters", dead_letters, "domus/letters.h"},
    {"mail-waits", make_looks_of_mail_waits, "domus flame"},
    {"mail-waits", make_looks_of_receiver_waits, "domus_barrier()"},
    {"mail-waits", make_looks_of_receiver_works, "domus flame"},
    {"mail-waits", make_looks_of_receiver_beside_work, "domus flame"},
    {"mail-waits", make_looks_of_receiver_is_full, "domus flame"},
    {"mail-waits", make_looks_of_receiver_is_in_pool, "domus flame"},
    {"first-byte", make_looks_of_silent_clients, "channel: {firstByteTimeout: 0}"},
    {"first-byte", few_silent_clients, "listen first"},
    {"askers-gone", make_looks_of_askers_gone, "domus_ask_within()"},
    {"askers-gone", make_looks_of_few_askers_gone, "domus_ask_within()"},
    {"messages-full", make_looks_of_messages_full, "memory: {threadMax: 64MiB}"},
    {"handlers-fail", handlers_fail, "domus log"},
    {"handlers-fail", actors_restart, "domus log"},
    {"mistakes", mistakes, "the log"},
    {"requests-fail", requests_fail, "answer"},
    {"datagrams-lost", make_looks_of_datagrams_lost, "channel: {socket: {receiveBuffer: 4MiB}}"},
    {"log-dropped", log_dropped, "log: {level: warning, queueMax: 4096}"},
    {"stalls", make_looks_of_stalls, "/stalls"},
    {"stalls", make_looks_of_one_run_goes_on, "/stalls"},
    {"stalls", make_looks_of_stalls_without_cpu, "/stalls"},
    {"handler-waits", make_looks_of_handler_waits, "domus_blocking()"},
    {"helpers-full", make_looks_of_helpers_full, "blocking: {threadsMax: 128}"},
    {"resolver-full", make_looks_of_resolver_full, "connect: {resolve: {threadsMax: 16}}"},
    {"threads-over-cpus", make_looks_of_threads_over_cpus, "system: {threads: auto}"},
    {"quota-under-threads", quota_under_threads, "system: {threads: 1}"},
    {"cpu-throttled", make_looks_of_cpu_throttled, "cpu.max"},
    {"cpu-stolen", cpu_stolen, "no key"},
    {"cpu-denied", make_looks_of_cpu_denied, "CPUs of its own"},
    {"memory-critical", make_looks_of_memory_critical, "mailboxMax: 1024}\n# the limit"},
    {"memory-critical", messages_are_refused_for_memory, "channel: {sendHigh: 64KiB}"},
    {"memory-high", make_looks_of_memory_high,
     "channel: {sendHigh: 64KiB}\nscheduler: {mailboxMax: 1024}"},
    {"memory-foreign", memory_foreign, "allocates"},
    {NULL, NULL, NULL}};
