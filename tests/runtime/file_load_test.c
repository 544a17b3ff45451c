/* runtime/files/load.c: the first of some paths is opened, looked at and read; in the call and by a
 * helper thread with the same result, on real threads and in a kit. */
#include "tests/runtime/files.h"

#include "runtime/files/handle.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATHS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define BENEATH    DOMUS_FILE_BENEATH

static domt_done ask(domt_deed_kind kind, const char *const *paths, uint32_t flags, uint64_t size)
{
    domt_done done = domt_file_do((domt_deed){.kind = kind,
                                              .file = domt_files_now.root,
                                              .paths = paths,
                                              .flags = flags,
                                              .size = size,
                                              .position = 7});

    if (kind == DOMT_LOAD && done.returned == 0)
        ck_assert_uint_eq(done.tag, 7); /* with an error, too */
    return done;
}

/* The kernel may not have in memory that a name is not there, and never knows at once that a file
 * is no folder. Then a helper tells. */
static domt_done load(domt_deed_kind kind, const char *const *paths, uint32_t flags, uint64_t size)
{
    domt_done done = ask(kind, paths, flags, size);

    return done.error == -EAGAIN ? ask(DOMT_LOAD, paths, flags, size) : done;
}

static void hold_bytes(domt_deed_kind kind, const char *const *paths, uint32_t index,
                       const char *text)
{
    domt_done done = load(kind, paths, BENEATH, 100);

    ck_assert_int_eq(done.error, 0);
    ck_assert_uint_eq(done.index, index);
    ck_assert_ptr_null(done.file);
    ck_assert_uint_eq(done.status.size, strlen(text));
    ck_assert(domus_slice_equals(done.bytes, text, strlen(text)));
    domus_slice_free(done.bytes);
}

/* Check that a file is open, and nothing was read. */
static void hold_open(domt_deed_kind kind, const char *path, uint64_t size, bool is_directory)
{
    domt_done done = load(kind, PATHS(path), 0, size);

    ck_assert_int_eq(done.error, 0);
    ck_assert_uint_eq(done.bytes.size, 0);
    ck_assert_ptr_nonnull(done.file);
    ck_assert_int_eq(domus_file_is_directory(done.file), is_directory);
    ck_assert_int_eq(S_ISDIR(done.status.mode), is_directory);
    if (!is_directory)
        domt_file_must_read(done.file, 1, 3, "ell");
    domus_file_close(done.file);
}

static void make_files(void)
{
    domt_tree_write(&domt_files_now.tree, "a", "hello");
    domt_tree_write(&domt_files_now.tree, "empty", "");
    domt_tree_write(&domt_files_now.tree, "folder/b", "world");
    ck_assert_int_eq(mkfifo(domt_file_path("fifo"), 0600), 0);
    ck_assert_int_eq(symlink("/etc", domt_file_path("out")), 0);
}

static void hold_all(domt_deed_kind kind)
{
    struct stat status;

    hold_bytes(kind, PATHS("a"), 0, "hello");
    hold_bytes(kind, PATHS("empty"), 0, "");
    hold_bytes(kind, PATHS("folder/b", "a"), 0, "world");
    hold_bytes(kind, PATHS("none", "a/b", "folder", "a"), 3, "hello");
    hold_bytes(kind, PATHS("fifo", "out/passwd", "a", "none"), 2, "hello");
    hold_open(kind, "a", 4, false);
    hold_open(kind, "a", 0, false);
    hold_open(kind, "folder", 100, true);
    domt_done done = load(kind, PATHS("a"), 0, 5);
    ck_assert_int_eq(stat(domt_file_path("a"), &status), 0);
    ck_assert_uint_eq(done.status.inode, status.st_ino);
    ck_assert_uint_eq(done.status.device, status.st_dev);
    ck_assert_uint_eq(done.status.links, 1);
    ck_assert_int_eq(done.status.modified_ns,
                     status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec);
    domus_slice_free(done.bytes);
    ck_assert_int_eq(load(kind, PATHS("none"), 0, 1).error, -ENOENT);
    ck_assert_int_eq(load(kind, PATHS("a/b"), 0, 1).error, -ENOTDIR);
    ck_assert_int_eq(load(kind, PATHS("fifo"), 0, 1).error, -EINVAL);
    ck_assert_int_eq(load(kind, PATHS("out/passwd"), BENEATH, 1).error, -EXDEV);
    ck_assert_int_eq(load(kind, PATHS("../a"), BENEATH, 1).error, -EXDEV);
}

static void hold_wrong(domt_deed_kind kind)
{
    static char path[4097];

    memset(path, 'a', sizeof path - 1);
    ck_assert_int_eq(load(kind, NULL, 0, 1).returned, -EINVAL);
    ck_assert_int_eq(load(kind, (const char *const[]){NULL}, 0, 1).returned, -EINVAL);
    ck_assert_int_eq(load(kind, PATHS("a", ""), 0, 1).returned, -EINVAL);
    ck_assert_int_eq(load(kind, PATHS("n", "n", "n", "n", "a"), 0, 1).returned, -EINVAL);
    ck_assert_int_eq(load(kind, PATHS("a"), DOMUS_FILE_READ, 1).returned, -EINVAL);
    ck_assert_int_eq(load(kind, PATHS(path), 0, 1).returned, -ENAMETOOLONG);
    ck_assert_int_eq(load(kind, PATHS("a"), 0, (1u << 20) + 1).returned, -EMSGSIZE);
    hold_bytes(kind, PATHS("n", "n", "n", "a"), 3, "hello");
    domt_done done = load(kind, PATHS("a"), 0, 1u << 20);
    ck_assert_uint_eq(done.bytes.size, 5);
    domus_slice_free(done.bytes);
}

DOMT_TEST(file_is_loaded_in_the_call_and_by_a_helper)
{
    for (int in_kit = 0; in_kit < 2; in_kit++) {
        domt_files_begin(NULL, in_kit != 0);
        make_files();
        hold_all(DOMT_LOAD_NOW);
        uint64_t helped = domt_helped();
        hold_bytes(DOMT_LOAD_NOW, PATHS("none", "folder", "a"), 2, "hello");
        hold_open(DOMT_LOAD_NOW, "folder", 100, true);
        ck_assert_uint_eq(domt_helped(), helped);
        hold_all(DOMT_LOAD);
        ck_assert(in_kit != 0 || domt_helped() > helped);
        hold_wrong(DOMT_LOAD_NOW);
        hold_wrong(DOMT_LOAD);
        domt_files_end();
    }
}

DOMT_TEST(open_files_are_bounded)
{
    domus_config config = domt_config(2);

    config.files.open_max = 2; /* the directory is one of them */
    domt_files_begin(&config, false);
    make_files();
    domt_done first = load(DOMT_LOAD_NOW, PATHS("a"), 0, 0);
    ck_assert_int_eq(first.error, 0);
    ck_assert_int_eq(load(DOMT_LOAD_NOW, PATHS("a"), 0, 0).error, -EMFILE);
    ck_assert_int_eq(load(DOMT_LOAD, PATHS("a"), 0, 0).error, -EMFILE);
    hold_bytes(DOMT_LOAD_NOW, PATHS("a"), 0, "hello"); /* it is closed when this returns */
    domus_file_close(first.file);
    hold_open(DOMT_LOAD, "a", 0, false);
    domt_files_end();
}

DOMT_SUITE(60)
