/* runtime/files/kept.c and load.c: a thread keeps the bytes of small files, and no load is answered
 * with bytes that the file no longer has. Most of these tests run in a test kit, on its virtual
 * clock. */
#include "tests/runtime/files.h"

#include "runtime/files/kept.h"
#include "runtime/loop/steps.h"
#include "runtime/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATHS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define KEPT       (DOMUS_FILE_BENEATH | DOMUS_FILE_KEPT)
#define MS         UINT64_C(1000000)
#define KIB        UINT64_C(1024)

static domt_done ask_clerk_to_load(domt_deed_kind kind, const char *const *paths, uint32_t flags,
                                   uint64_t size)
{
    return domt_file_order((domt_deed){
        .kind = kind, .file = domt_files_now.root, .paths = paths, .flags = flags, .size = size});
}

/* Load by kept bytes; if the kernel cannot do it at once, let a helper thread load first. That
 * happens when the kernel does not remember that a name does not exist, or when a link was not
 * followed in a later tick than the one in which it was made. */
static domt_done load_by_kept_bytes(const char *const *paths, uint64_t size)
{
    domt_done done = ask_clerk_to_load(DOMT_LOAD_NOW, paths, KEPT, size);

    for (int tries = 0; tries < 4 && done.error == -EAGAIN; tries++) {
        (void)usleep(5000);
        done = ask_clerk_to_load(DOMT_LOAD, paths, DOMUS_FILE_BENEATH, size);
        if (done.error != 0)
            return done;
        domus_slice_free(done.bytes);
        domus_file_close(done.file);
        done = ask_clerk_to_load(DOMT_LOAD_NOW, paths, KEPT, size);
    }
    return done;
}

static uint64_t count_loads_from_kept_bytes(void)
{
    return domt_profile_of_thread(domt_files_now.system, 0).files_kept;
}

/* Load `path`, and check the bytes and whether the load was answered with kept bytes. */
static void expect_load_is_from_kept(const char *path, const char *text, bool is_kept)
{
    uint64_t before = count_loads_from_kept_bytes();
    domt_done done = load_by_kept_bytes(PATHS(path), 100);

    ck_assert_msg(done.error == 0, "%s: %d", path, done.error);
    ck_assert_msg(domus_slice_equals(done.bytes, text, strlen(text)), "%s: %.*s", path,
                  (int)done.bytes.size, domus_slice_data(done.bytes));
    ck_assert_uint_eq(done.status.size, strlen(text));
    ck_assert_ptr_null(done.file);
    ck_assert_msg(count_loads_from_kept_bytes() - before == is_kept, "%s: kept %d", path, is_kept);
    domus_slice_free(done.bytes);
}

static void check_load_fails_with(const char *path, int error)
{
    ck_assert_int_eq(load_by_kept_bytes(PATHS(path), 100).error, error);
}

static void advance_kit_by_ms(uint64_t ms)
{
    ck_assert_int_eq(domus_testkit_advance(domt_files_now.kit, ms * MS), 0);
}

/* Load a file once, and twice 3 s later: only the last of these loads is answered with kept
 * bytes. */
static void expect_third_load_is_from_kept_bytes(const char *path, const char *text)
{
    expect_load_is_from_kept(path, text, false);
    advance_kit_by_ms(3000);
    expect_load_is_from_kept(path, text, false);
    expect_load_is_from_kept(path, text, true);
}

static void begin_files_in_kit_or_system(uint64_t max, uint64_t time_ms, bool in_kit)
{
    domus_config config = domt_config_of_threads(2);

    config.files.kept_max_bytes = max;
    config.files.kept_time_ns = time_ms * MS;
    domt_files_begin(&config, in_kit);
    domt_tree_write(&domt_files_now.tree, "a", "hello");
    domt_tree_write(&domt_files_now.tree, "b", "other");
    domt_tree_write(&domt_files_now.tree, "folder/c", "inner");
    domt_tree_write(&domt_files_now.tree, "second/c", "outer");
}

static void begin_files_in_kit(uint64_t max, uint64_t time_ms)
{
    begin_files_in_kit_or_system(max, time_ms, true);
}

DOMT_TEST(bytes_are_kept_once_the_file_was_the_same_for_a_while)
{
    begin_files_in_kit(64 * KIB, 0);
    expect_load_is_from_kept("a", "hello", false);
    advance_kit_by_ms(99);
    expect_load_is_from_kept("a", "hello", false);
    expect_load_is_from_kept("a", "hello", false);
    advance_kit_by_ms(3000);
    /* with this load the thread begins to keep the bytes */
    expect_load_is_from_kept("a", "hello", false);
    expect_load_is_from_kept("a", "hello", true);
    expect_load_is_from_kept("a", "hello", true);
    domt_done done = load_by_kept_bytes(PATHS("a"), 1); /* the file has more bytes than this size */
    ck_assert_int_eq(done.error, 0);
    ck_assert(domus_slice_equals(done.bytes, "hello", 5));
    domus_slice_free(done.bytes);
    done = ask_clerk_to_load(DOMT_LOAD_NOW, PATHS("a"), DOMUS_FILE_BENEATH, 100);
    ck_assert_int_eq(done.error, 0);
    domus_slice_free(done.bytes);
    ck_assert_uint_eq(count_loads_from_kept_bytes(), 3);
    ck_assert_int_eq(ask_clerk_to_load(DOMT_LOAD, PATHS("a"), KEPT, 100).returned, -EINVAL);
    domt_files_end();
}

/* Load the file "a" in a turn that first works for `ms`. Returns the earliest time at which the
 * load may have begun. */
static uint64_t load_in_long_turn(uint64_t ms)
{
    uint64_t begun_ns = domt_now_ns();
    domt_done done = domt_file_order((domt_deed){.kind = DOMT_LOAD_NOW,
                                                 .file = domt_files_now.root,
                                                 .paths = PATHS("a"),
                                                 .flags = KEPT,
                                                 .size = 100,
                                                 .position = ms});

    ck_assert(done.error == 0 || done.error == -EAGAIN);
    domus_slice_free(done.bytes);
    return begun_ns + ms * MS;
}

DOMT_TEST(time_of_turn_before_a_load_is_not_time_without_change)
{
    uint64_t between_ns = 0;

    begin_files_in_kit_or_system(64 * KIB, 0, false);
    for (int i = 0; i < 20; i++) {
        domt_tree_write(&domt_files_now.tree, "a", i % 2 == 0 ? "hello" : "adieu");
        uint64_t before = count_loads_from_kept_bytes();
        uint64_t first_ns = load_in_long_turn(110);
        (void)load_in_long_turn(0);
        between_ns = domt_now_ns() - first_ns;
        (void)load_in_long_turn(0);
        if (between_ns > 80 * MS) /* repeat, because another program has used the CPU in between */
            continue;
        ck_assert_uint_eq(count_loads_from_kept_bytes(), before);
        break;
    }
    domt_files_end();
}

DOMT_TEST(times_of_a_file_say_how_long_it_must_be_unchanged)
{
    domus_file_status status = {.modified_ns = 5, .changed_ns = 1000000000};

    ck_assert_uint_eq(domi_kept_time_file_must_be_unchanged(&status), 100 * MS);
    status.modified_ns = 7000000000;
    ck_assert_uint_eq(domi_kept_time_file_must_be_unchanged(&status), 3000 * MS);
    status.changed_ns = 1;
    ck_assert_uint_eq(domi_kept_time_file_must_be_unchanged(&status), 100 * MS);
}

DOMT_TEST(changed_file_is_seen_at_once)
{
    char from[PATH_MAX];

    begin_files_in_kit(64 * KIB, 0);
    expect_third_load_is_from_kept_bytes("a", "hello");
    /* the new bytes have the same size and are written in place */
    domt_tree_write(&domt_files_now.tree, "a", "HELLO");
    expect_third_load_is_from_kept_bytes("a", "HELLO");
    ck_assert_int_eq(truncate(domt_file_whole_path("a"), 2), 0);
    expect_third_load_is_from_kept_bytes("a", "HE");
    snprintf(from, sizeof from, "%s", domt_file_whole_path("b"));
    ck_assert_int_eq(rename(from, domt_file_whole_path("a")), 0);
    expect_third_load_is_from_kept_bytes("a", "other");
    const struct timespec times[2] = {{1700000000, 1}, {1700000000, 1}};
    ck_assert_int_eq(utimensat(AT_FDCWD, domt_file_whole_path("a"), times, 0), 0);
    /* this is another file with the same name, so its tag differs */
    expect_third_load_is_from_kept_bytes("a", "other");
    domt_tree_write(&domt_files_now.tree, "a", "OTHER");
    ck_assert_int_eq(utimensat(AT_FDCWD, domt_file_whole_path("a"), times, 0), 0);
    expect_third_load_is_from_kept_bytes(
        /* the new bytes have the old time of modification, but the file's time of change differs */
        "a", "OTHER");
    ck_assert_int_eq(unlink(domt_file_whole_path("a")), 0);
    check_load_fails_with("a", -ENOENT);
    domt_tree_write(&domt_files_now.tree, "a", "again");
    expect_third_load_is_from_kept_bytes("a", "again");
    ck_assert_int_eq(unlink(domt_file_whole_path("a")), 0);
    ck_assert_int_eq(mkdir(domt_file_whole_path("a"), 0700), 0);
    domt_done done = load_by_kept_bytes(PATHS("a"), 100);
    ck_assert(domus_file_is_directory(done.file));
    domus_file_close(done.file);
    domt_files_end();
}

/* A path may lead to another file although neither file has changed. */
DOMT_TEST(path_that_leads_elsewhere_is_seen_at_once)
{
    char from[PATH_MAX];

    begin_files_in_kit(64 * KIB, 0);
    ck_assert_int_eq(symlink("a", domt_file_whole_path("link")), 0);
    expect_third_load_is_from_kept_bytes("link", "hello");
    ck_assert_int_eq(unlink(domt_file_whole_path("link")), 0);
    ck_assert_int_eq(symlink("b", domt_file_whole_path("link")), 0);
    expect_third_load_is_from_kept_bytes("link", "other");
    ck_assert_int_eq(unlink(domt_file_whole_path("link")), 0);
    ck_assert_int_eq(symlink("/etc/passwd", domt_file_whole_path("link")), 0);
    check_load_fails_with("link", -EXDEV);

    expect_third_load_is_from_kept_bytes("folder/c", "inner");
    snprintf(from, sizeof from, "%s", domt_file_whole_path("folder"));
    ck_assert_int_eq(rename(from, domt_file_whole_path("old")), 0);
    check_load_fails_with("folder/c", -ENOENT);
    snprintf(from, sizeof from, "%s", domt_file_whole_path("second"));
    ck_assert_int_eq(rename(from, domt_file_whole_path("folder")), 0);
    expect_third_load_is_from_kept_bytes("folder/c", "outer");
    snprintf(from, sizeof from, "%s", domt_file_whole_path("folder"));
    ck_assert_int_eq(rename(from, domt_file_whole_path("second")), 0);
    ck_assert_int_eq(symlink("/etc", domt_file_whole_path("folder")), 0);
    check_load_fails_with("folder/c", -EXDEV);
    check_load_fails_with("folder/passwd", -EXDEV);
    domt_files_end();
}

DOMT_TEST(first_path_that_appears_is_seen_at_once)
{
    begin_files_in_kit(64 * KIB, 0);
    for (int i = 0; i < 3; i++) {
        domt_done done = load_by_kept_bytes(PATHS("a.gz", "a"), 100);
        ck_assert_uint_eq(done.index, 1);
        ck_assert(domus_slice_equals(done.bytes, "hello", 5));
        domus_slice_free(done.bytes);
        advance_kit_by_ms(3000);
    }
    /* for another list of paths the bytes are kept separately */
    expect_load_is_from_kept("a", "hello", false);
    domt_tree_write(&domt_files_now.tree, "a.gz", "packed");
    domt_done done = load_by_kept_bytes(PATHS("a.gz", "a"), 100);
    ck_assert_uint_eq(done.index, 0);
    ck_assert(domus_slice_equals(done.bytes, "packed", 6));
    domus_slice_free(done.bytes);

    char from[PATH_MAX]; /* Both paths are names of the same file, which does not change. */
    snprintf(from, sizeof from, "%s", domt_file_whole_path("folder/c"));
    ck_assert_int_eq(link(from, domt_file_whole_path("second/c.gz")), 0);
    for (int i = 0; i < 3; i++) {
        done = load_by_kept_bytes(PATHS("folder/c.gz", "folder/c"), 100);
        ck_assert_uint_eq(done.index, 1);
        domus_slice_free(done.bytes);
        advance_kit_by_ms(3000);
    }
    snprintf(from, sizeof from, "%s", domt_file_whole_path("folder"));
    ck_assert_int_eq(rename(from, domt_file_whole_path("old")), 0);
    snprintf(from, sizeof from, "%s", domt_file_whole_path("second"));
    ck_assert_int_eq(rename(from, domt_file_whole_path("folder")), 0);
    done = load_by_kept_bytes(PATHS("folder/c.gz", "folder/c"), 100);
    ck_assert_uint_eq(done.index, 0);
    ck_assert(domus_slice_equals(done.bytes, "inner", 5));
    domus_slice_free(done.bytes);
    domt_files_end();
}

DOMT_TEST(kept_files_are_told_apart_by_directory_handle)
{
    begin_files_in_kit(64 * KIB, 1000);
    expect_third_load_is_from_kept_bytes("folder/c", "inner");
    domus_file *folder = domt_file_must_open("folder", DOMUS_FILE_READ);
    domus_file *second = domt_file_must_open("second", DOMUS_FILE_READ);
    domus_file *root = domt_files_now.root;
    domt_files_now.root = folder;
    expect_third_load_is_from_kept_bytes("c", "inner");
    domt_files_now.root = second;
    expect_third_load_is_from_kept_bytes("c", "outer");
    domt_files_now.root = root;
    domus_file_close(folder);
    domus_file_close(second);
    domt_files_end();
}

DOMT_TEST(kept_time_says_how_old_an_answer_may_be)
{
    begin_files_in_kit(64 * KIB, 1000);
    expect_third_load_is_from_kept_bytes("a", "hello");
    domt_tree_write(&domt_files_now.tree, "a", "HELLO");
    advance_kit_by_ms(999);
    expect_load_is_from_kept("a", "hello", true);
    advance_kit_by_ms(1);
    expect_load_is_from_kept("a", "HELLO", false);
    expect_third_load_is_from_kept_bytes("b", "other");
    ck_assert_int_eq(unlink(domt_file_whole_path("b")), 0);
    expect_load_is_from_kept("b", "other", true);
    advance_kit_by_ms(1000);
    check_load_fails_with("b", -ENOENT);
    check_load_fails_with("b", -ENOENT);
    domt_files_end();
}

/* --- bounds ----------------------------------------------------------------------------------- */

#define FILES 40u

static void load_file_and_check_if_kept(const char *name, const char *text, bool is_kept)
{
    uint64_t before = count_loads_from_kept_bytes();
    domt_done done = load_by_kept_bytes(PATHS(name), 8192);

    ck_assert_int_eq(done.error, 0);
    ck_assert(domus_slice_equals(done.bytes, text, strlen(text)));
    ck_assert_msg(count_loads_from_kept_bytes() - before == is_kept, "%s: kept %d", name, is_kept);
    domus_slice_free(done.bytes);
}

static void load_many_files(uint32_t count, const char *text)
{
    char name[16];

    for (uint32_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "f%u", i);
        domt_done done = load_by_kept_bytes(PATHS(name), 8192);
        ck_assert_int_eq(done.error, 0);
        ck_assert(domus_slice_equals(done.bytes, text, strlen(text)));
        domus_slice_free(done.bytes);
    }
}

DOMT_TEST(kept_files_are_bounded)
{
    static char text[4000];
    char name[16];

    begin_files_in_kit(64 * KIB, 0);
    memset(text, 'x', sizeof text - 1);
    for (uint32_t i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "f%u", i);
        domt_tree_write(&domt_files_now.tree, name, text);
    }
    load_many_files(10, text); /* all these files can be kept at the same time */
    advance_kit_by_ms(3000);
    load_many_files(10, text);
    ck_assert_uint_eq(count_loads_from_kept_bytes(), 0);
    load_many_files(10, text);
    ck_assert_uint_eq(count_loads_from_kept_bytes(), 10);
    /* each file counts against the bound, even if its bytes are not kept */
    load_many_files(FILES, text);
    load_file_and_check_if_kept("f39", text, false);
    load_file_and_check_if_kept("f9", text, true);
    /* f0 is still kept, because others were used less recently */
    load_file_and_check_if_kept("f0", text, false);
    advance_kit_by_ms(3000);
    for (int i = 0; i < 3; i++) {
        load_many_files(FILES, text);
        advance_kit_by_ms(3000);
    }
    uint64_t before = count_loads_from_kept_bytes();
    load_many_files(FILES, text);
    ck_assert_uint_le(count_loads_from_kept_bytes() - before, 64 * KIB / sizeof text);
    before = count_loads_from_kept_bytes();

    static char large[9000];
    memset(large, 'y', sizeof large - 1);
    /* the file is larger than an eighth of the bytes that a thread may keep, so it is never kept */
    domt_tree_write(&domt_files_now.tree, "large", large);
    for (int i = 0; i < 3; i++) {
        domt_done done = load_by_kept_bytes(PATHS("large"), 10000);
        ck_assert_uint_eq(done.bytes.size, sizeof large - 1);
        domus_slice_free(done.bytes);
        advance_kit_by_ms(3000);
    }
    ck_assert_uint_eq(count_loads_from_kept_bytes(), before);
    domt_files_end();
}

DOMT_TEST(no_file_is_kept_with_kept_max_bytes_0)
{
    begin_files_in_kit(0, 0);
    for (int i = 0; i < 3; i++) {
        expect_load_is_from_kept("a", "hello", false);
        advance_kit_by_ms(3000);
    }
    domt_files_end();
}

DOMT_TEST(kept_files_are_forgotten_while_memory_is_short)
{
    begin_files_in_kit(64 * KIB, 0);
    expect_third_load_is_from_kept_bytes("a", "hello");
    advance_kit_by_ms(10);
    expect_load_is_from_kept("a", "hello", true);
    domi_thread *thread = &domt_files_now.system->threads[0];
    thread->manager.memory.at_max = true;
    thread->next_tick_ns = 0;
    domi_manager_become_owner(&thread->manager);
    domi_thread_run_phase_channels(thread);
    thread->manager.memory.at_max = false;
    expect_third_load_is_from_kept_bytes("a", "hello");
    domt_files_end();
}

DOMT_TEST(kept_bytes_outlive_their_file)
{
    begin_files_in_kit(64 * KIB, 0);
    expect_third_load_is_from_kept_bytes("a", "hello");
    domt_done done = load_by_kept_bytes(PATHS("a"), 100);
    ck_assert_uint_eq(count_loads_from_kept_bytes(), 2);
    domt_tree_write(&domt_files_now.tree, "a", "HELLO");
    expect_load_is_from_kept("a", "HELLO", false);
    ck_assert(domus_slice_equals(done.bytes, "hello", 5));
    domus_slice_free(done.bytes);
    domt_files_end();
}

DOMT_SUITE(60)
