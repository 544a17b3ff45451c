/* A channel is an actor: it has a state and an address of its own, takes messages, is watched,
 * fails and stops by itself, and ends with its connection. Its conversations end with it or, if the
 * behaviour says so, keep the actor until the last of them has ended. */
#include "base/memory.h"
#include "house/family/life.h"
#include "io/channels/table.h"
#include "tests/io/line.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <unistd.h>

static domt_lines *const lines = &domt_lines_now;

/* --- states ----------------------------------------------------------------------------------- */

DOMT_TEST(each_channel_has_an_actor_state_and_a_life_of_its_own)
{
    int fds[2], peers[2];

    domt_lines_begin_bed(&domt_owner_of_lines);
    for (int i = 0; i < 2; i++)
        (void)domt_lines_connect_line(&fds[i], &peers[i]);
    domt_lines_expect_calls("am ao bm bo ");
    domt_lines_bring_bytes(fds[1], "x");
    domt_lines_bring_bytes(fds[0], "x");
    domt_lines_expect_calls("br ar ");
    domt_bed_end_receive(fds[0], 0);
    domt_lines_expect_calls("ac as ");
    /* four actors: the bed's actor, the owner, the watcher, and one channel */
    ck_assert_uint_eq(bed->manager.births.houses, 4);
    domt_bed_end_receive(fds[1], 0);
    domt_lines_expect_calls("bc bs ");
    domt_lines_end_bed();
}

DOMT_TEST(channels_that_share_the_state_are_not_mounted_and_stopped)
{
    int fds[2], peers[2];

    domt_lines_begin_bed(&domt_owner_of_sharing);
    for (int i = 0; i < 2; i++) {
        (void)domt_lines_connect_line(&fds[i], &peers[i]);
        domt_lines_bring_bytes(fds[i], "xx");
    }
    domt_lines_expect_calls("zo zr zo zr ");
    ck_assert_uint_eq(((const domt_line *)lines->owner.house->self)->bytes, 4);
    domt_bed_end_receive(fds[0], 0);
    domt_lines_expect_calls("zc ");
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, lines->owner), 0);
    domt_bed_settle();
    domt_bed_end_receive(fds[1], 0);
    domt_lines_expect_calls(
        "zc zs "); /* only the owner's on_stop is called, and last: the channels share its state */
    domt_lines_end_bed();
}

/* --- addresses -------------------------------------------------------------------------------- */

DOMT_TEST(channel_takes_messages_until_its_connection_is_gone)
{
    int fd, peer;

    domt_lines_begin_bed(&domt_owner_of_lines);
    domus_address address = domt_lines_connect_line(&fd, &peer);
    ck_assert_int_eq(domt_lines_put_notice_and_turn(address, &domt_note_type, NULL), 0);
    domt_lines_expect_calls("am ao an ");
    domt_bed_end_receive(fd, -ECONNRESET);
    domt_lines_expect_calls("ac as ");
    ck_assert_int_eq(domt_lines_put_notice_and_turn(address, &domt_note_type, NULL), -ESTALE);
    domt_lines_expect_calls("");
    domt_lines_end_bed();
}

DOMT_TEST(dead_connection_is_an_event_with_its_error)
{
    static const int results[] = {0, -ECONNRESET};

    for (int i = 0; i < 2; i++) {
        int fd, peer;

        domt_lines_begin_bed(&domt_owner_of_lines);
        domus_address address = domt_lines_connect_line(&fd, &peer);
        ck_assert_int_eq(domt_lines_put_notice_and_turn(lines->watcher, &domt_watch_type, &address),
                         0);
        ck_assert_uint_eq(lines->downs, 0);
        domt_bed_end_receive(fd, results[i]);
        ck_assert_uint_eq(lines->downs, 1);
        ck_assert_int_eq(lines->down_reason, results[i]);
        domt_lines_end_bed();
    }
}

DOMT_TEST(stop_of_an_address_closes_the_connection)
{
    int fd, peer;

    domt_lines_begin_bed(&domt_owner_of_lines);
    domus_address address = domt_lines_connect_line(&fd, &peer);
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, address), 0);
    domt_lines_settle_and_expect_calls("am ao ");
    /* the stop sends FIN, and the peer has its time to close */
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'f');
    domt_bed_end_receive(fd, 0);
    domt_lines_expect_calls("ac as ");
    ck_assert(!domt_bed_is_descriptor_open(fd));
    domt_lines_end_bed();
}

/* --- failures --------------------------------------------------------------------------------- */

DOMT_TEST(failure_of_a_handler_resets_the_channel_and_no_more)
{
    int fds[2], peers[2];

    domt_lines_begin_bed(&domt_owner_of_lines);
    domus_address address = domt_lines_connect_line(&fds[0], &peers[0]);
    (void)domt_lines_connect_line(&fds[1], &peers[1]);
    lines->note_result = -EPROTO;
    ck_assert_int_eq(domt_lines_put_notice_and_turn(address, &domt_note_type, NULL), 0);
    domt_lines_settle_and_expect_calls("am ao bm bo an ac as ");
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[0]), 'r');
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[1]), 'o');
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.channels_refused), 1);
    ck_assert_uint_eq(domi_counter_read(&bed->manager.counters.failures), 0);
    domt_lines_end_bed();
}

DOMT_TEST(mount_that_fails_refuses_the_connection)
{
    int fd, peer;

    domt_lines_begin_bed(&domt_owner_of_lines);
    lines->mount_result = -EACCES;
    domus_address address = domt_lines_connect_line(&fd, &peer);
    domt_lines_settle_and_expect_calls(
        "am "); /* no other callback runs for an actor that is not mounted */
    ck_assert(!domt_bed_is_descriptor_open(fd));
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'r');
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.channels_refused), 1);
    ck_assert_uint_eq(domi_counter_read(&bed->manager.counters.failures), 0);
    ck_assert_int_eq(domt_lines_put_notice_and_turn(address, &domt_note_type, NULL), -ESTALE);
    ck_assert_uint_eq(bed->manager.births.houses, 3);
    domt_lines_end_bed();
}

/* A failure below a channel, or one that a channel escalates, fails no actor above the channel. */
DOMT_TEST(owner_is_not_asked_about_a_channel_that_escalates)
{
    static const domus_type *const types[] = {&domt_escalate_type, &domt_bear_type};

    for (int i = 0; i < 2; i++) {
        int fds[2];
        int peers[2];

        domt_lines_begin_bed(&domt_owner_with_rules);
        domus_address address = domt_lines_connect_line(&fds[0], &peers[0]);
        (void)domt_lines_connect_line(&fds[1], &peers[1]);
        ck_assert_int_eq(domt_lines_put_notice_and_turn(address, types[i], NULL), 0);
        domt_lines_settle_and_expect_calls("am ao bm bo ac as ");
        ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[0]), 'r');
        ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[1]), 'o');
        ck_assert_uint_eq(domi_counter_read(&bed->io.counters.channels_refused), 1);
        /* only the failure of the child counts, not the escalation */
        ck_assert_uint_eq(domi_counter_read(&bed->manager.counters.failures),
                          (types[i] == &domt_bear_type));
        domt_lines_end_bed();
    }
}

DOMT_TEST(channel_is_refused_once_by_many_errors)
{
    int fd, peer;

    domt_lines_begin_bed(&domt_owner_of_lines);
    domus_address address = domt_lines_connect_line(&fd, &peer);
    lines->note_result = -EPROTO;
    for (int i = 0; i < 3; i++)
        domt_lines_put_notice(address, &domt_note_type, NULL);
    domt_lines_settle_and_expect_calls("am ao an an an ac as ");
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.channels_refused), 1);
    domt_lines_end_bed();
}

/* A link ends the actor of a channel, and so closes its connection. A watcher is told why the actor
 * ended. */
DOMT_TEST(reason_of_a_link_is_the_reason_of_the_end)
{
    int fds[2], peers[2];

    domt_lines_begin_bed(&domt_owner_of_lines);
    domus_address address = domt_lines_connect_line(&fds[0], &peers[0]);
    domus_address other = domt_lines_connect_line(&fds[1], &peers[1]);
    ck_assert_int_eq(domt_lines_put_notice_and_turn(address, &domt_link_type, &other), 0);
    ck_assert_int_eq(domt_lines_put_notice_and_turn(lines->watcher, &domt_watch_type, &address), 0);
    domt_bed_end_receive(fds[1], -ECONNRESET);
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peers[0]), 'f');
    ck_assert_uint_eq(lines->downs, 0);
    domt_bed_end_receive(fds[0], 0);
    ck_assert_uint_eq(lines->downs, 1);
    ck_assert_int_eq(lines->down_reason, -ECONNRESET);
    domt_lines_end_bed();
}

/* --- idle owners ------------------------------------------------------------------------------ */

DOMT_TEST(owner_of_busy_channels_is_not_idle)
{
    const domus_spawn_options options = {.passivate_after_ns = 5 * DOMT_BED_MS};
    int fd, peer;

    domt_lines_begin_bed(&domt_owner_of_lines);
    domi_manager *manager = &bed->manager;
    ck_assert_int_eq(domi_house_ask_to_stop(manager, lines->owner), 0);
    ck_assert_int_eq(domi_house_spawn_child(manager, NULL, manager, &domt_owner_of_lines, NULL,
                                            &options, &lines->owner),
                     0);
    domt_bed_take_turn();
    domt_lines_expect_calls("zs ");
    (void)domt_lines_connect_line(&fd, &peer);
    for (int i = 0; i < 8; i++) {
        for (int ms = 0; ms < 3; ms++)
            domt_bed_pass_ms(1);
        domt_lines_bring_bytes(fd, "x");
    }
    domt_lines_expect_calls("am ao ar ar ar ar ar ar ar ar ");
    for (int ms = 0; ms < 10; ms++)
        domt_bed_pass_ms(1);
    domt_bed_end_receive(fd, 0);
    domt_lines_expect_calls("ac as zs ");
    ck_assert_uint_eq(domi_counter_read(&manager->counters.passivations), 1);
    domt_lines_end_bed();
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Returns how many slots of the table of channels are taken. */
static uint32_t count_taken_slots_of_channels(const domi_io *io)
{
    uint32_t count = io->slots_used;

    for (uint32_t slot = io->free_slot; slot != UINT32_MAX; slot = io->slots[slot].next_free)
        count--;
    return count;
}

/* Whichever allocation fails, the descriptor stays with the caller and no channel is left. */
DOMT_TEST(connection_without_memory_is_not_adopted)
{
    int refused = 0;

    for (uint64_t n = 0; n < 8; n++) {
        int fd, peer;

        domt_lines_begin_bed(&domt_owner_of_lines);
        domt_bed_make_connection(&fd, &peer);
        domi_memory_fail_allocation_after((int64_t)n, 1);
        int result = domi_channel_adopt_connection(&bed->io, lines->owner.house,
                                                   &(domi_connection){.fd = fd});
        domi_memory_fail_allocation_after(-1, 0);
        if (result == 0) {
            atomic_fetch_add_explicit(&bed->io.connections, 1, memory_order_relaxed);
        } else {
            ck_assert_int_eq(result, -ENOMEM);
            ck_assert_uint_eq(bed->io.open, 0);
            ck_assert_uint_eq(count_taken_slots_of_channels(&bed->io), 0);
            ck_assert(domt_bed_is_descriptor_open(fd));
            close(fd);
            refused++;
        }
        domt_lines_end_bed();
    }
    /* allocations that failed: the channel, the table, the house or its list of children */
    ck_assert_int_ge(refused, 3);
}

static void pass_ms_with_turn_after_each(unsigned ms)
{
    for (unsigned i = 0; i < ms; i++)
        domt_bed_pass_ms(1);
}

DOMT_TEST(conversations_end_with_the_connection)
{
    int fd, peer;

    domt_lines_begin_bed(&domt_owner_of_lines);
    domus_address address = domt_lines_connect_line(&fd, &peer);
    domt_lines_bring_bytes(fd, "5");
    ck_assert_int_eq(domt_lines_put_notice_and_turn(address, &domt_nap_type, NULL), 0);
    ck_assert_uint_eq(lines->answers, 0);
    domt_bed_end_receive(fd, -ECONNRESET);
    ck_assert_uint_eq(lines->answers, 2);
    ck_assert_uint_eq(lines->cancelled, 2);
    domt_lines_expect_calls("am ao ar ac as ");
    domt_lines_end_bed();
}

DOMT_TEST(conversations_that_go_on_keep_the_actor_until_the_last)
{
    int fd, peer;

    domt_lines_begin_bed(&domt_owner_of_lasting);
    domus_address address = domt_lines_connect_line(&fd, &peer);
    domt_lines_bring_bytes(fd, "5");
    ck_assert_int_eq(domt_lines_put_notice_and_turn(address, &domt_nap_type, NULL), 0);
    domt_bed_end_receive(fd, -ECONNRESET);
    domt_lines_expect_calls("am ao ar ac ");
    ck_assert(!domt_bed_is_descriptor_open(fd));
    /* the connection is gone, and the channel goes on as an actor like any other */
    ck_assert_int_eq(domt_lines_put_notice_and_turn(address, &domt_note_type, NULL), 0);
    domt_lines_expect_calls("an ");
    pass_ms_with_turn_after_each(6);
    ck_assert_uint_eq(lines->answers, 1);
    domt_lines_expect_calls("");
    pass_ms_with_turn_after_each(5);
    ck_assert_uint_eq(lines->answers, 2);
    ck_assert_uint_eq(lines->cancelled, 0);
    domt_lines_expect_calls("as ");
    ck_assert_int_eq(domt_lines_put_notice_and_turn(address, &domt_note_type, NULL), -ESTALE);
    domt_lines_end_bed();
}

/* A conversation may keep the actor, even if it begins when the connection is already gone. */
DOMT_TEST(conversation_begun_after_the_connection_may_keep_the_actor)
{
    int fd, peer;

    domt_lines_begin_bed(&domt_owner_of_lasting);
    domus_address address = domt_lines_connect_line(&fd, &peer);
    domt_lines_bring_bytes(fd, "5");
    domt_bed_end_receive(fd, -ECONNRESET);
    domt_lines_expect_calls("am ao ar ac ");
    ck_assert_int_eq(domt_lines_put_notice_and_turn(address, &domt_nap_type, NULL), 0);
    pass_ms_with_turn_after_each(6);
    ck_assert_uint_eq(lines->answers, 1);
    domt_lines_expect_calls("");
    pass_ms_with_turn_after_each(6);
    ck_assert_uint_eq(lines->answers, 2);
    domt_lines_expect_calls("as ");
    ck_assert_int_eq(domt_lines_put_notice_and_turn(address, &domt_note_type, NULL), -ESTALE);
    domt_lines_end_bed();
}

/* The channel closes although so many conversations are parked that its actor takes no more
 * messages. */
DOMT_TEST(conversations_that_go_on_are_not_waited_for_by_the_close)
{
    int fd, peer;

    domt_lines_begin_bed(&domt_owner_of_lasting);
    bed->manager.limits.conversations_max = 1;
    domus_address address = domt_lines_connect_line(&fd, &peer);
    domt_lines_bring_bytes(fd, "5");
    ck_assert_uint_ne(address.house->marks & DOMI_MARK_SATURATED, 0);
    domt_bed_end_receive(fd, -ECONNRESET);
    domt_lines_expect_calls("am ao ar ac ");
    ck_assert_uint_eq(bed->io.open, 0);
    pass_ms_with_turn_after_each(6);
    ck_assert_uint_eq(lines->answers, 1);
    ck_assert_uint_eq(lines->cancelled, 0);
    domt_lines_expect_calls("as ");
    domt_lines_end_bed();
}

/* A stop of the actor waits for no conversation. */
DOMT_TEST(conversations_that_go_on_are_cancelled_by_a_stop)
{
    int fd, peer;

    domt_lines_begin_bed(&domt_owner_of_lasting);
    (void)domt_lines_connect_line(&fd, &peer);
    domt_lines_bring_bytes(fd, "5");
    domt_bed_end_receive(fd, -ECONNRESET);
    domt_lines_expect_calls("am ao ar ac ");
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, lines->owner), 0);
    domt_bed_settle();
    ck_assert_uint_eq(lines->cancelled, 1);
    domt_lines_expect_calls("as zs ");
    domt_lines_end_bed();
}

/* So many conversations are parked that the actor takes no more messages; the end of the dead
 * connection must not wait for them. */
DOMT_TEST(dead_connection_is_told_of_while_conversations_fill_the_actor)
{
    int fd, peer;

    domt_lines_begin_bed(&domt_owner_of_lines);
    bed->manager.limits.conversations_max = 2;
    domus_address address = domt_lines_connect_line(&fd, &peer);
    domt_lines_bring_bytes(fd, "5");
    ck_assert_int_eq(domt_lines_put_notice_and_turn(address, &domt_nap_type, NULL), 0);
    ck_assert_uint_ne(address.house->marks & DOMI_MARK_SATURATED, 0);
    domt_bed_end_receive(fd, -ECONNRESET);
    ck_assert_uint_eq(lines->cancelled, 2);
    domt_lines_expect_calls("am ao ar ac as ");
    domt_lines_end_bed();
}

/* A connection whose actor is full of conversations holds up no other one. */
DOMT_TEST(channel_full_of_conversations_stops_no_other_channel)
{
    int fds[2], peers[2];

    domt_lines_begin_bed(&domt_owner_of_lines);
    bed->manager.limits.conversations_max = 1;
    for (int i = 0; i < 2; i++)
        (void)domt_lines_connect_line(&fds[i], &peers[i]);
    domt_lines_bring_bytes(fds[0], "5");
    domt_lines_bring_bytes(fds[0], "x");
    domt_lines_bring_bytes(fds[1], "x");
    domt_lines_expect_calls("am ao bm bo ar br ");
    pass_ms_with_turn_after_each(7); /* the only conversation that the first channel may have ends
                                        in these 7 ms, so its next byte is read */
    domt_lines_expect_calls("ar ");
    domt_lines_end_bed();
}

DOMT_SUITE(30)
