/* runtime/files: each function of domus/file.h with its errors and limits, in a test kit and in a
 * real system; with a failure of each allocation of a chain of operations; and where there is no
 * /proc. */
#include "tests/runtime/files.h"
#include "tests/support/container.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include "base/memory.h"
#include "runtime/os/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define RW (DOMUS_FILE_READ | DOMUS_FILE_WRITE)

static void check_read_and_write(void)
{
    domus_file *file = domt_file_must_open("one", RW | DOMUS_FILE_CREATE | DOMUS_FILE_EXCLUSIVE);
    domus_file *other;

    ck_assert(!domus_file_is_directory(file));
    ck_assert(domus_file_is_directory(domt_files_now.root));
    domt_file_must_write(file, 0, "hello");
    domt_file_must_write(file, 7, "you");
    domt_done done = domt_file_order((domt_deed){.kind = DOMT_READ, .file = file, .size = 4096});
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
            domt_file_order((domt_deed){.kind = DOMT_SYNC, .file = file, .flags = flags}).error, 0);
    ck_assert_int_eq(
        domt_file_order((domt_deed){.kind = DOMT_TRUNCATE, .file = file, .size = 2}).error, 0);
    domt_file_must_read(file, 0, 100, "he");
    done = domt_file_order((domt_deed){.kind = DOMT_STAT, .file = file});
    ck_assert_int_eq(done.error, 0);
    ck_assert_uint_eq(done.status.size, 2);
    ck_assert_uint_eq(done.status.links, 1);
    ck_assert(S_ISREG(done.status.mode));
    ck_assert_int_gt(done.status.modified_ns, INT64_C(1500000000000000000));

    /* Several opens of one file give separate handles, and one handle can be kept twice. */
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
    domt_files_run_in_kit_and_system(check_read_and_write);
}

static int error_of_deed(domt_deed deed)
{
    domt_done done = domt_file_order(deed);

    ck_assert_ptr_null(done.file);
    ck_assert_uint_eq(done.bytes.size, 0);
    return done.error;
}

/* Returns the result of the call that begins the operation, and not that of its answer. */
static int direct_result_of_deed(domt_deed deed)
{
    domt_done done = domt_file_order(deed);

    domus_slice_free(done.bytes);
    return done.returned;
}

static void check_refused_file_operations(void)
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
        ck_assert_int_eq(direct_result_of_deed((domt_deed){.path = "one", .flags = flags[i]}),
                         -EINVAL);
    ck_assert_int_eq(direct_result_of_deed((domt_deed){.path = "one", .flags = RW, .mode = 010000}),
                     -EINVAL);
    ck_assert_int_eq(direct_result_of_deed((domt_deed){.flags = RW}), -EINVAL);
    ck_assert_int_eq(direct_result_of_deed((domt_deed){.path = "", .flags = RW}), -EINVAL);
    memset(path, 'a', 4096);
    ck_assert_int_eq(direct_result_of_deed((domt_deed){.path = path, .flags = RW}), -ENAMETOOLONG);
    path[4095] = '\0';
    domt_done done = domt_file_order((domt_deed){.path = path, .flags = RW});
    ck_assert_int_eq(done.returned, 0);
    ck_assert_int_eq(done.error, -ENAMETOOLONG);

    for (domt_deed_kind kind = DOMT_READ; kind <= DOMT_STAT; kind++)
        ck_assert_int_eq(direct_result_of_deed((domt_deed){.kind = kind, .bytes = "a", .size = 1}),
                         -EINVAL);
    ck_assert_int_eq(direct_result_of_deed((domt_deed){.kind = DOMT_LIST}), -EINVAL);
    for (int i = 0; i < 2; i++) {
        domt_deed deed = {.kind = i == 0 ? DOMT_READ : DOMT_WRITE, .file = file, .bytes = "abc"};
        deed.size = 1;
        deed.position = UINT64_MAX;
        ck_assert_int_eq(direct_result_of_deed(deed), -EINVAL);
        deed.position = (uint64_t)INT64_MAX;
        ck_assert_int_eq(direct_result_of_deed(deed), -EINVAL);
        deed.size = 3;
        deed.position = (uint64_t)INT64_MAX - 2;
        ck_assert_int_eq(direct_result_of_deed(deed), -EINVAL);
        deed.position = (uint64_t)INT64_MAX - 3;
        done = domt_file_order(deed);
        ck_assert_int_eq(done.returned, 0);
        ck_assert_int_eq(done.error, i == 0 ? 0 : -EFBIG);
    }
    ck_assert_int_eq(
        direct_result_of_deed((domt_deed){.kind = DOMT_TRUNCATE, .file = file, .size = UINT64_MAX}),
        -EINVAL);
    ck_assert_int_eq(
        direct_result_of_deed((domt_deed){.kind = DOMT_LIST, .file = root, .position = 1u << 31}),
        0);
    ck_assert_int_eq(
        direct_result_of_deed((domt_deed){.kind = DOMT_LIST, .file = root, .position = UINT64_MAX}),
        -EINVAL);
    ck_assert_int_eq(direct_result_of_deed((domt_deed){.kind = DOMT_RENAME, .path = "a", .to = ""}),
                     -EINVAL);
    ck_assert_int_eq(direct_result_of_deed((domt_deed){
                         .kind = DOMT_RENAME, .path = "a", .to = "b", .flags = DOMUS_FILE_CREATE}),
                     -EINVAL);
    ck_assert_int_eq(direct_result_of_deed(
                         (domt_deed){.kind = DOMT_REMOVE, .path = "a", .flags = DOMUS_FILE_READ}),
                     -EINVAL);
    ck_assert_int_eq(direct_result_of_deed(
                         (domt_deed){.kind = DOMT_MAKE_DIRECTORY, .path = "a", .mode = 010000}),
                     -EINVAL);
    domus_file_close(file);
}

DOMT_TEST(wrong_arguments_of_file_calls_are_refused)
{
    domt_files_run_in_kit_and_system(check_refused_file_operations);
}

static void check_errors_of_kernel(void)
{
    domus_file *root = domt_files_now.root;
    domus_file *none;
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    domt_tree_write(&domt_files_now.tree, "text", "text");
    domt_tree_write(&domt_files_now.tree, "folder/inner", "inner");
    ck_assert_int_eq(mkfifo(domt_file_whole_path("fifo"), 0600), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", domt_file_whole_path("socket"));
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
    ck_assert_int_eq(error_of_deed((domt_deed){.kind = DOMT_READ, .file = folder, .size = 9}),
                     -EISDIR);
    ck_assert_int_eq(error_of_deed((domt_deed){.kind = DOMT_READ, .file = writer, .size = 9}),
                     -EBADF);
    ck_assert_int_eq(
        error_of_deed((domt_deed){.kind = DOMT_WRITE, .file = reader, .bytes = "a", .size = 1}),
        -EBADF);
    ck_assert_int_eq(error_of_deed((domt_deed){.kind = DOMT_TRUNCATE, .file = reader}), -EINVAL);
    ck_assert_int_eq(error_of_deed((domt_deed){.kind = DOMT_LIST, .file = reader}), -ENOTDIR);
    ck_assert_int_eq(
        error_of_deed((domt_deed){.file = reader, .path = "a", .flags = DOMUS_FILE_READ}),
        -ENOTDIR);
    /* A path is relative to the directory whose handle is given, also if that handle is closed
     * meanwhile. */
    domt_done done = domt_file_order((domt_deed){.file = folder, .path = "inner", .flags = RW});
    ck_assert_int_eq(done.error, 0);
    domt_file_must_read(done.file, 0, 99, "inner");
    domus_file_close(done.file);
    domus_file_close(folder);
    domus_file_close(reader);
    domus_file_close(writer);
    (void)root;
}

DOMT_TEST(file_calls_tell_errors_of_the_kernel)
{
    domt_files_run_in_kit_and_system(check_errors_of_kernel);
}

/* --- limits ----------------------------------------------------------------------------------- */

DOMT_TEST(files_are_opened_up_to_their_limit)
{
    for (int kit = 0; kit < 2; kit++) {
        domus_config config = domt_config_of_threads(2);
        domus_file *files[3], *more;
        /* at most four open files, one of which is the test's directory */
        config.files.open_max = 4;
        domt_files_begin(&config, kit != 0);
        for (int i = 0; i < 3; i++)
            files[i] = domt_file_must_open("one", RW | DOMUS_FILE_CREATE);
        ck_assert_int_eq(domt_file_open("one", DOMUS_FILE_READ, &more), -EMFILE);
        ck_assert_int_eq(domt_file_open("one", RW | DOMUS_FILE_CREATE, &more), -EMFILE);
        domus_file_close(files[0]);
        /* wait, because a helper thread closes the file */
        DOMT_WAIT_FOR(10, domt_file_open("one", DOMUS_FILE_READ, &files[0]) == 0);
        ck_assert_int_eq(domt_file_open("one", DOMUS_FILE_READ, &more), -EMFILE);
        for (int i = 0; i < 3; i++)
            domus_file_close(files[i]);
        /* An open that fails does not count against the limit. */
        for (int i = 0; i < 5; i++)
            ck_assert_int_eq(domt_file_open("none", DOMUS_FILE_READ, &more), -ENOENT);
        domt_files_end();
    }
}

DOMT_TEST(size_of_a_file_read_has_a_limit)
{
    for (int kit = 0; kit < 2; kit++) {
        domus_config config = domt_config_of_threads(2);
        config.files.read_max_bytes = 5000;
        domt_files_begin(&config, kit != 0);
        domus_file *file = domt_file_must_open("one", RW | DOMUS_FILE_CREATE);
        ck_assert_int_eq(
            domt_file_order((domt_deed){.kind = DOMT_TRUNCATE, .file = file, .size = 9000}).error,
            0);
        ck_assert_int_eq(
            direct_result_of_deed((domt_deed){.kind = DOMT_READ, .file = file, .size = 5001}),
            -EMSGSIZE);
        domt_done done =
            domt_file_order((domt_deed){.kind = DOMT_READ, .file = file, .size = 5000});
        ck_assert_int_eq(done.error, 0);
        ck_assert_uint_eq(done.bytes.size, 5000);
        domus_slice_free(done.bytes);
        domus_file_close(file);
        domt_files_end();
    }
}

/* The kernel writes only a part of the bytes, and refuses the rest. */
static void check_partial_write(void)
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
    domt_done done = domt_file_order(deed);
    ck_assert_int_eq(done.error, 0);
    ck_assert_int_eq(done.written.error, -EFBIG);
    ck_assert_uint_eq(done.written.bytes, 8192);
    deed.position = 8192;
    ck_assert_int_eq(domt_file_order(deed).error, -EFBIG);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    done = domt_file_order((domt_deed){.kind = DOMT_STAT, .file = file});
    ck_assert_uint_eq(done.status.size, 8192);
    domus_file_close(file);
}

DOMT_TEST(partial_write_tells_how_much_was_written)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    ck_assert_int_eq(sigaction(SIGXFSZ, &ignore, NULL), 0);
    domt_files_run_in_kit_and_system(check_partial_write);
}

/* --- without memory --------------------------------------------------------------------------- */

static const domus_type go_type = {.name = "go"};

static uint32_t ended;
static int last_error;
static char path[PATH_MAX];

typedef struct chain {
    domus_file *file;
    domus_slice bytes;
    int step;
} chain;

/* Take what the answer owns, a file or bytes, into the frame of the chain. */
static void keep_file_or_bytes_of_answer(domus_stack *stack, chain *frame,
                                         const domus_answer *answer)
{
    if (answer->type == &domus_file_type)
        frame->file = *(domus_file *const *)answer->payload;
    else if (answer->type == &domus_slice_type)
        frame->bytes = *(const domus_slice *)answer->payload;
    else
        return;
    (void)domus_take_answer(stack, answer);
}

static int end_chain_of_operations(chain *frame, int error)
{
    domus_file_close(frame->file);
    domus_slice_free(frame->bytes);
    last_error = error;
    ended++;
    return 0;
}

static int continue_chain_after_answer(domus_stack *stack, void *self, const domus_answer *answer);

/* Begin the next operation of the chain; its long path needs an envelope that comes from no
 * pool. */
static int begin_next_operation_of_chain(domus_stack *stack, chain *frame)
{
    domus_slice bytes = frame->bytes;
    int result;

    switch (frame->step++) {
    case 0:
        return domus_file_open(stack, NULL, path,
                               DOMUS_FILE_READ | DOMUS_FILE_WRITE | DOMUS_FILE_CREATE, 0600,
                               continue_chain_after_answer);
    case 1:
        result = domus_slice_copy(path, 1000, &bytes);
        if (result != 0)
            return result;
        result = domus_file_write(stack, frame->file, 0, bytes, continue_chain_after_answer);
        if (result < 0)
            domus_slice_free(bytes);
        return result;
    case 2:
        return domus_file_read(stack, frame->file, 0, 65536, continue_chain_after_answer);
    case 3: /* write the bytes again that the operation before has read */
        frame->bytes = (domus_slice){NULL, 0, 0};
        result = domus_file_write(stack, frame->file, 5, bytes, continue_chain_after_answer);
        if (result < 0)
            domus_slice_free(bytes);
        return result;
    case 4:
        return domus_file_stat(stack, frame->file, continue_chain_after_answer);
    case 5:
        /* this operation fails with -ENOTDIR, because the file is no directory */
        return domus_file_list(stack, frame->file, 0, continue_chain_after_answer);
    default:
        return domus_file_remove(stack, NULL, path, 0, continue_chain_after_answer);
    }
}

static int continue_chain_after_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    chain *frame = domus_frame(stack);

    if (answer->error != 0 && answer->error != -ENOTDIR)
        return end_chain_of_operations(frame, answer->error);
    keep_file_or_bytes_of_answer(stack, frame, answer);
    if (frame->step == 7)
        return end_chain_of_operations(frame, 0);
    int result = begin_next_operation_of_chain(stack, frame);
    return result < 0 ? end_chain_of_operations(frame, result) : result;
}

static int begin_chain_of_operations(domus_stack *stack, void *self, const void *payload)
{
    int result = begin_next_operation_of_chain(stack, domus_frame(stack));
    return result < 0 ? end_chain_of_operations(domus_frame(stack), result) : result;
}

static const domus_behaviour chained = {
    .name = "chained",
    .on = (const domus_on[]){{&go_type, begin_chain_of_operations, sizeof(chain)}, {0}}};

DOMT_TEST(file_operations_survive_failed_allocations)
{
    uint32_t failures = 0;
    /* number of rounds without a failure that followed each other; after 8 of them no allocation is
     * left to fail */
    uint32_t clean = 0;

    for (int64_t count = 0; clean < 8; count++) {
        domt_files_begin(NULL, true);
        size_t length = (size_t)snprintf(path, sizeof path, "%s", domt_files_now.tree.root);
        while (length < 3000)
            length += (size_t)snprintf(path + length, sizeof path - length, "/.");
        (void)snprintf(path + length, sizeof path - length, "/one");
        ended = 0;
        domt_send_notice(domt_files_now.system,
                         domt_spawn(domt_files_now.system, 1, &chained, NULL), &go_type, NULL);
        domi_memory_fail_allocation_after(count, 0);
        ck_assert_int_eq(domus_testkit_run(domt_files_now.kit), 0);
        domi_memory_fail_allocation_after(-1, 0);
        /* if `ended` is 0, no conversation could begin */
        bool has_failed = ended == 0 || last_error == -ENOMEM;
        ck_assert(has_failed || last_error == 0);
        failures += has_failed;
        clean = has_failed ? 0 : clean + 1;
        domt_files_end();
    }
    ck_assert_uint_ge(failures, 8);
}

/* --- where there is no /proc ------------------------------------------------------------------ */

/* Run in the container: give a file without a name the name /data/named. Returns 0 if the name
 * leads to the file's bytes, else an errno. */
static int link_unnamed_file_in_container(void)
{
    const domi_disk_name name = {.directory = AT_FDCWD, .path = "/data/named"};
    char text[8] = "";
    int fd = open("/data", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (access("/proc/self/fd", F_OK) == 0 || fd < 0 || write(fd, "bytes", 5) != 5)
        return EINVAL;
    int result = domi_disk_link(fd, name);
    if (result != 0)
        return -result;
    int again = open("/data/named", O_RDONLY | O_CLOEXEC);
    return again >= 0 && read(again, text, sizeof text) == 5 && strcmp(text, "bytes") == 0 ? 0
                                                                                           : EIO;
}

DOMT_TEST(a_file_without_a_name_gets_one_without_proc)
{
    static const domt_container container = {.has_root = true, .has_data = true};
    struct utsname kernel;
    int status = 0;

    ck_assert_int_eq(uname(&kernel), 0);
    char *minor = NULL;
    unsigned long major = strtoul(kernel.release, &minor, 10);
    if (major < 6 || (major == 6 && strtoul(minor + 1, NULL, 10) < 10)) {
        fprintf(stderr, "Linux %s names no file by its descriptor; skipped\n", kernel.release);
        return;
    }
    if (DOMT_SANITIZED) {
        fprintf(stderr, "a sanitizer reads /proc; skipped\n");
        return;
    }
    if (!domt_container_is_allowed())
        return;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        domt_container_enter(&container);
        _exit(link_unnamed_file_in_container());
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s",
                  strerror(WEXITSTATUS(status)));
}

DOMT_SUITE(60)
