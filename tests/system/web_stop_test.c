/* SIGTERM comes to the example `web` under load: it answers each request that it has read, the last
 * answer of a connection has "Connection: close", nothing is cut, and its status is 0.
 * tests/http/drain_test.c checks the same with many seeds. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
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
static void remove_whole_answers(caller *one)
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
            remove_whole_answers(one);
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
    ck_assert_uint_eq(domt_service_profile_count(&site.service, "channels cut"), 0);
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

DOMT_SUITE(domt_tests_are_long() ? 1200 : 300)
