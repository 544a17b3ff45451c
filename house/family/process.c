/* A process is an actor with the behaviour below, and this file has the verbs of domus/process.h.
 *
 * One conversation, which on_mount begins, waits for whatever comes first: any message, or the
 * completion of a yield. Both are gathered as events. With the first event a second receive begins,
 * which takes nothing and ends when all waiting mail was looked at. So the step comes after all
 * events of one run, without a clock and without a message of the actor to itself. Public verbs do
 * the work, but memory and domus_process_take() use the library's own functions.
 *
 * Work that may block has a conversation of its own for each piece, so that the library waits for
 * it however the process ends. Its end, and the last event of a stop, come while the conversation
 * above receives: they are noted, and that receive fails, so that the conversation goes on. */
#include "base/memory.h"
#include "house/conversation/stack.h"
#include "house/conversation/take.h"
#include "house/family/behaviour.h"
#include "house/family/life.h"
#include "house/family/processes.h"
#include "house/message/family.h"

#include <domus/message.h>
#include <domus/process.h>
#include <domus/receive.h>
#include <domus/supervise.h>

#include <errno.h>
#include <string.h>

/* Tags of the two receives, which are not yields. */
#define TAG_MESSAGE UINT64_MAX /* tag of the receive that waits for the next message */
#define TAG_LOOKED                                                                                 \
    (UINT64_MAX - 1) /* the receive that ends when all waiting mail was looked at                  \
                      */

static_assert(TAG_LOOKED > DOMUS_PROCESS_TAG_MAX, "yields have tags of their own");

/* The part of the state that is not needed before init. */
typedef struct room {
    /* what a step is shown: messages and answers */
    domus_process_event events[DOMUS_PROCESS_EVENTS_MAX];
    /* messages that hold the events' payloads; NULL: none */
    domus_message *held[DOMUS_PROCESS_EVENTS_MAX];
    int results[DOMUS_PROCESS_EVENTS_MAX]; /* what work has returned */
    alignas(16) unsigned char state[];
} room;

/* A piece of work that is under way, or has ended and was not shown. */
typedef struct work work;

struct work {
    work *next;
    work *previous;
    uint64_t tag;
    int result; /* what the function returned, or a negative errno */
};

typedef struct process_actor {
    const domus_process *process; /* the user's description of the process */
    domus_address spawner;        /* the actor that made the process and gets its notices */
    const domus_type *input_type; /* type of the message that holds the input */
    room *room;                   /* NULL before init, and after close */
    uint32_t count;               /* events gathered */
    bool listening;               /* the receive of messages is under way */
    bool looking; /* the receive that ends when all mail was looked at is under way */
    bool began;   /* the first step was begun */
    bool is_told; /* the last event has come, and was not shown */
    domus_process_cancel cancel;   /* that event */
    domi_living living;            /* its place among the processes that live */
    work *works;                   /* work that is under way */
    work *ended;                   /* work that has ended, the newest first */
    const domus_type *result_type; /* the type of what work returns, as its first answer said */
    uint32_t works_count;          /* entries of both */
    char method[DOMUS_PROCESS_METHOD_MAX + 1]; /* name of the method that runs, NUL-terminated */
    alignas(8) unsigned char input[DOMUS_PROCESS_INPUT_MAX];
} process_actor;

struct domus_process_output {
    domus_stack *stack;   /* the conversation of this step */
    process_actor *actor; /* the actor whose step it is */
    uint32_t yield_count; /* asks and sleeps that this step has begun */
    bool done;            /* the step has finished the process */
};

static const domus_pattern any = {.types = NULL};
static const domus_type *const no_types[] = {NULL};
static const domus_pattern nothing = {.types = no_types};

/* --- gather ---------------------------------------------------------------------------------- */

/* Keep a copy of a payload, together with what the payload owns. Returns 0; -ENOMEM, and then the
 * library releases what the payload owns. */
static int hold_payload(domus_stack *stack, process_actor *actor, const domus_answer *answer)
{
    domus_message *message;

    if (answer->type == NULL)
        return 0;
    int error = domus_message_new(stack, answer->type, &message);
    if (error != 0)
        return error;
    if (answer->type->size != 0)
        memcpy(domus_message_payload(message), answer->payload, answer->type->size);
    (void)domus_take(stack); /* an ask's or a reply's payload is never shared */
    actor->room->held[actor->count] = message;
    return 0;
}

/* Append a complete event, with the message that hold_payload() kept for it. */
static void add_event(process_actor *actor, const domus_process_event *event)
{
    domus_message *held = actor->room->held[actor->count];
    domus_process_event *place = &actor->room->events[actor->count++];

    *place = *event;
    place->data_type = held != NULL ? domus_message_type(held) : NULL;
    place->data = held != NULL ? domus_message_payload(held) : NULL;
}

static void add_message(domus_stack *stack, process_actor *actor, const domus_answer *answer)
{
    domus_process_event event = {
        .type = DOMUS_PROCESS_MESSAGE,
        .sender = domus_sender(stack),
    };

    if (domus_message_take(stack, &actor->room->held[actor->count]) != 0) { /* it is an ask */
        int error = hold_payload(stack, actor, answer);
        if (error != 0) {
            (void)domus_fail(stack, error);
            return;
        }
        if (domus_keep(stack, &event.ask) != 0) {
            domus_message_free(stack, actor->room->held[actor->count]);
            actor->room->held[actor->count] = NULL;
            (void)domus_fail(stack, -ENOMEM);
            return;
        }
        event.ask.stack->works = true;
        event.is_ask = true;
    }
    add_event(actor, &event);
}

static void add_completion(domus_stack *stack, process_actor *actor, const domus_answer *answer)
{
    domus_process_event event = {
        .type = DOMUS_PROCESS_COMPLETE,
        .error = answer->error,
        .tag = answer->tag,
    };

    if (answer->type != NULL)
        event.sender = domus_sender(stack);
    if (answer->error == 0)
        event.error = hold_payload(stack, actor, answer);
    add_event(actor, &event);
}

/* --- work and the last event ------------------------------------------------------------------ */

static void link_work(work **list, work *one)
{
    one->previous = NULL;
    one->next = *list;
    if (one->next != NULL)
        one->next->previous = one;
    *list = one;
}

static void unlink_work(work **list, work *one)
{
    if (one->next != NULL)
        one->next->previous = one->previous;
    if (one->previous != NULL)
        one->previous->next = one->next;
    else
        *list = one->next;
}

static void free_works(work **list)
{
    while (*list != NULL) {
        work *one = *list;
        unlink_work(list, one);
        domi_memory_free(one);
    }
}

/* Let the conversation of the process go on: its receive ends without a message. If none waits, it
 * goes on anyway. */
static void wake(domus_stack *stack)
{
    const domi_family *family = domi_stack_house(stack)->family;
    domi_promise *promise = family != NULL ? family->receives : NULL;

    while (promise != NULL && promise->answer.tag != TAG_MESSAGE)
        promise = promise->next_receive;
    if (promise != NULL)
        domi_promise_fail(stack->manager, promise, -EINTR);
}

static int on_cancel(domus_stack *stack, void *self, const void *cancel)
{
    process_actor *actor = self;

    actor->cancel = *(const domus_process_cancel *)cancel;
    actor->is_told = true;
    wake(stack);
    return 0;
}

/* A piece of work has ended, or will never begin. */
static int on_work(domus_stack *stack, void *self, const domus_answer *answer)
{
    process_actor *actor = self;
    work *one = *(work **)domus_frame(stack);

    if (actor->room == NULL)
        return 0; /* the process was closed, and with it what it had noted */
    one->result = answer->error != 0 ? answer->error : *(const int *)answer->payload;
    if (answer->error == 0)
        actor->result_type = answer->type;
    unlink_work(&actor->works, one);
    link_work(&actor->ended, one);
    wake(stack);
    return 0;
}

/* Make events of what was noted, as many as there is room for. The results of work lie in the
 * actor until the step has returned. */
static void add_noted(process_actor *actor)
{
    room *gathered = actor->room;

    if (actor->is_told && actor->count < DOMUS_PROCESS_EVENTS_MAX) {
        gathered->events[actor->count++] = (domus_process_event){
            .type = DOMUS_PROCESS_CANCEL,
            .data_type = &domus_process_cancel_type,
            .data = &actor->cancel,
        };
        actor->is_told = false;
    }
    while (actor->ended != NULL && actor->count < DOMUS_PROCESS_EVENTS_MAX) {
        work *one = actor->ended;
        while (one->next != NULL)
            one = one->next; /* the oldest; few have ended since the last step */
        unlink_work(&actor->ended, one);
        actor->works_count--;
        gathered->results[actor->count] = one->result;
        gathered->events[actor->count] = (domus_process_event){
            .type = DOMUS_PROCESS_COMPLETE,
            .tag = one->tag,
            .error = one->result < 0 ? one->result : 0,
            .data_type = one->result < 0 ? NULL : actor->result_type,
            .data = one->result < 0 ? NULL : &gathered->results[actor->count],
        };
        actor->count++;
        domi_memory_free(one);
    }
}

/* --- step ------------------------------------------------------------------------------------ */

/* Free the events with what their payloads own, unless the step took that. */
static void events_free(domus_stack *stack, process_actor *actor)
{
    for (uint32_t i = 0; i < actor->count; i++) {
        domus_message_free(stack, actor->room->held[i]);
        actor->room->held[i] = NULL;
    }
    actor->count = 0;
}

/* Make one step with the gathered events. False if it was the last step. */
static bool step_process(domus_stack *stack, process_actor *actor)
{
    domus_process_output out = {.stack = stack, .actor = actor};

    actor->began = true;
    int error =
        actor->process->step(stack, actor->room->state, actor->room->events, actor->count, &out);
    events_free(stack, actor);
    if (error < 0)
        (void)domus_escalate(stack, error);
    if (out.done)
        (void)domus_stop(stack, domus_self(stack));
    return !out.done;
}

static int receive_any(domus_stack *stack, process_actor *actor)
{
    if (actor->listening)
        return 0;
    int error = domus_receive_add(stack, &any, DOMUS_FOR_EVER, TAG_MESSAGE);
    actor->listening = error == 0;
    return error;
}

/* More mail may wait: begin the receive that ends when all mail was looked at. False if a last step
 * was made. */
static bool put_off_step(domus_stack *stack, process_actor *actor)
{
    if (actor->looking)
        return true;
    actor->looking = domus_receive_add(stack, &nothing, 0, TAG_LOOKED) == 0;
    /* if there is no memory for the receive, the step comes at once */
    return actor->looking || step_process(stack, actor);
}

/* Gather an answer of a yield or a receive, and begin the next step if one is due. */
static int go_on(domus_stack *stack, void *self, const domus_answer *answer)
{
    process_actor *actor = self;
    /* wait again; the result also tells whether the conversation was cancelled */
    int result = domus_wait_first(stack, go_on);

    if (answer->tag == TAG_MESSAGE)
        actor->listening = false;
    else if (answer->tag == TAG_LOOKED)
        actor->looking = false;
    if (result >= 0) { /* the promise of this answer is free again, so the receive finds memory */
        int error = receive_any(stack, actor);
        result = error != 0 ? error : result;
    }
    if (answer->tag == TAG_MESSAGE && answer->error == 0)
        add_message(stack, actor, answer);
    else if (answer->tag <= DOMUS_PROCESS_TAG_MAX)
        add_completion(stack, actor, answer);
    if (result < 0)
        return result;
    add_noted(actor);

    bool all_seen = answer->tag == TAG_LOOKED && (actor->count != 0 || !actor->began);
    bool more = true;
    if (all_seen || actor->count == DOMUS_PROCESS_EVENTS_MAX)
        more = step_process(stack, actor);
    if (more)
        add_noted(actor); /* those for which there was no room */
    if (more && actor->count != 0)
        more = put_off_step(stack, actor);
    if (more)
        return result;
    stack->pooled->wait = DOMI_WAIT_NONE; /* no step is left to wait for */
    return 0;
}

/* --- the actor ------------------------------------------------------------------------------- */

static void on_stop(domus_stack *stack, void *self)
{
    process_actor *actor = self;

    domi_processes_remove(stack->manager->directory.processes, &actor->living);
    free_works(&actor->works);
    free_works(&actor->ended);
    actor->works_count = 0;
    actor->is_told = false;
    if (actor->room == NULL)
        return;
    events_free(stack, actor);
    if (actor->process->close != NULL)
        actor->process->close(stack, actor->room->state);
    domi_memory_free(actor->room);
    actor->room = NULL;
}

static int on_mount(domus_stack *stack, void *self)
{
    process_actor *actor = self;
    const domus_process *process = actor->process;
    int result = 0;

    if (process == NULL) /* the actor was restarted, but its parent had no rules when it was
                            spawned, so no state was kept */
        return -EINVAL;
    actor->room = domi_memory_new(sizeof(room) + process->state_size);
    if (actor->room == NULL)
        return -ENOMEM;
    if (process->init != NULL)
        result = process->init(stack, actor->room->state, actor->method, actor->input_type,
                               actor->input_type != NULL ? actor->input : NULL);
    if (result >= 0)
        result = receive_any(stack, actor);
    if (result == 0)
        result = put_off_step(stack, actor) ? domus_wait_first(stack, go_on) : 0;
    if (result < 0)
        on_stop(stack, self); /* on_stop is not called for an actor whose on_mount fails */
    else
        domi_processes_add(stack->manager->directory.processes, &actor->living, domus_self(stack));
    return result;
}

static const domus_behaviour behaviour = {
    .name = "process",
    .kind = DOMUS_STATE,
    .state_size = sizeof(process_actor),
    .on_mount = on_mount,
    .on_stop = on_stop,
    .on = (const domus_on[]){{&domus_process_cancel_type, on_cancel, 0}, {NULL, NULL, 0}},
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
    process_actor state = {.process = process, .spawner = result_to, .input_type = type};
    int error = domi_process_check(process, method, type);

    if (error != 0)
        return error;
    if (method != NULL)
        memcpy(state.method, method, strlen(method));
    if (type != NULL && type->size != 0)
        memcpy(state.input, input, type->size);
    return spawn(context, &behaviour, &state, ret_address);
}

/* What domus_process_spawn() was given for the spawn. */
typedef struct order {
    domus_stack *stack;
    const domus_spawn_options *options;
} order;

static int spawn_child(void *context, const domus_behaviour *as, const void *state,
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

    return domi_process_spawn(process, method, type, input, domus_self(stack), spawn_child, &given,
                              ret_address);
}

/* --- output ---------------------------------------------------------------------------------- */

static int may_yield(const domus_process_output *out, uint64_t tag)
{
    if (tag > DOMUS_PROCESS_TAG_MAX)
        return -EINVAL;
    return out->yield_count == DOMUS_PROCESS_YIELDS_MAX ? -ENOBUFS : 0;
}

int domus_process_ask(domus_process_output *out, domus_address to, const domus_type *type,
                      const void *payload, uint64_t timeout_ns, uint64_t tag)
{
    int error = may_yield(out, tag);

    if (error == 0)
        error = domus_ask_add(out->stack, to, type, payload, timeout_ns, tag);
    out->yield_count += error == 0;
    return error;
}

int domus_process_sleep(domus_process_output *out, uint64_t time_ns, uint64_t tag)
{
    int error = may_yield(out, tag);

    if (error == 0)
        error = domus_sleep_add(out->stack, time_ns, tag);
    out->yield_count += error == 0;
    return error;
}

/* Begin a conversation that does the work, beside the one of the process. */
static int begin_work(domus_stack *stack, int (*function)(void *argument), void *argument,
                      work *one)
{
    domus_stack *own = domi_stack_new(stack->manager, domi_stack_house(stack), sizeof one);

    if (own == NULL)
        return -ENOMEM;
    memcpy(domus_frame(own), &one, sizeof one);
    int result = stack->manager->hooks.block(own, function, argument, on_work);
    domi_stack_park_or_end(own, result == DOMUS_PARKED ? result : 0);
    return result == DOMUS_PARKED ? 0 : result;
}

int domus_process_work(domus_process_output *out, int (*function)(void *argument), void *argument,
                       uint64_t tag)
{
    process_actor *actor = out->actor;
    int error = may_yield(out, tag);

    if (error == 0 && out->stack->manager->hooks.block == NULL)
        error = -EOPNOTSUPP;
    if (error == 0 && actor->works_count == DOMUS_PROCESS_WORKS_MAX)
        error = -ENOBUFS;
    if (error != 0)
        return error;
    work *one = domi_memory_new(sizeof *one);
    if (one == NULL)
        return -ENOMEM;
    one->tag = tag;
    error = begin_work(out->stack, function, argument, one);
    if (error != 0) {
        domi_memory_free(one);
        return error;
    }
    link_work(&actor->works, one);
    actor->works_count++;
    out->yield_count++;
    return 0;
}

int domus_process_done(domus_process_output *out, const domus_type *type, const void *value)
{
    int error = 0;

    if (out->done)
        return -EALREADY;
    if (type != NULL && out->actor->spawner.house != NULL)
        error = domus_notice(out->stack, out->actor->spawner, type, value);
    else if (type != NULL && type->release != NULL)
        type->release((void *)(uintptr_t)value); /* nobody is to get it */
    out->done = error == 0;
    return error;
}

int domus_process_take(domus_process_output *out, const domus_process_event *event)
{
    const room *gathered = out->actor->room;

    for (uint32_t i = 0; i < out->actor->count; i++) {
        if (event == &gathered->events[i] && gathered->held[i] != NULL)
            return domi_envelope_take((domi_envelope *)(void *)gathered->held[i]);
    }
    return -EINVAL;
}
