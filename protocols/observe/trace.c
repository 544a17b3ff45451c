/* /trace of the observation port: a trace for ui.perfetto.dev of what the program does for some
 * seconds, or has done last.
 *
 * The conversation of the viewer sleeps while the level is spans, and then a helper thread writes
 * the trace. There is one trace at a time. It ends early when the program begins to stop. If its
 * viewer goes away, the conversation is cancelled. */
#include "protocols/observe/viewer.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/pages.h"
#include "protocols/observe/recording.h"
#include "protocols/observe/texts.h"

#include <domus/observe.h>
#include <domus/trace.h>

#include <errno.h>

#define SECOND_NS UINT64_C(1000000000)
#define LOOK_NS   UINT64_C(10000000) /* ns between two checks whether the time of a trace is over */
#define SHORT_NS  UINT64_C(1000000)  /* ns of a trace below which it is not shortened further */

/* --- on a helper thread ----------------------------------------------------------------------- */

/* Append a piece of the trace to the answer. The type of this function is domus_trace_sink. */
static int append_trace_bytes(void *out, const void *bytes, size_t length)
{
    return domus_append(out, bytes, length);
}

/* Write the records of the observed program that ended at `since_ns` or later, as a trace. Returns
 * 0; -EMSGSIZE when there are too many; a negative errno of domus_trace_write(). */
static int write_trace_of_records_since_time(uint64_t since_ns, domus_slice *ret_bytes)
{
    domus_appender out = {.size_max = DOMUS_OBSERVE_TRACE_BYTES};
    int error = domus_trace_write(domi_observed.observed, since_ns, append_trace_bytes, &out);

    if (error != 0) {
        domus_append_drop(&out);
        return error;
    }
    return domus_append_end(&out, ret_bytes);
}

/* Write the trace since a time. If it is too long, write only its newer half, then the newer half
 * of that, and so on, until it is short enough. */
static int write_newest_trace_that_fits(uint64_t since_ns, domus_slice *ret_bytes)
{
    uint64_t now_ns = domi_observe_clock_ns();
    uint64_t length_ns = now_ns - (since_ns != 0 ? since_ns : domi_observed.opened_ns);
    int error = write_trace_of_records_since_time(since_ns, ret_bytes);

    while (error == -EMSGSIZE && length_ns > SHORT_NS) {
        length_ns /= 2;
        error = write_trace_of_records_since_time(now_ns - length_ns, ret_bytes);
    }
    return error;
}

static int make_trace_on_helper(void *trace_)
{
    domi_viewer_trace *trace = trace_;

    return write_newest_trace_that_fits(trace->since_ns, &trace->bytes);
}

/* --- on the port's thread --------------------------------------------------------------------- */

static void end_trace_and_restore_level(void)
{
    domi_observe_restore_level();
    domi_observed.is_traced = false;
}

static int answer_with_trace(domus_stack *stack, void *self, const domus_answer *made)
{
    domi_viewer_trace *trace = &((domi_viewer *)self)->trace;
    domus_slice bytes = trace->bytes;

    end_trace_and_restore_level();
    trace->bytes = (domus_slice){0};
    if (made->error == 0)
        return domi_observe_answer_with_file(stack, "application/octet-stream", "pftrace", bytes);
    if (made->error == -ENODATA)
        return domi_observe_answer_with_line(
            stack, 409,
            "no thread has recorded spans: ask for ?seconds=2, or set the "
            "level spans\n");
    return domi_recording_answer_503_for_error(stack, made->error);
}

static int make_trace_if_its_time_is_over(domus_stack *stack, void *self, const domus_answer *slept)
{
    domi_viewer_trace *trace = &((domi_viewer *)self)->trace;

    if (slept->error != 0) {
        end_trace_and_restore_level();
        return slept->error;
    }
    if (domi_observe_clock_ns() < trace->end_ns &&
        !atomic_load_explicit(&domi_observed.is_ending, memory_order_relaxed))
        return domus_sleep(stack, LOOK_NS, make_trace_if_its_time_is_over);
    return domus_blocking(stack, make_trace_on_helper, trace, answer_with_trace);
}

int domi_observe_serve_trace(domus_stack *stack, void *self, const void *payload)
{
    domi_viewer *viewer = self;
    uint32_t seconds = 0;

    if (!domi_observe_may_request_change(payload))
        return domi_observe_answer_with_line(stack, 403,
                                             "a page of another site may not trace the program\n");
    if (domi_query_read_number(domus_http_query(payload), "seconds", "s", DOMUS_OBSERVE_SECONDS_MAX,
                               &seconds) != 0)
        return domi_observe_answer_with_line(stack, 400, "seconds is 0..60\n");
    if (domi_observed.is_traced)
        return domi_observe_answer_with_line(stack, 409,
                                             "a trace is under way for another viewer\n");
    if (domi_recording_have_viewers_unread_much())
        return domi_observe_answer_with_line(stack, 503,
                                             "viewers have not read their answers yet\n");
    domi_observed.is_traced = true;
    viewer->trace = (domi_viewer_trace){0};
    if (seconds == 0)
        return domus_blocking(stack, make_trace_on_helper, &viewer->trace, answer_with_trace);
    domi_observe_raise_level_for_trace();
    viewer->trace.since_ns = domi_observe_clock_ns();
    viewer->trace.end_ns = viewer->trace.since_ns + seconds * SECOND_NS;
    return domus_sleep(stack, LOOK_NS, make_trace_if_its_time_is_over);
}
