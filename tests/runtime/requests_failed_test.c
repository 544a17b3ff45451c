/* A request of HTTP whose handler fails is counted, and is logged with its route, but only once
 * within some time; a failure that the peer has caused is only counted. */
#include "tests/runtime/running.h"

#include <domus/http_chain.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t logged = PTHREAD_MUTEX_INITIALIZER; /* guards `lines` and `lines_count` */
static char lines[16][DOMUS_LOG_TEXT_MAX + 1];
static unsigned lines_count;

static void keep_log_line(void *context, domus_log_level level, uint32_t thread, const char *text)
{
    pthread_mutex_lock(&logged);
    ck_assert_uint_lt(lines_count, 16);
    memcpy(lines[lines_count++], text, strlen(text) + 1);
    pthread_mutex_unlock(&logged);
}

static unsigned count_log_lines_with(const char *text)
{
    unsigned found = 0;

    pthread_mutex_lock(&logged);
    for (unsigned i = 0; i < lines_count; i++)
        found += strstr(lines[i], text) != NULL;
    pthread_mutex_unlock(&logged);
    return found;
}

/* --- the service ------------------------------------------------------------------------------ */

static int fail_with_id_of_route(domus_stack *stack, void *self, const domus_http_request *request,
                                 const domus_http_match *match)
{
    return -(int)match->route->id;
}

/* Handle the result of a read of the request's body: fail if the read has failed. */
static int fail_if_read_of_body_failed(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_http_request *request = domus_asked(stack, &domus_http_request_type);

    if (answer->error != 0)
        return answer->error;
    return domus_body_read(stack, request->stream, fail_if_read_of_body_failed);
}

static int read_body_of_request(domus_stack *stack, void *self, const domus_http_request *request,
                                const domus_http_match *match)
{
    return domus_body_read(stack, request->stream, fail_if_read_of_body_failed);
}

/* Close the channel without an answer, which is no mistake of the handler. */
static int close_own_channel_unanswered(domus_stack *stack, void *self,
                                        const domus_http_request *request,
                                        const domus_http_match *match)
{
    return domus_channel_close(stack, domus_channel_running(stack));
}

static int ignore_message(domus_stack *stack, void *self, const domus_http_request *request,
                          const domus_http_match *match)
{
    return 0;
}

static const domus_http_row rows[] = {
    {{DOMUS_HTTP_ON(POST), "/upload", 0}, read_body_of_request, NULL},
    {{DOMUS_HTTP_ON(GET), "/quit", 0}, close_own_channel_unanswered, NULL},
    {{DOMUS_HTTP_ON(GET), "/silent", 0}, ignore_message, NULL},
    {{DOMUS_HTTP_ON(GET), "/busy", EBUSY}, fail_with_id_of_route, NULL},
    {{DOMUS_HTTP_ON(GET), "/io/{key}", EIO}, fail_with_id_of_route, NULL},
    {{DOMUS_HTTP_ON(GET), "/none", ENOENT}, fail_with_id_of_route, NULL},
    {{DOMUS_HTTP_ON(GET), "/left", ECANCELED}, fail_with_id_of_route, NULL},
    {{0, NULL, 0}, NULL, NULL},
};
static const domus_http_chain chain = {.rows = rows};
static const domus_http_options options = {.chain = &chain, .streams = true};

static int fail_with_eio(domus_stack *stack, void *self, const void *payload)
{
    return -EIO;
}

static const domus_pipeline chained_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &options}, {NULL, NULL}}};
static const domus_pipeline bare_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, NULL}, {NULL, NULL}}};

static const domus_behaviour site = {
    .name = "site",
    .kind = DOMUS_CHANNELS,
    .pipeline = &chained_pipeline,
    .on_peer = (const domus_on_peer[]){{&domus_http_request_type, domus_http_dispatch, 0, 0, NULL},
                                       {NULL, NULL, 0, 0, NULL}},
};

/* Behaviour of a site without a chain, whose requests have no route. */
static const domus_behaviour bare = {
    .name = "bare",
    .kind = DOMUS_CHANNELS,
    .pipeline = &bare_pipeline,
    .on_peer = (const domus_on_peer[]){{&domus_http_request_type, fail_with_eio, 0, 0, NULL},
                                       {NULL, NULL, 0, 0, NULL}},
};

/* Two wrong sites: one answers with a type that its stage does not know, and one has no handler for
 * requests. */
static const domus_type odd_type = {.name = "odd"};

static int reply_of_wrong_type(domus_stack *stack, void *self, const void *payload)
{
    return domus_reply(stack, &odd_type, NULL);
}

static const domus_behaviour odd = {
    .name = "odd",
    .kind = DOMUS_CHANNELS,
    .pipeline = &bare_pipeline,
    .on_peer = (const domus_on_peer[]){{&domus_http_request_type, reply_of_wrong_type, 0, 0, NULL},
                                       {NULL, NULL, 0, 0, NULL}},
};
static const domus_behaviour empty = {
    .name = "empty", .kind = DOMUS_CHANNELS, .pipeline = &bare_pipeline};

static domus_system *start_site_of_routes(const domus_behaviour *behaviour, uint16_t *ret_port)
{
    const domus_hooks hooks = {.log = keep_log_line};
    domus_config config = domt_config_of_threads(1);
    domus_system *system = NULL;

    lines_count = 0;
    ck_assert_int_eq(domus_system_new_with(&config, &hooks, NULL, 0, &system), 0);
    ck_assert_int_eq(domus_system_start(system), 0);
    *ret_port = domt_serve_channels(system, behaviour).port;
    return system;
}

/* Connect, and send a text, and FIN if `finishes` is true. Returns the status of the answer; 0:
 * none came. */
static unsigned status_of_text_sent_to(uint16_t port, const char *said, bool finishes)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[256];
    unsigned status = 0;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(send(fd, said, strlen(said), MSG_NOSIGNAL), (int)strlen(said));
    if (finishes)
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    memset(text, 0, sizeof text);
    ck_assert_int_ge(recv(fd, text, sizeof text - 1, 0), 0);
    (void)sscanf(text, "HTTP/1.1 %u", &status);
    close(fd);
    return status;
}

static unsigned status_of_get(uint16_t port, const char *path)
{
    char text[256];

    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    return status_of_text_sent_to(port, text, false);
}

DOMT_TEST(each_failure_counts_and_those_of_this_side_are_told)
{
    static const struct {
        const char *text; /* the path of a GET, or the bytes of a whole request */
        unsigned status;
        uint64_t failed; /* number of failed requests that were counted up to this row */
        unsigned told;   /* number of lines that were logged up to this row */
    } asked[] = {
        {"/nowhere", 404, 0, 0},        /* no handler was called, so none has failed */
        {"garbage\r\n\r\n", 400, 0, 0}, /* these bytes are no request */
        {"/none", 404, 1, 0},
        {"/left", 503, 1, 0}, /* a cancelled request does not count as failed */
        {"/quit", 0, 1, 0},
        {"POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc", 400, 2, 0},
        {"/io/1", 500, 3, 1},
        {"/io/2", 500, 4, 1},
        {"/busy", 503, 5, 2}, /* logged, because it is another failure than that of /io */
        {"/silent", 500, 6, 3},
    };
    uint16_t port;
    domus_system *system = start_site_of_routes(&site, &port);

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        const char *text = asked[i].text;
        unsigned status =
            text[0] == '/' ? status_of_get(port, text) : status_of_text_sent_to(port, text, true);
        ck_assert_msg(status == asked[i].status, "%s: %u", text, status);
        DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).requests_failed >= asked[i].failed);
        ck_assert_msg(domt_profile_of_thread(system, 0).requests_failed == asked[i].failed &&
                          count_log_lines_with("a request has failed") == asked[i].told,
                      "%s: %u lines", text, count_log_lines_with("a request has failed"));
    }
    ck_assert_uint_eq(
        count_log_lines_with("a request has failed: GET /io/{key} of actors site: EIO (-5)"), 1);
    DOMT_WAIT_FOR(20, count_log_lines_with("no request fails any more (it lasted") == 1);
    ck_assert_uint_eq(count_log_lines_with("was met 4 times"), 1);
    ck_assert_uint_eq(count_log_lines_with("has ended without an answer"), 1);
    domt_end_system(system);
}

DOMT_TEST(without_a_route_the_type_is_told)
{
    uint16_t port;
    domus_system *system = start_site_of_routes(&bare, &port);

    ck_assert_uint_eq(status_of_get(port, "/"), 500);
    DOMT_WAIT_FOR(10, count_log_lines_with("a request has failed") == 1);
    ck_assert_uint_eq(count_log_lines_with(domus_http_request_type.name), 1);
    ck_assert_uint_eq(count_log_lines_with("of actors bare: EIO"), 1);
    domt_end_system(system);
}

DOMT_TEST(an_answer_that_is_not_encoded_and_a_request_without_a_row_are_told_once)
{
    static const struct {
        const domus_behaviour *behaviour;
        const char *line;
    } sites[] = {
        {&odd, "its answer odd could not be encoded by its pipeline (EOPNOTSUPP)"},
        {&empty, "for which its behaviour has no row"},
    };

    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++) {
        uint16_t port;
        domus_system *system = start_site_of_routes(sites[i].behaviour, &port);

        ck_assert_uint_eq(status_of_get(port, "/"), 501);
        ck_assert_uint_eq(status_of_get(port, "/"), 501);
        ck_assert_uint_eq(domt_profile_of_thread(system, 0).requests_failed, 2);
        ck_assert_uint_eq(count_log_lines_with(sites[i].line), 1);
        domt_end_system(system);
    }
}

DOMT_SUITE(60)
