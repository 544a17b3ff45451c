/* SIGTERM comes to the examples `web` and `api` under load: each request is read to its end and
 * answered, and the status is 0. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/h2.h"
#include "tests/system/site.h"
#include "tests/system/talks.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* SIGTERM comes to the example `web` under load: it answers each request that it has read, the
 * last answer of a connection has "Connection: close", nothing is cut, and its status is 0.
 * tests/http/drain_test.c checks the same with many seeds. */

#define CLIENTS 24
#define DEPTH   16u /* number of requests that a client sends at once */
#define ROOM    65536u

static domt_site site;
static _Atomic uint64_t answered;

/* A client that sends the same requests again when all of them are answered. */
typedef struct caller {
    pthread_t thread;
    int fd;
    char batch[DEPTH * 128];
    uint32_t depth;  /* number of requests in a batch */
    uint32_t got;    /* number of answers to the last batch that have come */
    char text[ROOM]; /* bytes of an answer that is still incomplete */
    size_t size;
    bool closes;         /* the last answer has "Connection: close" */
    const char *problem; /* text about the error that was found; NULL: none */
} caller;

/* Remove from `text` the whole answers that have come, and count them. */
static void count_and_remove_whole_answers(caller *one)
{
    size_t at = 0;

    for (;;) {
        const char *begin = one->text + at;
        const char *end = memmem(begin, one->size - at, "\r\n\r\n", 4);
        if (end == NULL)
            break;
        size_t head = (size_t)(end - begin) + 4;
        const char *length = memmem(begin, head, "\r\nContent-Length: ", 18);
        size_t whole = head + (length != NULL ? strtoul(length + 18, NULL, 10) : 0);
        if (whole > one->size - at)
            break;
        if (one->closes)
            one->problem = "an answer behind the last one";
        if (memcmp(begin, "HTTP/1.1 200 OK\r\n", 17) != 0)
            one->problem = "a failure";
        one->closes = memmem(begin, head, "\r\nConnection: close\r\n", 21) != NULL;
        one->got++;
        atomic_fetch_add(&answered, 1);
        at += whole;
    }
    memmove(one->text, one->text + at, one->size - at);
    one->size -= at;
}

static void *send_batches_until_end(void *context)
{
    caller *one = context;
    ssize_t part = 1;

    while (part > 0 && one->problem == NULL) {
        /* the service has closed the connection, which the client has not read to its end */
        if (send(one->fd, one->batch, strlen(one->batch), MSG_NOSIGNAL) <= 0)
            break;
        for (one->got = 0; part > 0 && one->got < one->depth && !one->closes;) {
            part = recv(one->fd, one->text + one->size, ROOM - one->size, 0);
            one->size += part > 0 ? (size_t)part : 0;
            count_and_remove_whole_answers(one);
        }
        if (one->closes)
            part = recv(one->fd, one->text + one->size, ROOM - one->size, 0);
    }
    if (part > 0 && one->closes)
        one->problem = "no end behind the last answer";
    if (one->size != 0)
        one->problem = "a part of an answer";
    if (!one->closes && one->got % one->depth != 0)
        one->problem = "the last answer does not say that it is the last";
    return NULL;
}

static void begin_caller_thread(caller *one, int number)
{
    static const char *const requests[] = {
        "GET /json HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /kv/key HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /json HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    };
    const char *request = requests[number % 3];

    one->fd = domt_connect_to_port(site.web);
    one->depth = number % 2 == 0 ? 1 : DEPTH;
    for (uint32_t i = 0; i < one->depth; i++)
        memcpy(one->batch + i * strlen(request), request, strlen(request) + 1);
    ck_assert_int_eq(pthread_create(&one->thread, NULL, send_batches_until_end, one), 0);
}

static void check_stop_under_load(const char *backend, uint32_t after_ms)
{
    caller *callers = calloc(CLIENTS, sizeof *callers);
    uint32_t closed = 0;

    ck_assert_ptr_nonnull(callers);
    domt_site_start_program(&site, (const char *const[]){backend, NULL});
    domt_site_expect_answer(&site, "PUT /kv/key", "value", 204, NULL);
    answered = 0;
    for (int i = 0; i < CLIENTS; i++)
        begin_caller_thread(&callers[i], i);
    while (atomic_load(&answered) < 2000)
        domt_sleep_ms(1);
    domt_sleep_ms(after_ms);
    domt_service_signal(&site.service, SIGTERM);
    for (int i = 0; i < CLIENTS; i++) {
        ck_assert_int_eq(pthread_join(callers[i].thread, NULL), 0);
        ck_assert_msg(callers[i].problem == NULL, "client %d: %s (%u of %u)", i, callers[i].problem,
                      callers[i].got, callers[i].depth);
        closed += callers[i].closes;
        close(callers[i].fd);
    }
    ck_assert_uint_gt(closed, 0);
    ck_assert_int_eq(domt_service_wait(&site.service, 20000), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&site.service, "channels cut"), 0);
    free(callers);
}

DOMT_TEST(every_request_that_was_read_is_answered)
{
    uint32_t rounds = domt_tests_are_long() ? 60 : 2;

    for (uint32_t i = 0; i < rounds; i++) {
        check_stop_under_load("io.backend=uring", i * 3 % 20);
        check_stop_under_load("io.backend=epoll", i * 3 % 20 + 1);
    }
}

/* --- stop bodies ------------------------------------------------------------------------------ */

/* SIGTERM comes to the example `api` while the body of a request is under way: the service waits
 * for the rest of the body, over HTTP/1.1 and in a stream of HTTP/2, answers the request, and ends
 * with status 0. tests/http/drain_test.c checks the same in a test kit. */

#define BODY  "{\"name\":\"ann\"}" /* body of a request to log in, which is answered with 204 */
#define FIRST 5u                   /* bytes of that body that come before the signal */

static domt_service service;
static char uploads[] = "/tmp/domus-stop-XXXXXX";

static void start_api_on_backend(const char *backend)
{
    char set[2][64];

    snprintf(set[0], sizeof set[0], "api.uploads=%s", uploads);
    snprintf(set[1], sizeof set[1], "io.backend=%s", backend);
    domt_service_start(&service,
                       (const char *const[]){DOMT_BIN_DIR "/api", "--config",
                                             DOMT_SOURCE_DIR "/examples/api/api.yaml", "--set",
                                             "listeners.api.address=127.0.0.1:0", "--set",
                                             "observe.listen=127.0.0.1:0", "--set",
                                             "api.database=sqlite::memory:", "--set",
                                             "api.pages=" DOMT_SOURCE_DIR "/examples/api/static",
                                             "--set", set[0], "--set", set[1], NULL});
}

/* Wait until the first part of the body has come to the service, and send the signal. */
static void send_signal_amid_body(void)
{
    domt_sleep_ms(100);
    domt_service_signal(&service, SIGTERM);
    domt_sleep_ms(300);
}

static void expect_service_drained_and_ended(void)
{
    ck_assert_int_eq(domt_service_wait(&service, 20000), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels cut"), 0);
    ck_assert_uint_ne(domt_service_count_in_profile(&service, "answered in drain"), 0);
}

static void check_body_ends_in_drain_by_http_1(const char *backend)
{
    char text[4096];
    size_t size = 0;
    ssize_t part;

    start_api_on_backend(backend);
    int fd = domt_connect_to_port(service.port);
    snprintf(text, sizeof text,
             "POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%.*s",
             strlen(BODY), (int)FIRST, BODY);
    domt_send_all(fd, text, strlen(text));
    send_signal_amid_body();
    domt_send_all(fd, &BODY[FIRST], strlen(BODY) - FIRST);
    while ((part = recv(fd, text + size, sizeof text - 1 - size, 0)) > 0)
        size += (size_t)part;
    text[size] = '\0';
    ck_assert_int_eq(part, 0);
    ck_assert_msg(strncmp(text, "HTTP/1.1 204 ", 13) == 0, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "\r\nConnection: close\r\n"));
    close(fd);
    expect_service_drained_and_ended();
}

/* Read frames until the connection ends. Returns one letter for each important frame, in order: an
 * answer, a reset, and GOAWAY without and with the last stream. */
static const char *letters_of_frames(domt_h2 *h2)
{
    static char letters[16];
    domt_h2_frame frame;
    size_t count = 0;

    while (count < sizeof letters - 1 &&
           domt_h2_read_next_frame(h2, 5000, &frame) == DOMT_H2_FRAME) {
        if (frame.type == DOMT_H2_HEADERS)
            letters[count++] = (frame.flags & DOMT_H2_END_STREAM) != 0 ? 'A' : 'a';
        else if (frame.type == DOMT_H2_RST_STREAM)
            letters[count++] = 'R';
        else if (frame.type == DOMT_H2_GOAWAY)
            letters[count++] = domt_h2_u32_of_bytes(frame.payload) == 1 ? 'G' : 'g';
    }
    letters[count] = '\0';
    return letters;
}

static void check_body_ends_in_drain_by_http_2(const char *backend)
{
    static domt_h2 h2;
    static domt_h2_bytes bytes;
    char fields[256];

    start_api_on_backend(backend);
    ck_assert(domt_h2_open_connection(&h2, service.port));
    snprintf(fields, sizeof fields,
             ":method: POST\n:scheme: http\n:path: /login\n:authority: a\n"
             "content-type: application/json\ncontent-length: %zu\n",
             strlen(BODY));
    domt_h2_add_headers_frame(&bytes, DOMT_H2_END_HEADERS, 1, fields);
    domt_h2_add_frame(&bytes, DOMT_H2_DATA, 0, 1, BODY, FIRST);
    domt_h2_send(&h2, &bytes);
    send_signal_amid_body();
    domt_h2_add_frame(&bytes, DOMT_H2_DATA, DOMT_H2_END_STREAM, 1, &BODY[FIRST],
                      strlen(BODY) - FIRST);
    domt_h2_send(&h2, &bytes);
    ck_assert_str_eq(letters_of_frames(&h2), "gAG");
    domt_h2_close_connection(&h2, false);
    expect_service_drained_and_ended();
}

DOMT_TEST(a_body_under_way_is_read_to_its_end_in_a_drain)
{
    static const char *const backends[] = {"uring", "epoll"};

    ck_assert_ptr_nonnull(mkdtemp(uploads));
    for (size_t i = 0; i < 2; i++) {
        check_body_ends_in_drain_by_http_1(backends[i]);
        check_body_ends_in_drain_by_http_2(backends[i]);
    }
    ck_assert_int_eq(rmdir(uploads), 0);
}

DOMT_SUITE(domt_tests_are_long() ? 1200 : 300)
