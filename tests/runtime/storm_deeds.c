/* The random actions of an actor of the storm in one step of a conversation: sends, asks, waits,
 * answers and takes. */
#include "tests/runtime/storm.h"

#include <errno.h>
#include <stdio.h>

#define MS DOMT_STORM_MS

uint64_t domt_draw_below(domt_step *step, uint64_t below)
{
    return domi_random_below(&step->self->dice, below);
}

domus_address domt_random_actor_of_crowd(domt_step *step)
{
    return domt_storm_crowd_at((uint32_t)domt_draw_below(step, DOMT_STORM_CROWD));
}

uint64_t domt_random_time_ns(domt_step *step)
{
    static const uint64_t times[] = {1, MS, 2 * MS, 5 * MS, 9 * MS};
    return times[domt_draw_below(step, 5)];
}

void domt_storm_count_deed_if_done(enum domt_deed deed, int result)
{
    domt_storm_count_deed(deed, result >= 0);
}

/* --- what was shown --------------------------------------------------------------------------- */

/* Forget the message that the step was shown: it was sent on, with everything that it owned. */
static void forget_shown_message(domt_step *step)
{
    if (step->taken && step->kind != DOMT_SHOWN_ASK)
        domt_storm_record_wrong("what was taken was passed on as it was");
    step->shown = NULL;
    step->kind = DOMT_SHOWN_NOTHING;
}

/* Forget the ask that was answered or sent on: the one that the step has received, else the one
 * with which the conversation began. */
static void forget_answered_or_sent_ask(domt_step *step)
{
    if (step->kind == DOMT_SHOWN_ASK && step->received) {
        forget_shown_message(step);
        return;
    }
    if (step->talk != NULL)
        step->talk->asked = NULL;
    if (step->kind == DOMT_SHOWN_ASK)
        forget_shown_message(step);
}

static void take_shown_payload(domt_step *step)
{
    /* return, because after a wait for all answers domus_take() would take an answer that was
     * already handled */
    if (step->shown == NULL)
        return;
    int result = domus_take(step->stack);

    if (step->taken) {
        domt_storm_count_deed(DOMT_DID_TAKE_TWICE, result == -EALREADY);
        if (result != -EALREADY)
            domt_storm_record_wrong("something was taken twice");
        return;
    }
    domt_storm_count_deed(DOMT_DID_TAKE_SHARED, result == -EPERM);
    if (result != 0)
        return;
    domt_storm_count_deed(DOMT_DID_TAKE, true);
    step->taken = true;
    step->own = *(const domt_load *)step->shown;
    if (step->talk != NULL && step->talk->asked == step->shown)
        step->talk->asked = NULL; /* the payload of a taken ask is freed at the end of this step */
}

/* Returns a payload to send: the one that the step has taken, or a new one. */
const void *domt_payload_to_send(domt_step *step)
{
    domt_load *load = domt_storm_new_payload(step->depth);

    if (step->own.memory != NULL && domt_draw_below(step, 2) == 0) {
        domt_storm_free_payload(*load);
        *load = step->own;
        step->own.memory = NULL;
        domt_storm_count_deed(DOMT_DID_PASS_ON, true);
    }
    return load;
}

/* --- sending ---------------------------------------------------------------------------------- */

static void send_random_notice(domt_step *step)
{
    const domus_type *type = domt_draw_below(step, 4) != 0 ? &domt_storm_note : &domt_storm_letter;
    const void *load = domt_payload_to_send(step);
    domt_storm_count_deed_if_done(
        DOMT_DID_NOTICE,
        domt_storm_free_if_failed(
            domus_notice(step->stack, domt_random_actor_of_crowd(step), type, load), load));
}

static const domus_type *random_type_of_ask(domt_step *step)
{
    uint64_t dice = domt_draw_below(step, 24);
    return dice == 0 ? &domt_storm_unknown : dice < 6 ? &domt_storm_essay : &domt_storm_question;
}

static void add_ask_to_random_actor(domt_step *step)
{
    uint32_t place = 0;

    while (step->talk != NULL && place < DOMT_TALK_ASKS && step->talk->tickets[place] != 0)
        place++;
    if (step->talk == NULL || place == DOMT_TALK_ASKS)
        return;
    uint32_t ticket = domt_ticket_open_for_ask();
    if (ticket == 0)
        return;
    uint64_t within_ns = domt_draw_below(step, 3) == 0 ? domt_random_time_ns(step) : 0;
    const domus_type *type = random_type_of_ask(step);
    const void *load = domt_payload_to_send(step);
    int result = domt_storm_free_if_failed(
        domus_ask_add(step->stack, domt_random_actor_of_crowd(step), type, load, within_ns, ticket),
        load);
    domt_storm_count_deed_if_done(DOMT_DID_ASK_SEVERAL, result);
    if (result == 0)
        step->talk->tickets[place] = ticket;
    else
        domt_ticket_close_as_not_asked(ticket);
}

static int ask_random_actor_and_wait(domt_step *step)
{
    uint32_t ticket =
        step->talk == NULL || step->talk->single != 0 ? 0 : domt_ticket_open_for_ask();

    if (ticket == 0)
        return 0;
    uint64_t within_ns = domt_draw_below(step, 2) == 0 ? domt_random_time_ns(step) : 0;
    const domus_type *type = random_type_of_ask(step);
    const void *load = domt_payload_to_send(step);
    int result =
        domt_storm_free_if_failed(domus_ask_within(step->stack, domt_random_actor_of_crowd(step),
                                                   type, load, within_ns, step->then),
                                  load);
    domt_storm_count_deed_if_done(DOMT_DID_ASK, result);
    if (result == DOMUS_PARKED)
        step->talk->single = ticket;
    else
        domt_ticket_close_as_not_asked(ticket);
    return result;
}

static void use_group_or_publish(domt_step *step)
{
    domus_group group;

    if (domus_group_open(step->stack, "storm", &group) != 0)
        return;
    switch (domt_draw_below(step, 4)) {
    case 0:
        domt_storm_count_deed_if_done(DOMT_DID_JOIN, domus_group_join(step->stack, group));
        break;
    case 1:
        domt_storm_count_deed_if_done(DOMT_DID_LEAVE, domus_group_leave(step->stack, group));
        break;
    default: /* domus_publish() consumes the payload even if it fails */
        domt_storm_count_deed_if_done(
            DOMT_DID_PUBLISH,
            domus_publish(step->stack, group, &domt_storm_news, domt_payload_to_send(step)));
        break;
    }
}

static void make_or_send_message_object(domt_step *step)
{
    domus_message **held = &step->self->held[domt_draw_below(step, 2)];

    if (*held != NULL) {
        const domt_load *load = domus_message_payload(*held);
        if (load->memory == NULL || domt_draw_below(step, 2) == 0 ||
            domus_message_send(step->stack, domt_random_actor_of_crowd(step), *held) != 0)
            domus_message_free(step->stack, *held);
        *held = NULL;
        domt_storm_count_deed(DOMT_DID_MESSAGE, true);
    } else if (domt_draw_below(step, 2) == 0) {
        if (domus_message_take(step->stack, held) == 0)
            forget_shown_message(step);
    } else if (domus_message_new(step->stack, &domt_storm_letter, held) == 0 &&
               domt_draw_below(step, 4) != 0) {
        domt_load *load = domus_message_payload(*held);
        *load = *(const domt_load *)domt_payload_to_send(step);
    }
}

/* --- answering -------------------------------------------------------------------------------- */

static void send_random_reply(domt_step *step)
{
    const domus_type *type =
        domt_draw_below(step, 3) != 0 ? &domt_storm_answer : &domt_storm_volume;
    const void *load = domt_payload_to_send(step);
    int result = domt_storm_free_if_failed(domus_reply(step->stack, type, load), load);
    domt_storm_count_deed_if_done(DOMT_DID_REPLY, result);
    if (result == 0)
        forget_answered_or_sent_ask(step);
}

static void forward_shown_message(domt_step *step)
{
    bool is_notice = step->kind == DOMT_SHOWN_NOTICE;

    if (domus_forward(step->stack, domt_random_actor_of_crowd(step)) != 0)
        return;
    domt_storm_count_deed(DOMT_DID_FORWARD, true);
    if (step->taken && step->kind == DOMT_SHOWN_ASK)
        domt_storm_record_wrong("an ask that was taken was forwarded");
    if (is_notice)
        forget_shown_message(step);
    else
        forget_answered_or_sent_ask(step);
}

static void answer_or_keep_ask(domt_step *step)
{
    domus_kept *kept = &step->self->kept[domt_draw_below(step, 3)];
    const void *load;
    int result;

    switch (domt_draw_below(step, 10)) {
    case 0:
        result = domus_fail(step->stack, -EPROTO);
        domt_storm_count_deed_if_done(DOMT_DID_FAIL, result);
        if (result == 0)
            forget_answered_or_sent_ask(step);
        break;
    case 1:
    case 2:
        result = domus_keep(step->stack, kept);
        domt_storm_count_deed_if_done(DOMT_DID_KEEP, result);
        if (result == 0)
            forget_answered_or_sent_ask(step);
        break;
    case 3:
        load = domt_payload_to_send(step);
        domt_storm_count_deed_if_done(
            DOMT_DID_KEPT_REPLY,
            domt_storm_free_if_failed(
                domus_kept_reply(step->stack, *kept, &domt_storm_volume, load), load));
        break;
    case 4:
    case 5: /* both calls may fail, because the asker has mostly ended already */
        domt_storm_count_deed_if_done(
            DOMT_DID_KEPT_FORWARD,
            domus_kept_forward(step->stack, *kept, domt_random_actor_of_crowd(step)));
        (void)domus_kept_fail(step->stack, *kept, -EIO);
        break;
    case 6:
        forward_shown_message(step);
        break;
    case 7:
        result = domus_stash(step->stack);
        domt_storm_count_deed_if_done(DOMT_DID_STASH, result);
        if (result == 0 && step->taken)
            domt_storm_record_wrong("what was taken was put aside");
        if (result == 0 && step->kind == DOMT_SHOWN_ASK)
            forget_answered_or_sent_ask(step);
        else if (result == 0)
            forget_shown_message(step);
        break;
    default:
        send_random_reply(step);
        break;
    }
}

static const domus_pattern anything = {.types = NULL};
static const domus_pattern notes = {
    .types = (const domus_type *const[]){&domt_storm_note, &domt_storm_question, NULL}};

static void add_random_receive(domt_step *step)
{
    domt_storm_count_deed_if_done(
        DOMT_DID_RECEIVE_SEVERAL,
        domus_receive_add(step->stack, domt_draw_below(step, 2) == 0 ? &anything : &notes,
                          domt_random_time_ns(step), 0));
}

static void do_random_action(domt_step *step)
{
    static void (*const deeds[])(domt_step *) = {send_random_notice,
                                                 send_random_notice,
                                                 send_random_notice,
                                                 add_ask_to_random_actor,
                                                 add_ask_to_random_actor,
                                                 answer_or_keep_ask,
                                                 answer_or_keep_ask,
                                                 answer_or_keep_ask,
                                                 make_or_send_message_object,
                                                 take_shown_payload,
                                                 take_shown_payload,
                                                 use_group_or_publish,
                                                 domt_use_timers_at_random,
                                                 domt_use_names_or_watches_at_random,
                                                 domt_use_conversations_at_random,
                                                 domt_spawn_random_actor,
                                                 domt_end_random_actor,
                                                 add_random_receive};

    if (atomic_fetch_sub(&domt_storm_budget, 1) > 0)
        deeds[domt_draw_below(step, sizeof deeds / sizeof deeds[0])](step);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static int return_one_as_blocking_work(void *argument)
{
    return 1;
}

static int wait_for_random_promise(domt_step *step)
{
    domus_stack *stack = step->stack;
    enum domt_deed deed = DOMT_DID_SLEEP;
    int result;

    /* the conversation is stored in the actor, which may cancel it later */
    if (domt_draw_below(step, 2) == 0)
        (void)domus_conversation_of(stack, &step->self->conversations[domt_draw_below(step, 2)]);
    switch (domt_draw_below(step, 12)) {
    case 0:
    case 1:
    case 2:
        return ask_random_actor_and_wait(step);
    case 3:
    case 4:
    case 5:
        deed = DOMT_DID_ALL;
        result = domus_wait_all(stack, step->then);
        if (step->talk != NULL)
            step->talk->all = result == DOMUS_PARKED;
        break;
    case 6:
    case 7:
        deed = DOMT_DID_FIRST;
        result = domus_wait_first(stack, step->then);
        break;
    case 8:
        deed = DOMT_DID_RECEIVE;
        result = domus_receive_within(stack, &anything, domt_random_time_ns(step), step->then);
        break;
    case 9:
        deed = DOMT_DID_BLOCKING;
        result = domus_blocking(stack, return_one_as_blocking_work, NULL, step->then);
        break;
    case 10:
        return -EIO;
    default:
        result = domus_sleep(stack, domt_random_time_ns(step), step->then);
        break;
    }
    domt_storm_count_deed_if_done(deed, result);
    return result;
}

int domt_do_random_actions_in_step(domt_step *step)
{
    for (uint64_t left = domt_draw_below(step, 4); left != 0; left--)
        do_random_action(step);
    if (step->shown != NULL && !step->taken)
        domt_storm_check_payload(step->shown);
    int result =
        step->depth != 0 && domt_draw_below(step, 3) != 0 && atomic_load(&domt_storm_budget) > 0
            ? wait_for_random_promise(step)
            : 0;
    if (step->own.memory != NULL)
        domt_storm_free_payload(step->own);
    return result;
}
