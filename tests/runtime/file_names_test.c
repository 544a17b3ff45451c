/* runtime/os/disk.c: names are changed, directories are listed, and nothing leads out of a
 * directory; in a test kit and in a real system. */
#include "tests/runtime/files.h"

#include <errno.h>
#include <unistd.h>

static int error_of(domt_deed deed)
{
    domt_done done = domt_file_do(deed);

    ck_assert_ptr_null(done.file);
    ck_assert_uint_eq(done.bytes.size, 0);
    return done.error;
}

/* --- names ------------------------------------------------------------------------------------ */

static int rename_in(domus_file *from_file, const char *from, const char *to, uint32_t flags)
{
    return error_of((domt_deed){.kind = DOMT_RENAME,
                                .file = from_file,
                                .path = from,
                                .to_file = domt_files_now.root,
                                .to = to,
                                .flags = flags});
}

static int remove_in(const char *path, uint32_t flags)
{
    return error_of((domt_deed){
        .kind = DOMT_REMOVE, .file = domt_files_now.root, .path = path, .flags = flags});
}

static int make_in(const char *path, uint32_t flags)
{
    return error_of((domt_deed){.kind = DOMT_MAKE_DIRECTORY,
                                .file = domt_files_now.root,
                                .path = path,
                                .flags = flags,
                                .mode = 0755});
}

static void hold_names(void)
{
    domus_file *root = domt_files_now.root;

    for (uint32_t flags = 0; flags <= DOMUS_FILE_BENEATH; flags += DOMUS_FILE_BENEATH) {
        domt_tree_write(&domt_files_now.tree, "one", "1");
        domt_tree_write(&domt_files_now.tree, "two", "2");
        ck_assert_int_eq(make_in("folder", flags), 0);
        ck_assert_int_eq(make_in("folder", flags), -EEXIST);
        ck_assert_int_eq(make_in("folder/inner", flags), 0);
        ck_assert_int_eq(make_in("none/inner", flags), -ENOENT);
        ck_assert_int_eq(rename_in(root, "one", "two", flags | DOMUS_FILE_EXCLUSIVE), -EEXIST);
        ck_assert_int_eq(rename_in(root, "one", "folder/one", flags | DOMUS_FILE_EXCLUSIVE), 0);
        ck_assert_int_eq(rename_in(root, "one", "folder/one", flags), -ENOENT);
        ck_assert_int_eq(rename_in(root, "folder/one", "two", flags), 0);
        domus_file *file = domt_file_must_open("two", DOMUS_FILE_READ);
        domt_file_must_read(file, 0, 9, "1");
        domus_file_close(file);
        ck_assert_int_eq(remove_in("folder", flags), -EISDIR);
        ck_assert_int_eq(remove_in("folder", flags | DOMUS_FILE_DIRECTORY), -ENOTEMPTY);
        ck_assert_int_eq(remove_in("two", flags | DOMUS_FILE_DIRECTORY), -ENOTDIR);
        ck_assert_int_eq(remove_in("folder/inner", flags | DOMUS_FILE_DIRECTORY), 0);
        ck_assert_int_eq(remove_in("folder", flags | DOMUS_FILE_DIRECTORY), 0);
        ck_assert_int_eq(remove_in("two", flags), 0);
        ck_assert_int_eq(remove_in("two", flags), -ENOENT);
        static const char *const odd[] = {".", "..", "a/", "a/.", "a/..", "/"};
        for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
            ck_assert_int_eq(remove_in(odd[i], flags), -EINVAL);
            ck_assert_int_eq(make_in(odd[i], flags), -EINVAL);
            ck_assert_int_eq(rename_in(root, "a", odd[i], flags), -EINVAL);
        }
    }
}

DOMT_TEST(names_are_changed)
{
    domt_files_in_both(hold_names);
}

/* Nothing outside of `inside` is reached, by whatever way. */
static void hold_beneath(void)
{
    domt_tree *tree = &domt_files_now.tree;
    const uint32_t beneath = DOMUS_FILE_BENEATH;
    char outside[PATH_MAX];

    domt_tree_write(tree, "secret", "secret");
    domt_tree_write(tree, "inside/text", "text");
    domt_tree_write(tree, "inside/folder/deep", "deep");
    snprintf(outside, sizeof outside, "%s", domt_file_path("secret"));
    ck_assert_int_eq(symlink("../secret", domt_file_path("inside/up")), 0);
    ck_assert_int_eq(symlink(outside, domt_file_path("inside/whole")), 0);
    ck_assert_int_eq(symlink("..", domt_file_path("inside/parent")), 0);
    ck_assert_int_eq(symlink("text", domt_file_path("inside/fine")), 0);
    ck_assert_int_eq(symlink("folder/../text", domt_file_path("inside/round")), 0);
    ck_assert_int_eq(symlink("../text", domt_file_path("inside/folder/back")), 0);
    ck_assert_int_eq(symlink("loop", domt_file_path("inside/loop")), 0);
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
        if (i < 2) /* the kernel does not look at what is behind `..` of a path without the bit */
            ck_assert_int_eq(domt_file_open(out[i], DOMUS_FILE_READ, &file), 0);
        domus_file_close(file);
        file = NULL;
    }
    static const char *const made[] = {"../made", "/made", "parent/made", "folder/../../made"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        ck_assert_int_eq(
            domt_file_open(made[i], DOMUS_FILE_WRITE | DOMUS_FILE_CREATE | beneath, &file), -EXDEV);
        ck_assert_int_eq(make_in(made[i], beneath), -EXDEV);
        ck_assert_int_eq(remove_in(made[i], beneath), -EXDEV);
        ck_assert_int_eq(rename_in(domt_files_now.root, "text", made[i], beneath), -EXDEV);
        ck_assert_int_eq(rename_in(domt_files_now.root, made[i], "text", beneath), -EXDEV);
    }
    static const char *const in[] = {"text", "fine", "round", "folder/back", "folder/../text"};
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        file = domt_file_must_open(in[i], DOMUS_FILE_READ | beneath);
        domt_file_must_read(file, 0, 99, "text");
        domus_file_close(file);
    }
    ck_assert_int_eq(domt_file_open("loop", DOMUS_FILE_READ | beneath, &file), -ELOOP);
    /* a link at the end is removed itself */
    ck_assert_int_eq(remove_in("up", beneath), 0);
    ck_assert_int_eq(access(outside, F_OK), 0);
    domus_file_close(domt_files_now.root);
    domt_files_now.root = before;
    ck_assert_int_eq(access(domt_file_path("made"), F_OK), -1);

    domt_done done = domt_file_do((domt_deed){.path = "/proc/self", .flags = DOMUS_FILE_READ});
    ck_assert_int_eq(done.error, 0);
    domus_file *process = done.file;
    done = domt_file_do(
        (domt_deed){.file = process, .path = "cwd", .flags = DOMUS_FILE_READ | beneath});
    ck_assert(done.error == -ELOOP || done.error == -EXDEV);
    domus_file_close(process);
}

DOMT_TEST(nothing_leads_out_of_a_directory)
{
    domt_files_in_both(hold_beneath);
}

/* --- listings --------------------------------------------------------------------------------- */

/* List the directory; hold that each of `count` files is there once, in pieces of up to `most`.
 * Returns how many pieces. */
static uint32_t hold_listing(uint32_t count, uint32_t most)
{
    static bool seen[2000];
    domt_deed deed = {.kind = DOMT_LIST, .file = domt_files_now.root};
    uint32_t pieces = 0;
    uint32_t total = 0;
    bool last = false;

    memset(seen, 0, sizeof seen);
    while (!last) {
        domt_done done = domt_file_do(deed);
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

static void make_entries(uint32_t from, uint32_t to, const char *tail)
{
    for (uint32_t i = from; i < to; i++) {
        char name[256];
        snprintf(name, sizeof name, "%u%s", i, tail);
        if (i % 2 == 0)
            domt_tree_write(&domt_files_now.tree, name, "");
        else
            ck_assert_int_eq(symlink("x", domt_file_path(name)), 0);
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
        domus_config config = domt_config(2);
        config.files.list_max = 7;
        domt_files_begin(&config, kit != 0);
        ck_assert_uint_eq(hold_listing(0, 7), 1);
        make_entries(0, 7, "");
        ck_assert_uint_le(hold_listing(7, 7), 2);
        make_entries(7, 100, "");
        ck_assert_uint_ge(hold_listing(100, 7), 15);
        domt_files_end();

        config.files.list_max = 4096;
        domt_files_begin(&config, kit != 0);
        make_entries(0, 300, tail);
        ck_assert_uint_ge(hold_listing(300, 16384 / 200), 4); /* 16 KiB bound each piece */
        domt_files_end();

        domt_files_begin(NULL, kit != 0);
        make_entries(0, 1000, "");
        ck_assert_uint_ge(hold_listing(1000, 256), 4);
        domt_files_end();
    }
}

DOMT_SUITE(60)
