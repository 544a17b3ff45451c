/* This file chooses the runs that are measured, and measures them; run_observer.h says what. */
#include "runtime/loop/run_observer.h"

#include "house/dispatch/dispatch.h"
#include "house/message/belt.h"
#include "runtime/trace/recorder.h"

/* nanoseconds that it costs to measure one run and to look at the runs around it */
#define COST_NS     800u
#define COST_SHARE  50u /* measuring takes at most one part of this many of the time */
#define WEIGHT_MOST 2048u
#define NEAR_RUNS   64u /* the most runs between two looks */
/* after a wait of N runs was measured, no wait is measured for this times N runs */
#define REST_SHARE 8u
#define SHORT_NS   1000u

/* Choose the next run that is measured, by chance: if actors take turns, a fixed distance would
 * always hit the same actor. */
static void choose_next_run(domi_run_observer *observer, uint64_t run_ns)
{
    observer->average_ns = (7 * observer->average_ns + run_ns) / 8;
    uint64_t wanted = COST_NS * COST_SHARE / (observer->average_ns + 1);

    if (wanted > WEIGHT_MOST)
        wanted = WEIGHT_MOST;
    observer->next_run = observer->seen_runs + domi_random_below(&observer->chance, 2 * wanted + 1);
}

/* --- waits ------------------------------------------------------------------------------------ */

static void follow_newest_message(domi_run_observer *observer, const domi_manager *manager,
                                  const domi_house *newest, uint64_t now_ns)
{
    uint64_t runs = domi_counter_read(&manager->counters.runs);

    if (runs < observer->rest_runs || observer->waiting.waiter.house != NULL)
        return;
    domi_wait_follow_newest(&observer->waiting, manager, newest, now_ns);
    observer->rest_runs = runs;
}

/* All runs are looked at while a wait is measured. If runs are short, that costs much, so the next
 * wait is measured long after this one. */
static void record_wait(domi_run_observer *observer, const domi_manager *manager,
                        uint64_t waited_ns)
{
    uint64_t runs = domi_counter_read(&manager->counters.runs);

    domi_histogram_add(&observer->waits, waited_ns);
    if (observer->average_ns < SHORT_NS)
        observer->rest_runs = runs + REST_SHARE * (runs - observer->rest_runs);
}

/* --- deliveries ------------------------------------------------------------------------------- */

/* Returns the manager of a thread for which a message lies on a belt that the thread has not taken
 * yet; NULL: no message does. */
static domi_manager *find_belt_receiver(const domi_manager *manager)
{
    for (uint32_t i = 0; i < manager->threads; i++) {
        domi_belt *belt = manager->belts.to[i];
        if (belt != NULL && belt->put != atomic_load_explicit(&belt->taken, memory_order_relaxed))
            return belt->receiver;
    }
    return NULL;
}

/* Store the present time at a thread to which this run has sent something. `belted` is the counter
 * of messages on belts when the run began. */
static void stamp_delivery(domi_manager *manager, uint64_t belted, uint64_t now_ns)
{
    const domi_links *links = &manager->mail.links;
    domi_manager *receiver = NULL;
    uint64_t none = 0;

    if (links->houses != 0)
        receiver = manager->managers[links->homes[0]];
    else if (domi_counter_read(&manager->counters.belted) != belted)
        receiver = find_belt_receiver(manager);
    /* Relaxed: the word is only a time, which the other thread reads after each sort of its
     * arrivals. If it reads this before the push, the delivery seems shorter by the rest of this
     * batch. */
    if (receiver != NULL)
        (void)atomic_compare_exchange_strong_explicit(&receiver->mail.sampled_ns, &none, now_ns,
                                                      memory_order_relaxed, memory_order_relaxed);
}

static void observe_arrivals(domi_manager *manager, const domi_house *newest)
{
    domi_run_observer *observer = domi_run_observer_of(manager);
    uint64_t since_ns = atomic_load_explicit(&manager->mail.sampled_ns, memory_order_relaxed);

    if (since_ns == 0 &&
        (observer->waiting.waiter.house != NULL || domi_wait_newest(manager) == newest ||
         domi_counter_read(&manager->counters.runs) < observer->rest_runs))
        return;
    uint64_t now_ns = domi_clock_now(observer->waiting.clock);
    follow_newest_message(observer, manager, newest, now_ns);
    if (since_ns == 0)
        return;
    domi_histogram_add(&observer->deliveries, now_ns > since_ns ? now_ns - since_ns : 0);
    atomic_store_explicit(&manager->mail.sampled_ns, 0, memory_order_relaxed);
}

/* --- runs ------------------------------------------------------------------------------------- */

static void record_run(const domi_run_observer *observer, const domi_manager *manager,
                       const domus_behaviour *behaviour, uint64_t begin_ns, uint64_t end_ns)
{
    domi_recorder_end(observer->recorder, DOMI_RECORD_STALL, begin_ns, end_ns);
    domi_recorder_note(observer->recorder, DOMI_RECORD_RUN, begin_ns, end_ns, behaviour,
                       (uintptr_t)domi_manager_handling(manager));
}

static void record_loan(domi_manager *manager, const domi_house *house, uint32_t thief)
{
    const domi_run_observer *observer = domi_run_observer_of(manager);

    if (observer->recorder == NULL)
        return;
    uint64_t now_ns = domi_clock_now(observer->waiting.clock);
    domi_recorder_note(observer->recorder, DOMI_RECORD_LOAN, now_ns, now_ns, house->behaviour,
                       thief);
}

__attribute__((noinline)) static uint32_t run_measured(domi_manager *manager, domi_house *house)
{
    domi_run_observer *observer = domi_run_observer_of(manager);
    const domi_house *newest = domi_wait_newest(manager);
    bool is_waiter = observer->waiting.waiter.house == house;
    uint32_t lease = DOMI_LIFE_LEASE(domi_house_life(house));
    uint32_t tally = house->tally;
    uint64_t waited_ns;
    const domus_behaviour *behaviour = house->behaviour; /* the house may be free afterwards */
    bool is_channels = behaviour->kind == DOMUS_CHANNELS;
    uint64_t belted = domi_counter_read(&manager->counters.belted);
    uint64_t runs = domi_counter_read(&manager->counters.runs) + 1;
    bool is_due = runs > observer->next_run;
    uint64_t begin_ns = domi_clock_now(observer->waiting.clock);
    domi_flowing flowing;
    bool has_request = observer->answers.house == house;
    uint32_t next = is_channels ? domi_answer_get_next_request(house) : 0;

    domi_flows_begin_run(observer->flows, house, &flowing);
    uint32_t handled = domi_house_run(manager, house);
    if (is_waiter && domi_wait_check_handled(&observer->waiting, manager, lease, tally, handled,
                                             begin_ns, &waited_ns))
        record_wait(observer, manager, waited_ns);
    bool has_flow = domi_flows_end_run(observer->flows, manager, house, &flowing, begin_ns, is_due);
    if (!is_due && !has_flow && !has_request) /* this run was looked at only because of a wait */
        return handled;
    uint64_t end_ns = domi_clock_now(observer->waiting.clock);
    if (is_channels)
        domi_answer_end_run(&observer->answers, manager, house, lease, next, begin_ns, end_ns,
                            is_due, observer->average_ns < SHORT_NS);
    if (!is_due && !has_flow)
        return handled;
    if (observer->recorder != NULL)
        record_run(observer, manager, behaviour, begin_ns, end_ns);
    if (!is_due) /* this run was measured only because of a flow or a request */
        return handled;
    uint32_t weight = (uint32_t)(runs - observer->seen_runs);
    domi_histogram_add_many(&observer->runs, end_ns - begin_ns, weight);
    if (is_channels && observer->reaped_ns != 0 && begin_ns >= observer->reaped_ns)
        domi_histogram_add_many(&observer->reactions, begin_ns - observer->reaped_ns, weight);
    domi_wait_drop_lost(&observer->waiting);
    /* the newest message of this house itself may be older than the run */
    if (domi_wait_newest(manager) != house)
        follow_newest_message(observer, manager, newest, end_ns);
    stamp_delivery(manager, belted, end_ns);
    observer->seen_runs = runs;
    choose_next_run(observer, end_ns - begin_ns);
    return handled;
}

static uint32_t run_house_observed(domi_manager *manager, domi_house *house)
{
    const domi_run_observer *observer = domi_run_observer_of(manager);

    if (domi_counter_read(&manager->counters.runs) < observer->next_run &&
        observer->waiting.waiter.house != house && observer->answers.house != house &&
        !domi_flows_is_watched(observer->flows, house))
        return domi_house_run(manager, house);
    return run_measured(manager, house);
}

static domi_run_house *choose_run_function(domi_manager *manager)
{
    const domi_run_observer *observer = domi_run_observer_of(manager);

    return domi_counter_read(&manager->counters.runs) + NEAR_RUNS >= observer->next_run ||
                   observer->waiting.waiter.house != NULL || observer->answers.house != NULL ||
                   domi_flows_is_any_watched(observer->flows)
               ? run_house_observed
               : domi_house_run;
}

void domi_run_observer_begin(domi_run_observer *observer, domi_manager *manager)
{
    observer->reaped_ns = 0;
    observer->seen_runs = observer->next_run = domi_counter_read(&manager->counters.runs);
    observer->rest_runs = observer->answers.rest_runs = 0;
    observer->answers.house = NULL;
    /* Nothing was observed since the last measurement, so the message that was followed may have
     * been handled unseen. Relaxed: the value is only a time. */
    observer->waiting.waiter.house = NULL;
    atomic_store_explicit(&manager->mail.sampled_ns, 0, memory_order_relaxed);
    manager->observer = &observer->waiting.functions;
}

void domi_run_observer_init(domi_run_observer *observer, const domi_clock *clock, uint64_t seed)
{
    observer->waiting = (domi_wait_observer){
        .functions = {choose_run_function, observe_arrivals, record_loan, domi_wait_forget_house},
        .clock = clock};
    domi_random_init(&observer->chance, seed);
}
