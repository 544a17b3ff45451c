/* While memory is short channels go on reading, one piece at a time when the level is critical; the
 * accept pauses (acceptor_test.c tests that). Pages of slices that wait for many channels count
 * once on their thread, as a whole, and hinder others up to half of the bound
 * (io/resources/pages.c). A spell of shortage begins once and is over once, and no stranger fills
 * the log by causing it again and again (io/resources/shortage.c). */
#include "base/memory.h"
#include "base/page.h"
#include "io/channels/crowd.h"
#include "io/channels/send.h"
#include "io/channels/state.h"
#include "io/resources/buffer.h"
#include "io/resources/pages.h"
#include "io/resources/shortage.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <unistd.h>

static int fd, peer;

/* Begin with a connection whose idle time-out is `idle_ms`; 0: none. */
static void begin_channel_with_idle_time(domt_bed_mode mode, uint64_t idle_ms)
{
    bed->config.channel.idle_timeout_ns = idle_ms * DOMT_BED_MS;
    bed->mode = mode;
    domt_bed_start_with_connection(&fd, &peer);
    domt_bed_expect_calls("A+ ");
}

static void begin_channel_in_mode(domt_bed_mode mode)
{
    begin_channel_with_idle_time(mode, 0);
}

static const domt_op *find_receive_of_channel(void)
{
    return domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fd);
}

/* Set the level of memory, and let a sweep go through the channels, twice when the level has
 * ended. */
static void set_memory_level_and_sweep(domus_memory_level level)
{
    domi_io_set_memory_shortage(&bed->io,
                                &(domi_io_pressure){.pauses = level != DOMUS_MEMORY_NORMAL,
                                                    .spares = level == DOMUS_MEMORY_CRITICAL,
                                                    .queue_max = UINT64_MAX});
    for (int i = 0; i < 10; i++) {
        domt_bed_pass_ms_and_settle(100);
    }
}

static void bring_byte_and_turn(char byte)
{
    domt_bed_bring_bytes_and_turn(fd, byte, 1);
}

DOMT_TEST(channels_read_on_while_memory_is_short)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    ck_assert(!find_receive_of_channel()->once);
    for (uint64_t i = 1; i <= 3; i++) {
        set_memory_level_and_sweep(DOMUS_MEMORY_HIGH);
        ck_assert(find_receive_of_channel()->once);
        bring_byte_and_turn('x');
        bring_byte_and_turn('y');
        domt_bed_expect_calls("A(x) A(y) ");
        ck_assert(find_receive_of_channel()->once);
        /* the same level comes again, and changes nothing */
        set_memory_level_and_sweep(DOMUS_MEMORY_HIGH);
        ck_assert_uint_eq(domi_counter_read(&bed->io.counters.memory_pauses), i);
        set_memory_level_and_sweep(DOMUS_MEMORY_NORMAL);
        bring_byte_and_turn('z');
        domt_bed_expect_calls("A(z) ");
        ck_assert(!find_receive_of_channel()->once);
    }
    domt_bed_end();
}

DOMT_TEST(while_memory_is_critical_a_channel_reads_one_piece_at_a_time)
{
    begin_channel_in_mode(DOMT_BED_KEEP);
    set_memory_level_and_sweep(DOMUS_MEMORY_CRITICAL);
    for (int i = 0; i < 3; i++) {
        ck_assert(find_receive_of_channel()->once);
        bring_byte_and_turn('x');
        domt_bed_expect_calls("A(x) ");
        domt_bed_pass_ms(1000);
        /* no receive is armed, because the actor has not handled the last piece yet */
        ck_assert_ptr_null(find_receive_of_channel());
        domt_bed_free_kept_buffers(1);
    }
    domt_bed_end();
}

DOMT_TEST(bytes_that_come_before_a_receive_has_ended_are_handled)
{
    begin_channel_in_mode(DOMT_BED_KEEP);
    domi_io_set_memory_shortage(&bed->io,
                                &(domi_io_pressure){.spares = true, .queue_max = UINT64_MAX});
    bring_byte_and_turn('x');
    bring_byte_and_turn('y'); /* the second byte comes by the receive that was begun before */
    domt_bed_settle_and_expect_calls("A(x) A(y) ");
    ck_assert_ptr_null(find_receive_of_channel());
    domt_bed_free_kept_buffers(1);
    ck_assert_ptr_null(find_receive_of_channel());
    domt_bed_free_kept_buffers(1);
    ck_assert(find_receive_of_channel()->once);
    domt_bed_end();
}

DOMT_TEST(when_memory_is_no_longer_critical_all_read_though_they_hold_a_piece)
{
    begin_channel_in_mode(DOMT_BED_KEEP);
    set_memory_level_and_sweep(DOMUS_MEMORY_CRITICAL);
    bring_byte_and_turn('x');
    ck_assert_ptr_null(find_receive_of_channel());
    set_memory_level_and_sweep(DOMUS_MEMORY_NORMAL);
    ck_assert_ptr_nonnull(find_receive_of_channel());
    domt_bed_end();
}

DOMT_TEST(a_channel_that_holds_its_share_pauses_at_each_level)
{
    begin_channel_in_mode(DOMT_BED_KEEP);
    for (uint32_t i = 0; i < 6; i++) {
        domt_bed_bring_bytes_and_turn(fd, 'x', 10);
    }
    domt_bed_settle();
    /* no receive is armed, because the channel holds its share of the buffers */
    ck_assert_ptr_null(find_receive_of_channel());
    set_memory_level_and_sweep(DOMUS_MEMORY_HIGH);
    set_memory_level_and_sweep(DOMUS_MEMORY_NORMAL);
    ck_assert_ptr_null(find_receive_of_channel());
    domt_bed_free_kept_buffers(bed->kept_count);
    ck_assert_ptr_nonnull(find_receive_of_channel());
    domt_bed_end();
}

DOMT_TEST(a_channel_that_closes_is_read_to_its_end)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    set_memory_level_and_sweep(DOMUS_MEMORY_CRITICAL);
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    domt_bed_take_turn();
    /* Bytes that stayed unread would turn the close into a reset, so they are read and thrown away
     * even while memory is short. */
    ck_assert_ptr_nonnull(find_receive_of_channel());
    domt_bed_end_receive(fd, 0);
    domt_bed_expect_calls("A-(0) ");
    domt_bed_end();
}

/* The peer of a paused channel may have sent bytes that nobody has read, also at the moment in
 * which the channel may read again. */
DOMT_TEST(a_peer_that_nobody_reads_is_not_idle)
{
    begin_channel_with_idle_time(DOMT_BED_KEEP, 100);
    domi_io_set_memory_shortage(&bed->io,
                                &(domi_io_pressure){.spares = true, .queue_max = UINT64_MAX});
    bring_byte_and_turn('x');
    domt_bed_settle();
    ck_assert_ptr_null(find_receive_of_channel());
    for (int i = 0; i < 35; i++)
        domt_bed_pass_ms(10);
    domt_bed_pass_ms(97);
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_bed_free_kept_buffers(1);
    domt_bed_pass_ms_and_settle(50);
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_bed_expect_calls("A(x) ");
    domt_bed_pass_ms_and_settle(200);
    domt_bed_expect_calls("A-(-110) ");
    domt_bed_end();
}

DOMT_TEST(a_drain_reads_while_memory_is_critical)
{
    begin_channel_in_mode(DOMT_BED_KEEP);
    set_memory_level_and_sweep(DOMUS_MEMORY_CRITICAL);
    bring_byte_and_turn('x');
    ck_assert_ptr_null(find_receive_of_channel());
    ck_assert_int_eq(write(peer, "abc", 3), 3);
    domi_io_drain_accepted_channels(&bed->io);
    domt_bed_settle();
    ck_assert_ptr_nonnull(find_receive_of_channel());
    /* the critical level changes nothing in a drain */
    set_memory_level_and_sweep(DOMUS_MEMORY_CRITICAL);
    ck_assert_ptr_nonnull(find_receive_of_channel());
    ck_assert(!bed->io.pressure.spares);
    domt_bed_end();
}

/* The piece is copied out because few buffers are free; without memory for the copy it stays in its
 * buffer. */
DOMT_TEST(a_piece_is_not_lost_for_want_of_memory)
{
    begin_channel_in_mode(DOMT_BED_KEEP);
    uint32_t free = domi_io_count_free_buffers(&bed->io);
    bed->io.reserve = free + 1;
    bring_byte_and_turn('x');
    ck_assert_uint_eq(domi_io_count_free_buffers(&bed->io), free);
    domi_memory_fail_allocation_after(0, 1);
    bring_byte_and_turn('y');
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(domi_io_count_free_buffers(&bed->io), free - 1);
    domt_bed_expect_calls("A(x) A(y) ");
    domt_bed_end();
}

#define CHANNELS 6
#define VALUE    100000u

/* --- the table -------------------------------------------------------------------------------- */

DOMT_TEST(table_of_queued_pages_finds_each_page)
{
    enum { PAGES = 3000 };
    static domus_slice slices[PAGES];
    static domi_queued_page *queued[PAGES];
    domi_queued_pages pages = {0};
    uint64_t sum = 0;

    for (int i = 0; i < PAGES; i++) {
        ck_assert_int_eq(domus_slice_copy(&i, sizeof i, &slices[i]), 0);
        queued[i] = domi_pages_add_buffer_of_page(&pages, slices[i].page);
        ck_assert_ptr_nonnull(queued[i]);
        ck_assert(!domi_pages_has_waiting_slice(&pages, slices[i].page));
        sum += domi_pages_count_waiting_slice(&pages, queued[i]);
        ck_assert(domi_pages_has_waiting_slice(&pages, slices[i].page));
    }
    ck_assert_uint_eq(pages.count, PAGES);
    ck_assert_uint_eq(pages.bytes, sum);
    for (int i = 0; i < PAGES; i++) {
        ck_assert_ptr_eq(domi_pages_add_buffer_of_page(&pages, slices[i].page), queued[i]);
        ck_assert_uint_eq(domi_pages_count_waiting_slice(&pages, queued[i]), 0);
        ck_assert_uint_eq(domi_pages_uncount_waiting_slice(&pages, queued[i]), 0);
        domi_pages_remove_buffer_of_page(&pages, queued[i]);
    }
    ck_assert_uint_eq(pages.bytes, sum);
    for (int i = PAGES - 1; i >= 0; i--) {
        ck_assert_uint_eq(domi_pages_uncount_waiting_slice(&pages, queued[i]),
                          domi_page_bytes_of_memory(slices[i].page));
        domi_pages_remove_buffer_of_page(&pages, queued[i]);
        ck_assert(!domi_pages_has_waiting_slice(&pages, slices[i].page));
        domus_slice_free(slices[i]);
    }
    ck_assert(pages.count == 0 && pages.bytes == 0 && pages.lists == NULL);
}

DOMT_TEST(table_of_queued_pages_without_memory_keeps_its_pages)
{
    domus_slice slices[40];
    domi_queued_page *queued[40];
    domi_queued_pages pages = {0};

    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(domus_slice_copy(&i, sizeof i, &slices[i]), 0);
    /* the allocation of the table fails first, then that of the page */
    for (int64_t n = 0; n < 2; n++) {
        domi_memory_fail_allocation_after(n, 0);
        ck_assert_ptr_null(domi_pages_add_buffer_of_page(&pages, slices[0].page));
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert_uint_eq(pages.count, 0);
    }
    for (int i = 0; i < 40; i++) {
        if (i == 16)
            domi_memory_fail_allocation_after(0, 0); /* the table cannot grow, and stays as it is */
        queued[i] = domi_pages_add_buffer_of_page(&pages, slices[i].page);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert_ptr_nonnull(queued[i]);
        if (i == 16)
            ck_assert_uint_eq(pages.lists_count, 16);
    }
    ck_assert_uint_gt(pages.lists_count, 16);
    for (int i = 0; i < 40; i++) {
        ck_assert_ptr_eq(domi_pages_add_buffer_of_page(&pages, slices[i].page), queued[i]);
        domi_pages_remove_buffer_of_page(&pages, queued[i]);
        domi_pages_remove_buffer_of_page(&pages, queued[i]);
        domus_slice_free(slices[i]);
    }
    domi_pages_free_table(&pages);
}

DOMT_TEST(small_slice_of_a_large_page_is_better_copied)
{
    static char bytes[8 * 20000];
    domus_slice whole, part;

    ck_assert_int_eq(domus_slice_copy(bytes, sizeof bytes, &whole), 0);
    part = whole;
    ck_assert(!domi_page_is_slice_better_copied(part));
    part.size = 16384;
    ck_assert(domi_page_is_slice_better_copied(part));
    part.size = 16385;
    /* this part is too large to be copied, so the whole page would be kept for it */
    ck_assert(!domi_page_is_slice_better_copied(part));
    domus_slice_free(whole);
    ck_assert_int_eq(domus_slice_copy(bytes, 80000, &whole), 0);
    part = whole;
    part.size = 10000;
    ck_assert(domi_page_is_slice_better_copied(part));
    part.size = 10100;
    ck_assert(!domi_page_is_slice_better_copied(part));
    domus_slice_free(whole);
}

/* --- channels --------------------------------------------------------------------------------- */

static void begin_channels_with_queue_bound(uint64_t queue_max)
{
    bed->mode = DOMT_BED_DROP;
    bed->config.io.buffers.size_bytes = 1024;
    domt_bed_start();
    domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = queue_max});
    for (int i = 0; i < CHANNELS; i++)
        (void)domt_bed_connect_to_own_actor(NULL);
    domt_bed_settle();
}

static int write_slice_on_channel(int i, domus_slice slice)
{
    domus_slice kept;

    ck_assert_int_eq(domus_slice_keep(slice, &kept), 0);
    return domi_channel_write(bed->channels[i], domi_buffer_new_from_slice(&bed->io, kept));
}

static int write_copied_bytes(int i, uint32_t size)
{
    return domi_channel_write(bed->channels[i], domi_buffer_new_from_heap(&bed->io, size));
}

static domus_slice make_large_slice(void)
{
    static const char bytes[VALUE];
    domus_slice value;

    ck_assert_int_eq(domus_slice_copy(bytes, VALUE, &value), 0);
    return value;
}

DOMT_TEST(a_page_in_several_queues_counts_once_on_its_thread)
{
    begin_channels_with_queue_bound(UINT64_C(1) << 30);
    domus_slice value = make_large_slice();
    uint64_t page = domi_page_bytes_of_memory(value.page);

    for (int i = 0; i < CHANNELS; i++) {
        ck_assert_int_eq(write_slice_on_channel(i, value), 0);
        ck_assert_uint_ge(domi_io_count_queued_bytes(&bed->io), page);
        ck_assert_uint_le(domi_io_count_queued_bytes(&bed->io), page + 200 * (uint64_t)(i + 1));
        ck_assert_uint_ge(bed->channels[i]->cost, VALUE);
    }
    domus_slice_free(value); /* now only the channels' queues have the slice */
    for (int i = 0; i < CHANNELS; i++) {
        ck_assert_uint_ge(domi_io_count_queued_bytes(&bed->io), page);
        domi_channel_end_at_once(bed->channels[i], -EPROTO, true);
        domt_bed_settle();
    }
    ck_assert_uint_eq(domi_io_count_queued_bytes(&bed->io), 0);
    domt_bed_end();
}

/* A part of a page that waits in a queue keeps the whole page. */
DOMT_TEST(a_queued_part_of_a_page_counts_as_the_whole_page)
{
    begin_channels_with_queue_bound(UINT64_C(1) << 30);
    domus_slice value = make_large_slice();
    domus_slice part = value;

    part.size = 3000;
    ck_assert_int_eq(write_slice_on_channel(0, part), 0);
    ck_assert_uint_ge(domi_io_count_queued_bytes(&bed->io), VALUE);
    part.offset = 5000;
    ck_assert_int_eq(write_slice_on_channel(1, part), 0);
    ck_assert_uint_le(domi_io_count_queued_bytes(&bed->io), VALUE + 1000);
    domus_slice_free(value);
    domt_bed_end();
}

/* A page is larger than the bound: a write that takes no further memory is queued all the same,
 * short answers have half of the bound for themselves, and other writes are refused. */
DOMT_TEST(a_page_larger_than_the_bound_silences_nobody)
{
    begin_channels_with_queue_bound(VALUE / 2);
    domus_slice value = make_large_slice();
    domus_slice other = make_large_slice();

    ck_assert_int_eq(write_slice_on_channel(0, value), 0);
    ck_assert_int_eq(write_slice_on_channel(1, value), 0);
    ck_assert_int_eq(write_slice_on_channel(2, value), 0);
    ck_assert_int_eq(write_slice_on_channel(3, other), -ENOBUFS);
    ck_assert_int_eq(write_copied_bytes(3, 1025), -ENOBUFS);
    ck_assert_int_eq(write_copied_bytes(3, 1024), 0);
    /* the channel may still read its first piece */
    ck_assert(!domi_channel_is_above_its_part(bed->channels[4], 0));
    domi_io_set_bound_of_queued_bytes(&bed->io, 8 * VALUE);
    ck_assert_uint_eq(bed->io.pages.beyond, 0);
    ck_assert_int_eq(write_slice_on_channel(3, other), 0);
    domus_slice_free(value);
    domus_slice_free(other);
    domt_bed_end();
}

DOMT_TEST(large_slice_leaves_half_of_queue_bound)
{
    enum { BOUND = 20000 };
    begin_channels_with_queue_bound(BOUND);
    domus_slice value = make_large_slice();
    uint64_t before;
    int result = 0;

    ck_assert_int_eq(write_slice_on_channel(0, value), 0);
    before = domi_io_count_queued_bytes(&bed->io);
    bed->channels[1]->settings = bed->channels[0]->settings;
    for (int i = 0; result == 0 && i < 1000; i++) {
        /* as if the next slice was the only one of its channel */
        bed->channels[1]->queued_bytes = 0;
        /* 600 bytes are too many to be joined with other writes */
        result = write_copied_bytes(1, 600);
    }
    ck_assert_int_eq(result, -ENOBUFS);
    ck_assert_uint_ge(domi_io_count_queued_bytes(&bed->io) - before, BOUND / 2 - 1000);
    ck_assert_uint_le(domi_io_count_queued_bytes(&bed->io) - before, BOUND / 2 + 1000);
    uint64_t bytes = 0;
    for (domus_buffer *buffer = bed->channels[1]->outbound.head; buffer != NULL;
         buffer = buffer->next)
        bytes += buffer->size;
    bed->channels[1]->queued_bytes = bytes;
    domus_slice_free(value);
    domt_bed_end();
}

#define HOUR_S 3600u

/* A stranger who makes a resource run out again and again does not fill the log. */
DOMT_TEST(shortage_that_returns_again_and_again_logs_few_lines)
{
    const uint64_t second = UINT64_C(1000000000);
    domi_shortage shortage = {0};
    uint64_t now_ns = 5 * second;
    uint64_t lasted_ns = 0;
    uint32_t lines = 0;

    /* for an hour, the shortage comes back each time after 1.1 s of quiet */
    for (uint32_t i = 0; i < HOUR_S; i++) {
        lines += domi_shortage_record(&shortage, now_ns);
        now_ns += second + second / 10;
        lines += domi_shortage_end_quiet_spell(&shortage, now_ns, &lasted_ns);
    }
    /* a second spell ends only after 2 s of quiet, so this one lasts for ever */
    ck_assert_uint_le(lines, 4);
    lines = 0;
    /* 3,600 times, another shortage comes as soon as the quiet spell of the last one is over */
    for (uint32_t i = 0; i < HOUR_S; i++) {
        lines += domi_shortage_record(&shortage, now_ns);
        for (; shortage.begun_ns != 0; now_ns += second)
            lines += domi_shortage_end_quiet_spell(&shortage, now_ns, &lasted_ns);
        ck_assert_uint_le(shortage.quiet_ns, 64 * second);
    }
    ck_assert_uint_eq(shortage.quiet_ns, 64 * second);
    domi_shortage restless = shortage;
    /* a minute without a shortage makes the wait short again */
    now_ns = shortage.ended_ns + 64 * second;
    ck_assert(domi_shortage_record(&restless, now_ns - 1));
    ck_assert_uint_eq(restless.quiet_ns, 64 * second);
    ck_assert(domi_shortage_record(&shortage, now_ns));
    ck_assert_uint_eq(shortage.quiet_ns, second);
    ck_assert(!domi_shortage_end_quiet_spell(&shortage, now_ns + second - 1, &lasted_ns));
    ck_assert(domi_shortage_end_quiet_spell(&shortage, now_ns + second, &lasted_ns));
    ck_assert_uint_eq(lasted_ns, 0);
    ck_assert(!domi_shortage_end_quiet_spell(&shortage, now_ns + 9 * second, &lasted_ns));
}

DOMT_SUITE(60)
