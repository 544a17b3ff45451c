/* A channel is an actor: it has a state and an address of its own, takes messages, is watched,
 * fails and stops by itself, and ends with its connection. */
#include "base/memory.h"
#include "house/family/life.h"
#include "io/channels/table.h"
#include "tests/io/line.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <unistd.h>

static domt_lines *const lines = &domt_lines_now;

/* --- states ----------------------------------------------------------------------------------- */

DOMT_TEST(each_channel_has_its_state_and_its_life)
{
    int fds[2];
    int peers[2];

    domt_lines_begin(&domt_owner_of_lines);
    for (int i = 0; i < 2; i++)
        (void)domt_lines_connect(&fds[i], &peers[i]);
    domt_lines_told("am ao bm bo ");
    domt_lines_bring(fds[1], "x");
    domt_lines_bring(fds[0], "x");
    domt_lines_told("br ar ");
    domt_fake_receive_ends(lines->bed.fake, fds[0], 0);
    domt_bed_settle(&lines->bed);
    domt_lines_told("ac as ");
    ck_assert_uint_eq(lines->bed.manager.births.houses,
                      4); /* the bed's, owner, watcher, one channel */
    domt_fake_receive_ends(lines->bed.fake, fds[1], 0);
    domt_bed_settle(&lines->bed);
    domt_lines_told("bc bs ");
    domt_lines_end();
    for (int i = 0; i < 2; i++)
        close(peers[i]);
}

DOMT_TEST(channels_that_share_the_state_are_not_mounted_and_stopped)
{
    int fds[2];
    int peers[2];

    domt_lines_begin(&domt_owner_of_sharing);
    for (int i = 0; i < 2; i++) {
        (void)domt_lines_connect(&fds[i], &peers[i]);
        domt_lines_bring(fds[i], "xx");
    }
    domt_lines_told("zo zr zo zr ");
    ck_assert_uint_eq(((const domt_line *)lines->owner.house->self)->bytes, 4);
    domt_fake_receive_ends(lines->bed.fake, fds[0], 0);
    domt_bed_settle(&lines->bed);
    domt_lines_told("zc ");
    ck_assert_int_eq(domi_house_stop(&lines->bed.manager, lines->owner), 0);
    domt_bed_settle(&lines->bed);
    domt_fake_receive_ends(lines->bed.fake, fds[1], 0);
    domt_bed_settle(&lines->bed);
    domt_lines_told("zc zs "); /* the owner's own on_stop comes last */
    domt_lines_end();
    for (int i = 0; i < 2; i++)
        close(peers[i]);
}

/* --- addresses -------------------------------------------------------------------------------- */

DOMT_TEST(channel_takes_messages_until_its_connection_is_gone)
{
    int fd;
    int peer;

    domt_lines_begin(&domt_owner_of_lines);
    domus_address address = domt_lines_connect(&fd, &peer);
    ck_assert_int_eq(domt_lines_notice(address, &domt_note_type, NULL), 0);
    domt_lines_told("am ao an ");
    domt_fake_receive_ends(lines->bed.fake, fd, -ECONNRESET);
    domt_bed_settle(&lines->bed);
    domt_lines_told("ac as ");
    ck_assert_int_eq(domt_lines_notice(address, &domt_note_type, NULL), -ESTALE);
    domt_lines_told("");
    domt_lines_end();
    close(peer);
}

DOMT_TEST(dead_connection_is_an_event_with_its_error)
{
    static const int results[] = {0, -ECONNRESET};

    for (int i = 0; i < 2; i++) {
        int fd;
        int peer;

        domt_lines_begin(&domt_owner_of_lines);
        domus_address address = domt_lines_connect(&fd, &peer);
        ck_assert_int_eq(domt_lines_notice(lines->watcher, &domt_watch_type, &address), 0);
        ck_assert_uint_eq(lines->downs, 0);
        domt_fake_receive_ends(lines->bed.fake, fd, results[i]);
        domt_bed_settle(&lines->bed);
        ck_assert_uint_eq(lines->downs, 1);
        ck_assert_int_eq(lines->down_reason, results[i]);
        domt_lines_end();
        close(peer);
    }
}

DOMT_TEST(stop_of_an_address_closes_the_connection)
{
    int fd;
    int peer;

    domt_lines_begin(&domt_owner_of_lines);
    domus_address address = domt_lines_connect(&fd, &peer);
    ck_assert_int_eq(domi_house_stop(&lines->bed.manager, address), 0);
    domt_bed_settle(&lines->bed);
    domt_lines_told("am ao ");
    ck_assert_int_eq(domt_bed_peer_sees(peer), 'f'); /* and the peer has its time to close */
    domt_fake_receive_ends(lines->bed.fake, fd, 0);
    domt_bed_settle(&lines->bed);
    domt_lines_told("ac as ");
    ck_assert(!domt_bed_is_open(fd));
    domt_lines_end();
    close(peer);
}

/* --- failures --------------------------------------------------------------------------------- */

DOMT_TEST(failure_of_a_handler_resets_the_channel_and_no_more)
{
    int fds[2];
    int peers[2];

    domt_lines_begin(&domt_owner_of_lines);
    domus_address address = domt_lines_connect(&fds[0], &peers[0]);
    (void)domt_lines_connect(&fds[1], &peers[1]);
    lines->note_result = -EPROTO;
    ck_assert_int_eq(domt_lines_notice(address, &domt_note_type, NULL), 0);
    domt_bed_settle(&lines->bed);
    domt_lines_told("am ao bm bo an ac as ");
    ck_assert_int_eq(domt_bed_peer_sees(peers[0]), 'r');
    ck_assert_int_eq(domt_bed_peer_sees(peers[1]), 'o');
    ck_assert_uint_eq(domi_counter_read(&lines->bed.io.counters.channels_refused), 1);
    ck_assert_uint_eq(domi_counter_read(&lines->bed.manager.counters.failures), 0);
    domt_lines_end();
    for (int i = 0; i < 2; i++)
        close(peers[i]);
}

DOMT_TEST(mount_that_fails_refuses_the_connection)
{
    int fd;
    int peer;

    domt_lines_begin(&domt_owner_of_lines);
    lines->mount_result = -EACCES;
    domus_address address = domt_lines_connect(&fd, &peer);
    domt_bed_settle(&lines->bed);
    domt_lines_told("am "); /* no other callback runs for an actor that is not mounted */
    ck_assert(!domt_bed_is_open(fd));
    ck_assert_int_eq(domt_bed_peer_sees(peer), 'r');
    ck_assert_uint_eq(domi_counter_read(&lines->bed.io.counters.channels_refused), 1);
    ck_assert_uint_eq(domi_counter_read(&lines->bed.manager.counters.failures), 0);
    ck_assert_int_eq(domt_lines_notice(address, &domt_note_type, NULL), -ESTALE);
    ck_assert_uint_eq(lines->bed.manager.births.houses, 3);
    domt_lines_end();
    close(peer);
}

/* Whatever fails below a channel, or escalates in it, fails nobody above it. */
DOMT_TEST(owner_is_not_asked_about_a_channel_that_escalates)
{
    static const domus_type *const types[] = {&domt_escalate_type, &domt_bear_type};

    for (int i = 0; i < 2; i++) {
        int fds[2];
        int peers[2];

        domt_lines_begin(&domt_owner_with_rules);
        domus_address address = domt_lines_connect(&fds[0], &peers[0]);
        (void)domt_lines_connect(&fds[1], &peers[1]);
        ck_assert_int_eq(domt_lines_notice(address, types[i], NULL), 0);
        domt_bed_settle(&lines->bed);
        domt_lines_told("am ao bm bo ac as ");
        ck_assert_int_eq(domt_bed_peer_sees(peers[0]), 'r');
        ck_assert_int_eq(domt_bed_peer_sees(peers[1]), 'o');
        ck_assert_uint_eq(domi_counter_read(&lines->bed.io.counters.channels_refused), 1);
        ck_assert_uint_eq(domi_counter_read(&lines->bed.manager.counters.failures),
                          (types[i] == &domt_bear_type)); /* only the child's failure counts */
        domt_lines_end();
        for (int k = 0; k < 2; k++)
            close(peers[k]);
    }
}

DOMT_TEST(channel_is_refused_once_by_many_errors)
{
    int fd;
    int peer;

    domt_lines_begin(&domt_owner_of_lines);
    domus_address address = domt_lines_connect(&fd, &peer);
    lines->note_result = -EPROTO;
    for (int i = 0; i < 3; i++)
        domt_lines_put(address, &domt_note_type, NULL);
    domt_bed_settle(&lines->bed);
    domt_lines_told("am ao an an an ac as ");
    ck_assert_uint_eq(domi_counter_read(&lines->bed.io.counters.channels_refused), 1);
    domt_lines_end();
    close(peer);
}

/* A link stops the actor, and so closes its connection. A watcher hears why the actor ended. */
DOMT_TEST(reason_of_a_link_is_the_reason_of_the_end)
{
    int fds[2];
    int peers[2];

    domt_lines_begin(&domt_owner_of_lines);
    domus_address address = domt_lines_connect(&fds[0], &peers[0]);
    domus_address other = domt_lines_connect(&fds[1], &peers[1]);
    ck_assert_int_eq(domt_lines_notice(address, &domt_link_type, &other), 0);
    ck_assert_int_eq(domt_lines_notice(lines->watcher, &domt_watch_type, &address), 0);
    domt_fake_receive_ends(lines->bed.fake, fds[1], -ECONNRESET);
    domt_bed_settle(&lines->bed);
    ck_assert_int_eq(domt_bed_peer_sees(peers[0]), 'f');
    ck_assert_uint_eq(lines->downs, 0);
    domt_fake_receive_ends(lines->bed.fake, fds[0], 0);
    domt_bed_settle(&lines->bed);
    ck_assert_uint_eq(lines->downs, 1);
    ck_assert_int_eq(lines->down_reason, -ECONNRESET);
    domt_lines_end();
    for (int i = 0; i < 2; i++)
        close(peers[i]);
}

/* --- idle owners ------------------------------------------------------------------------------ */

DOMT_TEST(owner_of_busy_channels_is_not_idle)
{
    const domus_spawn_options options = {.passivate_after_ns = 5 * DOMT_BED_MS};
    int fd;
    int peer;

    domt_lines_begin(&domt_owner_of_lines);
    domi_manager *manager = &lines->bed.manager;
    ck_assert_int_eq(domi_house_stop(manager, lines->owner), 0);
    ck_assert_int_eq(domi_house_spawn_child(manager, NULL, manager, &domt_owner_of_lines, NULL,
                                            &options, &lines->owner),
                     0);
    domt_bed_turn(&lines->bed);
    domt_lines_told("zs ");
    (void)domt_lines_connect(&fd, &peer);
    for (int i = 0; i < 8; i++) {
        for (int ms = 0; ms < 3; ms++)
            domt_bed_pass(&lines->bed, 1);
        domt_lines_bring(fd, "x");
    }
    domt_lines_told("am ao ar ar ar ar ar ar ar ar ");
    for (int ms = 0; ms < 10; ms++)
        domt_bed_pass(&lines->bed, 1);
    domt_fake_receive_ends(lines->bed.fake, fd, 0);
    domt_bed_settle(&lines->bed);
    domt_lines_told("ac as zs ");
    ck_assert_uint_eq(domi_counter_read(&manager->counters.passivations), 1);
    domt_lines_end();
    close(peer);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Returns how many slots of the table are taken. */
static uint32_t count_taken_slots(const domi_io *io)
{
    uint32_t count = io->slots_used;

    for (uint32_t slot = io->free_slot; slot != UINT32_MAX; slot = io->slots[slot].next_free)
        count--;
    return count;
}

/* Whatever allocation fails, the descriptor stays with the caller and nothing is left behind. */
DOMT_TEST(connection_without_memory_is_not_adopted)
{
    int refused = 0;

    for (uint64_t n = 0; n < 8; n++) {
        int fd;
        int peer;

        domt_lines_begin(&domt_owner_of_lines);
        domt_bed_pair(&fd, &peer);
        domi_memory_fail_after((int64_t)n, 1);
        int result =
            domi_channel_adopt(&lines->bed.io, lines->owner.house, &(domi_connection){.fd = fd});
        domi_memory_fail_after(-1, 0);
        if (result == 0) {
            atomic_fetch_add_explicit(&lines->bed.io.connections, 1, memory_order_relaxed);
        } else {
            ck_assert_int_eq(result, -ENOMEM);
            ck_assert_uint_eq(lines->bed.io.open, 0);
            ck_assert_uint_eq(count_taken_slots(&lines->bed.io), 0);
            ck_assert(domt_bed_is_open(fd));
            close(fd);
            refused++;
        }
        domt_lines_end();
        close(peer);
    }
    ck_assert_int_ge(refused, 3); /* channel, table, house or its list of children */
}

DOMT_SUITE(30)
