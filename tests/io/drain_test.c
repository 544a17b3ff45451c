/* io/completions/drain.c: which channels stay when a thread drains, for how long, and which of them
 * are counted. */
#include "io/channels/ends.h"
#include "io/channels/state.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_MS 50u

static int fd, peer;

static void begin_channel_in_mode(domt_bed_mode mode)
{
    bed->config.channel.linger_ns = LINGER_MS * DOMT_BED_MS;
    bed->config.channel.idle_timeout_ns = 0;
    bed->config.connection.first_byte_timeout_ns = 0;
    bed->mode = mode;
    domt_bed_start_with_connection(&fd, &peer);
}

static int bytes_not_acknowledged_by_peer(void)
{
    int bytes = 0;

    ck_assert_int_eq(ioctl(fd, SIOCOUTQ, &bytes), 0);
    return bytes;
}

/* Write so much that the kernel holds more bytes for the peer than the peer's side can take. */
static void fill_buffers_of_kernel(void)
{
    static char bytes[65536];
    int size = 4096;

    ck_assert_int_eq(setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &size, sizeof size), 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_gt(bytes_not_acknowledged_by_peer(), 0);
}

static void let_peer_read_all(void)
{
    char bytes[65536];

    for (int i = 0; i < 5000 && bytes_not_acknowledged_by_peer() != 0; i++) {
        while (recv(peer, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
            continue;
        usleep(1000);
    }
    ck_assert_int_eq(bytes_not_acknowledged_by_peer(), 0);
}

static void pass_ms_with_turn_after_each(uint32_t ms)
{
    for (uint32_t i = 0; i < ms; i += 5)
        domt_bed_pass_ms(5);
}

static void expect_cut_channels_and_bytes(uint64_t channels, uint64_t bytes_min, uint64_t bytes_max)
{
    ck_assert_uint_eq(bed->io.counters.channels_cut, channels);
    ck_assert_uint_ge(bed->io.counters.cut_bytes, bytes_min);
    ck_assert_uint_le(bed->io.counters.cut_bytes, bytes_max);
}

DOMT_TEST(a_draining_channel_stays_until_its_peer_has_all_and_then_for_the_linger_time)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    fill_buffers_of_kernel();
    domi_io_drain_accepted_channels(&bed->io);
    /* the pause ends 15 ms before the linger timer would expire if it were armed again only when it
     * expires */
    pass_ms_with_turn_after_each(11 * LINGER_MS - 15);
    domt_bed_settle();
    ck_assert(domt_bed_is_descriptor_open(fd));
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_LINGERING);
    let_peer_read_all();
    pass_ms_with_turn_after_each(LINGER_MS - 10);
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_LINGERING);
    pass_ms_with_turn_after_each(30);
    domt_bed_settle_and_expect_closed(fd);
    expect_cut_channels_and_bytes(0, 0, 0);
    domt_bed_end();
}

DOMT_TEST(a_peer_that_has_finished_is_waited_for_until_it_has_all)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    bed->ignore_end = true; /* on_end keeps the channel half open */
    fill_buffers_of_kernel();
    domi_io_drain_accepted_channels(&bed->io);
    domt_fake_end_receive(bed->fake, fd, 0);
    pass_ms_with_turn_after_each(10 * LINGER_MS);
    domt_bed_settle();
    ck_assert(domt_bed_is_descriptor_open(fd));
    let_peer_read_all();
    /* The channel does not stay for the linger time, because it has nothing more to send. */
    pass_ms_with_turn_after_each(15);
    domt_bed_settle_and_expect_closed(fd);
    expect_cut_channels_and_bytes(0, 0, 0);
    domt_bed_end();
}

/* No receive is armed on this channel that would report the peer's reset. */
DOMT_TEST(a_peer_that_has_finished_and_resets_is_not_waited_for)
{
    const struct linger at_once = {.l_onoff = 1};

    begin_channel_in_mode(DOMT_BED_DROP);
    bed->ignore_end = true; /* on_end keeps the channel half open */
    fill_buffers_of_kernel();
    domi_io_drain_accepted_channels(&bed->io);
    domt_fake_end_receive(bed->fake, fd, 0);
    pass_ms_with_turn_after_each(20);
    ck_assert(domt_bed_is_descriptor_open(fd));
    ck_assert_int_eq(setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    domt_bed_close_peer(peer);
    pass_ms_with_turn_after_each(20);
    domt_bed_settle_and_expect_closed(fd);
    expect_cut_channels_and_bytes(0, 0, 0);
    domt_bed_expect_calls("A+ A-(-104) ");
    domt_bed_end();
}

DOMT_TEST(outside_a_drain_the_linger_time_holds_and_counts_what_it_cuts)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    fill_buffers_of_kernel();
    uint64_t bytes = (uint64_t)bytes_not_acknowledged_by_peer();
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    pass_ms_with_turn_after_each(LINGER_MS + 10);
    domt_bed_settle_and_expect_closed(fd);
    expect_cut_channels_and_bytes(1, bytes, bytes);
    domt_bed_end();
}

DOMT_TEST(an_abort_counts_what_is_owed_wherever_it_is)
{
    begin_channel_in_mode(DOMT_BED_KEEP);
    domi_io_drain_accepted_channels(&bed->io);
    bed->actor.house->marks |= DOMI_MARK_SATURATED; /* the mark keeps bytes waiting for the actor */
    domt_bed_bring_bytes(fd, 'x', 7);
    (void)domi_io_reap_completions(&bed->io);
    ck_assert_int_eq(send(peer, "eleven byte", 11, 0), 11);
    fill_buffers_of_kernel();
    uint64_t bytes = (uint64_t)bytes_not_acknowledged_by_peer() + 7 + 11 + 5;
    bed->channels[0]->queued_bytes += 5;
    ck_assert_uint_eq(domi_io_end_all_open_channels(&bed->io), 1);
    expect_cut_channels_and_bytes(1, bytes, bytes);
    bed->channels[0]->queued_bytes = 0;
    bed->actor.house->marks &= (uint16_t)~DOMI_MARK_SATURATED;
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer) == 'o', 0);
    domt_bed_end();
}

/* The channel counts as cut, but with no bytes, because nobody knows how long the answer would have
 * been. */
DOMT_TEST(an_abort_counts_a_channel_that_is_owed_an_answer)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    domi_io_drain_accepted_channels(&bed->io);
    /* gives the channel the state of one that is still being read */
    bed->channels[0]->drain_bytes = 1;
    ck_assert_uint_eq(domi_io_end_all_open_channels(&bed->io), 1);
    domt_bed_settle();
    expect_cut_channels_and_bytes(1, 0, 0);
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'r');
    domt_bed_end();
}

/* The silent channel stays open because its actor has a conversation, although that belongs to
 * another channel. */
DOMT_TEST(a_silent_peer_that_a_drain_ends_is_owed_nothing)
{
    for (int sends = 0; sends < 2; sends++) {
        begin_channel_in_mode(DOMT_BED_DROP);
        domi_io_drain_accepted_channels(&bed->io);
        bed->channels[0]->state = DOMI_CHANNEL_OPEN;
        if (sends != 0)
            bed->channels[0]->silent_ns = 0;
        domi_channel_count_as_cut(bed->channels[0], 0);
        expect_cut_channels_and_bytes((uint64_t)sends, 0, 0);
        bed->channels[0]->state = DOMI_CHANNEL_LINGERING;
        domt_bed_end();
    }
}

DOMT_TEST(an_abort_cuts_nothing_where_nothing_is_owed)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    domi_io_drain_accepted_channels(&bed->io);
    /* the drain had no time at all */
    ck_assert_uint_eq(domi_io_end_all_open_channels(&bed->io), 1);
    domt_bed_settle();
    expect_cut_channels_and_bytes(0, 0, 0);
    domt_bed_expect_calls("A+ A-(0) ");
    domt_bed_end();
}

DOMT_TEST(an_idle_time_out_counts_what_it_cuts)
{
    begin_channel_in_mode(DOMT_BED_ECHO);
    domt_bed_bring_bytes(fd, 'x', 9);
    bed->io.settings.send_timeout_ns = 20 * DOMT_BED_MS;
    domt_bed_settle();
    pass_ms_with_turn_after_each(40);
    domt_bed_settle_and_expect_closed(fd);
    expect_cut_channels_and_bytes(1, 9, 9);
    domt_bed_end();
}

DOMT_TEST(bytes_that_come_after_a_close_are_counted_as_thrown_away)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    domt_bed_bring_bytes_and_turn(fd, 'x', 12);
    ck_assert_uint_eq(bed->io.counters.discarded_bytes, 12);
    expect_cut_channels_and_bytes(0, 0, 0);
    domt_bed_end_receive(fd, 0);
    domt_bed_end();
}

/* The bytes that a Unix socket has sent lie with its peer, where a close cannot throw them away. */
DOMT_TEST(a_unix_socket_owes_nothing_that_it_has_sent)
{
    int ends[2];

    begin_channel_in_mode(DOMT_BED_DROP);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_int_eq(send(ends[0], "lies there", 10, 0), 10);
    ck_assert_int_eq(domt_bed_adopt_connection(bed->actor, ends[0]), 0);
    domt_bed_take_turn();
    ck_assert(!domi_channel_has_unacknowledged_bytes(bed->channels[1]));
    domi_io_drain_accepted_channels(&bed->io);
    pass_ms_with_turn_after_each(LINGER_MS + 20);
    domt_bed_settle_and_expect_closed(ends[0]);
    expect_cut_channels_and_bytes(0, 0, 0);
    close(ends[1]);
    domt_bed_end();
}

/* A look at a draining channel costs system calls, so one turn looks at a bounded number of
 * them. */
DOMT_TEST(each_turn_looks_at_a_bounded_number_of_channels)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    domi_io_drain_accepted_channels(&bed->io);
    uint64_t now_ns = bed->manager.now_ns;
    domi_io_check_draining_channels(&bed->io);
    ck_assert_uint_eq(bed->io.look_slot, 0); /* the round of looks over all channels has ended */
    ck_assert_uint_ge(bed->io.look_ns, now_ns + 10 * DOMT_BED_MS);
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_LINGERING);
    domt_bed_end();
}

/* --- what a drain ends ------------------------------------------------------------------------ */

static void expect_drained_channels(uint64_t answered, uint64_t idle, uint64_t cut)
{
    ck_assert_uint_eq(bed->io.counters.drained_answered, answered);
    ck_assert_uint_eq(bed->io.counters.drained_idle, idle);
    ck_assert_uint_eq(bed->io.counters.drained_cut, cut);
}

DOMT_TEST(an_idle_channel_closes_at_once)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    pass_ms_with_turn_after_each(LINGER_MS);
    domi_io_drain_accepted_channels(&bed->io);
    domt_bed_settle(); /* the channel closes although no time passes and the peer does nothing */
    ck_assert(!domt_bed_is_descriptor_open(fd));
    domt_bed_expect_calls("A+ A-(0) ");
    expect_drained_channels(0, 1, 0);
    domt_bed_end();
}

DOMT_TEST(requests_under_way_are_answered_in_a_drain)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    domt_bed_bring_bytes(fd, 'x',
                         9); /* these bytes have come, and the channel has not read them yet */
    domi_io_drain_accepted_channels(&bed->io);
    domt_bed_settle();
    /* the channel is closing, and gives the peer its time to close */
    ck_assert(domt_bed_is_descriptor_open(fd));
    pass_ms_with_turn_after_each(LINGER_MS + 20);
    domt_bed_settle_and_expect_closed(fd);
    expect_drained_channels(1, 0, 0);
    domt_bed_end();
}

DOMT_TEST(bytes_owed_at_the_end_are_cut_once)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    fill_buffers_of_kernel();
    domi_io_drain_accepted_channels(&bed->io);
    domt_bed_settle();
    ck_assert(domt_bed_is_descriptor_open(fd));
    ck_assert_uint_eq(domi_io_end_all_open_channels(&bed->io), 1);
    domt_bed_settle();
    expect_drained_channels(0, 0, 1);
    ck_assert_uint_eq(bed->io.counters.channels_cut, 1);
    domt_bed_end();
}

/* A reset would throw away bytes that the peer has not read yet, so a drain ends no channel by
 * one. */
DOMT_TEST(a_channel_that_was_used_just_now_waits_for_its_peer)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    pass_ms_with_turn_after_each(LINGER_MS);
    domt_bed_bring_bytes_and_turn(fd, 'x', 9);
    domi_io_drain_accepted_channels(&bed->io);
    domt_bed_settle();
    ck_assert(domt_bed_is_descriptor_open(fd));
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'f');
    pass_ms_with_turn_after_each(LINGER_MS + 20);
    domt_bed_settle_and_expect_closed(fd);
    expect_drained_channels(0, 1, 0);
    domt_bed_end();
}

/* The channel ends by the peer's reset, not by the drain. */
DOMT_TEST(peer_that_resets_in_a_drain_is_not_counted)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    domt_bed_bring_bytes(fd, 'x', 9);
    domi_io_drain_accepted_channels(&bed->io);
    domt_bed_take_turn();
    domt_bed_end_receive(fd, -ECONNRESET);
    ck_assert(!domt_bed_is_descriptor_open(fd));
    expect_drained_channels(0, 0, 0);
    domt_bed_end();
}

DOMT_TEST(connected_channels_drain_behind_the_accepted_ones)
{
    begin_channel_in_mode(DOMT_BED_ECHO);
    bed->channels[0]->is_outbound = true;
    atomic_fetch_add(&bed->io.outbound, 1);
    int accepted_peer;
    int accepted = domt_bed_connect_to_own_actor(&accepted_peer);
    domi_io_drain_accepted_channels(&bed->io);
    pass_ms_with_turn_after_each(5 * LINGER_MS);
    domt_bed_settle_and_expect_closed(accepted);
    ck_assert(domt_bed_is_descriptor_open(fd));
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_OPEN);
    domt_bed_bring_bytes_and_turn(fd, 'x', 9);
    /* a connected channel still reads and answers in the first part of the drain */
    ck_assert_uint_eq(bed->read_bytes, 9);
    domi_io_drain_outgoing_channels(&bed->io);
    domt_bed_settle();
    expect_drained_channels(0, 1, 0);
    domt_bed_end();
}

DOMT_SUITE(30)
