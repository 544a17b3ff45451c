/* The site: what stands around the handlers, and which one a request gets. Both tables are read
 * from top to bottom. */
#include "api.h"

#include <domus/http_access.h>
#include <domus/http_limit.h>
#include <domus/http_problem.h>

/* Only people who are logged in may do this. */
static const domus_http_step for_people[] = {{&api_wants_person, NULL}, {NULL, NULL}};

static const domus_http_row rows[] = {
    {{DOMUS_HTTP_ON(GET), "/issues", 0}, api_list_issues, NULL},
    {{DOMUS_HTTP_ON(POST), "/issues", 0}, api_create_issue, for_people},
    {{DOMUS_HTTP_ON(GET), "/issues/{id}", 0}, api_show_issue, NULL},
    {{DOMUS_HTTP_ON(PATCH), "/issues/{id}", 0}, api_change_issue, for_people},
    {{DOMUS_HTTP_ON(GET), "/issues/{id}/files", 0}, api_list_files, NULL},
    {{DOMUS_HTTP_ON(POST), "/issues/{id}/files", 0}, api_add_file, for_people},
    {{DOMUS_HTTP_ON(GET), "/files/{name}", 0}, api_show_file, NULL},
    {{DOMUS_HTTP_ON(POST), "/login", 0}, api_login, NULL},
    {{DOMUS_HTTP_ON(POST), "/logout", 0}, api_logout, NULL},
    {{DOMUS_HTTP_ON(GET), "/events", 0}, api_stream_events, NULL},
    {{DOMUS_HTTP_ON(GET), "/{path*}", 0}, api_show_page, NULL},
    {{0, NULL, 0}, NULL, NULL},
};

domus_http_access api_access;
static domus_http_limit limit;

static const domus_http_chain chain = {
    .parts = (const domus_http_step[]){{&domus_http_request_id, NULL},
                                       {&domus_http_access_log, &api_access},
                                       {&domus_http_problems, NULL},
                                       {&domus_http_limits, &limit},
                                       {&api_session, NULL},
                                       {NULL, NULL}},
    .rows = rows,
};

/* Bodies of JSON come whole, up to 64 KiB; files come in pieces. */
static domus_http_options http = {
    .role = DOMUS_ROLE_SERVER, .streams = true, .whole_max = 65536, .chain = &chain};

static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &http}, {NULL, NULL}}};

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

void api_site_begin(void)
{
    http.body_max = api_settings.upload_max + 65536; /* with the heads of its parts */
    limit.count = api_settings.rate;
    limit.burst = 2 * api_settings.rate;
    api_access.path = api_settings.access_log[0] != '\0' ? api_settings.access_log : "/dev/null";
    api_access.format = DOMUS_HTTP_ACCESS_JSON;
}

void api_site_end(void)
{
    domus_http_access_close(&api_access);
    domus_http_limit_clear(&limit);
}
