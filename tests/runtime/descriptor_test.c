/* io/completions/descriptor.c: an actor that watches a descriptor gets events while the descriptor
 * is ready, until it takes the watch back. */
#include "tests/runtime/running.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

static const domus_type watch_type = {.name = "watch", .size = sizeof(int)};
static const domus_type change_type = {.name = "change", .size = sizeof(uint32_t)};
static const domus_type unwatch_type = {.name = "unwatch"};
static const domus_type stop_type = {.name = "stop"};

static _Atomic uint32_t readies, bytes_read, stopped, taken_back;
static _Atomic int last_error;
static _Atomic uint32_t last_events;
/* true: the actor's handler does not read the descriptor, so it stays ready */
static _Atomic bool leave_it;
static _Atomic bool changed;

struct reader {
    domus_fd_watch watch;
};

static int on_watch_begin_to_watch(domus_stack *stack, void *self, const void *fd)
{
    struct reader *reader = self;

    return domus_watch_fd(stack, *(const int *)fd, POLLIN, &reader->watch);
}

static int record_event_and_read_byte(domus_stack *stack, void *self, const void *ready_)
{
    const domus_ready *ready = ready_;
    char byte;

    atomic_store(&last_error, ready->error);
    atomic_store(&last_events, ready->events);
    if (ready->error == 0 && (ready->events & POLLIN) != 0 && !atomic_load(&leave_it) &&
        read(ready->fd, &byte, 1) == 1)
        atomic_fetch_add(&bytes_read, 1);
    atomic_fetch_add(&readies, 1);
    return 0;
}

static int on_change_set_watched_events(domus_stack *stack, void *self, const void *events)
{
    int result = domus_fd_change(stack, ((struct reader *)self)->watch, *(const uint32_t *)events);

    atomic_store(&changed, true);
    return result;
}

static int on_unwatch_end_watch_twice(domus_stack *stack, void *self, const void *nothing)
{
    struct reader *reader = self;

    int first = domus_unwatch_fd(stack, reader->watch);
    int second = domus_unwatch_fd(stack, reader->watch);
    if (first == 0 && second == -ENOENT)
        atomic_fetch_add(&taken_back, 1);
    return 0;
}

static int stop_own_actor(domus_stack *stack, void *self, const void *nothing)
{
    return domus_stop(stack, domus_self(stack));
}

static void count_stopped_actor(domus_stack *stack, void *self)
{
    atomic_fetch_add(&stopped, 1);
}

static const domus_behaviour reader_behaviour = {
    .name = "reader",
    .state_size = sizeof(struct reader),
    .on = (const domus_on[]){{&watch_type, on_watch_begin_to_watch, 0},
                             {&domus_ready_type, record_event_and_read_byte, 0},
                             {&change_type, on_change_set_watched_events, 0},
                             {&unwatch_type, on_unwatch_end_watch_twice, 0},
                             {&stop_type, stop_own_actor, 0},
                             {0}},
    .on_stop = count_stopped_actor,
};

static domus_system *system_;
static domus_address reader;
static int ends[2];

static void start_system_with_reader(void)
{
    atomic_store(&readies, 0);
    atomic_store(&bytes_read, 0);
    atomic_store(&stopped, 0);
    atomic_store(&taken_back, 0);
    atomic_store(&last_error, 1);
    atomic_store(&leave_it, false);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    system_ = domt_start_system_of_threads(2);
    reader = domt_spawn(system_, 1, &reader_behaviour, NULL);
    domt_send_notice(system_, reader, &watch_type, &ends[0]);
}

static void end_system_with_reader(void)
{
    domt_end_system(system_);
    close(ends[0]);
    close(ends[1]);
}

DOMT_TEST(readiness_comes_once_for_each_byte)
{
    start_system_with_reader();
    for (uint32_t i = 1; i <= 200; i++) {
        ck_assert_int_eq(write(ends[1], "x", 1), 1);
        DOMT_WAIT_FOR(10, atomic_load(&bytes_read) == i);
    }
    domt_pause_ns(2 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&readies), 200);
    ck_assert_int_eq(atomic_load(&last_error), 0);
    end_system_with_reader();
}

DOMT_TEST(readiness_comes_again_while_bytes_are_unread)
{
    start_system_with_reader();
    ck_assert_int_eq(write(ends[1], "three", 3), 3);
    DOMT_WAIT_FOR(10, atomic_load(&bytes_read) == 3);
    end_system_with_reader();
}

DOMT_TEST(no_event_comes_after_unwatch)
{
    start_system_with_reader();
    atomic_store(&leave_it, true);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    /* the event of a ready descriptor comes again and again, because nobody reads */
    DOMT_WAIT_FOR(10, atomic_load(&readies) > 3);
    domt_send_notice(system_, reader, &unwatch_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&taken_back) == 1);
    uint32_t readies_then = atomic_load(&readies);
    domt_pause_ns(5 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&readies), readies_then);
    /* the actor watches the same descriptor anew */
    domt_send_notice(system_, reader, &watch_type, &ends[0]);
    DOMT_WAIT_FOR(10, atomic_load(&readies) > readies_then);
    end_system_with_reader();
}

DOMT_TEST(events_can_be_changed_while_it_waits)
{
    uint32_t nothing = 0;
    uint32_t reading = POLLIN;

    start_system_with_reader();
    atomic_store(&changed, false);
    domt_send_notice(system_, reader, &change_type, &nothing);
    DOMT_WAIT_FOR(10, atomic_load(&changed));
    /* wait, because the backend learns of the changed events only after the handler */
    domt_pause_ns(2 * DOMT_MS);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    domt_pause_ns(5 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&readies), 0);
    domt_send_notice(system_, reader, &change_type, &reading);
    DOMT_WAIT_FOR(10, atomic_load(&bytes_read) == 1);
    end_system_with_reader();
}

DOMT_TEST(watch_tells_hang_up_of_other_end)
{
    start_system_with_reader();
    close(ends[1]);
    DOMT_WAIT_FOR(10, (atomic_load(&last_events) & POLLHUP) != 0);
    ends[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    end_system_with_reader();
}

DOMT_TEST(bad_descriptor_gives_one_error_event)
{
    int none = 1000000;

    start_system_with_reader();
    domt_send_notice(system_, reader, &watch_type, &none);
    DOMT_WAIT_FOR(10, atomic_load(&readies) == 1);
    ck_assert_int_eq(atomic_load(&last_error), -EBADF);
    domt_pause_ns(5 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&readies), 1);
    end_system_with_reader();
}

DOMT_TEST(actor_that_stops_takes_its_watches_back)
{
    start_system_with_reader();
    domt_send_notice(system_, reader, &stop_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&stopped) == 1);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    domt_pause_ns(5 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&readies), 0);
    end_system_with_reader();
}

DOMT_SUITE(60)
