/* io/acceptors/: a connection goes to the thread that has the fewest, limits pause the accept, and
 * acceptors stop. The three "threads" are managers in one OS thread; the first of them accepts on
 * the fake backend. */
#include "io/acceptors/acceptors.h"

#include "base/memory.h"
#include "house/dispatch/manage.h"
#include "house/family/life.h"
#include "io/channels/channel.h"
#include "io/channels/state.h"
#include "tests/io/turn.h"
#include "tests/support/fake_backend.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NODES 3u
#define MS    UINT64_C(1000000)

typedef struct node {
    domi_manager manager;
    domi_io io;
    domus_address actor;
    domus_channel *newest;
    uint32_t opened;
} node;

static domus_config config;
static domi_manager *managers[NODES];
static node nodes[NODES];
static domi_acceptor *acceptor;
static domus_address address;
static domt_fake *fake;
static int listener;
static int peers[128]; /* the peers' ends of connections; tear_down_acceptor() closes them */
static int peers_count;

static int on_open_count_channel(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    node *at = *(node **)self;

    at->opened++;
    at->newest = event->channel;
    return 0;
}

static const domus_behaviour serving = {
    .name = "serving",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(node *),
    .on_open = {on_open_count_channel, 0},
};

static void take_one_turn_of_each_node(void)
{
    for (uint32_t i = 0; i < NODES; i++)
        domt_io_run_phases_1_and_2(&nodes[i].io);
}

static void pass_ms_on_all_nodes(uint64_t ms)
{
    for (uint32_t i = 0; i < NODES; i++)
        nodes[i].manager.now_ns += ms * MS;
    take_one_turn_of_each_node();
}

static void set_up_acceptor(void)
{
    char error[256];

    for (uint32_t i = 0; i < NODES; i++)
        managers[i] = &nodes[i].manager;
    for (uint32_t i = 0; i < NODES; i++) {
        node *self = &nodes[i];
        memset(self, 0, sizeof *self);
        const domi_manager_options options = {.index = i,
                                              .count = NODES,
                                              .managers = managers,
                                              .config = &config,
                                              .now_ns = 1000 * MS,
                                              .io_hooks = &domi_hooks_of_io,
                                              .io = &self->io};
        ck_assert_int_eq(domi_manager_init(&self->manager, &options), 0);
        ck_assert_int_eq(
            domi_io_init(&self->io, &self->manager, &domt_fake_backend, error, sizeof error), 0);
        ck_assert_int_eq(domi_io_start_ring(&self->io), 0);
        self->io.next = &nodes[(i + 1) % NODES].io;
        ck_assert_int_eq(domi_house_spawn_without_parent(&self->manager, &self->manager, &serving,
                                                         &self, &self->actor),
                         0);
    }
    acceptor = domi_memory_new(sizeof *acceptor + NODES * sizeof acceptor->targets[0]);
    acceptor->target_count = NODES;
    for (uint32_t i = 0; i < NODES; i++)
        acceptor->targets[i] = (domi_acceptor_target){nodes[i].actor, &nodes[i].io};
    listener = domi_acceptor_listen_at_address(&nodes[0].io, "127.0.0.1:0",
                                               &(domi_listen_plan){.backlog = 16}, NULL);
    ck_assert_int_ge(listener, 0);
    acceptor->fd = listener;
    fake = nodes[0].io.ring;
    ck_assert_int_eq(domi_house_spawn_without_parent(&nodes[0].manager, &nodes[0].manager,
                                                     &domi_acceptor_behaviour, &acceptor, &address),
                     0);
    take_one_turn_of_each_node();
}

/* Stop the io of each "thread", one after the other, until nothing is open. */
static void tear_down_acceptor(void)
{
    (void)domi_house_ask_to_stop(&nodes[0].manager, address);
    for (int i = 0; i < 10; i++) {
        for (uint32_t at = 0; at < NODES; at++) {
            (void)domi_io_end_all_open_channels(&nodes[at].io);
            while (domt_fake_find_operation(nodes[at].io.ring, DOMT_CANCEL, -1) != NULL)
                domt_fake_complete_cancel(nodes[at].io.ring);
        }
        take_one_turn_of_each_node();
    }
    for (uint32_t i = 0; i < NODES; i++) {
        ck_assert_uint_eq(nodes[i].io.open, 0);
        ck_assert_uint_eq(nodes[i].io.connections, 0);
        ck_assert_uint_eq(nodes[i].io.counters.listeners_open, 0);
        domi_manager_end_actors(&nodes[i].manager);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        domi_io_fini(&nodes[i].io);
        domi_manager_fini(&nodes[i].manager);
    }
    ck_assert_int_lt(fcntl(listener, F_GETFD), 0);
    while (peers_count != 0)
        close(peers[--peers_count]);
}

/* Take `count` turns of all "threads". A connection takes two turns to its on_open: in the second
 * one its own actor is mounted. */
static void take_turns_of_all_nodes(uint32_t count)
{
    for (; count != 0; count--)
        take_one_turn_of_each_node();
}

static domt_op *find_accept_operation(void)
{
    return domt_fake_find_operation(fake, DOMT_ACCEPT, listener);
}

/* Let a connection arrive at the listener, without a turn. Returns the peer's end. */
static int complete_accept_with_connection(bool more)
{
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_ptr_nonnull(find_accept_operation());
    domt_fake_complete_operation(fake, find_accept_operation(), ends[0], more ? DOMI_MORE : 0);
    peers[peers_count++] = ends[1];
    return ends[1];
}

static bool has_peer_seen_fin(int peer)
{
    char byte;

    return recv(peer, &byte, 1, MSG_DONTWAIT) == 0;
}

static void end_newest_channel(node *at)
{
    domi_channel_end_at_once(at->newest, -ECONNABORTED, true);
    domt_fake_complete_cancel(at->io.ring);
    take_turns_of_all_nodes(2);
}

static void expect_channels_opened_on_each_home(uint32_t first, uint32_t second, uint32_t third)
{
    ck_assert_uint_eq(nodes[0].opened, first);
    ck_assert_uint_eq(nodes[1].opened, second);
    ck_assert_uint_eq(nodes[2].opened, third);
}

/* Connections are counted when they are handed over: otherwise a burst in one turn would go to one
 * thread. */
DOMT_TEST(connections_go_to_the_thread_with_the_fewest)
{
    domus_config_init(&config);
    set_up_acceptor();
    for (int i = 0; i < 9; i++)
        (void)complete_accept_with_connection(true);
    take_turns_of_all_nodes(2);
    expect_channels_opened_on_each_home(3, 3, 3);
    end_newest_channel(&nodes[1]);
    nodes[1].newest = nodes[1].io.slots[0].channel;
    end_newest_channel(&nodes[1]);
    for (int i = 9; i < 11; i++) {
        (void)complete_accept_with_connection(true);
        take_turns_of_all_nodes(2);
    }
    expect_channels_opened_on_each_home(3, 5, 3);
    ck_assert_uint_eq(nodes[0].io.counters.accepted, 11);
    tear_down_acceptor();
}

DOMT_TEST(threads_with_equally_few_connections_take_turns)
{
    domus_config_init(&config);
    set_up_acceptor();
    for (uint32_t i = 0; i < 6; i++) {
        int peer = complete_accept_with_connection(true);
        take_turns_of_all_nodes(2);
        ck_assert_uint_eq(nodes[i % 3].opened, i / 3 + 1);
        end_newest_channel(&nodes[i % 3]);
        ck_assert(has_peer_seen_fin(peer));
    }
    tear_down_acceptor();
}

static void expect_accept_paused_for(uint64_t ms)
{
    pass_ms_on_all_nodes(ms - 2);
    ck_assert_ptr_null(find_accept_operation());
    pass_ms_on_all_nodes(4); /* the timer that ends the pause may fire up to 1 ms late */
    ck_assert_ptr_nonnull(find_accept_operation());
}

DOMT_TEST(at_the_descriptor_limit_the_accept_waits_longer_and_longer)
{
    static const uint64_t expected_ms[] = {10, 20, 40, 80, 160, 320, 640, 1000, 1000};
    static const int errors[] = {-EMFILE, -ENFILE, -ENOBUFS, -ENOMEM};

    domus_config_init(&config);
    set_up_acceptor();
    for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
        for (size_t i = 0; i < sizeof expected_ms / sizeof expected_ms[0]; i++) {
            domt_fake_complete_operation(fake, find_accept_operation(), errors[e], 0);
            take_one_turn_of_each_node();
            expect_accept_paused_for(expected_ms[i]);
        }
        /* a successful accept, after which the next pause is short again */
        (void)complete_accept_with_connection(true);
        take_turns_of_all_nodes(2);
        end_newest_channel(&nodes[e % 3]);
    }
    ck_assert_uint_eq(nodes[0].io.counters.accept_pauses, 36);
    tear_down_acceptor();
}

DOMT_TEST(accept_goes_on_after_an_error_of_a_client)
{
    static const int errors[] = {-ECONNABORTED, -EINTR, -EPROTO, -EAGAIN};

    domus_config_init(&config);
    set_up_acceptor();
    for (uint32_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        domt_fake_complete_operation(fake, find_accept_operation(), errors[i], DOMI_MORE);
        take_one_turn_of_each_node();
        ck_assert_uint_eq(fake->begun[DOMT_ACCEPT], 1 + i);
        domt_fake_complete_operation(fake, find_accept_operation(), errors[i], 0);
        take_one_turn_of_each_node();
        ck_assert_uint_eq(fake->begun[DOMT_ACCEPT], 2 + i);
    }
    (void)complete_accept_with_connection(
        false); /* brings a connection, and the end of the accept operation */
    take_turns_of_all_nodes(2);
    expect_channels_opened_on_each_home(1, 0, 0);
    ck_assert_uint_eq(fake->begun[DOMT_ACCEPT], 6);
    tear_down_acceptor();
}

DOMT_TEST(while_memory_is_short_the_accept_pauses)
{
    domus_config_init(&config);
    set_up_acceptor();
    (void)complete_accept_with_connection(true);
    take_turns_of_all_nodes(2);
    expect_channels_opened_on_each_home(1, 0, 0);
    domi_io_set_memory_shortage(&nodes[0].io,
                                &(domi_io_pressure){.pauses = true, .queue_max = UINT64_MAX});
    /* this connection came before the accept was cancelled, and waits */
    (void)complete_accept_with_connection(true);
    domt_fake_complete_cancel(fake);
    for (int i = 0; i < 10; i++)
        pass_ms_on_all_nodes(10);
    expect_channels_opened_on_each_home(1, 0, 0);
    ck_assert_ptr_null(find_accept_operation());
    ck_assert_uint_ge(domi_counter_read(&nodes[0].io.counters.accept_pauses), 1);
    domi_io_set_memory_shortage(&nodes[0].io, &(domi_io_pressure){.queue_max = UINT64_MAX});
    pass_ms_on_all_nodes(12);
    take_one_turn_of_each_node();
    expect_channels_opened_on_each_home(1, 1, 0);
    ck_assert_ptr_nonnull(find_accept_operation());
    (void)complete_accept_with_connection(true);
    take_turns_of_all_nodes(2);
    expect_channels_opened_on_each_home(1, 1, 1);
    tear_down_acceptor();
}

/* Connections that were accepted before the cancel took hold wait for their turn, as those in the
 * backlog do. */
DOMT_TEST(at_the_most_connections_the_accept_pauses_until_one_ends)
{
    enum { COUNT = 103 };
    domus_config_init(&config);
    config.channel.connections_max = 2;
    set_up_acceptor();
    (void)complete_accept_with_connection(true);
    take_one_turn_of_each_node();
    ck_assert_ptr_null(domt_fake_find_operation(fake, DOMT_CANCEL, -1));
    for (int i = 1; i < COUNT - 1; i++)
        (void)complete_accept_with_connection(true);
    take_turns_of_all_nodes(2);
    expect_channels_opened_on_each_home(1, 1, 0);
    domt_fake_complete_cancel(fake);
    take_one_turn_of_each_node();
    ck_assert_ptr_null(find_accept_operation());
    for (int i = 0; i < 10; i++)
        pass_ms_on_all_nodes(10);
    ck_assert_ptr_null(find_accept_operation());
    for (int i = 2; i < COUNT - 1; i++) {
        node *leaving = &nodes[i % 2];
        uint32_t before = nodes[0].opened + nodes[1].opened + nodes[2].opened;
        if (leaving->io.open == 0)
            leaving = &nodes[2];
        end_newest_channel(leaving);
        ck_assert_ptr_null(find_accept_operation());
        pass_ms_on_all_nodes(12);
        take_one_turn_of_each_node();
        ck_assert_uint_eq(nodes[0].opened + nodes[1].opened + nodes[2].opened, before + 1);
    }
    pass_ms_on_all_nodes(12);
    /* the accept stays paused: the number of connections is at its limit */
    ck_assert_ptr_null(find_accept_operation());
    end_newest_channel(nodes[0].io.open != 0 ? &nodes[0] : &nodes[1]);
    pass_ms_on_all_nodes(12);
    (void)complete_accept_with_connection(true);
    take_turns_of_all_nodes(2);
    ck_assert_uint_eq(nodes[0].opened + nodes[1].opened + nodes[2].opened, COUNT);
    tear_down_acceptor();
}

/* The pause may be over while the cancel of the accept is still under way. */
DOMT_TEST(accept_begins_again_although_its_cancel_completes_late)
{
    domus_config_init(&config);
    config.channel.connections_max = 1;
    set_up_acceptor();
    acceptor->turn = 1; /* the next connection goes to another "thread" than the one that cancels */
    (void)complete_accept_with_connection(true);
    take_turns_of_all_nodes(2);
    end_newest_channel(&nodes[1]);
    pass_ms_on_all_nodes(20);
    domt_fake_complete_cancel(fake);
    take_one_turn_of_each_node();
    ck_assert_ptr_nonnull(find_accept_operation());
    (void)complete_accept_with_connection(true);
    take_turns_of_all_nodes(2);
    expect_channels_opened_on_each_home(0, 1, 1);
    tear_down_acceptor();
}

static void do_nothing_so_accept_stays_armed(void)
{
}

static void make_accept_back_off(void)
{
    domt_fake_complete_operation(fake, find_accept_operation(), -EMFILE, 0);
    take_one_turn_of_each_node();
}

static void reach_limit_of_connections(void)
{
    (void)complete_accept_with_connection(true);
    take_one_turn_of_each_node();
    domt_fake_complete_cancel(fake);
    take_one_turn_of_each_node();
    ck_assert_ptr_null(find_accept_operation());
}

static void begin_cancel_of_accept(void)
{
    (void)complete_accept_with_connection(true);
    /* this connection waits, because the limit of connections is reached */
    (void)complete_accept_with_connection(true);
    take_one_turn_of_each_node();
    ck_assert_ptr_nonnull(domt_fake_find_operation(fake, DOMT_CANCEL, -1));
}

DOMT_TEST(an_acceptor_stops_in_every_state)
{
    static void (*const states[])(void) = {do_nothing_so_accept_stays_armed, make_accept_back_off,
                                           reach_limit_of_connections, begin_cancel_of_accept};

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        domus_config_init(&config);
        config.channel.connections_max = 1;
        set_up_acceptor();
        states[i]();
        ck_assert_int_eq(domi_house_ask_to_stop(&nodes[0].manager, address), 0);
        take_one_turn_of_each_node();
        if (find_accept_operation() != NULL) {
            /* the accept operation in the kernel still uses the listener's descriptor */
            ck_assert_int_ge(fcntl(listener, F_GETFD), 0);
            int late = complete_accept_with_connection(true);
            take_one_turn_of_each_node();
            ck_assert(has_peer_seen_fin(late));
            domt_fake_complete_cancel(fake);
            take_one_turn_of_each_node();
            take_one_turn_of_each_node();
        }
        ck_assert_int_lt(fcntl(listener, F_GETFD), 0);
        pass_ms_on_all_nodes(2000); /* no timer of the stopped acceptor begins another accept */
        ck_assert_ptr_null(find_accept_operation());
        tear_down_acceptor();
    }
}

DOMT_TEST(an_acceptor_passes_over_an_actor_that_is_gone)
{
    domus_config_init(&config);
    set_up_acceptor();
    ck_assert_int_eq(domi_house_ask_to_stop(&nodes[0].manager, nodes[0].actor), 0);
    take_one_turn_of_each_node();
    for (int i = 0; i < 4; i++) {
        (void)complete_accept_with_connection(true);
        take_turns_of_all_nodes(2);
    }
    expect_channels_opened_on_each_home(0, 2, 2);
    /* An acceptor passes over an actor that was asked to stop, even before the actor's own thread
     * has seen that. */
    ck_assert_int_eq(domi_house_ask_to_stop(&nodes[0].manager, nodes[2].actor), 0);
    (void)complete_accept_with_connection(true);
    (void)complete_accept_with_connection(true);
    take_turns_of_all_nodes(2);
    expect_channels_opened_on_each_home(0, 4, 2);
    ck_assert_int_eq(domi_house_ask_to_stop(&nodes[1].manager, nodes[1].actor), 0);
    take_one_turn_of_each_node();
    (void)complete_accept_with_connection(true);
    take_turns_of_all_nodes(2);
    ck_assert(has_peer_seen_fin(peers[6]));
    ck_assert_uint_eq(nodes[0].io.connections, 0);
    tear_down_acceptor();
}

DOMT_TEST(a_connection_that_cannot_be_handed_over_is_closed)
{
    domus_config_init(&config);
    set_up_acceptor();
    int peer = complete_accept_with_connection(true);
    domi_memory_fail_allocation_after(0, 1);
    for (int i = 0; i < 3; i++)
        take_one_turn_of_each_node();
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert(has_peer_seen_fin(peer));
    expect_channels_opened_on_each_home(0, 0, 0);
    ck_assert_uint_eq(nodes[0].io.connections, 0);
    ck_assert_ptr_nonnull(find_accept_operation());
    tear_down_acceptor();
}

DOMT_SUITE(20)
