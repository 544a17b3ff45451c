/* Rules about work that waits although no actor is busy: stalls, handlers that block, and full
 * queues of helper threads. */
#include "protocols/observe/doctor/say.h"

/* share of a thread's time in which it neither runs nor sleeps nor waits for a CPU, from which on
 * it counts as blocked */
#define BLOCKED 0.1
/* share of a thread's time without a CPU, from which on the machine may be the reason, and not a
 * handler */
#define DENIED 0.1
/* Bounds for a thread that was without a CPU: its handlers are to blame only if it had at least so
 * many stalls, and these took at least this part of the time without a CPU, because single time
 * slices do not cause that. */
#define STALLS_LEAST 3u
#define STALLED      0.7
/* share of a span that a thread spends in one run, from which on it counts as stuck */
#define STUCK 0.5
#define ALIKE 0.02

#define STALL_ADVICE                                                                               \
    "let domus_blocking() or a pool do what takes so long; /stalls names the behaviour and the "   \
    "functions"

/* --- stalls ----------------------------------------------------------------------------------- */

/* Returns whether a thread's stalls are explained by the CPU that it did not get. */
static bool are_stalls_explained_by_denied_cpu(const domi_span_thread *thread)
{
    uint64_t stalls = thread->counters.stalls;

    return thread->denied >= DENIED &&
           (stalls < STALLS_LEAST ||
            domi_span_quotient_of_counts(thread->counters.stalled_ns, thread->counters.wall_ns) <
                STALLED * thread->denied);
}

/* Returns whether profile.level seems to have been off for a part of the span: then nothing was
 * counted, and all of several threads look as if they had been in one run for the same time. (With
 * one thread that cannot be told from a long run.) */
static bool was_profile_level_off(const domi_span *span)
{
    double least = 1, most = 0;

    for (uint32_t i = 0; i < span->thread_count; i++) {
        double open = span->threads[i].open;
        least = open < least ? open : least;
        most = open > most ? open : most;
    }
    return span->thread_count > 1 && least >= STUCK && most - least < ALIKE && most < 1;
}

/* Judge whether a thread was stuck in one run for most of the span. Nothing of such a run is
 * counted before it ends. */
static bool judge_thread_stuck_in_run(const domi_span *span, domi_finding *finding)
{
    for (uint32_t i = 0; i < span->thread_count && !was_profile_level_off(span); i++) {
        if (span->threads[i].open < STUCK)
            continue;
        domi_finding_advise_in_words(finding, STALL_ADVICE);
        return domi_finding_write_sentence(
            finding,
            "Thread %u has been in one run of an actor for %s or more, which "
            "goes on.",
            i, domi_format_time_as_word(span->threads[i].open * span->seconds * 1e9).at);
    }
    return false;
}

static bool judge_stalls_of_threads(const domi_span *span, domi_finding *finding)
{
    uint64_t stalls = 0, stalled_ns = 0;

    if (judge_thread_stuck_in_run(span, finding))
        return true;
    for (uint32_t i = 0; i < span->thread_count; i++) {
        if (are_stalls_explained_by_denied_cpu(&span->threads[i]))
            continue;
        stalls += span->threads[i].counters.stalls;
        stalled_ns += span->threads[i].counters.stalled_ns;
    }
    if (stalls == 0)
        return false;
    domi_finding_advise_in_words(finding, STALL_ADVICE);
    return domi_finding_write_sentence(
        finding,
        "An actor has held up its thread for more than stall.threshold (%s) %s times in "
        "%s, for %s in all.",
        domi_format_time_as_word((double)span->after->settings.stall_ns).at,
        domi_format_amount_as_word((double)stalls).at,
        domi_format_time_as_word(span->seconds * 1e9).at,
        domi_format_time_as_word((double)stalled_ns).at);
}

/* --- handlers that wait ----------------------------------------------------------------------- */

/* Returns the share of a span that the hypervisor took, as if it took it from one CPU only. */
static double share_of_cpu_stolen_by_host(const domi_span *span)
{
    return (double)span->machine.stolen_ns / 1e9 / span->seconds;
}

/* Returns the share of a span in which a thread was blocked: it was in no enter of the kernel's
 * ring, had no CPU, and did not want one. Time that the hypervisor took is left out. It is 0 if one
 * of these figures is unknown. */
static double share_of_thread_blocked(const domi_span *span, const domi_span_thread *thread)
{
    if (thread->cpu < 0 || !thread->tells_denied)
        return 0;
    return 1 - thread->asleep - thread->cpu - thread->denied - share_of_cpu_stolen_by_host(span);
}

static bool judge_blocked_threads(const domi_span *span, domi_finding *finding)
{
    for (uint32_t i = 0; i < span->thread_count; i++) {
        double blocked = share_of_thread_blocked(span, &span->threads[i]);
        if (blocked < BLOCKED || span->threads[i].denied >= blocked)
            continue;
        domi_finding_advise_in_words(
            finding, "let domus_blocking() make calls that wait (domus/blocking.h), and "
                     "take no lock that others hold while they wait; domus trace shows "
                     "which runs these are");
        return domi_finding_write_sentence(
            finding,
            "Handlers on thread %u wait in system calls for %s of its time, "
            "in which it can do nothing else.",
            i, domi_format_share_as_percent(blocked).at);
    }
    return false;
}

/* --- helper threads --------------------------------------------------------------------------- */

static bool are_helper_threads_full(const domi_look *look)
{
    return look->settings.helpers_max != 0 && look->usage.jobs_queued != 0 &&
           look->usage.helpers_busy >= look->settings.helpers_max;
}

static bool judge_full_helper_threads(const domi_span *span, domi_finding *finding)
{
    uint64_t most = span->after->settings.helpers_max;

    if (!are_helper_threads_full(span->before) || !are_helper_threads_full(span->after))
        return false;
    domi_finding_advise_value_of_key(
        finding, "blocking.threadsMax", "%u",
        (unsigned)domi_clamp_double_to_whole_number((double)most * 2, 1, 1024));
    return domi_finding_write_sentence(
        finding,
        "All %u helper threads are busy, and %u functions of domus_blocking() "
        "wait for one.",
        (unsigned)most, (unsigned)span->after->usage.jobs_queued);
}

static bool are_name_lookups_full(const domi_look *look)
{
    return look->settings.names_max != 0 && look->machine.names_queued != 0 &&
           look->machine.names_looked_up >= look->settings.names_max;
}

static bool judge_full_name_lookups(const domi_span *span, domi_finding *finding)
{
    uint64_t most = span->after->settings.names_max;

    if (!are_name_lookups_full(span->before) || !are_name_lookups_full(span->after))
        return false;
    domi_finding_advise_value_of_key(
        finding, "connect.resolve.threadsMax", "%u",
        (unsigned)domi_clamp_double_to_whole_number((double)most * 4, 1, 64));
    return domi_finding_write_sentence(
        finding,
        "%u names are looked up, which is the most at a time, and %u wait for "
        "that.",
        (unsigned)most, (unsigned)span->after->machine.names_queued);
}

const domi_rule domi_rules_of_waits[] = {
    {.name = "stalls",
     .title = "Stalls",
     .keys = "stall.threshold",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_stalls_of_threads,
     .limit =
         "A thread runs one actor at a time, and never interrupts it, so all that it has to do "
         "comes late by the length of a stall.",
     .cause =
         "A handler computes for long, or waits for a lock, a file or a peer. Seen by: any run "
         "of more than stall.threshold on a thread that has its CPU (else see cpu-denied).",
     .remedy = "Let domus_blocking() or a pool do such work. A run counts as a stall when it lasts "
               "longer than stall.threshold."},
    {.name = "handler-waits",
     .title = "Handlers that wait in system calls",
     .keys = "",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_blocked_threads,
     .limit =
         "A thread that waits in a call of a handler runs no other actor and no io, though its "
         "CPU is free.",
     .cause =
         "A handler reads a file, takes a lock, sleeps, or asks a client library. Seen by: 10 % "
         "or more of a thread's time in which it is neither on a CPU, nor asleep in its ring, "
         "nor ready and without a CPU, beside what a hypervisor took; if the kernel tells of it.",
     .remedy = "Let domus_blocking() make the call, or use the library's own files (domus/file.h), "
               "connects and timers. Hold no lock that handlers take while waiting for something "
               "else."},
    {.name = "helpers-full",
     .title = "Helper threads are all busy",
     .keys = "blocking.threadsMax",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_full_helper_threads,
     .limit = "Functions of domus_blocking() run on at most blocking.threadsMax threads, and the "
              "others wait in their queue.",
     .cause =
         "More calls that wait than threads for them. Seen by: all threads busy and a queue, at "
         "both looks.",
     .remedy =
         "Raise blocking.threadsMax, if the functions wait; if they compute, more threads than "
         "CPUs bring nothing: use a pool (domus/pools.h)."},
    {.name = "resolver-full",
     .title = "Names wait to be looked up",
     .keys = "connect.resolve.threadsMax, connect.resolve.cacheTime",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_full_name_lookups,
     .limit =
         "At most connect.resolve.threadsMax names are looked up at a time, and each connect to "
         "another name waits for that.",
     .cause = "A server of names that is slow or does not answer, or very many names. Seen by: as "
              "many names under way as there may be, and a queue, at both looks.",
     .remedy = "Raise connect.resolve.threadsMax or connect.resolve.cacheTime, and look at "
               "/etc/resolv.conf."},
    {.name = NULL}};
