/* The public functions that act on a channel, and those that tell its properties. Only the
 * channel's own actor and its owner may act on it, and channels that share the state of one of
 * these two: all of them run on the thread of the channel and nowhere else. */
#include "io/channels/verbs.h"

#include "house/conversation/stack.h"
#include "io/channels/due.h"
#include "io/channels/ends.h"
#include "io/channels/flush.h"
#include "io/channels/receive.h"
#include "io/channels/renew.h"
#include "io/channels/send.h"
#include "io/channels/state.h"
#include "io/resources/endpoint.h"

#include <errno.h>

/* True if the actor in `house` is the channel itself or its parent, or has the same state as one of
 * them. (A relay has two channels and one state.) */
static bool may_actor_act_on_channel(const domus_stack *stack, const domus_channel *channel)
{
    const domi_house *house = domi_stack_get_house(stack);
    const domi_house *of_channel = channel->house;

    /* a state actor may not act, because it may run on another thread than its channels */
    if (house->behaviour->kind != DOMUS_CHANNELS)
        return false;
    if (house == of_channel || house == of_channel->parent)
        return true;
    return domi_house_shares_state(house) &&
           (house->self == of_channel->self || house->self == of_channel->parent->self);
}

bool domi_channel_may_be_used_by(const domus_stack *stack, const domus_channel *channel)
{
    return may_actor_act_on_channel(stack, channel);
}

int domus_channel_options_check(const domus_stack *stack, const domus_channel_options *options,
                                char *error, size_t error_size)
{
    return domi_settings_check_options(stack->manager->config, options, error, error_size);
}

/* --- what acts -------------------------------------------------------------------------------- */

#define NO_SLICE ((domus_slice){NULL, 0, 0})

/* Queue a buffer after the byte stages of the channel have wrapped it. Consumes it. */
static int write_buffer_through_byte_stages(domus_channel *channel, domus_buffer *bytes)
{
    int error = bytes->size != 0
                    ? channel->io->pipe_ways->write(channel, bytes->data, bytes->size, NO_SLICE)
                    : domi_channel_check_may_write(channel, 0);

    domus_buffer_free(bytes);
    return error;
}

int domus_channel_write(domus_stack *stack, domus_channel *channel, domus_buffer *bytes)
{
    if (!may_actor_act_on_channel(stack, channel)) {
        domus_buffer_free(bytes);
        return -EPERM;
    }
    if (DOMI_UNLIKELY(channel->wraps))
        return write_buffer_through_byte_stages(channel, bytes);
    return DOMI_LIKELY(channel->special == NULL)
               ? domi_channel_write(channel, bytes)
               : domi_channel_get_special_functions(channel)->write(channel, bytes);
}

/* Append bytes to a channel on which the caller may act, as may_actor_act_on_channel() has found.
 */
static int append_bytes_without_check(domus_channel *channel, const void *data, size_t size)
{
    if (DOMI_LIKELY(!channel->wraps) || size == 0 || size > DOMI_BUFFER_MAX)
        return domi_channel_append_copy(channel, data, size);
    return channel->io->pipe_ways->write(channel, data, size, NO_SLICE);
}

int domus_channel_append(domus_stack *stack, domus_channel *channel, const void *data, size_t size)
{
    return may_actor_act_on_channel(stack, channel)
               ? append_bytes_without_check(channel, data, size)
               : -EPERM;
}

/* size in bytes up to which a slice is copied behind the bytes before it */
#define SLICE_COPIED 512u

/* Queue a slice to be sent on the channel; the slice stays the caller's. */
static int queue_slice_to_channel(domus_channel *channel, domus_slice slice)
{
    domus_slice kept;

    if (channel->wraps && slice.size != 0)
        return channel->io->pipe_ways->write(channel, NULL, 0, slice);
    if (channel->special != NULL || slice.size <= SLICE_COPIED)
        return domi_channel_append_copy(channel, domus_slice_data(slice), slice.size);
    int error = domus_slice_keep(slice, &kept);
    if (error != 0)
        return error;
    if (domi_page_is_slice_better_copied(kept)) {
        error = domi_channel_append_copy(channel, domus_slice_data(kept), kept.size);
        domus_slice_free(kept);
        return error;
    }
    domus_buffer *buffer = domi_buffer_new_from_slice(channel->io, kept);
    if (buffer == NULL) {
        domus_slice_free(kept);
        return -ENOMEM;
    }
    return domi_channel_write(channel, buffer);
}

int domus_channel_write_slice(domus_stack *stack, domus_channel *channel, domus_slice slice)
{
    int error =
        may_actor_act_on_channel(stack, channel) ? queue_slice_to_channel(channel, slice) : -EPERM;

    domus_slice_free(slice);
    return error;
}

int domus_channel_flush(domus_stack *stack, domus_channel *channel, domus_resumed *then)
{
    return domus_channel_flush_to(stack, channel, 0, then);
}

int domus_channel_flush_to(domus_stack *stack, domus_channel *channel, uint64_t left_bytes,
                           domus_resumed *then)
{
    domi_promise *promise;

    if (!may_actor_act_on_channel(stack, channel))
        return -EPERM;
    int error = domi_stack_add_promise(stack, DOMI_PROMISE_FLUSH, &promise);
    if (error != 0)
        return error;
    domi_promise_take_out_of_ask_count(promise);
    domi_stack_set_wait(stack->pooled, DOMI_WAIT_ONE, promise, then);
    domi_flush_begin_wait(channel, promise, left_bytes);
    return DOMUS_PARKED;
}

int domus_channel_finish(domus_stack *stack, domus_channel *channel)
{
    return may_actor_act_on_channel(stack, channel) ? domi_channel_finish(channel) : -EPERM;
}

/* Make settings for one channel that replace the settings of its listener, whose name they keep. */
static int make_settings_for_channel(const domus_channel *channel,
                                     const domus_channel_options *options,
                                     domi_channel_settings **ret_settings)
{
    const domi_channel_settings *before = channel->settings;
    domus_channel_options own;

    if (domi_channel_is_of_datagrams(channel)) {
        own = domi_options_for_datagrams(options);
        options = &own;
    } else if (channel->is_outbound) {
        own = domi_options_for_connected_peer(options);
        options = &own;
    }
    int result = domi_settings_make_for_listener(channel->io->config, options,
                                                 before->listener_name, ret_settings);
    if (result == 0) {
        (*ret_settings)->listener = before->listener;
        (*ret_settings)->front = before->front;
        (*ret_settings)->row = before->row;
    }
    return result;
}

int domus_channel_set_options(domus_stack *stack, domus_channel *channel,
                              const domus_channel_options *options)
{
    domi_channel_settings *settings;

    if (!may_actor_act_on_channel(stack, channel))
        return -EPERM;
    if (channel->state != DOMI_CHANNEL_OPEN)
        return -EPIPE;
    int result = make_settings_for_channel(channel, options, &settings);
    if (result != 0)
        return result;
    domi_settings_remove_user(channel->settings);
    channel->settings = settings;
    domi_channel_apply_settings(channel);
    return 0;
}

int domus_channel_message_done(domus_stack *stack, domus_channel *channel)
{
    if (!may_actor_act_on_channel(stack, channel))
        return -EPERM;
    channel->answered_bytes = channel->received_bytes;
    return 0;
}

int domus_channel_close(domus_stack *stack, domus_channel *channel)
{
    return may_actor_act_on_channel(stack, channel) ? domi_channel_close(channel) : -EPERM;
}

int domus_channel_reset(domus_stack *stack, domus_channel *channel, int error)
{
    if (!may_actor_act_on_channel(stack, channel))
        return -EPERM;
    domi_channel_end_at_once(channel, error < 0 ? error : -ECONNABORTED, true);
    return 0;
}

/* Stop handing received bytes to the channel's actor, or begin again. */
static int set_input_halted(domus_stack *stack, domus_channel *channel, bool halted)
{
    if (!may_actor_act_on_channel(stack, channel))
        return -EPERM;
    if (channel->state != DOMI_CHANNEL_OPEN)
        return -EPIPE;
    channel->halted = halted;
    domi_channel_decide_whether_to_receive(channel);
    domi_channel_take_due_steps(channel);
    return 0;
}

int domus_channel_set_relay(domus_stack *stack, domus_channel *channel, bool relays)
{
    if (!may_actor_act_on_channel(stack, channel))
        return -EPERM;
    channel->relays = relays;
    return 0;
}

int domus_channel_pause(domus_stack *stack, domus_channel *channel)
{
    return set_input_halted(stack, channel, true);
}

int domus_channel_resume(domus_stack *stack, domus_channel *channel)
{
    return set_input_halted(stack, channel, false);
}

/* --- what tells ------------------------------------------------------------------------------- */

domus_channel *domus_channel_running(const domus_stack *stack)
{
    const domi_house *house = domi_stack_get_house(stack);

    return domi_house_is_channel(house) ? house->channels.owned : NULL;
}

domus_address domus_channel_address(const domus_channel *channel)
{
    return domi_house_get_address(channel->house);
}

/* Returns the descriptor of the connection on which the bytes of the channel travel, also for an
 * inner channel; -1: it is gone. */
static int get_descriptor_of_connection(const domus_channel *channel)
{
    if (!domi_channel_is_inner(channel))
        return channel->fd;
    return channel->special->outer != NULL ? channel->special->outer->fd : -1;
}

int domus_channel_peer(const domus_channel *channel, domus_endpoint *ret_peer)
{
    if (domi_channel_is_inner(channel) && channel->special->outer != NULL)
        channel = channel->special->outer;
    if (channel->client == NULL)
        return domus_channel_direct_peer(channel, ret_peer);
    *ret_peer = *channel->client;
    return 0;
}

int domus_channel_direct_peer(const domus_channel *channel, domus_endpoint *ret_peer)
{
    return domi_endpoint_of_socket(channel->io, get_descriptor_of_connection(channel), true,
                                   ret_peer);
}

int domus_channel_local(const domus_channel *channel, domus_endpoint *ret_local)
{
    return domi_endpoint_of_socket(channel->io, get_descriptor_of_connection(channel), false,
                                   ret_local);
}

int domus_channel_listener(const domus_channel *channel, domus_address *ret_listener,
                           const char **ret_name)
{
    const domi_channel_settings *settings = channel->settings;

    if (settings->listener.house == NULL)
        return -ENOENT;
    if (ret_listener != NULL)
        *ret_listener = settings->listener;
    if (ret_name != NULL)
        *ret_name = settings->listener_name;
    return 0;
}

uint32_t domus_channel_thread(const domus_channel *channel)
{
    return channel->io->manager->index;
}

void domus_channel_set_data(domus_channel *channel, void *data)
{
    channel->data = data;
}

void *domus_channel_data(const domus_channel *channel)
{
    return channel->data;
}

uint64_t domus_channel_queued(const domus_channel *channel)
{
    return channel->queued_bytes + channel->unsent_bytes;
}

void domus_channel_counts(const domus_channel *channel, domus_channel_counters *ret_counters)
{
    *ret_counters = (domus_channel_counters){
        .received_bytes = channel->received_bytes,
        .sent_bytes = channel->sent_bytes,
        .queued_bytes = channel->queued_bytes,
        .opened_ns = channel->opened_ns,
        .active_ns = channel->active_ns,
    };
}
