/* Rules about stealing: idle threads that take no actors of others, and loans of actors that gain
 * nothing. */
#include "protocols/observe/doctor/say.h"

/* difference between the busy shares of the busiest and the least busy thread, from which on they
 * are uneven */
#define UNEVEN 0.4
#define LOADED 0.7 /* busy share of the busiest thread from which on stealing should help it */
/* mean number of ready actors on the busiest thread, from which on there are some to steal */
#define WAITING 2.0
#define FEW     10.0 /* steals a second below which idle threads take next to none */
/* steals a second from which on they cost at least a thousandth of a thread */
#define MANY 1000.0
/* ns of a run below which a loan of the actor gains nothing: it costs about a microsecond on both
 * sides together (docs/decisions/threads.md). */
#define WORTH_NS 2000.0

/* Returns the mean length of a run over all threads, in ns of CPU time. */
static double mean_length_of_run(const domi_span *span)
{
    double ns = 0, runs = 0;

    for (uint32_t i = 0; i < span->thread_count; i++) {
        const domi_span_thread *thread = &span->threads[i];
        ns +=
            (thread->state + thread->channels) * (double)thread->counters.wall_ns * thread->had_cpu;
        runs += (double)thread->counters.runs;
    }
    return runs > 0 ? ns / runs : 0;
}

static bool are_threads_unevenly_busy(const domi_span *span)
{
    if (span->thread_count < 2)
        return false;
    const domi_span_thread *most = &span->threads[span->busiest];
    return most->busy >= LOADED && most->busy - span->threads[span->idlest].busy >= UNEVEN &&
           most->ready >= WAITING && domi_span_count_to_events_a_second(span, span->steals) < FEW;
}

static bool write_sentence_of_uneven_threads(const domi_span *span, const char *why,
                                             domi_finding *finding)
{
    const domi_span_thread *most = &span->threads[span->busiest];

    return domi_finding_write_sentence(
        finding,
        "Thread %u is busy for %s of its time, with %s actors waiting on average, and "
        "thread %u for %s, which takes none of them, because %s.",
        span->busiest, domi_format_share_as_percent(most->busy).at,
        domi_format_amount_as_word(most->ready).at, span->idlest,
        domi_format_share_as_percent(span->threads[span->idlest].busy).at, why);
}

static bool judge_ready_actors_not_stolen(const domi_span *span, domi_finding *finding)
{
    const domi_look_settings *settings = &span->after->settings;

    if (!are_threads_unevenly_busy(span) || settings->steal_enabled == 0 ||
        mean_length_of_run(span) < (double)settings->steal_min_run_ns)
        return false;
    double ready = span->threads[span->busiest].ready;
    if (ready <= (double)settings->steal_floor) {
        domi_finding_advise_value_of_key(
            finding, "scheduler.steal.floor", "%u",
            (unsigned)domi_clamp_double_to_whole_number(ready / 4, 1, 32));
        return write_sentence_of_uneven_threads(
            span, "scheduler.steal.floor keeps more than that for its thread", finding);
    }
    if (settings->steal_aggression <= 128)
        /* stealing is allowed, so the ready actors are pinned, or watch descriptors, and cannot
         * be stolen */
        return false;
    domi_finding_advise_value_of_key(finding, "scheduler.steal.aggression", "128");
    return write_sentence_of_uneven_threads(span, "scheduler.steal.aggression lets it wait",
                                            finding);
}

static bool judge_disabled_stealing(const domi_span *span, domi_finding *finding)
{
    if (!are_threads_unevenly_busy(span) || span->after->settings.steal_enabled != 0 ||
        mean_length_of_run(span) < WORTH_NS)
        return false;
    domi_finding_advise_value_of_key(finding, "scheduler.steal.enabled", "true");
    return write_sentence_of_uneven_threads(span, "scheduler.steal.enabled is false", finding);
}

static bool judge_costly_stealing(const domi_span *span, domi_finding *finding)
{
    double steals = domi_span_count_to_events_a_second(span, span->steals),
           run = mean_length_of_run(span);

    if (steals < MANY || run >= WORTH_NS || run <= 0 ||
        (double)span->after->settings.steal_min_run_ns >= WORTH_NS)
        return false;
    domi_finding_advise_value_of_key(finding, "scheduler.steal.minRun", "2us");
    return domi_finding_write_sentence(
        finding,
        "Threads borrow %s actors a second from each other, for runs of %s on "
        "average, which is less than a loan costs.",
        domi_format_amount_as_word(steals).at, domi_format_time_as_word(run).at);
}

const domi_rule domi_rules_of_stealing[] = {
    {.name = "steal-unreached",
     .title = "Thresholds of stealing that are never reached",
     .keys = "scheduler.steal.floor, scheduler.steal.aggression",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_ready_actors_not_stolen,
     .limit =
         "An idle thread takes an actor only from a thread with more than scheduler.steal.floor "
         "ready ones, so a few that run for long wait although a thread is free.",
     .cause =
         "The busy thread has fewer ready actors than it keeps for itself, or idle threads are "
         "told to wait for long. Seen by: two threads of which one is busier by 40 points and "
         "70 % busy or more, with 2 or more actors waiting there on average, less than 10 steals "
         "a second, and runs that are longer than scheduler.steal.minRun.",
     .remedy =
         "Lower scheduler.steal.floor below the number that waits (or scheduler.steal.aggression, "
         "if it was raised). A loan costs about 1 us, so this is for runs of some microseconds "
         "and more. To spread the actors when they are spawned costs less."},
    {.name = "steal-off",
     .title = "Stealing is off, and threads are uneven",
     .keys = "scheduler.steal.enabled",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_disabled_stealing,
     .limit = "Without stealing an actor waits for its own thread, whatever the others do.",
     .cause = "scheduler.steal.enabled is false. Seen by: the same as steal-unreached.",
     .remedy = "Turn it on, or spread the actors when they are spawned."},
    {.name = "steal-costly",
     .title = "Loans that cost more than they bring",
     .keys = "scheduler.steal.minRun",
     .harm = DOMI_HARM_COST,
     .judge = judge_costly_stealing,
     .limit = "A loan costs about a microsecond, of two threads together, and moves what the actor "
              "needs to another CPU's cache, so a shorter run is sooner done at home.",
     .cause =
         "scheduler.steal.minRun is below 2us. Seen by: 1,000 or more steals a second with runs "
         "of less than 2 us on average.",
     .remedy = "Set scheduler.steal.minRun to 2us, its default."},
    {.name = NULL}};
