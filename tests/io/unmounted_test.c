/* Channels actors that are not mounted: those whose on_mount has failed, or that restart, get no
 * connections, and lose those that they had. The actor of a connection that comes through a proxy
 * begins when the proxy's header is complete, and before that no function of its behaviour is
 * called in any case (io/channels/proxy.c). */
#include "house/dispatch/dispatch.h"
#include "house/family/life.h"
#include "house/message/pool.h"
#include "house/message/stop.h"
#include "io/acceptors/acceptors.h"
#include "io/channels/state.h"
#include "io/channels/table.h"
#include "tests/io/bed.h"
#include "tests/io/line.h"
#include "tests/support/suite.h"

#include <domus/supervise.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static domus_address parent;
static domus_address child;
static unsigned fails; /* number of the child's next mounts that will fail */
static unsigned mounts;
static bool stays; /* true: a channel does not close when its peer has finished */
/* record of the callbacks, a letter for each: m mount, s stop, o open, r read, e end, c close */
static char told[128];

static void record_call(const char *what)
{
    size_t length = strlen(told);

    ck_assert_uint_lt(length + strlen(what), sizeof told);
    (void)snprintf(told + length, sizeof told - length, "%s", what);
}

static int on_mount_record_or_fail(domus_stack *stack, void *self)
{
    if (fails != 0) {
        fails--;
        return -EPERM;
    }
    mounts++;
    record_call("m");
    return 0;
}

static void on_stop_record_s(domus_stack *stack, void *self)
{
    record_call("s");
}

static int on_open_record_o(domus_stack *stack, void *self, const void *payload)
{
    record_call("o");
    return 0;
}

static int on_read_record_r(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domus_buffer_free(event->bytes);
    record_call("r");
    return 0;
}

static int on_end_record_e_and_close(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    record_call("e");
    return stays ? 0 : domi_channel_close(event->channel);
}

static int on_close_record_c(domus_stack *stack, void *self, const void *payload)
{
    record_call("c");
    return 0;
}

static int on_fail_return_eio(domus_stack *stack, void *self, const void *payload)
{
    return -EIO;
}

static const domus_type fail_type = {.name = "fail"};

static const domus_behaviour failing = {
    .name = "failing",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&fail_type, on_fail_return_eio, 0}, {NULL, NULL, 0}},
    .on_mount = on_mount_record_or_fail,
    .on_stop = on_stop_record_s,
    .on_open = {on_open_record_o, 0},
    .on_read = {on_read_record_r, 0},
    .on_end = {on_end_record_e_and_close, 0},
    .on_close = {on_close_record_c, 0},
};

static const domus_rule rules[] = {{NULL, -EIO, DOMUS_RESTART}};
static domus_supervision supervision = {.rules = rules, .rules_count = 1};
static const domus_behaviour boss = {.name = "boss", .supervision = &supervision};

static void begin_parent_with_rule(domus_directive of_mounts_that_fail)
{
    told[0] = '\0';
    fails = mounts = 0;
    stays = false;
    supervision.otherwise = of_mounts_that_fail;
    domt_bed_start();
    parent = domt_bed_spawn_actor(&boss, NULL);
    domt_bed_take_turn();
}

/* Let the parent decide about the failure; it is a state actor, which only this function runs. */
static void let_parent_decide(void)
{
    domi_house *house = domi_queue_take_house(&bed->manager.schedule.ready[DOMUS_STATE]);

    ck_assert_ptr_eq(house, parent.house);
    (void)domi_house_run_and_settle(&bed->manager, house);
    domt_bed_take_turn();
}

static void spawn_child(void)
{
    ck_assert_int_eq(domi_house_spawn_child(&bed->manager, parent.house, &bed->manager, &failing,
                                            NULL, NULL, &child),
                     0);
}

/* Hand a connection over to the child, as an acceptor does. */
static void hand_connection_over_to_child(int fd)
{
    const domi_accepted accepted = {.connection = {.fd = fd}, .io = &bed->io};

    atomic_fetch_add_explicit(&bed->io.connections, 1, memory_order_relaxed);
    ck_assert_int_eq(domt_bed_put_message(child, DOMI_EVENT, &domi_accepted_type, &accepted), 0);
}

/* Spawn a child that is mounted and has a connection, which stays half open. Returns the channel's
 * end. */
static int spawn_connected_child(int *ret_peer)
{
    int fd = -1;

    spawn_child();
    domt_bed_take_turn();
    domt_bed_make_connection(&fd, ret_peer);
    hand_connection_over_to_child(fd);
    domt_bed_take_turn();
    domt_bed_take_turn();
    ck_assert_str_eq(told, "mo");
    return fd;
}

/* Let the child fail, and let its parent decide. */
static void fail_child_and_decide(void)
{
    domt_bed_put_notice_and_turn(child, &fail_type, NULL);
    let_parent_decide();
}

static void end_parent_and_child(void)
{
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, parent), 0);
    for (int i = 0; i < 3; i++) {
        domi_house *house = domi_queue_take_house(&bed->manager.schedule.ready[DOMUS_STATE]);
        if (house != NULL)
            (void)domi_house_run_and_settle(&bed->manager, house);
        domt_bed_settle();
    }
    domt_bed_end(); /* checks that no house, channel, descriptor or buffer is left */
}

static void expect_connection_refused(int fd, int peer)
{
    ck_assert(!domt_bed_is_descriptor_open(fd));
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'r');
    ck_assert_uint_eq(bed->io.connections, 0);
    ck_assert_uint_eq(bed->io.counters.channels_opened, 0);
    ck_assert_uint_eq(domi_counter_read(&bed->manager.counters.dead_letters), 1);
}

DOMT_TEST(connection_for_an_unmounted_actor_is_reset_and_counted)
{
    int fd = -1;
    int peer = -1;

    begin_parent_with_rule(DOMUS_RESTART);
    fails = 1;
    spawn_child();
    domt_bed_take_turn();
    domt_bed_make_connection(&fd, &peer);
    hand_connection_over_to_child(fd);
    domt_bed_take_turn();
    expect_connection_refused(fd, peer);
    ck_assert_str_eq(told, "");

    let_parent_decide(); /* when the child is mounted, it takes connections */
    domt_bed_make_connection(&fd, &peer);
    hand_connection_over_to_child(fd);
    domt_bed_take_turn();
    domt_bed_take_turn(); /* mounts the channel's own actor */
    ck_assert_str_eq(told, "mo");
    domt_bed_end_receive(fd, 0);
    end_parent_and_child();
}

/* The connection is in the mailbox before the child's on_mount, which fails: it must not be opened
 * while the actor ends. */
DOMT_TEST(connection_that_came_before_a_mount_that_fails_is_reset)
{
    int fd = -1;
    int peer = -1;

    begin_parent_with_rule(DOMUS_STOP);
    fails = 1;
    child = domt_bed_spawn_actor(&failing, NULL);
    domt_bed_make_connection(&fd, &peer);
    hand_connection_over_to_child(fd);
    domt_bed_settle();
    expect_connection_refused(fd, peer);
    ck_assert_str_eq(told, "");
    end_parent_and_child();
}

/* A restart waits for the actor's children, its channels among them, but not for the peers of
 * these. */
DOMT_TEST(channels_of_an_actor_that_restarts_are_reset_first)
{
    int peer = -1;

    begin_parent_with_rule(DOMUS_RESTART);
    int fd = spawn_connected_child(&peer);
    fail_child_and_decide();
    domt_bed_settle_and_expect_closed(fd);
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'r');
    ck_assert_str_eq(told, "mocsm");

    domt_bed_make_connection(&fd, &peer); /* the restarted actor takes new connections */
    hand_connection_over_to_child(fd);
    domt_bed_take_turn();
    domt_bed_take_turn();
    ck_assert_str_eq(told, "mocsmo");
    domt_bed_end_receive(fd, 0);
    end_parent_and_child();
}

/* A restart does not wait for the peer of a channel that was stopped before it either. */
DOMT_TEST(channels_that_close_already_are_reset_by_a_restart)
{
    int peer = -1;

    begin_parent_with_rule(DOMUS_RESTART);
    int fd = spawn_connected_child(&peer);
    const domus_address channel = domus_channel_address(bed->io.slots[0].channel);
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, channel), 0);
    domt_bed_settle();
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'f');
    ck_assert(domt_bed_is_descriptor_open(fd)); /* the stopped channel waits for its peer's FIN */
    fail_child_and_decide();
    domt_bed_settle_and_expect_closed(fd);
    ck_assert_str_eq(told, "mocsm");
    end_parent_and_child();
}

/* No actor becomes a child of one that waits with its restart for its children. */
DOMT_TEST(connection_for_an_actor_that_restarts_is_reset_and_counted)
{
    int fd[2] = {-1, -1};
    int peer[2] = {-1, -1};

    begin_parent_with_rule(DOMUS_RESTART);
    fd[0] = spawn_connected_child(&peer[0]);
    fail_child_and_decide();
    /* the restart waits until the channel's receive is cancelled */
    ck_assert(domt_bed_is_descriptor_open(fd[0]));
    domt_bed_make_connection(&fd[1], &peer[1]);
    hand_connection_over_to_child(fd[1]);
    domt_bed_take_turn();
    ck_assert(!domt_bed_is_descriptor_open(fd[1]));
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer[1]), 'r');
    ck_assert_uint_eq(atomic_load(&bed->io.turned_away), 1);
    ck_assert_uint_eq(bed->io.counters.channels_opened, 1);
    domt_bed_settle();
    ck_assert_str_eq(told, "mocsm");
    end_parent_and_child();
}

/* A mounted actor is told the close of each channel before its own on_stop. No operation is in
 * flight for this connection, so the stop closes it at once. */
DOMT_TEST(channels_of_a_mounted_actor_that_stops_are_closed_with_on_close)
{
    int fd = -1;
    int peer = -1;

    begin_parent_with_rule(DOMUS_STOP);
    spawn_child();
    domt_bed_take_turn();
    domt_bed_make_connection(&fd, &peer);
    hand_connection_over_to_child(fd);
    domt_bed_take_turn();
    domt_bed_take_turn();
    stays = true;
    domt_fake_end_receive(bed->fake, fd, 0);
    domt_bed_take_turn();
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, child), 0);
    domt_bed_settle();
    ck_assert_str_eq(told, "moecs");
    end_parent_and_child();
}

#define HEADER "PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r\n"

static domt_lines *const lines = &domt_lines_now;
static int fd, peer;

static domus_address begin_proxied_line(const domus_behaviour *owner)
{
    domt_lines_begin_bed(owner);
    domus_address line = domt_lines_connect_line_maybe_proxied(true, &fd, &peer);
    domt_lines_expect_calls("");
    return line;
}

/* End the lines, and check that the connection and its actor are gone and that no function of the
 * line was called. */
static void expect_line_ended_uncalled(void)
{
    domt_bed_settle_and_expect_closed(fd);
    ck_assert_uint_eq(bed->io.open, 0);
    domt_lines_expect_calls("");
    domt_lines_end_bed();
    domt_lines_expect_calls("zs "); /* only the owner's on_stop was called */
}

DOMT_TEST(messages_of_a_proxied_line_wait_for_the_proxy_header)
{
    static const domus_behaviour *const owners[] = {&domt_owner_of_lines, &domt_owner_of_sharing};
    static const char *const expected[] = {"am ao an an ar ", "zo zn zn zr "};

    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        domus_address line = begin_proxied_line(owners[i]);
        ck_assert_int_eq(domt_lines_put_notice_and_turn(line, &domt_note_type, NULL), 0);
        domt_lines_bring_bytes(fd, "PROXY TCP4 192.0.2.1 ");
        ck_assert_int_eq(domt_lines_put_notice_and_turn(line, &domt_note_type, NULL), 0);
        domt_lines_expect_calls("");
        domt_lines_bring_bytes(fd, "198.51.100.2 12345 443\r\nhello");
        domt_lines_settle_and_expect_calls(expected[i]);
        domt_lines_end_bed();
        domt_lines_expect_calls(i == 0 ? "ac as zs " : "zc zs ");
    }
}

/* on_open comes in the first turn after the proxy's header, also if no byte of the client has
 * come. */
DOMT_TEST(actor_begins_with_the_proxy_header_not_with_the_first_byte)
{
    domus_address line = begin_proxied_line(&domt_owner_of_lines);

    domt_lines_bring_bytes(fd, HEADER);
    domt_lines_expect_calls("am ao ");
    ck_assert_int_eq(domt_lines_put_notice_and_turn(line, &domt_note_type, NULL), 0);
    domt_lines_expect_calls("an ");
    domt_lines_end_bed();
}

/* The messages that wait for the actor become dead letters. */
DOMT_TEST(connection_without_a_proxy_header_calls_no_function)
{
    for (int i = 0; i < 6; i++) {
        domus_address line = begin_proxied_line(&domt_owner_of_lines);
        domt_lines_put_notice(line, &domt_note_type, NULL);
        switch (i) {
        case 0:
            domt_lines_bring_bytes(fd, "GET / HTTP/1.1\r\n");
            break;
        case 1:
            domt_fake_end_receive(bed->fake, fd, 0);
            break;
        case 2:
            domt_fake_end_receive(bed->fake, fd, -ECONNRESET);
            break;
        case 3:
            domt_bed_pass_ms(60000);
            domt_bed_pass_ms(60000);
            break;
        case 4:
            bed->io.failed = -EBADF;
            domi_io_end_all_on_failed_ring(&bed->io);
            break;
        default:
            domi_io_drain_accepted_channels(&bed->io);
            domt_bed_pass_ms_and_settle(60000);
            domt_bed_pass_ms(60000);
        }
        domt_bed_settle();
        ck_assert_int_eq(domt_bed_put_message(line, DOMI_NOTICE, &domt_note_type, NULL), -ESTALE);
        ck_assert_uint_eq(bed->manager.counters.dead_letters, 1);
        expect_line_ended_uncalled();
    }
}

DOMT_TEST(stop_of_a_line_that_waits_closes_its_connection)
{
    domus_address line = begin_proxied_line(&domt_owner_of_lines);

    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, line), 0);
    domt_bed_take_turn();
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'f');
    domt_fake_end_receive(bed->fake, fd, 0);
    expect_line_ended_uncalled();
}

DOMT_TEST(stop_of_the_owner_ends_lines_that_wait)
{
    (void)begin_proxied_line(&domt_owner_of_lines);
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, lines->owner), 0);
    domt_bed_take_turn(); /* in this turn the owner stops its lines */
    domt_bed_take_turn(); /* in this turn the line is mounted, only to be stopped */
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'f');
    domt_bed_end_receive(fd, 0);
    ck_assert(!domt_bed_is_descriptor_open(fd));
    domt_lines_expect_calls("zs "); /* only the owner's on_stop was called */
    domt_lines_end_bed();
}

/* The proxy's header is complete; before the actor is mounted the connection breaks, or a stop
 * comes. */
DOMT_TEST(line_that_ends_before_its_mount_is_not_opened)
{
    domus_address line = begin_proxied_line(&domt_owner_of_lines);

    ck_assert(domt_fake_complete_receive(bed->fake, fd, HEADER, sizeof HEADER - 1, true));
    domt_bed_end_receive(fd, -ECONNRESET);
    domt_lines_expect_calls("am as ");
    (void)line;
    domt_lines_end_bed();

    line = begin_proxied_line(&domt_owner_of_lines);
    ck_assert(domt_fake_complete_receive(bed->fake, fd, HEADER, sizeof HEADER - 1, true));
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, line), 0);
    domt_bed_take_turn();
    domt_fake_end_receive(bed->fake, fd, 0);
    expect_line_ended_uncalled();
}

DOMT_SUITE(30)
