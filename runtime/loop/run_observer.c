/* This file chooses which runs of houses are measured, and measures them; run_observer.h says
 * what is measured. */
#include "runtime/loop/run_observer.h"

#include "house/dispatch/dispatch.h"
#include "house/message/belt.h"
#include "runtime/trace/recorder.h"

/* nanoseconds that it costs to measure one run and to observe the runs around it */
#define COST_NS     800u
#define COST_SHARE  50u /* measuring takes at most this part, one fiftieth, of a thread's time */
#define WEIGHT_MOST 2048u
/* most runs between two looks: if the next measured run is nearer than that, each run is looked
 * at singly */
#define NEAR_RUNS 64u
/* after a wait that lasted N runs was measured, no further wait is measured for this times N
 * runs */
#define REST_SHARE 8u
#define SHORT_NS   1000u

/* Choose by chance which run is measured next: with a fixed distance, actors that take turns
 * would always be measured at the same actor. */
static void choose_next_measured_run(domi_run_observer *observer, uint64_t run_ns)
{
    observer->average_ns = (7 * observer->average_ns + run_ns) / 8;
    uint64_t wanted = COST_NS * COST_SHARE / (observer->average_ns + 1);

    if (wanted > WEIGHT_MOST)
        wanted = WEIGHT_MOST;
    observer->next_run = observer->seen_runs + domi_random_below(&observer->chance, 2 * wanted + 1);
}

/* --- waits ------------------------------------------------------------------------------------ */

static void begin_to_measure_wait_of_newest_message(domi_run_observer *observer,
                                                    const domi_manager *manager,
                                                    const domi_house *newest, uint64_t now_ns)
{
    uint64_t runs = domi_counter_read(&manager->counters.runs);

    if (runs < observer->rest_runs || observer->waiting.waiter.house != NULL)
        return;
    domi_wait_follow_newest_message(&observer->waiting, manager, newest, now_ns);
    observer->rest_runs = runs;
}

/* Add the wait of a message to the histogram. While a wait is measured, each run is observed,
 * which costs much if runs are short; in that case no further wait is measured for a long time. */
static void add_wait_to_histogram(domi_run_observer *observer, const domi_manager *manager,
                                  uint64_t waited_ns)
{
    uint64_t runs = domi_counter_read(&manager->counters.runs);

    domi_histogram_add_time(&observer->waits, waited_ns);
    if (observer->average_ns < SHORT_NS)
        observer->rest_runs = runs + REST_SHARE * (runs - observer->rest_runs);
}

/* --- deliveries ------------------------------------------------------------------------------- */

/* Returns the manager of a thread to which this thread has a belt with a message that was not
 * taken yet; NULL: there is none. */
static domi_manager *find_receiver_of_untaken_belt(const domi_manager *manager)
{
    for (uint32_t i = 0; i < manager->threads; i++) {
        domi_belt *belt = manager->belts.to[i];
        if (belt != NULL && belt->put != atomic_load_explicit(&belt->taken, memory_order_relaxed))
            return belt->receiver;
    }
    return NULL;
}

/* Note the present time at a thread to which this run has sent something, if it has; that thread
 * measures the delivery. `belted` is the count of messages on belts when the run began. */
static void note_time_for_measured_delivery(domi_manager *manager, uint64_t belted, uint64_t now_ns)
{
    const domi_links *links = &manager->mail.links;
    domi_manager *receiver = NULL;
    uint64_t none = 0;

    if (links->houses != 0)
        receiver = manager->managers[links->homes[0]];
    else if (domi_counter_read(&manager->counters.belted) != belted)
        receiver = find_receiver_of_untaken_belt(manager);
    /* Relaxed: the word is only a time, which the other thread reads each time it has sorted its
     * arrivals. If it does so before the message is pushed, the delivery looks shorter by the
     * rest of this batch. */
    if (receiver != NULL)
        (void)atomic_compare_exchange_strong_explicit(&receiver->mail.sampled_ns, &none, now_ns,
                                                      memory_order_relaxed, memory_order_relaxed);
}

static void on_sorted_arrivals_measure_delivery(domi_manager *manager, const domi_house *newest)
{
    domi_run_observer *observer = domi_run_observer_of_manager(manager);
    uint64_t since_ns = atomic_load_explicit(&manager->mail.sampled_ns, memory_order_relaxed);

    if (since_ns == 0 && (observer->waiting.waiter.house != NULL ||
                          domi_wait_newest_ready_house(manager) == newest ||
                          domi_counter_read(&manager->counters.runs) < observer->rest_runs))
        return;
    uint64_t now_ns = domi_clock_now(observer->waiting.clock);
    begin_to_measure_wait_of_newest_message(observer, manager, newest, now_ns);
    if (since_ns == 0)
        return;
    domi_histogram_add_time(&observer->deliveries, now_ns > since_ns ? now_ns - since_ns : 0);
    atomic_store_explicit(&manager->mail.sampled_ns, 0, memory_order_relaxed);
}

/* --- runs ------------------------------------------------------------------------------------- */

static void write_record_of_run(const domi_run_observer *observer, const domi_manager *manager,
                                const domus_behaviour *behaviour, uint64_t begin_ns,
                                uint64_t end_ns)
{
    domi_recorder_end_begun_thing(observer->recorder, DOMI_RECORD_STALL, begin_ns, end_ns);
    domi_recorder_write_ended_thing(observer->recorder, DOMI_RECORD_RUN, begin_ns, end_ns,
                                    behaviour, (uintptr_t)domi_manager_type_being_handled(manager));
}

static void write_record_of_loan(domi_manager *manager, const domi_house *house, uint32_t thief)
{
    const domi_run_observer *observer = domi_run_observer_of_manager(manager);

    if (observer->recorder == NULL)
        return;
    uint64_t now_ns = domi_clock_now(observer->waiting.clock);
    domi_recorder_write_ended_thing(observer->recorder, DOMI_RECORD_LOAN, now_ns, now_ns,
                                    house->behaviour, thief);
}

__attribute__((noinline)) static uint32_t run_house_and_measure(domi_manager *manager,
                                                                domi_house *house)
{
    domi_run_observer *observer = domi_run_observer_of_manager(manager);
    const domi_house *newest = domi_wait_newest_ready_house(manager);
    bool is_waiter = observer->waiting.waiter.house == house;
    uint32_t lease = DOMI_LIFE_LEASE(domi_house_life_word(house));
    uint32_t tally = house->tally;
    uint64_t waited_ns;
    /* the behaviour is kept in a variable, because after the run the house may be free */
    const domus_behaviour *behaviour = house->behaviour;
    bool is_channels = behaviour->kind == DOMUS_CHANNELS;
    uint64_t belted = domi_counter_read(&manager->counters.belted);
    uint64_t runs = domi_counter_read(&manager->counters.runs) + 1;
    bool is_due = runs > observer->next_run;
    uint64_t begin_ns = domi_clock_now(observer->waiting.clock);
    domi_flowing flowing;
    bool has_request = observer->answers.house == house;
    uint32_t next = is_channels ? domi_answer_number_of_next_request(house) : 0;

    domi_flows_note_state_before_run(observer->flows, house, &flowing);
    uint32_t handled = domi_house_run_and_settle(manager, house);
    if (is_waiter && domi_wait_count_if_message_was_handled(&observer->waiting, manager, lease,
                                                            tally, handled, begin_ns, &waited_ns))
        add_wait_to_histogram(observer, manager, waited_ns);
    bool has_flow =
        domi_flows_record_after_run(observer->flows, manager, house, &flowing, begin_ns, is_due);
    /* this run was observed only because of the message whose wait is measured */
    if (!is_due && !has_flow && !has_request)
        return handled;
    uint64_t end_ns = domi_clock_now(observer->waiting.clock);
    if (is_channels)
        domi_answer_measure_after_run(&observer->answers, manager, house, lease, next, begin_ns,
                                      end_ns, is_due, observer->average_ns < SHORT_NS);
    if (!is_due && !has_flow)
        return handled;
    if (observer->recorder != NULL)
        write_record_of_run(observer, manager, behaviour, begin_ns, end_ns);
    /* this run was measured only because of a flow or a request, and does not count for the
     * histogram of runs */
    if (!is_due)
        return handled;
    uint32_t weight = (uint32_t)(runs - observer->seen_runs);
    domi_histogram_add_weighted_time(&observer->runs, end_ns - begin_ns, weight);
    if (is_channels && observer->reaped_ns != 0 && begin_ns >= observer->reaped_ns)
        domi_histogram_add_weighted_time(&observer->reactions, begin_ns - observer->reaped_ns,
                                         weight);
    domi_wait_stop_following_lost_message(&observer->waiting);
    /* a message is followed only at another house: the newest message of this house may be older
     * than the run */
    if (domi_wait_newest_ready_house(manager) != house)
        begin_to_measure_wait_of_newest_message(observer, manager, newest, end_ns);
    note_time_for_measured_delivery(manager, belted, end_ns);
    observer->seen_runs = runs;
    choose_next_measured_run(observer, end_ns - begin_ns);
    return handled;
}

static uint32_t run_house_and_observe(domi_manager *manager, domi_house *house)
{
    const domi_run_observer *observer = domi_run_observer_of_manager(manager);

    if (domi_counter_read(&manager->counters.runs) < observer->next_run &&
        observer->waiting.waiter.house != house && observer->answers.house != house &&
        !domi_flows_is_house_watched(observer->flows, house))
        return domi_house_run_and_settle(manager, house);
    return run_house_and_measure(manager, house);
}

static domi_run_house *choose_function_that_runs_houses(domi_manager *manager)
{
    const domi_run_observer *observer = domi_run_observer_of_manager(manager);

    return domi_counter_read(&manager->counters.runs) + NEAR_RUNS >= observer->next_run ||
                   observer->waiting.waiter.house != NULL || observer->answers.house != NULL ||
                   domi_flows_is_any_house_watched(observer->flows)
               ? run_house_and_observe
               : domi_house_run_and_settle;
}

void domi_run_observer_begin(domi_run_observer *observer, domi_manager *manager)
{
    observer->reaped_ns = 0;
    observer->seen_runs = observer->next_run = domi_counter_read(&manager->counters.runs);
    observer->rest_runs = observer->answers.rest_runs = 0;
    observer->answers.house = NULL;
    /* The followed message may have been handled unseen while nothing was observed, so it is
     * dropped. Relaxed: the value is only a time. */
    observer->waiting.waiter.house = NULL;
    atomic_store_explicit(&manager->mail.sampled_ns, 0, memory_order_relaxed);
    manager->observer = &observer->waiting.functions;
}

void domi_run_observer_init(domi_run_observer *observer, const domi_clock *clock, uint64_t seed)
{
    observer->waiting = (domi_wait_observer){
        .functions = {choose_function_that_runs_houses, on_sorted_arrivals_measure_delivery,
                      write_record_of_loan, domi_wait_stop_following_in_house},
        .clock = clock};
    domi_random_init(&observer->chance, seed);
}
