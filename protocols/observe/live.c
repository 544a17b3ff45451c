/* /live of the observation port: a stream of samples to one viewer (live.h), on the port's thread.
 *
 * The stream does not end by itself. It is cut when its viewer goes away, or reads nothing for the
 * time that the port allows, and it ends when the program begins to stop. */
#include "protocols/observe/live.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/sampler.h"
#include "protocols/observe/viewer.h"

#include <domus/await.h>
#include <domus/http_event.h>

#include <errno.h>

/* ms after which the live page connects again when it has lost its stream */
#define RETRY_MS 2000u

/* The number of streams of /live. Only the port's one thread uses it. */
static uint32_t streams;

/* --- places for viewers ----------------------------------------------------------------------- */

/* Give a viewer one of the places for streams of /live. Returns whether one was free. */
static bool take_place_of_viewer_for_live_stream(domi_viewer *viewer)
{
    if (viewer->is_live || streams >= domi_live_max_streams())
        return false;
    streams++;
    viewer->is_live = true;
    return true;
}

void domi_live_free_place_of_viewer(domi_viewer *viewer)
{
    if (viewer->is_live)
        streams--;
    viewer->is_live = false;
}

/* --- a stream --------------------------------------------------------------------------------- */

struct stream {
    domi_live_next seen;
    domus_slice sample;
};

static_assert(sizeof(struct stream) + 2 * sizeof(int64_t) <= DOMI_LIVE_FRAME_MAX,
              "a larger frame for requests");

/* Take the sample of a tick from the sampler's answer. `ret_first` gets the bytes that must be sent
 * before the sample. */
static int take_sample_from_answer_of_sampler(domus_stack *stack, struct stream *stream,
                                              const domus_answer *answer, domus_slice *ret_first)
{
    if (answer->error != 0)
        return answer->error;
    domi_live_tick tick = *(const domi_live_tick *)answer->payload;
    int error = domus_take_answer(stack, answer);
    if (error != 0)
        return error;
    stream->seen.serial = tick.serial;
    stream->sample = tick.sample;
    *ret_first = tick.names;
    return 0;
}

static int write_retry_time_of_stream(domus_slice *ret_bytes)
{
    domus_appender bytes = {0};

    (void)domus_http_add_event(&bytes, &(domus_http_event){.retry_ms = RETRY_MS});
    return domus_append_end(&bytes, ret_bytes);
}

/* Free the place for a stream that a viewer has, even if the viewer's connection goes on, as after
 * HEAD. Returns `error`. */
static int free_place_and_return_error(domi_viewer *viewer, int error)
{
    domi_live_free_place_of_viewer(viewer);
    return error;
}

/* End a viewer's stream after the sampler has answered with an error. */
static int end_stream_after_error(domus_stack *stack, domi_viewer *viewer, int error)
{
    domi_live_free_place_of_viewer(viewer);
    return error == -ESHUTDOWN || error == -ESTALE ? domus_reply_end(stack, NULL, NULL) : error;
}

DOMUS_SEQUENCE(stream_live, struct stream)
{
    domus_slice first = {0};
    int error = 0;

    DOMUS_BEGIN;
    if (!take_place_of_viewer_for_live_stream(self))
        return domi_observe_answer_with_line(stack, 503, "too many viewers of /live\n");
    if (atomic_load_explicit(&domi_observed.is_ending, memory_order_relaxed)) {
        (void)free_place_and_return_error(self, 0);
        return domi_observe_answer_with_line(stack, 503, "the program stops\n");
    }
    DOMUS_AWAIT(domi_observe_begin_body_in_pieces(stack, DOMUS_HTTP_EVENTS, "identity", then));
    if (answer->error != 0 || (error = write_retry_time_of_stream(&first)) != 0)
        return free_place_and_return_error(self, answer->error != 0 ? answer->error : error);
    DOMUS_AWAIT(domus_reply_write(stack, first, then));
    if (answer->error != 0)
        return free_place_and_return_error(self, answer->error);
    for (;;) {
        DOMUS_ASK(domi_observed.sampler, &domi_live_next_type, &frame->seen);
        error = take_sample_from_answer_of_sampler(stack, frame, answer, &first);
        if (error != 0)
            return end_stream_after_error(stack, self, error);
        DOMUS_AWAIT(domus_reply_write(stack, first, then));
        if (answer->error != 0) {
            domus_slice_free(frame->sample);
            return free_place_and_return_error(self, answer->error);
        }
        DOMUS_AWAIT(domus_reply_write(stack, frame->sample, then));
        if (answer->error != 0)
            return free_place_and_return_error(self, answer->error);
    }
    DOMUS_END;
}

static const domus_call serve_live = DOMUS_BY(stream_live);

int domi_observe_serve_live(domus_stack *stack, void *self, const void *payload)
{
    return serve_live.handle(stack, self, payload);
}

/* --- functions for the port ------------------------------------------------------------------- */

int domi_live_start_sampler(domus_system *port)
{
    static const domus_spawn_options options = {.mailbox_max = UINT16_MAX};

    streams = 0;
    atomic_store_explicit(&domi_observed.is_ending, false, memory_order_relaxed);
    return domus_outside_spawn_with(port, &domi_live_sampler, NULL, &options,
                                    &domi_observed.sampler);
}

/* If there is no memory for the message to the sampler, the sampler is stopped instead, and all
 * streams end with it. */
void domi_live_end_all_streams(domus_system *port)
{
    atomic_store_explicit(&domi_observed.is_ending, true, memory_order_relaxed);
    if (domus_outside_notice(port, domi_observed.sampler, &domi_live_end_type, NULL) != 0)
        (void)domus_outside_stop(port, domi_observed.sampler);
}
