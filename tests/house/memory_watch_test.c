/* house/family/memory_watch.c: an actor that watches memory gets an event of each change. At most
 * one event is under way, and it has the level at the time when it is handled. A watch ends when it
 * is removed, and with its actor. */
#include "house/family/memory_watch.h"

#include "base/memory.h"
#include "house/family/life.h"
#include "tests/house/steps.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>

static domt_world world;
static domus_memory_change now;
static uint32_t number;

typedef struct hearer {
    int watch_result;
    int unwatch_result;
    bool has_no_memory;
    uint32_t heard;
    domus_memory_change last;
    void (*handling)(void);
} hearer;

static const domus_type watch_type = {.name = "watch"};
static const domus_type unwatch_type = {.name = "unwatch"};

static int watch_memory(domus_stack *stack, void *self, const void *payload)
{
    hearer *to = *(hearer **)self;

    if (to->has_no_memory)
        domi_memory_fail_allocation_after(0, 1);
    to->watch_result = domus_watch_memory(stack);
    domi_memory_fail_allocation_after(-1, 0);
    return 0;
}

static int unwatch_memory(domus_stack *stack, void *self, const void *payload)
{
    (*(hearer **)self)->unwatch_result = domus_unwatch_memory(stack);
    return 0;
}

static int record_change_of_memory(domus_stack *stack, void *self, const void *payload)
{
    hearer *to = *(hearer **)self;

    to->heard++;
    to->last = *(const domus_memory_change *)payload;
    if (to->handling != NULL)
        to->handling();
    return 0;
}

static const domus_behaviour hearing = {
    .name = "hearing",
    .state_size = sizeof(hearer *),
    .on = (const domus_on[]){{&watch_type, watch_memory, 0},
                             {&unwatch_type, unwatch_memory, 0},
                             {&domus_memory_type, record_change_of_memory, 0},
                             {0}}};

static uint32_t read_simulated_memory(const domi_manager *manager, domus_memory_change *ret_change)
{
    *ret_change = now;
    return number;
}

static void set_up_world(void)
{
    now = (domus_memory_change){.limit_bytes = 1000};
    number = 0;
    domt_world_open(&world, 2);
    for (uint32_t i = 0; i <= world.homes; i++)
        world.managers[i]->hooks.read_memory = read_simulated_memory;
}

static void tear_down_world(void)
{
    domt_world_end(&world);
}

static domus_address spawn_hearer(hearer *to)
{
    *to = (hearer){0};
    domus_address made = domt_spawn(world.managers[0], world.managers[0], &hearing, &to);
    domt_settle_world(&world);
    return made;
}

static void send_notice(domus_address to, const domus_type *type)
{
    ck_assert_int_eq(domt_send_notice(world.managers[0], to, type, NULL), 0);
    domt_settle_world(&world);
}

static domus_address begin_watching(hearer *to)
{
    set_up_world();
    domus_address actor = spawn_hearer(to);
    send_notice(actor, &watch_type);
    return actor;
}

static void set_simulated_level(domus_memory_level level, uint64_t own_bytes)
{
    now.level = level;
    now.own_bytes = own_bytes;
    number++;
}

static void fire_memory_watches(void)
{
    domi_memory_watches_put_events(world.managers[0], world.managers[0]);
}

static void change_memory_and_settle(domus_memory_level level, uint64_t own_bytes)
{
    set_simulated_level(level, own_bytes);
    fire_memory_watches();
    domt_settle_world(&world);
}

DOMT_TEST(each_change_of_memory_is_heard_with_its_figures)
{
    hearer to;

    set_up_world();
    domus_address actor = spawn_hearer(&to);
    change_memory_and_settle(DOMUS_MEMORY_HIGH, 1);
    change_memory_and_settle(DOMUS_MEMORY_NORMAL, 1);
    ck_assert_uint_eq(to.heard, 0); /* the actor hears nothing before it watches */
    send_notice(actor, &watch_type);
    ck_assert_int_eq(to.watch_result, 0);
    ck_assert_uint_eq(to.heard, 0);
    fire_memory_watches();
    domt_settle_world(&world);
    ck_assert_uint_eq(to.heard, 0);
    change_memory_and_settle(DOMUS_MEMORY_HIGH, 17);
    ck_assert_uint_eq(to.heard, 1);
    ck_assert_int_eq(to.last.level, DOMUS_MEMORY_HIGH);
    ck_assert_uint_eq(to.last.own_bytes, 17);
    ck_assert_uint_eq(to.last.limit_bytes, 1000);
    fire_memory_watches(); /* the level is the same as before, so no event comes */
    domt_settle_world(&world);
    ck_assert_uint_eq(to.heard, 1);
    change_memory_and_settle(DOMUS_MEMORY_NORMAL, 2);
    ck_assert_uint_eq(to.heard, 2);
    ck_assert_int_eq(to.last.level, DOMUS_MEMORY_NORMAL);
    tear_down_world();
}

DOMT_TEST(latest_of_several_memory_changes_is_told_by_one_event)
{
    hearer to;

    (void)begin_watching(&to);
    set_simulated_level(DOMUS_MEMORY_HIGH, 1);
    fire_memory_watches();
    set_simulated_level(DOMUS_MEMORY_CRITICAL, 2);
    fire_memory_watches();
    set_simulated_level(DOMUS_MEMORY_NORMAL, 3);
    domt_settle_world(&world);
    ck_assert_uint_eq(to.heard, 1);
    ck_assert_int_eq(to.last.level, DOMUS_MEMORY_NORMAL);
    ck_assert_uint_eq(to.last.own_bytes, 3);
    fire_memory_watches();
    domt_settle_world(&world);
    ck_assert_uint_eq(to.heard, 1);
    tear_down_world();
}

static void change_level_during_event(void)
{
    if (number == 1)
        set_simulated_level(DOMUS_MEMORY_CRITICAL, 9);
    fire_memory_watches(); /* home fires the watches while this event is being handled */
}

DOMT_TEST(a_change_while_it_is_handled_is_told_afterwards)
{
    hearer to;

    (void)begin_watching(&to);
    to.handling = change_level_during_event;
    change_memory_and_settle(DOMUS_MEMORY_HIGH, 1);
    ck_assert_uint_eq(to.heard, 2);
    ck_assert_int_eq(to.last.level, DOMUS_MEMORY_CRITICAL);
    tear_down_world();
}

DOMT_TEST(an_actor_that_begins_to_watch_while_memory_is_short_hears_at_once)
{
    hearer to, other;

    set_up_world();
    set_simulated_level(DOMUS_MEMORY_HIGH, 5);
    domus_address actor = spawn_hearer(&to);
    send_notice(actor, &watch_type);
    ck_assert_uint_eq(to.heard, 1);
    ck_assert_int_eq(to.last.level, DOMUS_MEMORY_HIGH);
    now.level = DOMUS_MEMORY_NORMAL;
    now.own_level = DOMUS_MEMORY_HIGH;
    actor = spawn_hearer(&other);
    send_notice(actor, &watch_type);
    ck_assert_uint_eq(other.heard, 1);
    tear_down_world();
}

DOMT_TEST(an_actor_watches_once_and_until_it_takes_it_back)
{
    hearer to;

    set_up_world();
    domus_address actor = spawn_hearer(&to);
    send_notice(actor, &unwatch_type);
    ck_assert_int_eq(to.unwatch_result, -ENOENT);
    send_notice(actor, &watch_type);
    send_notice(actor, &watch_type);
    ck_assert_int_eq(to.watch_result, -EALREADY);
    send_notice(actor, &unwatch_type);
    ck_assert_int_eq(to.unwatch_result, 0);
    ck_assert(!domi_memory_is_watched(world.managers[0]));
    change_memory_and_settle(DOMUS_MEMORY_HIGH, 1);
    ck_assert_uint_eq(to.heard, 0);
    ck_assert_uint_eq(domt_count_objects_in_use(&world, DOMI_SLAB_MEMORY_WATCH), 0);
    send_notice(actor, &watch_type);
    ck_assert_int_eq(to.watch_result, 0);
    ck_assert_uint_eq(to.heard, 1);
    tear_down_world();
}

/* The event of the watch is in the mailbox, behind the notice that lets the actor remove the watch:
 * the event is not handled. */
DOMT_TEST(an_event_under_way_is_not_handled_after_it_was_taken_back)
{
    hearer to;

    domus_address actor = begin_watching(&to);
    set_simulated_level(DOMUS_MEMORY_HIGH, 1);
    fire_memory_watches();
    ck_assert_int_eq(domt_send_notice(world.managers[0], actor, &unwatch_type, NULL), 0);
    domt_settle_world(&world);
    ck_assert_int_eq(to.unwatch_result, 0);
    ck_assert_uint_eq(to.heard, 0);
    ck_assert_uint_eq(domt_count_objects_in_use(&world, DOMI_SLAB_MEMORY_WATCH), 0);
    tear_down_world();
}

DOMT_TEST(a_watch_of_memory_ends_with_its_actor)
{
    hearer to, other;

    set_up_world();
    domus_address actor = spawn_hearer(&to);
    domus_address left = spawn_hearer(&other);
    send_notice(actor, &watch_type);
    send_notice(left, &watch_type);
    set_simulated_level(DOMUS_MEMORY_HIGH, 1);
    fire_memory_watches(); /* the events to both actors are under way */
    domt_stop_actor_and_settle(&world, world.managers[0], actor);
    ck_assert_uint_eq(domt_count_objects_in_use(&world, DOMI_SLAB_MEMORY_WATCH), 1);
    ck_assert_uint_eq(other.heard, 1);
    change_memory_and_settle(DOMUS_MEMORY_NORMAL, 1);
    ck_assert_uint_eq(other.heard, 2);
    tear_down_world();
}

/* More actors watch than one tick tells. */
DOMT_TEST(all_of_many_watchers_of_memory_are_told)
{
    enum { MANY = 2500 };
    static hearer to[MANY];
    uint32_t heard = 0;

    set_up_world();
    for (uint32_t i = 0; i < MANY; i++)
        send_notice(spawn_hearer(&to[i]), &watch_type);
    set_simulated_level(DOMUS_MEMORY_HIGH, 1);
    for (int tick = 0; tick < 3; tick++) {
        fire_memory_watches();
        domt_settle_world(&world);
        heard = 0;
        for (uint32_t i = 0; i < MANY; i++)
            heard += to[i].heard;
        ck_assert_uint_eq(heard, tick < 2 ? 1024u * (uint32_t)(tick + 1) : MANY);
    }
    for (uint32_t i = 0; i < MANY; i++)
        ck_assert_uint_eq(to[i].heard, 1);
    tear_down_world();
}

DOMT_TEST(watch_of_memory_that_gets_no_memory_fails)
{
    hearer to;

    set_up_world();
    domus_address actor = spawn_hearer(&to);
    to.has_no_memory = true;
    send_notice(actor, &watch_type);
    ck_assert_int_eq(to.watch_result, -ENOMEM);
    send_notice(actor, &unwatch_type);
    ck_assert_int_eq(to.unwatch_result, -ENOENT);
    tear_down_world();
}

DOMT_TEST(where_nobody_measures_memory_nothing_is_heard)
{
    hearer to;

    set_up_world();
    for (uint32_t i = 0; i <= world.homes; i++)
        world.managers[i]->hooks.read_memory = NULL;
    domus_address actor = spawn_hearer(&to);
    send_notice(actor, &watch_type);
    ck_assert_int_eq(to.watch_result, 0);
    change_memory_and_settle(DOMUS_MEMORY_HIGH, 1);
    ck_assert_uint_eq(to.heard, 0);
    tear_down_world();
}

DOMT_SUITE(60)
