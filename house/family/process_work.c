/* Blocking work of processes, and the last event of a process. Both come beside the conversation of
 * the process: they are recorded, and a receive of that conversation is made to fail, so that it
 * goes on. */
#include "house/family/process_actor.h"

#include "base/memory.h"
#include "house/conversation/stack.h"
#include "house/message/family.h"

static const domus_type *const no_types[] = {NULL};
const domus_pattern domi_process_nothing = {.types = no_types};

/* The frame of a conversation that does blocking work for a process. */
typedef struct work_frame {
    domi_process_piece *piece;
} work_frame;

static void link_piece_of_work(domi_process_piece **list, domi_process_piece *one)
{
    one->previous = NULL;
    one->next = *list;
    if (one->next != NULL)
        one->next->previous = one;
    *list = one;
}

static void unlink_piece_of_work(domi_process_piece **list, domi_process_piece *one)
{
    if (one->next != NULL)
        one->next->previous = one->previous;
    if (one->previous != NULL)
        one->previous->next = one->next;
    else
        *list = one->next;
}

void domi_process_free_pieces_of_work(domi_process_piece **list)
{
    while (*list != NULL) {
        domi_process_piece *one = *list;
        unlink_piece_of_work(list, one);
        domi_memory_free(one);
    }
}

/* Wake the conversation of the process by ending the receive that exists for this purpose. If that
 * receive has ended already, the conversation goes on anyway. */
static void wake_conversation_of_process(domus_stack *stack)
{
    const domi_family *family = domi_stack_get_house(stack)->family;
    domi_promise *promise = family != NULL ? family->receives : NULL;

    while (promise != NULL &&
           (promise->answer.tag != DOMI_TAG_MESSAGE || promise->pattern != &domi_process_nothing))
        promise = promise->next_receive;
    if (promise != NULL)
        domi_promise_fail(stack->manager, promise, DOMI_WOKEN);
}

int domi_process_handle_last_event(domus_stack *stack, void *self, const void *cancel)
{
    domi_process_actor *actor = self;

    actor->cancel = *(const domus_process_cancel *)cancel;
    actor->is_told = true;
    wake_conversation_of_process(stack);
    return 0;
}

/* Record that a piece of blocking work has ended, or will never begin. */
static int record_end_of_blocking_work(domus_stack *stack, void *self, const domus_answer *answer)
{
    domi_process_actor *actor = self;
    domi_process_piece *one = ((work_frame *)domus_frame(stack))->piece;

    if (actor->room == NULL)
        return 0; /* the process was closed, and its recorded pieces of work were freed */
    one->result = answer->error != 0 ? answer->error : *(const int *)answer->payload;
    if (answer->error == 0)
        actor->result_type = answer->type;
    unlink_piece_of_work(&actor->works, one);
    link_piece_of_work(&actor->ended, one);
    wake_conversation_of_process(stack);
    return 0;
}

/* Most recorded events that are gathered at once. One place stays free: the conversation may be
 * resumed with a message or a completion before the next step, and this has to find room. */
#define NOTED_MAX (DOMUS_PROCESS_EVENTS_MAX - 1u)

/* Gather recorded ends of work as events of the next step. The results of work lie in the actor
 * until the step has returned. */
void domi_process_gather_recorded_events(domi_process_actor *actor)
{
    domi_process_room *gathered = actor->room;

    if (actor->is_told && actor->count < NOTED_MAX) {
        gathered->events[actor->count++] = (domus_process_event){
            .type = DOMUS_PROCESS_CANCEL,
            .data_type = &domus_process_cancel_type,
            .data = &actor->cancel,
        };
        actor->is_told = false;
    }
    while (actor->ended != NULL && actor->count < NOTED_MAX) {
        domi_process_piece *one = actor->ended;
        while (one->next != NULL)
            /* find the piece that ended first; few have ended since the last step */
            one = one->next;
        unlink_piece_of_work(&actor->ended, one);
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

/* Begin a conversation that does the blocking work, beside that of the process. */
static int begin_blocking_work_of_process(domus_stack *stack, int (*function)(void *argument),
                                          void *argument, domi_process_piece *one)
{
    domus_stack *own =
        domi_stack_new(stack->manager, domi_stack_get_house(stack), sizeof(work_frame));

    if (own == NULL)
        return -ENOMEM;
    *(work_frame *)domus_frame(own) = (work_frame){one};
    int result = stack->manager->hooks.block(own, function, argument, record_end_of_blocking_work);
    domi_stack_park_or_end(own, result == DOMUS_PARKED ? result : 0);
    return result == DOMUS_PARKED ? 0 : result;
}

int domus_process_work(domus_process_output *out, int (*function)(void *argument), void *argument,
                       uint64_t tag)
{
    domi_process_actor *actor = out->actor;
    int error = domi_process_check_may_yield(out, tag);

    if (error == 0 && out->stack->manager->hooks.block == NULL)
        error = -EOPNOTSUPP;
    if (error == 0 && actor->works_count == DOMUS_PROCESS_WORKS_MAX)
        error = -ENOBUFS;
    if (error != 0)
        return error;
    domi_process_piece *one = domi_memory_new(sizeof *one);
    if (one == NULL)
        return -ENOMEM;
    one->tag = tag;
    error = begin_blocking_work_of_process(out->stack, function, argument, one);
    if (error != 0) {
        domi_memory_free(one);
        return error;
    }
    link_piece_of_work(&actor->works, one);
    actor->works_count++;
    out->yield_count++;
    return 0;
}
