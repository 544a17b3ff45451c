/* A bug tracker: a service as people build them, with a database, sessions, uploads and a page.
 *
 *   ./dev run api --config examples/api/api.yaml      then http://127.0.0.1:7010/
 *   ./dev run api --pg                                the same with a PostgreSQL of its own */
#include "api.h"

#include <domus/main.h>
#include <domus/observe.h>
#include <domus/pg.h>
#include <domus/sqlite.h>
#include <domus/tls.h>

#include <stdio.h>

static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, &domus_pg_driver, NULL};

/* Open the database of issues, and bring its schema up to date. */
static int open_database(domus_system *system)
{
    const domus_sql_options options = {.drivers = drivers,
                                       .connections_max = api_settings.connections};
    char words[256] = "";
    int error = domus_sql_check(api_settings.database, &options, words, sizeof words);

    if (error == 0)
        error = domus_outside_sql_open(system, api_settings.database, &options, &api_database);
    if (error == 0)
        error =
            domus_outside_sql_migrate(system, api_database, api_migrations, 0, words, sizeof words);
    if (error != 0)
        fprintf(stderr, "api: api.database: %s\n", words[0] != '\0' ? words : strerror(-error));
    return error;
}

static int start_service(domus_system *system, void *argument)
{
    static int (*const parts[])(domus_system *) = {open_database, api_open_directories,
                                                   api_spawn_event_board, api_set_up_site};
    int error = api_read_session_keys();

    (void)argument;
    for (size_t i = 0; error == 0 && i < sizeof parts / sizeof *parts; i++)
        error = parts[i](system);
    return error != 0 ? error : domus_main_serve(system, "api", &api_site, NULL);
}

static void end_service(domus_system *system, void *argument)
{
    (void)system, (void)argument;
    api_close_directories();
    api_free_site();
}

static const domus_config_key section_keys[] = {
    {DOMUS_KEY_TEXT("database", TEXT, struct api_settings, database, 1, "sqlite:tracker.db"),
     .secret = true},
    {DOMUS_KEY("connections", COUNT, struct api_settings, connections, 1, 64, 4)},
    {DOMUS_KEY_TEXT("keys", TEXT, struct api_settings, keys, 0, "")},
    {DOMUS_KEY_SWITCH("https", struct api_settings, https, false)},
    {DOMUS_KEY_TEXT("pages", TEXT, struct api_settings, pages, 1, "examples/api/static")},
    {DOMUS_KEY_TEXT("uploads", TEXT, struct api_settings, uploads, 1, "uploads")},
    {DOMUS_KEY("uploadMax", SIZE, struct api_settings, upload_max, 1024, UINT64_C(1) << 30,
               UINT64_C(16) << 20)},
    {DOMUS_KEY("disk", SIZE, struct api_settings, disk, 8192, UINT64_C(1) << 50,
               UINT64_C(1) << 30)},
    {DOMUS_KEY_TEXT("accessLog", TEXT, struct api_settings, access_log, 0, "")},
    {DOMUS_KEY("rate", COUNT, struct api_settings, rate, 1, 1000000, 100)},
    {DOMUS_KEY("proxies", COUNT, struct api_settings, proxies, 0, 16, 0)},
    {.path = NULL}};

int main(int argc, char **argv)
{
    static const domus_section section = {"api", section_keys, sizeof api_settings, NULL};
    static const domus_program program = {.name = "api",
                                          .start = start_service,
                                          .stop = api_stop_event_board,
                                          .end = end_service,
                                          .section = &section,
                                          .settings = &api_settings,
                                          .front = &domus_tls_front,
                                          .observe = &domus_observe_front};

    return domus_main(argc, argv, &program);
}
