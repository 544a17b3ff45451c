/* io/channels/proxy.c: the actor of a connection that comes by a proxy begins when the header is
 * done, and before that no function of its behaviour is called, whatever happens. */
#include "house/message/stop.h"
#include "io/channels/table.h"
#include "tests/io/line.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define HEADER "PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r\n"

static domt_lines *const lines = &domt_lines_now;
static int fd, peer;

static domus_address begin(const domus_behaviour *owner)
{
    domt_lines_begin(owner);
    domus_address line = domt_lines_connect_by(true, &fd, &peer);
    domt_lines_told("");
    return line;
}

/* End, and check that the connection and its actor are gone and have told nothing. */
static void end_untold(void)
{
    domt_bed_closed(fd);
    ck_assert_uint_eq(bed->io.open, 0);
    domt_lines_told("");
    domt_lines_end();
    domt_lines_told("zs "); /* the owner */
}

DOMT_TEST(messages_wait_until_the_header_is_done)
{
    static const domus_behaviour *const owners[] = {&domt_owner_of_lines, &domt_owner_of_sharing};
    static const char *const told[] = {"am ao an an ar ", "zo zn zn zr "};

    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        domus_address line = begin(owners[i]);
        ck_assert_int_eq(domt_lines_notice(line, &domt_note_type, NULL), 0);
        domt_lines_bring(fd, "PROXY TCP4 192.0.2.1 ");
        ck_assert_int_eq(domt_lines_notice(line, &domt_note_type, NULL), 0);
        domt_lines_told("");
        domt_lines_bring(fd, "198.51.100.2 12345 443\r\nhello");
        domt_lines_settled(told[i]);
        domt_lines_end();
        domt_lines_told(i == 0 ? "ac as zs " : "zc zs ");
    }
}

/* on_open comes in the first turn after the header, also if no byte of the client is there. */
DOMT_TEST(actor_begins_with_the_header_and_not_with_the_first_byte)
{
    domus_address line = begin(&domt_owner_of_lines);

    domt_lines_bring(fd, HEADER);
    domt_lines_told("am ao ");
    ck_assert_int_eq(domt_lines_notice(line, &domt_note_type, NULL), 0);
    domt_lines_told("an ");
    domt_lines_end();
}

/* The mail that waits becomes dead letters. */
DOMT_TEST(connection_without_a_header_ends_without_a_function)
{
    for (int i = 0; i < 6; i++) {
        domus_address line = begin(&domt_owner_of_lines);
        domt_lines_put(line, &domt_note_type, NULL);
        switch (i) {
        case 0:
            domt_lines_bring(fd, "GET / HTTP/1.1\r\n");
            break;
        case 1:
            domt_fake_receive_ends(bed->fake, fd, 0);
            break;
        case 2:
            domt_fake_receive_ends(bed->fake, fd, -ECONNRESET);
            break;
        case 3:
            domt_bed_pass(60000);
            domt_bed_pass(60000);
            break;
        case 4:
            bed->io.failed = -EBADF;
            domi_io_fail(&bed->io);
            break;
        default:
            domi_io_drain(&bed->io);
            domt_bed_wait(60000);
            domt_bed_pass(60000);
        }
        domt_bed_settle();
        ck_assert_int_eq(domt_bed_put(line, DOMI_NOTICE, &domt_note_type, NULL), -ESTALE);
        ck_assert_uint_eq(bed->manager.counters.dead_letters, 1);
        end_untold();
    }
}

DOMT_TEST(stop_of_a_line_that_waits_closes_its_connection)
{
    domus_address line = begin(&domt_owner_of_lines);

    ck_assert_int_eq(domi_house_stop(&bed->manager, line), 0);
    domt_bed_turn();
    ck_assert_int_eq(domt_bed_peer_sees(peer), 'f');
    domt_fake_receive_ends(bed->fake, fd, 0);
    end_untold();
}

DOMT_TEST(stop_of_the_owner_ends_lines_that_wait)
{
    (void)begin(&domt_owner_of_lines);
    ck_assert_int_eq(domi_house_stop(&bed->manager, lines->owner), 0);
    domt_bed_turn(); /* the owner stops its lines, */
    domt_bed_turn(); /* and the line is mounted for its stop */
    ck_assert_int_eq(domt_bed_peer_sees(peer), 'f');
    domt_bed_ends(fd, 0);
    ck_assert(!domt_bed_is_open(fd));
    domt_lines_told("zs "); /* the owner alone */
    domt_lines_end();
}

/* The header is done, and before its actor is mounted the connection breaks or a stop comes. */
DOMT_TEST(line_that_ends_before_its_mount_is_not_opened)
{
    domus_address line = begin(&domt_owner_of_lines);

    ck_assert(domt_fake_bytes(bed->fake, fd, HEADER, sizeof HEADER - 1, true));
    domt_bed_ends(fd, -ECONNRESET);
    domt_lines_told("am as ");
    (void)line;
    domt_lines_end();

    line = begin(&domt_owner_of_lines);
    ck_assert(domt_fake_bytes(bed->fake, fd, HEADER, sizeof HEADER - 1, true));
    ck_assert_int_eq(domi_house_stop(&bed->manager, line), 0);
    domt_bed_turn();
    domt_fake_receive_ends(bed->fake, fd, 0);
    end_untold();
}

DOMT_SUITE(20)
