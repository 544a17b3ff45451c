/* runtime/files: what each function of domus/file.h does, its errors and its limits, in a test kit
 * and in a real system. */
#include "tests/runtime/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RW (DOMUS_FILE_READ | DOMUS_FILE_WRITE)

static void hold_bytes(void)
{
    domus_file *file = domt_file_must_open("one", RW | DOMUS_FILE_CREATE | DOMUS_FILE_EXCLUSIVE);
    domus_file *other;

    ck_assert(!domus_file_is_directory(file));
    ck_assert(domus_file_is_directory(domt_files_now.root));
    domt_file_must_write(file, 0, "hello");
    domt_file_must_write(file, 7, "you");
    domt_done done = domt_file_do((domt_deed){.kind = DOMT_READ, .file = file, .size = 4096});
    ck_assert(domus_slice_equals(done.bytes, "hello\0\0you", 10));
    domus_slice_free(done.bytes);
    domt_file_must_read(file, 1, 3, "ell");
    domt_file_must_read(file, 7, 3, "you");
    domt_file_must_read(file, 8, 100, "ou");
    domt_file_must_read(file, 10, 100, "");
    domt_file_must_read(file, 1000000, 100, "");
    domt_file_must_read(file, 0, 0, "");
    domt_file_must_write(file, 3, "");
    for (uint32_t flags = 0; flags < 2; flags++)
        ck_assert_int_eq(
            domt_file_do((domt_deed){.kind = DOMT_SYNC, .file = file, .flags = flags}).error, 0);
    ck_assert_int_eq(
        domt_file_do((domt_deed){.kind = DOMT_TRUNCATE, .file = file, .size = 2}).error, 0);
    domt_file_must_read(file, 0, 100, "he");
    done = domt_file_do((domt_deed){.kind = DOMT_STAT, .file = file});
    ck_assert_int_eq(done.error, 0);
    ck_assert_uint_eq(done.status.size, 2);
    ck_assert_uint_eq(done.status.links, 1);
    ck_assert(S_ISREG(done.status.mode));
    ck_assert_int_gt(done.status.modified_ns, INT64_C(1500000000000000000));

    /* handles are apart, and one is kept twice */
    ck_assert_int_eq(domt_file_open("one", RW | DOMUS_FILE_CREATE | DOMUS_FILE_EXCLUSIVE, &other),
                     -EEXIST);
    other = domt_file_must_open("one", DOMUS_FILE_WRITE | DOMUS_FILE_APPEND);
    domt_file_must_write(other, 0, "llo");
    domt_file_must_read(file, 0, 100, "hello");
    domus_file_close(other);
    other = domt_file_must_open("one", DOMUS_FILE_WRITE | DOMUS_FILE_TRUNCATE);
    domt_file_must_read(file, 0, 100, "");
    domus_file_close(other);
    ck_assert_ptr_eq(domus_file_keep(file), file);
    domus_file_close(file);
    domt_file_must_write(file, 0, "still");
    domt_file_must_read(file, 0, 100, "still");
    domus_file_close(file);
    domus_file_close(NULL);
}

DOMT_TEST(bytes_are_written_and_read_at_their_positions)
{
    domt_files_in_both(hold_bytes);
}

static int error_of(domt_deed deed)
{
    domt_done done = domt_file_do(deed);

    ck_assert_ptr_null(done.file);
    ck_assert_uint_eq(done.bytes.size, 0);
    return done.error;
}

/* The function itself refuses. */
static int returned_of(domt_deed deed)
{
    domt_done done = domt_file_do(deed);

    domus_slice_free(done.bytes);
    return done.returned;
}

static void hold_refusals(void)
{
    domus_file *root = domt_files_now.root;
    domus_file *file = domt_file_must_open("one", RW | DOMUS_FILE_CREATE);
    static char path[4097];
    static const uint32_t flags[] = {0,
                                     DOMUS_FILE_CREATE,
                                     DOMUS_FILE_READ | DOMUS_FILE_CREATE,
                                     DOMUS_FILE_READ | DOMUS_FILE_TRUNCATE,
                                     DOMUS_FILE_READ | DOMUS_FILE_APPEND,
                                     RW | DOMUS_FILE_EXCLUSIVE,
                                     RW | DOMUS_FILE_DIRECTORY,
                                     RW | 0x100};

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        ck_assert_int_eq(returned_of((domt_deed){.path = "one", .flags = flags[i]}), -EINVAL);
    ck_assert_int_eq(returned_of((domt_deed){.path = "one", .flags = RW, .mode = 010000}), -EINVAL);
    ck_assert_int_eq(returned_of((domt_deed){.flags = RW}), -EINVAL);
    ck_assert_int_eq(returned_of((domt_deed){.path = "", .flags = RW}), -EINVAL);
    memset(path, 'a', 4096);
    ck_assert_int_eq(returned_of((domt_deed){.path = path, .flags = RW}), -ENAMETOOLONG);
    path[4095] = '\0';
    domt_done done = domt_file_do((domt_deed){.path = path, .flags = RW});
    ck_assert_int_eq(done.returned, 0);
    ck_assert_int_eq(done.error, -ENAMETOOLONG);

    for (domt_deed_kind kind = DOMT_READ; kind <= DOMT_STAT; kind++)
        ck_assert_int_eq(returned_of((domt_deed){.kind = kind, .bytes = "a", .size = 1}), -EINVAL);
    ck_assert_int_eq(returned_of((domt_deed){.kind = DOMT_LIST}), -EINVAL);
    for (int i = 0; i < 2; i++) {
        domt_deed deed = {.kind = i == 0 ? DOMT_READ : DOMT_WRITE, .file = file, .bytes = "abc"};
        deed.size = 1;
        deed.position = UINT64_MAX;
        ck_assert_int_eq(returned_of(deed), -EINVAL);
        deed.position = (uint64_t)INT64_MAX;
        ck_assert_int_eq(returned_of(deed), -EINVAL);
        deed.size = 3;
        deed.position = (uint64_t)INT64_MAX - 2;
        ck_assert_int_eq(returned_of(deed), -EINVAL);
        deed.position = (uint64_t)INT64_MAX - 3;
        done = domt_file_do(deed);
        ck_assert_int_eq(done.returned, 0);
        ck_assert_int_eq(done.error, i == 0 ? 0 : -EFBIG);
    }
    ck_assert_int_eq(
        returned_of((domt_deed){.kind = DOMT_TRUNCATE, .file = file, .size = UINT64_MAX}), -EINVAL);
    ck_assert_int_eq(
        returned_of((domt_deed){.kind = DOMT_LIST, .file = root, .position = 1u << 31}), 0);
    ck_assert_int_eq(
        returned_of((domt_deed){.kind = DOMT_LIST, .file = root, .position = UINT64_MAX}), -EINVAL);
    ck_assert_int_eq(returned_of((domt_deed){.kind = DOMT_RENAME, .path = "a", .to = ""}), -EINVAL);
    ck_assert_int_eq(returned_of((domt_deed){
                         .kind = DOMT_RENAME, .path = "a", .to = "b", .flags = DOMUS_FILE_CREATE}),
                     -EINVAL);
    ck_assert_int_eq(
        returned_of((domt_deed){.kind = DOMT_REMOVE, .path = "a", .flags = DOMUS_FILE_READ}),
        -EINVAL);
    ck_assert_int_eq(
        returned_of((domt_deed){.kind = DOMT_MAKE_DIRECTORY, .path = "a", .mode = 010000}),
        -EINVAL);
    domus_file_close(file);
}

DOMT_TEST(wrong_arguments_are_refused)
{
    domt_files_in_both(hold_refusals);
}

static void hold_errors(void)
{
    domus_file *root = domt_files_now.root;
    domus_file *none;
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    domt_tree_write(&domt_files_now.tree, "text", "text");
    domt_tree_write(&domt_files_now.tree, "folder/inner", "inner");
    ck_assert_int_eq(mkfifo(domt_file_path("fifo"), 0600), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", domt_file_path("socket"));
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    close(fd);

    ck_assert_int_eq(domt_file_open("none", DOMUS_FILE_READ, &none), -ENOENT);
    ck_assert_int_eq(domt_file_open("text/none", DOMUS_FILE_READ, &none), -ENOTDIR);
    ck_assert_int_eq(domt_file_open("folder", DOMUS_FILE_WRITE, &none), -EISDIR);
    ck_assert_int_eq(domt_file_open("text", DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY, &none),
                     -ENOTDIR);
    ck_assert_int_eq(domt_file_open("fifo", DOMUS_FILE_READ, &none), -EINVAL);
    ck_assert_int_eq(domt_file_open("fifo", DOMUS_FILE_WRITE, &none), -EINVAL);
    ck_assert_int_eq(domt_file_open("fifo", RW, &none), -EINVAL);
    ck_assert_int_eq(domt_file_open("fifo", RW | DOMUS_FILE_CREATE, &none), -EINVAL);
    ck_assert_int_eq(domt_file_open("socket", DOMUS_FILE_READ, &none), -EINVAL);
    ck_assert_int_eq(domt_file_open("/dev/null", DOMUS_FILE_READ, &none), -EINVAL);

    domus_file *folder = domt_file_must_open("folder", DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY);
    domus_file *reader = domt_file_must_open("text", DOMUS_FILE_READ);
    domus_file *writer = domt_file_must_open("text", DOMUS_FILE_WRITE);
    ck_assert_int_eq(error_of((domt_deed){.kind = DOMT_READ, .file = folder, .size = 9}), -EISDIR);
    ck_assert_int_eq(error_of((domt_deed){.kind = DOMT_READ, .file = writer, .size = 9}), -EBADF);
    ck_assert_int_eq(
        error_of((domt_deed){.kind = DOMT_WRITE, .file = reader, .bytes = "a", .size = 1}), -EBADF);
    ck_assert_int_eq(error_of((domt_deed){.kind = DOMT_TRUNCATE, .file = reader}), -EINVAL);
    ck_assert_int_eq(error_of((domt_deed){.kind = DOMT_LIST, .file = reader}), -ENOTDIR);
    ck_assert_int_eq(error_of((domt_deed){.file = reader, .path = "a", .flags = DOMUS_FILE_READ}),
                     -ENOTDIR);
    /* a path is relative to any directory, and the handle may be closed meanwhile */
    domt_done done = domt_file_do((domt_deed){.file = folder, .path = "inner", .flags = RW});
    ck_assert_int_eq(done.error, 0);
    domt_file_must_read(done.file, 0, 99, "inner");
    domus_file_close(done.file);
    domus_file_close(folder);
    domus_file_close(reader);
    domus_file_close(writer);
    (void)root;
}

DOMT_TEST(errors_of_the_kernel_are_told)
{
    domt_files_in_both(hold_errors);
}

/* --- limits ----------------------------------------------------------------------------------- */

DOMT_TEST(files_are_opened_up_to_their_limit)
{
    for (int kit = 0; kit < 2; kit++) {
        domus_config config = domt_config(2);
        domus_file *files[3], *more;
        config.files.open_max = 4; /* with the directory */
        domt_files_begin(&config, kit != 0);
        for (int i = 0; i < 3; i++)
            files[i] = domt_file_must_open("one", RW | DOMUS_FILE_CREATE);
        ck_assert_int_eq(domt_file_open("one", DOMUS_FILE_READ, &more), -EMFILE);
        ck_assert_int_eq(domt_file_open("one", RW | DOMUS_FILE_CREATE, &more), -EMFILE);
        domus_file_close(files[0]);
        /* a helper thread closes it */
        DOMT_WAIT_FOR(10, domt_file_open("one", DOMUS_FILE_READ, &files[0]) == 0);
        ck_assert_int_eq(domt_file_open("one", DOMUS_FILE_READ, &more), -EMFILE);
        for (int i = 0; i < 3; i++)
            domus_file_close(files[i]);
        /* one that was not opened does not count */
        for (int i = 0; i < 5; i++)
            ck_assert_int_eq(domt_file_open("none", DOMUS_FILE_READ, &more), -ENOENT);
        domt_files_end();
    }
}

DOMT_TEST(reads_have_a_limit)
{
    for (int kit = 0; kit < 2; kit++) {
        domus_config config = domt_config(2);
        config.files.read_max_bytes = 5000;
        domt_files_begin(&config, kit != 0);
        domus_file *file = domt_file_must_open("one", RW | DOMUS_FILE_CREATE);
        ck_assert_int_eq(
            domt_file_do((domt_deed){.kind = DOMT_TRUNCATE, .file = file, .size = 9000}).error, 0);
        ck_assert_int_eq(returned_of((domt_deed){.kind = DOMT_READ, .file = file, .size = 5001}),
                         -EMSGSIZE);
        domt_done done = domt_file_do((domt_deed){.kind = DOMT_READ, .file = file, .size = 5000});
        ck_assert_int_eq(done.error, 0);
        ck_assert_uint_eq(done.bytes.size, 5000);
        domus_slice_free(done.bytes);
        domus_file_close(file);
        domt_files_end();
    }
}

/* The kernel takes a part, and refuses the rest. */
static void hold_part(void)
{
    static char bytes[10000];
    struct rlimit before, less;
    domus_file *file = domt_file_must_open("one", RW | DOMUS_FILE_CREATE);

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    less = before;
    less.rlim_cur = 8192;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &less), 0);
    memset(bytes, 'b', sizeof bytes);
    domt_deed deed = {.kind = DOMT_WRITE, .file = file, .bytes = bytes, .size = sizeof bytes};
    domt_done done = domt_file_do(deed);
    ck_assert_int_eq(done.error, 0);
    ck_assert_int_eq(done.written.error, -EFBIG);
    ck_assert_uint_eq(done.written.bytes, 8192);
    deed.position = 8192;
    ck_assert_int_eq(domt_file_do(deed).error, -EFBIG);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    done = domt_file_do((domt_deed){.kind = DOMT_STAT, .file = file});
    ck_assert_uint_eq(done.status.size, 8192);
    domus_file_close(file);
}

DOMT_TEST(a_write_tells_how_much_was_written)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    ck_assert_int_eq(sigaction(SIGXFSZ, &ignore, NULL), 0);
    domt_files_in_both(hold_part);
}

DOMT_SUITE(60)
