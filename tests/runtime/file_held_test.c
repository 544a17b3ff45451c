/* runtime/files/operation.c: a cancel, a deadline, a stop of the actor and a stop of the system do
 * not wait for a slow disk, and results that come later are thrown away. The disk is slow because
 * this file replaces some functions of the C library: they wait while `held` is set. */
#include "tests/runtime/files.h"

#include "runtime/files/handle.h"
#include "runtime/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_bool held;
static _Atomic uint32_t waiting, left_call;

/* Only helper threads wait here: other threads call the replaced functions, too, for instance to
 * measure memory. The functions are not static, because the C library may declare its own as inline
 * ones. */
void block_helper_thread_while_held(void);
void block_helper_thread_while_held(void)
{
    if (!atomic_load(&held) || !domi_workers_is_helper(domt_files_now.system->workers))
        return;
    atomic_fetch_add(&waiting, 1);
    for (int i = 0; i < 60000 && atomic_load(&held); i++)
        domt_pause_ns(DOMT_MS);
    atomic_fetch_add(&left_call, 1);
}

/* Replaces the fstat() that a stat operation calls. */
int fstat(int fd, struct stat *status)
{
    block_helper_thread_while_held();
    return (int)syscall(SYS_fstat, fd, status);
}

/* Replaces the statx() by which an open looks at the kind of the file. */
int statx(int directory, const char *restrict path, int flags, unsigned int mask,
          struct statx *restrict status)
{
    block_helper_thread_while_held();
    return (int)syscall(SYS_statx, directory, path, flags, mask, status);
}

/* Replaces the lseek() that a listing calls for its later pieces. */
off_t lseek(int fd, off_t offset, int whence)
{
    block_helper_thread_while_held();
    return syscall(SYS_lseek, fd, offset, whence);
}

/* Replaces the pwrite() that a write calls. */
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    block_helper_thread_while_held();
    return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

/* Replaces the pread() that a read calls. */
ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
    block_helper_thread_while_held();
    return syscall(SYS_pread64, fd, bytes, size, offset);
}

/* --- an actor that is cancelled --------------------------------------------------------------- */

static const domus_type begin_type = {.name = "begin", .size = sizeof(domt_deed)};
static const domus_type cancel_type = {.name = "cancel"};
static const domus_type end_type = {.name = "end"};

static _Atomic uint32_t begun, resumed, stopped;
static _Atomic int last_error;

static int record_end_of_operation(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&last_error, answer->error);
    atomic_fetch_add(&resumed, 1);
    return 0;
}

static int begin_file_operation(domus_stack *stack, const domt_deed *deed)
{
    domus_slice bytes = {NULL, 0, 0};

    switch (deed->kind) {
    case DOMT_OPEN:
        return domus_file_open(stack, deed->file, deed->path, deed->flags, 0600,
                               record_end_of_operation);
    case DOMT_STAT:
        return domus_file_stat(stack, deed->file, record_end_of_operation);
    case DOMT_LIST:
        return domus_file_list(stack, deed->file, 1, record_end_of_operation);
    case DOMT_WRITE:
        (void)domus_slice_copy("abc", 3, &bytes);
        return domus_file_write(stack, deed->file, 0, bytes, record_end_of_operation);
    default:
        return domus_file_read(stack, deed->file, 0, deed->size != 0 ? (uint32_t)deed->size : 100,
                               record_end_of_operation);
    }
}

static int on_deed_begin_file_operation(domus_stack *stack, void *self, const void *payload)
{
    int result = begin_file_operation(stack, payload);

    if (domus_conversation_of(stack, self) != 0)
        return -EPROTO;
    atomic_fetch_add(&begun, 1);
    return result;
}

static int cancel_begun_operation(domus_stack *stack, void *self, const void *payload)
{
    return domus_cancel(stack, *(domus_conversation *)self);
}

static int stop_own_actor(domus_stack *stack, void *self, const void *payload)
{
    return domus_stop(stack, domus_self(stack));
}

static void count_stopped_actor(domus_stack *stack, void *self)
{
    atomic_fetch_add(&stopped, 1);
}

static const domus_behaviour patient = {
    .name = "patient",
    .state_size = sizeof(domus_conversation),
    .on = (const domus_on[]){{&begin_type, on_deed_begin_file_operation, 0},
                             {&cancel_type, cancel_begun_operation, 0},
                             {&end_type, stop_own_actor, 0},
                             {0}},
    .on_stop = count_stopped_actor,
};

static domus_file *file;

static void open_file_to_work_on(const domus_config *config)
{
    domt_files_begin(config, false);
    file = domt_file_must_open("one", DOMUS_FILE_READ | DOMUS_FILE_WRITE | DOMUS_FILE_CREATE);
    domt_file_must_write(file, 0, "before");
    atomic_store(&waiting, 0), atomic_store(&left_call, 0);
    atomic_store(&begun, 0), atomic_store(&resumed, 0), atomic_store(&stopped, 0);
    atomic_store(&last_error, 1);
    atomic_store(&held, true);
}

static void close_file_worked_on(void)
{
    domus_file_close(file);
    domt_files_end();
}

static domt_deed make_order_of_operation(domt_deed_kind kind)
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
        open_file_to_work_on(NULL);
        domt_deed deed = make_order_of_operation(kinds[i]);
        domus_system *system = domt_files_now.system;
        domus_address actor = domt_spawn(system, i % 2, &patient, NULL);
        domt_send_notice(system, actor, &begin_type, &deed);
        DOMT_WAIT_FOR(30, atomic_load(&waiting) == 1);
        uint64_t late = domt_profile_of_all_threads(system).late_replies;
        domt_send_notice(system, actor, &cancel_type, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&resumed) == 1);
        ck_assert_int_eq(atomic_load(&last_error), -ECANCELED);
        ck_assert_uint_eq(atomic_load(&left_call), 0);
        atomic_store(&held, false);
        DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system).late_replies > late);
        ck_assert_uint_eq(atomic_load(&resumed), 1);
        close_file_worked_on();
    }
}

DOMT_TEST(deadlines_do_not_wait_for_a_disk)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        open_file_to_work_on(NULL);
        domt_deed deed = make_order_of_operation(kinds[i]);
        domus_system *system = domt_files_now.system;
        deed.size = 1, deed.bytes = "x", deed.position = kinds[i] == DOMT_LIST;
        uint64_t timeouts = domt_profile_of_all_threads(system).late_replies;
        domt_done done = {.error = -ETIMEDOUT};
        domus_outside_reply reply = {.buffer = &done, .size = sizeof done};
        /* the clerk's operation may time out, and the clerk may answer, before this thread's own
         * ask has timed out */
        int error = domus_outside_ask(system, domt_files_now.clerks[0], &domt_deed_type, &deed,
                                      100 * DOMT_MS, &reply);
        ck_assert(error == -ETIMEDOUT || error == 0);
        ck_assert_int_eq(done.error, -ETIMEDOUT);
        ck_assert_uint_eq(atomic_load(&left_call), 0);
        atomic_store(&held, false);
        DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system).late_replies > timeouts);
        close_file_worked_on();
    }
}

DOMT_TEST(actor_stops_without_waiting_for_a_disk)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        open_file_to_work_on(NULL);
        domt_deed deed = make_order_of_operation(kinds[i]);
        domus_system *system = domt_files_now.system;
        domus_address actor = domt_spawn(system, i % 2, &patient, NULL);
        domt_send_notice(system, actor, &begin_type, &deed);
        DOMT_WAIT_FOR(30, atomic_load(&waiting) == 1);
        domt_send_notice(system, actor, &end_type, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&stopped) == 1);
        ck_assert_int_eq(atomic_load(&last_error), -ECANCELED);
        ck_assert_uint_eq(atomic_load(&left_call), 0);
        atomic_store(&held, false);
        DOMT_WAIT_FOR(10, atomic_load(&left_call) == 1);
        close_file_worked_on();
    }
}

DOMT_TEST(cancelled_operation_in_queue_never_begins)
{
    domus_config config = domt_config_of_threads(2);

    config.blocking.threads_max = 1;
    open_file_to_work_on(&config);
    domus_system *system = domt_files_now.system;
    domus_address first = domt_spawn(system, 0, &patient, NULL);
    domus_address second = domt_spawn(system, 1, &patient, NULL);
    domt_deed deed = make_order_of_operation(DOMT_STAT);
    domt_send_notice(system, first, &begin_type, &deed);
    DOMT_WAIT_FOR(30, atomic_load(&waiting) == 1);
    deed = make_order_of_operation(DOMT_OPEN); /* an open that would make a file */
    domt_send_notice(system, second, &begin_type, &deed);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 2);
    domt_send_notice(system, second, &cancel_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 1);
    ck_assert_int_eq(atomic_load(&last_error), -ECANCELED);
    uint64_t late = domt_profile_of_all_threads(system).late_replies;
    atomic_store(&held, false);
    DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system).late_replies > late);
    ck_assert_int_eq(access(domt_file_whole_path("two"), F_OK), -1);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 2);
    ck_assert_int_eq(atomic_load(&last_error), 0);
    close_file_worked_on();
}

DOMT_TEST(helper_threads_of_files_are_bounded)
{
    domus_config config = domt_config_of_threads(2);

    config.blocking.threads_max = 1;
    config.blocking.queue_max = 1;
    open_file_to_work_on(&config);
    domus_system *system = domt_files_now.system;
    domus_address actor = domt_spawn(system, 0, &patient, NULL);
    domt_deed deed = make_order_of_operation(DOMT_STAT);
    domt_send_notice(system, actor, &begin_type, &deed);
    DOMT_WAIT_FOR(30, atomic_load(&waiting) == 1);
    domt_send_notice(system, actor, &begin_type, &deed);
    domt_send_notice(system, actor, &begin_type, &deed);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 1);
    ck_assert_int_eq(atomic_load(&last_error), -EAGAIN);
    /* an open whose answer is thrown away, which closes the new handle */
    deed = make_order_of_operation(DOMT_OPEN);
    domt_send_notice(system, actor, &begin_type, &deed);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 2);
    ck_assert_int_eq(atomic_load(&last_error), -EAGAIN);
    atomic_store(&held, false);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 4);
    ck_assert_int_eq(atomic_load(&last_error), 0);
    close_file_worked_on();
}

/* A stop abandons operations that run and ends operations that wait; the abandoned ones are
 * freed with the system once they have returned. The long path makes an envelope that comes from
 * no pool. */
DOMT_TEST(system_stops_without_waiting_for_a_disk)
{
    static char path[3000];
    domus_config config = domt_config_of_threads(2);

    config.blocking.threads_max = 6;
    open_file_to_work_on(&config);
    domus_system *system = domt_files_now.system;
    domt_deed deed;
    for (uint32_t i = 0; i < sizeof path - 3; i += 2)
        memcpy(path + i, "./", 2);
    memcpy(path + sizeof path - 5, "two", 4);
    for (size_t i = 0; i < 12; i++) {
        deed = make_order_of_operation(kinds[i % 4]);
        if (i == 4)
            deed.path = path;
        domt_send_notice(system, domt_spawn(system, i % 2, &patient, NULL), &begin_type, &deed);
        DOMT_WAIT_FOR(10, atomic_load(&begun) == i + 1);
    }
    DOMT_WAIT_FOR(30, atomic_load(&waiting) == 6);
    domus_file_close(domt_files_now.root);
    domus_file_close(file); /* the abandoned operations still use the file */
    uint64_t before_ns = domt_now_ns();
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_uint_lt(domt_now_ns() - before_ns, UINT64_C(9000000000));
    ck_assert_uint_eq(atomic_load(&stopped), 12);
    ck_assert_uint_eq(atomic_load(&left_call), 0);
    /* this call waits for a second and then frees nothing, because operations still run */
    domus_system_free(system);
    ck_assert_uint_eq(atomic_load(&left_call), 0);
    atomic_store(&held, false);
    DOMT_WAIT_FOR(10, atomic_load(&left_call) == 6);
    domus_system_free(system);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), domt_files_now.open_fds);
    domt_tree_remove_copy(&domt_files_now.tree);
}

/* In each round the system is stopped when reads have just begun: they are in the ring, or are not
 * yet there. */
DOMT_TEST(operations_in_the_ring_end_with_a_cancel_and_a_stop)
{
    for (uint32_t round = 0; round < 30; round++) {
        open_file_to_work_on(NULL);
        atomic_store(&held, false);
        domus_system *system = domt_files_now.system;
        domt_deed deed = make_order_of_operation(DOMT_READ);
        domus_address actor = domt_spawn(system, round % 2, &patient, NULL);
        for (uint32_t i = 1; i <= 20; i++) {
            domt_send_notice(system, actor, &begin_type, &deed);
            /* the cancel sometimes comes before the read was submitted to the ring */
            domt_send_notice(system, actor, &cancel_type, NULL);
            DOMT_WAIT_FOR(10, atomic_load(&resumed) == i);
            int error = atomic_load(&last_error);
            ck_assert(error == 0 || error == -ECANCELED);
        }
        for (uint32_t i = 0; i < 5; i++)
            domt_send_notice(system, domt_spawn(system, i % 2, &patient, NULL), &begin_type, &deed);
        domus_file_close(domt_files_now.root);
        domt_end_system(system);
        /* the test's handle is closed only now, because the last notices with it may not have been
         * handled before */
        domus_file_close(file);
        domt_tree_remove_copy(&domt_files_now.tree);
        ck_assert_uint_eq(atomic_load(&resumed), atomic_load(&begun));
        ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), domt_files_now.open_fds);
    }
}

DOMT_TEST(bytes_of_reads_are_charged_while_they_are_under_way)
{
    const int64_t mib = 1 << 20;

    open_file_to_work_on(NULL);
    domus_system *system = domt_files_now.system;
    _Atomic int64_t *charged = &system->pressure.meter.held;
    domt_deed deed = make_order_of_operation(DOMT_READ);
    atomic_store(&held, false);
    ck_assert_int_eq(
        domt_file_order((domt_deed){.kind = DOMT_TRUNCATE, .file = file, .size = (uint64_t)mib})
            .error,
        0);
    atomic_store(&held, true);
    /* true: the handle says that reads of this file wait, as on a file system without RWF_NOWAIT */
    atomic_store(&file->reads_wait, true);
    deed.size = (uint64_t)mib;
    domus_address actor = domt_spawn(system, 0, &patient, NULL);
    int64_t before = atomic_load(charged);
    for (int i = 0; i < 4; i++)
        domt_send_notice(system, actor, &begin_type, &deed);
    DOMT_WAIT_FOR(30, atomic_load(&waiting) == 4);
    ck_assert_int_ge(atomic_load(charged), before + 4 * mib - mib / 4);
    atomic_store(&held, false);
    DOMT_WAIT_FOR(10, atomic_load(&resumed) == 4);
    ck_assert_int_eq(atomic_load(&last_error), 0);
    DOMT_WAIT_FOR(10, atomic_load(charged) < before + mib / 2);
    close_file_worked_on();
}

DOMT_SUITE(60)
