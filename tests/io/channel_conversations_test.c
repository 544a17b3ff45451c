/* Conversations of channels: they end with the connection or, by a word of the behaviour, keep the
 * channel's actor until the last one has ended; and they hold up no other channel. */
#include "house/family/life.h"
#include "tests/io/line.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <unistd.h>

static domt_lines *const lines = &domt_lines_now;

static void pass(unsigned ms)
{
    for (unsigned i = 0; i < ms; i++)
        domt_bed_pass(&lines->bed, 1);
}

DOMT_TEST(conversations_end_with_the_connection)
{
    int fd;
    int peer;

    domt_lines_begin(&domt_owner_of_lines);
    domus_address address = domt_lines_connect(&fd, &peer);
    domt_lines_bring(fd, "5");
    ck_assert_int_eq(domt_lines_notice(address, &domt_nap_type, NULL), 0);
    ck_assert_uint_eq(lines->answers, 0);
    domt_fake_receive_ends(lines->bed.fake, fd, -ECONNRESET);
    domt_bed_settle(&lines->bed);
    ck_assert_uint_eq(lines->answers, 2);
    ck_assert_uint_eq(lines->cancelled, 2);
    domt_lines_told("am ao ar ac as ");
    domt_lines_end();
    close(peer);
}

DOMT_TEST(conversations_that_go_on_keep_the_actor_until_the_last)
{
    int fd;
    int peer;

    domt_lines_begin(&domt_owner_of_lasting);
    domus_address address = domt_lines_connect(&fd, &peer);
    domt_lines_bring(fd, "5");
    ck_assert_int_eq(domt_lines_notice(address, &domt_nap_type, NULL), 0);
    domt_fake_receive_ends(lines->bed.fake, fd, -ECONNRESET);
    domt_bed_settle(&lines->bed);
    domt_lines_told("am ao ar ac ");
    ck_assert(!domt_bed_is_open(fd));
    ck_assert_int_eq(domt_lines_notice(address, &domt_note_type, NULL),
                     0); /* from here on it is an actor like any other */
    domt_lines_told("an ");
    pass(6);
    ck_assert_uint_eq(lines->answers, 1);
    domt_lines_told("");
    pass(5);
    ck_assert_uint_eq(lines->answers, 2);
    ck_assert_uint_eq(lines->cancelled, 0);
    domt_lines_told("as ");
    ck_assert_int_eq(domt_lines_notice(address, &domt_note_type, NULL), -ESTALE);
    domt_lines_end();
    close(peer);
}

/* Also for one that begins when the connection is gone already. */
DOMT_TEST(conversations_that_go_on_may_be_new_ones)
{
    int fd;
    int peer;

    domt_lines_begin(&domt_owner_of_lasting);
    domus_address address = domt_lines_connect(&fd, &peer);
    domt_lines_bring(fd, "5");
    domt_fake_receive_ends(lines->bed.fake, fd, -ECONNRESET);
    domt_bed_settle(&lines->bed);
    domt_lines_told("am ao ar ac ");
    ck_assert_int_eq(domt_lines_notice(address, &domt_nap_type, NULL), 0);
    pass(6);
    ck_assert_uint_eq(lines->answers, 1);
    domt_lines_told("");
    pass(6);
    ck_assert_uint_eq(lines->answers, 2);
    domt_lines_told("as ");
    ck_assert_int_eq(domt_lines_notice(address, &domt_note_type, NULL), -ESTALE);
    domt_lines_end();
    close(peer);
}

/* Although so many are parked that the actor takes nothing more. */
DOMT_TEST(conversations_that_go_on_are_not_waited_for_by_the_close)
{
    int fd;
    int peer;

    domt_lines_begin(&domt_owner_of_lasting);
    lines->bed.manager.limits.conversations_max = 1;
    domus_address address = domt_lines_connect(&fd, &peer);
    domt_lines_bring(fd, "5");
    ck_assert_uint_ne(address.house->marks & DOMI_MARK_SATURATED, 0);
    domt_fake_receive_ends(lines->bed.fake, fd, -ECONNRESET);
    domt_bed_settle(&lines->bed);
    domt_lines_told("am ao ar ac ");
    ck_assert_uint_eq(lines->bed.io.open, 0);
    pass(6);
    ck_assert_uint_eq(lines->answers, 1);
    ck_assert_uint_eq(lines->cancelled, 0);
    domt_lines_told("as ");
    domt_lines_end();
    close(peer);
}

/* A stop waits for no conversation. */
DOMT_TEST(conversations_that_go_on_are_cancelled_by_a_stop)
{
    int fd;
    int peer;

    domt_lines_begin(&domt_owner_of_lasting);
    (void)domt_lines_connect(&fd, &peer);
    domt_lines_bring(fd, "5");
    domt_fake_receive_ends(lines->bed.fake, fd, -ECONNRESET);
    domt_bed_settle(&lines->bed);
    domt_lines_told("am ao ar ac ");
    ck_assert_int_eq(domi_house_stop(&lines->bed.manager, lines->owner), 0);
    domt_bed_settle(&lines->bed);
    ck_assert_uint_eq(lines->cancelled, 1);
    domt_lines_told("as zs ");
    domt_lines_end();
    close(peer);
}

/* So many conversations are parked that the actor takes nothing more; the dead connection must not
 * wait for them. */
DOMT_TEST(dead_connection_is_told_of_while_conversations_fill_the_actor)
{
    int fd;
    int peer;

    domt_lines_begin(&domt_owner_of_lines);
    lines->bed.manager.limits.conversations_max = 2;
    domus_address address = domt_lines_connect(&fd, &peer);
    domt_lines_bring(fd, "5");
    ck_assert_int_eq(domt_lines_notice(address, &domt_nap_type, NULL), 0);
    ck_assert_uint_ne(address.house->marks & DOMI_MARK_SATURATED, 0);
    domt_fake_receive_ends(lines->bed.fake, fd, -ECONNRESET);
    domt_bed_settle(&lines->bed);
    ck_assert_uint_eq(lines->cancelled, 2);
    domt_lines_told("am ao ar ac as ");
    domt_lines_end();
    close(peer);
}

/* One connection that is full of conversations holds up no other one. */
DOMT_TEST(full_channel_stops_no_other)
{
    int fds[2];
    int peers[2];

    domt_lines_begin(&domt_owner_of_lines);
    lines->bed.manager.limits.conversations_max = 1;
    for (int i = 0; i < 2; i++)
        (void)domt_lines_connect(&fds[i], &peers[i]);
    domt_lines_bring(fds[0], "5");
    domt_lines_bring(fds[0], "x");
    domt_lines_bring(fds[1], "x");
    domt_lines_told("am ao bm bo ar br ");
    pass(7); /* the conversation ends */
    domt_lines_told("ar ");
    domt_lines_end();
    for (int i = 0; i < 2; i++)
        close(peers[i]);
}

DOMT_SUITE(30)
