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

static int watch(domus_stack *stack, void *self, const void *payload)
{
    hearer *to = *(hearer **)self;

    if (to->has_no_memory)
        domi_memory_fail_after(0, 1);
    to->watch_result = domus_watch_memory(stack);
    domi_memory_fail_after(-1, 0);
    return 0;
}

static int unwatch(domus_stack *stack, void *self, const void *payload)
{
    (*(hearer **)self)->unwatch_result = domus_unwatch_memory(stack);
    return 0;
}

static int hear(domus_stack *stack, void *self, const void *payload)
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
    .on = (const domus_on[]){
        {&watch_type, watch, 0}, {&unwatch_type, unwatch, 0}, {&domus_memory_type, hear, 0}, {0}}};

static uint32_t read_now(const domi_manager *manager, domus_memory_change *ret_change)
{
    *ret_change = now;
    return number;
}

static void begin(void)
{
    now = (domus_memory_change){.limit_bytes = 1000};
    number = 0;
    domt_world_open(&world, 2);
    for (uint32_t i = 0; i <= world.homes; i++)
        world.managers[i]->hooks.read_memory = read_now;
}

static void end(void)
{
    domt_world_end(&world);
}

static domus_address spawn(hearer *to)
{
    *to = (hearer){0};
    domus_address made = domt_spawn(world.managers[0], world.managers[0], &hearing, &to);
    domt_settle(&world);
    return made;
}

static void say(domus_address to, const domus_type *type)
{
    ck_assert_int_eq(domt_notice(world.managers[0], to, type, NULL), 0);
    domt_settle(&world);
}

static domus_address begin_watching(hearer *to)
{
    begin();
    domus_address actor = spawn(to);
    say(actor, &watch_type);
    return actor;
}

static void change(domus_memory_level level, uint64_t own_bytes)
{
    now.level = level;
    now.own_bytes = own_bytes;
    number++;
}

static void tell(void)
{
    domi_memory_watches_fire(world.managers[0], world.managers[0]);
}

static void change_and_settle(domus_memory_level level, uint64_t own_bytes)
{
    change(level, own_bytes);
    tell();
    domt_settle(&world);
}

DOMT_TEST(each_change_is_heard_of_with_its_figures)
{
    hearer to;

    begin();
    domus_address actor = spawn(&to);
    change_and_settle(DOMUS_MEMORY_HIGH, 1);
    change_and_settle(DOMUS_MEMORY_NORMAL, 1);
    ck_assert_uint_eq(to.heard, 0); /* the actor does not watch yet */
    say(actor, &watch_type);
    ck_assert_int_eq(to.watch_result, 0);
    ck_assert_uint_eq(to.heard, 0);
    tell();
    domt_settle(&world);
    ck_assert_uint_eq(to.heard, 0);
    change_and_settle(DOMUS_MEMORY_HIGH, 17);
    ck_assert_uint_eq(to.heard, 1);
    ck_assert_int_eq(to.last.level, DOMUS_MEMORY_HIGH);
    ck_assert_uint_eq(to.last.own_bytes, 17);
    ck_assert_uint_eq(to.last.limit_bytes, 1000);
    tell(); /* the level has not changed */
    domt_settle(&world);
    ck_assert_uint_eq(to.heard, 1);
    change_and_settle(DOMUS_MEMORY_NORMAL, 2);
    ck_assert_uint_eq(to.heard, 2);
    ck_assert_int_eq(to.last.level, DOMUS_MEMORY_NORMAL);
    end();
}

DOMT_TEST(the_latest_is_told_by_one_event)
{
    hearer to;

    (void)begin_watching(&to);
    change(DOMUS_MEMORY_HIGH, 1);
    tell();
    change(DOMUS_MEMORY_CRITICAL, 2);
    tell();
    change(DOMUS_MEMORY_NORMAL, 3);
    domt_settle(&world);
    ck_assert_uint_eq(to.heard, 1);
    ck_assert_int_eq(to.last.level, DOMUS_MEMORY_NORMAL);
    ck_assert_uint_eq(to.last.own_bytes, 3);
    tell();
    domt_settle(&world);
    ck_assert_uint_eq(to.heard, 1);
    end();
}

static void change_once(void)
{
    if (number == 1)
        change(DOMUS_MEMORY_CRITICAL, 9);
    tell(); /* home looks while the event is being handled */
}

DOMT_TEST(a_change_while_it_is_handled_is_told_afterwards)
{
    hearer to;

    (void)begin_watching(&to);
    to.handling = change_once;
    change_and_settle(DOMUS_MEMORY_HIGH, 1);
    ck_assert_uint_eq(to.heard, 2);
    ck_assert_int_eq(to.last.level, DOMUS_MEMORY_CRITICAL);
    end();
}

DOMT_TEST(an_actor_that_begins_to_watch_while_memory_is_short_hears_at_once)
{
    hearer to, other;

    begin();
    change(DOMUS_MEMORY_HIGH, 5);
    domus_address actor = spawn(&to);
    say(actor, &watch_type);
    ck_assert_uint_eq(to.heard, 1);
    ck_assert_int_eq(to.last.level, DOMUS_MEMORY_HIGH);
    now.level = DOMUS_MEMORY_NORMAL;
    now.own_level = DOMUS_MEMORY_HIGH;
    actor = spawn(&other);
    say(actor, &watch_type);
    ck_assert_uint_eq(other.heard, 1);
    end();
}

DOMT_TEST(an_actor_watches_once_and_until_it_takes_it_back)
{
    hearer to;

    begin();
    domus_address actor = spawn(&to);
    say(actor, &unwatch_type);
    ck_assert_int_eq(to.unwatch_result, -ENOENT);
    say(actor, &watch_type);
    say(actor, &watch_type);
    ck_assert_int_eq(to.watch_result, -EALREADY);
    say(actor, &unwatch_type);
    ck_assert_int_eq(to.unwatch_result, 0);
    ck_assert(!domi_memory_is_watched(world.managers[0]));
    change_and_settle(DOMUS_MEMORY_HIGH, 1);
    ck_assert_uint_eq(to.heard, 0);
    ck_assert_uint_eq(domt_in_use(&world, DOMI_SLAB_MEMORY_WATCH), 0);
    say(actor, &watch_type);
    ck_assert_int_eq(to.watch_result, 0);
    ck_assert_uint_eq(to.heard, 1);
    end();
}

/* The event of the watch is in the mailbox, behind the notice by which the watch is removed. */
DOMT_TEST(an_event_under_way_is_not_handled_after_it_was_taken_back)
{
    hearer to;

    domus_address actor = begin_watching(&to);
    change(DOMUS_MEMORY_HIGH, 1);
    tell();
    ck_assert_int_eq(domt_notice(world.managers[0], actor, &unwatch_type, NULL), 0);
    domt_settle(&world);
    ck_assert_int_eq(to.unwatch_result, 0);
    ck_assert_uint_eq(to.heard, 0);
    ck_assert_uint_eq(domt_in_use(&world, DOMI_SLAB_MEMORY_WATCH), 0);
    end();
}

DOMT_TEST(a_watch_ends_with_its_actor)
{
    hearer to, other;

    begin();
    domus_address actor = spawn(&to);
    domus_address left = spawn(&other);
    say(actor, &watch_type);
    say(left, &watch_type);
    change(DOMUS_MEMORY_HIGH, 1);
    tell(); /* events are under way to both actors */
    domt_stop(&world, world.managers[0], actor);
    ck_assert_uint_eq(domt_in_use(&world, DOMI_SLAB_MEMORY_WATCH), 1);
    ck_assert_uint_eq(other.heard, 1);
    change_and_settle(DOMUS_MEMORY_NORMAL, 1);
    ck_assert_uint_eq(other.heard, 2);
    end();
}

/* There are more watchers than a tick looks at. */
DOMT_TEST(all_of_many_watchers_are_told)
{
    enum { MANY = 2500 };
    static hearer to[MANY];
    uint32_t heard = 0;

    begin();
    for (uint32_t i = 0; i < MANY; i++)
        say(spawn(&to[i]), &watch_type);
    change(DOMUS_MEMORY_HIGH, 1);
    for (int tick = 0; tick < 3; tick++) {
        tell();
        domt_settle(&world);
        heard = 0;
        for (uint32_t i = 0; i < MANY; i++)
            heard += to[i].heard;
        ck_assert_uint_eq(heard, tick < 2 ? 1024u * (uint32_t)(tick + 1) : MANY);
    }
    for (uint32_t i = 0; i < MANY; i++)
        ck_assert_uint_eq(to[i].heard, 1);
    end();
}

DOMT_TEST(without_memory_there_is_no_watch)
{
    hearer to;

    begin();
    domus_address actor = spawn(&to);
    to.has_no_memory = true;
    say(actor, &watch_type);
    ck_assert_int_eq(to.watch_result, -ENOMEM);
    say(actor, &unwatch_type);
    ck_assert_int_eq(to.unwatch_result, -ENOENT);
    end();
}

DOMT_TEST(where_nobody_measures_nothing_is_heard)
{
    hearer to;

    begin();
    for (uint32_t i = 0; i <= world.homes; i++)
        world.managers[i]->hooks.read_memory = NULL;
    domus_address actor = spawn(&to);
    say(actor, &watch_type);
    ck_assert_int_eq(to.watch_result, 0);
    change_and_settle(DOMUS_MEMORY_HIGH, 1);
    ck_assert_uint_eq(to.heard, 0);
    end();
}

DOMT_SUITE(60)
