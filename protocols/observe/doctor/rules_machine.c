/* Rules about CPU time that the machine withholds: CPUs that other programs use, quotas, and too
 * many threads. */
#include "protocols/observe/doctor/say.h"

/* share of the time in which a thread wanted a CPU and had none, from which on it is reported */
#define DENIED 0.1
/* share of a thread's time in which it must want a CPU so that the lack of CPUs matters */
#define WANTED 0.05
/* share of the time of all CPUs that the hypervisor took, from which on it is reported */
#define STOLEN 0.05
/* share of the quota's periods that were throttled, from which on it is visible in the 95th
 * percentile */
#define THROTTLED   0.05
#define STOPS_LEAST 3u /* number of throttled periods below which they show no pattern */
/* share of the CPUs, or of the quota, that a program must want so that their number matters */
#define USED        0.5
#define QUOTA_WHOLE 1000 /* the quota of one CPU, in thousandths of a CPU */

static unsigned whole_cpus_of_thousandths(uint64_t thousandths)
{
    uint64_t cpus = (thousandths + QUOTA_WHOLE - 1) / QUOTA_WHOLE;

    return (unsigned)domi_clamp_double_to_whole_number((double)cpus, 1, 1024);
}

/* --- more threads than CPUs ------------------------------------------------------------------- */

/* Returns how many CPUs the program's threads use, together with those that they wanted and did not
 * get. */
static double count_cpus_wanted(const domi_span *span)
{
    double denied = 0;

    for (uint32_t i = 0; i < span->thread_count; i++)
        denied += span->threads[i].denied;
    return span->cpus_used + denied;
}

static bool has_more_threads_than_cpus(const domi_span *span)
{
    uint64_t cpus = span->after->machine.cpus;

    return span->thread_count > cpus && count_cpus_wanted(span) >= USED * (double)cpus;
}

static bool judge_number_of_threads(const domi_span *span, domi_finding *finding)
{
    if (!has_more_threads_than_cpus(span))
        return false;
    domi_finding_advise_value_of_key(finding, "system.threads", "auto");
    return domi_finding_write_sentence(
        finding,
        "There are %u threads and %u CPUs for them, of which the program uses "
        "%s.",
        (unsigned)span->thread_count, (unsigned)span->after->machine.cpus,
        domi_format_amount_as_word(span->cpus_used).at);
}

static bool has_more_threads_than_quota(const domi_span *span)
{
    uint64_t quota = span->after->machine.quota;

    return quota != 0 && span->thread_count > whole_cpus_of_thousandths(quota) &&
           count_cpus_wanted(span) >= USED * (double)quota / QUOTA_WHOLE;
}

static bool judge_quota_below_threads(const domi_span *span, domi_finding *finding)
{
    uint64_t quota = span->after->machine.quota;

    if (!has_more_threads_than_quota(span))
        return false;
    domi_finding_advise_value_of_key(finding, "system.threads", "%u",
                                     whole_cpus_of_thousandths(quota));
    return domi_finding_write_sentence(
        finding,
        "There are %u threads, and the quota of the cgroup is %s CPUs, of "
        "which the program uses %s.",
        (unsigned)span->thread_count, domi_format_amount_as_word((double)quota / QUOTA_WHOLE).at,
        domi_format_amount_as_word(span->cpus_used).at);
}

/* --- time that was taken away ----------------------------------------------------------------- */

static bool judge_throttled_periods(const domi_span *span, domi_finding *finding)
{
    const domi_look_machine *in = &span->machine;

    if (in->throttles < STOPS_LEAST ||
        domi_span_quotient_of_counts(in->throttles, in->periods) < THROTTLED)
        return false;
    if (has_more_threads_than_quota(span))
        domi_finding_advise_value_of_key(finding, "system.threads", "%u",
                                         whole_cpus_of_thousandths(span->after->machine.quota));
    domi_finding_advise_in_words(finding,
                                 "raise the quota of the cgroup (CPUQuota= of systemd, cpu.max)");
    return domi_finding_write_sentence(
        finding,
        "The cgroup was stopped at its quota of %s CPUs in %s of %s periods, "
        "for %s of CPU time in all.",
        domi_format_amount_as_word((double)span->after->machine.quota / QUOTA_WHOLE).at,
        domi_format_amount_as_word((double)in->throttles).at,
        domi_format_amount_as_word((double)in->periods).at,
        domi_format_time_as_word((double)in->throttled_ns).at);
}

static bool judge_cpu_time_stolen_by_host(const domi_span *span, domi_finding *finding)
{
    double cpus = (double)span->after->machine.cpus_online;
    double share = cpus > 0 ? (double)span->machine.stolen_ns / 1e9 / span->seconds / cpus : 0;

    if (share < STOLEN)
        return false;
    domi_finding_advise_in_words(finding,
                                 "no key helps: the host runs too many machines, or this one has "
                                 "used up its credits");
    return domi_finding_write_sentence(
        finding,
        "The hypervisor has given %s of the time of the machine's %u CPUs to "
        "others.",
        domi_format_share_as_percent(share).at, (unsigned)cpus);
}

/* Find the thread that was denied a CPU for the largest share of the time in which it wanted one.
 * Returns that share. */
static double find_thread_denied_cpu_most(const domi_span *span, uint32_t *ret_thread)
{
    double most = 0;

    for (uint32_t i = 0; i < span->thread_count; i++) {
        const domi_span_thread *thread = &span->threads[i];
        double wanted = thread->denied + (thread->cpu > 0 ? thread->cpu : 0);
        if (wanted < WANTED || thread->denied / wanted <= most)
            continue;
        most = thread->denied / wanted;
        *ret_thread = i;
    }
    return most;
}

static bool judge_thread_denied_cpu(const domi_span *span, domi_finding *finding)
{
    uint32_t thread = 0;
    double share = find_thread_denied_cpu_most(span, &thread);

    if (share < DENIED || has_more_threads_than_cpus(span) || has_more_threads_than_quota(span))
        return false;
    domi_finding_advise_in_words(finding,
                                 "give the program CPUs of its own (AllowedCPUs= of systemd, "
                                 "taskset), or stop what else runs there");
    return domi_finding_write_sentence(
        finding,
        "Thread %u had to wait for a CPU for %s of the time in which it wanted one; the "
        "program itself uses %s of %u CPUs.",
        thread, domi_format_share_as_percent(share).at,
        domi_format_amount_as_word(span->cpus_used).at, (unsigned)span->after->machine.cpus);
}

const domi_rule domi_rules_of_machine[] = {
    {.name = "threads-over-cpus",
     .title = "More threads than CPUs",
     .keys = "system.threads",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_number_of_threads,
     .limit = "Two threads on one CPU take it from each other for milliseconds at a time, and a "
              "message between them waits for as long.",
     .cause = "system.threads is a count that is too high for this machine. Seen by: more threads "
              "than usable CPUs, of which at least half are used.",
     .remedy = "Set system.threads to auto, which is one thread for each usable CPU."},
    {.name = "quota-under-threads",
     .title = "A quota below the threads",
     .keys = "system.threads",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_quota_below_threads,
     .limit = "When the threads together have used the quota, the kernel stops all of them for the "
              "rest of its period, up to 100 ms.",
     .cause = "system.threads is a count that is higher than the CPUs of the cgroup's quota. Seen "
              "by: the quota, if at least half of it is used.",
     .remedy = "Set system.threads to auto, which follows the quota, or to that number."},
    {.name = "cpu-throttled",
     .title = "The cgroup is stopped at its quota",
     .keys = "system.threads",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_throttled_periods,
     .limit = "A cgroup that has used its quota does nothing at all until the next period begins.",
     .cause = "The program, or another one of its cgroup, uses more CPU than the quota. Seen by: 3 "
              "periods of the quota or more in which the kernel has stopped it, which are 5 % or "
              "more of "
              "those in which it wanted a CPU.",
     .remedy =
         "Raise the quota, or use fewer threads, so that it is used up later in each period."},
    {.name = "cpu-stolen",
     .title = "The hypervisor takes CPU time",
     .keys = "",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_cpu_time_stolen_by_host,
     .limit = "A CPU of a virtual machine that the host gives to others stands still, and so does "
              "the thread on it.",
     .cause =
         "The host has more machines than CPUs, or this one has a quota there. Seen by: 5 % of "
         "the time of all CPUs or more in `steal` of /proc/stat.",
     .remedy = "Ask for another host or a larger machine. No key helps."},
    {.name = "cpu-denied",
     .title = "Others take the CPU",
     .keys = "",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_thread_denied_cpu,
     .limit = "A thread is pinned to its CPU, and waits for it while another process runs there.",
     .cause =
         "Other processes, or helper threads and pools of this one, run on the same CPUs. Seen "
         "by: 10 % or more of the time in which a thread wanted a CPU and had none (schedstat "
         "of the kernel), without more threads than CPUs or a small quota as the reason.",
     .remedy =
         "Give the program CPUs of its own, or stop what else runs there. No figure of a thread "
         "is to be trusted meanwhile, because phases are wall time."},
    {.name = NULL}};
