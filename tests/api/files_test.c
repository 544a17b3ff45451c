/* Files of examples/api: all together have their bound, and each that is kept has its row. They are
 * on the real disk. */
#include "tests/api/tracker.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#include <api/api.h>

#include <domus/sql_driver.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

struct world {
    domus_testkit *kit;
    domus_peer *peer;
    domt_tree tree;
    char cookie[256];
};

/* An actor opens the directory, because in a kit api_files_begin() cannot. */
static int opened(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    ck_assert_int_eq(answer->error, 0);
    ck_assert_int_eq(domus_take_answer(stack, answer), 0);
    api_files.uploads.root = *(domus_file *const *)answer->payload;
    return 0;
}

static int open_root(domus_stack *stack, void *self)
{
    (void)self;
    return domus_file_open(stack, NULL, api_settings.uploads,
                           DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY, 0, opened);
}

static const domus_behaviour opener = {
    .name = "opener", .kind = DOMUS_STATE, .on_mount = open_root};

/* Begin with an issue, by somebody who is logged in. */
static void begin(struct world *world, uint64_t disk)
{
    domus_address address;

    domt_tree_make(&world->tree);
    snprintf(api_settings.uploads, sizeof api_settings.uploads, "%.255s", world->tree.root);
    api_settings.disk = disk;
    api_files.coming.bytes_max = 2 * disk;
    world->kit = tracker_begin(1, 1000);
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(world->kit), &opener, NULL, &address),
                     0);
    world->peer = domt_kit_peer(world->kit, "127.0.0.1:80");
    tracker_log_in(world->kit, world->peer, "ada", world->cookie);
    const char *answer = tracker_ask(world->kit, world->peer, "POST /issues", world->cookie,
                                     "{\"title\":\"a\",\"body\":\"b\",\"priority\":2}");
    ck_assert_msg(strncmp(answer, "HTTP/1.1 201 ", 13) == 0, "%s", answer);
}

static void end(struct world *world)
{
    domus_file_close(api_files.uploads.root);
    tracker_end(world->kit);
    ck_assert_uint_eq(api_files.coming.used_bytes, 0);
    domt_tree_remove(&world->tree);
}

/* Send a file of this size for an issue. */
static void send_file(const struct world *world, domus_peer *peer, const char *issue, uint32_t size)
{
    static const char before[] =
        "--X\r\nContent-Disposition: form-data; name=file; filename=f\r\n\r\n";
    static const char after[] = "\r\n--X--\r\n";
    static char text[16384];
    int head = snprintf(text, sizeof text,
                        "POST /issues/%s/files HTTP/1.1\r\nHost: a\r\nCookie: %s\r\n"
                        "Content-Type: multipart/form-data; boundary=X\r\n"
                        "Content-Length: %zu\r\n\r\n%s",
                        issue, world->cookie, sizeof before - 1 + size + sizeof after - 1, before);

    ck_assert_uint_lt((size_t)head + size + sizeof after, sizeof text);
    for (uint32_t i = 0; i < size; i++)
        text[head + (int)i] = (char)('0' + i % 10);
    memcpy(text + head + size, after, sizeof after);
    domt_kit_send(peer, text);
}

/* Upload a file, and return the answer. */
static const char *upload(const struct world *world, const char *issue, uint32_t size)
{
    static char text[4096];
    size_t got;

    send_file(world, world->peer, issue, size);
    ck_assert_int_eq(domus_testkit_run(world->kit), 0);
    const char *bytes = domus_peer_got(world->peer, &got);
    snprintf(text, sizeof text, "%.*s", (int)got, bytes);
    domus_peer_take(world->peer, got);
    return text;
}

static uint32_t count_files(const struct world *world)
{
    DIR *directory = opendir(world->tree.root);
    uint32_t count = 0;

    ck_assert_ptr_nonnull(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static int64_t count_rows(const struct world *world)
{
    domus_sql_request request;
    domus_sql_result result;
    domus_probe *probe;
    int64_t count;

    ck_assert_int_eq(domus_probe_new(world->kit, &probe), 0);
    ck_assert_int_eq(
        domus_sql_request_make(api_database, NULL, "SELECT count(*) FROM file", NULL, 0, &request),
        0);
    ck_assert_int_eq(domus_probe_ask(probe, api_database.at, &domus_sql_query_type, &request), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &domus_sql_result_type, SECOND, &result), 0);
    ck_assert_int_eq(domus_sql_get_int(&result, 0, 0, &count), 0);
    domus_sql_result_type.release(&result);
    return count;
}

/* Uploads in their order, with a disk of 1,000 bytes. */
static const struct {
    const char *issue;
    uint32_t size;
    const char *status;
    uint32_t files; /* then */
} rows[] = {
    {"1", 2001, "503", 0}, /* alone it is more than may come at a time */
    {"1", 1001, "507", 0}, /* or than all may be */
    {"1", 400, "201", 1},  {"2", 100, "404", 1}, {"1", 601, "507", 1},
    {"1", 600, "201", 2},  {"1", 1, "507", 2},
};

START_TEST(all_files_have_a_bound)
{
    struct world world;

    begin(&world, 1000);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *answer = upload(&world, rows[i].issue, rows[i].size);
        ck_assert_msg(strncmp(answer, "HTTP/1.1 ", 9) == 0 &&
                          strncmp(answer + 9, rows[i].status, 3) == 0,
                      "row %zu: %s", i, answer);
        ck_assert_uint_eq(count_files(&world), rows[i].files);
        ck_assert_int_eq(count_rows(&world), rows[i].files);
    }
    end(&world);
}
END_TEST

/* Static files pass the chain as all answers do: with the name of their request, and their failures
 * as problem details. `%s` is the path of a file that was kept. */
static const struct {
    const char *line;
    const char *fields; /* behind a cookie */
    const char *status;
    const char *part;
} reads[] = {
    {"GET %s", "", "200", "\r\n\r\n01234"},
    {"HEAD %s", "", "200", "Content-Length: 5\r\n"},
    {"GET %s", "Range: bytes=1-2", "206", "\r\n\r\n12"},
    {"GET %s", "If-None-Match: *", "304", "ETag: "},
    {"GET %s", "Range: bytes=9-", "416", "application/problem+json"},
    {"GET %sx", "", "404", "application/problem+json"},
    {"GET /files/../api.yaml", "", "404", "application/problem+json"},
};

START_TEST(files_go_through_the_chain)
{
    char line[160], place[64], cookie[64];
    struct world world;

    begin(&world, 1000);
    const char *made = strstr(upload(&world, "1", 5), "Location: ");
    ck_assert_ptr_nonnull(made);
    snprintf(place, sizeof place, "%.*s", (int)strcspn(made + 10, "\r"), made + 10);
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        snprintf(line, sizeof line, reads[i].line, place);
        snprintf(cookie, sizeof cookie, "a=b%s%s", reads[i].fields[0] != '\0' ? "\r\n" : "",
                 reads[i].fields);
        const char *answer = tracker_ask(world.kit, world.peer, line, cookie, "");
        ck_assert_msg(
            strncmp(answer, "HTTP/1.1 ", 9) == 0 && strncmp(answer + 9, reads[i].status, 3) == 0 &&
                strstr(answer, reads[i].part) != NULL && strstr(answer, "X-Request-Id: ") != NULL,
            "row %zu: %s", i, answer);
    }
    end(&world);
}
END_TEST

DOMT_MAIN("files", 60, all_files_have_a_bound, files_go_through_the_chain)
