/* A process is an actor with the behaviour below; this file also has the verbs of domus/process.h.
 *
 * One conversation, which on_mount begins, waits for whatever comes first: any message, or the
 * completion of a yield. Both are gathered as events. With the first event a second receive begins,
 * which takes nothing and ends when all waiting mail was looked at. So the step comes after all
 * events of one run, without a clock and without a message of the actor to itself. Public verbs do
 * the work, but memory and domus_process_take() use the library's own functions.
 *
 * Each piece of work that may block has a conversation of its own, so that the library waits for
 * the work however the process ends. The end of a piece, and the last event of a stop, come while
 * the conversation above waits: they are recorded, and a third receive, which takes nothing either,
 * is made to fail, so that the conversation goes on. The first receive must not fail for this: an
 * actor without a receive hands its mail to its rows, and a process has none for messages. */
#include "base/memory.h"
#include "house/conversation/stack.h"
#include "house/conversation/take.h"
#include "house/family/behaviour.h"
#include "house/family/life.h"
#include "house/family/process_actor.h"

#include <domus/message.h>
#include <domus/process.h>
#include <domus/receive.h>
#include <domus/supervise.h>

#include <errno.h>
#include <string.h>

static const domus_pattern any = {.types = NULL};

/* --- gather ---------------------------------------------------------------------------------- */

/* Keep a copy of a payload, together with what the payload owns. Returns 0; -ENOMEM, and then the
 * library releases what the payload owns. */
static int hold_payload_for_step(domus_stack *stack, domi_process_actor *actor,
                                 const domus_answer *answer)
{
    domus_message *message;

    if (answer->type == NULL)
        return 0;
    int error = domus_message_new(stack, answer->type, &message);
    if (error != 0)
        return error;
    if (answer->type->size != 0)
        memcpy(domus_message_payload(message), answer->payload, answer->type->size);
    /* domus_take() returns 0 here, because the payload of an ask or a reply is never shared */
    (void)domus_take(stack);
    actor->room->held[actor->count] = message;
    return 0;
}

/* Append a complete event to those of the next step, with the message that hold_payload_for_step()
 * kept for it. */
static void append_event_of_step(domi_process_actor *actor, const domus_process_event *event)
{
    domus_message *held = actor->room->held[actor->count];
    domus_process_event *place = &actor->room->events[actor->count++];

    *place = *event;
    place->data_type = held != NULL ? domus_message_type(held) : NULL;
    place->data = held != NULL ? domus_message_payload(held) : NULL;
}

static void append_message_as_event(domus_stack *stack, domi_process_actor *actor,
                                    const domus_answer *answer)
{
    domus_process_event event = {
        .type = DOMUS_PROCESS_MESSAGE,
        .sender = domus_sender(stack),
    };

    /* if the message is an ask, it is kept for the process, with a copy of its payload */
    if (domus_message_take(stack, &actor->room->held[actor->count]) != 0) {
        int error = hold_payload_for_step(stack, actor, answer);
        if (error != 0) {
            (void)domus_fail(stack, error);
            return;
        }
        if (domus_keep_working(stack, &event.ask) != 0) {
            domus_message_free(stack, actor->room->held[actor->count]);
            actor->room->held[actor->count] = NULL;
            (void)domus_fail(stack, -ENOMEM);
            return;
        }
        event.is_ask = true;
    }
    append_event_of_step(actor, &event);
}

static void append_completion_as_event(domus_stack *stack, domi_process_actor *actor,
                                       const domus_answer *answer)
{
    domus_process_event event = {
        .type = DOMUS_PROCESS_COMPLETE,
        .error = answer->error,
        .tag = answer->tag,
    };

    if (answer->type != NULL)
        event.sender = domus_sender(stack);
    if (answer->error == 0)
        event.error = hold_payload_for_step(stack, actor, answer);
    append_event_of_step(actor, &event);
}

/* --- step ------------------------------------------------------------------------------------ */

/* Free the events of a step, and all that their payloads own and the step has not taken. */
static void free_events_of_step(domus_stack *stack, domi_process_actor *actor)
{
    for (uint32_t i = 0; i < actor->count; i++) {
        domus_message_free(stack, actor->room->held[i]);
        actor->room->held[i] = NULL;
    }
    actor->count = 0;
}

/* Make one step of the process with the gathered events. Returns false if it was the last step. */
static bool make_step_of_process(domus_stack *stack, domi_process_actor *actor)
{
    domus_process_output out = {.stack = stack, .actor = actor};

    actor->began = true;
    int error =
        actor->process->step(stack, actor->room->state, actor->room->events, actor->count, &out);
    free_events_of_step(stack, actor);
    if (error < 0)
        (void)domus_escalate(stack, error);
    if (out.done)
        (void)domus_stop(stack, domus_self(stack));
    return !out.done;
}

/* Begin the two receives that the conversation of a process always has, if they are not under
 * way. */
static int begin_message_and_wake_receives(domus_stack *stack, domi_process_actor *actor)
{
    int error = 0;

    if (!actor->listening) {
        error = domus_receive_add(stack, &any, DOMUS_FOR_EVER, DOMI_TAG_MESSAGE);
        actor->listening = error == 0;
    }
    if (error == 0 && !actor->can_wake) {
        error = domus_receive_add(stack, &domi_process_nothing, DOMUS_FOR_EVER, DOMI_TAG_MESSAGE);
        actor->can_wake = error == 0;
    }
    return error;
}

/* Begin the receive that ends when all waiting mail was looked at; the step is made then. Without
 * memory for it the step is made now: returns false if that was the process's last one. */
static bool put_step_off_until_mail_is_seen(domus_stack *stack, domi_process_actor *actor)
{
    if (actor->looking)
        return true;
    actor->looking = domus_receive_add(stack, &domi_process_nothing, 0, DOMI_TAG_LOOKED) == 0;
    /* without memory for a receive that ends when all mail was looked at, the step comes at once */
    return actor->looking || make_step_of_process(stack, actor);
}

/* Gather the answer of a yield or a receive of the process, and begin the next step if one is
 * due. */
static int gather_answer_and_step_if_due(domus_stack *stack, void *self, const domus_answer *answer)
{
    domi_process_actor *actor = self;
    /* the conversation waits again, and the result also tells whether it was cancelled */
    int result = domus_wait_first(stack, gather_answer_and_step_if_due);

    if (answer->tag == DOMI_TAG_MESSAGE && answer->error == DOMI_WOKEN)
        actor->can_wake = false;
    else if (answer->tag == DOMI_TAG_MESSAGE)
        actor->listening = false;
    else if (answer->tag == DOMI_TAG_LOOKED)
        actor->looking = false;
    if (result >= 0) { /* the promise of this answer is free again, so a new receive finds memory */
        int error = begin_message_and_wake_receives(stack, actor);
        result = error != 0 ? error : result;
    }
    if (answer->tag == DOMI_TAG_MESSAGE && answer->error == 0)
        append_message_as_event(stack, actor, answer);
    else if (answer->tag <= DOMUS_PROCESS_TAG_MAX)
        append_completion_as_event(stack, actor, answer);
    if (result < 0)
        return result;
    domi_process_gather_recorded_events(actor);

    bool all_seen = answer->tag == DOMI_TAG_LOOKED && (actor->count != 0 || !actor->began);
    bool more = true;
    if (all_seen || actor->count == DOMUS_PROCESS_EVENTS_MAX)
        more = make_step_of_process(stack, actor);
    if (more)
        /* gather recorded events for which there was no room before */
        domi_process_gather_recorded_events(actor);
    if (more && actor->count != 0)
        more = put_step_off_until_mail_is_seen(stack, actor);
    if (more)
        return result;
    /* no step follows, so the conversation of the process waits for nothing */
    stack->pooled->wait = DOMI_WAIT_NONE;
    return 0;
}

/* --- the actor ------------------------------------------------------------------------------- */

static void stop_process_actor(domus_stack *stack, void *self)
{
    domi_process_actor *actor = self;

    domi_processes_remove_process(stack->manager->directory.processes, &actor->living);
    domi_process_free_pieces_of_work(&actor->works);
    domi_process_free_pieces_of_work(&actor->ended);
    actor->works_count = 0;
    actor->is_told = false;
    if (actor->room == NULL)
        return;
    free_events_of_step(stack, actor);
    if (actor->process->close != NULL)
        actor->process->close(stack, actor->room->state);
    domi_memory_free(actor->room);
    actor->room = NULL;
}

static int mount_process_actor(domus_stack *stack, void *self)
{
    domi_process_actor *actor = self;
    const domus_process *process = actor->process;
    int result = 0;

    /* the actor was restarted, but its first state was not kept, because its parent had no rules
     * when it was spawned */
    if (process == NULL)
        return -EINVAL;
    /* the stop of the system has given all processes of the list their last event, and this new one
     * never gets it */
    if (stack->manager->ending.closing)
        return domus_stop(stack, domus_self(stack));
    actor->room = domi_memory_new(sizeof(domi_process_room) + process->state_size);
    if (actor->room == NULL)
        return -ENOMEM;
    if (process->init != NULL)
        result = process->init(stack, actor->room->state, actor->method, actor->input_type,
                               actor->input_type != NULL ? actor->input : NULL);
    if (result >= 0)
        result = begin_message_and_wake_receives(stack, actor);
    if (result == 0)
        result = put_step_off_until_mail_is_seen(stack, actor)
                     ? domus_wait_first(stack, gather_answer_and_step_if_due)
                     : 0;
    if (result < 0)
        /* the library does not call on_stop for an actor whose on_mount fails */
        stop_process_actor(stack, self);
    else
        domi_processes_add_process(stack->manager->directory.processes, &actor->living,
                                   domus_self(stack));
    return result;
}

static const domus_behaviour behaviour = {
    .name = "process",
    .kind = DOMUS_STATE,
    .state_size = sizeof(domi_process_actor),
    .on_mount = mount_process_actor,
    .on_stop = stop_process_actor,
    .on = (const domus_on[]){{&domus_process_cancel_type, domi_process_handle_last_event, 0},
                             {NULL, NULL, 0}},
};

int domi_process_check(const domus_process *process, const char *method, const domus_type *type)
{
    if (process == NULL || process->step == NULL || process->state_size > DOMI_HOUSE_STATE_MAX)
        return -EINVAL;
    if (type != NULL && type->release != NULL)
        return -EINVAL;
    if ((method != NULL && strlen(method) > DOMUS_PROCESS_METHOD_MAX) ||
        (type != NULL && type->size > DOMUS_PROCESS_INPUT_MAX))
        return -EMSGSIZE;
    return 0;
}

int domi_process_spawn(const domus_process *process, const char *method, const domus_type *type,
                       const void *input, domus_address result_to,
                       int (*spawn)(void *context, const domus_behaviour *behaviour,
                                    const void *state, domus_address *ret_address),
                       void *context, domus_address *ret_address)
{
    domi_process_actor state = {.process = process, .spawner = result_to, .input_type = type};
    int error = domi_process_check(process, method, type);

    if (error != 0)
        return error;
    if (method != NULL)
        memcpy(state.method, method, strlen(method));
    if (type != NULL && type->size != 0)
        memcpy(state.input, input, type->size);
    return spawn(context, &behaviour, &state, ret_address);
}

/* The arguments of domus_process_spawn() for spawn_process_as_child(). */
typedef struct order {
    domus_stack *stack;
    const domus_spawn_options *options;
} order;

static int spawn_process_as_child(void *context, const domus_behaviour *as, const void *state,
                                  domus_address *ret_address)
{
    const order *given = context;

    return domus_spawn_with(given->stack, as, state, given->options, ret_address);
}

int domus_process_spawn(domus_stack *stack, const domus_process *process, const char *method,
                        const domus_type *type, const void *input,
                        const domus_spawn_options *options, domus_address *ret_address)
{
    order given = {stack, options};

    return domi_process_spawn(process, method, type, input, domus_self(stack),
                              spawn_process_as_child, &given, ret_address);
}

/* --- output ---------------------------------------------------------------------------------- */

int domus_process_ask(domus_process_output *out, domus_address to, const domus_type *type,
                      const void *payload, uint64_t timeout_ns, uint64_t tag)
{
    int error = domi_process_check_may_yield(out, tag);

    if (error == 0)
        error = domus_ask_add(out->stack, to, type, payload, timeout_ns, tag);
    out->yield_count += error == 0;
    return error;
}

int domus_process_sleep(domus_process_output *out, uint64_t time_ns, uint64_t tag)
{
    int error = domi_process_check_may_yield(out, tag);

    if (error == 0)
        error = domus_sleep_add(out->stack, time_ns, tag);
    out->yield_count += error == 0;
    return error;
}

int domus_process_done(domus_process_output *out, const domus_type *type, const void *value)
{
    int error = 0;

    if (out->done)
        return -EALREADY;
    if (type != NULL && out->actor->spawner.house != NULL)
        error = domus_notice(out->stack, out->actor->spawner, type, value);
    else if (type != NULL && type->release != NULL)
        /* no actor gets the value of the process, so what it owns is released now */
        type->release((void *)(uintptr_t)value);
    out->done = error == 0;
    return error;
}

int domus_process_take(domus_process_output *out, const domus_process_event *event)
{
    const domi_process_room *gathered = out->actor->room;

    for (uint32_t i = 0; i < out->actor->count; i++) {
        if (event == &gathered->events[i] && gathered->held[i] != NULL)
            return domi_envelope_take_payload((domi_envelope *)(void *)gathered->held[i]);
    }
    return -EINVAL;
}
