/* io/completions/shed.c: if memory is short, channels whose peers acknowledge next to nothing are
 * reset, the worst first, and no more of them than necessary. */
#include "io/channels/crowd.h"

#include "io/channels/send.h"
#include "io/channels/state.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND 1000

static domi_io_shared shared;
static int *fds;
static int *peers;
static uint32_t count;

static void begin_channels_and_peers(uint32_t channels)
{
    fds = calloc(channels, sizeof *fds);
    peers = calloc(channels, sizeof *peers);
    shared = (domi_io_shared){0};
    bed->mode = DOMT_BED_DROP;
    bed->config.channel.send_timeout_ns = 0;
    bed->config.channel.idle_timeout_ns = bed->config.connection.first_byte_timeout_ns = 0;
    domt_bed_start();
    bed->io.shared = &shared;
    for (count = 0; count < channels; count++) {
        fds[count] = domt_bed_connect_to_own_actor(&peers[count]);
        bed->note_length = 0;
    }
}

static void end_channels(void)
{
    domt_bed_end();
    free(fds);
    free(peers);
}

static void queue_bytes_on_channel(uint32_t i, uint32_t size)
{
    ck_assert_int_eq(domt_bed_write_bytes(bed->channels[i], 'x', size), 0);
    domt_bed_take_turn();
}

/* Set how many bytes the library is above its budget. */
static void set_bytes_above_budget(int64_t excess)
{
    atomic_store(&shared.excess, excess);
    domi_io_set_memory_shortage(&bed->io,
                                &(domi_io_pressure){.pauses = true, .queue_max = UINT64_MAX});
}

static void pass_ms_and_settle(uint32_t ms)
{
    for (uint32_t i = 0; i < ms; i += 50) {
        domt_bed_pass_ms_and_settle(50);
    }
}

static uint64_t count_shed_channels(void)
{
    return domi_counter_read(&bed->io.counters.channels_shed);
}

/* Check that the channel, whose peer takes nothing from now on, is reset in 5 s and not before. */
static void expect_deaf_channel_reset_in_time(void)
{
    pass_ms_and_settle(4 * SECOND);
    domt_bed_expect_calls("");
    pass_ms_and_settle(2 * SECOND);
    domt_bed_expect_calls("A-(-105) ");
}

DOMT_TEST(the_worst_channels_are_reset_first_and_no_more_than_must_be)
{
    begin_channels_and_peers(5);
    queue_bytes_on_channel(0, 1000);
    queue_bytes_on_channel(1, 3000);
    queue_bytes_on_channel(2, 2000);
    queue_bytes_on_channel(3, 9000);
    set_bytes_above_budget(9500);
    pass_ms_and_settle(5 * SECOND - 200);
    ck_assert_uint_eq(count_shed_channels(), 0);
    domt_bed_expect_calls("");
    pass_ms_and_settle(SECOND);
    domt_bed_expect_calls("D-(-105) B-(-105) ");
    ck_assert_uint_eq(count_shed_channels(), 2);
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.channels_cut), 2);
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.cut_bytes), 12000);
    ck_assert_uint_eq(atomic_load(&shared.shed), 2);
    ck_assert_uint_ge(atomic_load(&shared.shed_bytes), 12000);
    ck_assert_int_lt(atomic_load(&shared.excess), 0);
    pass_ms_and_settle(10 * SECOND);
    ck_assert_uint_eq(count_shed_channels(), 2);
    set_bytes_above_budget(1);
    pass_ms_and_settle(SECOND);
    domt_bed_expect_calls("C-(-105) ");
    end_channels();
}

DOMT_TEST(nothing_is_reset_while_the_library_is_within_its_budget)
{
    begin_channels_and_peers(1);
    queue_bytes_on_channel(0, 1000);
    set_bytes_above_budget(0);
    pass_ms_and_settle(20 * SECOND);
    set_bytes_above_budget(-1);
    pass_ms_and_settle(20 * SECOND);
    domt_bed_expect_calls("");
    domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = UINT64_MAX});
    pass_ms_and_settle(SECOND);
    /* memory is not short for this thread, so it looks at none of its channels */
    atomic_store(&shared.excess, 1);
    pass_ms_and_settle(20 * SECOND);
    domt_bed_expect_calls("");
    end_channels();
}

DOMT_TEST(a_peer_that_takes_something_is_not_deaf)
{
    begin_channels_and_peers(2);
    queue_bytes_on_channel(0, 5000);
    queue_bytes_on_channel(1, 1000);
    set_bytes_above_budget(100000);
    for (int i = 0; i < 10; i++) {
        pass_ms_and_settle(SECOND);
        domt_bed_complete_send(fds[0], 100);
    }
    domt_bed_expect_calls("B-(-105) ");
    expect_deaf_channel_reset_in_time();
    end_channels();
}

/* One byte in time is not enough to keep a channel with many bytes. */
DOMT_TEST(a_peer_that_takes_next_to_nothing_is_deaf)
{
    begin_channels_and_peers(2);
    queue_bytes_on_channel(0, 5000);
    queue_bytes_on_channel(1, 5000);
    set_bytes_above_budget(100000);
    for (int i = 0; i < 5; i++) {
        pass_ms_and_settle(SECOND - 100);
        domt_fake_complete_send(bed->fake, fds[0], 1);
        /* 65 bytes are acknowledged, fewer than a sixteenth of 5000 (312) */
        domt_fake_complete_send(bed->fake, fds[1], 65);
        domt_bed_take_turn();
    }
    domt_bed_expect_calls("");
    pass_ms_and_settle(SECOND);
    domt_bed_expect_calls("A-(-105) ");
    end_channels();
}

DOMT_TEST(a_peer_for_which_nothing_waits_is_not_deaf)
{
    begin_channels_and_peers(1);
    set_bytes_above_budget(100000);
    pass_ms_and_settle(20 * SECOND);
    queue_bytes_on_channel(0, 1000);
    expect_deaf_channel_reset_in_time();
    end_channels();
}

/* A sweep has looked at the peer in an earlier shortage, long ago: that look does not count now. */
DOMT_TEST(looks_of_an_earlier_shortage_do_not_count)
{
    begin_channels_and_peers(1);
    set_bytes_above_budget(1);
    pass_ms_and_settle(SECOND);
    domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = UINT64_MAX});
    pass_ms_and_settle(60 * SECOND);
    ck_assert(!bed->io.careful);
    queue_bytes_on_channel(0, 1000);
    set_bytes_above_budget(1);
    expect_deaf_channel_reset_in_time();
    end_channels();
}

DOMT_TEST(a_channel_that_was_closed_and_still_sends_is_reset_too)
{
    begin_channels_and_peers(1);
    queue_bytes_on_channel(0, 1000);
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    set_bytes_above_budget(1);
    pass_ms_and_settle(6 * SECOND);
    domt_bed_expect_calls("A-(-105) ");
    end_channels();
}

/* Bytes that the kernel holds for a peer do not show that the peer takes any; only a falling number
 * of them does. */
DOMT_TEST(a_peer_that_acknowledges_bytes_of_the_kernel_is_not_deaf)
{
    static char bytes[65536];

    begin_channels_and_peers(1);
    int few = 4096;
    ck_assert_int_eq(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &(int){1 << 20}, sizeof(int)), 0);
    ck_assert_int_eq(setsockopt(peers[0], SOL_SOCKET, SO_RCVBUF, &few, sizeof few), 0);
    while (send(fds[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    queue_bytes_on_channel(0, 1000);
    set_bytes_above_budget(1);
    pass_ms_and_settle(4 * SECOND);
    /* the peer reads some bytes, while the channel's send does not go on */
    for (int i = 0; i < 64; i++)
        ck_assert_int_ge(recv(peers[0], bytes, 4096, 0), 0);
    for (int i = 0; i < 100; i++)
        usleep(1000);
    pass_ms_and_settle(3 * SECOND);
    domt_bed_expect_calls("");
    pass_ms_and_settle(3 * SECOND);
    domt_bed_expect_calls("A-(-105) ");
    end_channels();
}

/* Where the kernel's socket buffers count as own memory, a channel can be reset for these bytes
 * alone. */
DOMT_TEST(bytes_of_socket_buffers_count_where_they_are_own_memory)
{
    static char bytes[65536];

    begin_channels_and_peers(1);
    int few = 4096;
    ck_assert_int_eq(setsockopt(peers[0], SOL_SOCKET, SO_RCVBUF, &few, sizeof few), 0);
    while (send(fds[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    set_bytes_above_budget(1);
    pass_ms_and_settle(20 * SECOND);
    domt_bed_expect_calls("");
    domi_io_set_memory_shortage(
        &bed->io,
        &(domi_io_pressure){.pauses = true, .counts_sockets = true, .queue_max = UINT64_MAX});
    pass_ms_and_settle(SECOND);
    domt_bed_expect_calls("A-(-105) ");
    end_channels();
}

/* There are far more channels than a tick looks at, and than a pass remembers; the worst of them
 * come last. */
DOMT_TEST(the_worst_of_many_channels_are_found)
{
    enum { MANY = 600 };

    begin_channels_and_peers(MANY);
    domus_channel *channels[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        channels[i] = bed->io.slots[i].channel;
        domus_buffer *buffer = domi_buffer_new_from_heap(&bed->io, 100 + i);
        ck_assert_int_eq(domi_channel_write(channels[i], buffer), 0);
    }
    domt_bed_take_turn();
    uint64_t worst = 0;
    for (uint32_t i = MANY - 40; i < MANY; i++)
        worst += channels[i]->cost;
    set_bytes_above_budget((int64_t)worst);
    for (int i = 0; i < 140; i++) {
        pass_ms_and_settle(50);
        bed->note_length = 0; /* the bed's record has no room for the calls of so many channels */
    }
    ck_assert_uint_eq(count_shed_channels(), 40);
    for (uint32_t i = 0; i < MANY; i++)
        ck_assert_msg((bed->io.slots[i].channel == NULL) == (i >= MANY - 40), "channel %u", i);
    for (uint32_t i = 0; i < MANY - 40; i++) {
        domi_channel_end_at_once(channels[i], -EPROTO, true);
        domt_bed_settle();
        bed->note_length = 0;
    }
    end_channels();
}

/* The bound of queued bytes is reached, but the library is within its budget, so nothing is
 * reset. */
DOMT_TEST(a_channel_is_reset_at_the_bound_of_queued_bytes)
{
    begin_channels_and_peers(4);
    domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = 100000});
    queue_bytes_on_channel(0, 30000);
    queue_bytes_on_channel(1, 22000);
    queue_bytes_on_channel(2, 24000);
    pass_ms_and_settle(6 * SECOND);
    domt_bed_expect_calls("A-(-105) ");
    ck_assert_uint_le(domi_io_count_queued_bytes(&bed->io), 62500);
    pass_ms_and_settle(10 * SECOND);
    domt_bed_expect_calls("");
    end_channels();
}

/* The bound of queued bytes was reached, but no peer was deaf when that was over. */
DOMT_TEST(a_bound_that_was_reached_long_ago_resets_nobody)
{
    begin_channels_and_peers(4);
    domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = 100000});
    queue_bytes_on_channel(0, 66000);
    queue_bytes_on_channel(1, 10000);
    for (int i = 0; i < 6; i++) {
        pass_ms_and_settle(SECOND);
        domt_bed_complete_send(fds[0], 6000);
    }
    domt_bed_expect_calls("B-(-105) ");
    domt_bed_complete_send(fds[0], 30000);
    pass_ms_and_settle(SECOND);
    ck_assert(!bed->io.careful);
    queue_bytes_on_channel(2, 33000);
    queue_bytes_on_channel(3, 33000);
    pass_ms_and_settle(10 * SECOND);
    domt_bed_expect_calls("");
    end_channels();
}

DOMT_TEST(a_drain_resets_nobody)
{
    begin_channels_and_peers(1);
    queue_bytes_on_channel(0, 1000);
    set_bytes_above_budget(1);
    pass_ms_and_settle(3 * SECOND);
    domi_io_drain_accepted_channels(&bed->io);
    pass_ms_and_settle(20 * SECOND);
    ck_assert_uint_eq(count_shed_channels(), 0);
    ck_assert(!bed->io.careful);
    end_channels();
}

DOMT_SUITE(60)
