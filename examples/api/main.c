/* A bug tracker: a service as people build them, with a database, sessions, uploads and a page.
 *
 *   ./dev run api --config examples/api/api.yaml      then http://127.0.0.1:7010/
 *   ./dev run api --pg                                the same with a PostgreSQL of its own
 *
 * Begin with api.h, which tells the way of a request. */
#include "api.h"

#include <domus/await.h>
#include <domus/http_access.h>
#include <domus/http_session.h>
#include <domus/main.h>
#include <domus/observe.h>
#include <domus/pg.h>
#include <domus/sqlite.h>
#include <domus/tls.h>

#include <errno.h>
#include <stdio.h>

struct api_settings api_settings;
domus_sql api_database;
domus_address api_board;

/* --- the keeper: what has to be there before a request is taken ------------------------------- */

static const domus_type prepare_type = {.name = "prepare"};
static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, &domus_pg_driver, NULL};

/* Keep the directory that was opened. */
static int keep_directory(domus_stack *stack, const domus_answer *answer, domus_http_files *files)
{
    if (answer->error != 0)
        return answer->error;
    int error = domus_take_answer(stack, answer);
    if (error == 0)
        files->root = *(domus_file *const *)answer->payload;
    return error;
}

DOMUS_SEQUENCE(prepare, char)
{
    const domus_sql_options options = {.drivers = drivers,
                                       .connections_max = api_settings.connections};
    const domus_sql_result *done;
    int error;

    DOMUS_BEGIN;
    if ((error = domus_sql_open(stack, api_settings.database, &options, &api_database)) != 0)
        return error;
    DOMUS_AWAIT(domus_sql_migrate(stack, api_database, api_migrations, then));
    if ((error = domus_sql_result_of(answer, &done)) != 0) {
        const domus_sql_error *failure = domus_sql_error_of(answer);

        fprintf(stderr, "api: the database: %s\n", failure != NULL ? failure->message : "away");
        return error;
    }
    DOMUS_AWAIT(domus_file_open(stack, NULL, api_settings.pages,
                                DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY, 0, then));
    if ((error = keep_directory(stack, answer, &api_pages)) != 0)
        return error;
    DOMUS_AWAIT(domus_file_make_directory(stack, NULL, api_settings.uploads, 0, 0700, then));
    DOMUS_AWAIT(domus_file_open(stack, NULL, api_settings.uploads,
                                DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY, 0, then));
    if ((error = keep_directory(stack, answer, &api_uploads)) != 0)
        return error;
    if ((error = domus_http_access_open(stack, &api_access)) != 0)
        return error;
    return domus_reply(stack, &prepare_type, NULL);
    DOMUS_END;
}

static const domus_behaviour keeper = {
    .name = "keeper",
    .kind = DOMUS_STATE,
    .on = (const domus_on[]){DOMUS_ON(&prepare_type, prepare), {0}},
};

/* --- the program ------------------------------------------------------------------------------ */

static int start(domus_system *system, void *argument)
{
    domus_outside_reply reply = {.buffer = NULL};
    char words[DOMUS_HTTP_KEYS_WORDS];
    domus_address address;
    int error = api_people_begin(words, sizeof words);

    (void)argument;
    if (error != 0) {
        fprintf(stderr, "api: api.keys: %s\n", words);
        return error;
    }
    api_site_begin();
    error = domus_outside_spawn(system, &api_board_behaviour, NULL, &api_board);
    if (error == 0)
        error = domus_outside_spawn(system, &keeper, NULL, &address);
    if (error == 0)
        error = domus_outside_ask(system, address, &prepare_type, NULL, 60 * UINT64_C(1000000000),
                                  &reply);
    return error != 0 ? error : domus_main_serve(system, "api", &api_site, NULL);
}

/* Events have no end of their own, and would hold up the drain. */
static void stop(domus_system *system, void *argument)
{
    (void)argument;
    (void)domus_outside_stop(system, api_board);
}

static void end(domus_system *system, void *argument)
{
    (void)system, (void)argument;
    domus_file_close(api_pages.root);
    domus_file_close(api_uploads.root);
    api_site_end();
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
    {DOMUS_KEY_TEXT("accessLog", TEXT, struct api_settings, access_log, 0, "")},
    {DOMUS_KEY("rate", COUNT, struct api_settings, rate, 1, 1000000, 100)},
    {.path = NULL}};

int main(int argc, char **argv)
{
    static const domus_section section = {"api", section_keys, sizeof api_settings, NULL};
    static const domus_program program = {.name = "api",
                                          .start = start,
                                          .stop = stop,
                                          .end = end,
                                          .section = &section,
                                          .settings = &api_settings,
                                          .front = &domus_tls_front,
                                          .observe = &domus_observe_front};

    return domus_main(argc, argv, &program);
}
