/* This file describes the actors of pools for a dump.
 *
 * An idle actor of a pool (most of those that wait for something are idle) is borrowed for a
 * moment, as a runner takes it, and described. An actor that is scheduled or runs is only named,
 * because its runner is about to change what would be said. */
#include "runtime/control/dump_pools.h"

#include "runtime/control/dump_page.h"

#include "house/dispatch/pooled_turn.h"
#include "house/family/life.h"
#include "house/family/slots.h"
#include "house/message/types.h"
#include "runtime/policies/pool.h"

#include <domus/dump.h>
#include <domus/pool_config.h>

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#define MOMENT_NS UINT64_C(1000000)
/* least bytes of a pool's share that are kept for the lines about the pool itself */
#define HEAD_BYTES 128u

typedef struct walk {
    domus_system *system;
    domi_text *text;
    domi_dump_page page; /* page of the pool's actors to describe (dump_page.h) */
} walk;

static void describe_or_name_pooled_house(const walk *now, domi_house *house, domi_text *text)
{
    if (domi_pooled_take_idle_house(house)) {
        /* the actor may have ended between the walk's first look and this borrow */
        if (domi_slots_does_actor_live_in_house(house))
            domi_house_describe(&now->system->outside, house, text);
        domi_pooled_give_idle_house_back(house->home->pooled, house);
        return;
    }
    domi_text_append_name_of_actor(text, &now->system->config, domi_house_get_address(house));
    domi_text_append_formatted(text, ": scheduled, or its handler runs\n");
}

/* Describe the house of a pool's actor, if the page wants it; the text gets the description as a
 * whole or not at all. */
static void describe_pooled_house_if_wanted(void *house_, void *context)
{
    domi_house *house = house_;
    walk *now = context;
    size_t before = now->text->length;

    if (!domi_slots_does_actor_live_in_house(house) ||
        !domi_dump_count_house_in_page(&now->page, house))
        return;
    describe_or_name_pooled_house(now, house, now->text);
    domi_dump_record_if_house_was_described(&now->page,
                                            domi_text_cut_back_unless_whole(now->text, before));
}

static void add_runners_in_handlers(const domus_pool *pool, domi_text *text)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        const domus_behaviour *running = domi_manager_running_behaviour(&pool->runners[i]->manager);
        if (running != NULL && text->length + HEAD_BYTES < text->size)
            domi_text_append_formatted(text, "runner %" PRIu32 " is in a handler of %.64s\n", i,
                                       domi_behaviour_name(running));
    }
}

static void add_part_of_pool(domus_system *system, domus_pool *pool,
                             const domus_dump_filter *filter, domi_text *all, size_t share)
{
    domi_text text = {.at = all->at + all->length, .size = share - HEAD_BYTES};
    walk now = {.system = system, .text = &text};

    domi_dump_page_init(&now.page, filter);
    domi_text_append_formatted(&text, "pool %s:\n", pool->settings->name);
    add_runners_in_handlers(pool, &text);
    domi_slots_visit_while_others_spawn(&pool->home, describe_pooled_house_if_wanted, &now);
    text.size = share;
    domi_text_append_formatted(&text, "pool %s: %" PRIu32 " actors", pool->settings->name,
                               now.page.houses);
    if (now.page.left_out != 0)
        domi_text_append_formatted(&text, ", %" PRIu32 " of them were left out", now.page.left_out);
    domi_text_append_formatted(&text, "\n");
    all->length += text.length;
}

void domi_dump_describe_pools(domus_system *system, const domus_dump_filter *filter,
                              domi_text *text, size_t share)
{
    for (uint32_t i = 0; i < system->pool_count; i++)
        add_part_of_pool(system, system->pools[i], filter, text, share);
}

/* Wait for a moment before the next look at a pooled actor: no signal is sent when its turn ends,
 * so the thread that describes it polls. */
static void sleep_until_next_poll(domus_system *system)
{
    const struct timespec next = domi_clock_deadline_after(MOMENT_NS);

    pthread_mutex_lock(&system->mutex);
    (void)pthread_cond_timedwait(&system->changed, &system->mutex, &next);
    pthread_mutex_unlock(&system->mutex);
}

int domi_dump_describe_pooled_actor(domus_system *system, domus_address address, domi_text *text)
{
    uint64_t until_ns = domi_clock_now(&system->clock) + DOMUS_DUMP_WAIT_NS;
    domi_house *house = address.house;
    int result = 0;

    for (;;) {
        if (!domi_slots_does_actor_live_in_house(house) ||
            domi_house_get_address(house).lease != address.lease)
            return -ESTALE;
        if (domi_pooled_take_idle_house(house))
            break;
        if (domi_clock_now(&system->clock) >= until_ns)
            return -ETIMEDOUT;
        sleep_until_next_poll(system);
    }
    if (!domi_slots_does_actor_live_in_house(house) ||
        domi_house_get_address(house).lease != address.lease)
        result = -ESTALE;
    else
        domi_house_describe(&system->outside, house, text);
    domi_pooled_give_idle_house_back(house->home->pooled, house);
    if (result == 0 && text->length >= text->size)
        result = -EMSGSIZE;
    return result;
}
