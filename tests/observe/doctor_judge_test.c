/* The rules of the doctor at both sides of their thresholds, by made-up looks at a program. */
#include "tests/observe/advice.h"
#include "tests/observe/looks.h"
#include "tests/support/suite.h"

#include <string.h>

static domi_finding findings[DOMI_RULES_MAX];

/* --- programs that are ill if `over`, and just not ill otherwise ------------------------------ */

#define ILL(name) static void name(domt_looks *looks, bool over)
#define AT(name, figure)                                                                           \
    ILL(name)                                                                                      \
    {                                                                                              \
        figure;                                                                                    \
    }
#define COUNTERS  looks->after.threads[0].counters
#define SETTINGS  looks->after.settings
#define MACHINE   looks->after.machine
#define SECOND_NS UINT64_C(1000000000)

static void cut_short(domt_looks *looks, uint32_t iterations, uint32_t times)
{
    COUNTERS.iterations = iterations;
    COUNTERS.deadline_expiries = times;
}

ILL(io_starves_state)
{
    domt_looks_share(looks, 0, over ? 30 : 31, 0);
    cut_short(looks, 20000, 15000);
    COUNTERS.ready_ns = 8 * looks->after.threads[0].phases.state;
    SETTINGS.io_ratio = 90;
}

ILL(io_starves_few)
{
    domt_looks_share(looks, 0, 20, 0);
    cut_short(looks, 20000, 15000);
    COUNTERS.ready_ns = (over ? 8 : 7) * looks->after.threads[0].phases.state;
}

ILL(state_starves_io)
{
    domt_looks_share(looks, 0, 90, 0);
    cut_short(looks, over ? 10000 : 10100, 0);
    SETTINGS.io_ratio = 49;
}

/* With an even share phases are short, unless they are cut. */
ILL(state_is_cut_short)
{
    state_starves_io(looks, true);
    cut_short(looks, 10000, over ? 5000 : 4999);
    SETTINGS.io_ratio = 50;
}

ILL(state_has_no_deadline)
{
    domt_looks_share(looks, 0, over ? 70 : 69, 0);
    cut_short(looks, 1000, 0);
    SETTINGS.io_ratio = 100;
}

/* With auto a thread holds scheduler.waitMax: only a long one is ill. */
ILL(auto_lets_io_wait)
{
    state_is_cut_short(looks, true);
    SETTINGS.io_ratio = DOMI_LOOK_IO_RATIO_AUTO;
    SETTINGS.wait_max_ns = over ? 8000000 : 7999999;
}

ILL(auto_is_no_share_of_io)
{
    io_starves_state(looks, true);
    SETTINGS.io_ratio = over ? 50 : DOMI_LOOK_IO_RATIO_AUTO;
}

ILL(long_runs)
{
    domt_looks_share(looks, 0, 90, 0);
    cut_short(looks, 6000, 4000);
    COUNTERS.deadline_overrun_ns = 4000 * (over ? UINT64_C(1000000) : UINT64_C(999000));
}

ILL(hot_actor)
{
    domt_looks_settle(looks, 1, 0);
    domt_looks_share(looks, 0, 70, 20);
    looks->after.actors[0].counts.run_ns = SECOND_NS / 10 * (over ? 60 : 59);
}

ILL(two_hot_actors)
{
    hot_actor(looks, true);
    domt_looks_settle(looks, over ? 1 : 2, 0);
}

ILL(all_near)
{
    domt_looks_settle(looks, over ? 4 : 3, 0);
    domt_looks_share(looks, 0, 80, 10);
}

ILL(pool_full)
{
    for (uint32_t i = 0; i < 2; i++)
        looks->after.runners[i].times.run_ns = SECOND_NS / 100 * (over || i == 0 ? 950 : 949);
}

ILL(steal_unreached)
{
    domt_looks_share(looks, 0, 80, 10);
    COUNTERS.runs = 20000;
    COUNTERS.ready_ns = 8 * looks->after.threads[0].phases.state;
    COUNTERS.steals = over ? 99 : 100;
}

ILL(steal_of_short_runs)
{
    steal_unreached(looks, true);
    COUNTERS.runs = looks->after.threads[1].counters.runs = over ? 100000 : 10000000;
}

ILL(steal_off)
{
    steal_unreached(looks, true);
    SETTINGS.steal_enabled = over ? 0 : 1;
}

ILL(steal_costly)
{
    for (uint32_t i = 0; i < 2; i++)
        looks->after.threads[i].counters.runs = over ? 2001000 : 1999000; /* of 4 s each */
    COUNTERS.steals = 10000;
    SETTINGS.steal_min_run_ns = 0;
}

ILL(steals_few)
{
    steal_costly(looks, true);
    COUNTERS.steals = over ? 10000 : 9999;
}

AT(buffers_starved, COUNTERS.receivers_starved = over ? 100 : 99)

ILL(requests_full)
{
    COUNTERS.channels_busy = 100;
    domt_looks_share(looks, 1, 5, 95);
    domt_looks_share(looks, 0, 5, over ? 90 : 89);
}

ILL(small_writes)
{
    for (uint32_t i = 0; i < 2; i++)
        looks->after.threads[i].counters.completions = over ? 230000 : 229999;
    SETTINGS.no_delay = 0;
}

ILL(small_writes_of_a_listener)
{
    small_writes(looks, true);
    SETTINGS.no_delay = 1;
    SETTINGS.listener_delays = over;
}

ILL(large_writes)
{
    small_writes(looks, true);
    COUNTERS.sent_bytes = over ? 366480000 : 366480001; /* of 260,000 writes */
}

ILL(slow_readers)
{
    looks->before.threads[0].counters.queued_bytes = 30000000;
    COUNTERS.queued_bytes = over ? 20000000 : 19999999;
}

ILL(wakeups_empty)
{
    COUNTERS.wakeups_received = 4000;
    COUNTERS.wakeups_empty = over ? 2000 : 1999;
}

ILL(epoll)
{
    domi_look_copy_name(looks->after.backend, DOMI_LOOK_NAME, "epoll");
    MACHINE.cpu_ns = SECOND_NS * 2 - (over ? 0 : 1000000);
}

AT(connections_full, looks->after.ports[0].counts.open = over ? 9800 : 9799)
AT(address_share, COUNTERS.refused_by_address = over)

ILL(files_full)
{
    MACHINE.files_max = 1024;
    MACHINE.files_open = over ? 922 : 921;
}

AT(accepting_fails, COUNTERS.accept_spells = over)

ILL(connects_fail)
{
    COUNTERS.connects = over ? 6 : 7;
    COUNTERS.connects_failed = 3;
}

AT(mailbox_full, looks->after.outside.refusals = over)
AT(conversations_full, COUNTERS.conversations_full = over)
AT(timers_full, looks->after.runners[0].counters.timers_refused = over)

ILL(detached_full)
{
    looks->before.usage.detached_busy = 64;
    looks->after.usage.detached_busy = over ? 64 : 63;
}

AT(asks_expire, COUNTERS.asks_expired = over ? 100 : 99)
AT(dead_letters, COUNTERS.dead_letters = over ? 100 : 99)

ILL(mail_waits)
{
    for (uint32_t i = 0; i < 2; i++)
        looks->after.actors[i].counts.wait_ns = over ? SECOND_NS * 10 : SECOND_NS * 10 - 1;
    domt_looks_share(looks, 0, 51, 49);
}

/* Threads sleep, so it is no CPU that messages wait for. */
ILL(receiver_waits)
{
    mail_waits(looks, over);
    domt_looks_share(looks, 0, 50, 50);
}

ILL(messages_full)
{
    COUNTERS.refusals = COUNTERS.thread_max_refusals = over;
    SETTINGS.thread_max = 1 << 20;
}

AT(handlers_fail, COUNTERS.failures = over ? 100 : 99)
AT(actors_restart, COUNTERS.restarts = over ? 10 : 9)
AT(mistakes, looks->after.runners[1].counters.waits_lost = over)
AT(requests_fail, COUNTERS.channels_refused = over ? 100 : 99)

ILL(datagrams_lost)
{
    COUNTERS.datagrams_lost = over ? 60 : 59;
    COUNTERS.datagrams_dropped = 40;
}

AT(log_dropped, looks->after.outside.log_lines_dropped = over)

ILL(stalls)
{
    COUNTERS.stalls = over;
    COUNTERS.stalled_ns = 30000000;
}

ILL(one_run_goes_on)
{
    COUNTERS.wall_ns = SECOND_NS * 5 + (over ? 0 : 1000000);
    looks->after.threads[0].phases = (domi_look_phases){.state = SECOND_NS};
}

/* A thread without a CPU looks stalled, if its stalls are few. */
ILL(stalls_without_cpu)
{
    looks->after.threads[0].times.waiting_ns = SECOND_NS;
    COUNTERS.stalls = over ? 3 : 2;
    COUNTERS.stalled_ns = SECOND_NS;
}

ILL(handler_waits)
{
    domt_looks_share(looks, 0, 40, 50);
    looks->before.threads[0].times.waiting_ns = looks->after.threads[0].times.waiting_ns = 1;
    looks->after.threads[0].times.cpu_ns = 1 + SECOND_NS / 100 * (over ? 399 : 401);
}

ILL(helpers_full)
{
    looks->before.usage.helpers_busy = looks->after.usage.helpers_busy = 64;
    looks->before.usage.jobs_queued = over;
    looks->after.usage.jobs_queued = 1;
}

ILL(resolver_full)
{
    looks->before.machine.names_looked_up = MACHINE.names_looked_up = 4;
    looks->before.machine.names_queued = 1;
    MACHINE.names_queued = over;
}

ILL(threads_over_cpus)
{
    MACHINE.cpus = 1;
    MACHINE.cpu_ns = SECOND_NS / 10 * (over ? 50 : 49);
}

AT(quota_under_threads, MACHINE.quota = over ? 1000 : 1001)

ILL(cpu_throttled)
{
    MACHINE.periods = over ? 100 : 101;
    MACHINE.throttles = 5;
}

AT(cpu_stolen, MACHINE.stolen_ns = SECOND_NS * 2 - (over ? 0 : 10000000))

ILL(cpu_denied)
{
    looks->after.threads[0].times.cpu_ns = 1 + SECOND_NS * 9;
    looks->after.threads[0].times.waiting_ns = SECOND_NS / 100 * (over ? 101 : 99);
}

ILL(memory_critical)
{
    looks->after.memory = (domi_look_memory){.own_level = over ? 2 : 1, .limit_bytes = 1000000};
}

AT(messages_are_refused_for_memory, COUNTERS.busy = over)

ILL(memory_high)
{
    looks->after.memory = (domi_look_memory){.own_level = over, .limit_bytes = 1000000, .highs = 1};
}

AT(memory_foreign, looks->after.memory.highs = over)

static const struct {
    const char *rule;
    void (*make)(domt_looks *looks, bool over);
    const char *change; /* a part of the advice */
} cases[] = {
    {"io-starves-state", io_starves_state, "scheduler: {ioRatio: 45}"},
    {"io-starves-state", io_starves_few, "scheduler: {ioRatio: 25}"},
    {"state-starves-io", state_starves_io, "scheduler: {ioRatio: 50, maxBudget: 1ms}"},
    {"state-starves-io", state_is_cut_short, "scheduler: {ioRatio: 70, maxBudget: 1ms}"},
    {"state-starves-io", state_has_no_deadline, "scheduler: {ioRatio: 50, "},
    {"state-starves-io", auto_lets_io_wait, "scheduler: {waitMax: 4ms}"},
    {"io-starves-state", auto_is_no_share_of_io, "scheduler: {ioRatio: 25}"},
    {"long-runs", long_runs, "domus_blocking()"},
    {"hot-actor", hot_actor, "in the list of pools: {name: work}"},
    {"hot-actor", two_hot_actors, "router"},
    {"all-near", all_near, "DOMUS_SPREAD"},
    {"pool-full", pool_full, "in the list of pools: {name: work, runners: 5}"},
    {"steal-unreached", steal_unreached, "scheduler: {steal: {floor: 2}}"},
    {"steal-unreached", steal_of_short_runs, "floor"},
    {"steal-off", steal_off, "scheduler: {steal: {enabled: true}}"},
    {"steal-costly", steal_costly, "scheduler: {steal: {minRun: 2us}}"},
    {"steal-costly", steals_few, "minRun"},
    {"buffers-starved", buffers_starved, "io: {buffers: {count: 4096}}"},
    {"requests-full", requests_full, "channel: {requestsMax: 512}"},
    {"small-writes", small_writes, "channel: {socket: {noDelay: true}}"},
    {"small-writes", small_writes_of_a_listener, "of the listener"},
    {"small-writes", large_writes, "at once"},
    {"slow-readers", slow_readers, "channel: {sendTimeout: 5s, sendHigh: 64KiB}"},
    {"wakeups-empty", wakeups_empty, "scheduler: {idle: {standIn: 0}}"},
    {"epoll", epoll, "io: {backend: auto}"},
    {"connections-full", connections_full, "channel: {maxConnections: 20000}"},
    {"address-share", address_share, "channel: {maxPerAddress: 20%}"},
    {"files-full", files_full, "channel: {maxConnections: 819}"},
    {"files-full", accepting_fails, "fs.file-max"},
    {"connects-fail", connects_fail, "domus/connect.h"},
    {"mailbox-full", mailbox_full, "domus_ask()"},
    {"conversations-full", conversations_full, "scheduler: {conversationsMax: 262144}"},
    {"timers-full", timers_full, "scheduler: {timersMax: 16777216}"},
    {"detached-full", detached_full, "detached: {threadsMax: 128}"},
    {"asks-expire", asks_expire, "deadline"},
    {"dead-letters", dead_letters, "domus/letters.h"},
    {"mail-waits", mail_waits, "domus flame"},
    {"mail-waits", receiver_waits, "domus_barrier()"},
    {"messages-full", messages_full, "memory: {threadMax: 64MiB}"},
    {"handlers-fail", handlers_fail, "domus log"},
    {"handlers-fail", actors_restart, "domus log"},
    {"mistakes", mistakes, "the log"},
    {"requests-fail", requests_fail, "answer"},
    {"datagrams-lost", datagrams_lost, "channel: {socket: {receiveBuffer: 4MiB}}"},
    {"log-dropped", log_dropped, "log: {level: warning, queueMax: 4096}"},
    {"stalls", stalls, "/stalls"},
    {"stalls", one_run_goes_on, "/stalls"},
    {"stalls", stalls_without_cpu, "/stalls"},
    {"handler-waits", handler_waits, "domus_blocking()"},
    {"helpers-full", helpers_full, "blocking: {threadsMax: 128}"},
    {"resolver-full", resolver_full, "connect: {resolve: {threadsMax: 16}}"},
    {"threads-over-cpus", threads_over_cpus, "system: {threads: auto}"},
    {"quota-under-threads", quota_under_threads, "system: {threads: 1}"},
    {"cpu-throttled", cpu_throttled, "cpu.max"},
    {"cpu-stolen", cpu_stolen, "no key"},
    {"cpu-denied", cpu_denied, "CPUs of its own"},
    {"memory-critical", memory_critical, "mailboxMax: 1024}\n# the limit"},
    {"memory-critical", messages_are_refused_for_memory, "channel: {sendHigh: 64KiB}"},
    {"memory-high", memory_high, "channel: {sendHigh: 64KiB}\nscheduler: {mailboxMax: 1024}"},
    {"memory-foreign", memory_foreign, "allocates"},
};
#define CASES (sizeof cases / sizeof cases[0])

START_TEST(each_rule_speaks_on_one_side_of_its_threshold)
{
    for (size_t i = 0; i < CASES; i++) {
        for (int over = 0; over <= 1; over++) {
            domt_looks looks;
            domt_looks_make(&looks);
            cases[i].make(&looks, over != 0);
            uint32_t count = domt_looks_judge(&looks, findings);
            const domi_finding *found = domt_finding_of(findings, count, cases[i].rule);
            ck_assert_msg((found != NULL) == (over != 0), "case %zu, %s: %d", i, cases[i].rule,
                          over);
            ck_assert_msg(found == NULL || strstr(found->change, cases[i].change) != NULL, "%s: %s",
                          cases[i].rule, found != NULL ? found->change : "");
            if (found != NULL)
                domt_advice_holds(found, &looks.after.settings);
            ck_assert(found == NULL || found->sentence[strlen(found->sentence) - 1] == '.');
            domt_looks_free(&looks);
        }
    }
}
END_TEST

START_TEST(each_rule_has_a_case_and_all_its_words)
{
    const domi_rule *rule;
    uint32_t count = 0;

    for (; (rule = domi_rule_at(count)) != NULL; count++) {
        bool has_case = false;
        for (size_t i = 0; i < CASES; i++)
            has_case = has_case || strcmp(cases[i].rule, rule->name) == 0;
        ck_assert_msg(has_case, "%s has no case", rule->name);
        ck_assert_msg(rule->title != NULL && rule->limit != NULL && rule->cause != NULL &&
                          rule->remedy != NULL && rule->keys != NULL,
                      "%s", rule->name);
        ck_assert(strspn(rule->name, "abcdefghijklmnopqrstuvwxyz-") == strlen(rule->name));
    }
    ck_assert_uint_lt(count, DOMI_RULES_MAX);
}
END_TEST

START_TEST(nothing_is_said_of_healthy_programs)
{
    static const uint32_t shares[][4] = {
        {40, 50, 40, 50}, {0, 100, 0, 100}, {50, 0, 50, 0}, {95, 0, 95, 0}, {100, 0, 100, 0},
    };

    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        domt_looks looks;
        domt_looks_make(&looks);
        for (uint32_t thread = 0; thread < 2; thread++)
            domt_looks_share(&looks, thread, shares[i][2 * thread], shares[i][2 * thread + 1]);
        uint32_t count = domt_looks_judge(&looks, findings);
        ck_assert_msg(count == 0, "%zu: %s", i, findings[0].rule->name);
        domt_looks_free(&looks);
    }
}
END_TEST

START_TEST(the_worst_is_told_first)
{
    domt_looks looks;

    domt_looks_make(&looks);
    epoll(&looks, true);
    stalls(&looks, true);
    mailbox_full(&looks, true);
    mail_waits(&looks, true);
    ck_assert_uint_eq(domt_looks_judge(&looks, findings), 4);
    for (uint32_t i = 1; i < 4; i++)
        ck_assert_int_ge(findings[i - 1].rule->harm, findings[i].rule->harm);
    ck_assert_str_eq(findings[0].rule->name, "mailbox-full");
    ck_assert_str_eq(findings[3].rule->name, "epoll");
    domt_looks_free(&looks);
}
END_TEST

DOMT_MAIN("doctor_judge", 60, each_rule_speaks_on_one_side_of_its_threshold,
          each_rule_has_a_case_and_all_its_words, nothing_is_said_of_healthy_programs,
          the_worst_is_told_first)
