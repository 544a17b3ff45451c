/* Lines about requests of HTTP: the writer of an access log, and requests whose handler fails. */
#include "protocols/http/access.h"
#include "tests/runtime/running.h"

#include <arpa/inet.h>
#include <domus/http_chain.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The writer of an access log (domus/http_access.h) on real threads: each line is written to the
 * file or counted as lost, also while the file is moved away. */

#define EACH 500u /* number of lines that each actor puts into the log */

static const domus_type go_type = {.name = "go"};
static const domus_type open_type = {.name = "open"};

static domus_http_access access_log;
static _Atomic int opened[2];
static _Atomic uint32_t put, refused;

static int open_access_log_twice(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&opened[0], domus_http_access_open(stack, &access_log));
    atomic_store(&opened[1], domus_http_access_open(stack, &access_log));
    return 0;
}

static int put_lines_into_access_log(domus_stack *stack, void *self, const void *payload)
{
    for (uint32_t i = 0; i < EACH; i++)
        domi_http_access_put_line(domi_http_access_get_queue(&access_log), "0123456789\n", 11);
    atomic_fetch_add(&put, EACH);
    return 0;
}

static const domus_behaviour logger = {
    .name = "logger",
    .on = (const domus_on[]){
        {&go_type, put_lines_into_access_log, 0}, {&open_type, open_access_log_twice, 0}, {0}}};

static void start_system(domus_system **ret_system)
{
    atomic_store(&put, 0);
    atomic_store(&refused, 0);
    atomic_store(&opened[0], 1);
    atomic_store(&opened[1], 1);
    *ret_system = domt_start_system_of_threads(2);
    domt_send_notice(*ret_system, domt_spawn(*ret_system, 0, &logger, NULL), &open_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&opened[1]) != 1);
    ck_assert_int_eq(atomic_load(&opened[1]), -EALREADY);
}

/* Let the actors of both threads put their lines into the log, and wait until all have. */
static void put_lines_by_both_threads(domus_system *system)
{
    uint32_t before = atomic_load(&put);

    for (uint32_t i = 0; i < 8; i++)
        domt_send_notice(system, domt_spawn(system, i % 2, &logger, NULL), &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&put) == before + 8 * EACH);
}

/* Returns how many whole lines the file has; 0 if there is no such file. */
static uint64_t count_lines_of_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[64];
    uint64_t count = 0;

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strchr(line, '\n') == NULL)
            break; /* the file was read in the midst of a write */
        ck_assert_str_eq(line, "0123456789\n");
        count++;
    }
    (void)fclose(file);
    return count;
}

DOMT_TEST(access_log_writes_every_line)
{
    char folder[] = "/tmp/domus-access-XXXXXX";
    char path[64], moved[64];
    domus_system *system;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/log", folder);
    (void)snprintf(moved, sizeof moved, "%s/log.1", folder);
    access_log = (domus_http_access){.path = path, .flush_ns = 10000000};
    start_system(&system);
    ck_assert_int_eq(atomic_load(&opened[0]), 0);
    put_lines_by_both_threads(system);
    DOMT_WAIT_FOR(20,
                  count_lines_of_file(path) + domus_http_access_dropped(&access_log) == 8 * EACH);
    ck_assert_int_eq(rename(path, moved), 0);
    put_lines_by_both_threads(system);
    DOMT_WAIT_FOR(20, count_lines_of_file(path) + count_lines_of_file(moved) +
                              domus_http_access_dropped(&access_log) ==
                          16 * EACH);
    put_lines_by_both_threads(system);
    domt_end_system(system);
    uint64_t dropped = domus_http_access_dropped(&access_log);
    domus_http_access_close(&access_log); /* to close the log writes the rest of its lines */
    ck_assert_uint_eq(count_lines_of_file(path) + count_lines_of_file(moved) + dropped, 24 * EACH);
    (void)unlink(path);
    (void)unlink(moved);
    (void)rmdir(folder);
}

static int refuse_lines_in_writer(void *context, const char *lines, size_t size)
{
    ck_assert_str_eq(context, "context");
    atomic_fetch_add(&refused, 1);
    return -EIO;
}

DOMT_TEST(lines_that_cannot_be_written_are_counted)
{
    domus_system *system;

    access_log = (domus_http_access){
        .write = refuse_lines_in_writer, .context = "context", .flush_ns = 10000000};
    start_system(&system);
    put_lines_by_both_threads(system);
    DOMT_WAIT_FOR(20, domus_http_access_dropped(&access_log) == 8 * EACH);
    ck_assert_uint_gt(atomic_load(&refused), 0);
    domt_end_system(system);
    domus_http_access_close(&access_log);
    access_log = (domus_http_access){.path = "/none/at/all", .flush_ns = 10000000};
    start_system(&system);
    put_lines_by_both_threads(system);
    DOMT_WAIT_FOR(20, domus_http_access_dropped(&access_log) == 8 * EACH);
    domt_end_system(system);
    domus_http_access_close(&access_log);
}

DOMT_TEST(a_log_without_a_place_is_refused)
{
    access_log = (domus_http_access){.path = NULL};
    atomic_store(&opened[1], 1);
    domus_system *system = domt_start_system_of_threads(1);
    domt_send_notice(system, domt_spawn(system, 0, &logger, NULL), &open_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&opened[1]) != 1);
    ck_assert_int_eq(atomic_load(&opened[0]), -EINVAL);
    domt_end_system(system);
    domus_http_access_close(&access_log);
}

/* --- requests failed -------------------------------------------------------------------------- */

/* A request of HTTP whose handler fails is counted, and is logged with its route, but only once
 * within some time; a failure that the peer has caused is only counted. */

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
    *ret_port = domt_serve_channel_at_any_port(system, behaviour).port;
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

DOMT_TEST(each_failed_request_counts_and_own_ones_are_logged)
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

DOMT_TEST(failed_request_without_a_route_is_logged_by_its_type)
{
    uint16_t port;
    domus_system *system = start_site_of_routes(&bare, &port);

    ck_assert_uint_eq(status_of_get(port, "/"), 500);
    DOMT_WAIT_FOR(10, count_log_lines_with("a request has failed") == 1);
    ck_assert_uint_eq(count_log_lines_with(domus_http_request_type.name), 1);
    ck_assert_uint_eq(count_log_lines_with("of actors bare: EIO"), 1);
    domt_end_system(system);
}

DOMT_TEST(unencodable_answer_and_unmatched_request_are_logged_once)
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
