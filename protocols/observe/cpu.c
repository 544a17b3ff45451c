/* /profile?cpu= of the observation port: for which actors, and in which functions, the threads
 * spend their CPU time.
 *
 * A helper thread takes the profile, one at a time. It ends early when its viewer goes away or the
 * program begins to stop. */
#include "protocols/observe/viewer.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/recording.h"
#include "protocols/observe/texts.h"

#include <domus/cpu_profile.h>
#include <domus/http_query.h>
#include <domus/observe.h>

#include <errno.h>

#define SECOND_NS     UINT64_C(1000000000)
#define FREQUENCY     99u
#define FREQUENCY_MAX 1000u

static const char *const formats[] = {"folded", "svg", NULL};

bool domi_observe_does_query_ask_for_cpu(domus_slice query)
{
    char unused;

    return domus_http_query_value(query, "cpu", &unused, 0) != -ENOENT;
}

/* --- on a helper thread ----------------------------------------------------------------------- */

static bool must_cpu_profile_stop_early(void *cpu)
{
    return atomic_load_explicit(&domi_observed.is_ending, memory_order_relaxed) ||
           atomic_load_explicit(((const domi_viewer_cpu *)cpu)->is_gone, memory_order_relaxed);
}

/* Append a piece of the CPU profile to the answer. The type of this function is
 * domus_cpu_profile_write. */
static int append_cpu_profile_text(void *out, const char *text, size_t length)
{
    return domus_append(out, text, length);
}

static int make_cpu_profile(void *cpu_)
{
    domi_viewer_cpu *cpu = cpu_;
    const domus_cpu_profile_options options = {.duration_ns = cpu->seconds * SECOND_NS,
                                               .frequency = cpu->frequency,
                                               .is_over = must_cpu_profile_stop_early,
                                               .context = cpu};
    domus_appender out = {.size_max = DOMUS_OBSERVE_CPU_BYTES};
    domus_cpu_profile *profile;
    int error = domus_cpu_profile_take(domi_observed.observed, &options, &profile);

    if (error != 0)
        return error;
    error = cpu->is_svg ? domus_cpu_profile_write_svg(profile, append_cpu_profile_text, &out)
                        : domus_cpu_profile_write_folded(profile, append_cpu_profile_text, &out);
    domus_cpu_profile_free(profile);
    if (error != 0) {
        domus_append_drop(&out);
        return error;
    }
    return domus_append_end(&out, &cpu->text);
}

/* --- on the port's thread --------------------------------------------------------------------- */

static int answer_with_cpu_profile(domus_stack *stack, void *self, const domus_answer *made)
{
    domi_viewer_cpu *cpu = &((domi_viewer *)self)->cpu;
    domus_slice text = cpu->text;

    domi_observed.is_profiled = false;
    cpu->text = (domus_slice){0};
    switch (made->error) {
    case 0:
        return domi_observe_answer_with_bytes(
            stack, cpu->is_svg ? "image/svg+xml" : DOMI_OBSERVE_PLAIN, text);
    case -EBUSY:
        return domi_observe_answer_with_line(stack, 409,
                                             "the program takes a CPU profile itself\n");
    case -ENOENT:
    case -EACCES:
        return domi_observe_answer_with_line(stack, 501,
                                             "this program has another use for SIGPROF\n");
    default:
        return domi_recording_answer_503_for_error(stack, made->error);
    }
}

static int read_query_for_cpu_profile(domus_slice query, domi_viewer_cpu *cpu)
{
    int format = domi_query_find_word(query, "format", formats);

    *cpu = (domi_viewer_cpu){.frequency = FREQUENCY, .is_svg = format == 1};
    return format >= 0 &&
                   domi_query_read_number(query, "cpu", "s", DOMUS_OBSERVE_SECONDS_MAX,
                                          &cpu->seconds) == 0 &&
                   domi_query_read_number(query, "hz", NULL, FREQUENCY_MAX, &cpu->frequency) == 0 &&
                   cpu->seconds > 0 && cpu->frequency > 0
               ? 0
               : -EINVAL;
}

int domi_observe_serve_cpu_profile(domus_stack *stack, void *self, const void *payload)
{
    domi_viewer *viewer = self;
    domi_viewer_cpu wanted;

    if (!domi_observe_may_request_change(payload))
        return domi_observe_answer_with_line(
            stack, 403, "a page of another site may not profile the program\n");
    if (domi_observed.is_profiled)
        return domi_observe_answer_with_line(stack, 409,
                                             "a CPU profile is under way for another viewer\n");
    if (read_query_for_cpu_profile(domus_http_query(payload), &wanted) != 0)
        return domi_observe_answer_with_line(
            stack, 400, "cpu is 1s..60s, hz is 1..1000, format is folded or svg\n");
    if (domi_recording_have_viewers_unread_much())
        return domi_observe_answer_with_line(stack, 503,
                                             "viewers have not read their answers yet\n");
    domi_observed.is_profiled = true;
    wanted.is_gone = &viewer->is_gone;
    viewer->cpu = wanted;
    return domus_blocking(stack, make_cpu_profile, &viewer->cpu, answer_with_cpu_profile);
}
