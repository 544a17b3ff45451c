/* The service unit among the examples gives a program what the default configuration needs. */
#include "config/descriptors.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

#define UNIT       DOMT_SOURCE_DIR "/examples/echo.service"
#define SECOND_NS  UINT64_C(1000000000)
#define LOG_NS     SECOND_NS /* for the last lines of the log */
#define THREADS    64u       /* of a machine that the unit still suits */
#define HELPERS    8u        /* threads: the main one, the monitor, and room for some more */
#define RING_BYTES (192u * 1024)

static char unit[16384];

static void read_unit(void)
{
    FILE *file = fopen(UNIT, "re");

    ck_assert_ptr_nonnull(file);
    size_t size = fread(unit, 1, sizeof unit - 1, file);
    ck_assert_uint_lt(size, sizeof unit - 1);
    unit[size] = '\0';
    fclose(file);
}

/* The value of the first line `key=value` that `value` begins like `prefix`; it must be there. */
static const char *value_of(const char *key, const char *prefix)
{
    size_t length = strlen(key);

    for (const char *line = unit; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == '=' &&
            strncmp(line + length + 1, prefix, strlen(prefix)) == 0)
            return line + length + 1;
    }
    ck_abort_msg("no %s=%s in %s", key, prefix, UNIT);
    return NULL;
}

static uint64_t number_of(const char *key, const char *unit_of_measure)
{
    char *end = NULL;
    uint64_t number = strtoull(value_of(key, ""), &end, 10);

    ck_assert_msg(strncmp(end, unit_of_measure, strlen(unit_of_measure)) == 0, "%s in %s", key,
                  unit_of_measure);
    return number;
}

START_TEST(systemd_waits_for_the_drain)
{
    domus_config config;

    read_unit();
    domus_config_init(&config);
    (void)value_of("KillSignal", "SIGTERM\n");
    ck_assert_uint_gt(number_of("TimeoutStopSec", "s\n") * SECOND_NS,
                      config.shutdown.drain_timeout_ns + config.shutdown.actor_timeout_ns + LOG_NS);
}
END_TEST

START_TEST(there_are_descriptors_threads_and_locked_memory)
{
    const domus_listener_config listener = {.backlog = 4096};
    const domi_descriptors has = {
        .limit = (read_unit(), number_of("LimitNOFILE", "\n")), .open = 16, .cpus = THREADS};
    domus_config config;

    domus_config_init(&config);
    config.listeners = &listener;
    config.listener_count = 1;
    config.channel.connections_max = UINT32_MAX;
    ck_assert_uint_ge(domi_descriptors_room(&has, &config), 10000);
    ck_assert_uint_ge(number_of("TasksMax", "\n"), THREADS + config.blocking.threads_max +
                                                       config.detached.threads_max + HELPERS);
    ck_assert_uint_ge(number_of("LimitMEMLOCK", "M\n") * 1024 * 1024, THREADS * RING_BYTES);
}
END_TEST

START_TEST(the_protections_leave_room_for_io_uring)
{
    read_unit();
    (void)value_of("SystemCallFilter", "@system-service\n"); /* it holds @aio and @resources */
    (void)value_of("SystemCallErrorNumber", "EPERM\n");
    (void)value_of("RestrictAddressFamilies", "AF_INET AF_INET6\n");
    const char *denied = value_of("SystemCallFilter", "~");
    size_t length = strcspn(denied, "\n");
    ck_assert_ptr_null(memmem(denied, length, "@aio", 4));
    ck_assert_ptr_null(memmem(denied, length, "@resources", 10));
    ck_assert_ptr_null(memmem(denied, length, "io_uring", 8));
    ck_assert_ptr_null(strstr(unit, "\nMemoryHigh="));
}
END_TEST

DOMT_MAIN("unit", 20, systemd_waits_for_the_drain, there_are_descriptors_threads_and_locked_memory,
          the_protections_leave_room_for_io_uring)
