/* The site of the observation port: its routes, and the channels that take requests.
 *
 * Texts of counters are made at once, on the port's thread. A dump waits for threads that may be
 * stuck, so a helper thread makes it, for one viewer at a time, while the others are answered. A
 * connection has one request under way (channel.requestsMax is 1), so its state has room for one
 * page of a dump. */
#include "protocols/observe/observe.h"

#include <domus/http_query.h>
#include <domus/http_router.h>
#include <domus/observe.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN           "text/plain; charset=utf-8"
#define OPEN_METRICS    "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define CLASSIC_METRICS "text/plain; version=0.0.4; charset=utf-8"
#define SHARE_BYTES     4096u /* of a dump, for each thread and pool at the least */
#define NAME_SIZE       64    /* bytes of the name of a behaviour, with a NUL */

/* A page of a dump, which a helper thread makes. */
typedef struct page {
    domus_dump_filter filter;
    char behaviour[NAME_SIZE];
    char *text; /* on the heap; NULL: none was made */
} page;

/* The state of a connection. */
typedef struct visitor {
    page page;
} visitor;

domi_observation domi_observed;

/* --- answers ---------------------------------------------------------------------------------- */

static int say(domus_stack *stack, uint16_t status, const char *line)
{
    return domus_reply(stack, &domus_http_text_type, &(domus_http_text){status, PLAIN, line});
}

/* Answer with a response, which this consumes. */
static int reply(domus_stack *stack, domus_http_response *response)
{
    int error = domus_reply(stack, &domus_http_response_type, response);

    if (error != 0)
        domus_http_response_type.release(response);
    return error;
}

/* Answer with bytes that no browser takes for another type, or keeps. This consumes the body. */
static int answer(domus_stack *stack, const char *media, domus_slice body)
{
    domus_http_response response = {.status = 200, .media = media, .body = body};
    domus_appender fields = {0};

    (void)domus_http_add(&fields, "X-Content-Type-Options", "nosniff");
    (void)domus_http_add(&fields, "Cache-Control", "no-store");
    int error = domus_append_end(&fields, &response.fields);
    if (error != 0) {
        domus_slice_free(body);
        return error;
    }
    return reply(stack, &response);
}

/* --- routes ----------------------------------------------------------------------------------- */

static int serve_index(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return say(stack, 200,
               "/metrics  counters for Prometheus\n"
               "/profile  counters as JSON\n"
               "/actors   what actors do: ?from=0&count=100&behaviour=NAME\n"
               "/health   200 as long as the process answers\n"
               "/ready    200 while it takes new work, else 503\n");
}

/* Returns whether a viewer asks for OpenMetrics. One that has a weight of 0 for it is not known. */
static bool wants_open_metrics(const domus_http_request *request)
{
    static const char name[] = "application/openmetrics-text";
    domus_slice accepted;

    return domus_http_field(request->fields, "accept", &accepted) &&
           memmem(domus_slice_data(accepted), accepted.size, name, sizeof name - 1) != NULL;
}

static int serve_metrics(domus_stack *stack, void *self, const void *payload)
{
    bool is_open = wants_open_metrics(payload);
    domus_slice text;
    int error = domi_observe_metrics(domi_observed.observed, is_open, &text);

    (void)self;
    return error != 0 ? error : answer(stack, is_open ? OPEN_METRICS : CLASSIC_METRICS, text);
}

static int serve_profile(domus_stack *stack, void *self, const void *payload)
{
    domus_slice text;
    int error = domi_observe_profile(domi_observed.observed, &text);

    (void)self, (void)payload;
    return error != 0 ? error : answer(stack, "application/json", text);
}

static int serve_health(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return say(stack, 200, "ok\n");
}

static int serve_ready(domus_stack *stack, void *self, const void *payload)
{
    bool is_ready = atomic_load_explicit(&domi_observed.is_ready, memory_order_relaxed);

    (void)self, (void)payload;
    return is_ready ? say(stack, 200, "ready\n") : say(stack, 503, "not ready\n");
}

/* --- actors ----------------------------------------------------------------------------------- */

/* Read a number of the query. Returns 0, also without such a parameter; -EINVAL. */
static int read_number(domus_slice query, const char *name, uint32_t most, uint32_t *number)
{
    char text[16];
    char *end;
    int64_t size = domus_http_query_value(query, name, text, sizeof text - 1);

    if (size == -ENOENT)
        return 0;
    if (size <= 0 || text[0] < '0' || text[0] > '9')
        return -EINVAL;
    text[size] = '\0';
    unsigned long value = strtoul(text, &end, 10);
    if (*end != '\0' || value > most)
        return -EINVAL;
    *number = (uint32_t)value;
    return 0;
}

/* Read what a query wants. Returns 0; -EINVAL. */
static int read_filter(domus_slice query, page *wanted)
{
    int64_t size =
        domus_http_query_value(query, "behaviour", wanted->behaviour, sizeof wanted->behaviour - 1);

    wanted->filter = (domus_dump_filter){.count = DOMUS_OBSERVE_ACTORS_COUNT};
    if (size < 0 && size != -ENOENT)
        return -EINVAL;
    wanted->behaviour[size > 0 ? size : 0] = '\0';
    if (size > 0)
        wanted->filter.behaviour = wanted->behaviour;
    if (read_number(query, "from", UINT32_MAX - 1, &wanted->filter.from) != 0 ||
        read_number(query, "count", DOMUS_OBSERVE_ACTORS_MAX, &wanted->filter.count) != 0 ||
        wanted->filter.count == 0)
        return -EINVAL;
    return 0;
}

/* Make a page, on a helper thread. */
static int make_page(void *page_)
{
    page *wanted = page_;
    domus_system *system = domi_observed.observed;
    size_t parts = domus_system_threads(system) + domus_system_config(system)->pool_count;
    size_t size = DOMUS_OBSERVE_ACTORS_BYTES;

    if (size < parts * SHARE_BYTES)
        size = parts * SHARE_BYTES;
    wanted->text = malloc(size);
    return wanted->text != NULL ? domus_dump_some(system, &wanted->filter, wanted->text, size)
                                : -ENOMEM;
}

static void free_page(page *made)
{
    free(made->text);
    made->text = NULL;
}

static int take_page(domus_stack *stack, void *self, const domus_answer *made)
{
    page *done = &((visitor *)self)->page;
    domus_slice text = {0};
    int error = made->error;

    if (error == 0)
        error = domus_slice_copy(done->text, strlen(done->text), &text);
    free_page(done);
    if (error == -ESHUTDOWN)
        return say(stack, 503, "the program stops\n");
    if (error == -EAGAIN)
        return say(stack, 503, "too many viewers wait for actors\n");
    return error != 0 ? error : answer(stack, PLAIN, text);
}

static int serve_actors(domus_stack *stack, void *self, const void *payload)
{
    page *wanted = &((visitor *)self)->page;

    if (read_filter(domus_http_query(payload), wanted) != 0)
        return say(stack, 400,
                   "from and count are numbers, count is 1..1000, and the name of a "
                   "behaviour has at most 63 bytes\n");
    return domus_blocking(stack, make_page, wanted, take_page);
}

/* --- requests --------------------------------------------------------------------------------- */

enum { INDEX, METRICS, PROFILE, ACTORS, HEALTH, READY };

static const domus_http_route routes[] = {
    {DOMUS_HTTP_ON(GET), "/", INDEX},
    {DOMUS_HTTP_ON(GET), "/metrics", METRICS},
    {DOMUS_HTTP_ON(GET), "/profile", PROFILE},
    {DOMUS_HTTP_ON(GET), "/actors", ACTORS},
    {DOMUS_HTTP_ON(GET), "/health", HEALTH},
    {DOMUS_HTTP_ON(GET), "/ready", READY},
    {0, NULL, 0},
};

static domus_handler *const functions[] = {
    [INDEX] = serve_index,   [METRICS] = serve_metrics, [PROFILE] = serve_profile,
    [ACTORS] = serve_actors, [HEALTH] = serve_health,   [READY] = serve_ready,
};

/* Returns whether a request is meant for this port. Browsers name a host always. */
static bool is_own_host(const domus_http_request *request)
{
    domus_slice host = domus_http_host(request);

    return !domi_observed.checks_host || host.size == 0 || domus_http_host_is_loopback(host);
}

static int take_request(domus_stack *stack, void *self, const void *payload)
{
    domus_http_match match = domus_http_find_route(routes, payload);
    domus_http_response refusal;

    if (!is_own_host(payload))
        return say(stack, 421, "this port has another name\n");
    if (match.route != NULL)
        return functions[match.route->id](stack, self, payload);
    int error = domus_http_unrouted(&match, &refusal);
    return error != 0 ? error : reply(stack, &refusal);
}

static void stop_visitor(domus_stack *stack, void *self)
{
    (void)stack;
    free_page(&((visitor *)self)->page);
}

static const domus_http_options http = {
    .target_max = 2048, .head_max = 16384, .fields_max = 64, .body_max = 1};

static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &http}, {NULL, NULL}}};

static const domus_behaviour visitor_behaviour = {
    .name = "viewer",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(visitor),
    .pipeline = &pipeline,
    .on = (const domus_on[]){{NULL, NULL, 0}},
    .on_peer = (const domus_on_peer[]){{.type = &domus_http_request_type, .handle = take_request},
                                       {.type = NULL}},
    .on_stop = stop_visitor,
};

const domus_behaviour domi_observe_site = {
    .name = "observation port", .kind = DOMUS_CHANNELS, .channel = &visitor_behaviour};
