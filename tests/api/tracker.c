/* The service of examples/api in a test kit; tracker.h describes the functions. */
#include "tests/api/tracker.h"

#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <api/api.h>

#include <domus/sqlite.h>

#include <stdio.h>
#include <string.h>

static int resume_when_migrated(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_sql_result *result;

    return domus_sql_result_of(answer, &result);
}

static int migrate_database_on_mount(domus_stack *stack, void *self)
{
    return domus_sql_migrate(stack, api_database, api_migrations, resume_when_migrated);
}

static const domus_behaviour migrator = {
    .name = "migrator", .kind = DOMUS_STATE, .on_mount = migrate_database_on_mount};

domus_testkit *tracker_begin_service(uint64_t seed, uint32_t rate)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    const domus_sql_options options = {.drivers = drivers};
    static bool has_keys;
    domus_address address;
    domus_config config;

    domus_config_init(&config);
    domus_testkit *kit = domt_kit_new_listening(&config, "api", "127.0.0.1:80", seed);
    domus_system *system = domus_testkit_system(kit);
    api_settings.rate = rate;
    if (api_settings.upload_max == 0)
        api_settings.upload_max = 1 << 20;
    if (!has_keys)
        ck_assert_int_eq(api_read_session_keys(), 0);
    has_keys = true;
    ck_assert_int_eq(domus_outside_sql_open(system, "sqlite::memory:", &options, &api_database), 0);
    ck_assert_int_eq(domus_outside_spawn(system, &migrator, NULL, &address), 0);
    ck_assert_int_eq(api_spawn_event_board(system), 0);
    ck_assert_int_eq(api_set_up_site(system), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(domus_serve(system, "api", &api_site, NULL, NULL), 0);
    return kit;
}

void tracker_end_service(domus_testkit *kit)
{
    domus_testkit_free(kit);
    api_free_site();
}

const char *tracker_send_bytes_and_read(domus_testkit *kit, domus_peer *peer, const char *bytes)
{
    static char text[8192];
    size_t size;

    domt_kit_peer_send(peer, bytes);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    const char *got = domus_peer_got(peer, &size);
    ck_assert_uint_lt(size, sizeof text);
    memcpy(text, got, size);
    text[size] = '\0';
    domus_peer_take(peer, size);
    return text;
}

const char *tracker_send_request_and_read(domus_testkit *kit, domus_peer *peer, const char *line,
                                          const char *cookie, const char *body)
{
    char text[8192];

    snprintf(text, sizeof text,
             "%s HTTP/1.1\r\nHost: a\r\n%s%s%sContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             line, cookie[0] != '\0' ? "Cookie: " : "", cookie, cookie[0] != '\0' ? "\r\n" : "",
             strlen(body), body);
    return tracker_send_bytes_and_read(kit, peer, text);
}

void tracker_log_user_in(domus_testkit *kit, domus_peer *peer, const char *name, char cookie[256])
{
    char body[64];

    snprintf(body, sizeof body, "{\"name\":\"%s\"}", name);
    const char *answer = tracker_send_request_and_read(kit, peer, "POST /login", "", body);
    ck_assert_msg(strncmp(answer, "HTTP/1.1 204 ", 13) == 0, "%s", answer);
    const char *pair = strstr(answer, "Set-Cookie: ");
    ck_assert_ptr_nonnull(pair);
    pair += strlen("Set-Cookie: ");
    snprintf(cookie, 256, "%.*s", (int)strcspn(pair, ";"), pair);
}
