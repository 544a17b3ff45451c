/* A manager has parts of many storeys (pool, slots, wheels, limits), so it is made up here. */
#include "house/dispatch/manage.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/loan.h"
#include "house/dispatch/phases.h"
#include "house/family/life.h"
#include "house/family/slots.h"
#include "house/message/pool.h"

#include <errno.h>

static const _Atomic uint32_t none = DOMUS_MEMORY_NORMAL;

static void free_tables(domi_manager *manager)
{
    domi_memory_free(manager->chains);
    domi_memory_free(manager->slots_of);
    domi_memory_free(manager->links.by_home);
}

int domi_manager_init(domi_manager *manager, uint32_t index, uint32_t count,
                      domi_manager **managers, const domus_config *config, uint64_t now_ns)
{
    DOMI_CHECK(count <= DOMI_MANAGERS_MAX && index < count);
    domi_manager_own(manager);
    manager->index = index;
    manager->count = count;
    /* All managers but the outside's are of threads of the loop. If the system may have detached
     * actors, runtime sets this number again. */
    manager->threads = count - 1;
    manager->managers = managers;
    manager->config = config;
    manager->mailbox_max = manager->lane_max = config->scheduler.mailbox_max;
    manager->pressure = &none;
    domi_manager_set_run_limit(manager, config->scheduler.messages_per_run_max);
    manager->conversations_max = config->scheduler.conversations_max;
    manager->ready[DOMUS_STATE].normal_every = config->scheduler.normal_every;
    manager->ready[DOMUS_CHANNELS].normal_every = config->scheduler.normal_every;
    manager->now_ns = now_ns;
    manager->chains = domi_memory_new(count * sizeof(domi_chain));
    manager->slots_of = domi_memory_new(count * sizeof(domi_slot_cache));
    manager->links.by_home = domi_memory_new(count * sizeof(domi_link_chain));
    if (manager->chains == NULL || manager->slots_of == NULL || manager->links.by_home == NULL) {
        free_tables(manager);
        return -ENOMEM;
    }
    domi_pool_init(manager);
    domi_slots_init(manager);
    domi_spinlock_init(&manager->shared_lock);
    domi_spinlock_init(&manager->memory_watches.lock);
    domi_wheel_init(&manager->wheel, now_ns);
    domi_wheel_init(&manager->deadlines, now_ns);
    manager->next_home = index; /* so that not all managers begin with the same thread */
    return 0;
}

void domi_manager_fini(domi_manager *manager)
{
    domi_slots_fini(manager);
    domi_pool_fini(manager);
    free_tables(manager);
}

static void end_house(void *house, void *manager)
{
    domi_house_end_left(manager, house);
}

void domi_manager_end_actors(domi_manager *manager)
{
    DOMI_CHECK(domi_manager_is_mine(manager));
    manager->has_stopped = true;
    domi_loans_end(manager);
    (void)domi_manager_take_arrivals(manager);
    domi_slots_walk(manager, end_house, manager);
    manager->ready[DOMUS_STATE] = manager->ready[DOMUS_CHANNELS] = (domi_queue){0};
    manager->mounting = (domi_fifo){NULL, NULL};
}

static void stop_house(void *house_, void *manager)
{
    domi_house *house = house_;
    uint64_t life = domi_house_life(house);

    if ((life & DOMI_LIFE_CLOSED) == 0 && house->parent == NULL)
        (void)domi_house_stop(manager, domi_house_address(house));
}

void domi_manager_stop_actors(domi_manager *manager)
{
    DOMI_CHECK(domi_manager_is_mine(manager));
    (void)domi_manager_take_arrivals(manager);
    domi_slots_walk(manager, stop_house, manager);
}
