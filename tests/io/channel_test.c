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

static void begin_channel(domt_bed_mode mode)
{
    bed->mode = mode;
    domt_bed_begin(&fd, &peer);
}

static void write_text(const char *text)
{
    domus_buffer *buffer = domi_buffer_heap(&bed->io, strlen(text));

    ck_assert_ptr_nonnull(buffer);
    memcpy(domus_buffer_data(buffer), text, strlen(text));
    ck_assert_int_eq(domi_channel_write(bed->channels[0], buffer), 0);
}

DOMT_TEST(an_actor_is_told_open_read_end_close_in_order_and_once)
{
    begin_channel(DOMT_BED_ECHO);
    domt_bed_bring(fd, "one");
    domt_bed_bring(fd, "two");
    domt_bed_ends(fd, 0);
    domt_bed_noted("A+ A(one) A(two) A. ");
    ck_assert(domt_bed_is_open(fd)); /* half closed: the answer is still on its way */
    domt_fake_sent(bed->fake, fd, 6);
    domt_bed_settled("A-(0) ");
    ck_assert(!domt_bed_is_open(fd));
    ck_assert_uint_eq(bed->io.counters.channels_opened, 1);
    ck_assert_uint_eq(bed->io.counters.channels_closed, 1);
    ck_assert_uint_eq(bed->io.counters.channels_reset, 0);
    ck_assert_uint_eq(bed->io.connections, 0);
    domt_bed_end();
}

DOMT_TEST(the_fin_follows_all_that_is_queued)
{
    begin_channel(DOMT_BED_ECHO);
    write_text("last words");
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    domt_bed_turn();
    domt_fake_sent(bed->fake, fd, 4);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_peer_sees(peer), 'o');
    domt_fake_sent(bed->fake, fd, 6);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_peer_sees(peer), 'f');
    /* open until the peer has closed, because no reset may overtake the answer */
    ck_assert(domt_bed_is_open(fd));
    domt_bed_ends(fd, 0);
    ck_assert(!domt_bed_is_open(fd));
    domt_bed_noted("A+ A-(0) ");
    domt_bed_end();
}

DOMT_TEST(lingering_is_bounded)
{
    bed->config.channel.linger_ns = 100 * DOMT_BED_MS;
    begin_channel(DOMT_BED_DROP);
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    for (int i = 0; i < 9; i++) {
        domt_bed_bring(fd, "more"); /* bytes that a peer goes on sending do not prolong the time */
        domt_bed_pass(10);
    }
    ck_assert(domt_bed_is_open(fd));
    domt_bed_wait(20);
    ck_assert(!domt_bed_is_open(fd));
    domt_bed_noted("A+ A-(0) ");
    domt_bed_end();
}

static domt_op *cancel_of(const domt_op *target)
{
    for (domt_op *op = bed->fake->ops; op != NULL; op = op->next) {
        if (op->kind == DOMT_CANCEL && op->target == target->user_data)
            return op;
    }
    return NULL;
}

/* Complete `op`, one of the last operations of a channel. */
static void complete_last(domt_op *op)
{
    ck_assert(domt_bed_is_open(fd));
    domt_fake_complete(bed->fake, op, op->kind == DOMT_CANCEL ? 0 : -ECANCELED, 0);
    domt_bed_turn();
    domt_bed_turn();
}

/* A receive, a send and the cancels of both complete in any order: the descriptor is open until the
 * last of them. */
DOMT_TEST(a_descriptor_is_closed_when_nothing_is_in_flight_and_never_before)
{
    for (uint32_t order = 0; order < 4 * 3 * 2; order++) {
        begin_channel(DOMT_BED_DROP);
        write_text("x");
        domt_bed_turn();
        domi_channel_end(bed->channels[0], -EPROTO, true);
        domt_op *ops[4] = {domt_fake_find(bed->fake, DOMT_RECEIVE, fd),
                           domt_fake_find(bed->fake, DOMT_SEND, fd)};
        ops[2] = cancel_of(ops[0]);
        ops[3] = cancel_of(ops[1]);
        uint32_t chance = order;
        for (uint32_t left = 4; left != 0; left--) {
            complete_last(ops[chance % left]);
            ops[chance % left] = ops[left - 1];
            chance /= left;
        }
        ck_assert(!domt_bed_is_open(fd));
        domt_bed_noted("A+ A-(-71) ");
        ck_assert_int_eq(domt_bed_peer_sees(peer), 'r');
        domt_bed_end();
    }
}

static void to_open(void)
{

    domt_bed_turn();
}

static void to_sending(void)
{
    write_text("x");
    domt_bed_turn();
}

static void to_dirty(void)
{
    write_text("x");
}

static void to_ended(void)
{
    bed->ignore_end = true; /* the channel stays half open */
    domt_bed_ends(fd, 0);
}

static void to_ended_and_dirty(void)
{
    to_ended();
    write_text("x");
}

static void to_flushing(void)
{
    to_sending();
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    domt_bed_turn();
}

static void to_lingering(void)
{
    ck_assert_int_eq(domi_channel_close(bed->channels[0]), 0);
    domt_bed_turn();
}

static void to_paused(void)
{
    bed->mode = DOMT_BED_KEEP;
    for (int i = 0; i < 4; i++)
        domt_bed_bring(fd, "x");
    domt_bed_settle();
    ck_assert_ptr_null(domt_fake_find(bed->fake, DOMT_RECEIVE, fd));
}

static void to_pausing(void)
{
    bed->mode = DOMT_BED_KEEP;
    for (int i = 0; i < 4; i++)
        domt_bed_bring(fd, "x");
    domt_bed_turn();
    ck_assert_ptr_nonnull(domt_fake_find(bed->fake, DOMT_CANCEL, -1));
}

static void to_starved(void)
{
    bed->io.buffers_used = bed->io.config->io.buffers.count;
    domt_fake_receive_ends(bed->fake, fd, -ENOBUFS);
    domt_bed_turn();
    ck_assert_ptr_eq(bed->io.starved.head, bed->channels[0]);
}

static void to_unread(void)
{
    domt_bed_bring(fd, "unread");
    (void)domi_io_reap(&bed->io);
}

static void (*const states[])(void) = {
    to_open,      to_sending, to_dirty,   to_ended,   to_ended_and_dirty, to_flushing,
    to_lingering, to_paused,  to_pausing, to_starved, to_unread,
};

/* Check that all that a state leaves is cleaned up; domt_bed_end() checks that nothing is left. */
static void held_to_be_over(size_t state, const char *how, int error)
{
    char expected[32];

    if (states[state] == to_starved) {
        domt_bed_settle(); /* the channel has ended without using a buffer */
        ck_assert_msg(!domt_bed_is_open(fd), "%s while starved", how);
        bed->io.buffers_used = 0;
    }
    domt_bed_settle();
    ck_assert_msg(!domt_bed_is_open(fd), "%s in state %zu", how, state);
    snprintf(expected, sizeof expected, "A-(%d) ", error);
    bed->note[bed->note_length] = '\0';
    const char *last = strstr(bed->note, "A-");
    ck_assert_ptr_nonnull(last);
    ck_assert_str_eq(last, expected); /* on_close was called once, and as the last callback */
    ck_assert_uint_eq(bed->closed, 1);
    domt_bed_end();
}

DOMT_TEST(a_reset_works_in_every_state)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        begin_channel(DOMT_BED_DROP);
        states[i]();
        domi_channel_end(bed->channels[0], -EPROTO, true);
        domi_channel_end(bed->channels[0], -EIO, true); /* the error of the first end counts */
        held_to_be_over(i, "reset", -EPROTO);
    }
}

DOMT_TEST(a_close_works_in_every_state)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        bed->config.channel.linger_ns = 5 * DOMT_BED_MS;
        begin_channel(DOMT_BED_DROP);
        states[i]();
        ck_assert_int_eq(domi_channel_close(bed->channels[0]),
                         states[i] == to_flushing || states[i] == to_lingering ? -EALREADY : 0);
        for (int turn = 0; turn < 20; turn++) {
            domt_bed_pass(1);
            if (domt_fake_find(bed->fake, DOMT_SEND, fd) != NULL)
                domt_fake_sent(bed->fake, fd, 1);
            if (domt_fake_find(bed->fake, DOMT_CANCEL, -1) != NULL)
                domt_fake_cancel_step(bed->fake);
        }
        held_to_be_over(i, "close", 0);
    }
}

/* The peer's reset is reported by the receive if there is one, and by the send if there is one. */
DOMT_TEST(the_peers_reset_ends_every_state)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        begin_channel(DOMT_BED_DROP);
        states[i]();
        domt_op *receive = domt_fake_find(bed->fake, DOMT_RECEIVE, fd);
        domt_op *send = domt_fake_find(bed->fake, DOMT_SEND, fd);
        if (receive != NULL)
            domt_fake_complete(bed->fake, receive, -ECONNRESET, 0);
        if (send != NULL)
            domt_fake_complete(bed->fake, send, receive != NULL ? -EPIPE : -ECONNRESET, 0);
        if (receive == NULL && send == NULL)
            /* no operation in flight reports it */
            domi_channel_end(bed->channels[0], -ECONNRESET, true);
        held_to_be_over(i, "peer's reset", -ECONNRESET);
    }
}

/* The 17th buffer waits when the send of 16 ends, and the peer's reset comes with that end. */
DOMT_TEST(a_reset_that_comes_with_the_end_of_a_send_is_a_close)
{
    begin_channel(DOMT_BED_DROP);
    for (int i = 0; i < 17; i++)
        write_text("x");
    domt_bed_turn();
    domt_fake_sent(bed->fake, fd, 16);
    domt_bed_ends(fd, -ECONNRESET);
    domt_bed_noted("A+ A-(-104) ");
    domt_bed_end();
}

DOMT_TEST(a_handler_may_write_and_reset_after_the_peers_fin)
{
    bed->reset_on_end = true;
    begin_channel(DOMT_BED_DROP);
    domt_bed_ends(fd, 0);
    domt_bed_noted("A+ A. A-(-71) ");
    domt_bed_end();
}

DOMT_TEST(errors_of_handlers_reset_their_channel_alone)
{
    int others[2];
    int peers[2];

    begin_channel(DOMT_BED_DROP);
    for (int i = 0; i < 2; i++)
        others[i] = domt_bed_connect(&peers[i]);
    domt_bed_noted("A+ B+ C+ ");
    bed->read_result = -EILSEQ;
    domt_bed_bring(fd, "bad");
    domt_bed_settled("A(bad) A-(-84) ");
    ck_assert_int_eq(domt_bed_peer_sees(peer), 'r');
    bed->end_result = -ENODATA;
    domt_bed_ends(others[0], 0);
    domt_bed_noted("B. B-(-61) ");
    bed->open_result = -EACCES;
    int third_peer;
    int third = domt_bed_connect(&third_peer);
    domt_bed_settled("D+ D-(-13) ");
    ck_assert(!domt_bed_is_open(third));
    bed->read_result = 0;
    domt_bed_bring(others[1], "good");
    domt_bed_settled("C(good) ");
    ck_assert_uint_eq(bed->io.counters.channels_reset, 3);
    domt_bed_end();
}

/* The timer is armed once, and compares times when it fires: no timer is touched per message. */
DOMT_TEST(an_idle_time_out_counts_from_the_last_byte_either_way)
{
    bed->config.channel.idle_timeout_ns = 100 * DOMT_BED_MS;
    begin_channel(DOMT_BED_ECHO);
    uint64_t expires_ns = bed->channels[0]->timer.node.expires_ns;
    domt_bed_pass(60);
    domt_bed_bring(fd, "x");
    domt_bed_turn();
    ck_assert_uint_eq(bed->channels[0]->timer.node.expires_ns, expires_ns);
    domt_bed_pass(60);
    domt_bed_sent(fd, 1);
    domt_bed_wait(98);
    ck_assert(domt_bed_is_open(fd));
    domt_bed_noted("A+ A(x) ");
    domt_bed_wait(4);
    ck_assert(!domt_bed_is_open(fd));
    domt_bed_noted("A-(-110) ");
    domt_bed_end();
}

static void bring_a_late_completion(void *context)
{
    uint32_t slot = bed->channels[0]->slot;
    uint32_t generation = bed->channels[0]->slot_generation;

    domi_channel_end(bed->channels[0], -EPROTO, true);
    domt_bed_settle();
    int again_peer;
    (void)domt_bed_connect(&again_peer);
    ck_assert_uint_eq(bed->channels[1]->slot, slot);
    ck_assert_uint_eq(bed->channels[1]->slot_generation, generation + 1);
    bed->channels[0] = bed->channels[1];
    write_text(
        "x"); /* a send is in flight, too: only the generation tells whose completion this is */
    domt_bed_turn();
    domt_fake_inject(bed->fake,
                     &(domi_completion){domi_op_data(DOMI_OP_SEND, generation, slot), 1, 0, 0});
    domt_bed_turn();
}

DOMT_TEST(a_completion_of_another_generation_ends_the_process)
{
    begin_channel(DOMT_BED_DROP);
    domt_dies(bring_a_late_completion, NULL, "generation");
    domt_bed_end();
}

DOMT_TEST(slots_are_used_again_and_grow)
{
    enum { ROUNDS = 3, AT_ONCE = 150 };
    int peers[AT_ONCE];

    domt_bed_start();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            (void)domt_bed_connect(&peers[i]);
        ck_assert_uint_eq(domi_io_abort(&bed->io), AT_ONCE);
        bed->note_length = 0;
        domt_bed_settle();
        for (int i = 0; i < AT_ONCE; i++)
            domt_bed_hang_up(peers[i]);
        bed->note_length = 0;
    }
    ck_assert_uint_eq(bed->closed, ROUNDS * AT_ONCE);
    ck_assert_uint_eq(bed->io.slots_used, AT_ONCE);
    domt_bed_end();
}

static void record_failure(domi_manager *manager, const domi_house *house, domi_happening what,
                           int error)
{
    bed->failures++;
}

static void begin_watched(void)
{
    domt_bed_start();
    bed->manager.hooks.log = record_failure;
}

/* Check that one more channel was refused with -EPROTO, and that nothing else has happened. */
static void expect_refused(uint32_t count, const char *noted)
{
    domt_bed_settled(noted);
    ck_assert(!domt_bed_is_open(fd));
    ck_assert_int_eq(domt_bed_peer_sees(peer), 'r');
    ck_assert_uint_eq(bed->io.counters.channels_refused, count);
    ck_assert_uint_eq(bed->io.counters.channels_reset, count);
    ck_assert_uint_eq(bed->manager.counters.failures, 0);
    ck_assert_uint_eq(bed->failures, 0);
}

DOMT_TEST(a_channel_that_a_handler_refuses_is_reset_and_its_actor_has_not_failed)
{
    begin_watched();
    bed->open_result = -EPROTO;
    fd = domt_bed_connect(&peer);
    expect_refused(1, "A+ A-(-71) ");
    bed->open_result = 0;

    fd = domt_bed_connect(&peer);
    bed->read_result = -EPROTO;
    domt_bed_show(fd, 'x', 3);
    expect_refused(2, "B+ B(xxx) B-(-71) ");
    bed->read_result = 0;

    fd = domt_bed_connect(&peer);
    bed->end_result = -EPROTO;
    domt_fake_receive_ends(bed->fake, fd, 0);
    domt_bed_turn();
    expect_refused(3, "C+ C. C-(-71) ");

    domt_bed_end();
}

DOMT_TEST(on_close_knows_what_was_not_sent)
{
    begin_watched();
    bed->mode = DOMT_BED_ECHO;
    fd = domt_bed_connect(&peer);
    domt_bed_show(fd, 'x', 100);
    domt_bed_show(fd, 'y', 50);
    ck_assert_uint_eq(domus_channel_queued(bed->channels[0]), 150);
    domt_bed_sent(fd, 30);
    ck_assert_uint_eq(domus_channel_queued(bed->channels[0]), 120);
    domi_channel_end(bed->channels[0], -EPROTO, true); /* a send is in flight until it ends */
    ck_assert_uint_eq(domus_channel_queued(bed->channels[0]), 120);
    domt_bed_settle();
    ck_assert_uint_eq(bed->closed, 1);
    ck_assert_uint_eq(bed->unsent_bytes, 120);

    fd = domt_bed_connect(&peer); /* a channel that has sent all learns of nothing */
    domt_bed_show(fd, 'x', 10);
    domt_bed_sent(fd, 10);
    domi_channel_end(bed->channels[1], -EPROTO, true);
    domt_bed_settle();
    ck_assert_uint_eq(bed->closed, 2);
    ck_assert_uint_eq(bed->unsent_bytes, 0);
    domt_bed_end();
}

DOMT_SUITE(20)
