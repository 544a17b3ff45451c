/* house/dispatch/later.c: a channels actor runs once more before the sends of an
 * iteration leave. */
#include "house/dispatch/dispatch.h"
#include "house/dispatch/phases.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "io/channels/table.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static domus_address owner;
static domus_address address; /* the address of the channel */
static int fd, peer;
static uint32_t gathered; /* bytes that the next event writes */
static uint32_t events;
static uint32_t again; /* events that ask for another one */
static int last;

static const domus_type gather_type = {.name = "gather"};

static int on_gather(domus_stack *stack, void *self, const void *payload)
{
    gathered += 600;
    last = domus_later(stack);
    return 0;
}

static int on_later(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *channel = domus_channel_running(stack);
    domus_buffer *bytes = NULL;

    events++;
    if (again != 0) {
        again--;
        ck_assert_int_eq(domus_later(stack), 0);
        ck_assert_int_eq(domus_later(stack), 0);
    }
    if (channel == NULL || gathered == 0)
        return 0;
    ck_assert_int_eq(domus_buffer_new(stack, gathered, &bytes), 0);
    gathered = 0;
    return domus_channel_write(stack, channel, bytes);
}

static const domus_on rows[] = {
    {&gather_type, on_gather, 0}, {&domus_later_type, on_later, 0}, {NULL, NULL, 0}};

static const domus_behaviour line = {.name = "line", .kind = DOMUS_CHANNELS, .on = rows};
static const domus_behaviour owning = {
    .name = "owning", .kind = DOMUS_CHANNELS, .on = rows, .channel = &line};
static const domus_behaviour state = {.name = "state", .on = rows};

static void begin(void)
{
    gathered = events = again = 0;
    domt_bed_start();
    owner = domt_bed_spawn(&owning, NULL);
    domt_bed_turn();
    fd = domt_bed_connect_to(owner, &peer);
    address = domus_channel_address(bed->io.slots[0].channel);
}

static void end(void)
{
    (void)domi_io_abort(&bed->io);
    ck_assert_int_eq(domi_house_stop(&bed->manager, owner), 0);
    domt_bed_settle();
    domt_bed_end();
}

static void tell(domus_address to)
{
    ck_assert_int_eq(domt_bed_put(to, DOMI_NOTICE, &gather_type, NULL), 0);
}

DOMT_TEST(several_calls_bring_one_event_before_the_sends)
{
    begin();
    for (int i = 0; i < 3; i++)
        tell(address);
    domt_bed_turn();
    ck_assert_int_eq(last, 0);
    ck_assert_uint_eq(events, 1);
    const domt_op *send = domt_fake_find(bed->fake, DOMT_SEND, fd);
    ck_assert_ptr_nonnull(send);
    ck_assert_ptr_null(send->message);
    ck_assert_uint_eq(send->size, 1800);
    tell(address); /* and again in the next iteration */
    domt_bed_turn();
    ck_assert_uint_eq(events, 2);
    domt_bed_turn();
    ck_assert_uint_eq(events, 2);
    domt_bed_sent(fd, 1800);
    domt_fake_sent(bed->fake, fd, 600);
    end();
}

/* An actor that always asks again has one event in each phase 2, and the thread does not sleep. */
DOMT_TEST(event_that_asks_again_waits_for_the_next_phase)
{
    begin();
    again = 3;
    tell(owner);
    for (uint32_t i = 1; i <= 4; i++) {
        domt_bed_turn();
        ck_assert_uint_eq(events, i);
        ck_assert_int_eq(domi_manager_has_work(&bed->manager), i != 4);
    }
    domt_bed_turn();
    ck_assert_uint_eq(events, 4);
    end();
}

/* The actor has ended before its event: the next actor in the slot does not get it. */
DOMT_TEST(event_of_an_actor_that_has_ended_is_dropped)
{
    domus_address one;
    domus_address next;

    begin();
    one = domt_bed_spawn(&owning, NULL);
    domt_bed_turn();
    tell(one);
    again = 1;
    domt_bed_turn(); /* handled once; another one waits */
    ck_assert_uint_eq(events, 1);
    ck_assert(domi_manager_has_work(&bed->manager));
    ck_assert_int_eq(domi_house_stop(&bed->manager, one), 0);
    domi_house_run(&bed->manager, domi_queue_take(&bed->manager.schedule.ready[DOMUS_CHANNELS]));
    next = domt_bed_spawn(&owning, NULL);
    ck_assert_ptr_eq(next.house, one.house);
    domt_bed_turn();
    ck_assert_uint_eq(events, 1);
    ck_assert(!domi_manager_has_work(&bed->manager));
    ck_assert_int_eq(domi_house_stop(&bed->manager, next), 0);
    end();
}

DOMT_TEST(state_actor_is_refused)
{
    domus_address one;

    begin();
    one = domt_bed_spawn(&state, NULL);
    domt_bed_turn();
    tell(one);
    domi_house_run(&bed->manager, domi_queue_take(&bed->manager.schedule.ready[DOMUS_STATE]));
    ck_assert_int_eq(last, -EOPNOTSUPP);
    ck_assert_int_eq(domi_house_stop(&bed->manager, one), 0);
    domi_house_run(&bed->manager, domi_queue_take(&bed->manager.schedule.ready[DOMUS_STATE]));
    end();
}

DOMT_SUITE(20)
