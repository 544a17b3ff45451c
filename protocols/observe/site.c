/* The site of the observation port: its routes, and the channels that serve requests.
 *
 * The port's thread makes the texts of counters at once; helper threads make texts that may take
 * longer. */
#include "protocols/observe/answer.h"
#include "protocols/observe/live.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/pages.h"
#include "protocols/observe/sets.h"
#include "protocols/observe/texts.h"
#include "protocols/observe/viewer.h"
#include "protocols/observe/writers.h"

#include <domus/http_router.h>
#include <domus/observe.h>

#include <string.h>

#define OPEN_METRICS    "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define CLASSIC_METRICS "text/plain; version=0.0.4; charset=utf-8"

/* --- handlers of routes ----------------------------------------------------------------------- */

/* Returns whether a viewer accepts OpenMetrics. A weight of 0 is not looked for, because no known
 * viewer uses it. */
static bool does_viewer_accept_open_metrics(const domus_http_request *request)
{
    static const char name[] = "application/openmetrics-text";
    domus_slice accepted;

    return domus_http_field(request->fields, "accept", &accepted) &&
           memmem(domus_slice_data(accepted), accepted.size, name, sizeof name - 1) != NULL;
}

static int serve_metrics(domus_stack *stack, void *self, const void *payload)
{
    bool is_open = does_viewer_accept_open_metrics(payload);
    domus_slice text;
    int error = domi_observe_write_metrics(domi_observed.observed, is_open, &text);

    (void)self;
    return error != 0 ? error
                      : domi_observe_answer_with_bytes(
                            stack, is_open ? OPEN_METRICS : CLASSIC_METRICS, text);
}

static int serve_profile(domus_stack *stack, void *self, const void *payload)
{
    domus_slice text;
    uint32_t machine = 0;
    int histograms;

    if (domi_observe_does_query_ask_for_cpu(domus_http_query(payload)))
        return domi_observe_serve_cpu_profile(stack, self, payload);
    if (domi_histograms_read_kinds_from_query(domus_http_query(payload), &histograms) != 0)
        return domi_observe_answer_with_line(stack, 400,
                                             "histograms is 1, or a kind such as iteration\n");
    if (domi_query_read_number(domus_http_query(payload), "machine", NULL, 1, &machine) != 0)
        return domi_observe_answer_with_line(stack, 400, "machine is 0 or 1\n");
    int error =
        domi_observe_write_profile_json(domi_observed.observed, histograms, machine != 0, &text);
    return error != 0 ? error : domi_observe_answer_with_bytes(stack, "application/json", text);
}

static int serve_health_of_program(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domi_observe_answer_with_line(stack, 200, "ok\n");
}

static int serve_readiness_of_program(domus_stack *stack, void *self, const void *payload)
{
    bool is_ready = atomic_load_explicit(&domi_observed.is_ready, memory_order_relaxed);

    (void)self, (void)payload;
    return is_ready ? domi_observe_answer_with_line(stack, 200, "ready\n")
                    : domi_observe_answer_with_line(stack, 503, "not ready\n");
}

/* --- the routes ------------------------------------------------------------------------------- */

enum {
    INDEX,
    METRICS,
    PROFILE,
    LEVEL,
    TRACE,
    ACTORS,
    HEALTH,
    READY,
    CONFIG,
    CHANGE,
    LOG,
    LOG_LEVEL,
    STALLS,
    LIVE,
    DOCTOR,
    SET
};

static const domus_http_route routes[] = {
    {DOMUS_HTTP_ON(GET), "/", INDEX},          {DOMUS_HTTP_ON(GET), "/metrics", METRICS},
    {DOMUS_HTTP_ON(GET), "/profile", PROFILE}, {DOMUS_HTTP_ON(POST), "/profile", LEVEL},
    {DOMUS_HTTP_ON(GET), "/trace", TRACE},     {DOMUS_HTTP_ON(GET), "/actors", ACTORS},
    {DOMUS_HTTP_ON(GET), "/health", HEALTH},   {DOMUS_HTTP_ON(GET), "/ready", READY},
    {DOMUS_HTTP_ON(GET), "/config", CONFIG},   {DOMUS_HTTP_ON(GET), "/log", LOG},
    {DOMUS_HTTP_ON(POST), "/log", LOG_LEVEL},  {DOMUS_HTTP_ON(GET), "/stalls", STALLS},
    {DOMUS_HTTP_ON(GET), "/live", LIVE},       {DOMUS_HTTP_ON(PUT), "/config/{key}", CHANGE},
    {DOMUS_HTTP_ON(GET), "/doctor", DOCTOR},   {0, NULL, 0},
};

/* The route for all paths that no other route has; such a path may be the name of a set. */
static const domus_http_route routes_of_sets[] = {{DOMUS_HTTP_ON(GET), "/{set}", SET},
                                                  {0, NULL, 0}};

static int serve_change_of_key(domus_stack *stack, void *self, const void *payload)
{
    domus_http_match match = domus_http_find_route(routes, payload);

    (void)self;
    return domi_observe_serve_change(stack, payload, domus_http_route_value(&match, "key"));
}

static domus_handler *const functions[] = {
    [INDEX] = domi_observe_serve_live_page,
    [METRICS] = serve_metrics,
    [PROFILE] = serve_profile,
    [LEVEL] = domi_observe_serve_level_change,
    [TRACE] = domi_observe_serve_trace,
    [ACTORS] = domi_observe_serve_actors,
    [HEALTH] = serve_health_of_program,
    [READY] = serve_readiness_of_program,
    [CONFIG] = domi_observe_serve_config,
    [CHANGE] = serve_change_of_key,
    [LOG] = domi_observe_serve_log,
    [LOG_LEVEL] = domi_observe_serve_log_level_change,
    [STALLS] = domi_observe_serve_stalls,
    [LIVE] = domi_observe_serve_live,
    [DOCTOR] = domi_observe_serve_doctor,
    [SET] = domi_observe_serve_figure_set,
};

/* Returns whether a request may be served, by the host that it names: with `checks_host` only a
 * loopback host, or none. Browsers always name a host, so a page of another name cannot reach the
 * port by a name that leads to this machine. */
static bool is_request_for_own_host(const domus_http_request *request)
{
    domus_slice host = domus_http_host(request);

    return !domi_observed.checks_host || host.size == 0 || domus_http_host_is_loopback(host);
}

/* Returns whether a route occupies a place or a thread of the program for a while. A page of
 * another site must not begin that, although it would not see the answer. Handlers that change
 * something check this themselves. */
static bool may_only_own_pages_request_route(uint32_t route)
{
    return route == ACTORS || route == LIVE || route == LOG || route == STALLS || route == DOCTOR ||
           route == SET;
}

static int check_request_and_serve_its_route(domus_stack *stack, void *self, const void *payload)
{
    domus_http_match match = domus_http_find_route(routes, payload);
    domus_http_response refusal;

    if (!is_request_for_own_host(payload))
        return domi_observe_answer_with_line(stack, 421, "this port has another name\n");
    if (match.allowed == 0 && domi_is_path_of_figure_set(domi_observed.observed, payload))
        match = domus_http_find_route(routes_of_sets, payload);
    if (match.route != NULL && may_only_own_pages_request_route(match.route->id) &&
        !domi_observe_may_request_change(payload))
        return domi_observe_answer_with_line(stack, 403, "not for a page of another site\n");
    if (match.route != NULL)
        return functions[match.route->id](stack, self, payload);
    int error = domus_http_unrouted(&match, &refusal);
    return error != 0 ? error : domi_observe_reply_or_release_response(stack, &refusal);
}

/* Returns the marks of a request: an answer without an end of its own, or one that comes after a
 * time of recording, ends with its viewer; other viewers get their answers even after they have
 * finished sending. This function must only read the request. */
static uint32_t find_marks_of_request(const void *payload)
{
    domus_http_match match = domus_http_find_route(routes, payload);
    uint32_t id = match.route != NULL ? match.route->id : INDEX;
    bool is_endless = id == LIVE || (id == LOG && domi_observe_wants_to_follow_log(payload));
    bool is_recording =
        id == TRACE || id == DOCTOR ||
        (id == PROFILE && domi_observe_does_query_ask_for_cpu(domus_http_query(payload)));

    return is_endless || is_recording ? DOMUS_ALONE | DOMUS_ENDS_WITH_PEER : 0;
}

static int note_that_viewer_is_gone_at_close(domus_stack *stack, void *self, const void *payload)
{
    (void)stack, (void)payload;
    atomic_store_explicit(&((domi_viewer *)self)->is_gone, true, memory_order_relaxed);
    return 0;
}

static void free_places_and_texts_of_viewer_at_stop(domus_stack *stack, void *self)
{
    domi_viewer *viewer = self;

    (void)stack;
    domi_live_free_place_of_viewer(self);
    domi_free_text_of_actors_page(&viewer->page);
    domus_slice_free(viewer->stalls);
    domi_observe_free_place_in_log(&viewer->follow);
    domi_visit_free_its_place_and_look(&viewer->visit);
    domus_slice_free(viewer->trace.bytes);
    domus_slice_free(viewer->cpu.text);
}

static const domus_http_options http = {
    .target_max = 2048, .head_max = 16384, .fields_max = 64, .body_max = 256};

static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &http}, {NULL, NULL}}};

static const domus_behaviour visitor_behaviour = {
    .name = "viewer",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(domi_viewer),
    .pipeline = &pipeline,
    .on = (const domus_on[]){{NULL, NULL, 0}},
    .on_peer = (const domus_on_peer[]){{.type = &domus_http_request_type,
                                        .handle = check_request_and_serve_its_route,
                                        .marks_of = find_marks_of_request,
                                        .peer_frame_size = DOMI_LIVE_FRAME_MAX},
                                       {.type = NULL}},
    .on_close = {note_that_viewer_is_gone_at_close, 0},
    .on_stop = free_places_and_texts_of_viewer_at_stop,
};

const domus_behaviour domi_observe_site = {
    .name = "observation port", .kind = DOMUS_CHANNELS, .channel = &visitor_behaviour};
