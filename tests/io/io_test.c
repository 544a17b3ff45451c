/* A thread's io as a whole: what is left when it cannot be made, memory that runs out at any place,
 * the drain and the abort, and the wake poll; and a ring that fails: if an enter fails for a
 * moment, channels do not notice; if the ring is gone, channels are reset, watches get its error,
 * and acceptors close. */
#include "base/memory.h"
#include "house/dispatch/manage.h"
#include "house/family/life.h"
#include "io/acceptors/acceptors.h"
#include "io/channels/state.h"
#include "tests/io/bed.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <domus/descriptor.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Returns the number that the next descriptor gets, which shows whether one was left open. */
static int number_of_next_descriptor(void)
{
    int fd = dup(STDIN_FILENO);

    ck_assert_int_ge(fd, 0);
    close(fd);
    return fd;
}

DOMT_TEST(io_that_cannot_be_made_leaves_nothing)
{
    char error[256] = "";
    int next = number_of_next_descriptor();

    bed->managers[0] = &bed->manager;
    const domi_manager_options options = {
        .count = 1,
        .managers = bed->managers,
        .config = &bed->config,
        .io_hooks = &domi_hooks_of_io,
        .io = &bed->io,
    };
    ck_assert_int_eq(domi_manager_init(&bed->manager, &options), 0);
    domt_fake_set_open_results(-EPERM, 0);
    ck_assert_int_eq(domi_io_init(&bed->io, &bed->manager, &domt_fake_backend, error, sizeof error),
                     -EPERM);
    ck_assert_str_eq(error, "the fake ring does not open");
    ck_assert_int_eq(number_of_next_descriptor(), next);
    domt_fake_set_open_results(0, 0);
    for (int64_t n = 0; n < 2; n++) {
        domi_memory_fail_allocation_after(n, 0);
        ck_assert_int_eq(
            domi_io_init(&bed->io, &bed->manager, &domt_fake_backend, error, sizeof error),
            -ENOMEM);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert_ptr_nonnull(strstr(error, "io.buffers"));
        ck_assert_int_eq(number_of_next_descriptor(), next);
    }
    domi_manager_fini(&bed->manager);
    ck_assert_int_eq(domt_fake_count_open_rings(), 0);
}

DOMT_TEST(io_that_cannot_start_leaves_nothing)
{
    int next = number_of_next_descriptor();

    domt_fake_set_open_results(0, -ENOSYS);
    ck_assert_int_eq(domt_bed_try_start(), -ENOSYS);
    ck_assert_int_eq(number_of_next_descriptor(), next);
    ck_assert_int_eq(domt_fake_count_open_rings(), 0);
}

/* Run a bed whose connection is handed over, gets more bytes than it may hold, answers, and closes,
 * while allocations fail. Returns 0 when none has failed. */
static int run_bed_with_failing_allocation(int64_t passes)
{
    int ours = -1;
    int peer = -1;

    domt_bed_make_connection(&ours, &peer);
    bed->mode = DOMT_BED_ECHO;
    domi_memory_fail_allocation_after(passes, 0);
    int result = domt_bed_try_start();
    if (result != 0) {
        close(ours);
        domt_bed_close_peer(peer);
        domt_bed_set_defaults();
        return result;
    }
    result = domt_bed_adopt_connection(bed->actor, ours);
    if (result != 0)
        close(ours);
    domt_bed_take_turn();
    if (result == 0) {
        for (int i = 0; i < 6; i++)
            (void)domt_fake_complete_receive(bed->fake, ours, "12345678", 8, true);
        domt_bed_settle();
        for (domt_op *op; (op = domt_fake_find_operation(bed->fake, DOMT_SEND, ours)) != NULL;) {
            domt_fake_complete_send(bed->fake, ours, op->size < 7 ? (int32_t)op->size : 7);
            domt_bed_settle();
        }
        if (bed->closed == 0)
            ck_assert_uint_eq(bed->io.counters.sent_bytes, 48);
        else
            result = -ENOMEM;
        ck_assert_uint_eq(bed->closed, result == 0 ? 0 : 1);
    }
    domi_memory_fail_allocation_after(-1, 0);
    domt_bed_end();
    return result;
}

DOMT_TEST(wherever_memory_runs_out_no_descriptor_is_left_open)
{
    int next = number_of_next_descriptor();
    int64_t n = 0;

    while (n < 1000 && run_bed_with_failing_allocation(n) != 0) {
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert_int_eq(number_of_next_descriptor(), next);
        n++;
    }
    ck_assert_int_lt(n, 1000);
    /* at least these allocations have failed: manager, io, house, channel, slots, copies */
    ck_assert_int_ge(n, 8);
}

DOMT_TEST(a_channel_that_is_gone_before_it_opened_is_never_told)
{
    int ours;
    int peer;

    domt_bed_start();
    domt_bed_make_connection(&ours, &peer);
    ck_assert_int_eq(domt_bed_adopt_connection(bed->actor, ours), 0);
    ck_assert_uint_eq(domi_io_end_all_open_channels(&bed->io), 1);
    domt_bed_settle_and_expect_closed(ours);
    domt_bed_expect_calls("");
    ck_assert_uint_eq(bed->io.connections, 0);
    domt_bed_end();
}

DOMT_TEST(an_actor_that_stops_closes_its_channels_first)
{
    int peers[3];
    int fds[3];

    domt_bed_start();
    for (int i = 0; i < 3; i++)
        fds[i] = domt_bed_connect_to_own_actor(&peers[i]);
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, bed->actor), 0);
    domt_bed_settle_and_expect_calls("A+ B+ C+ ");
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(bed->manager.births.houses, (uint32_t)(4 - i));
        ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[i]), 'f');
        domt_bed_end_receive(fds[i], 0);
    }
    domt_bed_expect_calls("A-(0) B-(0) C-(0) ");
    ck_assert_uint_eq(bed->manager.births.houses, 0);
    domi_manager_end_actors(&bed->manager);
    domi_io_fini(&bed->io);
    domi_manager_fini(&bed->manager);
    for (int i = 0; i < 3; i++)
        domt_bed_close_peer(peers[i]);
}

/* --- the drain -------------------------------------------------------------------------------- */

/* Make a channel that was handed over and opened, with `waiting` bytes of the peer in the
 * socket. */
static int make_channel_with_waiting_bytes(uint32_t waiting, int *ret_peer)
{
    char bytes[256] = {0};
    int fd = domt_bed_connect_to_own_actor(ret_peer);

    ck_assert_int_eq(send(*ret_peer, bytes, waiting, 0), (ssize_t)waiting);
    return fd;
}

DOMT_TEST(a_drain_answers_what_had_come_and_then_closes)
{
    int peers[3];
    int fds[3];

    bed->mode = DOMT_BED_ECHO;
    domt_bed_start();
    fds[0] = make_channel_with_waiting_bytes(0, &peers[0]); /* a channel for which nothing waits */
    /* a channel whose bytes are in the socket */
    fds[1] = make_channel_with_waiting_bytes(10, &peers[1]);
    /* a channel whose bytes are in a completion */
    fds[2] = make_channel_with_waiting_bytes(0, &peers[2]);
    domt_bed_bring_text(fds[2], "late");
    domi_io_drain_accepted_channels(&bed->io);
    domi_io_drain_accepted_channels(&bed->io);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[0]), 'f');
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[1]), 'o');
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[2]), 'o');
    ck_assert_uint_eq(domt_fake_find_operation(bed->fake, DOMT_SEND, fds[2])->size, 4);
    domt_fake_complete_send(bed->fake, fds[2], 4);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[2]), 'f');
    domt_bed_bring_text(fds[1], "01234");
    domt_bed_settle();
    domt_fake_complete_send(bed->fake, fds[1], 5);
    domt_bed_settle();
    /* the peer still sees the channel open, because five more bytes had come */
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[1]), 'o');
    domt_bed_bring_text(fds[1], "56789");
    domt_bed_settle();
    domt_fake_complete_send(bed->fake, fds[1], 5);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[1]), 'f');
    ck_assert_uint_eq(bed->io.counters.received_bytes, 14);
    ck_assert_uint_eq(bed->io.counters.sent_bytes, 14);
    domt_bed_end();
}

DOMT_TEST(a_connection_that_comes_during_a_drain_is_drained)
{
    int peer;

    domt_bed_start();
    domi_io_drain_accepted_channels(&bed->io);
    int fd = domt_bed_connect_to_own_actor(&peer);
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'f');
    domt_bed_end_receive(fd, 0);
    domt_bed_expect_calls("A+ A-(0) ");
    domt_bed_end();
}

DOMT_TEST(an_abort_resets_and_counts_the_channels_that_are_left)
{
    int peers[2];

    domt_bed_start();
    (void)make_channel_with_waiting_bytes(10, &peers[0]);
    (void)make_channel_with_waiting_bytes(10, &peers[1]);
    domi_io_drain_accepted_channels(&bed->io);
    domt_bed_settle();
    ck_assert_uint_eq(domi_io_end_all_open_channels(&bed->io), 2);
    ck_assert_uint_eq(domi_io_end_all_open_channels(&bed->io), 0);
    domt_bed_settle();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[i]), 'r');
    }
    ck_assert_uint_eq(bed->io.counters.channels_reset, 2);
    domt_bed_end();
}

/* --- the wake poll ---------------------------------------------------------------------------- */

DOMT_TEST(the_wake_poll_is_armed_again_when_its_last_shot_has_gone)
{
    domt_bed_start();
    domt_op *poll = domt_fake_find_operation(bed->fake, DOMT_POLL, bed->io.wake_fd);
    ck_assert_ptr_nonnull(poll);
    domi_io_arm_wake_poll(&bed->io, false);
    ck_assert_uint_eq(bed->fake->begun[DOMT_POLL], 1);
    domt_fake_complete_operation(bed->fake, poll, 1, DOMI_MORE);
    domt_bed_take_turn();
    domi_io_arm_wake_poll(&bed->io, false);
    ck_assert_uint_eq(bed->fake->begun[DOMT_POLL], 1);
    domt_fake_complete_operation(bed->fake, poll, 1, 0);
    domt_bed_take_turn();
    domi_io_arm_wake_poll(&bed->io, false);
    ck_assert_uint_eq(bed->fake->begun[DOMT_POLL], 2);
    domt_bed_end();
}

static int fd, peer;

static void begin_channel_in_mode(domt_bed_mode mode)
{
    bed->mode = mode;
    domt_bed_start_with_connection(&fd, &peer);
    domt_bed_expect_calls("A+ ");
}

DOMT_TEST(a_kernel_without_room_is_asked_again_and_nothing_is_lost)
{
    static const int passing[] = {-EBUSY, -EAGAIN, -ENOMEM};

    begin_channel_in_mode(DOMT_BED_ECHO);
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
        uint64_t refused = bed->io.counters.enters_refused;

        bed->fake->enter_result = passing[i];
        domt_bed_bring_bytes_and_turn(fd, 'x', 3);
        domt_bed_expect_calls("A(xxx) "); /* the actor handles the bytes that had come before */
        uint64_t began_ns = domt_monotonic_ns();
        for (int turn = 0; turn < 5; turn++)
            domt_bed_take_turn();
        ck_assert_uint_ge(domt_monotonic_ns() - began_ns,
                          5 * DOMT_BED_MS); /* enters are not tried again in a tight loop */
        ck_assert_uint_ge(bed->io.counters.enters_refused, refused + 5);
        ck_assert_uint_ge(bed->io.refusals, 5);
        ck_assert_int_eq(bed->io.failed, 0);
        bed->fake->enter_result = 0;
        domt_bed_take_turn();
        ck_assert_uint_eq(bed->io.refusals, 0);
        domt_bed_complete_send(fd, 3);
    }
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_bed_end();
}

/* Three channels are open: one sends, one is being closed while its cancel is in flight, and one
 * waits for bytes. */
DOMT_TEST(a_ring_that_has_failed_resets_every_channel_with_its_error)
{
    static const int fatal[] = {-EBADR, -EBADF, -EBADFD, -EFAULT, -ENXIO, -EINVAL, -EPERM, -EIO};
    int silent_fd, silent_peer, closing_fd, closing_peer;

    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
        char expected[64];

        begin_channel_in_mode(DOMT_BED_ECHO);
        silent_fd = domt_bed_connect_to_own_actor(&silent_peer);
        closing_fd = domt_bed_connect_to_own_actor(&closing_peer);
        domt_bed_bring_bytes_and_turn(fd, 'x', 3);
        domi_channel_end_at_once(bed->channels[2], -EPROTO, true);
        domt_bed_take_turn();
        domt_bed_expect_calls("B+ C+ A(xxx) ");
        ck_assert_ptr_nonnull(domt_fake_find_operation(bed->fake, DOMT_SEND, fd));
        ck_assert(domt_bed_is_descriptor_open(closing_fd));

        bed->fake->enter_result = fatal[i];
        bed->fake->pending = true;
        ck_assert(domi_io_enter_ring_if_useful(&bed->io));
        ck_assert_int_eq(bed->io.failed, fatal[i]);
        domi_io_end_all_on_failed_ring(&bed->io);
        /* only the channel that owed bytes to its peer counts as cut */
        ck_assert_uint_eq(bed->io.counters.channels_cut, 1);
        ck_assert_uint_eq(bed->io.counters.cut_bytes, 3);
        domt_bed_take_turn();
        domt_bed_take_turn();
        bed->note[bed->note_length] = '\0';
        snprintf(expected, sizeof expected, "A-(%d) ", fatal[i]);
        ck_assert_ptr_nonnull(strstr(bed->note, expected));
        snprintf(expected, sizeof expected, "B-(%d) ", fatal[i]);
        ck_assert_ptr_nonnull(strstr(bed->note, expected));
        /* this channel is told of the error that it had before */
        ck_assert_ptr_nonnull(strstr(bed->note, "C-(-71) "));
        ck_assert(!domt_bed_is_descriptor_open(fd) && !domt_bed_is_descriptor_open(silent_fd) &&
                  !domt_bed_is_descriptor_open(closing_fd));
        ck_assert_int_ne(domt_bed_state_seen_by_peer(peer), 'o');
        ck_assert_int_ne(domt_bed_state_seen_by_peer(silent_peer), 'o');
        ck_assert_uint_eq(bed->io.connections, 0);

        /* The failed ring gets no more calls, and no connection is accepted. */
        uint32_t enters = bed->fake->enters;
        bed->fake->pending = true;
        ck_assert(!domi_io_enter_ring_if_useful(&bed->io));
        domi_io_enter_ring(&bed->io, 0, 0);
        ck_assert_uint_eq(bed->fake->enters, enters);
        int ours, other;
        domt_bed_make_connection(&ours, &other);
        ck_assert_int_lt(domi_channel_adopt_connection(&bed->io, bed->actor.house,
                                                       &(domi_connection){.fd = ours}),
                         0);
        close(ours);
        domt_bed_end();
    }
}

DOMT_TEST(a_thread_without_a_ring_sleeps_until_it_is_woken)
{
    begin_channel_in_mode(DOMT_BED_ECHO);
    bed->io.failed = -EBADF;
    domi_io_end_all_on_failed_ring(&bed->io);
    domt_bed_take_turn();
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(eventfd_write(bed->io.wake_fd, 1), 0);
        uint64_t began_ns = domt_monotonic_ns();
        domi_io_enter_ring(&bed->io, 1, 60000 * DOMT_BED_MS);
        ck_assert_uint_lt(domt_monotonic_ns() - began_ns, 30000 * DOMT_BED_MS);
        began_ns = domt_monotonic_ns();
        /* the wake-up of before was consumed, so this enter sleeps its time */
        domi_io_enter_ring(&bed->io, 1, 20 * DOMT_BED_MS);
        ck_assert_uint_ge(domt_monotonic_ns() - began_ns, 20 * DOMT_BED_MS);
    }
    domt_bed_end();
}

/* --- watches on descriptors ------------------------------------------------------------------- */

#define TOLD_MAX 8

static struct {
    domus_ready ready[TOLD_MAX];
    uint32_t count;
    int again; /* result of the watch that is tried again after the last event */
} told;

static int watch_two_descriptors(domus_stack *stack, void *self)
{
    int *fds = self;
    int result = domus_watch_fd(stack, fds[0], POLLIN, NULL);

    return result != 0 ? result : domus_watch_fd(stack, fds[1], POLLIN, NULL);
}

static int on_ready_record_and_watch_again(domus_stack *stack, void *self, const void *payload)
{
    const domus_ready *ready = payload;

    ck_assert_uint_lt(told.count, TOLD_MAX);
    told.ready[told.count++] = *ready;
    if (ready->error != 0)
        told.again = domus_watch_fd(stack, ready->fd, POLLIN, NULL);
    return 0;
}

static const domus_behaviour watcher = {
    .name = "watcher",
    .kind = DOMUS_CHANNELS,
    .state_size = 2 * sizeof(int),
    .on_mount = watch_two_descriptors,
    .on = (const domus_on[]){{&domus_ready_type, on_ready_record_and_watch_again, 0},
                             {NULL, NULL, 0}},
};

/* One watch waits in the ring, and the event of another watch is under way. */
DOMT_TEST(a_ring_that_has_failed_tells_every_watch_its_error_once)
{
    int fds[2];
    domus_address address;

    begin_channel_in_mode(DOMT_BED_ECHO);
    memset(&told, 0, sizeof told);
    fds[0] = eventfd(0, EFD_CLOEXEC);
    fds[1] = eventfd(0, EFD_CLOEXEC);
    ck_assert(fds[0] >= 0 && fds[1] >= 0);
    address = domt_bed_spawn_actor(&watcher, fds);
    domt_bed_take_turn();
    domt_fake_complete_operation(bed->fake, domt_fake_find_operation(bed->fake, DOMT_POLL, fds[1]),
                                 POLLIN, 0);
    (void)domi_io_reap_completions(&bed->io);
    bed->io.failed = -EBADF;
    domi_io_end_all_on_failed_ring(&bed->io);
    for (int i = 0; i < 3; i++)
        domt_bed_take_turn();
    ck_assert_uint_eq(told.count, 3);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t errors = 0, readies = 0;
        for (uint32_t j = 0; j < told.count; j++) {
            errors += told.ready[j].fd == fds[i] && told.ready[j].error == -EBADF;
            readies += told.ready[j].fd == fds[i] && told.ready[j].events == POLLIN;
        }
        ck_assert_uint_eq(errors, 1);
        ck_assert_uint_eq(readies, i);
    }
    ck_assert_int_eq(told.again, -EBADF);
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, address), 0);
    domt_bed_take_turn();
    close(fds[0]), close(fds[1]);
    domt_bed_end();
}

/* --- acceptors -------------------------------------------------------------------------------- */

DOMT_TEST(an_acceptor_that_mounts_when_the_ring_has_failed_closes_its_listener)
{
    begin_channel_in_mode(DOMT_BED_ECHO);
    domi_acceptor *acceptor = domt_bed_make_acceptor(16);
    bed->io.failed = -EBADF;
    domi_io_end_all_on_failed_ring(&bed->io);
    domus_address address = domt_bed_spawn_actor(&domi_acceptor_behaviour, &acceptor);
    domt_bed_take_turn();
    /* the acceptor is mounted on a ring that has failed */
    ck_assert_ptr_eq(bed->io.acceptors[0], acceptor);
    ck_assert_int_eq(acceptor->fd, -1);
    ck_assert_uint_eq(bed->io.counters.listeners_open, 0);
    /* the acceptor waits for no connection, so its stop ends at once */
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, address), 0);
    domt_bed_take_turn();
    ck_assert_ptr_null(bed->io.acceptors[0]);
    domt_bed_end();
}

DOMT_SUITE(60)
