/* Rules about threads that are busy while other threads are not, and about the actors that cause
 * it. */
#include "protocols/observe/doctor/say.h"

#include <stdio.h>
#include <string.h>

/* a difference between the busy shares of the busiest and the least busy thread from which on they
 * count as uneven */
#define UNEVEN 0.4
/* busy share of a thread from which on it is about to become full */
#define LOADED 0.7
#define OWN    0.6 /* share of a thread's time from which on one actor counts as hot */
/* by how much less busy than a thread the idlest one must be so that it could do other work */
#define IDLE 0.3
/* share of all state actors that live on one thread, from which on this counts as crowded */
#define AT_HOME 0.9
/* number of CPUs that have nothing to do, from which on other work could run there */
#define FREE 0.75
/* share of a thread's time in which it waits for a CPU, from which on no CPU counts as free */
#define DENIED 0.1
/* number of state actors of threads, below which it does not matter where they live */
#define MANY 4u
/* busy share of each runner of a pool from which on the runners always have a job */
#define POOL_ALL 0.95

/* Returns how many CPUs have nothing to do, as far as can be known: none if threads wait for a
 * CPU or the cgroup is stopped for its quota. The work of other programs shows only by these two
 * signs. */
static double count_free_cpus(const domi_span *span)
{
    const domi_look_machine *machine = &span->after->machine;
    double most = (double)machine->cpus;

    if (machine->cpus_online != 0 && (double)machine->cpus_online < most)
        most = (double)machine->cpus_online;
    if (machine->quota != 0 && (double)machine->quota / 1000 < most)
        most = (double)machine->quota / 1000;
    for (uint32_t i = 0; i < span->thread_count; i++) {
        if (span->threads[i].denied >= DENIED)
            return 0;
    }
    double others = most - span->cpus_used,
           idle = (double)span->machine.idle_ns / 1e9 / span->seconds;
    if (span->machine.throttles != 0)
        return 0;
    return idle < others ? idle : others;
}

/* --- one actor that takes a thread ------------------------------------------------------------ */

static double busy_share_of_thread_by_behaviour(const domi_span *span, const domi_span_actors *one)
{
    double share = (double)one->busiest_run_ns / 1e9 / span->seconds;

    return share < 1 ? share : 1;
}

/* Returns whether another thread, or another CPU, could do work while this thread is busy. */
static bool is_other_thread_or_cpu_free(const domi_span *span, uint32_t thread)
{
    if (span->thread_count > 1)
        return span->threads[thread].busy - span->threads[span->idlest].busy >= IDLE;
    return count_free_cpus(span) >= FREE;
}

static bool judge_hot_actor(const domi_span *span, domi_finding *finding)
{
    for (uint32_t i = 0; i < span->actors_count; i++) {
        const domi_span_actors *one = &span->actors[i];
        if (one->alive != 1 || one->is_channels || one->pool[0] != '\0' ||
            busy_share_of_thread_by_behaviour(span, one) < OWN ||
            !is_other_thread_or_cpu_free(span, one->busiest))
            continue;
        domi_finding_advise_in_words(
            finding, "in the list of pools: {name: work}, and spawn the actor there "
                     "(domus_pool_find(), domus/pools.h)");
        domi_finding_advise_in_words(finding,
                                     "or spread its work over several actors (domus/router.h), or "
                                     "make its messages cheaper (domus flame)");
        return domi_finding_write_sentence(
            finding,
            "The one actor of the behaviour %s takes %s of thread %u, and each message that it "
            "handles takes %s.",
            one->name,
            domi_format_share_as_percent(busy_share_of_thread_by_behaviour(span, one)).at,
            one->busiest,
            domi_format_time_as_word(domi_span_quotient_of_counts(one->run_ns, one->messages)).at);
    }
    return false;
}

/* --- all actors on one thread ----------------------------------------------------------------- */

static bool is_state_behaviour(const domi_look_actors *one)
{
    return !one->is_channels && one->thread >= 0;
}

/* Returns the share of all state actors of threads that live on one thread; 0 if there are few such
 * actors. */
static double share_of_actors_on_thread(const domi_look *look, uint32_t thread)
{
    uint64_t all = 0, here = 0;

    for (uint32_t i = 0; i < look->actors_count; i++) {
        const domi_look_actors *one = &look->actors[i];
        if (!is_state_behaviour(one))
            continue;
        all += one->counts.alive;
        here += one->thread == (int64_t)thread ? one->counts.alive : 0;
    }
    return all >= MANY ? domi_span_quotient_of_counts(here, all) : 0;
}

static bool judge_actors_on_one_thread(const domi_span *span, domi_finding *finding)
{
    if (span->thread_count < 2)
        return false;
    const domi_span_thread *most = &span->threads[span->busiest];
    const domi_span_thread *least = &span->threads[span->idlest];
    double share = share_of_actors_on_thread(span->after, span->busiest);
    if (most->busy < LOADED || most->busy - least->busy < UNEVEN || share < AT_HOME ||
        most->state < most->busy / 2)
        return false;
    domi_finding_advise_in_words(finding, "spawn the actors with DOMUS_SPREAD or DOMUS_ON_THREAD "
                                          "(domus/spawn.h) instead of near their parent");
    return domi_finding_write_sentence(
        finding,
        "Thread %u is busy for %s of its time and thread %u for %s, while %s of the state "
        "actors live on thread %u.",
        span->busiest, domi_format_share_as_percent(most->busy).at, span->idlest,
        domi_format_share_as_percent(least->busy).at, domi_format_share_as_percent(share).at,
        span->busiest);
}

/* --- full pools of runners -------------------------------------------------------------------- */

/* Returns how busy the least busy runner of a pool is, when `first` is the first runner of that
 * pool; 0 if it is not. Spares are not counted, because they work for runners that are blocked. */
static double busy_share_of_idlest_runner(const domi_span *span, uint32_t first,
                                          uint32_t *ret_count)
{
    const domi_look_pool_runner *after = span->after->runners, *before = span->before->runners;
    double busy = 1;

    *ret_count = 0;
    if (first > 0 && strcmp(after[first - 1].pool, after[first].pool) == 0)
        return 0;
    for (uint32_t i = first; i < span->after->runner_count; i++) {
        if (strcmp(after[i].pool, after[first].pool) != 0)
            break;
        if (after[i].is_spare)
            continue;
        uint64_t wall_ns =
            domi_span_growth_of_counter(after[i].times.wall_ns, before[i].times.wall_ns);
        double one = domi_span_quotient_of_counts(
            domi_span_growth_of_counter(after[i].times.run_ns, before[i].times.run_ns), wall_ns);
        if (wall_ns == 0)
            continue;
        busy = one < busy ? one : busy;
        ++*ret_count;
    }
    return *ret_count != 0 ? busy : 0;
}

static bool judge_full_runners_of_pools(const domi_span *span, domi_finding *finding)
{
    double free_cpus = count_free_cpus(span);
    char advice[128];
    uint32_t count;

    for (uint32_t i = 0; i < span->after->runner_count && free_cpus >= FREE; i++) {
        if (busy_share_of_idlest_runner(span, i, &count) < POOL_ALL || count >= 64)
            continue;
        const char *pool = span->after->runners[i].pool;
        snprintf(advice, sizeof advice, "in the list of pools: {name: %.40s, runners: %u}", pool,
                 (unsigned)domi_clamp_double_to_whole_number(count + free_cpus, count + 1u, 64));
        domi_finding_advise_in_words(finding, advice);
        return domi_finding_write_sentence(
            finding,
            "Each of the %u runners of the pool %s works for %s of its time or more, while %s CPUs "
            "that the program may use have nothing to do.",
            (unsigned)count, pool, domi_format_share_as_percent(POOL_ALL).at,
            domi_format_amount_as_word(free_cpus).at);
    }
    return false;
}

const domi_rule domi_rules_of_balance[] = {
    {.name = "hot-actor",
     .title = "One actor takes a thread",
     .keys = "pools",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_hot_actor,
     .limit =
         "An actor handles one message at a time, so it can use no second thread, and all else "
         "on its thread waits for it.",
     .cause = "All work of a kind goes through one actor. Seen by: a behaviour with one actor that "
              "takes 60 % or more of a thread, while another thread is less busy by 30 points, or, "
              "with one thread, a CPU is free (see pool-full).",
     .remedy =
         "Spread its work over several actors by a key (a router, domus/router.h, or a grain, "
         "domus/grain.h). If it has to be one, give it a pool, where it holds up no io and no "
         "other actor; or let domus_blocking() do what takes long. Look first whether the "
         "work itself can be less."},
    {.name = "all-near",
     .title = "All actors live on one thread",
     .keys = "",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_actors_on_one_thread,
     .limit = "An actor runs on the thread on which it was spawned; stealing evens out bursts, and "
              "no lasting difference.",
     .cause =
         "Actors are spawned near their parent (DOMUS_NEAR, the default), so a whole family "
         "lives on the thread of its first member. Seen by: two threads of which one is busier "
         "by 40 points and 70 % busy or more, on which 90 % of the state actors live.",
     .remedy = "Spawn children with DOMUS_SPREAD, or DOMUS_ON_THREAD (domus/spawn.h). Messages "
               "between threads cost more than near ones, so keep near what talks much."},
    {.name = "pool-full",
     .title = "A pool has too few runners",
     .keys = "pools",
     .harm = DOMI_HARM_DELAY,
     .judge = judge_full_runners_of_pools,
     .limit = "Each runner has one actor at a time, so work waits for a runner although there are "
              "CPUs for it.",
     .cause =
         "A pool has fewer runners than work. Seen by: runners that all work for 95 % of their "
         "time, while three quarters of a CPU or more have nothing to do: of those that the "
         "affinity, the quota and the machine allow, and if no thread waits for one.",
     .remedy = "Give the pool more runners, up to the CPUs that are free."},
    {.name = NULL}};
