/* protocols/observe: /config shows what a program has handed over, or else what its system has; and
 * /stalls shows an actor that holds its thread, while it does so. */
#include <domus/observe.h>

#include "tests/runtime/running.h"
#include "tests/support/crowd.h"

#include <domus/stall.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIGNAL 50

static void *port;
static uint16_t number;
static char text[1 << 18];
static const char *body;

static domus_system *start(domus_config *config)
{
    char error[256] = "";

    config->observe.listen = "127.0.0.1:0";
    domus_system *system = domt_start(config);
    ck_assert_msg(domus_observe_front.open(system, error, sizeof error, &port, &number) == 0, "%s",
                  error);
    return system;
}

static void end(domus_system *system)
{
    domus_observe_front.close(port);
    domt_end(system);
}

static void ask(const char *start_line)
{
    char request[256];
    size_t size = 0;
    ssize_t got;
    int fd = domt_connect(number);
    int length =
        snprintf(request, sizeof request,
                 "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", start_line);

    ck_assert_int_eq(send(fd, request, (size_t)length, MSG_NOSIGNAL), length);
    while ((got = recv(fd, text + size, sizeof text - 1 - size, 0)) > 0)
        size += (size_t)got;
    close(fd);
    text[size] = '\0';
    ck_assert_msg(strncmp(text, "HTTP/1.1 200 ", 13) == 0, "%s", text);
    body = strstr(text, "\r\n\r\n") + 4;
}

static void has(const char *part)
{
    ck_assert_msg(strstr(body, part) != NULL, "no '%s' in: %s", part, text);
}

/* --- /config ---------------------------------------------------------------------------------- */

DOMT_TEST(a_configuration_made_by_hand_has_the_program_as_its_origin)
{
    domus_config config = domt_config(1);

    config.scheduler.io_ratio = 61;
    domus_system *system = start(&config);
    ask("GET /config");
    ck_assert_ptr_nonnull(strstr(text, "Content-Type: application/json\r\n"));
    ck_assert_ptr_eq(strstr(body, "{\"keys\":[\n{\"key\":\"system.threads\",\"value\":\"1\","),
                     body);
    has("{\"key\":\"scheduler.ioRatio\",\"value\":\"61\",\"origin\":\"program\"}");
    has("{\"key\":\"scheduler.maxBudget\",\"value\":\"10ms\",\"origin\":\"default\"}");
    has("{\"key\":\"observe.listen\",\"value\":\"127.0.0.1:0\",\"origin\":\"program\"}");
    has("{\"key\":\"log.level\",\"value\":\"info\",\"origin\":\"default\"}");
    ask("POST /log?level=error");
    ask("GET /config");
    has("{\"key\":\"log.level\",\"value\":\"error\",\"origin\":\"program\"}");
    end(system);
}

static void walk(const void *from, domus_config_visit *visit, void *context)
{
    visit(context, &(domus_config_shown){"log.level", "info", "a\"b\\c\n.yaml:1"});
    visit(context, &(domus_config_shown){"own.key", from, "--set"});
    visit(context, &(domus_config_shown){"profile.level", "counters", "default"});
}

DOMT_TEST(what_a_program_hands_over_is_shown_until_it_hands_over_anew)
{
    static char value[DOMUS_CONFIG_VALUE_SIZE];
    domus_config config = domt_config(1);
    domus_system *system = start(&config);
    size_t shown = 0;

    ck_assert_int_eq(domus_observe_front.set_config(NULL, walk, "none"), 0);
    ck_assert_int_eq(domus_observe_front.set_config(port, walk, "first"), 0);
    ck_assert_int_eq(domus_observe_front.set_config(port, walk, "second"), 0);
    ask("GET /config");
    ck_assert_str_eq(
        body,
        "{\"keys\":[\n"
        "{\"key\":\"log.level\",\"value\":\"info\",\"origin\":\"a\\\"b\\\\\\\\c\\\\n.yaml:1\"},\n"
        "{\"key\":\"own.key\",\"value\":\"second\",\"origin\":\"--set\"},\n"
        "{\"key\":\"profile.level\",\"value\":\"counters\",\"origin\":\"default\"}]}\n");
    ck_assert_int_eq(domus_observe_front.set_config(port, walk, "\"\x1b"), 0);
    ask("POST /log?level=warning");
    ask("POST /profile?level=off");
    ask("GET /config");
    has("{\"key\":\"log.level\",\"value\":\"warning\",\"origin\":\"port\"}");
    has("{\"key\":\"own.key\",\"value\":\"\\\"\\\\x1b\",\"origin\":\"--set\"}");
    has("{\"key\":\"profile.level\",\"value\":\"off\",\"origin\":\"port\"}");
    memset(value, '\1', sizeof value - 1); /* the longest one, and each of its bytes is escaped */
    ck_assert_int_eq(domus_observe_front.set_config(port, walk, value), 0);
    ask("GET /config");
    for (const char *at = body; (at = strstr(at, "\\\\x01")) != NULL; at++)
        shown++;
    ck_assert_uint_eq(shown, sizeof value - 1);
    ck_assert_int_eq(domus_observe_front.set_config(port, walk, "left"), 0);
    end(system);

    system = start(&config); /* the next port knows nothing of the one before */
    ask("GET /config");
    has("{\"key\":\"scheduler.ioRatio\"");
    end(system);
}

/* --- /stalls ---------------------------------------------------------------------------------- */

static const domus_type note_type = {.name = "note \"x\""};
static atomic_bool may_go;

static int get_stuck(domus_stack *stack, void *self, const void *payload)
{
    while (!atomic_load(&may_go))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_behaviour sticky = {
    .name = "sticky", .on = (const domus_on[]){{&note_type, get_stuck, 0}, {NULL, NULL, 0}}};

DOMT_TEST(a_stall_is_shown_while_it_lasts)
{
    domus_config config = domt_config(2);

    config.stall.threshold_ns = 10 * DOMT_MS;
    config.stall.signal = SIGNAL;
    ck_assert_int_eq(domus_stall_signal(SIGNAL), 0);
    domus_system *system = start(&config);
    ask("GET /stalls");
    ck_assert_str_eq(body, "{\"stalls\":[]}\n");
    domt_notice(system, domt_spawn(system, 1, &sticky, NULL), &note_type, NULL);
    DOMT_WAIT_FOR(20, (ask("GET /stalls"), strstr(body, "\"thread\":1") != NULL));
    ck_assert_ptr_nonnull(strstr(text, "Content-Type: application/json\r\n"));
    has("{\"stalls\":[{\"when_ns\":");
    has(",\"when\":\"2");
    has("Z\",\"thread\":1,\"length_ns\":");
    has(",\"is_over\":false,\"behaviour\":\"sticky\",\"type\":\"note "
        "\\\"x\\\"\",\"backtrace\":[\"");
    has("\"get_stuck\"");
    atomic_store(&may_go, true);
    DOMT_WAIT_FOR(20, (ask("GET /stalls"), strstr(body, "\"is_over\":true") != NULL));
    end(system);
}

DOMT_SUITE(60)
