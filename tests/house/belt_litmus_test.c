/* Belts as two threads on two CPUs meet them (duel.h): a sender that looks at the switch against a
 * receiver that parks, and the mark of an inbox against a message that could overtake it. */
#include "base/spinlock.h"
#include "house/dispatch/carry.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/house/duel.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <string.h>

struct play {
    domt_world world;
    domi_manager *home;
    domi_manager *sender;
    domus_address actor; /* of `home` */
    uint64_t put;
    uint64_t received;
    uint64_t disordered;
    uint64_t delays; /* of the receiver */
    bool saw;        /* the receiver has not gone to sleep */
    uint32_t wakes;  /* before the round */
};

static struct play stage;

static const domus_type number_type = {.name = "number", .size = sizeof(uint64_t)};

static int take_number(domus_stack *stack, void *self, const void *number)
{
    stage.disordered += *(const uint64_t *)number != ++stage.received;
    return 0;
}

static const domus_behaviour counter = {
    .name = "counter",
    .on = (const domus_on[]){{&number_type, take_number, 0}, {NULL, NULL, 0}},
};

/* Put the next number as domus_notice() does, or, if it is no copy, by the inbox. */
static void put_number(bool copied)
{
    domi_envelope *envelope = domi_message_new(stage.sender, sizeof *envelope);
    uint64_t number = ++stage.put;

    ck_assert_ptr_nonnull(envelope);
    envelope->type = &number_type;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    memcpy(envelope->payload, &number, sizeof number);
    int error = copied ? domi_mailbox_put_copied(stage.sender, stage.actor, &envelope->node)
                       : domi_mailbox_put(stage.sender, stage.actor, &envelope->node, DOMI_NOTICE);
    ck_assert_int_eq(error, 0);
}

static void open_play(void)
{
    memset(&stage, 0, sizeof stage);
    domt_world_open(&stage.world, 2);
    stage.home = stage.world.managers[0];
    stage.sender = stage.world.managers[1];
    stage.actor = domt_spawn(domt_outside(&stage.world), stage.home, &counter, NULL);
    domt_settle(&stage.world);
}

static void end_play(void)
{
    domt_settle(&stage.world);
    ck_assert_uint_eq(stage.received, stage.put);
    ck_assert_uint_eq(stage.disordered, 0);
    domt_world_end(&stage.world);
}

/* Let the belt be on and empty. */
static void begin_round(void)
{
    domi_manager_own(stage.sender);
    put_number(true);
    domt_settle(&stage.world);
    stage.wakes = stage.world.wakes[0];
}

/* A put takes longer than what the receiver does, so the receiver begins later, in each round by
 * another time. */
static void delay(void)
{
    for (uint64_t i = stage.delays++ % 64; i > 0; i--)
        domi_pause();
}

/* --- the switch against the park -------------------------------------------------------------- */

/* This side parks as fall_asleep() does. */
static void park(void *unused)
{
    delay();
    stage.saw = !domi_belts_rest(stage.home);
    if (stage.saw)
        return;
    atomic_exchange_explicit(&stage.home->park, DOMI_PARK_SLEEPING, memory_order_seq_cst);
    stage.saw = domi_manager_has_work(stage.home);
}

static void put(void *unused)
{
    domi_manager_own(stage.sender);
    put_number(true);
}

static uint32_t both_missed(void *unused)
{
    uint64_t taken = domi_belts_take(stage.home);
    (void)unused;
    /* A message that the last look has found is in the mailbox by now. */
    bool missed = !stage.saw && stage.world.wakes[0] == stage.wakes && taken == 0 &&
                  stage.received != stage.put;

    atomic_exchange_explicit(&stage.home->park, DOMI_PARK_RUNNING, memory_order_seq_cst);
    domi_manager_own(stage.sender);
    domt_settle(&stage.world);
    begin_round();
    return missed;
}

DOMT_TEST(receiver_that_parks_and_sender_that_looks_never_both_miss)
{
    const domt_duel duel = {{park, put}, both_missed, NULL};

    open_play();
    begin_round();
    ck_assert_uint_eq(domt_duel_hold("park, put by a belt", &duel), 0);
    end_play();
}

/* --- the mark of an inbox --------------------------------------------------------------------- */

static void sort(void *unused)
{
    delay();
    (void)domi_manager_take_arrivals(stage.home);
}

static void put_two(void *unused)
{
    domi_manager_own(stage.sender);
    put_number(true);
    put_number(true);
}

/* Every second round begins with a message on the belt, too, which comes before the inbox. */
static uint32_t overtaken(void *unused)
{
    uint64_t before = stage.disordered;

    domi_manager_own(stage.sender);
    domt_settle(&stage.world);
    if (stage.put % 2 == 0)
        put_number(true);
    put_number(false);
    return stage.disordered != before;
}

DOMT_TEST(message_by_a_belt_overtakes_none_of_the_inbox_that_is_sorted)
{
    const domt_duel duel = {{sort, put_two}, overtaken, NULL};

    open_play();
    put_number(false);
    ck_assert_uint_eq(domt_duel_hold("sort, put by a belt", &duel), 0);
    end_play();
}

DOMT_SUITE(120)
