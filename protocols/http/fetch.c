/* The actor of an HTTP client: each request is a conversation that asks pools of connections until
 * the answer is no redirect (domus/http_client.h). */
#include "protocols/http/client_parts.h"

#include <domus/await.h>

#include <errno.h>

#define SECOND         UINT64_C(1000000000)
#define HOUR_NS        (3600 * SECOND)
#define REDIRECTS_MOST 20u
/* Bytes of a redirect's body that are read and thrown away, at most. */
#define SKIPPED_BODY_MAX 65536u
#define ORIGINS_DEFAULT  16u
#define CONNECTIONS_MOST 64u

/* A conversation for one request of a user, and for the redirects that answer it. */
typedef struct fetch {
    domi_http_hop hop;
    domus_slice body;      /* the body of the user's request, which the conversation owns */
    domus_address pool;    /* the pool of connections that was asked last */
    uint64_t until_ns;     /* time at which the user's request fails */
    uint32_t redirects;    /* number of redirects that this request has followed */
    uint32_t skipped;      /* bytes of the current redirect's body that were thrown away */
    domus_body redirected; /* the body of the current redirect; with number 0: it has none */
    bool close;            /* the connection to the server is closed after the answer */
    bool expects;          /* the body of the request waits for 100 Continue from the server */
} fetch;

static void free_request_of_fetch(fetch *frame)
{
    domi_http_free_request_of_next_hop(&frame->hop);
    domus_slice_free(frame->body);
    frame->body = (domus_slice){NULL, 0, 0};
}

/* Take over the request's texts and body from the ask. Returns 0, or a negative errno if the
 * request cannot be sent. */
static int begin_fetch_of_request(domus_stack *stack, const domi_http_origins *origins,
                                  fetch *frame, const domus_http_request *request)
{
    domus_http_url url;

    /* in the first turn of the conversation the ask is always there */
    if (request == NULL || request->upgrade)
        return -EOPNOTSUPP;
    if (request->stream.number != 0 || request->method >= DOMUS_HTTP_METHODS)
        return -EINVAL;
    const char *target = domus_slice_data(request->target);
    uint64_t deadline_ns = domus_deadline_ns(stack);
    int error = domus_http_url_parse(target, request->target.size, &url);
    if (error == 0)
        error = domus_take(stack);
    if (error != 0)
        return error;
    frame->hop = (domi_http_hop){.target = request->target,
                                 .fields = request->fields,
                                 .method = request->method,
                                 .has_body = request->body.size != 0};
    frame->hop.target.size = (uint32_t)(url.target + url.target_size - target);
    frame->body = request->body;
    frame->close = request->close;
    frame->expects = request->expects;
    frame->until_ns =
        deadline_ns != 0 ? deadline_ns : domus_now_ns(stack) + origins->options.timeout_ns;
    return 0;
}

/* Make the request to the current URL; it shares the slices that a redirect may need again. Returns
 * 0; -ENOMEM. */
static int make_request_to_current_url(const fetch *frame, domus_http_request *ret_request)
{
    domus_http_request request = {
        .method = frame->hop.method, .close = frame->close, .expects = frame->expects};
    int error = domus_slice_keep(frame->hop.target, &request.target);

    if (error == 0)
        error = domus_slice_keep(frame->hop.fields, &request.fields);
    if (error == 0 && frame->hop.has_body)
        error = domus_slice_keep(frame->body, &request.body);
    if (error != 0) {
        domus_http_request_type.release(&request);
        return error;
    }
    *ret_request = request;
    return 0;
}

/* Ask the pool of connections to the current URL's origin. Returns as domus_ask(). */
static int ask_pool_of_current_origin(domus_stack *stack, domi_http_origins *origins, fetch *frame,
                                      domus_resumed *then)
{
    const domus_type *type = domus_http_is_repeatable(frame->hop.method)
                                 ? &domus_http_repeatable_type
                                 : &domus_http_request_type;
    uint64_t now_ns = domus_now_ns(stack);
    domus_http_request request;
    domus_http_url url;

    if (now_ns >= frame->until_ns)
        return -ETIMEDOUT;
    int error =
        domus_http_url_parse(domus_slice_data(frame->hop.target), frame->hop.target.size, &url);
    if (error == 0)
        error = domi_http_find_pool_of_origin(stack, origins, &url, &frame->pool);
    if (error == 0)
        error = make_request_to_current_url(frame, &request);
    if (error != 0)
        return error;
    int result =
        domus_ask_within(stack, frame->pool, type, &request, frame->until_ns - now_ns, then);
    if (result < 0)
        type->release(&request);
    else
        domi_http_count_begun_request_of_pool(origins, frame->pool);
    return result;
}

/* Send the request to the current URL; if that fails, free what the conversation owns. */
static int ask_current_url_or_free_fetch(domus_stack *stack, void *self, fetch *frame,
                                         domus_resumed *then)
{
    int result = ask_pool_of_current_origin(stack, self, frame, then);

    if (result < 0)
        free_request_of_fetch(frame);
    return result;
}

/* Continue to read the body of a redirect, to throw it away; if that fails, free what the
 * conversation owns. */
static int read_on_body_of_redirect_or_free(domus_stack *stack, fetch *frame, domus_resumed *then)
{
    int result = domus_body_read(stack, frame->redirected, then);

    if (result < 0)
        free_request_of_fetch(frame);
    return result;
}

/* Reply to the user with the response of the server. */
static int reply_with_response_of_server(domus_stack *stack, fetch *frame,
                                         const domus_http_response *response)
{
    domus_http_response own = *response;

    free_request_of_fetch(frame);
    int error = domus_take(stack);
    if (error != 0)
        return error;
    error = domus_reply(stack, &domus_http_response_type, &own);
    if (error != 0)
        domus_http_response_type.release(&own);
    return error;
}

/* Returns the flags for the changes of scheme that the options allow to redirects. */
static uint32_t schemes_allowed_to_redirects(const domus_http_client_options *options)
{
    return (options->secure != NULL ? DOMI_HTTP_TO_HTTPS : 0) |
           (options->redirects_to_http ? DOMI_HTTP_FROM_HTTPS : 0);
}

/* Returns whether the server has refused the expectation (417) before it got the body: then the
 * request is sent once more without Expect (RFC 9110 10.1.1). */
static bool has_server_refused_expectation(const fetch *frame, const domus_http_response *response)
{
    return response->status == 417 && frame->expects && frame->hop.has_body;
}

/* Begin to read the body of a response that the user does not get, before the next URL is asked. */
static void begin_to_read_body_of_redirect(fetch *frame, const domus_http_response *response)
{
    frame->redirected = response->stream;
    frame->skipped = 0;
}

/* Handle a response: follow a redirect, or send the request again without Expect, and then
 * `ret_goes_on` is set; or pass the response on to the user. Returns 0, or a negative errno. */
static int follow_redirect_or_reply(domus_stack *stack, const domi_http_origins *origins,
                                    fetch *frame, const domus_http_response *response,
                                    bool *ret_goes_on)
{
    uint32_t most = origins->options.redirects_max;
    int error = -EINVAL;

    if (has_server_refused_expectation(frame, response)) {
        frame->expects = false;
        begin_to_read_body_of_redirect(frame, response);
        *ret_goes_on = true;
        return 0;
    }
    if (most != DOMUS_HTTP_NO_REDIRECTS && domi_http_is_answer_redirect(response))
        error = frame->redirects < most
                    ? domi_http_follow_redirect(&frame->hop, response,
                                                schemes_allowed_to_redirects(&origins->options))
                    : -ELOOP;
    if (error == -EINVAL)
        return reply_with_response_of_server(stack, frame, response);
    begin_to_read_body_of_redirect(frame, response);
    if (error != 0 && frame->redirected.number != 0)
        (void)domus_stop(stack, frame->redirected.channel);
    frame->redirects++;
    *ret_goes_on = error == 0;
    return error;
}

/* Count a piece of a redirect's body, which is thrown away. If the body is too long, or lasts
 * longer than the request may, the connection is closed. */
static void count_redirect_piece_or_close_channel(domus_stack *stack, fetch *frame,
                                                  const domus_answer *answer)
{
    const domus_piece *piece = answer->payload;
    bool is_last = answer->error != 0 || answer->type != &domus_piece_type || piece->last;

    if (!is_last)
        frame->skipped += piece->bytes.size;
    bool is_enough = frame->skipped > SKIPPED_BODY_MAX || domus_now_ns(stack) >= frame->until_ns;
    if (!is_last && is_enough)
        (void)domus_stop(stack, frame->redirected.channel);
    if (is_last || is_enough)
        frame->redirected.number = 0;
}

DOMUS_SEQUENCE(fetch_url_and_follow_redirects, fetch)
{
    domi_http_origins *origins = self;

    DOMUS_BEGIN;
    {
        int error = begin_fetch_of_request(stack, origins, frame, message);
        if (error != 0)
            return error;
    }
    for (;;) {
        DOMUS_AWAIT(ask_current_url_or_free_fetch(stack, self, frame, then));
        domi_http_count_ended_request_of_pool(origins, frame->pool);
        {
            bool goes_on = false;
            int error = answer->error != 0 ? answer->error
                                           : follow_redirect_or_reply(stack, origins, frame,
                                                                      answer->payload, &goes_on);
            if (!goes_on) {
                free_request_of_fetch(frame);
                return error;
            }
        }
        while (frame->redirected.number != 0) {
            DOMUS_AWAIT(read_on_body_of_redirect_or_free(stack, frame, then));
            count_redirect_piece_or_close_channel(stack, frame, answer);
        }
    }
    DOMUS_END;
}

static int free_origin_of_ended_pool(domus_stack *stack, void *self, const void *payload)
{
    (void)stack;
    domi_http_free_origin_of_ended_pool(self, payload);
    return 0;
}

static const domus_on rows[] = {
    DOMUS_ON(&domus_http_request_type, fetch_url_and_follow_redirects),
    {&domus_down_type, free_origin_of_ended_pool, 0},
    {NULL, NULL, 0},
};

static const domus_behaviour behaviour = {.name = "http client",
                                          .kind = DOMUS_CHANNELS,
                                          .state_size = sizeof(domi_http_origins),
                                          .on = rows};

/* --- opening a client ------------------------------------------------------------------------- */

static uint32_t option_or_default(uint32_t given, uint32_t otherwise)
{
    return given != 0 ? given : otherwise;
}

/* Replace zeros in the client's options by the defaults. */
static void fill_in_defaults_of_client(domus_http_client_options *options)
{
    if (options->connection == NULL)
        options->connection = &domus_http_connection;
    options->origins_max = option_or_default(options->origins_max, ORIGINS_DEFAULT);
    options->connections_max = option_or_default(options->connections_max, 8);
    options->queue_max = option_or_default(options->queue_max, 128);
    options->redirects_max = option_or_default(options->redirects_max, 5);
    options->tries_max = option_or_default(options->tries_max, 2);
    if (options->timeout_ns == 0)
        options->timeout_ns = 60 * SECOND;
    if (options->idle_timeout_ns == 0)
        options->idle_timeout_ns = 15 * SECOND;
    if (options->backoff_ns == 0)
        options->backoff_ns = SECOND;
}

/* Check the options of up to `most` stages of a pipeline. Returns 0; -EINVAL; or what `check` of a
 * stage has returned. */
static int check_stages_of_pipeline(const domus_pipeline_stage *stages, uint32_t most)
{
    int error = 0;

    for (uint32_t i = 0; error == 0 && stages[i].stage != NULL; i++) {
        if (i == most)
            return -EINVAL;
        error = stages[i].stage->check != NULL ? stages[i].stage->check(stages[i].options) : 0;
    }
    return error;
}

/* Check the options of a client, and those of its stages. Returns 0; -EINVAL; or what `check` of a
 * stage has returned. */
static int check_options_of_client(const domus_http_client_options *options)
{
    const domus_behaviour *connection = options->connection;
    bool follows = options->redirects_max != DOMUS_HTTP_NO_REDIRECTS;

    if (connection->kind != DOMUS_CHANNELS || connection->pipeline == NULL ||
        connection->shares_state || options->origins_max > DOMUS_HTTP_ORIGINS_MAX ||
        options->connections_max > CONNECTIONS_MOST ||
        (follows && options->redirects_max > REDIRECTS_MOST) || options->tries_max > UINT8_MAX ||
        /* without a stage for TLS, requests to https would not be encrypted */
        (options->secure != NULL && options->secure->stage == NULL) ||
        options->backoff_ns < SECOND / 1000 || options->backoff_ns > HOUR_NS)
        return -EINVAL;
    int error = check_stages_of_pipeline(connection->pipeline->stages, DOMUS_STAGES_MAX);
    if (error == 0 && options->secure != NULL)
        error = check_stages_of_pipeline(options->secure, DOMUS_FRONT_MAX);
    return error;
}

static int set_up_origins_by_client_options(const domus_http_client_options *options,
                                            domi_http_origins *ret_origins)
{
    *ret_origins = (domi_http_origins){.requests = 0};
    if (options != NULL)
        ret_origins->options = *options;
    if (ret_origins->options.channel != NULL)
        ret_origins->channel = *ret_origins->options.channel;
    ret_origins->options.channel = NULL;
    fill_in_defaults_of_client(&ret_origins->options);
    if (ret_origins->channel.idle_timeout_ns == 0)
        ret_origins->channel.idle_timeout_ns = ret_origins->options.idle_timeout_ns;
    return check_options_of_client(&ret_origins->options);
}

int domus_http_client_open(domus_stack *stack, const domus_http_client_options *options,
                           domus_address *ret_address)
{
    domi_http_origins origins;
    int error = set_up_origins_by_client_options(options, &origins);

    if (error != 0)
        return error;
    if (origins.options.per_thread)
        return domus_spawn_many(stack, &behaviour, &origins, DOMUS_PER_THREAD, NULL, NULL,
                                ret_address);
    return domus_spawn(stack, &behaviour, &origins, ret_address);
}

int domus_http_client_open_outside(domus_system *system, const domus_http_client_options *options,
                                   domus_address *ret_address)
{
    domi_http_origins origins;
    int error = set_up_origins_by_client_options(options, &origins);

    if (error != 0)
        return error;
    if (origins.options.per_thread)
        return domus_outside_spawn_many(system, &behaviour, &origins, DOMUS_PER_THREAD, NULL, NULL,
                                        ret_address);
    return domus_outside_spawn(system, &behaviour, &origins, ret_address);
}
