/* /doctor of the observation port: takes a look at the program, sleeps for some seconds, takes
 * another one, and judges the span between them (doctor/rule.h), on the port's thread.
 *
 * Viewers that come at nearly the same time share their looks, so that many of them cost no more
 * than one; and if many are waiting already, a further one begins with their newest look, so that
 * viewers who wait for long keep nobody out. A visit ends early, with the span so far, when the
 * program begins to stop; a look that is too young for a span is first allowed to grow old enough.
 * If its viewer goes away, its conversation is cancelled. */
#include "protocols/observe/pages.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/doctor/report.h"
#include "protocols/observe/looking.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/texts.h"
#include "protocols/observe/viewer.h"

#include <domus/observe.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
/* ns between two checks of a visit whether the program stops */
#define STEP_NS UINT64_C(50000000)
/* ns for which a look counts as current, so that visits share it */
#define SHARED_NS UINT64_C(50000000)
/* If there are many visits, they share a look for as long as one visit may take. */
#define CROWDED_NS (DOMUS_OBSERVE_SECONDS_MAX * SECOND_NS)
/* ns of the shortest visit: a little more than the shortest span (DOMI_SPAN_LEAST) */
#define LEAST_NS UINT64_C(110000000)

/* A look at the program that several visits share. */
struct domi_shared_look {
    uint32_t users;
    domi_look look;
};

/* The number of visits that wait for their end, and the newest look, if a visit still has it. Only
 * the port's one thread uses them. */
static uint32_t visits;
static struct domi_shared_look *newest;

/* --- looks ------------------------------------------------------------------------------------ */

static void free_shared_look_of_last_user(struct domi_shared_look *shared)
{
    if (--shared->users != 0)
        return;
    if (newest == shared)
        newest = NULL;
    domi_look_free_lists(&shared->look);
    free(shared);
}

/* Get the newest look if it is not older than `age_ns`, otherwise take a look. Returns 0;
 * -ENOMEM. */
static int get_newest_look_or_take_one(uint64_t age_ns, struct domi_shared_look **ret_shared)
{
    if (newest == NULL || domi_observe_clock_ns() - newest->look.now_ns > age_ns) {
        struct domi_shared_look *shared = calloc(1, sizeof *shared);
        int error = shared != NULL
                        ? domi_take_look_at_program(domi_observed.observed, &shared->look)
                        : -ENOMEM;
        if (error != 0) {
            free(shared);
            return error;
        }
        newest = shared;
    }
    newest->users++;
    *ret_shared = newest;
    return 0;
}

/* --- reports ---------------------------------------------------------------------------------- */

/* Append a piece of the doctor's report to the answer. The type of this function is
 * domi_report_sink. */
static void append_report_text(void *out, const char *text, size_t size)
{
    (void)domus_append(out, text, size);
}

static int write_report(const domi_span *span, bool is_json, domus_slice *ret_text)
{
    domi_finding *findings = calloc(DOMI_RULES_MAX, sizeof *findings);
    domus_appender out = {0};
    const domi_report report = {append_report_text, &out};

    if (findings == NULL)
        return -ENOMEM;
    uint32_t count = domi_judge_span_by_all_rules(span, findings);
    if (is_json)
        domi_report_findings_as_json(&report, span, findings, count);
    else
        domi_report_findings_as_text(&report, span, findings, count);
    free(findings);
    return domus_append_end(&out, ret_text);
}

static int answer_with_reason_for_no_span(domus_stack *stack, const char *why)
{
    char line[128];

    snprintf(line, sizeof line, "%s\n", why);
    return domi_observe_answer_with_line(stack, 409, line);
}

/* Answer a viewer with the doctor's findings in the span between two looks. */
static int answer_with_findings_between_looks(domus_stack *stack, const domi_look *before,
                                              const domi_look *after, bool is_json)
{
    domus_slice text;
    domi_span span;
    const char *why = domi_span_init(before, after, &span);

    if (why != NULL)
        return answer_with_reason_for_no_span(stack, why);
    int error = write_report(&span, is_json, &text);
    domi_span_fini(&span);
    if (error != 0)
        return error;
    return domi_observe_answer_with_bytes(stack, is_json ? "application/json" : DOMI_OBSERVE_PLAIN,
                                          text);
}

/* --- visits ----------------------------------------------------------------------------------- */

void domi_visit_free_its_place_and_look(domi_visit *visit)
{
    if (visit->before == NULL)
        return;
    visits--;
    free_shared_look_of_last_user(visit->before);
    visit->before = NULL;
}

static int answer_visit_with_findings(domus_stack *stack, domi_visit *visit)
{
    struct domi_shared_look *after;
    int error = get_newest_look_or_take_one(SHARED_NS, &after);

    if (error == 0) {
        error = answer_with_findings_between_looks(stack, &visit->before->look, &after->look,
                                                   visit->is_json);
        free_shared_look_of_last_user(after);
    }
    domi_visit_free_its_place_and_look(visit);
    return error;
}

/* Returns the time at which a visit ends, which is earlier if the program stops meanwhile. */
static uint64_t time_at_which_visit_ends(const domi_visit *visit)
{
    uint64_t least_ns = visit->before->look.now_ns + LEAST_NS;

    if (!atomic_load_explicit(&domi_observed.is_ending, memory_order_relaxed))
        return visit->end_ns;
    return least_ns < visit->end_ns ? least_ns : visit->end_ns;
}

static int take_second_look_when_visit_ends(domus_stack *stack, void *self,
                                            const domus_answer *slept)
{
    domi_visit *visit = &((domi_viewer *)self)->visit;

    if (slept->error != 0) {
        domi_visit_free_its_place_and_look(visit);
        return slept->error;
    }
    uint64_t now_ns = domi_observe_clock_ns(), end_ns = time_at_which_visit_ends(visit);
    if (now_ns < end_ns)
        return domus_sleep(stack, end_ns - now_ns < STEP_NS ? end_ns - now_ns : STEP_NS,
                           take_second_look_when_visit_ends);
    return answer_visit_with_findings(stack, visit);
}

/* Returns 1 if the viewer wants JSON, which it says by ?format= or else by Accept; 0 if it does
 * not; -EINVAL. */
static int does_viewer_want_json(const domus_http_request *request)
{
    static const char *const formats[] = {"", "text", "json", NULL};
    static const char media[] = "application/json";
    int format = domi_query_find_word(domus_http_query(request), "format", formats);
    domus_slice accepted;

    if (format != 0)
        return format < 0 ? format : format == 2;
    return domus_http_field(request->fields, "accept", &accepted) &&
           memmem(domus_slice_data(accepted), accepted.size, media, sizeof media - 1) != NULL;
}

int domi_observe_serve_doctor(domus_stack *stack, void *self, const void *payload)
{
    domi_visit *visit = &((domi_viewer *)self)->visit;
    uint32_t seconds = DOMUS_OBSERVE_DOCTOR_SECONDS;
    int is_json = does_viewer_want_json(payload);

    if (is_json < 0 ||
        domi_query_read_number(domus_http_query(payload), "seconds", "s", DOMUS_OBSERVE_SECONDS_MAX,
                               &seconds) != 0 ||
        seconds == 0)
        return domi_observe_answer_with_line(stack, 400,
                                             "seconds is 1..60, and format is text or json\n");
    struct domi_shared_look *before;
    int error = get_newest_look_or_take_one(
        visits < DOMUS_OBSERVE_DOCTORS_MAX ? SHARED_NS : CROWDED_NS, &before);
    if (error != 0)
        return error;
    visits++;
    *visit = (domi_visit){.before = before,
                          .end_ns = domi_observe_clock_ns() + seconds * SECOND_NS,
                          .is_json = is_json != 0};
    return domus_sleep(stack, STEP_NS, take_second_look_when_visit_ends);
}
