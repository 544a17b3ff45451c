/* Time-outs after a pause: all bytes that had arrived by then are reaped first, however many they
 * are and wherever they wait. The fake ring shows 20 completions for each enter, as the kernel
 * does. */
#include "house/message/mailbox.h"
#include "io/channels/ready.h"
#include "io/channels/state.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNT      300u
#define TIMEOUT_MS 100u
#define PIECE      20 /* longer than what the bed records of a read */

static int fds[COUNT];
static int peers[COUNT];

static void begin_channels_in_mode(uint32_t count, domt_bed_mode mode)
{
    bed->config.io.buffers.count = 512;
    bed->mode = mode;
    domt_bed_start();
    for (uint32_t i = 0; i < count; i++)
        fds[i] = domt_bed_connect_to_own_actor(&peers[i]);
}

/* Begin with `count` channels, all with a short idle time-out. */
static void begin_channels_with_idle_time(uint32_t count, domt_bed_mode mode)
{
    bed->config.channel.idle_timeout_ns = TIMEOUT_MS * DOMT_BED_MS;
    begin_channels_in_mode(count, mode);
    bed->note_length = 0;
}

static void take_completions_left_and_end_bed(uint32_t count)
{
    bed->fake->floods = false;
    while (bed->fake->completions_shown != bed->fake->completions_tail)
        domt_bed_take_turn();
    bed->fake->defers = false;
    bed->note_length = 0;
    domt_bed_end();
}

DOMT_TEST(bytes_that_came_during_a_pause_are_reaped_before_anybody_is_idle)
{
    begin_channels_with_idle_time(COUNT, DOMT_BED_DROP);
    bed->fake->defers = true;
    for (uint32_t i = 0; i < COUNT; i++)
        domt_bed_bring_bytes(fds[i], 'x', PIECE);
    domt_bed_pass_ms(30 * TIMEOUT_MS);
    ck_assert_uint_eq(bed->io.counters.channels_reset, 0);
    ck_assert_uint_eq(bed->read_bytes, COUNT * PIECE);
    bed->note_length = 0;
    bed->fake->defers = false;
    domt_bed_pass_ms(TIMEOUT_MS + 2); /* nothing came in this time, so all channels are idle */
    domt_bed_settle();
    ck_assert_uint_eq(bed->io.counters.channels_reset, COUNT);
    take_completions_left_and_end_bed(COUNT);
}

DOMT_TEST(a_peer_that_read_during_a_pause_has_not_timed_out)
{
    bed->config.channel.send_timeout_ns = TIMEOUT_MS * DOMT_BED_MS;
    begin_channels_in_mode(COUNT, DOMT_BED_ECHO);
    bed->note_length = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        domt_bed_bring_bytes(fds[i], 'x', PIECE);
    domt_bed_settle();
    bed->fake->defers = true;
    for (uint32_t i = 0; i < COUNT; i++)
        domt_fake_complete_send(bed->fake, fds[i], PIECE);
    domt_bed_pass_ms(30 * TIMEOUT_MS);
    ck_assert_uint_eq(bed->io.counters.channels_reset, 0);
    take_completions_left_and_end_bed(COUNT);
}

/* A thread without free buffers leaves the bytes in the socket, and no receive is armed on it. */
DOMT_TEST(a_starved_peer_whose_bytes_wait_in_the_socket_is_not_idle)
{
    begin_channels_with_idle_time(2, DOMT_BED_DROP);
    ck_assert_int_eq(send(peers[0], "waits", 5, 0), 5);
    bed->io.buffers_used = bed->io.config->io.buffers.count;
    for (int i = 0; i < 2; i++)
        domt_fake_end_receive(bed->fake, fds[i], -ENOBUFS);
    domt_bed_take_turn();
    domt_bed_pass_ms_and_settle(TIMEOUT_MS + 2);
    domt_bed_expect_calls("B-(-110) ");
    domt_bed_pass_ms_and_settle(TIMEOUT_MS - 4);
    ck_assert(domt_bed_is_descriptor_open(fds[0]));
    char bytes[5];
    /* without bytes that wait in the socket the peer is idle */
    ck_assert_int_eq(recv(fds[0], bytes, sizeof bytes, 0), 5);
    domt_bed_pass_ms_and_settle(TIMEOUT_MS + 2);
    domt_bed_expect_calls("A-(-110) ");
    bed->io.buffers_used = bed->config.io.buffers.count - 512;
    take_completions_left_and_end_bed(2);
}

/* The actor could not read the peer's bytes, because the mailbox of another actor, which it asks,
 * is full. */
DOMT_TEST(a_peer_whose_bytes_wait_for_its_actor_is_not_idle)
{
    begin_channels_with_idle_time(1, DOMT_BED_DROP);
    domi_house *house = bed->channels[0]->house;
    house->marks |= DOMI_MARK_SATURATED;
    domt_bed_bring_bytes(fds[0], 'x', 4);
    for (int i = 0; i < 5; i++)
        domt_bed_pass_ms(TIMEOUT_MS + 2);
    domt_bed_expect_calls("");
    house->marks &= (uint16_t)~DOMI_MARK_SATURATED;
    domi_channel_make_actor_ready(bed->channels[0]);
    if (house->state == DOMI_WAITING)
        domi_house_make_ready(&bed->manager, house);
    domt_bed_take_turn();
    domt_bed_expect_calls("A(xxxx) ");
    take_completions_left_and_end_bed(1);
}

/* The peer sends, but reads no answers, so it has caused the wait of the bytes in its socket. */
DOMT_TEST(a_peer_that_takes_no_answers_is_idle_although_it_sends)
{
    bed->config.channel.idle_timeout_ns = TIMEOUT_MS * DOMT_BED_MS;
    bed->config.channel.send_high_bytes = 8;
    bed->config.channel.send_low_bytes = 4;
    begin_channels_in_mode(1, DOMT_BED_ECHO);
    domt_bed_bring_bytes(fds[0], 'x', 20);
    domt_bed_settle();
    ck_assert(bed->channels[0]->blocked);
    ck_assert_int_eq(send(peers[0], "more", 4, 0), 4);
    domt_bed_pass_ms_and_settle(TIMEOUT_MS + 2);
    ck_assert(!domt_bed_is_descriptor_open(fds[0]));
    take_completions_left_and_end_bed(1);
}

/* The channel was closed by its actor, so the bytes in its socket will never be read. */
DOMT_TEST(a_peer_that_is_being_closed_is_idle_although_it_sends)
{
    begin_channels_with_idle_time(1, DOMT_BED_ECHO);
    domt_bed_bring_bytes(fds[0], 'x', PIECE);
    domt_bed_settle();
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_FLUSHING);
    ck_assert_int_eq(send(peers[0], "more", 4, 0), 4);
    domt_bed_pass_ms_and_settle(TIMEOUT_MS + 2);
    ck_assert(!domt_bed_is_descriptor_open(fds[0]));
    take_completions_left_and_end_bed(1);
}

/* The completions fill more than one turn: the time-outs wait until all are reaped in the next
 * turns. */
DOMT_TEST(time_outs_wait_for_a_crowd_that_one_turn_cannot_collect)
{
    bed->config.io.ring_entries = 16;
    bed->config.io.completion_entries = 32;
    bed->config.channel.idle_timeout_ns = TIMEOUT_MS * DOMT_BED_MS;
    begin_channels_in_mode(COUNT, DOMT_BED_DROP);
    bed->note_length = 0;
    bed->fake->defers = true;
    for (uint32_t i = 0; i < COUNT; i++)
        domt_bed_bring_bytes(fds[i], 'x', PIECE);
    domt_bed_pass_ms(3 * TIMEOUT_MS);
    ck_assert_uint_lt(bed->read_bytes, COUNT * PIECE);
    for (uint32_t i = 0; i < COUNT && bed->read_bytes != COUNT * PIECE; i++) {
        ck_assert_uint_eq(bed->io.counters.channels_reset, 0);
        domt_bed_take_turn();
        bed->note_length = 0;
    }
    domt_bed_take_turn();
    ck_assert_uint_eq(bed->read_bytes, COUNT * PIECE);
    ck_assert_uint_eq(bed->io.counters.channels_reset, 0);
    take_completions_left_and_end_bed(COUNT);
}

/* A drain that begins counts the bytes that each socket still holds, so it begins only when all
 * bytes that had arrived are read. */
DOMT_TEST(a_drain_waits_for_a_crowd_that_one_turn_cannot_collect)
{
    uint32_t turns = 0;

    bed->config.io.ring_entries = 16;
    bed->config.io.completion_entries = 32;
    begin_channels_in_mode(COUNT, DOMT_BED_DROP);
    bed->note_length = 0;
    bed->fake->defers = true;
    for (uint32_t i = 0; i < COUNT; i++)
        domt_bed_bring_bytes(fds[i], 'x', PIECE);
    uint32_t enters = bed->fake->enters;
    while (!domi_io_collect_arrivals_before_drain(&bed->io)) {
        ck_assert_uint_le(bed->fake->enters - enters, 32);
        ck_assert(!bed->io.draining);
        domt_bed_take_turn();
        bed->note_length = 0;
        enters = bed->fake->enters;
        turns++;
    }
    ck_assert_uint_ge(turns, COUNT / 64 / 2);
    domt_bed_take_turn();
    ck_assert_uint_eq(bed->read_bytes, COUNT * PIECE);
    take_completions_left_and_end_bed(COUNT);
}

DOMT_TEST(a_flood_without_end_cannot_hold_a_drain_up_for_ever)
{
    uint32_t calls = 1;

    begin_channels_in_mode(1, DOMT_BED_DROP);
    bed->fake->defers = true;
    bed->fake->floods = true;
    for (; !domi_io_collect_arrivals_before_drain(&bed->io) && calls < 1000; calls++)
        continue;
    ck_assert_uint_eq(calls, DOMI_POSTPONED_MAX);
    take_completions_left_and_end_bed(1);
}

DOMT_TEST(a_flood_without_end_cannot_hold_time_outs_up_for_ever)
{
    begin_channels_with_idle_time(1, DOMT_BED_DROP);
    bed->fake->defers = true;
    bed->fake->floods = true;
    domt_bed_pass_ms(TIMEOUT_MS + 2);
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_OPEN);
    for (int i = 0; i < 100 && bed->channels[0]->state == DOMI_CHANNEL_OPEN; i++)
        domt_bed_take_turn();
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_CLOSING);
    take_completions_left_and_end_bed(1);
}

/* An enter may run deferred work of the kernel that shows nothing yet; the rest comes with the next
 * enter. */
DOMT_TEST(enters_go_on_before_a_time_out_although_one_shows_nothing)
{
    begin_channels_with_idle_time(1, DOMT_BED_DROP);
    bed->fake->defers = true;
    domt_bed_bring_bytes(fds[0], 'x', PIECE);
    bed->fake->barren = 3;
    domt_bed_pass_ms(TIMEOUT_MS + 2);
    ck_assert_uint_eq(bed->read_bytes, PIECE);
    ck_assert_uint_eq(bed->channels[0]->state, DOMI_CHANNEL_OPEN);
    take_completions_left_and_end_bed(1);
}

DOMT_TEST(enters_that_never_show_anything_hold_up_no_turn)
{
    begin_channels_with_idle_time(1, DOMT_BED_DROP);
    bed->fake->defers = true;
    domt_bed_bring_bytes(fds[0], 'x', PIECE);
    bed->fake->barren = UINT32_MAX;
    domt_bed_pass_ms(TIMEOUT_MS + 2);
    ck_assert_uint_le(bed->fake->enters, bed->config.io.completion_entries + 10);
    bed->fake->barren = 0;
    take_completions_left_and_end_bed(1);
}

/* An enter without a need would be a system call each millisecond. */
DOMT_TEST(without_a_timer_that_is_due_nothing_is_collected)
{
    bed->config.channel.idle_timeout_ns = 1000 * DOMT_BED_MS;
    begin_channels_in_mode(1, DOMT_BED_DROP);
    domt_bed_take_turn();
    uint32_t enters = bed->fake->enters;
    for (int i = 0; i < 50; i++)
        domt_bed_pass_ms(1);
    ck_assert_uint_eq(bed->fake->enters, enters);
    take_completions_left_and_end_bed(1);
}

DOMT_SUITE(20)
