/* runtime/files/kinds.c, io/completions/file.c: files that the kernel has in memory are read and
 * opened without a helper thread, on each backend, with many reads, many threads, lent actors and
 * detached actors; and the kernel makes no worker thread for them. */
#include "tests/runtime/files.h"
#include "tests/runtime/pressed.h"
#include "tests/support/deny.h"
#include "tests/support/sanitizer.h"

#include "runtime/files/handle.h"
#include "runtime/files/kinds.h"
#include "runtime/files/operation.h"
#include "runtime/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RW (DOMUS_FILE_READ | DOMUS_FILE_WRITE)

#define FILE_BYTES 1000000u

/* Fill the buffer so that each eighth byte tells its position in the file. */
static void fill_bytes_by_position(char *bytes, uint64_t position, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = (char)('a' + (position + i) / 8 % 23);
}

static bool are_bytes_as_filled(domus_slice bytes, uint64_t position)
{
    const char *data = domus_slice_data(bytes);

    for (uint32_t i = 0; i < bytes.size; i++)
        if (data[i] != (char)('a' + (position + i) / 8 % 23))
            return false;
    return true;
}

static domus_file *make_filled_file(const char *name)
{
    static char bytes[FILE_BYTES];
    domus_file *file = domt_file_must_open(name, RW | DOMUS_FILE_CREATE);

    fill_bytes_by_position(bytes, 0, FILE_BYTES);
    domt_done done = domt_file_order(
        (domt_deed){.kind = DOMT_WRITE, .file = file, .bytes = bytes, .size = FILE_BYTES});
    ck_assert_int_eq(done.error, 0);
    ck_assert_uint_eq(done.written.bytes, FILE_BYTES);
    return file;
}

static void check_read_at_position(uint32_t clerk, domus_file *file, uint64_t position,
                                   uint32_t size)
{
    domt_done done = domt_file_order_from_clerk(
        clerk, (domt_deed){.kind = DOMT_READ, .file = file, .position = position, .size = size});
    uint64_t left = position < FILE_BYTES ? FILE_BYTES - position : 0;

    ck_assert_int_eq(done.error, 0);
    ck_assert_uint_eq(done.bytes.size, left < size ? left : size);
    ck_assert(are_bytes_as_filled(done.bytes, position));
    domus_slice_free(done.bytes);
}

DOMT_TEST(bytes_in_memory_need_no_helper)
{
    domt_files_begin(NULL, false);
    domus_file *file = make_filled_file("one");
    uint64_t helped = domt_count_helper_jobs();

    for (uint32_t i = 0; i < 100; i++) {
        check_read_at_position(i % 2, file, i * 1001, 4096);
        check_read_at_position(i % 2, file, FILE_BYTES - 100 + i, 4096);
    }
    check_read_at_position(0, file, 0, FILE_BYTES);
    ck_assert_uint_eq(domt_count_helper_jobs(), helped);

    /* The kernel remembers a name that was just looked up, so these opens need no helper thread. */
    for (uint32_t i = 0; i < 100; i++)
        domus_file_close(domt_file_must_open("one", DOMUS_FILE_READ));
    ck_assert_uint_le(domt_count_helper_jobs(), helped + 1);
    ck_assert_uint_eq(domt_count_threads_named("iou-wrk"), 0);
    domus_file_close(file);
    domt_files_end();
}

DOMT_TEST(bytes_on_the_disk_are_read_by_helpers)
{
    domt_files_begin(NULL, false);
    domus_file *file = make_filled_file("one");
    int fd = open(domt_file_whole_path("one"), O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    for (uint32_t i = 0; i < 20; i++) {
        ck_assert_int_eq(domt_file_order((domt_deed){.kind = DOMT_SYNC, .file = file}).error, 0);
        ck_assert_int_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
        /* this read has brought one part of the file into memory */
        check_read_at_position(0, file, 4096, 4096);
        /* a helper thread reads, because only parts of the range are in memory */
        check_read_at_position(1, file, 0, FILE_BYTES);
        /* now all of the range is in memory */
        check_read_at_position(0, file, 8191 + i * 999, 9999);
    }
    close(fd);
    ck_assert_uint_eq(domt_count_threads_named("iou-wrk"), 0);
    domus_file_close(file);
    domt_files_end();
}

/* If a file system refuses all writes that must not wait, the ring is asked only a few times. */
DOMT_TEST(writes_go_to_helpers_when_the_ring_refuses_them)
{
    domt_files_begin(NULL, false);
    domus_file *file = make_filled_file("one");

    for (uint32_t i = 0; i < 100; i++)
        domt_file_must_write(file, 8 * i, "abcdefgh");
    domt_done done = domt_file_order((domt_deed){.kind = DOMT_READ, .file = file, .size = 808});
    for (uint32_t i = 0; i < 100; i++)
        ck_assert_int_eq(memcmp(domus_slice_data(done.bytes) + 8 * i, "abcdefgh", 8), 0);
    ck_assert(!are_bytes_as_filled(done.bytes, 0));
    ck_assert_uint_le(atomic_load(&file->writes_waited), 4);
    domus_slice_free(done.bytes);
    ck_assert_uint_eq(domt_count_threads_named("iou-wrk"), 0);
    domus_file_close(file);
    domt_files_end();
}

/* --- many at a time --------------------------------------------------------------------------- */

static const domus_type many_type = {.name = "many", .size = sizeof(domus_file *)};
static _Atomic uint32_t good, bad, rounds;

static void count_answers_of_reads(const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next) {
        bool is_good = answer->error == 0 && answer->type == &domus_slice_type;
        if (is_good) {
            const domus_slice *bytes = answer->payload;
            is_good = bytes->size == 4096 && are_bytes_as_filled(*bytes, answer->tag);
        }
        atomic_fetch_add(is_good ? &good : &bad, 1);
    }
}

static int count_round_of_many_reads(domus_stack *stack, void *self, const domus_answer *answer)
{
    count_answers_of_reads(answer);
    atomic_fetch_add(&rounds, 1);
    return 0;
}

static int on_many_read_1000_times(domus_stack *stack, void *self, const void *payload)
{
    domus_file *file = *(domus_file *const *)payload;

    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t position = i * UINT64_C(991);
        if (domus_file_read_add(stack, file, position, 4096, position) != 0)
            atomic_fetch_add(&bad, 1);
    }
    return domus_wait_all(stack, count_round_of_many_reads);
}

static int check_read_and_begin_next(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint32_t *left = self;

    count_answers_of_reads(answer);
    if (--*left == 0) {
        atomic_fetch_add(&rounds, 1);
        return 0;
    }
    domus_address own = domus_self(stack);
    return domus_notice(stack, own, &many_type, self);
}

/* A file that actors on several threads read together; the threads steal these actors' houses. */
static domus_file *shared_file;

static int on_one_read_once(domus_stack *stack, void *self, const void *payload)
{
    uint64_t until_ns = domt_now_ns() + 20000;
    uint32_t *left = self;

    while (domt_now_ns() < until_ns)
        continue;
    if (*left == 0)
        *left = 20;
    uint64_t position = *left * UINT64_C(40000);
    if (domus_file_read_add(stack, shared_file, position, 4096, position) != 0)
        return -EPROTO;
    return domus_wait_first(stack, check_read_and_begin_next);
}

static const domus_behaviour many_reader = {
    .name = "many", .on = (const domus_on[]){{&many_type, on_many_read_1000_times, 0}, {0}}};
static const domus_behaviour one_reader = {
    .name = "one",
    .state_size = sizeof(domus_file *),
    .on = (const domus_on[]){{&many_type, on_one_read_once, 0}, {0}}};

DOMT_TEST(a_thousand_reads_are_under_way_at_once)
{
    domt_files_begin(NULL, false);
    domus_file *file = make_filled_file("one");
    domus_address reader = domt_spawn(domt_files_now.system, 0, &many_reader, NULL);

    atomic_store(&good, 0), atomic_store(&bad, 0), atomic_store(&rounds, 0);
    for (int i = 0; i < 3; i++)
        domt_send_notice(domt_files_now.system, reader, &many_type, &file);
    DOMT_WAIT_FOR(20, atomic_load(&rounds) == 3);
    ck_assert_uint_eq(atomic_load(&bad), 0);
    ck_assert_uint_eq(atomic_load(&good), 3000);
    ck_assert_uint_eq(domt_count_threads_named("iou-wrk"), 0);

    /* The same reads again, when the disk has to be asked for each of them. */
    int fd = open(domt_file_whole_path("one"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(domt_file_order((domt_deed){.kind = DOMT_SYNC, .file = file}).error, 0);
    ck_assert_int_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
    domt_send_notice(domt_files_now.system, reader, &many_type, &file);
    DOMT_WAIT_FOR(20, atomic_load(&rounds) == 4);
    ck_assert_uint_eq(atomic_load(&bad), 0);
    ck_assert_uint_eq(domt_count_threads_named("iou-wrk"), 0);
    domus_file_close(file);
    domt_files_end();
}

DOMT_TEST(lent_actors_read_on_the_thread_that_runs_them)
{
    domus_config config = domt_config_of_threads(2);

    config.scheduler.steal.floor = 1;
    config.scheduler.steal.aggression = 1;
    config.scheduler.steal.min_run_ns = 0;
    domt_files_begin(&config, false);
    shared_file = make_filled_file("one");
    atomic_store(&good, 0), atomic_store(&bad, 0), atomic_store(&rounds, 0);
    for (uint32_t i = 0; i < 64; i++)
        domt_send_notice(domt_files_now.system,
                         domt_spawn(domt_files_now.system, 0, &one_reader, NULL), &many_type,
                         &shared_file);
    DOMT_WAIT_FOR(50, atomic_load(&rounds) == 64);
    ck_assert_uint_eq(atomic_load(&bad), 0);
    ck_assert_uint_eq(atomic_load(&good), 64 * 20);
    ck_assert_uint_ne(domt_profile_of_thread(domt_files_now.system, 1).steals, 0);
    domus_file_close(shared_file);
    domt_files_end();
}

DOMT_TEST(a_detached_actor_reads_by_helpers)
{
    domt_files_begin(NULL, false);
    domus_file *file = make_filled_file("one");
    atomic_store(&good, 0), atomic_store(&bad, 0), atomic_store(&rounds, 0);
    domus_address reader = domt_spawn_detached(domt_files_now.system, &many_reader);
    uint64_t helped = domt_count_helper_jobs();
    domt_send_notice(domt_files_now.system, reader, &many_type, &file);
    DOMT_WAIT_FOR(20, atomic_load(&rounds) == 1);
    ck_assert_uint_eq(atomic_load(&bad), 0);
    ck_assert_uint_eq(atomic_load(&good), 1000);
    ck_assert_uint_eq(domt_count_helper_jobs(), helped + 1000);
    domus_file_close(file);
    domt_files_end();
}

/* --- handles ---------------------------------------------------------------------------------- */

/* If a handle is closed while its reads are under way, the file stays open for these reads. */
DOMT_TEST(a_file_is_closed_behind_its_last_operation)
{
    domt_files_begin(NULL, false);
    domus_address reader = domt_spawn(domt_files_now.system, 1, &many_reader, NULL);
    uint32_t before = domt_count_directory_entries("/proc/self/fd");

    atomic_store(&good, 0), atomic_store(&bad, 0), atomic_store(&rounds, 0);
    for (uint32_t i = 0; i < DOMT_SCALE(20, 6); i++) {
        domus_file_close(make_filled_file("one"));
        domus_file *file = domt_file_must_open("one", i % 2 == 0 ? RW : DOMUS_FILE_READ);
        domt_send_notice(domt_files_now.system, reader, &many_type, &file);
        DOMT_WAIT_FOR(20, atomic_load(&file->users) > 1 || atomic_load(&rounds) == i + 1);
        domus_file_close(file);
        DOMT_WAIT_FOR(20, atomic_load(&rounds) == i + 1);
    }
    ck_assert_uint_eq(atomic_load(&bad), 0);
    DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == before);
    domt_files_end();
}

/* A handle may be closed after its system has ended. */
DOMT_TEST(a_file_may_be_closed_after_its_system)
{
    domus_file *files[2];

    domt_files_begin(NULL, false);
    files[0] = domt_file_must_open("one", RW | DOMUS_FILE_CREATE);
    files[1] = domt_file_must_open("one", DOMUS_FILE_READ);
    domus_file_close(domt_files_now.root);
    domt_end_system(domt_files_now.system);
    domus_file_close(files[0]);
    domus_file_close(files[1]);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), domt_files_now.open_fds);
    domt_tree_remove_copy(&domt_files_now.tree);
}

/* --- a ring that fails ------------------------------------------------------------------------ */

static const domus_type deny_type = {.name = "deny"};

/* From now on let the ring of this thread refuse everything, also the read that begins here. */
static int let_ring_refuse_and_read(domus_stack *stack, void *self, const void *payload)
{
    if (domt_deny_system_call(SYS_io_uring_enter, EBADF) != 0)
        return -EPROTO;
    if (domus_file_read_add(stack, shared_file, 0, 4096, 0) != 0)
        return -EPROTO;
    return domus_wait_all(stack, count_round_of_many_reads);
}

static const domus_behaviour denier = {
    .name = "denier", .on = (const domus_on[]){{&deny_type, let_ring_refuse_and_read, 0}, {0}}};

DOMT_TEST(files_are_read_by_helpers_after_ring_failed)
{
    domt_files_begin(NULL, false);
    domus_system *system = domt_files_now.system;

    if (system->threads[0].io.backend == &domi_backend_uring) {
        shared_file = make_filled_file("one");
        atomic_store(&good, 0), atomic_store(&bad, 0), atomic_store(&rounds, 0);
        uint64_t helped = domt_count_helper_jobs();
        domt_send_notice(system, domt_spawn(system, 0, &denier, NULL), &deny_type, NULL);
        DOMT_WAIT_FOR(20, atomic_load(&rounds) == 1);
        ck_assert_uint_eq(atomic_load(&bad), 0);
        ck_assert_uint_eq(atomic_load(&good), 1);
        ck_assert_uint_eq(domt_count_helper_jobs(), helped + 1);
        domus_file_close(shared_file);
        domus_file_close(domt_files_now.root);
        ck_assert_int_eq(domus_system_stop(system), -EBADF);
        domus_system_free(system);
        domt_tree_remove_copy(&domt_files_now.tree);
    } else {
        domt_files_end();
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Counts of an actor that reads a file and lists a directory by turns, each millisecond. */
static _Atomic uint32_t tried, refused;
static _Atomic bool is_over;

static int try_read_or_list_again(domus_stack *stack, void *self, const domus_answer *answer);

static int count_result_and_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error == -EBUSY)
        atomic_fetch_add(&refused, 1);
    else if (answer->error != 0)
        atomic_fetch_add(&bad, 1);
    else
        atomic_fetch_add(&good, 1);
    return domus_sleep(stack, DOMT_MS, try_read_or_list_again);
}

static int try_read_or_list_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (atomic_load(&is_over)) {
        atomic_fetch_add(&rounds, 1);
        return 0;
    }
    return atomic_fetch_add(&tried, 1) % 2 == 0
               ? domus_file_read(stack, shared_file, 0, 1, count_result_and_sleep)
               : domus_file_list(stack, shared_file, 0, count_result_and_sleep);
}

static int begin_tries_of_file_operations(domus_stack *stack, void *self, const void *payload)
{
    return try_read_or_list_again(stack, self, NULL);
}

static const domus_behaviour tryer = {
    .name = "tryer",
    .on = (const domus_on[]){{&many_type, begin_tries_of_file_operations, 0}, {0}}};

DOMT_TEST(critical_memory_refuses_reads_and_listings)
{
    domus_system *system = domt_pressed_start(true, NULL);
    domus_address clerk = domt_spawn(system, 0, &domt_clerk, NULL);
    domt_done done = {.error = 1};
    domus_outside_reply reply = {.buffer = &done, .size = sizeof done};
    domt_deed deed = {.path = "/", .flags = DOMUS_FILE_READ};

    ck_assert_int_eq(domus_outside_ask(system, clerk, &domt_deed_type, &deed, 0, &reply), 0);
    ck_assert_int_eq(done.error, 0);
    shared_file = done.file;
    atomic_store(&good, 0), atomic_store(&bad, 0), atomic_store(&rounds, 0);
    domt_send_notice(system, domt_spawn(system, 0, &tryer, NULL), &many_type, &shared_file);
    /* the operation of the read fails with -EISDIR, because the file is a directory */
    DOMT_WAIT_FOR(10, atomic_load(&good) >= 2);
    ck_assert_uint_eq(atomic_load(&refused), 0);
    domt_pressed_set_used_percent(97);
    DOMT_WAIT_FOR(10, atomic_load(&refused) >= 4);
    uint32_t before = atomic_load(&good) + atomic_load(&bad);
    uint32_t tries = atomic_load(&tried);
    DOMT_WAIT_FOR(10, atomic_load(&tried) >= tries + 4);
    ck_assert_uint_le(atomic_load(&good) + atomic_load(&bad), before + 1);
    domt_pressed_set_used_percent(10);
    DOMT_WAIT_FOR(10, atomic_load(&good) + atomic_load(&bad) >= before + 4);
    atomic_store(&is_over, true);
    DOMT_WAIT_FOR(10, atomic_load(&rounds) == 1);
    domus_file_close(shared_file);
    domt_pressed_end();
}

/* A write of which the kernel writes nothing must not be tried again without end. */
DOMT_TEST(write_ends_when_kernel_takes_no_byte)
{
    domus_file file = {.fd = -1};
    domi_file_operation operation = {.file = &file, .size = 10};

    ck_assert_int_eq(domi_file_write_verb.judge(&operation, 0, false), -EIO);
    ck_assert_int_eq(operation.error, -EIO);
    operation.error = 0;
    ck_assert_int_eq(domi_file_write_verb.judge(&operation, 4, false), DOMI_FILE_TRY_AGAIN);
    ck_assert_int_eq(domi_file_write_verb.judge(&operation, 0, false), 0);
    ck_assert_int_eq(operation.error, -EIO);
    ck_assert_uint_eq(operation.done, 4);
}

DOMT_SUITE(60)
