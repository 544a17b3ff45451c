/* io/channels/: the actor of a channel is told open, read, end and close in order, a channel can
 * end in every state, and it has an idle time-out. A handler that refuses a channel has not
 * failed. */
#include "base/memory.h"
#include "io/channels/send.h"
#include "io/channels/state.h"
#include "tests/io/bed.h"
#include "tests/support/death.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fd, peer;

static void begin_channel_in_mode(domt_bed_mode mode)
{
    bed->mode = mode;
    domt_bed_start_with_connection(&fd, &peer);
}

static void write_text_on_first_channel(const char *text)
{
    domus_buffer *buffer = domi_buffer_new_from_heap(&bed->io, strlen(text));

    ck_assert_ptr_nonnull(buffer);
    memcpy(domus_buffer_data(buffer), text, strlen(text));
    ck_assert_int_eq(domi_channel_write(bed->channels[0], buffer), 0);
}

DOMT_TEST(an_actor_is_told_open_read_end_close_in_order_and_once)
{
    begin_channel_in_mode(DOMT_BED_ECHO);
    domt_bed_bring_text(fd, "one");
    domt_bed_bring_text(fd, "two");
    domt_bed_end_receive(fd, 0);
    domt_bed_expect_calls("A+ A(one) A(two) A. ");
    /* the channel is half closed: its answer is still on its way */
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_fake_complete_send(bed->fake, fd, 6);
    domt_bed_settle_and_expect_calls("A-(0) ");
    ck_assert(!domt_bed_is_descriptor_open(fd));
    ck_assert_uint_eq(bed->io.counters.channels_opened, 1);
    ck_assert_uint_eq(bed->io.counters.channels_closed, 1);
    ck_assert_uint_eq(bed->io.counters.channels_reset, 0);
    ck_assert_uint_eq(bed->io.connections, 0);
    domt_bed_end();
}

DOMT_TEST(the_fin_follows_all_that_is_queued)
{
    begin_channel_in_mode(DOMT_BED_ECHO);
    write_text_on_first_channel("last words");
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    domt_bed_take_turn();
    domt_fake_complete_send(bed->fake, fd, 4);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'o');
    domt_fake_complete_send(bed->fake, fd, 6);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'f');
    /* the channel stays open until the peer has closed, so that no reset overtakes the answer */
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_bed_end_receive(fd, 0);
    ck_assert(!domt_bed_is_descriptor_open(fd));
    domt_bed_expect_calls("A+ A-(0) ");
    domt_bed_end();
}

DOMT_TEST(lingering_is_bounded)
{
    bed->config.channel.linger_ns = 100 * DOMT_BED_MS;
    begin_channel_in_mode(DOMT_BED_DROP);
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    for (int i = 0; i < 9; i++) {
        /* bytes that a peer goes on sending do not prolong the linger time */
        domt_bed_bring_text(fd, "more");
        domt_bed_pass_ms(10);
    }
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_bed_pass_ms_and_settle(20);
    ck_assert(!domt_bed_is_descriptor_open(fd));
    domt_bed_expect_calls("A+ A-(0) ");
    domt_bed_end();
}

static domt_op *find_cancel_of_operation(const domt_op *target)
{
    for (domt_op *op = bed->fake->ops; op != NULL; op = op->next) {
        if (op->kind == DOMT_CANCEL && op->target == target->user_data)
            return op;
    }
    return NULL;
}

/* Complete an operation of a channel that is being ended, as the kernel would. */
static void complete_operation_and_turn(domt_op *op)
{
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_fake_complete_operation(bed->fake, op, op->kind == DOMT_CANCEL ? 0 : -ECANCELED, 0);
    domt_bed_take_turn();
    domt_bed_take_turn();
}

/* A receive, a send and the cancels of both complete in any order: the descriptor stays open until
 * the last of them has completed. */
DOMT_TEST(a_descriptor_is_closed_when_nothing_is_in_flight_and_never_before)
{
    for (uint32_t order = 0; order < 4 * 3 * 2; order++) {
        begin_channel_in_mode(DOMT_BED_DROP);
        write_text_on_first_channel("x");
        domt_bed_take_turn();
        domi_channel_end_at_once(bed->channels[0], -EPROTO, true);
        domt_op *ops[4] = {domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fd),
                           domt_fake_find_operation(bed->fake, DOMT_SEND, fd)};
        ops[2] = find_cancel_of_operation(ops[0]);
        ops[3] = find_cancel_of_operation(ops[1]);
        uint32_t chance = order;
        for (uint32_t left = 4; left != 0; left--) {
            complete_operation_and_turn(ops[chance % left]);
            ops[chance % left] = ops[left - 1];
            chance /= left;
        }
        ck_assert(!domt_bed_is_descriptor_open(fd));
        domt_bed_expect_calls("A+ A-(-71) ");
        ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'r');
        domt_bed_end();
    }
}

static void bring_channel_to_open(void)
{

    domt_bed_take_turn();
}

static void bring_channel_to_sending(void)
{
    write_text_on_first_channel("x");
    domt_bed_take_turn();
}

static void bring_channel_to_unsent_bytes(void)
{
    write_text_on_first_channel("x");
}

static void bring_channel_to_peer_ended(void)
{
    bed->ignore_end = true; /* on_end keeps the channel half open */
    domt_bed_end_receive(fd, 0);
}

static void bring_channel_to_ended_with_unsent_bytes(void)
{
    bring_channel_to_peer_ended();
    write_text_on_first_channel("x");
}

static void bring_channel_to_flushing(void)
{
    bring_channel_to_sending();
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    domt_bed_take_turn();
}

static void bring_channel_to_lingering(void)
{
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    domt_bed_take_turn();
}

static void bring_channel_to_paused(void)
{
    bed->mode = DOMT_BED_KEEP;
    for (int i = 0; i < 4; i++)
        domt_bed_bring_text(fd, "x");
    domt_bed_settle();
    ck_assert_ptr_null(domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fd));
}

static void bring_channel_to_pausing(void)
{
    bed->mode = DOMT_BED_KEEP;
    for (int i = 0; i < 4; i++)
        domt_bed_bring_text(fd, "x");
    domt_bed_take_turn();
    ck_assert_ptr_nonnull(domt_fake_find_operation(bed->fake, DOMT_CANCEL, -1));
}

static void bring_channel_to_starved(void)
{
    bed->io.buffers_used = bed->io.config->io.buffers.count;
    domt_fake_end_receive(bed->fake, fd, -ENOBUFS);
    domt_bed_take_turn();
    ck_assert_ptr_eq(bed->io.starved.head, bed->channels[0]);
}

static void bring_channel_to_unread_bytes(void)
{
    domt_bed_bring_text(fd, "unread");
    (void)domi_io_reap_completions(&bed->io);
}

static void (*const states[])(void) = {
    bring_channel_to_open,
    bring_channel_to_sending,
    bring_channel_to_unsent_bytes,
    bring_channel_to_peer_ended,
    bring_channel_to_ended_with_unsent_bytes,
    bring_channel_to_flushing,
    bring_channel_to_lingering,
    bring_channel_to_paused,
    bring_channel_to_pausing,
    bring_channel_to_starved,
    bring_channel_to_unread_bytes,
};

/* Check that a channel ended in this state left nothing; domt_bed_end() checks the rest. */
static void expect_channel_is_over(size_t state, const char *how, int error)
{
    char expected[32];

    if (states[state] == bring_channel_to_starved) {
        domt_bed_settle(); /* a starved channel ends without using a buffer */
        ck_assert_msg(!domt_bed_is_descriptor_open(fd), "%s while starved", how);
        bed->io.buffers_used = 0;
    }
    domt_bed_settle();
    ck_assert_msg(!domt_bed_is_descriptor_open(fd), "%s in state %zu", how, state);
    snprintf(expected, sizeof expected, "A-(%d) ", error);
    bed->note[bed->note_length] = '\0';
    const char *last = strstr(bed->note, "A-");
    ck_assert_ptr_nonnull(last);
    ck_assert_str_eq(last, expected); /* on_close was the last callback, and was called once */
    ck_assert_uint_eq(bed->closed, 1);
    domt_bed_end();
}

DOMT_TEST(a_channel_can_be_reset_in_every_state)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        begin_channel_in_mode(DOMT_BED_DROP);
        states[i]();
        domi_channel_end_at_once(bed->channels[0], -EPROTO, true);
        /* a second end changes nothing: the error of the first one counts */
        domi_channel_end_at_once(bed->channels[0], -EIO, true);
        expect_channel_is_over(i, "reset", -EPROTO);
    }
}

DOMT_TEST(a_channel_can_be_closed_in_every_state)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        bed->config.channel.linger_ns = 5 * DOMT_BED_MS;
        begin_channel_in_mode(DOMT_BED_DROP);
        states[i]();
        ck_assert_int_eq(domi_channel_close(bed->channels[0]),
                         states[i] == bring_channel_to_flushing ||
                                 states[i] == bring_channel_to_lingering
                             ? -EALREADY
                             : 0);
        for (int turn = 0; turn < 20; turn++) {
            domt_bed_pass_ms(1);
            if (domt_fake_find_operation(bed->fake, DOMT_SEND, fd) != NULL)
                domt_fake_complete_send(bed->fake, fd, 1);
            if (domt_fake_find_operation(bed->fake, DOMT_CANCEL, -1) != NULL)
                domt_fake_complete_cancel(bed->fake);
        }
        expect_channel_is_over(i, "close", 0);
    }
}

/* A reset by the peer is reported by the receive in flight, if there is one, and by the send in
 * flight. */
DOMT_TEST(the_peers_reset_ends_a_channel_in_every_state)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        begin_channel_in_mode(DOMT_BED_DROP);
        states[i]();
        domt_op *receive = domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fd);
        domt_op *send = domt_fake_find_operation(bed->fake, DOMT_SEND, fd);
        if (receive != NULL)
            domt_fake_complete_operation(bed->fake, receive, -ECONNRESET, 0);
        if (send != NULL)
            domt_fake_complete_operation(bed->fake, send, receive != NULL ? -EPIPE : -ECONNRESET,
                                         0);
        if (receive == NULL && send == NULL)
            /* no operation is in flight to report the reset */
            domi_channel_end_at_once(bed->channels[0], -ECONNRESET, true);
        expect_channel_is_over(i, "peer's reset", -ECONNRESET);
    }
}

/* The 17th buffer waits when the send of 16 buffers ends, and that end brings the peer's reset. */
DOMT_TEST(a_reset_that_comes_with_the_end_of_a_send_is_a_close)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    for (int i = 0; i < 17; i++)
        write_text_on_first_channel("x");
    domt_bed_take_turn();
    domt_fake_complete_send(bed->fake, fd, 16);
    domt_bed_end_receive(fd, -ECONNRESET);
    domt_bed_expect_calls("A+ A-(-104) ");
    domt_bed_end();
}

DOMT_TEST(a_handler_may_write_and_reset_after_the_peers_fin)
{
    bed->reset_on_end = true;
    begin_channel_in_mode(DOMT_BED_DROP);
    domt_bed_end_receive(fd, 0);
    domt_bed_expect_calls("A+ A. A-(-71) ");
    domt_bed_end();
}

DOMT_TEST(errors_of_handlers_reset_their_channel_alone)
{
    int others[2];
    int peers[2];

    begin_channel_in_mode(DOMT_BED_DROP);
    for (int i = 0; i < 2; i++)
        others[i] = domt_bed_connect_to_own_actor(&peers[i]);
    domt_bed_expect_calls("A+ B+ C+ ");
    bed->read_result = -EILSEQ;
    domt_bed_bring_text(fd, "bad");
    domt_bed_settle_and_expect_calls("A(bad) A-(-84) ");
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'r');
    bed->end_result = -ENODATA;
    domt_bed_end_receive(others[0], 0);
    domt_bed_expect_calls("B. B-(-61) ");
    bed->open_result = -EACCES;
    int third_peer;
    int third = domt_bed_connect_to_own_actor(&third_peer);
    domt_bed_settle_and_expect_calls("D+ D-(-13) ");
    ck_assert(!domt_bed_is_descriptor_open(third));
    bed->read_result = 0;
    domt_bed_bring_text(others[1], "good");
    domt_bed_settle_and_expect_calls("C(good) ");
    ck_assert_uint_eq(bed->io.counters.channels_reset, 3);
    domt_bed_end();
}

/* The timer of the idle time-out is armed once, and compares times when it fires: messages touch no
 * timer. */
DOMT_TEST(an_idle_time_out_counts_from_the_last_byte_either_way)
{
    bed->config.channel.idle_timeout_ns = 100 * DOMT_BED_MS;
    begin_channel_in_mode(DOMT_BED_ECHO);
    uint64_t expires_ns = bed->channels[0]->timer.node.expires_ns;
    domt_bed_pass_ms(60);
    domt_bed_bring_text(fd, "x");
    domt_bed_take_turn();
    ck_assert_uint_eq(bed->channels[0]->timer.node.expires_ns, expires_ns);
    domt_bed_pass_ms(60);
    domt_bed_complete_send(fd, 1);
    domt_bed_pass_ms_and_settle(98);
    ck_assert(domt_bed_is_descriptor_open(fd));
    domt_bed_expect_calls("A+ A(x) ");
    domt_bed_pass_ms_and_settle(4);
    ck_assert(!domt_bed_is_descriptor_open(fd));
    domt_bed_expect_calls("A-(-110) ");
    domt_bed_end();
}

static void bring_late_completion_to_slot(void *context)
{
    uint32_t slot = bed->channels[0]->slot;
    uint32_t generation = bed->channels[0]->slot_generation;

    domi_channel_end_at_once(bed->channels[0], -EPROTO, true);
    domt_bed_settle();
    int again_peer;
    (void)domt_bed_connect_to_own_actor(&again_peer);
    ck_assert_uint_eq(bed->channels[1]->slot, slot);
    ck_assert_uint_eq(bed->channels[1]->slot_generation, generation + 1);
    bed->channels[0] = bed->channels[1];
    /* the next channel has a send in flight, too, so only the generation tells whose completion
     * this is */
    write_text_on_first_channel("x");
    domt_bed_take_turn();
    domt_fake_add_completion(
        bed->fake, &(domi_completion){domi_op_user_data(DOMI_OP_SEND, generation, slot), 1, 0, 0});
    domt_bed_take_turn();
}

DOMT_TEST(a_completion_of_another_generation_ends_the_process)
{
    begin_channel_in_mode(DOMT_BED_DROP);
    domt_check_child_aborts(bring_late_completion_to_slot, NULL, "generation");
    domt_bed_end();
}

DOMT_TEST(slots_of_channels_are_used_again_and_grow)
{
    enum { ROUNDS = 3, AT_ONCE = 150 };
    int peers[AT_ONCE];

    domt_bed_start();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            (void)domt_bed_connect_to_own_actor(&peers[i]);
        ck_assert_uint_eq(domi_io_end_all_open_channels(&bed->io), AT_ONCE);
        bed->note_length = 0;
        domt_bed_settle();
        for (int i = 0; i < AT_ONCE; i++)
            domt_bed_close_peer(peers[i]);
        bed->note_length = 0;
    }
    ck_assert_uint_eq(bed->closed, ROUNDS * AT_ONCE);
    ck_assert_uint_eq(bed->io.slots_used, AT_ONCE);
    domt_bed_end();
}

static void count_logged_failure(domi_manager *manager, const domi_house *house,
                                 domi_happening what, int error)
{
    bed->failures++;
}

static void begin_bed_that_counts_failures(void)
{
    domt_bed_start();
    bed->manager.hooks.log = count_logged_failure;
}

/* Check that one more channel was refused with -EPROTO, and that nothing else has happened. */
static void expect_channel_refused(uint32_t count, const char *noted)
{
    domt_bed_settle_and_expect_calls(noted);
    ck_assert(!domt_bed_is_descriptor_open(fd));
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'r');
    ck_assert_uint_eq(bed->io.counters.channels_refused, count);
    ck_assert_uint_eq(bed->io.counters.channels_reset, count);
    ck_assert_uint_eq(bed->manager.counters.failures, 0);
    ck_assert_uint_eq(bed->failures, 0);
}

DOMT_TEST(a_channel_that_a_handler_refuses_is_reset_and_its_actor_has_not_failed)
{
    begin_bed_that_counts_failures();
    bed->open_result = -EPROTO;
    fd = domt_bed_connect_to_own_actor(&peer);
    expect_channel_refused(1, "A+ A-(-71) ");
    bed->open_result = 0;

    fd = domt_bed_connect_to_own_actor(&peer);
    bed->read_result = -EPROTO;
    domt_bed_bring_bytes_and_turn(fd, 'x', 3);
    expect_channel_refused(2, "B+ B(xxx) B-(-71) ");
    bed->read_result = 0;

    fd = domt_bed_connect_to_own_actor(&peer);
    bed->end_result = -EPROTO;
    domt_fake_end_receive(bed->fake, fd, 0);
    domt_bed_take_turn();
    expect_channel_refused(3, "C+ C. C-(-71) ");

    domt_bed_end();
}

DOMT_TEST(on_close_knows_what_was_not_sent)
{
    begin_bed_that_counts_failures();
    bed->mode = DOMT_BED_ECHO;
    fd = domt_bed_connect_to_own_actor(&peer);
    domt_bed_bring_bytes_and_turn(fd, 'x', 100);
    domt_bed_bring_bytes_and_turn(fd, 'y', 50);
    ck_assert_uint_eq(domus_channel_queued(bed->channels[0]), 150);
    domt_bed_complete_send(fd, 30);
    ck_assert_uint_eq(domus_channel_queued(bed->channels[0]), 120);
    /* the send stays in flight until its cancel has ended it */
    domi_channel_end_at_once(bed->channels[0], -EPROTO, true);
    ck_assert_uint_eq(domus_channel_queued(bed->channels[0]), 120);
    domt_bed_settle();
    ck_assert_uint_eq(bed->closed, 1);
    ck_assert_uint_eq(bed->unsent_bytes, 120);

    /* on_close of a channel that has sent everything counts no unsent bytes */
    fd = domt_bed_connect_to_own_actor(&peer);
    domt_bed_bring_bytes_and_turn(fd, 'x', 10);
    domt_bed_complete_send(fd, 10);
    domi_channel_end_at_once(bed->channels[1], -EPROTO, true);
    domt_bed_settle();
    ck_assert_uint_eq(bed->closed, 2);
    ck_assert_uint_eq(bed->unsent_bytes, 0);
    domt_bed_end();
}

DOMT_SUITE(20)
