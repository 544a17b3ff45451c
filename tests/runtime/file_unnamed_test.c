/* Files without a name: they are gone with their handle, unless they were given a name, which
 * replaces nothing and leads out of nothing; in a test kit and in a real system. */
#include "tests/runtime/files.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNNAMED (DOMUS_FILE_UNNAMED | DOMUS_FILE_WRITE | DOMUS_FILE_READ)

static domus_file *make(const char *in, uint32_t flags)
{
    domt_done done = domt_file_do((domt_deed){
        .file = domt_files_now.root, .path = in, .flags = UNNAMED | flags, .mode = 0640});

    ck_assert_int_eq(done.error, 0);
    return done.file;
}

static int link_to(domus_file *file, const char *name, uint32_t flags)
{
    return domt_file_do((domt_deed){.kind = DOMT_LINK,
                                    .file = file,
                                    .to_file = domt_files_now.root,
                                    .to = name,
                                    .flags = flags})
        .error;
}

static void hold_files(void)
{
    domt_tree_write(&domt_files_now.tree, "taken", "taken");
    domt_tree_write(&domt_files_now.tree, "folder/one", "1");
    for (uint32_t flags = 0; flags <= DOMUS_FILE_BENEATH; flags += DOMUS_FILE_BENEATH) {
        struct stat status;
        domus_file *file = make(".", flags);
        ck_assert_int_eq(access(domt_file_path("."), F_OK), 0);
        domt_file_must_write(file, 0, "hello");
        domt_file_must_read(file, 0, 9, "hello");
        ck_assert_int_eq(link_to(file, "taken", flags), -EEXIST);
        ck_assert_int_eq(link_to(file, "none/x", flags), -ENOENT);
        ck_assert_int_eq(link_to(file, "a/", flags), -EINVAL);
        ck_assert_int_eq(link_to(file, "folder/named", flags), 0);
        domus_file_close(file);
        ck_assert_int_eq(stat(domt_file_path("folder/named"), &status), 0);
        ck_assert_uint_eq(status.st_mode & 07777, 0640);
        ck_assert_int_eq(status.st_size, 5);
        ck_assert_int_eq(unlink(domt_file_path("folder/named")), 0);
    }
    domus_file *file = make("folder", DOMUS_FILE_BENEATH);
    ck_assert_int_eq(link_to(file, "../out", DOMUS_FILE_BENEATH), -EXDEV);
    ck_assert_int_eq(link_to(file, "/out", DOMUS_FILE_BENEATH), -EXDEV);
    ck_assert_int_eq(link_to(file, "kept", DOMUS_FILE_BENEATH), 0);
    ck_assert_int_eq(unlink(domt_file_path("kept")), 0);
    ck_assert_int_eq(link_to(file, "again", DOMUS_FILE_BENEATH), -ENOENT);
    domus_file_close(file);
}

DOMT_TEST(files_get_a_name_that_is_free)
{
    domt_files_in_both(hold_files);
}

static void hold_refusals(void)
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
        domt_done done = domt_file_do(
            (domt_deed){.file = domt_files_now.root, .path = rows[i].path, .flags = rows[i].flags});
        ck_assert_int_eq(done.error, rows[i].error);
    }
    ck_assert_int_eq(link_to(NULL, "a", 0), -EINVAL);
    domus_file *file = make(".", 0);
    ck_assert_int_eq(link_to(file, "a", DOMUS_FILE_EXCLUSIVE), -EINVAL);
    ck_assert_int_eq(link_to(file, "", 0), -EINVAL);
    domus_file_close(file);
}

DOMT_TEST(wrong_flags_are_refused)
{
    domt_files_in_both(hold_refusals);
}

DOMT_SUITE(20)
