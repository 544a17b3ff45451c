/* protocols/observe: the observation port of a real system answers while a thread is stuck, while
 * its requests find no memory, and until it is closed; and it can be opened again. /config shows
 * what a program has handed over, or else the configuration of its system, and /stalls shows an
 * actor while it blocks its thread. */
#include "base/memory.h"
#include "tests/runtime/port.h"
#include "tests/support/crowd.h"

#include <domus/stall.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ALLOCATIONS 400

static const domus_type note_type = {.name = "note"};

static atomic_int begun;
static atomic_bool may_go;
static char *const text = domt_port_text; /* text of the port's last answer */

static int stay_in_handler_until_allowed(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&begun, 1);
    while (!atomic_load(&may_go))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_behaviour sticky = {
    .name = "sticky",
    .on = (const domus_on[]){{&note_type, stay_in_handler_until_allowed, 0}, {0}}};

static domus_system *start_system(void)
{
    domus_config config = domt_config_of_threads(2);

    ck_assert_str_eq(config.observe.listen, "");
    ck_assert_uint_eq(config.observe.viewers_max, 64);
    ck_assert(!config.observe.is_public);
    config.profile.records = 64; /* the profile keeps few records, so that traces are short */
    return domt_port_start_system(&config);
}

DOMT_TEST(a_stuck_thread_is_seen_from_outside)
{
    domus_system *system = start_system();

    ck_assert_int_eq(domt_port_open(system), 0);
    domt_send_notice(system, domt_spawn(system, 1, &sticky, NULL), &note_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 1);
    ck_assert_uint_eq(domt_port_request_and_read("GET /health"), 200);
    ck_assert_uint_eq(domt_port_request_and_read("GET /metrics"), 200);
    ck_assert_uint_eq(domt_port_request_and_read("GET /actors"), 200);
    ck_assert_ptr_nonnull(strstr(text, "thread 0: 0 actors\n"));
    ck_assert_ptr_nonnull(strstr(text, "thread 1: stuck: "));
    ck_assert_ptr_nonnull(strstr(text, "in a handler of sticky\n"));
    atomic_store(&may_go, true);
    DOMT_WAIT_FOR(10, (domt_port_request_and_read("GET /actors?behaviour=sticky"),
                       strstr(text, " sticky: ") != NULL));
    domt_port_close_and_end(system);
}

static void *get_list_of_actors(void *unused)
{
    char got[4096];
    int fd = domt_connect_to_port(domt_port_number);
    ck_assert(send(fd, "GET /actors HTTP/1.0\r\n\r\n", 24, MSG_NOSIGNAL) == 24);
    domt_read_until_text(fd, "HTTP/1.1 200", got, sizeof got);
    close(fd);
    return unused;
}

/* The dump of a stuck thread takes a second, but no other viewer has to wait for it. */
DOMT_TEST(other_viewers_do_not_wait_for_a_dump)
{
    domus_system *system = start_system();
    pthread_t asker;

    atomic_store(&begun, 0);
    atomic_store(&may_go, false);
    ck_assert_int_eq(domt_port_open(system), 0);
    domt_send_notice(system, domt_spawn(system, 0, &sticky, NULL), &note_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 1);
    uint64_t began_ns = domt_now_ns();
    ck_assert_int_eq(pthread_create(&asker, NULL, get_list_of_actors, NULL), 0);
    domt_pause_ns(50 * DOMT_MS);
    ck_assert_uint_eq(domt_port_request_and_read("GET /profile"), 200);
    uint64_t answered_ns = domt_now_ns() - began_ns;
    pthread_join(asker, NULL);
    ck_assert_uint_lt(answered_ns, domt_now_ns() - began_ns - 100 * DOMT_MS);
    atomic_store(&may_go, true);
    domt_port_close_and_end(system);
}

DOMT_TEST(port_is_ready_when_told_and_a_second_one_is_refused)
{
    domus_system *system = start_system();
    domus_config config = domt_config_of_threads(1);
    char error[256] = "";
    void *none = &config;
    uint16_t zero = 1;

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(domt_port_open(system), 0);
        ck_assert_uint_eq(domt_port_request_and_read("GET /ready"), 503);
        domus_observe_front.set_ready(domt_port, true);
        ck_assert_uint_eq(domt_port_request_and_read("GET /ready"), 200);
        domus_observe_front.set_ready(domt_port, false);
        ck_assert_uint_eq(domt_port_request_and_read("GET /ready"), 503);
        ck_assert_int_eq(domus_observe_front.open(system, error, sizeof error, &none, &zero),
                         -EALREADY);
        ck_assert_str_eq(error, "observe.listen: this process has such a port already");
        domus_observe_front.close(domt_port);
    }
    domt_end_system(system);

    system = domt_start_system(&config); /* this configuration has no observation port */
    ck_assert_int_eq(domus_observe_front.open(system, error, sizeof error, &none, &zero), 0);
    ck_assert(none == NULL && zero == 0);
    domus_observe_front.set_ready(NULL, true);
    domus_observe_front.close(NULL);
    domt_end_system(system);
}

/* Let the n-th allocation fail while the port is opened or asked: for each n, or in the short form
 * for each third n. */
DOMT_TEST(a_port_without_memory_is_not_opened_or_answers_later)
{
    static const char *const paths[] = {"GET /metrics", "GET /profile?histograms=1",
                                        "GET /actors",  "GET /config",
                                        "GET /stalls",  "GET /nothing",
                                        "GET /",        "GET /trace"};
    domus_system *system = start_system();
    const int64_t step = domt_tests_are_long() ? 1 : 3;
    int64_t n = 0;
    int result = -ENOMEM;

    for (; result != 0 && n < 100000; n++) {
        domi_memory_fail_allocation_after(n, 0);
        result = domt_port_open(system);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert(result == 0 || result == -ENOMEM);
    }
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(domus_system_set_profile_level(system, DOMUS_PROFILE_SPANS), 0);
    DOMT_WAIT_FOR(10,
                  /* wait until each thread has followed the level of the profile, which it does at
                   * its next tick, or within a second if it sleeps */
                  domt_port_request_and_read("GET /trace") == 200);
    for (n = 0; n < ALLOCATIONS; n += step) {
        domi_memory_fail_allocation_after(n, 0);
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
            (void)domt_port_request_and_read(paths[i]);
        domi_memory_fail_allocation_after(-1, 0);
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
            ck_assert_uint_eq(domt_port_request_and_read(paths[i]),
                              strcmp(paths[i], "GET /nothing") == 0 ? 404 : 200);
    }
    domt_port_close_and_end(system);
}

#define SIGNAL 50
static const char *body;

static void expect_ok_for_start_line(const char *start_line)
{
    ck_assert_msg(domt_port_request_and_read(start_line) == 200, "%s", text);
    body = strstr(text, "\r\n\r\n") + 4;
}

static void expect_text_in_body(const char *part)
{
    ck_assert_msg(strstr(body, part) != NULL, "no '%s' in: %s", part, text);
}

/* --- /config ---------------------------------------------------------------------------------- */

DOMT_TEST(a_configuration_made_by_hand_has_the_program_as_its_origin)
{
    domus_config config = domt_config_of_threads(1);

    config.scheduler.io_ratio = 61;
    domus_system *system = domt_port_start_and_open(&config);
    expect_ok_for_start_line("GET /config");
    ck_assert_ptr_nonnull(strstr(text, "Content-Type: application/json\r\n"));
    ck_assert_ptr_eq(strstr(body, "{\"keys\":[\n{\"key\":\"system.threads\",\"value\":\"1\","),
                     body);
    expect_text_in_body("{\"key\":\"scheduler.ioRatio\",\"value\":\"61\",\"origin\":\"program\"}");
    expect_text_in_body(
        "{\"key\":\"scheduler.maxBudget\",\"value\":\"10ms\",\"origin\":\"default\"}");
    expect_text_in_body(
        "{\"key\":\"observe.listen\",\"value\":\"127.0.0.1:0\",\"origin\":\"program\"}");
    expect_text_in_body("{\"key\":\"log.level\",\"value\":\"info\",\"origin\":\"default\"}");
    expect_ok_for_start_line("POST /log?level=error");
    expect_ok_for_start_line("GET /config");
    expect_text_in_body("{\"key\":\"log.level\",\"value\":\"error\",\"origin\":\"program\"}");
    domt_port_close_and_end(system);
}

static void visit_keys_of_config(const void *from, domus_config_visit *visit, void *context)
{
    visit(context, &(domus_config_shown){"log.level", "info", "a\"b\\c\n.yaml:1"});
    visit(context, &(domus_config_shown){"own.key", from, "--set"});
    visit(context, &(domus_config_shown){"profile.level", "counters", "default"});
}

DOMT_TEST(config_of_a_program_is_shown_until_it_hands_over_a_new_one)
{
    static char value[DOMUS_CONFIG_VALUE_SIZE];
    domus_config config = domt_config_of_threads(1);
    domus_system *system = domt_port_start_and_open(&config);
    size_t shown = 0;

    ck_assert_int_eq(domus_observe_front.set_config(NULL, visit_keys_of_config, "none"), 0);
    ck_assert_int_eq(domus_observe_front.set_config(domt_port, visit_keys_of_config, "first"), 0);
    ck_assert_int_eq(domus_observe_front.set_config(domt_port, visit_keys_of_config, "second"), 0);
    expect_ok_for_start_line("GET /config");
    ck_assert_str_eq(
        body,
        "{\"keys\":[\n"
        "{\"key\":\"log.level\",\"value\":\"info\",\"origin\":\"a\\\"b\\\\\\\\c\\\\n.yaml:1\"},\n"
        "{\"key\":\"own.key\",\"value\":\"second\",\"origin\":\"--set\"},\n"
        "{\"key\":\"profile.level\",\"value\":\"counters\",\"origin\":\"default\"}]}\n");
    ck_assert_int_eq(domus_observe_front.set_config(domt_port, visit_keys_of_config, "\"\x1b"), 0);
    expect_ok_for_start_line("POST /log?level=warning");
    expect_ok_for_start_line("POST /profile?level=off");
    expect_ok_for_start_line("GET /config");
    expect_text_in_body("{\"key\":\"log.level\",\"value\":\"warning\",\"origin\":\"port\"}");
    expect_text_in_body("{\"key\":\"own.key\",\"value\":\"\\\"\\\\x1b\",\"origin\":\"--set\"}");
    expect_text_in_body("{\"key\":\"profile.level\",\"value\":\"off\",\"origin\":\"port\"}");
    /* the longest value of a key, each of whose bytes has to be escaped */
    memset(value, '\1', sizeof value - 1);
    ck_assert_int_eq(domus_observe_front.set_config(domt_port, visit_keys_of_config, value), 0);
    expect_ok_for_start_line("GET /config");
    for (const char *at = body; (at = strstr(at, "\\\\x01")) != NULL; at++)
        shown++;
    ck_assert_uint_eq(shown, sizeof value - 1);
    ck_assert_int_eq(domus_observe_front.set_config(domt_port, visit_keys_of_config, "left"), 0);
    domt_port_close_and_end(system);

    /* a port that is opened anew shows nothing of what the one before was given */
    system = domt_port_start_and_open(&config);
    expect_ok_for_start_line("GET /config");
    expect_text_in_body("{\"key\":\"scheduler.ioRatio\"");
    domt_port_close_and_end(system);
}

/* --- /stalls ---------------------------------------------------------------------------------- */

static const domus_type quoted_type = {.name = "note \"x\""};

static const domus_behaviour quoted_sticky = {
    .name = "sticky",
    .on = (const domus_on[]){{&quoted_type, stay_in_handler_until_allowed, 0}, {0}}};

DOMT_TEST(a_stall_is_shown_while_it_lasts)
{
    domus_config config = domt_config_of_threads(2);

    config.stall.threshold_ns = 10 * DOMT_MS;
    config.stall.signal = SIGNAL;
    ck_assert_int_eq(domus_stall_signal(SIGNAL), 0);
    domus_system *system = domt_port_start_and_open(&config);
    expect_ok_for_start_line("GET /stalls");
    ck_assert_str_eq(body, "{\"stalls\":[]}\n");
    domt_send_notice(system, domt_spawn(system, 1, &quoted_sticky, NULL), &quoted_type, NULL);
    DOMT_WAIT_FOR(20,
                  (expect_ok_for_start_line("GET /stalls"), strstr(body, "\"thread\":1") != NULL));
    ck_assert_ptr_nonnull(strstr(text, "Content-Type: application/json\r\n"));
    expect_text_in_body("{\"stalls\":[{\"when_ns\":");
    expect_text_in_body(",\"when\":\"2");
    expect_text_in_body("Z\",\"thread\":1,\"length_ns\":");
    expect_text_in_body(",\"is_over\":false,\"behaviour\":\"sticky\",\"type\":\"note "
                        "\\\"x\\\"\",\"backtrace\":[\"");
    expect_text_in_body("\"stay_in_handler_until_allowed\"");
    atomic_store(&may_go, true);
    DOMT_WAIT_FOR(
        20, (expect_ok_for_start_line("GET /stalls"), strstr(body, "\"is_over\":true") != NULL));
    domt_port_close_and_end(system);
}

DOMT_SUITE(120)
