/* The channels of the storm: connections whose actors do what all actors of the storm do, and also
 * what only channels can do. There are three kinds of owners: one whose channels have states of
 * their own, one whose channels share its state, and one whose channels' conversations go on after
 * the connection has ended. */
#include "tests/runtime/storm_channels.h"

#include <errno.h>
#include <stdlib.h>

_Atomic uint64_t domt_channels_open, domt_channels_mounted, domt_channels_deeds[DOMT_LINE_DEEDS];

static _Atomic uint64_t next_seed;

/* The record that a channel of the storm has from on_open to on_close. */
typedef struct record {
    domus_channel *channel;
    domus_address actor;
} record;

static void count_deed_of_channel(enum domt_line_deed deed)
{
    atomic_fetch_add(&domt_channels_deeds[deed], 1);
}

/* Check that the channel was opened and not closed, and that the running actor is its own. */
static void check_channel_is_open(const domus_stack *stack, const domus_channel *channel)
{
    const record *own = domus_channel_data(channel);
    domus_address self = domus_self(stack);
    if (own == NULL || own->channel != channel || own->actor.house != self.house ||
        own->actor.lease != self.lease || domus_channel_running(stack) != channel)
        domt_storm_record_wrong("a function of a channel was called for another one");
}

/* --- conversations ---------------------------------------------------------------------------- */

static int act_again_after_wait(domus_stack *stack, void *self, const domus_answer *answer);

/* Do random actions in a conversation without a frame, which asks nobody. */
static int act_without_frame(domus_stack *stack, void *self)
{
    domt_step step = {.stack = stack, .self = self, .then = act_again_after_wait, .depth = 1};
    return domt_do_random_actions_in_step(&step);
}

static int act_again_after_wait(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_channel *channel = domus_channel_running(stack);

    if (channel != NULL && domus_channel_data(channel) != NULL)
        check_channel_is_open(stack, channel);
    else
        count_deed_of_channel(DOMT_LINE_OUTLIVED);
    int result = act_without_frame(stack, self);
    return result == -EINVAL ? 0 : result;
}

/* --- functions of a channel ------------------------------------------------------------------- */

static int on_line_mount_act_or_refuse(domus_stack *stack, void *self_)
{
    domt_doer *self = self_;

    self->seed = atomic_fetch_add(&next_seed, 1);
    domi_random_init(&self->dice, self->seed);
    atomic_fetch_add(&domt_channels_mounted, 1);
    if (domi_random_below(&self->dice, 16) == 0) {
        atomic_fetch_sub(&domt_channels_mounted, 1);
        count_deed_of_channel(DOMT_LINE_UNMOUNTED);
        return -EACCES;
    }
    int result = act_without_frame(stack, self);
    return result < 0 ? 0 : result;
}

static void on_line_stop_check_and_count(domus_stack *stack, void *self_)
{
    domt_doer *self = self_;

    if (domus_channel_running(stack) != NULL)
        domt_storm_record_wrong("on_stop came before on_close");
    for (uint32_t i = 0; i < 2; i++) {
        domus_message_free(stack, self->held[i]);
        self->held[i] = NULL;
    }
    atomic_fetch_sub(&domt_channels_mounted, 1);
}

static int on_line_open_record_and_act(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    record *own = malloc(sizeof *own);

    *own = (record){event->channel, domus_self(stack)};
    if (domus_channel_data(event->channel) != NULL)
        domt_storm_record_wrong("a channel was opened twice");
    domus_channel_set_data(event->channel, own);
    atomic_fetch_add(&domt_channels_open, 1);
    domt_storm_crowd_set((uint32_t)domi_random_below(&((domt_doer *)self)->dice, DOMT_STORM_CROWD),
                         own->actor);
    return act_without_frame(stack, self);
}

/* Do a random action that only a channel can do. */
static int do_random_action_of_channel(domus_stack *stack, domt_doer *self, domus_channel *channel)
{
    domus_buffer *bytes;

    switch (domi_random_below(&self->dice, 24)) {
    case 0:
        count_deed_of_channel(DOMT_LINE_CLOSE);
        return domus_channel_close(stack, channel) == -EPERM ? -EIO : 0;
    case 1:
        count_deed_of_channel(DOMT_LINE_RESET);
        return domus_channel_reset(stack, channel, -ECANCELED);
    case 2:
        count_deed_of_channel(DOMT_LINE_FINISH);
        return domus_channel_finish(stack, channel) == -EPERM ? -EIO : 0;
    case 3:
        count_deed_of_channel(DOMT_LINE_PAUSE);
        (void)domus_channel_pause(stack, channel);
        return 0;
    case 4:
        count_deed_of_channel(DOMT_LINE_STOP);
        return domus_stop(stack, domus_self(stack));
    case 5:
        count_deed_of_channel(DOMT_LINE_REFUSE);
        return -EPROTO;
    case 6:
        count_deed_of_channel(DOMT_LINE_ESCALATE);
        return domus_escalate(stack, -EPROTO);
    default:
        (void)domus_channel_resume(stack, channel);
        if (domus_buffer_new(stack, 1 + (size_t)domi_random_below(&self->dice, 4000), &bytes) == 0)
            (void)domus_channel_write(stack, channel, bytes);
        return 0;
    }
}

static int on_line_read_act_as_channel(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    check_channel_is_open(stack, event->channel);
    domus_buffer_free(event->bytes);
    count_deed_of_channel(DOMT_LINE_READ);
    int result = do_random_action_of_channel(stack, self, event->channel);
    return result != 0 ? result : act_without_frame(stack, self);
}

static int on_line_end_close_or_act(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    check_channel_is_open(stack, event->channel);
    return domi_random_below(&((domt_doer *)self)->dice, 4) != 0
               ? domus_channel_close(stack, event->channel)
               : act_without_frame(stack, self);
}

static int on_line_close_forget_and_act(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    record *own = domus_channel_data(event->channel);

    check_channel_is_open(stack, event->channel);
    domus_channel_set_data(event->channel, NULL);
    free(own);
    atomic_fetch_sub(&domt_channels_open, 1);
    /* with a depth of 0 the conversation does not wait */
    domt_step step = {.stack = stack, .self = self, .then = act_again_after_wait};
    (void)domt_do_random_actions_in_step(&step);
    return 0;
}

/* --- behaviours ------------------------------------------------------------------------------- */

#define LINE                                                                                       \
    .kind = DOMUS_CHANNELS, .state_size = sizeof(domt_doer), .on = domt_storm_rows,                \
    .on_mount = on_line_mount_act_or_refuse, .on_stop = on_line_stop_check_and_count,              \
    .on_open = {on_line_open_record_and_act, 0}, .on_read = {on_line_read_act_as_channel, 0},      \
    .on_end = {on_line_end_close_or_act, 0}, .on_close = {on_line_close_forget_and_act, 0},        \
    .supervision = &escalating

static const domus_supervision escalating = {.otherwise = DOMUS_ESCALATE};
static const domus_behaviour own = {.name = "own", LINE};
static const domus_behaviour shared = {.name = "shared", LINE, .shares_state = true};
static const domus_behaviour lasting = {.name = "lasting", LINE, .conversations_go_on = true};

static int on_owner_mount_seed_and_count(domus_stack *stack, void *self_)
{
    domt_doer *self = self_;
    domi_random_init(&self->dice, self->seed + atomic_fetch_add(&next_seed, 1));
    atomic_fetch_add(&domt_channels_mounted, 1);
    return 0;
}

#define OWNER(its_name, of)                                                                        \
    {                                                                                              \
        .name = its_name, .kind = DOMUS_CHANNELS, .state_size = sizeof(domt_doer),                 \
        .on = domt_storm_rows, .on_mount = on_owner_mount_seed_and_count,                          \
        .on_stop = on_line_stop_check_and_count, .channel = (of)                                   \
    }

const domus_behaviour domt_storm_owners[DOMT_STORM_OWNERS] = {
    OWNER("of own", &own), OWNER("of shared", &shared), OWNER("of lasting", &lasting)};
