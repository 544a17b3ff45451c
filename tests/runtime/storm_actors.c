/* The actors of the storm (tests/runtime/storm.h), of all kinds, with their handlers; among them
 * are a process and a detached actor. */
#include "tests/runtime/storm.h"

#include <domus/detached.h>

#include <errno.h>
#include <string.h>

#define MS DOMT_STORM_MS

/* --- conversations ---------------------------------------------------------------------------- */

static int resume_and_act_at_random(domus_stack *stack, void *self, const domus_answer *answer);

/* End a step with `result`. If the conversation does not go on, it abandons the tickets of its asks
 * that are still open. */
static int end_step_with_result(domt_step *step, int result)
{
    domt_talk *talk = step->talk;

    if (result == DOMUS_PARKED || talk == NULL)
        return result;
    if (talk->single != 0)
        domt_ticket_close_as_abandoned(talk->single);
    for (uint32_t i = 0; i < DOMT_TALK_ASKS; i++) {
        if (talk->tickets[i] != 0)
            domt_ticket_close_as_abandoned(talk->tickets[i]);
    }
    return result;
}

static int act_and_end_step(domt_step *step)
{
    step->then = resume_and_act_at_random;
    return end_step_with_result(step, domt_do_random_actions_in_step(step));
}

static void take_ticket_of_answer(domt_talk *talk, const domus_answer *answer)
{
    if (answer->tag == 0)
        return;
    for (uint32_t i = 0; i < DOMT_TALK_ASKS; i++) {
        if (talk->tickets[i] == answer->tag) {
            domt_ticket_close_as_answered(talk->tickets[i]);
            talk->tickets[i] = 0;
            return;
        }
    }
    domt_storm_record_wrong("an answer came twice, or to somebody else");
}

static bool is_type_of_storm(const domus_type *type)
{
    return type != NULL && type->release == domt_storm_note.release;
}

static domt_shown_kind shown_kind_of_type(const domus_type *type)
{
    if (type == &domt_storm_answer || type == &domt_storm_volume)
        return DOMT_SHOWN_REPLY;
    if (type == &domt_storm_question || type == &domt_storm_essay || type == &domt_storm_unknown)
        return DOMT_SHOWN_ASK;
    return type == &domt_storm_alarm ? DOMT_SHOWN_EVENT : DOMT_SHOWN_NOTICE;
}

/* Check several answers that have come at once, and take some or all of their payloads. */
static void handle_all_answers(domt_step *step, const domus_answer *answers)
{
    bool all = domt_draw_below(step, 4) == 0 && domus_take(step->stack) == 0;

    domt_storm_count_deed(DOMT_DID_TAKE_ALL, all);
    for (const domus_answer *answer = answers; answer != NULL; answer = answer->next) {
        take_ticket_of_answer(step->talk, answer);
        if (!is_type_of_storm(answer->type))
            continue;
        domt_storm_check_payload(answer->payload);
        bool taken = all;
        if (!all && domt_draw_below(step, 3) == 0) {
            taken = domus_take_answer(step->stack, answer) == 0;
            domt_storm_count_deed(DOMT_DID_TAKE_ANSWER, taken);
        }
        if (taken)
            domt_storm_free_payload(*(const domt_load *)answer->payload);
    }
}

static int resume_and_act_at_random(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_talk *talk = domus_frame(stack);
    domt_step step = {.stack = stack, .self = self, .talk = talk, .depth = 2};

    if (talk->asked != NULL)
        /* the ask of the conversation must be readable until it is answered */
        domt_storm_check_payload(talk->asked);
    step.depth = domt_draw_below(&step, 4);
    if (talk->all) {
        talk->all = false;
        handle_all_answers(&step, answer);
        return act_and_end_step(&step);
    }
    if (talk->single != 0) {
        domt_ticket_close_as_answered(talk->single);
        talk->single = 0;
    } else {
        take_ticket_of_answer(talk, answer);
    }
    if (is_type_of_storm(answer->type)) {
        step.shown = answer->payload;
        step.kind = shown_kind_of_type(answer->type);
        step.received = step.kind != DOMT_SHOWN_REPLY;
        domt_storm_check_payload(step.shown);
    }
    return act_and_end_step(&step);
}

/* --- handlers --------------------------------------------------------------------------------- */

static int begin_step_with_payload(domus_stack *stack, domt_doer *self, const void *payload,
                                   domt_shown_kind kind)
{
    domt_talk *talk = domus_frame(stack);
    const domt_load *load = payload;
    domt_step step = {.stack = stack, .self = self, .talk = talk, .shown = payload, .kind = kind};

    domt_storm_check_payload(payload);
    step.depth = load->depth != 0 ? load->depth - 1 : 0;
    if (kind == DOMT_SHOWN_ASK && talk != NULL)
        talk->asked = payload;
    return act_and_end_step(&step);
}

static int on_notice_act_at_random(domus_stack *stack, void *self, const void *payload)
{
    return begin_step_with_payload(stack, self, payload, DOMT_SHOWN_NOTICE);
}

static int on_ask_act_at_random(domus_stack *stack, void *self, const void *payload)
{
    return begin_step_with_payload(stack, self, payload, DOMT_SHOWN_ASK);
}

static int on_alarm_act_at_random(domus_stack *stack, void *self, const void *payload)
{
    return begin_step_with_payload(stack, self, payload, DOMT_SHOWN_EVENT);
}

/* Handle an event about another actor: it has ended, it has room again, or a dead letter was sent
 * to it. */
static int on_news_act_at_random(domus_stack *stack, void *self, const void *payload)
{
    domt_step step = {.stack = stack, .self = self, .talk = domus_frame(stack), .depth = 1};
    return act_and_end_step(&step);
}

static int on_ask_reply_or_not(domus_stack *stack, void *self, const void *payload)
{
    const domt_load *asked = payload;
    domt_doer *doer = self;

    domt_storm_check_payload(asked);
    if (domi_random_below(&doer->dice, 3) == 0)
        return 0; /* without an answer from this handler, the ask fails with -ENOMSG */
    if (domi_random_below(&doer->dice, 2) == 0 && domus_take(stack) == 0) {
        const domt_load own = *asked;
        return domt_storm_free_if_failed(domus_reply(stack, &domt_storm_answer, &own), &own);
    }
    const void *load = domt_storm_new_payload(0);
    return domt_storm_free_if_failed(domus_reply(stack, &domt_storm_volume, load), load);
}

static int on_mount_act_at_random(domus_stack *stack, void *self_)
{
    domt_doer *self = self_;
    domi_random_init(&self->dice, self->seed);
    domt_step step = {.stack = stack, .self = self, .talk = domus_frame(stack), .depth = 1};
    int result = act_and_end_step(&step);
    /* an error is not returned, so that the actor is always mounted */
    return result < 0 ? 0 : result;
}

static void free_held_messages(domus_stack *stack, domt_doer *self)
{
    for (uint32_t i = 0; i < 2; i++) {
        domus_message_free(stack, self->held[i]);
        self->held[i] = NULL;
    }
}

static void on_stop_free_messages(domus_stack *stack, void *self)
{
    free_held_messages(stack, self);
}

/* Restart the actor: it forgets its kept asks and its timers. */
static int on_restart_forget_asks_and_timers(domus_stack *stack, void *self_, int error)
{
    domt_doer *self = self_;
    free_held_messages(stack, self);
    domt_storm_count_deed(DOMT_DID_RESTART, true);
    memset(self->kept, 0, sizeof self->kept);
    memset(self->timers, 0, sizeof self->timers);
    return 0;
}

#define TALK sizeof(domt_talk)

const domus_on domt_storm_rows[] = {{&domt_storm_note, on_notice_act_at_random, TALK},
                                    {&domt_storm_letter, on_notice_act_at_random, TALK},
                                    {&domt_storm_news, on_notice_act_at_random, TALK},
                                    {&domt_storm_question, on_ask_act_at_random, TALK},
                                    {&domt_storm_essay, on_ask_act_at_random, TALK},
                                    {&domt_storm_alarm, on_alarm_act_at_random, TALK},
                                    {&domus_down_type, on_news_act_at_random, TALK},
                                    {&domus_room_type, on_news_act_at_random, TALK},
                                    {&domus_letter_type, on_news_act_at_random, TALK},
                                    {0}};

static const domus_supervision restarting = {.intensity = 1000, .otherwise = DOMUS_RESTART};

#define BEHAVIOUR(its_name, its_rows, supervised)                                                  \
    {                                                                                              \
        .name = its_name, .kind = DOMUS_STATE, .state_size = sizeof(domt_doer), .on = its_rows,    \
        .on_mount = on_mount_act_at_random, .on_stop = on_stop_free_messages,                      \
        .on_restart = on_restart_forget_asks_and_timers, .supervision = supervised,                \
        .mount_frame_size = TALK,                                                                  \
    }

const domus_behaviour domt_storm_wild = BEHAVIOUR("wild", domt_storm_rows, NULL);
const domus_behaviour domt_storm_boss = BEHAVIOUR("boss", domt_storm_rows, &restarting);

/* The calm actor's conversations have no frames, so they ask nobody. */
const domus_behaviour domt_storm_calm = {
    .name = "calm",
    .state_size = sizeof(domt_doer),
    .on = (const domus_on[]){{&domt_storm_question, on_ask_reply_or_not, 0},
                             {&domt_storm_essay, on_ask_reply_or_not, 0},
                             {&domt_storm_note, on_notice_act_at_random, TALK},
                             {&domt_storm_news, on_notice_act_at_random, TALK},
                             {&domt_storm_alarm, on_alarm_act_at_random, TALK},
                             {0}},
    .on_mount = on_mount_act_at_random,
    .on_stop = on_stop_free_messages,
    .mount_frame_size = TALK};

/* --- a detached actor ------------------------------------------------------------------------- */

static int on_note_receive_now(domus_stack *stack, void *self, const void *payload)
{
    static const domus_pattern any = {.types = NULL};
    domt_doer *doer = self;
    domus_received got;

    domt_storm_check_payload(payload);
    for (uint32_t i = 0; i < 3; i++) {
        if (domus_receive_now(stack, &any, MS, &got) != 0)
            break;
        domt_storm_count_deed(DOMT_DID_RECEIVE_NOW, true);
        if (!is_type_of_storm(got.type))
            continue;
        domt_storm_check_payload(got.payload);
        domt_load own = *(const domt_load *)got.payload;
        if (domi_random_below(&doer->dice, 2) != 0 || domus_take(stack) != 0)
            continue;
        if (domi_random_below(&doer->dice, 2) == 0 && got.is_ask)
            (void)domt_storm_free_if_failed(domus_reply(stack, &domt_storm_answer, &own), &own);
        else
            domt_storm_free_payload(own);
    }
    domt_storm_check_payload(payload);
    return 0;
}

const domus_behaviour domt_storm_hermit = {
    .name = "hermit",
    .state_size = sizeof(domt_doer),
    .on = (const domus_on[]){{&domt_storm_note, on_note_receive_now, 0},
                             {&domt_storm_question, on_ask_reply_or_not, 0},
                             {&domt_storm_essay, on_ask_act_at_random, TALK},
                             {&domt_storm_alarm, on_alarm_act_at_random, TALK},
                             {0}},
    .on_mount = on_mount_act_at_random,
    .on_stop = on_stop_free_messages,
    .mount_frame_size = TALK};

/* --- a process -------------------------------------------------------------------------------- */

typedef struct stepper {
    uint32_t steps;
    uint32_t ticket; /* ticket of the ask that the process has sent; 0: none is open */
} stepper;

static void answer_ask_of_event(domus_stack *stack, const domus_process_event *event)
{
    if (!event->is_ask)
        return;
    const void *load = domt_storm_new_payload(0);
    (void)domt_storm_free_if_failed(domus_kept_reply(stack, event->ask, &domt_storm_answer, load),
                                    load);
}

static int step_storm_process(domus_stack *stack, void *self_, const domus_process_event *events,
                              uint32_t count, domus_process_output *out)
{
    stepper *self = self_;

    for (uint32_t i = 0; i < count; i++) {
        const domus_process_event *event = &events[i];
        if (event->type == DOMUS_PROCESS_COMPLETE && event->tag != 0) {
            domt_ticket_close_as_answered(self->ticket);
            self->ticket = 0;
        }
        if (is_type_of_storm(event->data_type)) {
            domt_storm_check_payload(event->data);
            if (++self->steps % 2 == 0 && domus_process_take(out, event) == 0) {
                domt_storm_count_deed(DOMT_DID_PROCESS_TAKE, true);
                domt_storm_free_payload(*(const domt_load *)event->data);
            }
        }
        if (self->steps % 3 != 0)
            answer_ask_of_event(stack, event);
    }
    if (self->ticket != 0 || atomic_fetch_sub(&domt_storm_budget, 1) <= 0)
        return 0;
    uint32_t ticket = domt_ticket_open_for_ask();
    const void *load = domt_storm_new_payload(1);
    domus_address to = domt_storm_crowd_at(self->steps++);
    if (domt_storm_free_if_failed(domus_process_ask(out, to, &domt_storm_question, load, 3 * MS, 1),
                                  load) == 0)
        self->ticket = ticket;
    else
        domt_ticket_close_as_not_asked(ticket);
    if (self->steps < 40)
        return 0;
    load = domt_storm_new_payload(0);
    return domt_storm_free_if_failed(domus_process_done(out, &domt_storm_note, load), load) < 0
               ? -EIO
               : 0;
}

/* If the process closes while an ask of it is open, the ask is never answered, so its ticket is
 * abandoned. */
static void close_storm_process(domus_stack *stack, void *self_)
{
    const stepper *self = self_;
    if (self->ticket != 0)
        domt_ticket_close_as_abandoned(self->ticket);
}

const domus_process domt_storm_process = {.name = "stepper",
                                          .state_size = sizeof(stepper),
                                          .step = step_storm_process,
                                          .close = close_storm_process};

/* --- those who are there from the beginning --------------------------------------------------- */

static const domus_behaviour *behaviour_of_place(uint32_t i)
{
    return i % 3 == 0 ? &domt_storm_boss : i % 7 == 6 ? &domt_storm_calm : &domt_storm_wild;
}

void domt_storm_spawn_root(domus_system *system, uint32_t i, uint64_t seed)
{
    domt_doer state = {.seed = seed};
    domus_address born;
    if (domus_outside_spawn_on(system, i % domus_system_threads(system), behaviour_of_place(i),
                               &state, &born) == 0)
        domt_storm_crowd_set(i, born);
}
