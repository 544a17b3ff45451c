/* protocols/observe: the port of a real system tells of it while a thread is stuck, while requests
 * find no memory, and until it is closed; and it can be opened again. */
#include <domus/observe.h>

#include "base/memory.h"
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ALLOCATIONS 400

static const domus_type note_type = {.name = "note"};

static atomic_int begun;
static atomic_bool may_go;
static void *port;
static uint16_t number;
static char text[1 << 19];

static int get_stuck(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&begun, 1);
    while (!atomic_load(&may_go))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_behaviour sticky = {
    .name = "sticky", .on = (const domus_on[]){{&note_type, get_stuck, 0}, {NULL, NULL, 0}}};

static domus_system *start(void)
{
    domus_config config = domt_config(2);

    ck_assert_str_eq(config.observe.listen, "");
    ck_assert_uint_eq(config.observe.viewers_max, 64);
    ck_assert(!config.observe.is_public);
    config.observe.listen = "127.0.0.1:0";
    config.profile.records = 64; /* so that traces are short */
    return domt_start(&config);
}

static int open_port(domus_system *system)
{
    char error[256] = "";

    return domus_observe_front.open(system, error, sizeof error, &port, &number);
}

/* Ask for a path, whose whole answer is in `text` then. Returns the status; 0: none came. */
static unsigned ask(const char *path)
{
    char request[256];
    size_t size = 0;
    ssize_t got;
    int fd = domt_connect(number);

    int length = snprintf(request, sizeof request,
                          "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    (void)send(fd, request, (size_t)length, MSG_NOSIGNAL); /* it may have been reset at once */
    while ((got = recv(fd, text + size, sizeof text - 1 - size, 0)) > 0)
        size += (size_t)got;
    close(fd);
    text[size] = '\0';
    return size > 12 ? (unsigned)strtoul(text + strlen("HTTP/1.1 "), NULL, 10) : 0;
}

DOMT_TEST(a_stuck_thread_is_seen_from_outside)
{
    domus_system *system = start();

    ck_assert_int_eq(open_port(system), 0);
    domt_notice(system, domt_spawn(system, 1, &sticky, NULL), &note_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 1);
    ck_assert_uint_eq(ask("/health"), 200);
    ck_assert_uint_eq(ask("/metrics"), 200);
    ck_assert_uint_eq(ask("/actors"), 200);
    ck_assert_ptr_nonnull(strstr(text, "thread 0: 0 actors\n"));
    ck_assert_ptr_nonnull(strstr(text, "thread 1: stuck: "));
    ck_assert_ptr_nonnull(strstr(text, "in a handler of sticky\n"));
    atomic_store(&may_go, true);
    DOMT_WAIT_FOR(10, (ask("/actors?behaviour=sticky"), strstr(text, " sticky: ") != NULL));
    domus_observe_front.close(port);
    domt_end(system);
}

static void *ask_for_actors(void *unused)
{
    char got[4096];
    int fd = domt_connect(number);

    ck_assert(send(fd, "GET /actors HTTP/1.0\r\n\r\n", 24, MSG_NOSIGNAL) == 24);
    domt_read_until(fd, "HTTP/1.1 200", got, sizeof got);
    close(fd);
    return unused;
}

/* The dump of a thread that is stuck takes a second, and nobody else waits for it. */
DOMT_TEST(other_viewers_do_not_wait_for_a_dump)
{
    domus_system *system = start();
    pthread_t asker;

    atomic_store(&begun, 0);
    atomic_store(&may_go, false);
    ck_assert_int_eq(open_port(system), 0);
    domt_notice(system, domt_spawn(system, 0, &sticky, NULL), &note_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 1);
    uint64_t began_ns = domt_now_ns();
    ck_assert_int_eq(pthread_create(&asker, NULL, ask_for_actors, NULL), 0);
    domt_pause_ns(50 * DOMT_MS);
    ck_assert_uint_eq(ask("/profile"), 200);
    uint64_t answered_ns = domt_now_ns() - began_ns;
    pthread_join(asker, NULL);
    ck_assert_uint_lt(answered_ns, domt_now_ns() - began_ns - 100 * DOMT_MS);
    atomic_store(&may_go, true);
    domus_observe_front.close(port);
    domt_end(system);
}

DOMT_TEST(a_port_is_ready_when_it_is_told_and_is_there_once)
{
    domus_system *system = start();
    domus_config config = domt_config(1);
    char error[256] = "";
    void *none = &config;
    uint16_t zero = 1;

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(open_port(system), 0);
        ck_assert_uint_eq(ask("/ready"), 503);
        domus_observe_front.set_ready(port, true);
        ck_assert_uint_eq(ask("/ready"), 200);
        domus_observe_front.set_ready(port, false);
        ck_assert_uint_eq(ask("/ready"), 503);
        ck_assert_int_eq(domus_observe_front.open(system, error, sizeof error, &none, &zero),
                         -EALREADY);
        ck_assert_str_eq(error, "observe.listen: this process has such a port already");
        domus_observe_front.close(port);
    }
    domt_end(system);

    system = domt_start(&config); /* which wants no port */
    ck_assert_int_eq(domus_observe_front.open(system, error, sizeof error, &none, &zero), 0);
    ck_assert(none == NULL && zero == 0);
    domus_observe_front.set_ready(NULL, true);
    domus_observe_front.close(NULL);
    domt_end(system);
}

/* The n-th allocation fails while the port is opened, or while it is asked; then for each third n
 * in the short form. */
DOMT_TEST(a_port_without_memory_is_not_opened_or_answers_later)
{
    static const char *const paths[] = {
        "/metrics", "/profile?histograms=1", "/actors", "/config", "/stalls", "/nothing", "/",
        "/trace"};
    domus_system *system = start();
    const int64_t step = domt_is_long() ? 1 : 3;
    int64_t n = 0;
    int result = -ENOMEM;

    for (; result != 0 && n < 100000; n++) {
        domi_memory_fail_after(n, 0);
        result = open_port(system);
        domi_memory_fail_after(-1, 0);
        ck_assert(result == 0 || result == -ENOMEM);
    }
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(domus_system_set_profile_level(system, DOMUS_PROFILE_SPANS), 0);
    DOMT_WAIT_FOR(10, ask("/trace") == 200); /* the threads look at it once a second */
    for (n = 0; n < ALLOCATIONS; n += step) {
        domi_memory_fail_after(n, 0);
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
            (void)ask(paths[i]);
        domi_memory_fail_after(-1, 0);
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
            ck_assert_uint_eq(ask(paths[i]), strcmp(paths[i], "/nothing") == 0 ? 404 : 200);
    }
    domus_observe_front.close(port);
    domt_end(system);
}

DOMT_SUITE(120)
