/* The random actions of an actor of the storm that are not about messages: timers, children, names,
 * watches, ends and conversations. */
#include "tests/runtime/storm.h"

#include <errno.h>
#include <stdio.h>

#define MS DOMT_STORM_MS

void domt_use_timers(domt_step *step)
{
    domus_timer *timer = &step->self->timers[domt_draw_below(step, 3)];
    uint64_t dice = domt_draw_below(step, 6);
    uint64_t time_ns = domt_random_time_ns(step);

    if (dice < 2) {
        domt_storm_count_deed_if_done(DOMT_DID_TIMER_CANCEL,
                                      domus_timer_cancel(step->stack, *timer));
        return;
    }
    const void *load = domt_payload_to_send(step);
    if (dice < 4)
        domt_storm_count_deed_if_done(
            DOMT_DID_AFTER,
            domt_storm_free_if_failed(
                domus_after(step->stack, time_ns, &domt_storm_alarm, load, timer), load));
    else if (dice == 4)
        domt_storm_count_deed_if_done(
            DOMT_DID_PERIODIC,
            domt_storm_free_if_failed(
                domus_every(step->stack, MS + time_ns, &domt_storm_alarm, load, timer), load));
    else
        domt_storm_count_deed_if_done(
            DOMT_DID_PERIODIC,
            domt_storm_free_if_failed(
                domus_repeat(step->stack, MS + time_ns, &domt_storm_alarm, load, timer), load));
}

void domt_spawn_random_actor(domt_step *step)
{
    domt_doer state = {.seed = domi_random_next_bits(&step->self->dice)};
    domus_spawn_options options = {.placement = (domus_placement)domt_draw_below(step, 2)};
    const domus_behaviour *behaviour =
        domt_draw_below(step, 3) == 0 ? &domt_storm_boss : &domt_storm_wild;
    uint32_t place = (uint32_t)domt_draw_below(step, DOMT_STORM_CROWD);
    enum domt_deed deed = DOMT_DID_SPAWN;
    domus_address born = {NULL, 0};
    int result;

    switch (domt_draw_below(step, 8)) {
    case 0:
        deed = DOMT_DID_ROUTER;
        result = domus_spawn_many(step->stack, &domt_storm_calm, &state, 3, NULL, NULL, &born);
        break;
    case 1:
        deed = DOMT_DID_PASSIVE;
        options.passivate_after_ns = 4 * MS;
        result = domus_spawn_with(step->stack, &domt_storm_calm, &state, &options, &born);
        break;
    case 2:
    case 3:
        deed = DOMT_DID_PROCESS;
        result = domus_process_spawn(step->stack, &domt_storm_process, NULL, NULL, NULL, &options,
                                     &born);
        break;
    case 4:
        deed = DOMT_DID_DETACHED;
        options.detached = true;
        result = domus_spawn_with(step->stack, &domt_storm_hermit, &state, &options, &born);
        break;
    default:
        result = domus_spawn_with(step->stack, behaviour, &state, &options, &born);
        break;
    }
    domt_storm_count_deed_if_done(deed, result);
    if (result == 0)
        domt_storm_crowd_set(place, born);
}

void domt_use_names_and_watches(domt_step *step)
{
    char name[8];
    domus_address found;

    snprintf(name, sizeof name, "n%d", (int)domt_draw_below(step, 8));
    switch (domt_draw_below(step, 8)) {
    case 0:
        domt_storm_count_deed_if_done(DOMT_DID_NAME, domus_name_register(step->stack, name));
        break;
    case 1:
        (void)domus_name_release(step->stack);
        break;
    case 2:
        if (domus_name_find(step->stack, name, &found) == 0)
            domt_storm_crowd_set((uint32_t)domt_draw_below(step, DOMT_STORM_CROWD), found);
        break;
    case 3:
        domt_storm_count_deed_if_done(
            DOMT_DID_WATCH,
            domus_watch_actor(step->stack, domt_any_of_crowd(step), &step->self->watch));
        break;
    case 4:
        domt_storm_count_deed_if_done(
            DOMT_DID_LINK,
            domus_link_actor(step->stack, domt_any_of_crowd(step), &step->self->watch));
        break;
    case 5:
        domt_storm_count_deed_if_done(DOMT_DID_ROOM,
                                      domus_watch_room(step->stack, domt_any_of_crowd(step), NULL));
        break;
    case 6:
        (void)domus_unwatch(step->stack, step->self->watch);
        break;
    default:
        domt_storm_count_deed_if_done(
            DOMT_DID_LETTERS,
            domus_letters_subscribe(step->stack,
                                    domt_draw_below(step, 2) != 0 ? DOMUS_LETTERS_DEAD : 0));
        break;
    }
}

void domt_end_random_actor(domt_step *step)
{
    switch (domt_draw_below(step, 6)) {
    case 0:
        domt_storm_count_deed_if_done(DOMT_DID_STOP,
                                      domus_stop(step->stack, domt_any_of_crowd(step)));
        break;
    case 1:
        domt_storm_count_deed_if_done(DOMT_DID_STOP_AFTER,
                                      domus_stop_after_mail(step->stack, domt_any_of_crowd(step)));
        break;
    case 2:
        domt_storm_count_deed_if_done(DOMT_DID_ESCALATE, domus_escalate(step->stack, -EIO));
        break;
    case 3:
        (void)domus_passivation_pause(step->stack);
        break;
    case 4:
        (void)domus_passivation_resume(step->stack);
        break;
    default:
        domt_storm_count_deed_if_done(
            DOMT_DID_BECOME,
            domus_become(step->stack, domt_draw_below(step, 2) == 0 ? &domt_storm_calm : NULL));
        break;
    }
}

void domt_use_conversations(domt_step *step)
{
    domus_conversation *one = &step->self->conversations[domt_draw_below(step, 2)];

    switch (domt_draw_below(step, 5)) {
    case 0:
        (void)domus_conversation_of(step->stack, one);
        break;
    case 1:
        domt_storm_count_deed_if_done(DOMT_DID_CANCEL, domus_cancel(step->stack, *one));
        break;
    case 2:
        domt_storm_count_deed_if_done(DOMT_DID_BARRIER, domus_barrier(step->stack));
        break;
    default:
        domus_unstash(step->stack);
        break;
    }
}
