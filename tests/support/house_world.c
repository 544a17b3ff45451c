/* Managers without threads, which a test steps by hand; tests/support/house_world.h describes this
 * world. */
#include "tests/support/house_world.h"

#include "house/dispatch/dispatch.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/phases.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TURNS_MAX 1000000u
#define START_NS  UINT64_C(1000000000)

void domt_world_init(domt_world *world, uint32_t homes)
{
    ck_assert_uint_le(homes, DOMT_HOMES_MAX);
    *world = (domt_world){.homes = homes};
    domus_config_init(&world->config);
    world->config.scheduler.belt_slots = 1024;
}

static void count_wake_of_manager(domi_manager *manager)
{
    domt_world *world = manager->thread;

    world->wakes[manager->index]++;
}

const domi_runtime_hooks domt_hooks_of_world = {.wake = count_wake_of_manager};

/* The managers are allocated with calloc() instead of the library's allocator, so a sweep of
 * failing allocations counts only allocations that the library makes. */
static void free_managers(domt_world *world, uint32_t made)
{
    for (uint32_t i = 0; i < made; i++)
        domi_manager_fini(world->managers[i]);
    for (uint32_t i = 0; i <= world->homes; i++) {
        free(world->managers[i]);
        world->managers[i] = NULL;
    }
    world->started = false;
}

int domt_world_start(domt_world *world)
{
    uint32_t count = world->homes + 1;

    for (uint32_t i = 0; i < count; i++) {
        world->managers[i] = aligned_alloc(alignof(domi_manager), sizeof(domi_manager));
        ck_assert_ptr_nonnull(world->managers[i]);
        memset(world->managers[i], 0, sizeof(domi_manager));
    }
    for (uint32_t i = 0; i < count; i++) {
        int result = domi_manager_init(world->managers[i], &(domi_manager_options){
                                                               .index = i,
                                                               .count = count,
                                                               .managers = world->managers,
                                                               .config = &world->config,
                                                               .now_ns = START_NS,
                                                               .hooks = &domt_hooks_of_world,
                                                               .thread = world,
                                                           });
        if (result != 0) {
            free_managers(world, i);
            return result;
        }
    }
    world->started = true;
    return 0;
}

void domt_world_become_owner(domt_world *world)
{
    for (uint32_t i = 0; i <= world->homes; i++)
        domi_manager_become_owner(world->managers[i]);
}

void domt_world_end(domt_world *world)
{
    if (!world->started)
        return;
    domt_world_become_owner(world);
    for (uint32_t i = 0; i <= world->homes; i++)
        domi_manager_end_actors(world->managers[i]);
    /* Functions on_stop may have sent messages to actors that had ended before: take these messages
     * from the inboxes, too. */
    for (uint32_t i = 0; i <= world->homes; i++)
        (void)domi_manager_take_arrivals(world->managers[i]);
    free_managers(world, world->homes + 1);
}

void domt_world_open(domt_world *world, uint32_t homes)
{
    domt_world_init(world, homes);
    ck_assert_int_eq(domt_world_start(world), 0);
}

void domt_world_open_without_belts(domt_world *world, uint32_t homes)
{
    domt_world_init(world, homes);
    world->config.scheduler.belt_slots = 0;
    ck_assert_int_eq(domt_world_start(world), 0);
}

domi_manager *domt_outside_manager(domt_world *world)
{
    return world->managers[world->homes];
}

uint32_t domt_take_arrivals_and_timers(domi_manager *home)
{
    return domi_manager_take_arrivals(home) + domi_manager_mount_actors(home) +
           domi_manager_fire_timers(home);
}

uint32_t domt_run_state_queue(domi_manager *home)
{
    domi_queue *ready = &home->schedule.ready[DOMUS_STATE];
    uint32_t count = ready->count;

    for (uint32_t i = 0; i < count; i++)
        (void)domi_house_run_and_settle(home, domi_queue_take_house(ready));
    return count;
}

uint32_t domt_iterate_home(domi_manager *home)
{
    uint32_t done = domt_take_arrivals_and_timers(home);

    done += domi_manager_run_channels_actors(home);
    done += domt_run_state_queue(home);
    domi_pool_push_chains_to_owners(home);
    return done;
}

void domt_settle_world(domt_world *world)
{
    uint32_t done;
    uint32_t turns = 0;

    domi_pool_push_chains_to_owners(domt_outside_manager(world));
    do {
        done = 0;
        for (uint32_t i = 0; i < world->homes; i++)
            done += domt_iterate_home(world->managers[i]);
        ck_assert_msg(turns++ < TURNS_MAX, "the world never comes to rest");
    } while (done != 0);
    for (uint32_t i = 0; i < world->homes; i++)
        ck_assert(!domi_manager_has_work(world->managers[i]));
}

void domt_advance_time_without_runs(domt_world *world, uint64_t ns)
{
    for (uint32_t i = 0; i <= world->homes; i++)
        world->managers[i]->now_ns += ns;
}

void domt_pass_time(domt_world *world, uint64_t ns)
{
    while (ns != 0) {
        uint64_t step = ns < DOMI_WHEEL_TICK_NS ? ns : DOMI_WHEEL_TICK_NS;
        domt_advance_time_without_runs(world, step);
        domt_settle_world(world);
        ns -= step;
    }
}

domus_address domt_spawn(domi_manager *from, domi_manager *home, const domus_behaviour *behaviour,
                         const void *state)
{
    domus_address address = {0};

    ck_assert_int_eq(domi_house_spawn_without_parent(from, home, behaviour, state, &address), 0);
    return address;
}

int domt_send_notice(domi_manager *from, domus_address to, const domus_type *type,
                     const void *payload)
{
    domi_envelope *envelope = domi_envelope_new(from, DOMI_ENVELOPE_HEAD + type->size);

    if (envelope == NULL)
        return -ENOMEM;
    envelope->type = type;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    if (type->size != 0)
        memcpy(envelope->payload, payload, type->size);
    int result = domi_mailbox_put(from, to, &envelope->node, DOMI_NOTICE);
    if (result != 0)
        domi_pool_free_object(from, &envelope->node);
    return result;
}

unsigned domt_releases;

void domt_count_release(void *payload)
{
    domt_releases++;
}

const domus_type domt_counted = {.name = "counted", .size = 8, .release = domt_count_release};
const domus_type domt_call_type = {.name = "call", .size = sizeof(domt_call)};

static int on_call_run_function(domus_stack *stack, void *self, const void *payload)
{
    const domt_call *order = payload;

    return order->function(stack, order->context);
}

const domus_behaviour domt_agent = {
    .name = "agent",
    .kind = DOMUS_STATE,
    .on = (const domus_on[]){{&domt_call_type, on_call_run_function, 0}, {NULL, NULL, 0}},
};

void domt_send_function_to_call(domi_manager *from, domus_address agent,
                                int (*function)(domus_stack *, void *), void *context)
{
    domt_call order = {function, context};

    ck_assert_int_eq(domt_send_notice(from, agent, &domt_call_type, &order), 0);
}

void domt_run_as_actor(domt_world *world, domus_address agent,
                       int (*function)(domus_stack *, void *), void *context)
{
    domt_send_function_to_call(domt_outside_manager(world), agent, function, context);
    domt_settle_world(world);
}

uint64_t domt_sum_counter(const domt_world *world, size_t offset_in_counters)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i <= world->homes; i++) {
        const char *counters = (const char *)&world->managers[i]->counters;
        sum +=
            domi_counter_read((const domi_counter *)(const void *)(counters + offset_in_counters));
    }
    return sum;
}

uint64_t domt_sum_handled_messages(const domt_world *world, uint32_t kind)
{
    return domt_sum_counter(world, offsetof(domi_counters, handled) + kind * sizeof(domi_counter));
}

static void count_visited_object(void *object, void *count)
{
    ++*(uint64_t *)count;
}

uint64_t domt_count_objects_in_use(domt_world *world, uint32_t slab)
{
    uint64_t carved = 0;
    uint64_t idle = 0;

    for (uint32_t i = 0; i <= world->homes; i++) {
        domi_manager *manager = world->managers[i];
        domi_pool_push_chains_to_owners(manager);
        domi_slab_visit_objects(&manager->pool.slabs[slab], count_visited_object, &carved);
        for (void *object = manager->pool.slabs[slab].free; object != NULL;
             object = *(void **)object)
            idle++;
    }
    for (uint32_t i = 0; i <= world->homes; i++) {
        const domi_node *node =
            atomic_load_explicit(&world->managers[i]->pool.remote, memory_order_relaxed);
        for (; node != NULL; node = node->next)
            idle += node->slab == slab;
        for (node = world->managers[i]->pool.returned; node != NULL; node = node->next)
            idle += node->slab == slab;
    }
    ck_assert_uint_ge(carved, idle);
    return carved - idle;
}

uint64_t domt_count_all_objects_in_use(domt_world *world)
{
    uint64_t sum = 0;

    for (uint32_t slab = 0; slab < DOMI_SLABS; slab++)
        sum += domt_count_objects_in_use(world, slab);
    return sum;
}

uint64_t domt_world_mapped_bytes(const domt_world *world)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i <= world->homes; i++) {
        for (uint32_t slab = 0; slab < DOMI_SLABS; slab++)
            sum += world->managers[i]->pool.slabs[slab].mapped_bytes;
        for (uint32_t c = 0; c < DOMI_HOUSE_CLASSES; c++)
            sum += world->managers[i]->births.slots.slabs[c].mapped_bytes;
    }
    return sum;
}
