/* A ring that fails: if an enter fails for a moment, channels do not notice; if the ring is gone,
 * channels are reset, watches are told its error, and acceptors close. */
#include "base/memory.h"
#include "house/family/life.h"
#include "io/acceptors/listen.h"
#include "io/acceptors/serve.h"
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

static int fd, peer;

static void begin(domt_bed_mode mode)
{
    bed->mode = mode;
    domt_bed_begin(&fd, &peer);
    domt_bed_noted("A+ ");
}

DOMT_TEST(a_kernel_without_room_is_asked_again_and_nothing_is_lost)
{
    static const int passing[] = {-EBUSY, -EAGAIN, -ENOMEM};

    begin(DOMT_BED_ECHO);
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
        uint64_t refused = bed->io.counters.enters_refused;

        bed->fake->enter_result = passing[i];
        domt_bed_show(fd, 'x', 3);
        domt_bed_noted("A(xxx) "); /* what is there is handled meanwhile */
        uint64_t began_ns = domt_monotonic_ns();
        for (int turn = 0; turn < 5; turn++)
            domt_bed_turn();
        ck_assert_uint_ge(domt_monotonic_ns() - began_ns,
                          5 * DOMT_BED_MS); /* and not in a tight loop */
        ck_assert_uint_ge(bed->io.counters.enters_refused, refused + 5);
        ck_assert_uint_ge(bed->io.refusals, 5);
        ck_assert_int_eq(bed->io.failed, 0);
        bed->fake->enter_result = 0;
        domt_bed_turn();
        ck_assert_uint_eq(bed->io.refusals, 0);
        domt_bed_sent(fd, 3);
    }
    ck_assert(domt_bed_is_open(fd));
    domt_bed_end();
}

/* One channel sends, one is being closed with its cancel in flight, one waits for bytes. */
DOMT_TEST(a_ring_that_has_failed_resets_every_channel_with_its_error)
{
    static const int fatal[] = {-EBADR, -EBADF, -EBADFD, -EFAULT, -ENXIO, -EINVAL, -EPERM, -EIO};
    int silent_fd, silent_peer, closing_fd, closing_peer;

    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
        char expected[64];

        begin(DOMT_BED_ECHO);
        silent_fd = domt_bed_connect(&silent_peer);
        closing_fd = domt_bed_connect(&closing_peer);
        domt_bed_show(fd, 'x', 3);
        domi_channel_end(bed->channels[2], -EPROTO, true);
        domt_bed_turn();
        domt_bed_noted("B+ C+ A(xxx) ");
        ck_assert_ptr_nonnull(domt_fake_find(bed->fake, DOMT_SEND, fd));
        ck_assert(domt_bed_is_open(closing_fd));

        bed->fake->enter_result = fatal[i];
        bed->fake->pending = true;
        ck_assert(domi_io_submit(&bed->io));
        ck_assert_int_eq(bed->io.failed, fatal[i]);
        domi_io_fail(&bed->io);
        ck_assert_uint_eq(bed->io.counters.channels_cut, 1); /* the one that was owed its answer */
        ck_assert_uint_eq(bed->io.counters.cut_bytes, 3);
        domt_bed_turn();
        domt_bed_turn();
        bed->note[bed->note_length] = '\0';
        snprintf(expected, sizeof expected, "A-(%d) ", fatal[i]);
        ck_assert_ptr_nonnull(strstr(bed->note, expected));
        snprintf(expected, sizeof expected, "B-(%d) ", fatal[i]);
        ck_assert_ptr_nonnull(strstr(bed->note, expected));
        ck_assert_ptr_nonnull(strstr(bed->note, "C-(-71) ")); /* it had a reason of its own */
        ck_assert(!domt_bed_is_open(fd) && !domt_bed_is_open(silent_fd) &&
                  !domt_bed_is_open(closing_fd));
        ck_assert_int_ne(domt_bed_peer_sees(peer), 'o');
        ck_assert_int_ne(domt_bed_peer_sees(silent_peer), 'o');
        ck_assert_uint_eq(bed->io.connections, 0);

        /* Nothing is asked of the ring any more, and no connection is taken. */
        uint32_t enters = bed->fake->enters;
        bed->fake->pending = true;
        ck_assert(!domi_io_submit(&bed->io));
        domi_io_enter(&bed->io, 0, 0);
        ck_assert_uint_eq(bed->fake->enters, enters);
        int ours, other;
        domt_bed_pair(&ours, &other);
        ck_assert_int_lt(
            domi_channel_adopt(&bed->io, bed->actor.house, &(domi_connection){.fd = ours}), 0);
        close(ours);
        domt_bed_end();
    }
}

DOMT_TEST(a_thread_without_a_ring_sleeps_until_it_is_woken)
{
    begin(DOMT_BED_ECHO);
    bed->io.failed = -EBADF;
    domi_io_fail(&bed->io);
    domt_bed_turn();
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(eventfd_write(bed->io.wake_fd, 1), 0);
        uint64_t began_ns = domt_monotonic_ns();
        domi_io_enter(&bed->io, 1, 60000 * DOMT_BED_MS);
        ck_assert_uint_lt(domt_monotonic_ns() - began_ns, 30000 * DOMT_BED_MS);
        began_ns = domt_monotonic_ns();
        domi_io_enter(&bed->io, 1, 20 * DOMT_BED_MS); /* the wake-up before is used up */
        ck_assert_uint_ge(domt_monotonic_ns() - began_ns, 20 * DOMT_BED_MS);
    }
    domt_bed_end();
}

/* --- watches on descriptors ------------------------------------------------------------------- */

#define TOLD_MAX 8

static struct {
    domus_ready ready[TOLD_MAX];
    uint32_t count;
    int again; /* what watching it anew returned after the last watch had failed */
} told;

static int watch_two(domus_stack *stack, void *self)
{
    int *fds = self;
    int result = domus_watch_fd(stack, fds[0], POLLIN, NULL);

    return result != 0 ? result : domus_watch_fd(stack, fds[1], POLLIN, NULL);
}

static int on_ready(domus_stack *stack, void *self, const void *payload)
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
    .on_mount = watch_two,
    .on = (const domus_on[]){{&domus_ready_type, on_ready, 0}, {NULL, NULL, 0}},
};

/* One watch waits in the ring, and of the other an event is under way. */
DOMT_TEST(a_ring_that_has_failed_tells_every_watch_its_error_once)
{
    int fds[2];
    domus_address address;

    begin(DOMT_BED_ECHO);
    memset(&told, 0, sizeof told);
    fds[0] = eventfd(0, EFD_CLOEXEC);
    fds[1] = eventfd(0, EFD_CLOEXEC);
    ck_assert(fds[0] >= 0 && fds[1] >= 0);
    address = domt_bed_spawn(&watcher, fds);
    domt_bed_turn();
    domt_fake_complete(bed->fake, domt_fake_find(bed->fake, DOMT_POLL, fds[1]), POLLIN, 0);
    (void)domi_io_reap(&bed->io);
    bed->io.failed = -EBADF;
    domi_io_fail(&bed->io);
    for (int i = 0; i < 3; i++)
        domt_bed_turn();
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
    ck_assert_int_eq(domi_house_stop(&bed->manager, address), 0);
    domt_bed_turn();
    close(fds[0]), close(fds[1]);
    domt_bed_end();
}

/* --- acceptors -------------------------------------------------------------------------------- */

DOMT_TEST(an_acceptor_that_mounts_when_the_ring_has_failed_closes_its_listener)
{
    begin(DOMT_BED_ECHO);
    domi_acceptor *acceptor = domt_bed_listen(16);
    bed->io.failed = -EBADF;
    domi_io_fail(&bed->io);
    domus_address address = domt_bed_spawn(&domi_acceptor_behaviour, &acceptor);
    domt_bed_turn();
    ck_assert_ptr_eq(bed->io.acceptors[0], acceptor); /* mounted */
    ck_assert_int_eq(acceptor->fd, -1);
    ck_assert_uint_eq(bed->io.counters.listeners_open, 0);
    ck_assert_int_eq(domi_house_stop(&bed->manager, address), 0); /* and waits for nothing */
    domt_bed_turn();
    ck_assert_ptr_null(bed->io.acceptors[0]);
    domt_bed_end();
}

DOMT_SUITE(60)
