/* runtime/files/operation.c: a cancel, a deadline, a stop of the actor and a stop of the system do
 * not wait for a disk, and late results are thrown away. The disk is slow because this file
 * replaces some calls of the C library: they wait while `held` is set. */
#include "tests/runtime/files.h"

#include "runtime/files/handle.h"
#include "runtime/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_bool held;
static _Atomic uint32_t waiting, left_call;

/* Other threads use these calls, too: those that measure memory read files of the kernel. The
 * functions are not static, because the C library may declare its own as inline ones. */
void wait_while_held(void);
void wait_while_held(void)
{
    if (!atomic_load(&held) || !domi_workers_is_helper(domt_files_now.system->workers))
        return;
    atomic_fetch_add(&waiting, 1);
    for (int i = 0; i < 60000 && atomic_load(&held); i++)
        domt_pause_ns(DOMT_MS);
    atomic_fetch_add(&left_call, 1);
}

/* Called by a stat. */
int fstat(int fd, struct stat *status)
{
    wait_while_held();
    return (int)syscall(SYS_fstat, fd, status);
}

/* Called by an open, before it looks at the kind of the file. */
int statx(int directory, const char *restrict path, int flags, unsigned int mask,
          struct statx *restrict status)
{
    wait_while_held();
    return (int)syscall(SYS_statx, directory, path, flags, mask, status);
}

/* Called by a list, for a later piece. */
off_t lseek(int fd, off_t offset, int whence)
{
    wait_while_held();
    return syscall(SYS_lseek, fd, offset, whence);
}

/* Called by a write. */
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    wait_while_held();
    return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

/* Called by a read. */
ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
    wait_while_held();
    return syscall(SYS_pread64, fd, bytes, size, offset);
}

/* --- an actor that is cancelled --------------------------------------------------------------- */

static const domus_type begin_type = {.name = "begin", .size = sizeof(domt_deed)};
static const domus_type cancel_type = {.name = "cancel"};
static const domus_type end_type = {.name = "end"};

static _Atomic uint32_t begun, resumed, stopped;
static _Atomic int last_error;

static int record_end(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&last_error, answer->error);
    atomic_fetch_add(&resumed, 1);
    return 0;
}

static int begin_deed(domus_stack *stack, const domt_deed *deed)
{
    domus_slice bytes = {NULL, 0, 0};

    switch (deed->kind) {
    case DOMT_OPEN:
        return domus_file_open(stack, deed->file, deed->path, deed->flags, 0600, record_end);
    case DOMT_STAT:
        return domus_file_stat(stack, deed->file, record_end);
    case DOMT_LIST:
        return domus_file_list(stack, deed->file, 1, record_end);
    case DOMT_WRITE:
        (void)domus_slice_copy("abc", 3, &bytes);
        return domus_file_write(stack, deed->file, 0, bytes, record_end);
    default:
        return domus_file_read(stack, deed->file, 0, deed->size != 0 ? (uint32_t)deed->size : 100,
                               record_end);
    }
}

static int begin_one(domus_stack *stack, void *self, const void *payload)
{
    int result = begin_deed(stack, payload);

    if (domus_conversation_of(stack, self) != 0)
        return -EPROTO;
    atomic_fetch_add(&begun, 1);
    return result;
}

static int cancel_one(domus_stack *stack, void *self, const void *payload)
{
    return domus_cancel(stack, *(domus_conversation *)self);
}

static int end_oneself(domus_stack *stack, void *self, const void *payload)
{
    return domus_stop(stack, domus_self(stack));
}

static void record_stop(domus_stack *stack, void *self)
{
    atomic_fetch_add(&stopped, 1);
}

static const domus_behaviour patient = {
    .name = "patient",
    .state_size = sizeof(domus_conversation),
    .on = (const domus_on[]){{&begin_type, begin_one, 0},
                             {&cancel_type, cancel_one, 0},
                             {&end_type, end_oneself, 0},
                             {0}},
    .on_stop = record_stop,
};

static domus_file *file;

static void open_file(const domus_config *config)
{
    domt_files_begin(config, false);
    file = domt_file_must_open("one", DOMUS_FILE_READ | DOMUS_FILE_WRITE | DOMUS_FILE_CREATE);
    domt_file_must_write(file, 0, "before");
    atomic_store(&waiting, 0), atomic_store(&left_call, 0);
    atomic_store(&begun, 0), atomic_store(&resumed, 0), atomic_store(&stopped, 0);
    atomic_store(&last_error, 1);
    atomic_store(&held, true);
}

static void close_file(void)
{
    domus_file_close(file);
    domt_files_end();
}

static domt_deed deed_of(domt_deed_kind kind)
{
    bool is_of_root = kind == DOMT_OPEN || kind == DOMT_LIST;

    return (domt_deed){.kind = kind,
                       .file = is_of_root ? domt_files_now.root : file,
                       .path = "two",
                       .flags = DOMUS_FILE_WRITE | DOMUS_FILE_CREATE};
}

static const domt_deed_kind kinds[] = {DOMT_OPEN, DOMT_STAT, DOMT_LIST, DOMT_WRITE};

DOMT_TEST(cancel_does_not_wait_for_a_disk)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        open_file(NULL);
        domt_deed deed = deed_of(kinds[i]);
        domus_system *system = domt_files_now.system;
        domus_address actor = domt_spawn(system, i % 2, &patient, NULL);
        domt_notice(system, actor, &begin_type, &deed);
        DOMT_WAIT_FOR(30, atomic_load(&waiting) == 1);
        uint64_t late = domt_profile_all(system).late_replies;
        domt_notice(system, actor, &cancel_type, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&resumed) == 1);
        ck_assert_int_eq(atomic_load(&last_error), -ECANCELED);
        ck_assert_uint_eq(atomic_load(&left_call), 0);
        atomic_store(&held, false);
        DOMT_WAIT_FOR(10, domt_profile_all(system).late_replies > late);
        ck_assert_uint_eq(atomic_load(&resumed), 1);
        close_file();
    }
}

DOMT_TEST(deadlines_do_not_wait_for_a_disk)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        open_file(NULL);
        domt_deed deed = deed_of(kinds[i]);
        domus_system *system = domt_files_now.system;
        deed.size = 1, deed.bytes = "x", deed.position = kinds[i] == DOMT_LIST;
        uint64_t timeouts = domt_profile_all(system).late_replies;
        domt_done done = {.error = -ETIMEDOUT};
        domus_outside_reply reply = {.buffer = &done, .size = sizeof done};
        /* the clerk may report its time-out before this thread's own time-out */
        int error = domus_outside_ask(system, domt_files_now.clerks[0], &domt_deed_type, &deed,
                                      100 * DOMT_MS, &reply);
        ck_assert(error == -ETIMEDOUT || error == 0);
        ck_assert_int_eq(done.error, -ETIMEDOUT);
        ck_assert_uint_eq(atomic_load(&left_call), 0);
        atomic_store(&held, false);
        DOMT_WAIT_FOR(10, domt_profile_all(system).late_replies > timeouts);
        close_file();
    }
}

DOMT_TEST(actor_stops_without_waiting_for_a_disk)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        open_file(NULL);
        domt_deed deed = deed_of(kinds[i]);
        domus_system *system = domt_files_now.system;
        domus_address actor = domt_spawn(system, i % 2, &patient, NULL);
        domt_notice(system, actor, &begin_type, &deed);
        DOMT_WAIT_FOR(30, atomic_load(&waiting) == 1);
        domt_notice(system, actor, &end_type, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&stopped) == 1);
        ck_assert_int_eq(atomic_load(&last_error), -ECANCELED);
        ck_assert_uint_eq(atomic_load(&left_call), 0);
        atomic_store(&held, false);
        DOMT_WAIT_FOR(10, atomic_load(&left_call) == 1);
        close_file();
    }
}

DOMT_TEST(operation_that_has_not_begun_is_not_begun_after_a_cancel)
{
    domus_config config = domt_config(2);

    config.blocking.threads_max = 1;
    open_file(&config);
    domus_system *system = domt_files_now.system;
    domus_address first = domt_spawn(system, 0, &patient, NULL);
    domus_address second = domt_spawn(system, 1, &patient, NULL);
    domt_deed deed = deed_of(DOMT_STAT);
    domt_notice(system, first, &begin_type, &deed);
    DOMT_WAIT_FOR(30, atomic_load(&waiting) == 1);
    deed = deed_of(DOMT_OPEN); /* a file that would be made */
    domt_notice(system, second, &begin_type, &deed);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 2);
    domt_notice(system, second, &cancel_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 1);
    ck_assert_int_eq(atomic_load(&last_error), -ECANCELED);
    uint64_t late = domt_profile_all(system).late_replies;
    atomic_store(&held, false);
    DOMT_WAIT_FOR(10, domt_profile_all(system).late_replies > late);
    ck_assert_int_eq(access(domt_file_path("two"), F_OK), -1);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 2);
    ck_assert_int_eq(atomic_load(&last_error), 0);
    close_file();
}

DOMT_TEST(helpers_are_bounded)
{
    domus_config config = domt_config(2);

    config.blocking.threads_max = 1;
    config.blocking.queue_max = 1;
    open_file(&config);
    domus_system *system = domt_files_now.system;
    domus_address actor = domt_spawn(system, 0, &patient, NULL);
    domt_deed deed = deed_of(DOMT_STAT);
    domt_notice(system, actor, &begin_type, &deed);
    DOMT_WAIT_FOR(30, atomic_load(&waiting) == 1);
    domt_notice(system, actor, &begin_type, &deed);
    domt_notice(system, actor, &begin_type, &deed);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 1);
    ck_assert_int_eq(atomic_load(&last_error), -EAGAIN);
    deed = deed_of(DOMT_OPEN); /* the handle is closed when the answer is thrown away */
    domt_notice(system, actor, &begin_type, &deed);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 2);
    ck_assert_int_eq(atomic_load(&last_error), -EAGAIN);
    atomic_store(&held, false);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 4);
    ck_assert_int_eq(atomic_load(&last_error), 0);
    close_file();
}

/* Operations that run are abandoned, and freed with the system once they have returned; operations
 * that wait are ended. A long path makes an envelope that is in no pool. */
DOMT_TEST(system_stops_without_waiting_for_a_disk)
{
    static char path[3000];
    domus_config config = domt_config(2);

    config.blocking.threads_max = 6;
    open_file(&config);
    domus_system *system = domt_files_now.system;
    domt_deed deed;
    for (uint32_t i = 0; i < sizeof path - 3; i += 2)
        memcpy(path + i, "./", 2);
    memcpy(path + sizeof path - 5, "two", 4);
    for (size_t i = 0; i < 12; i++) {
        deed = deed_of(kinds[i % 4]);
        if (i == 4)
            deed.path = path;
        domt_notice(system, domt_spawn(system, i % 2, &patient, NULL), &begin_type, &deed);
        DOMT_WAIT_FOR(10, atomic_load(&begun) == i + 1);
    }
    DOMT_WAIT_FOR(30, atomic_load(&waiting) == 6);
    domus_file_close(domt_files_now.root);
    domus_file_close(file); /* operations still use the file */
    uint64_t before_ns = domt_now_ns();
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_uint_lt(domt_now_ns() - before_ns, UINT64_C(9000000000));
    ck_assert_uint_eq(atomic_load(&stopped), 12);
    ck_assert_uint_eq(atomic_load(&left_call), 0);
    domus_system_free(system); /* the free waits for a second, and frees nothing */
    ck_assert_uint_eq(atomic_load(&left_call), 0);
    atomic_store(&held, false);
    DOMT_WAIT_FOR(10, atomic_load(&left_call) == 6);
    domus_system_free(system);
    ck_assert_uint_eq(domt_entries("/proc/self/fd"), domt_files_now.open_fds);
    domt_tree_remove(&domt_files_now.tree);
}

/* Each system is stopped when reads have just begun: they are in the ring, or not yet there. */
DOMT_TEST(operations_in_the_ring_end_with_a_cancel_and_a_stop)
{
    for (uint32_t round = 0; round < 30; round++) {
        open_file(NULL);
        atomic_store(&held, false);
        domus_system *system = domt_files_now.system;
        domt_deed deed = deed_of(DOMT_READ);
        domus_address actor = domt_spawn(system, round % 2, &patient, NULL);
        for (uint32_t i = 1; i <= 20; i++) {
            domt_notice(system, actor, &begin_type, &deed);
            /* sometimes cancels before the next enter */
            domt_notice(system, actor, &cancel_type, NULL);
            DOMT_WAIT_FOR(10, atomic_load(&resumed) == i);
            int error = atomic_load(&last_error);
            ck_assert(error == 0 || error == -ECANCELED);
        }
        for (uint32_t i = 0; i < 5; i++)
            domt_notice(system, domt_spawn(system, i % 2, &patient, NULL), &begin_type, &deed);
        domus_file_close(domt_files_now.root);
        domt_end(system);
        /* closed only now, because the last notices may not have been handled */
        domus_file_close(file);
        domt_tree_remove(&domt_files_now.tree);
        ck_assert_uint_eq(atomic_load(&resumed), atomic_load(&begun));
        ck_assert_uint_eq(domt_entries("/proc/self/fd"), domt_files_now.open_fds);
    }
}

DOMT_TEST(bytes_of_reads_are_charged_while_they_are_under_way)
{
    const int64_t mib = 1 << 20;

    open_file(NULL);
    domus_system *system = domt_files_now.system;
    _Atomic int64_t *charged = &system->pressure.meter.held;
    domt_deed deed = deed_of(DOMT_READ);
    atomic_store(&held, false);
    ck_assert_int_eq(
        domt_file_do((domt_deed){.kind = DOMT_TRUNCATE, .file = file, .size = (uint64_t)mib}).error,
        0);
    atomic_store(&held, true);
    atomic_store(&file->reads_wait, true); /* as if the file system could not say so */
    deed.size = (uint64_t)mib;
    domus_address actor = domt_spawn(system, 0, &patient, NULL);
    int64_t before = atomic_load(charged);
    for (int i = 0; i < 4; i++)
        domt_notice(system, actor, &begin_type, &deed);
    DOMT_WAIT_FOR(30, atomic_load(&waiting) == 4);
    ck_assert_int_ge(atomic_load(charged), before + 4 * mib - mib / 4);
    atomic_store(&held, false);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 4);
    ck_assert_int_eq(atomic_load(&last_error), 0);
    DOMT_WAIT_FOR(10, atomic_load(charged) < before + mib / 2);
    close_file();
}

DOMT_SUITE(60)
