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

static void begin_channels(uint32_t channels)
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
        fds[count] = domt_bed_connect(&peers[count]);
        bed->note_length = 0;
    }
}

static void end_channels(void)
{
    domt_bed_end();
    free(fds);
    free(peers);
}

static void queue_bytes(uint32_t i, uint32_t size)
{
    ck_assert_int_eq(domt_bed_write(bed->channels[i], 'x', size), 0);
    domt_bed_turn();
}

/* Let the library be above its budget by so many bytes. */
static void set_excess(int64_t excess)
{
    atomic_store(&shared.excess, excess);
    domi_io_set_pressure(&bed->io, &(domi_io_pressure){.pauses = true, .queue_max = UINT64_MAX});
}

static void pass_ms(uint32_t ms)
{
    for (uint32_t i = 0; i < ms; i += 50) {
        domt_bed_wait(50);
    }
}

static uint64_t count_resets(void)
{
    return domi_counter_read(&bed->io.counters.channels_shed);
}

/* Check that the channel, whose peer takes nothing from now on, is reset in 5 s and not before. */
static void expect_deaf_after_its_time(void)
{
    pass_ms(4 * SECOND);
    domt_bed_noted("");
    pass_ms(2 * SECOND);
    domt_bed_noted("A-(-105) ");
}

DOMT_TEST(the_worst_are_reset_first_and_no_more_than_must_be)
{
    begin_channels(5);
    queue_bytes(0, 1000);
    queue_bytes(1, 3000);
    queue_bytes(2, 2000);
    queue_bytes(3, 9000);
    set_excess(9500);
    pass_ms(5 * SECOND - 200);
    ck_assert_uint_eq(count_resets(), 0);
    domt_bed_noted("");
    pass_ms(SECOND);
    domt_bed_noted("D-(-105) B-(-105) ");
    ck_assert_uint_eq(count_resets(), 2);
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.channels_cut), 2);
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.cut_bytes), 12000);
    ck_assert_uint_eq(atomic_load(&shared.shed), 2);
    ck_assert_uint_ge(atomic_load(&shared.shed_bytes), 12000);
    ck_assert_int_lt(atomic_load(&shared.excess), 0);
    pass_ms(10 * SECOND);
    ck_assert_uint_eq(count_resets(), 2);
    set_excess(1);
    pass_ms(SECOND);
    domt_bed_noted("C-(-105) ");
    end_channels();
}

DOMT_TEST(nothing_is_reset_while_the_library_is_within_its_budget)
{
    begin_channels(1);
    queue_bytes(0, 1000);
    set_excess(0);
    pass_ms(20 * SECOND);
    set_excess(-1);
    pass_ms(20 * SECOND);
    domt_bed_noted("");
    domi_io_set_pressure(&bed->io, &(domi_io_pressure){.queue_max = UINT64_MAX});
    pass_ms(SECOND);
    /* memory is not short for this thread, so it looks at no channel */
    atomic_store(&shared.excess, 1);
    pass_ms(20 * SECOND);
    domt_bed_noted("");
    end_channels();
}

DOMT_TEST(a_peer_that_takes_something_is_not_deaf)
{
    begin_channels(2);
    queue_bytes(0, 5000);
    queue_bytes(1, 1000);
    set_excess(100000);
    for (int i = 0; i < 10; i++) {
        pass_ms(SECOND);
        domt_bed_sent(fds[0], 100);
    }
    domt_bed_noted("B-(-105) ");
    expect_deaf_after_its_time();
    end_channels();
}

/* A byte in time is not enough to keep all bytes that are held. */
DOMT_TEST(a_peer_that_takes_next_to_nothing_is_deaf)
{
    begin_channels(2);
    queue_bytes(0, 5000);
    queue_bytes(1, 5000);
    set_excess(100000);
    for (int i = 0; i < 5; i++) {
        pass_ms(SECOND - 100);
        domt_fake_sent(bed->fake, fds[0], 1);
        domt_fake_sent(bed->fake, fds[1], 65); /* of 5000 bytes a sixteenth is 312 */
        domt_bed_turn();
    }
    domt_bed_noted("");
    pass_ms(SECOND);
    domt_bed_noted("A-(-105) ");
    end_channels();
}

DOMT_TEST(a_peer_for_which_nothing_waits_is_not_deaf)
{
    begin_channels(1);
    set_excess(100000);
    pass_ms(20 * SECOND);
    queue_bytes(0, 1000);
    expect_deaf_after_its_time();
    end_channels();
}

/* The sweep looked at the peer long ago, in an earlier shortage. */
DOMT_TEST(looks_of_an_earlier_shortage_do_not_count)
{
    begin_channels(1);
    set_excess(1);
    pass_ms(SECOND);
    domi_io_set_pressure(&bed->io, &(domi_io_pressure){.queue_max = UINT64_MAX});
    pass_ms(60 * SECOND);
    ck_assert(!bed->io.careful);
    queue_bytes(0, 1000);
    set_excess(1);
    expect_deaf_after_its_time();
    end_channels();
}

DOMT_TEST(a_channel_that_was_closed_and_still_sends_is_reset_too)
{
    begin_channels(1);
    queue_bytes(0, 1000);
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    set_excess(1);
    pass_ms(6 * SECOND);
    domt_bed_noted("A-(-105) ");
    end_channels();
}

/* Bytes that the kernel holds for a peer do not show that the peer takes any; a falling number of
 * them does. */
DOMT_TEST(bytes_that_the_peer_acknowledges_count)
{
    static char bytes[65536];

    begin_channels(1);
    int few = 4096;
    ck_assert_int_eq(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &(int){1 << 20}, sizeof(int)), 0);
    ck_assert_int_eq(setsockopt(peers[0], SOL_SOCKET, SO_RCVBUF, &few, sizeof few), 0);
    while (send(fds[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    queue_bytes(0, 1000);
    set_excess(1);
    pass_ms(4 * SECOND);
    for (int i = 0; i < 64; i++) /* the peer reads some; the send does not go on */
        ck_assert_int_ge(recv(peers[0], bytes, 4096, 0), 0);
    for (int i = 0; i < 100; i++)
        usleep(1000);
    pass_ms(3 * SECOND);
    domt_bed_noted("");
    pass_ms(3 * SECOND);
    domt_bed_noted("A-(-105) ");
    end_channels();
}

/* Where the kernel's buffers count, a channel can be reset for them alone. */
DOMT_TEST(socket_buffers_are_held_where_they_are_counted)
{
    static char bytes[65536];

    begin_channels(1);
    int few = 4096;
    ck_assert_int_eq(setsockopt(peers[0], SOL_SOCKET, SO_RCVBUF, &few, sizeof few), 0);
    while (send(fds[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    set_excess(1);
    pass_ms(20 * SECOND);
    domt_bed_noted("");
    domi_io_set_pressure(
        &bed->io,
        &(domi_io_pressure){.pauses = true, .counts_sockets = true, .queue_max = UINT64_MAX});
    pass_ms(SECOND);
    domt_bed_noted("A-(-105) ");
    end_channels();
}

/* There are far more channels than a tick looks at, and than a pass remembers; the worst lie at the
 * end. */
DOMT_TEST(the_worst_of_many_channels_are_found)
{
    enum { MANY = 600 };

    begin_channels(MANY);
    domus_channel *channels[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        channels[i] = bed->io.slots[i].channel;
        domus_buffer *buffer = domi_buffer_heap(&bed->io, 100 + i);
        ck_assert_int_eq(domi_channel_write(channels[i], buffer), 0);
    }
    domt_bed_turn();
    uint64_t worst = 0;
    for (uint32_t i = MANY - 40; i < MANY; i++)
        worst += channels[i]->cost;
    set_excess((int64_t)worst);
    for (int i = 0; i < 140; i++) {
        pass_ms(50);
        bed->note_length = 0; /* the record has no room for so many */
    }
    ck_assert_uint_eq(count_resets(), 40);
    for (uint32_t i = 0; i < MANY; i++)
        ck_assert_msg((bed->io.slots[i].channel == NULL) == (i >= MANY - 40), "channel %u", i);
    for (uint32_t i = 0; i < MANY - 40; i++) {
        domi_channel_end(channels[i], -EPROTO, true);
        domt_bed_settle();
        bed->note_length = 0;
    }
    end_channels();
}

/* The bound of queued bytes is reached, but the library is within its budget. */
DOMT_TEST(when_the_bound_is_reached_room_is_made_for_others)
{
    begin_channels(4);
    domi_io_set_pressure(&bed->io, &(domi_io_pressure){.queue_max = 100000});
    queue_bytes(0, 30000);
    queue_bytes(1, 22000);
    queue_bytes(2, 24000);
    pass_ms(6 * SECOND);
    domt_bed_noted("A-(-105) ");
    ck_assert_uint_le(domi_io_queued(&bed->io), 62500);
    pass_ms(10 * SECOND);
    domt_bed_noted("");
    end_channels();
}

/* The bound was reached, but no peer was deaf when that was over. */
DOMT_TEST(a_bound_that_was_reached_long_ago_resets_nobody)
{
    begin_channels(4);
    domi_io_set_pressure(&bed->io, &(domi_io_pressure){.queue_max = 100000});
    queue_bytes(0, 66000);
    queue_bytes(1, 10000);
    for (int i = 0; i < 6; i++) {
        pass_ms(SECOND);
        domt_bed_sent(fds[0], 6000);
    }
    domt_bed_noted("B-(-105) ");
    domt_bed_sent(fds[0], 30000);
    pass_ms(SECOND);
    ck_assert(!bed->io.careful);
    queue_bytes(2, 33000);
    queue_bytes(3, 33000);
    pass_ms(10 * SECOND);
    domt_bed_noted("");
    end_channels();
}

DOMT_TEST(a_drain_resets_nobody)
{
    begin_channels(1);
    queue_bytes(0, 1000);
    set_excess(1);
    pass_ms(3 * SECOND);
    domi_io_drain(&bed->io);
    pass_ms(20 * SECOND);
    ck_assert_uint_eq(count_resets(), 0);
    ck_assert(!bed->io.careful);
    end_channels();
}

DOMT_SUITE(60)
