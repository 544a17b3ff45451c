/* Files of examples/api: a limit of the disk holds for all files together, also if several uploads
 * come at a time, and each file that is kept has its row in the database. The files are on the real
 * disk. */
#include "base/memory.h"
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
#define BLOCK                                                                                      \
    4096u /* bytes in a block of the disk; a file counts as whole blocks, and one block more */
#define DISK  (5 * BLOCK)
#define LARGE 30000u /* largest size in bytes of one uploaded file */

struct world {
    domus_testkit *kit;
    domus_peer *peer;
    domt_tree tree;
    char cookie[256];
};

/* A file of the test that an actor opens, because in a test kit api_open_directories() cannot. */
static struct opening {
    const char *path;
    uint32_t flags;
    domus_file *file; /* the opened file, which store_opened_file() sets */
} opening;

static int store_opened_file(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    ck_assert_int_eq(domus_take_answer(stack, answer), 0);
    opening.file = *(domus_file *const *)answer->payload;
    return 0;
}

static int open_file_on_mount(domus_stack *stack, void *self)
{
    return domus_file_open(stack, NULL, opening.path, opening.flags, 0600, store_opened_file);
}

static const domus_behaviour opener = {
    .name = "opener", .kind = DOMUS_STATE, .on_mount = open_file_on_mount};

static domus_file *open_file_by_actor(domus_testkit *kit, const char *path, uint32_t flags)
{
    domus_address address;

    opening = (struct opening){path, flags, NULL};
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(kit), &opener, NULL, &address), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_ptr_nonnull(opening.file);
    return opening.file;
}

/* Make a kit with the service and a database that has one issue, and log a user in. */
static void begin_world_with_issue(struct world *world)
{
    domt_tree_make(&world->tree);
    snprintf(api_settings.uploads, sizeof api_settings.uploads, "%.255s", world->tree.root);
    api_settings.disk = DISK;
    api_settings.upload_max = LARGE;
    world->kit = tracker_begin_service(1, 1000);
    api_files.uploads.root = open_file_by_actor(world->kit, api_settings.uploads,
                                                DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY);
    world->peer = domt_kit_connect_peer(world->kit, "127.0.0.1:80");
    tracker_log_user_in(world->kit, world->peer, "ada", world->cookie);
    const char *answer =
        tracker_send_request_and_read(world->kit, world->peer, "POST /issues", world->cookie,
                                      "{\"title\":\"a\",\"body\":\"b\",\"priority\":2}");
    ck_assert_msg(strncmp(answer, "HTTP/1.1 201 ", 13) == 0, "%s", answer);
}

static void end_world_and_check_memory(struct world *world)
{
    domus_file_close(api_files.uploads.root);
    tracker_end_service(world->kit);
    ck_assert_uint_eq(api_files.coming.used_bytes, 0);
    domt_tree_remove_copy(&world->tree);
}

#define LONG_NAME /* a name of 128 bytes */                                                        \
    "0123456789012345678901234567890123456789012345678901234567890123"                             \
    "0123456789012345678901234567890123456789012345678901234567890123"

static const char *filename = "f"; /* name of the file that the next upload has */

/* Send a file of this size for an issue, as a form, and do not wait for the answer. */
static void send_upload_of_file(const struct world *world, domus_peer *peer, const char *issue,
                                uint32_t size)
{
    static const char after[] = "\r\n--X--\r\n";
    static char text[40000];
    char before[256];
    int lead =
        snprintf(before, sizeof before,
                 "--X\r\nContent-Disposition: form-data; name=file; filename=%s\r\n\r\n", filename);
    int head = snprintf(text, sizeof text,
                        "POST /issues/%s/files HTTP/1.1\r\nHost: a\r\nCookie: %s\r\n"
                        "Content-Type: multipart/form-data; boundary=X\r\n"
                        "Content-Length: %zu\r\n\r\n%s",
                        issue, world->cookie, (size_t)lead + size + sizeof after - 1, before);

    ck_assert_uint_lt((size_t)head + size + sizeof after, sizeof text);
    for (uint32_t i = 0; i < size; i++)
        text[head + (int)i] = (char)('0' + i % 10);
    memcpy(text + head + size, after, sizeof after);
    domt_kit_peer_send(peer, text);
}

/* Return the answer that a peer has received, and clear it. The text is valid until the next
 * call. */
static const char *take_answer_of_peer(domus_peer *peer)
{
    static char text[4096];
    size_t got;

    const char *bytes = domus_peer_got(peer, &got);
    snprintf(text, sizeof text, "%.*s", (int)got, bytes);
    domus_peer_take(peer, got);
    return text;
}

/* Upload a file for an issue, and return the answer. */
static const char *upload_file_and_take_answer(const struct world *world, const char *issue,
                                               uint32_t size)
{
    send_upload_of_file(world, world->peer, issue, size);
    ck_assert_int_eq(domus_testkit_run(world->kit), 0);
    return take_answer_of_peer(world->peer);
}

static uint32_t count_files_in_directory(const struct world *world)
{
    DIR *directory = opendir(world->tree.root);
    uint32_t count = 0;

    ck_assert_ptr_nonnull(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static int64_t query_number_from_database(const struct world *world, const char *text)
{
    domus_sql_request request;
    domus_sql_result result;
    domus_probe *probe;
    int64_t number;

    ck_assert_int_eq(domus_probe_new(world->kit, &probe), 0);
    ck_assert_int_eq(domus_sql_request_make(api_database, NULL, text, NULL, 0, &request), 0);
    ck_assert_int_eq(domus_probe_ask(probe, api_database.at, &domus_sql_query_type, &request), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &domus_sql_result_type, SECOND, &result), 0);
    ck_assert_int_eq(domus_sql_get_int(&result, 0, 0, &number), 0);
    domus_sql_result_type.release(&result);
    return number;
}

/* Check that the directory and the database have `files` files, and that these count as `blocks`
 * blocks of the disk. */
static void check_files_and_blocks(const struct world *world, uint32_t files, uint32_t blocks)
{
    ck_assert_uint_eq(count_files_in_directory(world), files);
    ck_assert_int_eq(query_number_from_database(world, "SELECT count(*) FROM file"), files);
    ck_assert_int_eq(query_number_from_database(world, "SELECT used FROM disk"),
                     (int64_t)blocks * BLOCK);
}

/* Uploads that follow each other, to a disk of DISK bytes, and their results. */
static const struct {
    bool begins; /* whether the disk is empty before this upload */
    const char *issue;
    uint32_t size;
    const char *status;
    /* how many files are on the disk after the upload, and how many blocks they count */
    uint32_t files, blocks;
} rows[] = {
    {true, "1", LARGE + 1, "413", 0, 0},
    /* with its extra block this file alone is larger than the disk */
    {false, "1", LARGE, "507", 0, 0},
    {false, "1", 4 * BLOCK + 1, "507", 0, 0},
    {false, "2", 100, "404", 0, 0},
    {false, "1", 4 * BLOCK, "201", 1, 5},
    {false, "1", 1, "507", 1, 5},
    {true, "1", BLOCK + 1, "201", 1, 3},
    {false, "1", BLOCK + 1, "507", 1, 3},
    {false, "2", 1, "404", 1, 3},
    {false, "1", 1, "201", 2, 5},
    {false, "1", 1, "507", 2, 5},
};

DOMT_TEST(size_of_all_files_is_limited)
{
    struct world world;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].begins && i != 0)
            end_world_and_check_memory(&world);
        if (rows[i].begins)
            begin_world_with_issue(&world);
        const char *answer = upload_file_and_take_answer(&world, rows[i].issue, rows[i].size);
        ck_assert_msg(strncmp(answer, "HTTP/1.1 ", 9) == 0 &&
                          strncmp(answer + 9, rows[i].status, 3) == 0,
                      "row %zu: %s", i, answer);
        check_files_and_blocks(&world, rows[i].files, rows[i].blocks);
        /* the server has closed the connection of the upload that was too large */
        if (strcmp(rows[i].status, "413") == 0)
            world.peer = domt_kit_connect_peer(world.kit, "127.0.0.1:80");
    }
    end_world_and_check_memory(&world);
}

/* Several files are uploaded at the same time; the disk has room for two of them. */
DOMT_TEST(concurrent_uploads_share_the_limit)
{
    domus_peer *peers[6];
    struct world world;
    uint32_t made = 0;

    begin_world_with_issue(&world);
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        peers[i] = domt_kit_connect_peer(world.kit, "127.0.0.1:80");
        send_upload_of_file(&world, peers[i], "1", 10);
    }
    ck_assert_int_eq(domus_testkit_run(world.kit), 0);
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        const char *answer = take_answer_of_peer(peers[i]);
        made += strncmp(answer, "HTTP/1.1 201 ", 13) == 0;
        ck_assert_msg(strncmp(answer, "HTTP/1.1 201 ", 13) == 0 ||
                          strncmp(answer, "HTTP/1.1 507 ", 13) == 0,
                      "%s", answer);
    }
    ck_assert_uint_eq(made, 2);
    check_files_and_blocks(&world, 2, 4);
    end_world_and_check_memory(&world);
}

/* A file that cannot get its name loses its row, and the bytes that the row had reserved are free
 * again. The test removes the directory for the name before the last bytes come. */
DOMT_TEST(unnamed_file_leaves_no_row)
{
    struct world world;
    char path[512];

    begin_world_with_issue(&world);
    snprintf(path, sizeof path, "%.500s/.plain", world.tree.root);
    domus_file *plain = open_file_by_actor(world.kit, path, DOMUS_FILE_WRITE | DOMUS_FILE_CREATE);
    domus_file *root = api_files.uploads.root;
    send_upload_of_file(&world, world.peer, "1", 10);
    while (api_files.coming.used_bytes == 0)
        ck_assert(domus_testkit_step(world.kit));
    api_files.uploads.root = plain;
    ck_assert_int_eq(domus_testkit_run(world.kit), 0);
    const char *answer = take_answer_of_peer(world.peer);
    ck_assert_msg(strncmp(answer, "HTTP/1.1 500 ", 13) == 0, "%s", answer);
    check_files_and_blocks(&world, 0, 0);
    api_files.uploads.root = root;
    domus_file_close(plain);
    end_world_and_check_memory(&world);
}

/* An upload for which one allocation fails leaves nothing behind, whichever allocation it is; the
 * end of the test's world checks that. The name of the file is so long that the query for its row
 * allocates memory. */
DOMT_TEST(failed_upload_leaves_nothing)
{
    bool is_kept = false;

    for (int64_t count = 0; !is_kept; count++) {
        struct world world;
        begin_world_with_issue(&world);
        filename = LONG_NAME;
        send_upload_of_file(&world, world.peer, "1", 10);
        filename = "f";
        domi_memory_fail_allocation_after(count, 0);
        (void)domus_testkit_run(world.kit);
        domi_memory_fail_allocation_after(-1, 0);
        (void)domus_testkit_run(world.kit);
        is_kept = strncmp(take_answer_of_peer(world.peer), "HTTP/1.1 201 ", 13) == 0;
        /* The file is kept if there was no memory only for the answer to its upload. */
        uint32_t files = count_files_in_directory(&world);
        check_files_and_blocks(&world, files, 2 * files);
        ck_assert(files == 1 || !is_kept);
        ck_assert_int_lt(count, 1000);
        end_world_and_check_memory(&world);
    }
}

/* Answers with static files pass the service's chain: they carry the identifier of their request,
 * and failures are problem details. `%s` is the path of a file that was kept. */
static const struct {
    const char *line;
    const char *fields; /* fields that the request has behind its cookie */
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

DOMT_TEST(static_files_pass_the_chain)
{
    char line[160], place[64], cookie[64];
    struct world world;

    begin_world_with_issue(&world);
    const char *made = strstr(upload_file_and_take_answer(&world, "1", 5), "Location: ");
    ck_assert_ptr_nonnull(made);
    snprintf(place, sizeof place, "%.*s", (int)strcspn(made + 10, "\r"), made + 10);
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        snprintf(line, sizeof line, reads[i].line, place);
        snprintf(cookie, sizeof cookie, "a=b%s%s", reads[i].fields[0] != '\0' ? "\r\n" : "",
                 reads[i].fields);
        const char *answer = tracker_send_request_and_read(world.kit, world.peer, line, cookie, "");
        ck_assert_msg(
            strncmp(answer, "HTTP/1.1 ", 9) == 0 && strncmp(answer + 9, reads[i].status, 3) == 0 &&
                strstr(answer, reads[i].part) != NULL && strstr(answer, "X-Request-Id: ") != NULL,
            "row %zu: %s", i, answer);
    }
    end_world_and_check_memory(&world);
}

DOMT_SUITE(60)
