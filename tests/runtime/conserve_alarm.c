/* The alarm of the conservation stress: an actor that is told of a silence, and whose timer ends it
 * when all threads sleep, by feeding the graph. */
#include "tests/runtime/conserve.h"

static void release_alarm(void *payload)
{
    domt_count_one(DOMT_LETTER_DROPPED);
}

const domus_type domt_alarm_type = {"alarm", sizeof(domt_alarm), release_alarm};
static const domus_type ring_type = {"ring", 0, NULL};

static int take_alarm(domus_stack *stack, void *self_, const void *payload)
{
    domt_alarm *self = self_;

    domt_count_one(DOMT_LETTER_TAKEN);
    domt_count_by(DOMT_ODD, domus_take(stack) != 0);
    *self = *(const domt_alarm *)payload;
    domt_count_one(DOMT_TIMER_MADE);
    if (domus_after(stack, self->delay_ns, &ring_type, NULL, NULL) != 0)
        domt_count_one(DOMT_TIMER_UNMADE);
    return 0;
}

/* The graph has fallen silent, and all threads sleep. It counts as rung when it has fed: until then
 * there is no silence. */
static int take_ring(domus_stack *stack, void *self_, const void *payload)
{
    const domt_alarm *self = self_;

    domt_count_one(DOMT_ALARMS);
    domt_budget_give(self->budget);
    for (uint32_t i = 0; i < self->notices; i++) {
        domus_address to = self->members[i % DOMT_NEIGHBOURS];
        domt_token token = {.somebody = self->members[i / 8 % DOMT_NEIGHBOURS], .to = to.lease};
        domt_count_one(DOMT_NOTICE_MADE);
        (void)domt_count_put(domus_notice(stack, to, &domt_token_type, &token), false);
    }
    domt_count_one(DOMT_TIMER_RUNG);
    return 0;
}

static int mount_alarm(domus_stack *stack, void *self)
{
    domt_count_one(DOMT_MOUNTED);
    return 0;
}

static void stop_alarm(domus_stack *stack, void *self)
{
    domt_count_one(DOMT_STOPPED);
}

const domus_behaviour domt_alarm_behaviour = {
    .name = "alarm",
    .state_size = sizeof(domt_alarm),
    .on = (const domus_on[]){{&domt_alarm_type, take_alarm, 0},
                             {&ring_type, take_ring, 0},
                             {NULL, NULL, 0}},
    .on_mount = mount_alarm,
    .on_stop = stop_alarm,
};
