/* runtime/os/disk.c and runtime/files/load.c: files are renamed, directories are listed, and no
 * path leads out of a directory. A file without a name is gone with its handle, unless it was given
 * a name. The first of several paths that can be opened is opened, looked at and read. The tests
 * run in a test kit and in a real system. */
#include "tests/runtime/files.h"

#include "runtime/files/handle.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static int error_of_file_operation(domt_deed deed)
{
    domt_done done = domt_file_order(deed);

    ck_assert_ptr_null(done.file);
    ck_assert_uint_eq(done.bytes.size, 0);
    return done.error;
}

/* --- names ------------------------------------------------------------------------------------ */

static int error_of_rename(domus_file *from_file, const char *from, const char *to, uint32_t flags)
{
    return error_of_file_operation((domt_deed){.kind = DOMT_RENAME,
                                               .file = from_file,
                                               .path = from,
                                               .to_file = domt_files_now.root,
                                               .to = to,
                                               .flags = flags});
}

static int error_of_remove(const char *path, uint32_t flags)
{
    return error_of_file_operation((domt_deed){
        .kind = DOMT_REMOVE, .file = domt_files_now.root, .path = path, .flags = flags});
}

static int error_of_make_directory(const char *path, uint32_t flags)
{
    return error_of_file_operation((domt_deed){.kind = DOMT_MAKE_DIRECTORY,
                                               .file = domt_files_now.root,
                                               .path = path,
                                               .flags = flags,
                                               .mode = 0755});
}

static void check_names_of_directory_entries(void)
{
    domus_file *root = domt_files_now.root;

    for (uint32_t flags = 0; flags <= DOMUS_FILE_BENEATH; flags += DOMUS_FILE_BENEATH) {
        domt_tree_write(&domt_files_now.tree, "one", "1");
        domt_tree_write(&domt_files_now.tree, "two", "2");
        ck_assert_int_eq(error_of_make_directory("folder", flags), 0);
        ck_assert_int_eq(error_of_make_directory("folder", flags), -EEXIST);
        ck_assert_int_eq(error_of_make_directory("folder/inner", flags), 0);
        ck_assert_int_eq(error_of_make_directory("none/inner", flags), -ENOENT);
        ck_assert_int_eq(error_of_rename(root, "one", "two", flags | DOMUS_FILE_EXCLUSIVE),
                         -EEXIST);
        ck_assert_int_eq(error_of_rename(root, "one", "folder/one", flags | DOMUS_FILE_EXCLUSIVE),
                         0);
        ck_assert_int_eq(error_of_rename(root, "one", "folder/one", flags), -ENOENT);
        ck_assert_int_eq(error_of_rename(root, "folder/one", "two", flags), 0);
        domus_file *file = domt_file_must_open("two", DOMUS_FILE_READ);
        domt_file_must_read(file, 0, 9, "1");
        domus_file_close(file);
        ck_assert_int_eq(error_of_remove("folder", flags), -EISDIR);
        ck_assert_int_eq(error_of_remove("folder", flags | DOMUS_FILE_DIRECTORY), -ENOTEMPTY);
        ck_assert_int_eq(error_of_remove("two", flags | DOMUS_FILE_DIRECTORY), -ENOTDIR);
        ck_assert_int_eq(error_of_remove("folder/inner", flags | DOMUS_FILE_DIRECTORY), 0);
        ck_assert_int_eq(error_of_remove("folder", flags | DOMUS_FILE_DIRECTORY), 0);
        ck_assert_int_eq(error_of_remove("two", flags), 0);
        ck_assert_int_eq(error_of_remove("two", flags), -ENOENT);
        static const char *const odd[] = {".", "..", "a/", "a/.", "a/..", "/"};
        for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
            ck_assert_int_eq(error_of_remove(odd[i], flags), -EINVAL);
            ck_assert_int_eq(error_of_make_directory(odd[i], flags), -EINVAL);
            ck_assert_int_eq(error_of_rename(root, "a", odd[i], flags), -EINVAL);
        }
    }
}

DOMT_TEST(rename_and_remove_change_names)
{
    domt_files_run_in_kit_and_system(check_names_of_directory_entries);
}

/* Check that no path reaches a file outside of the directory `inside`. */
static void check_no_path_leaves_directory(void)
{
    domt_tree *tree = &domt_files_now.tree;
    const uint32_t beneath = DOMUS_FILE_BENEATH;
    char outside[PATH_MAX];

    domt_tree_write(tree, "secret", "secret");
    domt_tree_write(tree, "inside/text", "text");
    domt_tree_write(tree, "inside/folder/deep", "deep");
    snprintf(outside, sizeof outside, "%s", domt_file_whole_path("secret"));
    ck_assert_int_eq(symlink("../secret", domt_file_whole_path("inside/up")), 0);
    ck_assert_int_eq(symlink(outside, domt_file_whole_path("inside/whole")), 0);
    ck_assert_int_eq(symlink("..", domt_file_whole_path("inside/parent")), 0);
    ck_assert_int_eq(symlink("text", domt_file_whole_path("inside/fine")), 0);
    ck_assert_int_eq(symlink("folder/../text", domt_file_whole_path("inside/round")), 0);
    ck_assert_int_eq(symlink("../text", domt_file_whole_path("inside/folder/back")), 0);
    ck_assert_int_eq(symlink("loop", domt_file_whole_path("inside/loop")), 0);
    domus_file *before = domt_files_now.root;
    domt_files_now.root = domt_file_must_open("inside", DOMUS_FILE_READ);

    static const char *const out[] = {"../secret",
                                      "/etc/passwd",
                                      "up",
                                      "whole",
                                      "parent/secret",
                                      "folder/../../secret",
                                      "folder/../parent/secret",
                                      "..",
                                      "/"};
    domus_file *file = NULL;
    for (size_t i = 0; i < sizeof out / sizeof out[0]; i++) {
        ck_assert_msg(domt_file_open(out[i], DOMUS_FILE_READ | beneath, &file) == -EXDEV, "%s",
                      out[i]);
        if (i < 2) /* without the flag the kernel does not check where `..` in a path leads */
            ck_assert_int_eq(domt_file_open(out[i], DOMUS_FILE_READ, &file), 0);
        domus_file_close(file);
        file = NULL;
    }
    static const char *const made[] = {"../made", "/made", "parent/made", "folder/../../made"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        ck_assert_int_eq(
            domt_file_open(made[i], DOMUS_FILE_WRITE | DOMUS_FILE_CREATE | beneath, &file), -EXDEV);
        ck_assert_int_eq(error_of_make_directory(made[i], beneath), -EXDEV);
        ck_assert_int_eq(error_of_remove(made[i], beneath), -EXDEV);
        ck_assert_int_eq(error_of_rename(domt_files_now.root, "text", made[i], beneath), -EXDEV);
        ck_assert_int_eq(error_of_rename(domt_files_now.root, made[i], "text", beneath), -EXDEV);
    }
    static const char *const in[] = {"text", "fine", "round", "folder/back", "folder/../text"};
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        file = domt_file_must_open(in[i], DOMUS_FILE_READ | beneath);
        domt_file_must_read(file, 0, 99, "text");
        domus_file_close(file);
    }
    ck_assert_int_eq(domt_file_open("loop", DOMUS_FILE_READ | beneath, &file), -ELOOP);
    /* To remove a path that ends with a link removes the link itself. */
    ck_assert_int_eq(error_of_remove("up", beneath), 0);
    ck_assert_int_eq(access(outside, F_OK), 0);
    domus_file_close(domt_files_now.root);
    domt_files_now.root = before;
    ck_assert_int_eq(access(domt_file_whole_path("made"), F_OK), -1);

    domt_done done = domt_file_order((domt_deed){.path = "/proc/self", .flags = DOMUS_FILE_READ});
    ck_assert_int_eq(done.error, 0);
    domus_file *process = done.file;
    done = domt_file_order(
        (domt_deed){.file = process, .path = "cwd", .flags = DOMUS_FILE_READ | beneath});
    ck_assert(done.error == -ELOOP || done.error == -EXDEV);
    domus_file_close(process);
}

DOMT_TEST(nothing_leads_out_of_a_directory)
{
    domt_files_run_in_kit_and_system(check_no_path_leaves_directory);
}

/* --- listings --------------------------------------------------------------------------------- */

/* List the directory in pieces of at most `most` entries, and check that each of `count` files is
 * listed once. Returns the number of pieces. */
static uint32_t check_listing_in_pieces(uint32_t count, uint32_t most)
{
    static bool seen[2000];
    domt_deed deed = {.kind = DOMT_LIST, .file = domt_files_now.root};
    uint32_t pieces = 0;
    uint32_t total = 0;
    bool last = false;

    memset(seen, 0, sizeof seen);
    while (!last) {
        domt_done done = domt_file_order(deed);
        ck_assert_int_eq(done.error, 0);
        ck_assert_uint_le(done.entries.count, most);
        domus_file_entry entry;
        uint32_t found = 0;
        for (uint32_t at = 0; domus_file_next_entry(&done.entries, &at, &entry); found++) {
            uint32_t number = (uint32_t)strtoul(entry.name, NULL, 10);
            ck_assert_uint_lt(number, count);
            ck_assert(!seen[number]);
            ck_assert_uint_ne(entry.inode, 0);
            ck_assert_int_eq(entry.kind,
                             number % 2 == 0 ? DOMUS_FILE_IS_REGULAR : DOMUS_FILE_IS_LINK);
            seen[number] = true;
        }
        ck_assert_uint_eq(found, done.entries.count);
        total += found;
        pieces++;
        deed.position = done.entries.next;
        last = done.entries.last;
        domus_slice_free(done.bytes);
    }
    ck_assert_uint_eq(total, count);
    return pieces;
}

static void make_entries_of_directory(uint32_t from, uint32_t to, const char *tail)
{
    for (uint32_t i = from; i < to; i++) {
        char name[256];
        snprintf(name, sizeof name, "%u%s", i, tail);
        if (i % 2 == 0)
            domt_tree_write(&domt_files_now.tree, name, "");
        else
            ck_assert_int_eq(symlink("x", domt_file_whole_path(name)), 0);
    }
}

DOMT_TEST(directories_are_listed_in_pieces)
{
    static const char tail[] =
        "-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; /* names of nearly 255 bytes */

    for (int kit = 0; kit < 2; kit++) {
        domus_config config = domt_config_of_threads(2);
        config.files.list_max = 7;
        domt_files_begin(&config, kit != 0);
        ck_assert_uint_eq(check_listing_in_pieces(0, 7), 1);
        make_entries_of_directory(0, 7, "");
        ck_assert_uint_le(check_listing_in_pieces(7, 7), 2);
        make_entries_of_directory(7, 100, "");
        ck_assert_uint_ge(check_listing_in_pieces(100, 7), 15);
        domt_files_end();

        config.files.list_max = 4096;
        domt_files_begin(&config, kit != 0);
        make_entries_of_directory(0, 300, tail);
        /* names of 200 bytes fill several pieces, because a piece has at most 16 KiB */
        ck_assert_uint_ge(check_listing_in_pieces(300, 16384 / 200), 4);
        domt_files_end();

        domt_files_begin(NULL, kit != 0);
        make_entries_of_directory(0, 1000, "");
        ck_assert_uint_ge(check_listing_in_pieces(1000, 256), 4);
        domt_files_end();
    }
}

/* --- files without a name --------------------------------------------------------------------- */

#define UNNAMED (DOMUS_FILE_UNNAMED | DOMUS_FILE_WRITE | DOMUS_FILE_READ)

static domus_file *make_unnamed_file(const char *in, uint32_t flags)
{
    domt_done done = domt_file_order((domt_deed){
        .file = domt_files_now.root, .path = in, .flags = UNNAMED | flags, .mode = 0640});

    ck_assert_int_eq(done.error, 0);
    return done.file;
}

static int error_of_link(domus_file *file, const char *name, uint32_t flags)
{
    return domt_file_order((domt_deed){.kind = DOMT_LINK,
                                       .file = file,
                                       .to_file = domt_files_now.root,
                                       .to = name,
                                       .flags = flags})
        .error;
}

static void check_unnamed_files_get_names(void)
{
    domt_tree_write(&domt_files_now.tree, "taken", "taken");
    domt_tree_write(&domt_files_now.tree, "folder/one", "1");
    for (uint32_t flags = 0; flags <= DOMUS_FILE_BENEATH; flags += DOMUS_FILE_BENEATH) {
        struct stat status;
        domus_file *file = make_unnamed_file(".", flags);
        ck_assert_int_eq(access(domt_file_whole_path("."), F_OK), 0);
        domt_file_must_write(file, 0, "hello");
        domt_file_must_read(file, 0, 9, "hello");
        ck_assert_int_eq(error_of_link(file, "taken", flags), -EEXIST);
        ck_assert_int_eq(error_of_link(file, "none/x", flags), -ENOENT);
        ck_assert_int_eq(error_of_link(file, "a/", flags), -EINVAL);
        ck_assert_int_eq(error_of_link(file, "folder/named", flags), 0);
        domus_file_close(file);
        ck_assert_int_eq(stat(domt_file_whole_path("folder/named"), &status), 0);
        ck_assert_uint_eq(status.st_mode & 07777, 0640);
        ck_assert_int_eq(status.st_size, 5);
        ck_assert_int_eq(unlink(domt_file_whole_path("folder/named")), 0);
    }
    domus_file *file = make_unnamed_file("folder", DOMUS_FILE_BENEATH);
    ck_assert_int_eq(error_of_link(file, "../out", DOMUS_FILE_BENEATH), -EXDEV);
    ck_assert_int_eq(error_of_link(file, "/out", DOMUS_FILE_BENEATH), -EXDEV);
    ck_assert_int_eq(error_of_link(file, "kept", DOMUS_FILE_BENEATH), 0);
    ck_assert_int_eq(unlink(domt_file_whole_path("kept")), 0);
    ck_assert_int_eq(error_of_link(file, "again", DOMUS_FILE_BENEATH), -ENOENT);
    domus_file_close(file);
}

DOMT_TEST(files_get_a_name_that_is_free)
{
    domt_files_run_in_kit_and_system(check_unnamed_files_get_names);
}

static void check_refused_flags_and_paths(void)
{
    static const struct {
        uint32_t flags;
        const char *path;
        int error;
    } rows[] = {
        {DOMUS_FILE_UNNAMED | DOMUS_FILE_READ, ".", -EINVAL},
        {UNNAMED | DOMUS_FILE_CREATE, ".", -EINVAL},
        {UNNAMED | DOMUS_FILE_TRUNCATE, ".", -EINVAL},
        {UNNAMED | DOMUS_FILE_CREATE | DOMUS_FILE_EXCLUSIVE, ".", -EINVAL},
        {UNNAMED | DOMUS_FILE_EXCLUSIVE, ".", -EINVAL},
        {UNNAMED | DOMUS_FILE_DIRECTORY, ".", -EINVAL},
        {UNNAMED | DOMUS_FILE_BENEATH, "..", -EXDEV},
        {UNNAMED, "none", -ENOENT},
        {UNNAMED, "file", -ENOTDIR},
    };

    domt_tree_write(&domt_files_now.tree, "file", "1");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domt_done done = domt_file_order(
            (domt_deed){.file = domt_files_now.root, .path = rows[i].path, .flags = rows[i].flags});
        ck_assert_int_eq(done.error, rows[i].error);
    }
    ck_assert_int_eq(error_of_link(NULL, "a", 0), -EINVAL);
    domus_file *file = make_unnamed_file(".", 0);
    ck_assert_int_eq(error_of_link(file, "a", DOMUS_FILE_EXCLUSIVE), -EINVAL);
    ck_assert_int_eq(error_of_link(file, "", 0), -EINVAL);
    domus_file_close(file);
}

DOMT_TEST(wrong_flags_of_unnamed_files_are_refused)
{
    domt_files_run_in_kit_and_system(check_refused_flags_and_paths);
}

/* --- loads ------------------------------------------------------------------------------------ */

#define PATHS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define BENEATH    DOMUS_FILE_BENEATH

static domt_done let_clerk_load(domt_deed_kind kind, const char *const *paths, uint32_t flags,
                                uint64_t size)
{
    domt_done done = domt_file_order((domt_deed){.kind = kind,
                                                 .file = domt_files_now.root,
                                                 .paths = paths,
                                                 .flags = flags,
                                                 .size = size,
                                                 .position = 7});

    if (kind == DOMT_LOAD && done.returned == 0)
        ck_assert_uint_eq(done.tag, 7); /* an answer with an error has the tag, too */
    return done;
}

/* Load the first of `paths` that opens; if the kernel cannot do it at once, let a helper thread do
 * it. That happens when the kernel does not remember that a name does not exist, and always when it
 * has to find out that a file is no directory. */
static domt_done load_first_that_opens(domt_deed_kind kind, const char *const *paths,
                                       uint32_t flags, uint64_t size)
{
    domt_done done = let_clerk_load(kind, paths, flags, size);

    return done.error == -EAGAIN ? let_clerk_load(DOMT_LOAD, paths, flags, size) : done;
}

static void check_loaded_bytes(domt_deed_kind kind, const char *const *paths, uint32_t index,
                               const char *text)
{
    domt_done done = load_first_that_opens(kind, paths, BENEATH, 100);

    ck_assert_int_eq(done.error, 0);
    ck_assert_uint_eq(done.index, index);
    ck_assert_ptr_null(done.file);
    ck_assert_uint_eq(done.status.size, strlen(text));
    ck_assert(domus_slice_equals(done.bytes, text, strlen(text)));
    domus_slice_free(done.bytes);
}

/* Load what is not read, because it is too large for `size` or a directory, and check that the open
 * file is handed out. */
static void check_load_gives_file_instead_of_bytes(domt_deed_kind kind, const char *path,
                                                   uint64_t size, bool is_directory)
{
    domt_done done = load_first_that_opens(kind, PATHS(path), 0, size);

    ck_assert_int_eq(done.error, 0);
    ck_assert_uint_eq(done.bytes.size, 0);
    ck_assert_ptr_nonnull(done.file);
    ck_assert_int_eq(domus_file_is_directory(done.file), is_directory);
    ck_assert_int_eq(S_ISDIR(done.status.mode), is_directory);
    if (!is_directory)
        domt_file_must_read(done.file, 1, 3, "ell");
    domus_file_close(done.file);
}

static void make_files_of_each_kind(void)
{
    domt_tree_write(&domt_files_now.tree, "a", "hello");
    domt_tree_write(&domt_files_now.tree, "empty", "");
    domt_tree_write(&domt_files_now.tree, "folder/b", "world");
    ck_assert_int_eq(mkfifo(domt_file_whole_path("fifo"), 0600), 0);
    ck_assert_int_eq(symlink("/etc", domt_file_whole_path("out")), 0);
}

static void check_loads_of_all_files(domt_deed_kind kind)
{
    struct stat status;

    check_loaded_bytes(kind, PATHS("a"), 0, "hello");
    check_loaded_bytes(kind, PATHS("empty"), 0, "");
    check_loaded_bytes(kind, PATHS("folder/b", "a"), 0, "world");
    check_loaded_bytes(kind, PATHS("none", "a/b", "folder", "a"), 3, "hello");
    check_loaded_bytes(kind, PATHS("fifo", "out/passwd", "a", "none"), 2, "hello");
    check_load_gives_file_instead_of_bytes(kind, "a", 4, false);
    check_load_gives_file_instead_of_bytes(kind, "a", 0, false);
    check_load_gives_file_instead_of_bytes(kind, "folder", 100, true);
    domt_done done = load_first_that_opens(kind, PATHS("a"), 0, 5);
    ck_assert_int_eq(stat(domt_file_whole_path("a"), &status), 0);
    ck_assert_uint_eq(done.status.inode, status.st_ino);
    ck_assert_uint_eq(done.status.device, status.st_dev);
    ck_assert_uint_eq(done.status.links, 1);
    ck_assert_int_eq(done.status.modified_ns,
                     status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec);
    domus_slice_free(done.bytes);
    ck_assert_int_eq(load_first_that_opens(kind, PATHS("none"), 0, 1).error, -ENOENT);
    ck_assert_int_eq(load_first_that_opens(kind, PATHS("a/b"), 0, 1).error, -ENOTDIR);
    ck_assert_int_eq(load_first_that_opens(kind, PATHS("fifo"), 0, 1).error, -EINVAL);
    ck_assert_int_eq(load_first_that_opens(kind, PATHS("out/passwd"), BENEATH, 1).error, -EXDEV);
    ck_assert_int_eq(load_first_that_opens(kind, PATHS("../a"), BENEATH, 1).error, -EXDEV);
}

static void check_loads_with_wrong_arguments(domt_deed_kind kind)
{
    static char path[4097];

    memset(path, 'a', sizeof path - 1);
    ck_assert_int_eq(load_first_that_opens(kind, NULL, 0, 1).returned, -EINVAL);
    ck_assert_int_eq(load_first_that_opens(kind, (const char *const[]){NULL}, 0, 1).returned,
                     -EINVAL);
    ck_assert_int_eq(load_first_that_opens(kind, PATHS("a", ""), 0, 1).returned, -EINVAL);
    ck_assert_int_eq(load_first_that_opens(kind, PATHS("n", "n", "n", "n", "a"), 0, 1).returned,
                     -EINVAL);
    ck_assert_int_eq(load_first_that_opens(kind, PATHS("a"), DOMUS_FILE_READ, 1).returned, -EINVAL);
    ck_assert_int_eq(load_first_that_opens(kind, PATHS(path), 0, 1).returned, -ENAMETOOLONG);
    ck_assert_int_eq(load_first_that_opens(kind, PATHS("a"), 0, (1u << 20) + 1).returned,
                     -EMSGSIZE);
    check_loaded_bytes(kind, PATHS("n", "n", "n", "a"), 3, "hello");
    domt_done done = load_first_that_opens(kind, PATHS("a"), 0, 1u << 20);
    ck_assert_uint_eq(done.bytes.size, 5);
    domus_slice_free(done.bytes);
}

DOMT_TEST(file_is_loaded_in_the_call_and_by_a_helper)
{
    for (int in_kit = 0; in_kit < 2; in_kit++) {
        domt_files_begin(NULL, in_kit != 0);
        make_files_of_each_kind();
        check_loads_of_all_files(DOMT_LOAD_NOW);
        uint64_t helped = domt_count_helper_jobs();
        check_loaded_bytes(DOMT_LOAD_NOW, PATHS("none", "folder", "a"), 2, "hello");
        check_load_gives_file_instead_of_bytes(DOMT_LOAD_NOW, "folder", 100, true);
        ck_assert_uint_eq(domt_count_helper_jobs(), helped);
        check_loads_of_all_files(DOMT_LOAD);
        ck_assert(in_kit != 0 || domt_count_helper_jobs() > helped);
        check_loads_with_wrong_arguments(DOMT_LOAD_NOW);
        check_loads_with_wrong_arguments(DOMT_LOAD);
        domt_files_end();
    }
}

DOMT_TEST(loads_are_refused_at_limit_of_open_files)
{
    domus_config config = domt_config_of_threads(2);

    config.files.open_max = 2; /* at most two open files, one of which is the test's directory */
    domt_files_begin(&config, false);
    make_files_of_each_kind();
    domt_done first = load_first_that_opens(DOMT_LOAD_NOW, PATHS("a"), 0, 0);
    ck_assert_int_eq(first.error, 0);
    ck_assert_int_eq(load_first_that_opens(DOMT_LOAD_NOW, PATHS("a"), 0, 0).error, -EMFILE);
    ck_assert_int_eq(load_first_that_opens(DOMT_LOAD, PATHS("a"), 0, 0).error, -EMFILE);
    /* this load closes the file before the call returns */
    check_loaded_bytes(DOMT_LOAD_NOW, PATHS("a"), 0, "hello");
    domus_file_close(first.file);
    check_load_gives_file_instead_of_bytes(DOMT_LOAD, "a", 0, false);
    domt_files_end();
}

DOMT_SUITE(60)
