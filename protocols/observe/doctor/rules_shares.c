/* Rules about the time of one thread: how io and state actors share it, and runs of actors that
 * take too long. */
#include "protocols/observe/doctor/say.h"

/* busy share of a thread from which on io and state actors have to share a full thread */
#define FULL 0.9
/* share of the iterations in which state actors are cut off, from which on they have too little
 * time */
#define CUT_SHORT 0.5
/* iterations a second with cut-off state actors below which they show no pattern */
#define CUTS_LEAST 5.0
/* Share of a thread's time below which state actors have too little: with ioRatio 50 they have
 * about half of it while both sides want more, and at least a third when io takes what it needs for
 * each message. */
#define STATE_SMALL 0.3
/* share of a thread's time from which on state actors may keep io waiting */
#define STATE_LARGE 0.5
/* number of actors that are ready at the same time, from which on an actor waits longer than a few
 * runs */
#define WAITING 8.0
/* ns that io's completions wait for a phase of state actors, from which on this is long; with
 * ioRatio 50 and short runs it is about 100 us. */
#define BEHIND_LONG 1e6
/* the ioRatio with which the phases of io and of state actors are equally long */
#define EVEN 50
/* Runs in a phase of state actors below which a ratio has no effect, because a run cannot be
 * interrupted. */
#define RUNS_LEAST 4.0
/* ns of a phase's smallest budget, from which on io has to wait for it */
#define BUDGET_LONG UINT64_C(500000)
/* completions a second from which on there is io that waits */
#define IO_LEAST 20.0
/* threshold of the rule: runs are too long if they exceed their phase's deadline by this many ns on
 * average */
#define OVERRUN_LONG 1e6
/* threshold of the rule: runs are too long if they exceed their phase's deadline by this share of
 * an iteration */
#define OVERRUN_PART 0.5
#define RUN_WANTED   5e5 /* ns of a run at which the advice of this rule aims */
/* share of scheduler.waitMax for which io waits at most, if ioRatio is `auto` */
#define WAIT_PART 0.25
/* ns of a wait of io that is longer than any with the default waitMax of 4 ms */
#define WAIT_LONG 2e6

/* Returns the mean time by which a thread's phase of state actors exceeds its deadline, without the
 * time in which other programs had the CPU. */
static double mean_overrun_of_state_phase(const domi_span_thread *thread)
{
    const domi_look_counters *counters = &thread->counters;

    return domi_span_quotient_of_counts(counters->deadline_overrun_ns,
                                        counters->deadline_expiries) *
           thread->had_cpu;
}

static double mean_length_of_iteration(const domi_look_counters *counters)
{
    return domi_span_quotient_of_counts(counters->wall_ns, counters->iterations);
}

/* Returns whether a thread's phases of state actors are long because of their last runs, and not
 * because of their budget. */
static bool are_phases_long_by_last_runs(const domi_span_thread *thread)
{
    double overrun = mean_overrun_of_state_phase(thread);

    return overrun >= OVERRUN_LONG &&
           overrun >= OVERRUN_PART * mean_length_of_iteration(&thread->counters) * thread->had_cpu;
}

static bool are_state_phases_cut_short(const domi_span *span, const domi_look_counters *counters)
{
    return domi_span_count_to_events_a_second(span, counters->deadline_expiries) >= CUTS_LEAST &&
           domi_span_quotient_of_counts(counters->deadline_expiries, counters->iterations) >=
               CUT_SHORT;
}

static bool has_io_completions(const domi_span *span, const domi_look_counters *counters)
{
    return domi_span_count_to_events_a_second(
               span, domi_span_growth_of_counter(counters->completions,
                                                 counters->wakeups_received)) >= IO_LEAST;
}

/* Returns whether scheduler.ioRatio is `auto`: the thread measures how long both sides wait,
 * instead of using a fixed ratio. */
static bool is_io_ratio_auto(const domi_look_settings *settings)
{
    return settings->io_ratio == DOMI_LOOK_IO_RATIO_AUTO;
}

/* --- io takes the time of state actors -------------------------------------------------------- */

static bool are_state_actors_starved_by_io(const domi_span *span, const domi_span_thread *thread)
{
    return thread->busy >= FULL && thread->state <= STATE_SMALL && thread->ready >= WAITING &&
           are_state_phases_cut_short(span, &thread->counters);
}

static bool judge_io_starves_state(const domi_span *span, domi_finding *finding)
{
    uint64_t ratio = span->after->settings.io_ratio;

    if (is_io_ratio_auto(&span->after->settings))
        /* with an ioRatio of `auto`, state actors get the time that waitMax demands */
        return false;
    for (uint32_t i = 0; i < span->thread_count && ratio > 1; i++) {
        const domi_span_thread *thread = &span->threads[i];
        if (!are_state_actors_starved_by_io(span, thread))
            continue;
        domi_finding_advise_value_of_key(
            finding, "scheduler.ioRatio", "%u",
            (unsigned)domi_clamp_double_to_whole_number((double)ratio / 2, 1, 50));
        return domi_finding_write_sentence(
            finding,
            "Thread %u is busy all the time, its state actors get %s of it, and %s of them wait "
            "for their turn on average, because scheduler.ioRatio is %u.",
            i, domi_format_share_as_percent(thread->state).at,
            domi_format_amount_as_word(thread->ready).at, (unsigned)ratio);
    }
    return false;
}

/* --- state actors take the time of io --------------------------------------------------------- */

/* Returns an upper bound of how long io waits for state actors on average. Completions during a
 * phase count by the phase's length, so long phases weigh more. */
static double mean_wait_behind_state_actors(const domi_look_counters *counters)
{
    return domi_span_quotient_of_counts(
        counters->io_behind_ns,
        domi_span_growth_of_counter(counters->completions, counters->wakeups_received));
}

/* Returns whether runs are so short that a phase of state actors consists of several, between which
 * a deadline can end it. */
static bool are_runs_short_within_phase(const domi_span *span, const domi_span_thread *thread)
{
    double state_ns = thread->state * 1e9 * span->seconds;

    return state_ns * RUNS_LEAST <=
           mean_wait_behind_state_actors(&thread->counters) * (double)thread->counters.runs;
}

static bool is_io_starved_by_state_actors(const domi_span *span, const domi_span_thread *thread)
{
    const domi_look_settings *settings = &span->after->settings;
    /* With a smaller ratio most phases of state actors would end because nothing is left to do, and
     * with 100 they have no deadline. */
    bool has_to_be_cut =
        is_io_ratio_auto(settings) || (settings->io_ratio >= EVEN && settings->io_ratio < 100);

    if (is_io_ratio_auto(settings) && WAIT_PART * (double)settings->wait_max_ns < WAIT_LONG)
        /* with an ioRatio of `auto`, io waits no longer than scheduler.waitMax allows */
        return false;
    return thread->state >= STATE_LARGE && has_io_completions(span, &thread->counters) &&
           mean_wait_behind_state_actors(&thread->counters) >= BEHIND_LONG &&
           are_runs_short_within_phase(span, thread) &&
           (!has_to_be_cut || are_state_phases_cut_short(span, &thread->counters)) &&
           !are_phases_long_by_last_runs(thread);
}

static domi_word write_io_ratio(const domi_look_settings *settings)
{
    return is_io_ratio_auto(settings) ? (domi_word){"auto"}
                                      : domi_format_amount_as_word((double)settings->io_ratio);
}

static void advise_more_time_for_io(const domi_look_settings *settings, domi_finding *finding)
{
    if (is_io_ratio_auto(settings)) {
        domi_finding_advise_value_of_key(finding, "scheduler.waitMax", "4ms");
        return;
    }
    if (settings->io_ratio < EVEN || settings->io_ratio == 100)
        domi_finding_advise_value_of_key(finding, "scheduler.ioRatio", "50");
    else
        domi_finding_advise_value_of_key(
            finding, "scheduler.ioRatio", "%u",
            (unsigned)domi_clamp_double_to_whole_number((double)settings->io_ratio + 20, 60, 95));
    if (settings->min_budget_busy_ns > BUDGET_LONG)
        domi_finding_advise_value_of_key(finding, "scheduler.minBudgetBusy", "50us");
    if (settings->min_budget_ns > BUDGET_LONG)
        domi_finding_advise_value_of_key(finding, "scheduler.minBudget", "50us");
    if (settings->max_budget_ns > 1000000)
        domi_finding_advise_value_of_key(finding, "scheduler.maxBudget", "1ms");
}

static bool judge_state_starves_io(const domi_span *span, domi_finding *finding)
{
    for (uint32_t i = 0; i < span->thread_count; i++) {
        const domi_span_thread *thread = &span->threads[i];
        if (!is_io_starved_by_state_actors(span, thread))
            continue;
        advise_more_time_for_io(&span->after->settings, finding);
        return domi_finding_write_sentence(
            finding,
            "State actors take %s of thread %u, and io waits for phases of theirs that take %s on "
            "average, with scheduler.ioRatio %s.",
            domi_format_share_as_percent(thread->state).at, i,
            domi_format_time_as_word(mean_wait_behind_state_actors(&thread->counters)).at,
            write_io_ratio(&span->after->settings).at);
    }
    return false;
}

/* --- runs that are too long for any deadline -------------------------------------------------- */

/* Find the behaviour of state actors with the longest runs, among behaviours that take a noticeable
 * share of the time. */
static const domi_span_actors *find_behaviour_with_longest_runs(const domi_span *span)
{
    const domi_span_actors *longest = NULL;

    for (uint32_t i = 0; i < span->actors_count; i++) {
        const domi_span_actors *one = &span->actors[i];
        if (one->is_channels || one->pool[0] != '\0' ||
            (double)one->run_ns < 0.05e9 * span->seconds)
            continue;
        if (longest == NULL || domi_span_quotient_of_counts(one->run_ns, one->runs) >
                                   domi_span_quotient_of_counts(longest->run_ns, longest->runs))
            longest = one;
    }
    return longest;
}

static void advise_for_long_runs(const domi_span *span, const domi_span_actors *longest,
                                 domi_finding *finding)
{
    double messages =
        longest != NULL ? domi_span_quotient_of_counts(longest->messages, longest->runs) : 0;
    double message_ns =
        longest != NULL ? domi_span_quotient_of_counts(longest->run_ns, longest->messages) : 0;

    if (messages >= 4 && message_ns > 0 && span->after->settings.messages_per_run > 1)
        domi_finding_advise_value_of_key(
            finding, "scheduler.maxMessagesPerRun", "%u",
            (unsigned)domi_clamp_double_to_whole_number(RUN_WANTED / message_ns, 1,
                                                        span->after->settings.messages_per_run));
    else
        domi_finding_advise_in_words(finding,
                                     "give these actors a pool (domus/pools.h), or their work to "
                                     "domus_blocking()");
}

static bool judge_long_runs(const domi_span *span, domi_finding *finding)
{
    for (uint32_t i = 0; i < span->thread_count; i++) {
        const domi_span_thread *thread = &span->threads[i];
        const domi_look_counters *counters = &thread->counters;
        if (!are_state_phases_cut_short(span, counters) || !are_phases_long_by_last_runs(thread) ||
            thread->state < STATE_LARGE)
            continue;
        const domi_span_actors *longest = find_behaviour_with_longest_runs(span);
        advise_for_long_runs(span, longest, finding);
        return domi_finding_write_sentence(
            finding,
            "On thread %u runs go on for %s beyond the end of their phase on average; those of %s "
            "are the longest.",
            i, domi_format_time_as_word(mean_overrun_of_state_phase(thread)).at,
            longest != NULL ? longest->name : "(unknown)");
    }
    return false;
}

const domi_rule domi_rules_of_shares[] = {
    {.name = "io-starves-state",
     .title = "io takes the time of state actors",
     .keys = "scheduler.ioRatio",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_io_starves_state,
     .limit = "The thread has no time left, and io gets the share of it that scheduler.ioRatio "
              "gives it, so what state actors can do in a second is bounded by the rest.",
     .cause =
         "scheduler.ioRatio is the share of a busy thread's time that io gets. With a high one "
         "connections are read faster than their requests are handled: state actors are ready, "
         "and each of their phases ends by its deadline. Seen by: a thread without sleep, of "
         "which the phase `state` is at most 30 %, most of whose iterations end by the deadline, "
         "with 8 or more actors waiting. Silent with auto.",
     .remedy = "Lower scheduler.ioRatio. Bytes then wait a little longer to be read, and what is "
               "read is answered sooner."},
    {.name = "state-starves-io",
     .title = "State actors take the time of io",
     .keys = "scheduler.ioRatio, scheduler.minBudget, scheduler.minBudgetBusy, "
             "scheduler.maxBudget, scheduler.waitMax",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_state_starves_io,
     .limit =
         "Nobody reads from sockets and no timer fires while a phase of state actors lasts, so "
         "each byte comes as late as that.",
     .cause =
         "With a low scheduler.ioRatio, or with 100, which sets no deadline, state actors run "
         "for up to scheduler.maxBudget before io comes again. Seen by: half of the time or more "
         "in the phase `state`, and completions (20 a second or more) that wait for phases of "
         "1 ms or more on average, of 4 runs or more. With an ioRatio of auto only if "
         "scheduler.waitMax is 8 ms or more.",
     .remedy = "Raise scheduler.ioRatio, or lower scheduler.maxBudget. State actors are then cut "
               "short more often, which costs some microseconds each time."},
    {.name = "long-runs",
     .title = "Runs that are too long for their phase",
     .keys = "scheduler.maxMessagesPerRun, pools",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_long_runs,
     .limit = "A run is never interrupted, so no value of scheduler.ioRatio or scheduler.maxBudget "
              "makes a phase shorter than its last run.",
     .cause = "An actor handles up to scheduler.maxMessagesPerRun messages in a run, or a single "
              "message takes long. Seen by: phases of state actors that go on for 1 ms or more "
              "beyond their deadline on average, at least 5 times a second.",
     .remedy = "If the messages are many, lower scheduler.maxMessagesPerRun; if one of them takes "
               "long, give the actors a pool (domus/pools.h), where they hold up no io, or let "
               "domus_blocking() do that work."},
    {.name = NULL}};
