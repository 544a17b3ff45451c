/* Checks behaviours. A behaviour is a constant table that a user fills, so a fault in it is a
 * mistake of the program; each fault has words for the log. */
#include "house/family/behaviour.h"

#include "base/pipeline.h"
#include "house/message/house.h"

#include <domus/pipeline.h>

#include <errno.h>

/* True if no function of the behaviour for channels has too large a frame. */
static bool have_channel_functions_valid_frames(const domus_behaviour *behaviour)
{
    return behaviour->on_open.call_frame_size <= DOMUS_FRAME_MAX &&
           behaviour->on_read.call_frame_size <= DOMUS_FRAME_MAX &&
           behaviour->on_end.call_frame_size <= DOMUS_FRAME_MAX &&
           behaviour->on_close.call_frame_size <= DOMUS_FRAME_MAX;
}

/* True if the behaviour has a member that only a channels actor uses. */
static bool has_members_for_channels_only(const domus_behaviour *behaviour)
{
    /* Each spawn runs this function, and mostly all these pointers are NULL, so they are combined
     * for one test. */
    uintptr_t parts = (uintptr_t)behaviour->on_open.handle | (uintptr_t)behaviour->on_read.handle |
                      (uintptr_t)behaviour->on_end.handle | (uintptr_t)behaviour->on_close.handle |
                      (uintptr_t)behaviour->channel | (uintptr_t)behaviour->pipeline |
                      (uintptr_t)behaviour->on_peer;

    return parts != 0 || behaviour->shares_state || behaviour->conversations_go_on;
}

static const char *find_fault_of_rows(const domus_on *on)
{
    for (; on != NULL && on->type != NULL; on++) {
        if (on->handle == NULL)
            return "a row of `on` has no `handle`";
        if (on->frame_size > DOMUS_FRAME_MAX)
            return "a row of `on` has a frame_size above DOMUS_FRAME_MAX";
    }
    return on == NULL || on->frame_size <= DOMUS_FRAME_MAX
               ? NULL
               : "the last row of `on` has a frame_size above DOMUS_FRAME_MAX";
}

static const char *find_fault_of_peer_row(const domus_behaviour *behaviour)
{
    const domus_on_peer *on = behaviour->on_peer;

    if (behaviour->pipeline == NULL)
        return on == NULL ? NULL : "it has on_peer and no pipeline";
    if (behaviour->on_read.handle != NULL)
        return "it has on_read beside a pipeline, which reads the bytes";
    for (; on != NULL && on->type != NULL; on++) {
        if (on->handle == NULL)
            return "a row of on_peer has no `handle`";
        if (on->peer_frame_size > DOMUS_FRAME_MAX)
            return "a row of on_peer has a peer_frame_size above DOMUS_FRAME_MAX";
    }
    return on == NULL || on->peer_frame_size <= DOMUS_FRAME_MAX
               ? NULL
               : "the last row of on_peer has a peer_frame_size above DOMUS_FRAME_MAX";
}

/* Returns the fault of a behaviour in words, without a look at the stages of its pipeline and at
 * the behaviour of its channels; NULL: there is no fault. */
static const char *find_fault_of_behaviour(const domus_behaviour *behaviour)
{
    if (behaviour == NULL)
        return "there is no behaviour";
    if (behaviour->state_size > DOMI_HOUSE_STATE_MAX)
        return "its state_size is above 1 MiB";
    if (behaviour->mount_frame_size > DOMUS_FRAME_MAX ||
        !have_channel_functions_valid_frames(behaviour))
        return "a function has a frame_size above DOMUS_FRAME_MAX";
    if (behaviour->kind != DOMUS_STATE && behaviour->kind != DOMUS_CHANNELS)
        return "its kind is neither DOMUS_STATE nor DOMUS_CHANNELS";
    if (behaviour->kind == DOMUS_STATE) {
        if (has_members_for_channels_only(behaviour))
            return "its kind is DOMUS_STATE, and it has a member that only channels actors use";
    } else if (behaviour->order != NULL) {
        return "its kind is DOMUS_CHANNELS, and it has an `order`, which only state actors have";
    }
    const char *fault = find_fault_of_rows(behaviour->on);
    return fault != NULL ? fault : find_fault_of_peer_row(behaviour);
}

static int check_behaviour_without_channel(const domus_behaviour *behaviour)
{
    if (find_fault_of_behaviour(behaviour) != NULL)
        return -EINVAL;
    return behaviour->pipeline != NULL ? domi_pipeline_check(behaviour->pipeline) : 0;
}

int domi_behaviour_check(const domus_behaviour *behaviour)
{
    int error = check_behaviour_without_channel(behaviour);

    if (error != 0 || behaviour->channel == NULL)
        return error;
    error = check_behaviour_without_channel(behaviour->channel);
    return error == 0 && behaviour->channel->kind != DOMUS_CHANNELS ? -EINVAL : error;
}

const char *domi_behaviour_find_fault(const domus_behaviour *behaviour)
{
    const char *fault = find_fault_of_behaviour(behaviour);

    if (fault != NULL)
        return fault;
    if (behaviour->pipeline != NULL && domi_pipeline_check(behaviour->pipeline) != 0)
        return "its pipeline is wrong (domus/pipeline.h), or a stage refuses its options";
    if (behaviour->channel == NULL)
        return "nothing is wrong";
    fault = find_fault_of_behaviour(behaviour->channel);
    if (fault != NULL)
        return fault;
    return behaviour->channel->kind != DOMUS_CHANNELS
               ? "the kind of its `channel` is not DOMUS_CHANNELS"
               : "the pipeline of its `channel` is wrong (domus/pipeline.h), or a stage refuses "
                 "its options";
}
