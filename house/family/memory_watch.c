/* Tells actors of changes of memory's level: home's list of watches, its lock, and the verbs of
 * domus/memory.h. */
#include "house/family/memory_watch.h"

#include "base/check.h"
#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"

#include <errno.h>

#define VISITS_PER_TICK 1024u /* most watches on memory that one step of the walk visits */

const domus_type domus_memory_type = {.name = "memory", .size = sizeof(domus_memory_change)};

/* Returns the number of the latest change of memory's level, and hands out the levels after it. If
 * no thread measures memory, these are 0 and NORMAL. */
static uint32_t read_levels_of_memory(const domi_manager *manager, domus_memory_change *ret_change)
{
    if (manager->hooks.read_memory != NULL)
        return manager->hooks.read_memory(manager, ret_change);
    *ret_change = (domus_memory_change){.level = DOMUS_MEMORY_NORMAL};
    return 0;
}

/* --- home's list, under its lock -------------------------------------------------------------- */

static void append_watch_to_list_of_home(domi_manager *home, domi_memory_watch *watch)
{
    watch->next = NULL;
    watch->previous = home->memory.watches.tail;
    if (watch->previous != NULL)
        watch->previous->next = watch;
    else
        home->memory.watches.head = watch;
    home->memory.watches.tail = watch;
}

static void remove_watch_from_list_of_home(domi_manager *home, domi_memory_watch *watch)
{
    if (watch->previous != NULL)
        watch->previous->next = watch->next;
    else
        home->memory.watches.head = watch->next;
    if (watch->next != NULL)
        watch->next->previous = watch->previous;
    else
        home->memory.watches.tail = watch->previous;
}

/* Relaxed, load and store: the count is written under the lock, and a thread that reads it without
 * the lock may read an old value. */
static void add_to_count_of_watches(domi_manager *home, uint32_t by)
{
    atomic_store_explicit(&home->memory.watches.count,
                          atomic_load_explicit(&home->memory.watches.count, memory_order_relaxed) +
                              by,
                          memory_order_relaxed);
}

bool domi_memory_is_watched(const domi_manager *manager)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&manager->memory.watches.count,
                                memory_order_relaxed) != 0;
}

/* --- telling ---------------------------------------------------------------------------------- */

/* Put the event of a watch on memory. The watch is marked as under way, so no thread frees it until
 * the event was handled or dropped. */
static void put_event_of_memory_watch(domi_manager *manager, domi_memory_watch *watch)
{
    const domus_address address = {watch->house, watch->lease};

    if (domi_mailbox_put(manager, address, &watch->event.node, DOMI_EVENT) != 0)
        domi_memory_watch_drop_node(manager, watch);
}

/* Returns the next watch on memory whose actor has not been told of the change with this number;
 * NULL: there is none for now. */
static domi_memory_watch *find_next_watch_not_told(domi_manager *home, uint32_t number,
                                                   uint32_t *visits)
{
    domi_memory_watch *found = NULL;

    domi_spinlock_lock(&home->memory.watches.lock);
    while (found == NULL && home->memory.watches.left != 0 && *visits != 0 &&
           home->memory.watches.head != NULL) {
        domi_memory_watch *watch = home->memory.watches.head;

        remove_watch_from_list_of_home(home, watch);
        append_watch_to_list_of_home(home, watch);
        home->memory.watches.left--;
        (*visits)--;
        if (!watch->under_way && watch->told != number) {
            watch->under_way = true;
            found = watch;
        }
    }
    domi_spinlock_unlock(&home->memory.watches.lock);
    return found;
}

/* Begin a walk over home's list of watches, because memory has changed for the time `number`. */
static void begin_walk_over_memory_watches(domi_manager *home, uint32_t number)
{
    domi_spinlock_lock(&home->memory.watches.lock);
    home->memory.watches.left =
        atomic_load_explicit(&home->memory.watches.count, memory_order_relaxed);
    atomic_store_explicit(&home->memory.watches.seen, number, memory_order_relaxed);
    domi_spinlock_unlock(&home->memory.watches.lock);
}

void domi_memory_watches_put_events(domi_manager *manager, domi_manager *home)
{
    uint32_t visits = VISITS_PER_TICK;
    domus_memory_change change;
    domi_memory_watch *watch;

    if (!domi_memory_is_watched(home))
        return;
    uint32_t number = read_levels_of_memory(manager, &change);
    if (number != atomic_load_explicit(&home->memory.watches.seen, memory_order_relaxed))
        begin_walk_over_memory_watches(home, number);
    while ((watch = find_next_watch_not_told(home, number, &visits)) != NULL)
        put_event_of_memory_watch(manager, watch);
}

bool domi_memory_watch_read_levels_for_event(domi_manager *manager, domi_memory_watch *watch)
{
    domi_manager *home = watch->house->home;

    domi_spinlock_lock(&home->memory.watches.lock);
    bool is_wanted = !watch->cancelled;
    if (is_wanted)
        watch->told = read_levels_of_memory(manager, &watch->change);
    domi_spinlock_unlock(&home->memory.watches.lock);
    return is_wanted;
}

/* End an event of a watch on memory that was handled. If memory has changed meanwhile, home has not
 * put the event again, so this function puts it. */
void domi_memory_watch_end_event(domi_manager *manager, domi_memory_watch *watch)
{
    domi_manager *home = watch->house->home;
    domus_memory_change change;

    domi_spinlock_lock(&home->memory.watches.lock);
    bool is_free = watch->cancelled;
    bool again = !is_free && watch->told != read_levels_of_memory(manager, &change);
    watch->under_way = again;
    domi_spinlock_unlock(&home->memory.watches.lock);
    if (is_free)
        domi_pool_free_object(manager, &watch->event.node);
    else if (again)
        put_event_of_memory_watch(manager, watch);
}

void domi_memory_watch_drop_node(domi_manager *manager, domi_memory_watch *watch)
{
    domi_manager *home = watch->house->home;

    domi_spinlock_lock(&home->memory.watches.lock);
    bool is_free = watch->cancelled;
    watch->under_way = false;
    domi_spinlock_unlock(&home->memory.watches.lock);
    if (is_free)
        domi_pool_free_object(manager, &watch->event.node);
}

/* --- the actor's side ------------------------------------------------------------------------- */

/* Returns the house's own watch on memory; NULL: it has none. */
static domi_memory_watch *find_memory_watch_of_house(const domi_house *house)
{
    for (domi_link *link = house->attached; link != NULL; link = link->next) {
        if (domi_link_get_node(link)->slab == DOMI_SLAB_MEMORY_WATCH)
            return (domi_memory_watch *)(void *)domi_link_get_node(link);
    }
    return NULL;
}

int domus_watch_memory(domus_stack *stack)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_get_house(stack);
    domi_manager *home = house->home;

    if (find_memory_watch_of_house(house) != NULL)
        return -EALREADY;
    domi_memory_watch *watch = domi_pool_take_object(manager, DOMI_SLAB_MEMORY_WATCH);
    if (watch == NULL)
        return -ENOMEM;
    watch->event.type = &domus_memory_type;
    watch->event.sender = NULL;
    watch->event.sender_lease = 0;
    watch->event.error = 0;
    watch->house = house;
    watch->lease = domi_house_get_address(house).lease;
    watch->cancelled = false;
    watch->told = read_levels_of_memory(manager, &watch->change);
    watch->under_way = watch->change.level != DOMUS_MEMORY_NORMAL ||
                       watch->change.own_level != DOMUS_MEMORY_NORMAL;
    domi_link_attach_to_house(house, &watch->link);
    domi_spinlock_lock(&home->memory.watches.lock);
    append_watch_to_list_of_home(home, watch);
    add_to_count_of_watches(home, 1);
    home->memory.watches.left++; /* the present walk of home then visits this new watch, too */
    domi_spinlock_unlock(&home->memory.watches.lock);
    if (watch->under_way)
        put_event_of_memory_watch(manager, watch);
    return 0;
}

void domi_memory_watch_cancel(domi_manager *manager, domi_memory_watch *watch)
{
    domi_manager *home = watch->house->home;

    domi_link_detach_from_house(watch->house, &watch->link);
    domi_spinlock_lock(&home->memory.watches.lock);
    remove_watch_from_list_of_home(home, watch);
    add_to_count_of_watches(home, UINT32_MAX);
    watch->cancelled = true;
    bool is_free = !watch->under_way;
    domi_spinlock_unlock(&home->memory.watches.lock);
    if (is_free)
        domi_pool_free_object(manager, &watch->event.node);
}

int domus_unwatch_memory(domus_stack *stack)
{
    domi_memory_watch *watch = find_memory_watch_of_house(domi_stack_get_house(stack));

    if (watch == NULL)
        return -ENOENT;
    domi_memory_watch_cancel(stack->manager, watch);
    return 0;
}
