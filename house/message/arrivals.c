/* Pushes chains of houses onto the arrivals of their homes. */
#include "house/message/arrivals.h"

#include "base/check.h"
#include "house/message/pooled.h"

/* Push the houses from `newest` to `oldest`, linked by arrival_next, onto the
 * arrivals of `home`. */
static void push_chain_to_arrivals(domi_manager *manager, domi_manager *home, domi_house *newest,
                                   domi_house *oldest)
{
    /* A guess that the stack of arrivals is empty, which it mostly is: a load of the stack would
     * fetch its cache line twice. */
    domi_house *head = NULL;

    do
        atomic_store_explicit(&oldest->arrival_next, head, memory_order_relaxed);
    /* seq_cst: this exchange publishes arrival_next to home's exchange of the stack. It also stands
     * before the load of home's park word in the one order of all seq_cst operations, so that
     * home's look before its sleep and this load cannot both miss the other. */
    while (!atomic_compare_exchange_weak_explicit(&home->mail.arrivals, &head, newest,
                                                  memory_order_seq_cst, memory_order_relaxed));
    domi_manager_notify_of_push(manager, home);
}

static void push_all_chains_to_arrivals(domi_manager *manager)
{
    domi_links *links = &manager->mail.links;

    for (uint32_t i = 0; i < links->home_count; i++) {
        domi_link_chain *chain = &links->by_home[links->homes[i]];
        push_chain_to_arrivals(manager, manager->managers[links->homes[i]], chain->newest,
                               chain->oldest);
        chain->newest = chain->oldest = NULL;
    }
    links->home_count = links->houses = 0;
}

/* From a runner, schedule a pooled actor in the queues of its pool; a house of a thread goes into
 * the arrivals of its home at once. */
static void schedule_house_from_runner(domi_manager *runner, domi_house *house)
{
    domi_pooled *pooled = house->home->pooled;

    if (pooled == NULL)
        push_chain_to_arrivals(runner, house->home, house, house);
    else
        pooled->schedule(pooled, pooled == runner->pooled ? runner : NULL, house);
}

void domi_links_add_house_to_arrivals(domi_manager *manager, domi_house *house)
{
    domi_links *links = &manager->mail.links;
    domi_manager *home = house->home;

    if (DOMI_LIKELY(!links->gathering)) {
        push_chain_to_arrivals(manager, home, house, house);
        return;
    }
    if (manager->pooled != NULL) {
        schedule_house_from_runner(manager, house);
        return;
    }
    domi_link_chain *chain = &links->by_home[home->index];
    atomic_store_explicit(&house->arrival_next, chain->newest, memory_order_relaxed);
    if (chain->newest == NULL) {
        chain->oldest = house;
        links->homes[links->home_count++] = (uint16_t)home->index;
    }
    chain->newest = house;
    if (++links->houses == DOMI_LINKS_MAX)
        push_all_chains_to_arrivals(manager);
}

void domi_links_begin_batch(domi_manager *manager)
{
    DOMI_CHECK(!manager->mail.links.gathering || manager->pooled != NULL);
    manager->mail.links.gathering = true;
}

void domi_links_end_batch(domi_manager *manager)
{
    manager->mail.links.gathering = manager->pooled != NULL;
    push_all_chains_to_arrivals(manager);
}
