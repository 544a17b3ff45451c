/* The site: what stands around the handlers, and which one a request gets. Both tables are read
 * from top to bottom. */
#include "api.h"

#include <domus/http2.h>
#include <domus/http_access.h>
#include <domus/http_limit.h>
#include <domus/log.h>

struct api_settings api_settings;
domus_sql api_database;

/* Only people who are logged in may do this. */
static const domus_http_step for_people[] = {{&domus_http_wants_user, NULL}, {NULL, NULL}};

static const domus_http_row rows[] = {
    {{DOMUS_HTTP_ON(GET), "/issues", 0}, api_list_issues, NULL},
    {{DOMUS_HTTP_ON(POST), "/issues", 0}, api_create_issue, for_people},
    {{DOMUS_HTTP_ON(GET), "/issues/{id}", 0}, api_show_issue, NULL},
    {{DOMUS_HTTP_ON(PATCH), "/issues/{id}", 0}, api_change_issue, for_people},
    {{DOMUS_HTTP_ON(POST), "/issues/{id}/files", 0}, api_add_file, for_people},
    {{DOMUS_HTTP_ON(GET), "/files/{name}", 0}, api_show_file, NULL},
    {{DOMUS_HTTP_ON(POST), "/login", 0}, api_login, NULL},
    {{DOMUS_HTTP_ON(POST), "/logout", 0}, api_logout, NULL},
    {{DOMUS_HTTP_ON(GET), "/events", 0}, api_stream_events, NULL},
    {{DOMUS_HTTP_ON(GET), "/{path*}", 0}, api_show_page, NULL},
    {{0, NULL, 0}, NULL, NULL},
};

static domus_http_access access_log = {.format = DOMUS_HTTP_ACCESS_JSON};
static domus_http_limit limit;

static const domus_http_chain chain = {
    .parts = (const domus_http_step[]){{&domus_http_request_id, NULL},
                                       {&domus_http_access_log, &access_log},
                                       {&domus_http_problems, NULL},
                                       {&domus_http_limits, &limit},
                                       {&domus_http_session_user, &api_session},
                                       {NULL, NULL}},
    .rows = rows,
};

/* Bodies of JSON come whole, up to 64 KiB; files come in pieces. */
static domus_http_options http = {
    .role = DOMUS_ROLE_SERVER, .streams = true, .whole_max = 65536, .chain = &chain};

static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, NULL}, {&domus_http_stage, &http}, {NULL, NULL}}};

static const domus_behaviour visitor = {
    .name = "visitor",
    .kind = DOMUS_CHANNELS,
    .pipeline = &pipeline,
    .on_peer = (const domus_on_peer[]){{.type = &domus_http_request_type,
                                        .handle = domus_http_dispatch,
                                        .peer_frame_size = API_FRAME_MAX},
                                       {.type = NULL}},
};

const domus_behaviour api_site = {.name = "site", .kind = DOMUS_CHANNELS, .channel = &visitor};

int api_fail(domus_stack *stack, int error, const domus_answer *answer)
{
    const domus_sql_error *failure = domus_sql_error_of(answer);

    if (failure != NULL)
        domus_log_write(stack, DOMUS_LOG_ERROR, "the database says: %s %s", failure->sqlstate,
                        failure->message);
    return error;
}

int api_site_begin(domus_system *system)
{
    http.body_max = api_settings.upload_max + 65536; /* with the heads of its parts */
    limit.count = api_settings.rate;
    limit.burst = 2 * api_settings.rate;
    access_log.path = api_settings.access_log[0] != '\0' ? api_settings.access_log : "/dev/null";
    return domus_outside_http_access_open(system, &access_log);
}

void api_site_end(void)
{
    domus_http_access_close(&access_log);
    domus_http_limit_clear(&limit);
}
