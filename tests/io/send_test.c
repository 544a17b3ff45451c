/* io/channels/send.c: one send of a channel is in flight (M13), it takes the buffers of a whole
 * iteration, a short send goes on at the right byte, and limits hold. house/dispatch/later.c: a
 * channels actor runs once more before the sends of an iteration leave. */
#include "base/memory.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/phases.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "io/channels/send.h"
#include "io/channels/state.h"
#include "io/channels/table.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LARGE 600u /* a size that is too large for a write to be copied */

static int fd, peer;

static void begin_channel(void)
{
    domt_bed_start_with_connection(&fd, &peer);
    domt_bed_expect_calls("A+ ");
}

/* Queue `size` times `byte` on the channel, as its actor would. */
static int write_bytes_on_channel(char byte, uint32_t size)
{
    return domt_bed_write_bytes(bed->channels[0], byte, size);
}

/* M13: a channel has one send in flight at a time. */
DOMT_TEST(one_send_is_in_flight_although_much_is_written)
{
    begin_channel();
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(write_bytes_on_channel('a', 10), 0);
        domt_bed_take_turn(); /* the fake backend checks that no second send is in flight */
    }
    ck_assert_uint_eq(bed->fake->begun[DOMT_SEND], 1);
    domt_bed_complete_send(fd, 10);
    ck_assert_uint_eq(bed->fake->begun[DOMT_SEND], 2);
    ck_assert_uint_eq(domt_fake_find_operation(bed->fake, DOMT_SEND, fd)->size, 90);
    domt_bed_end();
}

DOMT_TEST(writes_of_a_turn_leave_in_one_send_of_up_to_16_buffers)
{
    begin_channel();
    ck_assert_int_eq(write_bytes_on_channel('a', 10), 0);
    domt_bed_take_turn();
    const domt_op *op = domt_fake_find_operation(bed->fake, DOMT_SEND, fd);
    ck_assert_ptr_null(op->message); /* a send of one buffer needs no list of pieces */
    ck_assert_uint_eq(op->size, 10);
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(write_bytes_on_channel((char)('a' + i), LARGE), 0);
    for (int left = 40; left > 0;) {
        int pieces = left < (int)DOMI_PIECES_MAX ? left : (int)DOMI_PIECES_MAX;
        domt_bed_complete_send(fd, (int32_t)op->size);
        op = domt_fake_find_operation(bed->fake, DOMT_SEND, fd);
        ck_assert_uint_eq(op->message->msg_iovlen, (size_t)pieces);
        ck_assert_uint_eq(op->size, (uint32_t)pieces * LARGE);
        left -= pieces;
    }
    domt_bed_complete_send(fd, (int32_t)op->size);
    ck_assert_ptr_null(domt_fake_find_operation(bed->fake, DOMT_SEND, fd));
    ck_assert_uint_eq(domus_channel_queued(bed->channels[0]), 0);
    ck_assert_uint_eq(bed->io.counters.sent_bytes, 10 + 40 * LARGE);
    domt_bed_end();
}

static uint32_t count_outbound_buffers(void)
{
    uint32_t count = 0;

    for (domus_buffer *buffer = bed->channels[0]->outbound.head; buffer != NULL;
         buffer = buffer->next)
        count++;
    return count;
}

static uint64_t memory_of_outbound_buffers(void)
{
    uint64_t sum = 0;

    for (domus_buffer *buffer = bed->channels[0]->outbound.head; buffer != NULL;
         buffer = buffer->next)
        sum += domi_memory_bytes_of_block(buffer);
    return sum;
}

/* One small write is sent as it is; small writes that follow it are copied together behind it. The
 * memory of the copies is counted. */
DOMT_TEST(small_writes_are_copied_together)
{
    begin_channel();
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(write_bytes_on_channel((char)('a' + i % 26), 16), 0);
        ck_assert_uint_eq(bed->channels[0]->cost, memory_of_outbound_buffers());
        ck_assert_uint_eq(domi_counter_read(&bed->io.queued), bed->channels[0]->cost);
        if (i == 1) { /* the piece that holds two writes takes little memory */
            ck_assert_uint_eq(count_outbound_buffers(), 1);
            ck_assert_uint_lt(bed->channels[0]->cost, 640);
        }
    }
    ck_assert_uint_eq(count_outbound_buffers(), 1);
    domt_bed_take_turn();
    const domt_op *op = domt_fake_find_operation(bed->fake, DOMT_SEND, fd);
    ck_assert_uint_eq(op->size, 3200);
    for (size_t i = 0; i < 3200; i++)
        ck_assert_int_eq(((const char *)op->data)[i], (char)('a' + i / 16 % 26));
    domt_bed_complete_send(fd, 3200);
    ck_assert_uint_eq(domi_counter_read(&bed->io.queued), 0);
    for (int i = 0; i < 5000; i++) /* when many bytes are queued, a piece of copies has 4 KiB */
        ck_assert_int_eq(write_bytes_on_channel('z', 16), 0);
    ck_assert_uint_le(count_outbound_buffers(), 21);
    ck_assert_uint_eq(bed->channels[0]->cost, memory_of_outbound_buffers());
    ck_assert_uint_lt(bed->channels[0]->cost, 21 * 4200);
    domt_bed_end();
}

/* Writes are not joined to a buffer that the kernel reads, or of which it has read a part. */
DOMT_TEST(small_writes_are_not_joined_to_a_send_in_flight)
{
    begin_channel();
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(write_bytes_on_channel('a', 16), 0);
    domt_bed_take_turn();
    domus_buffer *sent = bed->channels[0]->outbound.head;
    ck_assert_uint_eq(sent->size, 48);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(write_bytes_on_channel('b', 16), 0);
    ck_assert_uint_eq(sent->size, 48);
    ck_assert_ptr_eq(bed->channels[0]->outbound.head, sent);
    domt_bed_complete_send(fd, 40);
    const domt_op *op = domt_fake_find_operation(bed->fake, DOMT_SEND, fd);
    ck_assert_uint_eq(op->size, 8 + 48);
    ck_assert_uint_eq(sent->size, 48);
    ck_assert_int_eq(write_bytes_on_channel('c', 16), 0);
    ck_assert_uint_eq(sent->size, 48);
    domt_bed_complete_send(fd, 56);
    domt_bed_complete_send(fd, 16);
    ck_assert_uint_eq(bed->io.counters.sent_bytes, 112);
    domt_bed_end();
}

DOMT_TEST(append_copies_and_has_the_limits_of_a_write)
{
    static char bytes[1024 * 1024 + 1];

    begin_channel();
    domus_channel *channel = bed->channels[0];
    ck_assert_int_eq(domi_channel_append_copy(channel, bytes, sizeof bytes), -EMSGSIZE);
    ck_assert_int_eq(domi_channel_append_copy(channel, bytes, 0), 0);
    ck_assert_uint_eq(domus_channel_queued(channel), 0);
    bytes[0] = 'x';
    ck_assert_int_eq(domi_channel_append_copy(channel, bytes, 1), 0);
    bytes[0] = 'y';
    ck_assert_int_eq(domi_channel_append_copy(channel, bytes, 1), 0);
    ck_assert_int_eq(domi_channel_append_copy(channel, bytes, sizeof bytes - 1), 0);
    ck_assert_uint_eq(count_outbound_buffers(), 2);
    ck_assert_int_eq(memcmp(channel->outbound.head->data, "xy", 2), 0);
    ck_assert_int_eq(domi_channel_append_copy(channel, bytes, sizeof bytes - 1), 0);
    ck_assert_int_eq(domi_channel_append_copy(channel, bytes, sizeof bytes - 1), 0);
    ck_assert_int_eq(domi_channel_append_copy(channel, bytes, sizeof bytes - 1), -ENOBUFS);
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_int_eq(domi_channel_append_copy(channel, bytes, 600), -ENOMEM);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(domus_channel_queued(channel), 2 + 3 * (sizeof bytes - 1));
    ck_assert_int_eq(domi_channel_finish(channel), 0);
    ck_assert_int_eq(domi_channel_append_copy(channel, bytes, 1), -EPIPE);
    domt_bed_end();
}

/* Without memory for a buffer to copy into, small writes are sent one by one. */
DOMT_TEST(small_writes_without_memory_stay_apart)
{
    domus_buffer *buffers[3];

    begin_channel();
    for (int i = 0; i < 3; i++) {
        buffers[i] = domi_buffer_new_from_heap(&bed->io, 10);
        ck_assert_ptr_nonnull(buffers[i]);
    }
    domi_memory_fail_allocation_after(0, 1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(domi_channel_write(bed->channels[0], buffers[i]), 0);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(count_outbound_buffers(), 3);
    domt_bed_take_turn();
    domt_fake_complete_send(bed->fake, fd, 30);
    domt_bed_end();
}

/* Sizes and short results follow a fixed sequence: the peer must get the stream, byte by byte. */
DOMT_TEST(short_sends_go_on_at_the_right_byte)
{
    static char written[1 << 16];
    static char wire[1 << 16];
    uint32_t written_bytes = 0;
    uint32_t wire_bytes = 0;
    uint32_t chance = 12345;

    begin_channel();
    while (written_bytes < 50000 || domus_channel_queued(bed->channels[0]) != 0) {
        for (uint32_t i = 0; i < chance % 7 && written_bytes < 50000; i++) {
            chance = chance * 1103515245u + 12345u;
            uint32_t size = 1 + (chance >> 16) % 700;
            char byte = (char)(chance >> 24);
            memset(written + written_bytes, byte, size);
            written_bytes += size;
            ck_assert_int_eq(write_bytes_on_channel(byte, size), 0);
        }
        domt_bed_take_turn();
        chance = chance * 1103515245u + 12345u;
        domt_op *op = domt_fake_find_operation(bed->fake, DOMT_SEND, fd);
        if (op == NULL)
            continue;
        uint32_t taken = 1 + (chance >> 16) % op->size;
        wire_bytes += domt_fake_copy_send_bytes(bed->fake, fd, wire + wire_bytes, taken);
        domt_fake_complete_send(bed->fake, fd, (int32_t)taken);
    }
    ck_assert_uint_eq(wire_bytes, written_bytes);
    ck_assert_int_eq(memcmp(wire, written, written_bytes), 0);
    ck_assert_uint_eq(bed->io.counters.sent_bytes, written_bytes);
    domt_bed_end();
}

DOMT_TEST(an_interrupted_send_is_sent_again)
{
    static const int again[] = {-EINTR, -EAGAIN};

    begin_channel();
    ck_assert_int_eq(write_bytes_on_channel('a', 10), 0);
    domt_bed_take_turn();
    for (size_t i = 0; i < sizeof again / sizeof again[0]; i++) {
        domt_bed_complete_send(fd, again[i]);
        ck_assert_uint_eq(domt_fake_find_operation(bed->fake, DOMT_SEND, fd)->size, 10);
    }
    domt_bed_end();
}

DOMT_TEST(a_failed_send_closes_with_its_error)
{
    static const int failures[][2] = {
        {-EPIPE, -EPIPE}, {-ECONNRESET, -ECONNRESET}, {0, -EPIPE}, {-ENOMEM, -ENOMEM}};

    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        char expected[32];

        begin_channel();
        ck_assert_int_eq(write_bytes_on_channel('a', 10), 0);
        domt_bed_take_turn();
        ck_assert_int_eq(write_bytes_on_channel('b', 10), 0);
        domt_fake_complete_send(bed->fake, fd, failures[i][0]);
        domt_bed_settle();
        snprintf(expected, sizeof expected, "A-(%d) ", failures[i][1]);
        domt_bed_expect_calls(expected);
        ck_assert(!domt_bed_is_descriptor_open(fd));
        ck_assert_uint_eq(bed->io.counters.channels_reset, 1);
        domt_bed_end();
    }
}

/* The leak checker finds a buffer that is left after a write that has failed. */
DOMT_TEST(a_refused_write_consumes_its_buffer)
{
    bed->config.channel.send_low_bytes = 10;
    bed->config.channel.send_high_bytes = 50;
    bed->config.channel.send_max_bytes = 100;
    begin_channel();
    ck_assert_int_eq(write_bytes_on_channel('a', 60), 0);
    ck_assert_int_eq(write_bytes_on_channel('a', 40), 0);
    ck_assert_int_eq(write_bytes_on_channel('a', 1), -ENOBUFS);
    ck_assert_uint_eq(domus_channel_queued(bed->channels[0]), 100);
    domt_bed_take_turn();
    ck_assert_int_eq(write_bytes_on_channel('a', 1), -ENOBUFS);
    domt_bed_complete_send(fd, 1);
    ck_assert_int_eq(write_bytes_on_channel('a', 1), 0);
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    ck_assert_int_eq(write_bytes_on_channel('a', 1), -EPIPE);
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), -EALREADY);
    domt_bed_end();
}

DOMT_TEST(received_buffers_go_out_as_they_came_in)
{
    bed->mode = DOMT_BED_ECHO;
    begin_channel();
    domt_bed_bring_bytes_and_turn(fd, 'x', 200);
    const domt_op *op = domt_fake_find_operation(bed->fake, DOMT_SEND, fd);
    /* the send uses the received buffer itself, not a copy */
    ck_assert_ptr_eq(op->data, bed->io.buffers[0].data);
    ck_assert_uint_eq(domi_io_count_free_buffers(&bed->io), 63);
    domt_bed_complete_send(fd, 150);
    op = domt_fake_find_operation(bed->fake, DOMT_SEND, fd);
    ck_assert_ptr_eq(op->data, bed->io.buffers[0].data + 150);
    /* the received buffer is not free: the kernel still reads the rest of it */
    ck_assert_uint_eq(domi_io_count_free_buffers(&bed->io), 63);
    domt_bed_complete_send(fd, 50);
    ck_assert_uint_eq(domi_io_count_free_buffers(&bed->io), 64);
    ck_assert_uint_eq(domt_fake_count_free_buffers(bed->fake), 64);
    domt_bed_end();
}

/* An empty piece would become a send of no bytes, whose result would say that the peer has gone. */
DOMT_TEST(an_empty_write_sends_nothing)
{
    begin_channel();
    domus_buffer *buffer = domi_buffer_new_from_heap(&bed->io, 10);
    ck_assert_int_eq(domus_buffer_trim(buffer, 11), -EINVAL);
    ck_assert_int_eq(domus_buffer_trim(buffer, 0), 0);
    ck_assert_int_eq(domi_channel_write(bed->channels[0], buffer), 0);
    domt_bed_take_turn();
    ck_assert_ptr_null(domt_fake_find_operation(bed->fake, DOMT_SEND, fd));
    domt_bed_end();
}

/* Check a send of which the kernel takes nothing. The idle time-out is longer, so the channel's one
 * timer stands later when the send begins. */
static void check_stalled_send(bool closed)
{
    bed->config.channel.idle_timeout_ns = 10000 * DOMT_BED_MS;
    bed->config.channel.send_timeout_ns = 100 * DOMT_BED_MS;
    begin_channel();
    domt_bed_pass_ms(50);
    ck_assert_int_eq(write_bytes_on_channel('a', 10), 0);
    domt_bed_take_turn();
    if (closed)
        ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    domt_bed_pass_ms(95);
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_fake_complete_send(bed->fake, fd,
                            4); /* bytes that the kernel takes give the send more time */
    domt_bed_take_turn();
    domt_bed_pass_ms(95);
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_bed_pass_ms_and_settle(10);
    ck_assert(!domt_bed_is_descriptor_open(fd));
    domt_bed_expect_calls("A-(-110) ");
    domt_bed_end();
}

DOMT_TEST(a_send_that_nobody_takes_resets_before_a_longer_idle_time_out)
{
    check_stalled_send(false);
}

DOMT_TEST(a_send_that_nobody_takes_ends_a_closed_channel_too)
{
    check_stalled_send(true);
}

static domus_address owner;
static domus_address address; /* the address of the channel */
static int fd, peer;
static uint32_t gathered; /* number of bytes that the next event's handler writes */
static uint32_t events;
static uint32_t again; /* number of further events whose handlers ask for another one */
static int last;

static const domus_type gather_type = {.name = "gather"};

static int on_gather_ask_for_later(domus_stack *stack, void *self, const void *payload)
{
    gathered += 600;
    last = domus_later(stack);
    return 0;
}

static int on_later_write_gathered_bytes(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *channel = domus_channel_running(stack);
    domus_buffer *bytes = NULL;

    events++;
    if (again != 0) {
        again--;
        ck_assert_int_eq(domus_later(stack), 0);
        ck_assert_int_eq(domus_later(stack), 0);
    }
    if (channel == NULL || gathered == 0)
        return 0;
    ck_assert_int_eq(domus_buffer_new(stack, gathered, &bytes), 0);
    gathered = 0;
    return domus_channel_write(stack, channel, bytes);
}

static const domus_on rows[] = {{&gather_type, on_gather_ask_for_later, 0},
                                {&domus_later_type, on_later_write_gathered_bytes, 0},
                                {NULL, NULL, 0}};

static const domus_behaviour line = {.name = "line", .kind = DOMUS_CHANNELS, .on = rows};
static const domus_behaviour owning = {
    .name = "owning", .kind = DOMUS_CHANNELS, .on = rows, .channel = &line};
static const domus_behaviour state = {.name = "state", .on = rows};

static void begin_channel_that_uses_later(void)
{
    gathered = events = again = 0;
    domt_bed_start();
    owner = domt_bed_spawn_actor(&owning, NULL);
    domt_bed_take_turn();
    fd = domt_bed_connect_to_actor(owner, &peer);
    address = domus_channel_address(bed->io.slots[0].channel);
}

static void put_gather_notice(domus_address to)
{
    ck_assert_int_eq(domt_bed_put_message(to, DOMI_NOTICE, &gather_type, NULL), 0);
}

DOMT_TEST(several_calls_of_later_bring_one_event_before_the_sends)
{
    begin_channel_that_uses_later();
    for (int i = 0; i < 3; i++)
        put_gather_notice(address);
    domt_bed_take_turn();
    ck_assert_int_eq(last, 0);
    ck_assert_uint_eq(events, 1);
    const domt_op *send = domt_fake_find_operation(bed->fake, DOMT_SEND, fd);
    ck_assert_ptr_nonnull(send);
    ck_assert_ptr_null(send->message);
    ck_assert_uint_eq(send->size, 1800);
    put_gather_notice(address); /* a call in the next iteration brings another event */
    domt_bed_take_turn();
    ck_assert_uint_eq(events, 2);
    domt_bed_take_turn();
    ck_assert_uint_eq(events, 2);
    domt_bed_complete_send(fd, 1800);
    domt_fake_complete_send(bed->fake, fd, 600);
    domt_bed_end();
}

/* An actor that always asks again gets one event in each phase 2, and the thread does not sleep. */
DOMT_TEST(later_event_that_asks_again_waits_for_the_next_phase_2)
{
    begin_channel_that_uses_later();
    again = 3;
    put_gather_notice(owner);
    for (uint32_t i = 1; i <= 4; i++) {
        domt_bed_take_turn();
        ck_assert_uint_eq(events, i);
        ck_assert_int_eq(domi_manager_has_work(&bed->manager), i != 4);
    }
    domt_bed_take_turn();
    ck_assert_uint_eq(events, 4);
    domt_bed_end();
}

/* The actor has ended before its event: the next actor in the slot does not get the event. */
DOMT_TEST(later_event_of_an_actor_that_has_ended_is_dropped)
{
    domus_address one;
    domus_address next;

    begin_channel_that_uses_later();
    one = domt_bed_spawn_actor(&owning, NULL);
    domt_bed_take_turn();
    put_gather_notice(one);
    again = 1;
    domt_bed_take_turn(); /* one event is handled, and another one waits when its actor ends */
    ck_assert_uint_eq(events, 1);
    ck_assert(domi_manager_has_work(&bed->manager));
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, one), 0);
    domi_house_run_and_settle(&bed->manager,
                              domi_queue_take_house(&bed->manager.schedule.ready[DOMUS_CHANNELS]));
    next = domt_bed_spawn_actor(&owning, NULL);
    ck_assert_ptr_eq(next.house, one.house);
    domt_bed_take_turn();
    ck_assert_uint_eq(events, 1);
    ck_assert(!domi_manager_has_work(&bed->manager));
    domt_bed_end();
}

DOMT_TEST(later_of_a_state_actor_is_refused)
{
    domus_address one;

    begin_channel_that_uses_later();
    one = domt_bed_spawn_actor(&state, NULL);
    domt_bed_take_turn();
    put_gather_notice(one);
    domi_house_run_and_settle(&bed->manager,
                              domi_queue_take_house(&bed->manager.schedule.ready[DOMUS_STATE]));
    ck_assert_int_eq(last, -EOPNOTSUPP);
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, one), 0);
    domi_house_run_and_settle(&bed->manager,
                              domi_queue_take_house(&bed->manager.schedule.ready[DOMUS_STATE]));
    domt_bed_end();
}

DOMT_SUITE(20)
