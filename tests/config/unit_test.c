/* The systemd units that users copy give a program what the default configuration needs, and little
 * more. */
#include "config/descriptors.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

#define UNIT      DOMT_SOURCE_DIR "/packaging/systemd/echo.service"
#define SOCKET    DOMT_SOURCE_DIR "/packaging/systemd/echo.socket"
#define PAGE      DOMT_SOURCE_DIR "/docs/systemd.md"
#define SECOND_NS UINT64_C(1000000000)
#define LOG_NS    SECOND_NS /* time that a program may need to write the last lines of its log */
#define THREADS   64u       /* threads of a system on the largest machine that the unit suits */
#define HELPERS                                                                                    \
    8u /* further threads of the program: the main one, the monitor, and some to spare */
#define RING_BYTES (192u * 1024)

static char unit[32768];

static void read_file_to_text(const char *path)
{
    FILE *file = fopen(path, "re");

    ck_assert_ptr_nonnull(file);
    size_t size = fread(unit, 1, sizeof unit - 1, file);
    ck_assert_uint_lt(size, sizeof unit - 1);
    unit[size] = '\0';
    fclose(file);
}

static void read_unit_of_service(void)
{
    read_file_to_text(UNIT);
}

/* Returns the value of the unit's first line `key=value` whose value begins with `prefix`; the test
 * fails if there is no such line. */
static const char *value_of_unit_key(const char *key, const char *prefix)
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

static uint64_t number_of_unit_key(const char *key, const char *unit_of_measure)
{
    char *end = NULL;
    uint64_t number = strtoull(value_of_unit_key(key, ""), &end, 10);

    ck_assert_msg(strncmp(end, unit_of_measure, strlen(unit_of_measure)) == 0, "%s in %s", key,
                  unit_of_measure);
    return number;
}

DOMT_TEST(unit_timeout_allows_the_drain)
{
    domus_config config;

    read_unit_of_service();
    domus_config_init(&config);
    (void)value_of_unit_key("KillSignal", "SIGTERM\n");
    ck_assert_uint_gt(number_of_unit_key("TimeoutStopSec", "s\n") * SECOND_NS,
                      config.shutdown.drain_timeout_ns + config.shutdown.actor_timeout_ns + LOG_NS);
}

DOMT_TEST(unit_limits_suffice_for_defaults)
{
    const domus_listener_config listener = {.backlog = 4096};
    const domi_descriptors has = {
        .limit = (read_unit_of_service(), number_of_unit_key("LimitNOFILE", "\n")),
        .open = 16,
        .cpus = THREADS};
    domus_config config;

    domus_config_init(&config);
    config.listeners = &listener;
    config.listener_count = 1;
    config.channel.connections_max = UINT32_MAX;
    ck_assert_uint_ge(domi_descriptors_room_for_connections(&has, &config), 10000);
    ck_assert_uint_ge(number_of_unit_key("TasksMax", "\n"), THREADS + config.blocking.threads_max +
                                                                config.detached.threads_max +
                                                                HELPERS);
    ck_assert_uint_ge(number_of_unit_key("LimitMEMLOCK", "M\n") * 1024 * 1024,
                      THREADS * RING_BYTES);
}

DOMT_TEST(unit_protections_allow_io_uring)
{
    read_unit_of_service();
    /* The group @system-service of systemd includes @aio and @resources, which io_uring and locked
     * memory need. */
    (void)value_of_unit_key("SystemCallFilter", "@system-service\n");
    (void)value_of_unit_key("SystemCallErrorNumber", "EPERM\n");
    /* The program reports through a Unix socket that it is ready. */
    (void)value_of_unit_key("RestrictAddressFamilies", "AF_UNIX\n");
    const char *denied = value_of_unit_key("SystemCallFilter", "~");
    size_t length = strcspn(denied, "\n");
    ck_assert_ptr_null(memmem(denied, length, "@aio", 4));
    ck_assert_ptr_null(memmem(denied, length, "@resources", 10));
    ck_assert_ptr_null(memmem(denied, length, "io_uring", 8));
    ck_assert_ptr_null(strstr(unit, "\nMemoryHigh="));
}

/* systemd hands the sockets of the socket unit to the listener of examples/echo.c, which accepts
 * their connections. */
DOMT_TEST(socket_unit_has_name_of_listener)
{
    read_file_to_text(SOCKET);
    (void)value_of_unit_key("FileDescriptorName", "echo\n");
    (void)value_of_unit_key("Accept", "no\n");
    read_unit_of_service();
    (void)value_of_unit_key("Requires", "echo.socket\n");
    (void)value_of_unit_key("Type", "notify\n");
    /* if two lines have the same key, the later one counts */
    const char *first = value_of_unit_key("Type", "notify-reload\n");
    ck_assert(value_of_unit_key("Type", "notify\n") < first);
}

/* Returns the exposure of the unit that systemd-analyze reports, in tenths; -1 if that program is
 * missing. */
static int read_exposure_of_unit(void)
{
    char line[256] = "";
    int tenths = -1, whole = 0, part = 0;
    FILE *judge = popen("systemd-analyze security --offline=true " UNIT " 2>/dev/null", "re");

    ck_assert_ptr_nonnull(judge);
    while (fgets(line, sizeof line, judge) != NULL) {
        const char *figure = strstr(line, "Overall exposure level for echo.service: ");
        if (figure != NULL && sscanf(strrchr(figure, ':'), ": %d.%d", &whole, &part) == 2)
            tenths = 10 * whole + part;
    }
    pclose(judge);
    return tenths;
}

DOMT_TEST(unit_exposure_matches_documented_one)
{
    int tenths = read_exposure_of_unit();
    double said = -1;

    if (tenths < 0) {
        printf("skipped: no systemd-analyze, or one that cannot judge files\n");
        return;
    }
    read_file_to_text(PAGE);
    const char *figure = strstr(unit, "exposure level of ");
    ck_assert_ptr_nonnull(figure);
    ck_assert_int_eq(sscanf(figure, "exposure level of %lf", &said), 1);
    ck_assert_int_le(tenths, (int)(10 * said + 0.5));
}

DOMT_SUITE(20)
