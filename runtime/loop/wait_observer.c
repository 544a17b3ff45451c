/* This file measures how long a message waits until it is handled, for one message after the
 * other; wait_observer.h says how. */
#include "runtime/loop/wait_observer.h"

#include "house/dispatch/dispatch.h"

#define TICKS_APART 16u

void domi_wait_follow_newest_message(domi_wait_observer *observer, const domi_manager *manager,
                                     const domi_house *newest, uint64_t now_ns)
{
    const domi_house *house = domi_wait_newest_ready_house(manager);

    if (observer->waiter.house != NULL || house == NULL || house == newest)
        return;
    observer->waiter = (domi_waiter){.house = house,
                                     .lease = DOMI_LIFE_LEASE(domi_house_life_word(house)),
                                     .ahead = house->mail,
                                     .since_ns = now_ns};
}

/* Count the messages ahead of the followed one down, after a run that did not reach it. Messages
 * also leave a mailbox unhandled (as a cancelled ask does), so no more are ahead than wait in
 * the mailbox now. If none waits, the followed message is gone. */
static void count_down_messages_ahead_of_followed(domi_waiter *waiter, uint32_t handled)
{
    const domi_house *house = waiter->house;

    waiter->ahead -= handled;
    if (DOMI_LIFE_LEASE(domi_house_life_word(house)) != waiter->lease || house->mail == 0)
        waiter->house = NULL;
    else if (house->mail < waiter->ahead)
        waiter->ahead = house->mail;
}

bool domi_wait_count_if_message_was_handled(domi_wait_observer *observer, domi_manager *manager,
                                            uint32_t lease, uint32_t tally, uint32_t handled,
                                            uint64_t begin_ns, uint64_t *ret_ns)
{
    domi_waiter *waiter = &observer->waiter;

    if (waiter->lease != lease) {
        waiter->house = NULL;
        return false;
    }
    if (handled < waiter->ahead) {
        count_down_messages_ahead_of_followed(waiter, handled);
        return false;
    }
    waiter->house = NULL;
    *ret_ns = begin_ns > waiter->since_ns ? begin_ns - waiter->since_ns : 0;
    domi_counter_add(&manager->tallies[tally].waits, 1);
    domi_counter_add(&manager->tallies[tally].wait_ns, *ret_ns);
    return true;
}

/* Called at times, because the actor with the followed message may have ended, or may have been
 * lent to a thread that does not look. */
void domi_wait_stop_following_lost_message(domi_wait_observer *observer)
{
    const domi_waiter *waiter = &observer->waiter;

    if (waiter->house != NULL &&
        (DOMI_LIFE_LEASE(domi_house_life_word(waiter->house)) != waiter->lease ||
         domi_house_is_exposed(waiter->house)))
        observer->waiter.house = NULL;
}

void domi_wait_stop_following_in_house(domi_manager *manager, const domi_house *house)
{
    domi_waiter *waiter = &domi_wait_observer_of_manager(manager)->waiter;

    if (waiter->house == house)
        waiter->house = NULL;
}

/* --- while the level is counters -------------------------------------------------------------- */

static uint32_t run_house_and_measure_followed_message(domi_wait_observer *observer,
                                                       domi_manager *manager, domi_house *house)
{
    uint32_t lease = DOMI_LIFE_LEASE(domi_house_life_word(house));
    /* the number of the behaviour is kept in a variable, because after the run the house may be
     * free */
    uint32_t tally = house->tally;
    uint64_t begin_ns = domi_clock_now(observer->clock);
    uint64_t waited_ns;

    uint32_t handled = domi_house_run_and_settle(manager, house);
    if (domi_wait_count_if_message_was_handled(observer, manager, lease, tally, handled, begin_ns,
                                               &waited_ns))
        observer->is_done = true;
    return handled;
}

static uint32_t run_house_and_observe(domi_manager *manager, domi_house *house)
{
    domi_wait_observer *observer = domi_wait_observer_of_manager(manager);

    if (observer->is_done)
        return domi_house_run_and_settle(manager, house);
    if (observer->waiter.house == house)
        return run_house_and_measure_followed_message(observer, manager, house);
    if (observer->waiter.house != NULL)
        return domi_house_run_and_settle(manager, house);
    const domi_house *newest = domi_wait_newest_ready_house(manager);
    uint32_t handled = domi_house_run_and_settle(manager, house);
    /* a message is followed only at another house: the newest message of this house may be older
     * than the run */
    if (domi_wait_newest_ready_house(manager) != house)
        domi_wait_follow_newest_message(observer, manager, newest, domi_clock_now(observer->clock));
    return handled;
}

static void on_sorted_arrivals_follow_newest_message(domi_manager *manager,
                                                     const domi_house *newest)
{
    domi_wait_observer *observer = domi_wait_observer_of_manager(manager);

    if (!observer->is_done && observer->waiter.house == NULL &&
        domi_wait_newest_ready_house(manager) != newest)
        domi_wait_follow_newest_message(observer, manager, newest, domi_clock_now(observer->clock));
}

static domi_run_house *choose_function_that_runs_houses(domi_manager *manager)
{
    return domi_wait_observer_of_manager(manager)->is_done ? domi_house_run_and_settle
                                                           : run_house_and_observe;
}

void domi_wait_observer_init(domi_wait_observer *observer, const domi_clock *clock)
{
    *observer = (domi_wait_observer){.functions = {choose_function_that_runs_houses,
                                                   on_sorted_arrivals_follow_newest_message, NULL,
                                                   domi_wait_stop_following_in_house},
                                     .clock = clock};
}

void domi_wait_begin_or_end_measurement(domi_wait_observer *observer, domi_manager *manager)
{
    if (manager->observer != NULL) {
        domi_wait_stop_following_lost_message(observer);
        if (observer->is_done)
            manager->observer = NULL;
    } else if (++observer->ticks >= TICKS_APART) {
        observer->ticks = 0;
        observer->is_done = false;
        observer->waiter.house = NULL;
        manager->observer = &observer->functions;
    }
}
