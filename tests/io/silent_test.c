/* Connections whose peer never sends a byte are closed at channel.firstByteTimeout; a peer that
 * nobody reads, that has finished, or that has sent a byte is not one of them. */
#include "io/channels/channel.h"
#include "io/channels/receive.h"
#include "io/channels/send.h"
#include "io/channels/state.h"
#include "io/channels/table.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define FIRST_MS 100

static domt_bed bed;
static int fd;
static int peer;

static void begin_within(uint64_t first_ms, uint64_t idle_ms)
{
    domt_bed_init(&bed);
    bed.config.connection.first_byte_timeout_ns = first_ms * DOMT_BED_MS;
    bed.config.channel.idle_timeout_ns = idle_ms * DOMT_BED_MS;
    domt_bed_begin(&bed, &fd, &peer);
    domt_bed_noted(&bed, "A+ ");
}

static void begin(void)
{
    begin_within(FIRST_MS, 0);
}

static void end(void)
{
    domt_bed_finish(&bed, peer);
}

static void put(uint32_t size)
{
    domus_buffer *buffer = domi_buffer_heap(&bed.io, size);

    ck_assert_ptr_nonnull(buffer);
    memset(domus_buffer_data(buffer), 'w', size);
    ck_assert_int_eq(domi_channel_write(bed.channels[0], buffer), 0);
}

static void pass(uint64_t ms)
{
    domt_bed_pass(&bed, ms);
    domt_bed_settle(&bed);
}

static uint64_t silent(void)
{
    return domi_counter_read(&bed.io.counters.channels_silent);
}

/* The wheel may be up to 1 ms late. */
static void is_closed_within(uint64_t ms)
{
    pass(ms - 2);
    ck_assert(domt_bed_is_open(fd));
    pass(4);
    ck_assert(!domt_bed_is_open(fd));
    domt_bed_noted(&bed, "A-(-110) ");
}

static void stays_open(void)
{
    pass(10 * FIRST_MS);
    ck_assert(domt_bed_is_open(fd));
    ck_assert_uint_eq(silent(), 0);
}

DOMT_TEST(a_peer_that_sends_nothing_is_closed_in_time)
{
    begin();
    is_closed_within(FIRST_MS);
    ck_assert_uint_eq(silent(), 1);
    ck_assert_uint_eq(domi_counter_read(&bed.io.counters.channels_reset), 1);
    end();
}

/* Bytes that go to the peer prove nothing: it may be deaf as well. */
DOMT_TEST(what_is_sent_to_a_silent_peer_gives_it_no_more_time)
{
    begin();
    pass(FIRST_MS / 2);
    put(10);
    domt_bed_turn(&bed);
    domt_fake_sent(bed.fake, fd, 10);
    is_closed_within(FIRST_MS / 2);
    ck_assert_uint_eq(silent(), 1);
    end();
}

DOMT_TEST(one_byte_ends_the_wait_for_the_first)
{
    begin();
    pass(FIRST_MS - 2);
    domt_bed_feed(&bed, fd, 'x', 1);
    pass(0);
    stays_open();
    end();
}

/* The thread has not collected it yet, for instance because it was busy until the time was over. */
DOMT_TEST(a_first_byte_that_waits_in_the_socket_is_in_time)
{
    begin();
    ck_assert_int_eq(send(peer, "x", 1, MSG_NOSIGNAL), 1);
    stays_open();
    end();
}

DOMT_TEST(zero_is_no_time_out)
{
    begin_within(0, 0);
    ck_assert(!domi_wheel_is_armed(&bed.channels[0]->timer.node));
    stays_open();
    end();
}

DOMT_TEST(after_the_first_byte_the_idle_time_out_holds)
{
    begin_within(FIRST_MS, 3 * FIRST_MS);
    pass(FIRST_MS / 2);
    domt_bed_feed(&bed, fd, 'x', 1);
    pass(0);
    domt_bed_noted(&bed, "A(x) ");
    is_closed_within(3 * FIRST_MS);
    ck_assert_uint_eq(silent(), 0);
    end();
}

DOMT_TEST(a_shorter_idle_time_out_comes_first_and_is_not_counted)
{
    begin_within(2 * FIRST_MS, FIRST_MS);
    is_closed_within(FIRST_MS);
    ck_assert_uint_eq(silent(), 0);
    end();
}

/* No channel is read while there is no room for bytes that are queued for peers. */
static void stop_reading(void)
{
    domi_io_set_pressure(&bed.io, &(domi_io_pressure){.queue_max = 0});
    bed.io.piece = 1;
    domi_channel_decide_receive(bed.channels[0]);
}

static void go_on_reading(void)
{
    domi_io_set_pressure(&bed.io, &(domi_io_pressure){.queue_max = UINT64_MAX});
}

DOMT_TEST(the_time_in_which_nobody_reads_does_not_count)
{
    begin();
    pass(FIRST_MS / 2);
    stop_reading();
    domt_bed_settle(&bed);
    stays_open();
    pass(FIRST_MS / 2);
    go_on_reading();
    domt_bed_settle(&bed);
    is_closed_within(FIRST_MS);
    end();
}

/* The end of the receive is under way: its first byte may come with it. */
DOMT_TEST(a_receive_that_is_being_cancelled_reads_no_more)
{
    begin();
    stop_reading();
    domt_bed_turn(&bed);
    ck_assert_ptr_nonnull(domt_fake_find(bed.fake, DOMT_RECEIVE, fd));
    domt_bed_pass(&bed, FIRST_MS + 2);
    domt_bed_settle(&bed);
    ck_assert(domt_bed_is_open(fd));
    end();
}

DOMT_TEST(a_peer_that_has_finished_is_not_waited_for)
{
    begin();
    bed.ignore_end = true;
    domt_fake_receive_ends(bed.fake, fd, 0);
    domt_bed_settle(&bed);
    domt_bed_noted(&bed, "A. ");
    stays_open();
    ck_assert(!domi_wheel_is_armed(&bed.channels[0]->timer.node)); /* and nobody looks for it */
    end();
}

/* The peer takes its answer slowly; sendTimeout bounds that. */
DOMT_TEST(a_channel_that_its_actor_has_closed_is_not_silent)
{
    begin();
    put(10);
    domt_bed_turn(&bed);
    ck_assert_int_eq(domi_channel_close(bed.channels[0]), 0);
    pass(10 * FIRST_MS);
    ck_assert(domt_bed_is_open(fd));
    domt_fake_sent(bed.fake, fd, 10);
    domt_bed_settle(&bed);
    ck_assert_int_eq(domt_bed_peer_sees(peer), 'f');
    end();
}

/* While the thread is careful each receive brings one piece. A proxy that sends its header byte by
 * byte has no more time by that. */
DOMT_TEST(a_header_that_drips_has_to_come_in_time)
{
    static const char header[] = "PROXY TCP4 192.0.2.1 ";
    int own, other;

    begin();
    bed.io.careful = true;
    domt_bed_pair(&own, &other);
    ck_assert_int_eq(domi_channel_adopt(&bed.io, bed.actor.house,
                                        &(domi_connection){.fd = own, .is_proxied = true}),
                     0);
    atomic_fetch_add_explicit(&bed.io.connections, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < 12; i++) {
        if (domt_bed_is_open(own))
            ck_assert(domt_fake_bytes(bed.fake, own, header + i, 1, false));
        pass(FIRST_MS / 10);
    }
    ck_assert(!domt_bed_is_open(own));
    close(other);
    end();
}

DOMT_SUITE(20)
