/* A ring fails while the system runs: a handler installs a filter that refuses each later enter of
 * its thread, with any error. The process never aborts: either the enter is tried again, or the
 * system is stopped, with a line that says why. */
#include <domus/main.h>

#include "tests/runtime/program.h"
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"
#include "tests/support/deny.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const domus_type refuse_type = {.name = "refuse", .size = sizeof(int)};
static const domus_type count_type = {.name = "count"};

static atomic_int refused;
static atomic_int counted;
static atomic_int failures;
static atomic_int failed_with;
static atomic_int closed_with;

static int let_ring_enters_fail(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domt_deny_system_call(SYS_io_uring_enter, *(const int *)payload), 0);
    atomic_store(&refused, 1);
    return 0;
}

static int count_message(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&counted, 1);
    return 0;
}

static const domus_behaviour saboteur = {
    .name = "saboteur",
    .on = (const domus_on[]){
        {&refuse_type, let_ring_enters_fail, 0}, {&count_type, count_message, 0}, {0}}};

static int record_error_of_close(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    atomic_store(&closed_with, event->error);
    return 0;
}

static const domus_behaviour server = {
    .name = "server", .kind = DOMUS_CHANNELS, .on_close = {record_error_of_close, 0}};

static void record_failure_of_system(void *context, int error)
{
    ck_assert_ptr_eq(context, &failures);
    atomic_store(&failed_with, error);
    atomic_fetch_add(&failures, 1);
}

/* Let the ring of a thread with a connection fail with `error`, and check that this stops the
 * system. */
static void check_system_stops_with_error(int error)
{
    const domus_hooks hooks = {.failed = record_failure_of_system, .failed_context = &failures};
    domus_config config = domt_config_of_threads(1);
    domus_system *system = NULL;
    char byte;

    domt_add_front_listener(&config);
    atomic_store(&failures, 0);
    atomic_store(&closed_with, 0);
    atomic_store(&counted, 0);
    ck_assert_int_eq(domus_system_new_with(&config, &hooks, NULL, 0, &system), 0);
    ck_assert_int_eq(domus_system_start(system), 0);
    uint16_t port = domt_serve_front_listener(system, &server, NULL);
    int fd = domt_connect_to_port(port);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).channels_opened == 1);
    domus_address address = domt_spawn(system, 0, &saboteur, NULL);
    domt_send_notice(system, address, &refuse_type, &error);
    domus_system_wait(system);
    DOMT_WAIT_FOR(10, atomic_load(&failures) == 1);
    ck_assert_int_eq(atomic_load(&failed_with), -error);
    /* The peer gets a reset at once, because a FIN would look like the end of an answer. */
    ck_assert_int_eq(recv(fd, &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    /* Actors on the thread go on, and can be woken, until the stop ends them. */
    for (int i = 1; i <= 3; i++) {
        domt_send_notice(system, address, &count_type, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&counted) == i);
    }
    uint64_t began_ns = domt_now_ns();
    ck_assert_int_eq(domus_system_stop(system), -error);
    /* the stop does not wait for the connection that got lost */
    ck_assert_uint_lt(domt_now_ns() - began_ns, 8000 * DOMT_MS);
    ck_assert_int_eq(atomic_load(&closed_with), -error);
    ck_assert_int_eq(atomic_load(&failures), 1);
    ck_assert_ptr_nonnull(strstr(domus_system_error(system), "the ring of thread 0 has failed: "));
    ck_assert_ptr_nonnull(strstr(domus_system_error(system), strerrorname_np(error)));
    /* this stop does nothing, because the system has already stopped */
    ck_assert_int_eq(domus_system_stop(system), 0);
    domus_system_free(system);
    close(fd);
}

/* A filter ends with its thread, so one process can install many filters, one after the other. */
DOMT_TEST(a_ring_that_fails_stops_the_system_with_its_error)
{
    static const int errors[] = {EBADR,  EBADF,      EBADFD, EFAULT, ENXIO,
                                 EINVAL, EOPNOTSUPP, EPERM,  EEXIST, ENOSYS};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        check_system_stops_with_error(errors[i]);
}

/* While the kernel refuses for lack of room, the thread tries again without using its CPU all the
 * time, and its actors go on. */
DOMT_TEST(kernel_without_room_fails_no_ring)
{
    static const int errors[] = {EAGAIN, EBUSY, ENOMEM};

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        domus_system *system = domt_start_system_of_threads(1);
        domus_address address = domt_spawn(system, 0, &saboteur, NULL);

        atomic_store(&counted, 0);
        domt_send_notice(system, address, &refuse_type, &errors[i]);
        for (int n = 1; n <= 10; n++) {
            domt_send_notice(system, address, &count_type, NULL);
            DOMT_WAIT_FOR(10, atomic_load(&counted) == n);
        }
        uint64_t before = domt_profile_of_thread(system, 0).enters_refused;
        domt_pause_ns(300 * DOMT_MS);
        uint64_t tries = domt_profile_of_thread(system, 0).enters_refused - before;
        ck_assert_uint_gt(tries, 0);
        /* two tries are at least a millisecond apart, and the test may measure for longer than 300
         * ms */
        ck_assert_uint_le(tries, 1000);
        ck_assert_int_eq(domus_system_stop(system), 0);
        domus_system_free(system);
    }
}

static int let_ring_of_actor_fail(domus_system *system, void *argument)
{
    domus_address address;
    int result = domus_outside_spawn(system, &saboteur, NULL, &address);
    return result != 0 ? result : domus_outside_notice(system, address, &refuse_type, argument);
}

DOMT_TEST(a_program_whose_ring_fails_ends_with_1_and_says_why)
{
    int error = EBADR;
    const domus_program program = {
        .name = "failing", .start = let_ring_of_actor_fail, .argument = &error};
    domt_program own;

    ck_assert_int_eq(domt_program_run(&own, &program, domt_no_arguments), 1);
    domt_must_contain(own.err_text, "failing: error: thread ");
    domt_must_contain(own.err_text, " has failed: io_uring_enter: ");
    domt_must_contain(own.err_text, "(EBADR)\n");
    domt_must_contain(own.err_text, "iterations");
}

DOMT_SUITE(120)
