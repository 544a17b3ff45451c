/* Calls the functions of a channel's behaviour.
 *
 * A function begins a conversation as a row does: without a frame on a stack in this C frame, and
 * with a frame on a pooled one. A function is called in every case, because it owns the bytes that
 * it gets, and because on_close ends what on_open began. So if there is no memory for a pooled
 * stack, the conversation gets a stack in a C frame, too, and cannot wait. Owner thread. */
#include "io/completions/actor.h"

#include "io/channels/ends.h"
#include "io/channels/receive.h"
#include "io/channels/state.h"
#include "io/channels/table.h"

#include "base/check.h"
#include "house/conversation/turn.h"
#include "io/pipelines/life.h"

/* Types that belong to no message. Each names the callback that a thread runs, for stall reports,
 * and the callback that began a conversation. */
static const domus_type open_type = {.name = "on_open"};
static const domus_type read_type = {.name = "on_read"};
static const domus_type end_type = {.name = "on_end"};
static const domus_type close_type = {.name = "on_close"};

/* Count a conversation that bytes of the channel have begun, until it has ended. */
static void count_conversation_of_channel(domus_channel *channel, domus_stack *pooled)
{
    channel->conversations++;
    pooled->away |= DOMI_STACK_COUNTED;
}

/* Call a function of a channel's behaviour on a stack that has its frame, and end the turn. Returns
 * the function's result. */
static int call_function_on_stack(domus_stack *stack, domi_house *house, const domus_call *call,
                                  const domus_type *type, const domus_channel_event *event)
{
    stack->begun_by = type;
    domi_turn_begin(stack, type);
    return domi_turn_end_of_callback(stack, call->handle(stack, house->self, event));
}

/* Call a function of a channel's behaviour that has a frame when there is no memory for a pooled
 * stack: the frame lies on a stack in this C frame, and the conversation cannot wait. */
__attribute__((noinline, cold)) static int
call_function_on_local_stack(domi_manager *manager, domi_house *house, const domus_call *call,
                             const domus_type *type, const domus_channel_event *event)
{
    alignas(16) unsigned char place[DOMI_STACK_HEAD + DOMUS_FRAME_MAX];

    return call_function_on_stack(
        domi_stack_init_in_c_frame(place, manager, house, call->call_frame_size), house, call, type,
        event);
}

/* Call a function of a channel's behaviour that has a frame. Returns the function's result. */
static int call_function_with_frame(domi_manager *manager, domi_house *house,
                                    const domus_call *call, const domus_type *type,
                                    const domus_channel_event *event)
{
    domus_stack *stack = domi_stack_new(manager, house, call->call_frame_size);

    if (stack == NULL)
        return call_function_on_local_stack(manager, house, call, type, event);
    if (type == &read_type)
        count_conversation_of_channel(event->channel, stack);
    int result = call_function_on_stack(stack, house, call, type, event);
    if (type == &read_type)
        domi_channel_update_busy_flag(event->channel);
    return result;
}

/* Call a function of a channel's behaviour. Returns its result; a failure is not reported, because
 * the caller decides what it means. Inlined, so that `type` is a constant. */
DOMI_INLINE int call_channel_function(domi_manager *manager, domi_house *house,
                                      const domus_call *call, const domus_type *type,
                                      const domus_channel_event *event)
{
    domus_stack stack;

    if (DOMI_UNLIKELY(call->call_frame_size != 0))
        return call_function_with_frame(manager, house, call, type, event);
    domi_stack_begin_without_message(&stack, manager, house);
    domi_turn_begin(&stack, type);
    int result = call->handle(&stack, house->self, event);
    bool counts = type == &read_type && stack.pooled != NULL;
    /* a stack whose conversation has not parked ends with this call */
    if (DOMI_UNLIKELY(stack.pooled != NULL))
        stack.pooled->begun_by = type;
    if (DOMI_UNLIKELY(counts))
        count_conversation_of_channel(event->channel, stack.pooled);
    (void)domi_turn_end_of_begun_conversation(&stack, result < 0 ? 0 : result, DOMI_EVENT);
    if (DOMI_UNLIKELY(counts))
        domi_channel_update_busy_flag(event->channel);
    return result;
}

/* --- the functions ---------------------------------------------------------------------------- */

DOMI_NO_CANARY void domi_channel_call_on_open(domi_manager *manager, domi_house *house,
                                              domus_channel *channel)
{
    const domus_call *call = &house->behaviour->on_open;

    channel->opened = true;
    if (call->handle != NULL) {
        const domus_channel_event event = {.channel = channel};
        int result = call_channel_function(manager, house, call, &open_type, &event);
        if (result < 0)
            domi_channel_reset_after_error(channel, result);
    }
    domi_channel_take_due_steps(channel);
}

DOMI_NO_CANARY void domi_channel_call_on_read(domi_manager *manager, domi_house *house,
                                              domus_channel *channel)
{
    const domus_call *call = &house->behaviour->on_read;
    domus_buffer *buffer = domi_channel_take_inbound_piece(channel);

    domi_counter_add(&channel->io->counters.reads, 1);
    if (call->handle == NULL) {
        domus_buffer_free(buffer);
        return;
    }
    const domus_channel_event event = {.channel = channel, .bytes = buffer};
    int result = call_channel_function(manager, house, call, &read_type, &event);
    if (DOMI_UNLIKELY(result < 0))
        domi_channel_reset_after_error(channel, result);
}

DOMI_NO_CANARY void domi_channel_call_on_end(domi_manager *manager, domi_house *house,
                                             domus_channel *channel)
{
    const domus_call *call = &house->behaviour->on_end;

    channel->end_told = true;
    if (call->handle == NULL) {
        domi_channel_close_when_answered(channel);
        return;
    }
    const domus_channel_event event = {.channel = channel};
    int result = call_channel_function(manager, house, call, &end_type, &event);
    if (result < 0)
        domi_channel_reset_after_error(channel, result);
}

DOMI_NO_CANARY void domi_channel_call_on_close(domi_manager *manager, domi_house *house,
                                               domus_channel *channel)
{
    const domus_call *call = &house->behaviour->on_close;

    if (call->handle != NULL && channel->opened) {
        const domus_channel_event event = {.channel = channel, .error = channel->error};
        /* the connection is gone, so the result of on_close changes nothing */
        (void)call_channel_function(manager, house, call, &close_type, &event);
    }
    domi_pipe_end_and_free(channel);
    domi_channel_free(channel);
}
