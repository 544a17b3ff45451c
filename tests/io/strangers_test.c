/* Strangers at a listener: one address cannot take all places, and shortages are logged as spells.
 * There is one thread on the fake backend; the connections are real and have several addresses. */
#include "base/memory.h"
#include "house/family/life.h"
#include "io/acceptors/acceptors.h"
#include "io/channels/state.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static domi_peers peers;
static domi_acceptor *acceptor;
static domus_address address;
static int listener;
static char said[8192];

static void record_logged_line(domi_manager *manager, domus_log_level level, const char *text)
{
    size_t length = strlen(said);

    ck_assert_ptr_eq(manager, &bed->manager);
    ck_assert_uint_lt(length + strlen(text) + 4, sizeof said);
    snprintf(said + length, sizeof said - length, "%c %s\n", level == DOMUS_LOG_INFO ? 'i' : 'w',
             text);
}

static void begin_listening(uint32_t connections_max, uint32_t local_percent)
{
    bed->config.channel.connections_max = connections_max;
    bed->config.connection.first_byte_timeout_ns = bed->config.channel.idle_timeout_ns = 0;
    domt_bed_start();
    const domi_peers_limits limits = {connections_max, 10, local_percent};
    ck_assert_int_eq(domi_peers_init(&peers, &limits, (const uint64_t[2]){3, 4}), 0);
    bed->io.peers = &peers;
    bed->manager.hooks.say = record_logged_line;
    said[0] = '\0';

    acceptor = domt_bed_make_acceptor(16);
    acceptor->name = "web";
    listener = acceptor->fd;
    address = domt_bed_spawn_actor(&domi_acceptor_behaviour, &acceptor);
    domt_bed_take_turn();
}

static void stop_acceptor(void)
{
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, address), 0);
    domt_bed_settle();
}

static void end_listening(void)
{
    if (bed->io.acceptors[0] != NULL)
        stop_acceptor();
    domt_bed_end();
    ck_assert_uint_eq(peers.count, 0);
    domi_peers_fini(&peers);
}

static domt_op *find_accept_operation(void)
{
    return domt_fake_find_operation(bed->fake, DOMT_ACCEPT, listener);
}

/* Let a connection from an address arrive and be handled. Returns the peer's end. */
static int bring_connection_from_host(uint8_t host)
{
    int ours, peer;

    domt_bed_make_connection_from(host, &ours, &peer);
    ck_assert_ptr_nonnull(find_accept_operation());
    domt_fake_complete_operation(bed->fake, find_accept_operation(), ours, DOMI_MORE);
    domt_bed_take_turn();
    domt_bed_take_turn();
    return peer;
}

static bool is_peer_served(int peer)
{
    return domt_bed_state_seen_by_peer(peer) == 'o';
}

static bool is_peer_reset(int peer)
{
    return domt_bed_state_seen_by_peer(peer) == 'r';
}

static void end_channel(uint32_t channel)
{
    domi_channel_end_at_once(bed->channels[channel], -ECONNABORTED, true);
    domt_bed_settle();
}

static void expect_logged(const char *expected)
{
    ck_assert_str_eq(said, expected);
    said[0] = '\0';
}

static void pass_seconds_with_turns(uint32_t seconds)
{
    for (uint32_t i = 0; i < seconds * 100; i++)
        domt_bed_pass_ms(10);
}

DOMT_TEST(an_address_beyond_its_share_is_reset_and_the_others_are_served)
{
    begin_listening(10, 20);
    ck_assert(is_peer_served(bring_connection_from_host(1)) &&
              is_peer_served(bring_connection_from_host(1)));
    ck_assert(is_peer_reset(bring_connection_from_host(1)));
    ck_assert(is_peer_served(bring_connection_from_host(2)) &&
              is_peer_served(bring_connection_from_host(2)));
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.refused_by_address), 1);
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.accepted), 4);
    ck_assert_uint_eq(bed->io.connections, 4);
    end_channel(0);
    ck_assert(is_peer_served(bring_connection_from_host(1)));
    ck_assert(is_peer_reset(bring_connection_from_host(1)));
    end_listening();
}

DOMT_TEST(without_a_local_bound_loopback_takes_all_connections)
{
    begin_listening(20, 100);
    for (int i = 0; i < 10; i++)
        ck_assert(is_peer_served(bring_connection_from_host(1)));
    ck_assert_uint_eq(peers.count, 0);
    bed->io.peers = NULL; /* without a table of addresses loopback has no bound either */
    ck_assert(is_peer_served(bring_connection_from_host(1)));
    end_listening();
}

/* If connections that wait for room did not count, one address would fill their queue, and the
 * others would come after it. */
DOMT_TEST(connections_that_wait_for_room_count_for_their_address)
{
    begin_listening(2, 100);
    peers.local_max = 2;
    peers.is_bounded = (peers.buckets_count = 16) != 0;
    peers.buckets_bytes = 16 * sizeof *peers.buckets;
    peers.buckets = domi_memory_map_pages(peers.buckets_bytes);
    (void)bring_connection_from_host(1);
    for (int i = 0; i < 3; i++)
        (void)bring_connection_from_host(i == 0 ? 2 : 3);
    ck_assert(is_peer_reset(bring_connection_from_host(3)));
    ck_assert_uint_eq(acceptor->waiting_count, 2);
    end_channel(0);
    domt_bed_pass_ms(12); /* one of the waiting connections is served now, and still counts */
    ck_assert_uint_eq(acceptor->waiting_count, 1);
    ck_assert_uint_eq(peers.count, 2);
    stop_acceptor(); /* the connection that still waits is closed */
    ck_assert_uint_eq(peers.count, 2);
    domt_bed_take_turn();
    end_channel(1);
    ck_assert_uint_eq(peers.count, 1);
    end_channel(2);
    ck_assert_uint_eq(peers.count, 0);
    end_listening();
}

DOMT_TEST(a_connection_that_nobody_takes_counts_no_longer)
{
    begin_listening(10, 20);
    domi_memory_fail_allocation_after(0, 1);
    /* the address of this connection cannot be counted for lack of memory */
    int peer = bring_connection_from_host(1);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert(is_peer_reset(peer));
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.refused_by_address), 0);
    ck_assert_uint_eq(domi_counter_read(&bed->io.turned_away), 1);
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, bed->actor), 0);
    domt_bed_take_turn();
    ck_assert(is_peer_reset(bring_connection_from_host(1))); /* no actor takes this connection */
    ck_assert_uint_eq(domi_counter_read(&bed->io.turned_away), 2);
    ck_assert_uint_eq(peers.count, 0);
    stop_acceptor();
    ck_assert_uint_eq(bed->manager.births.houses, 0);
}

DOMT_TEST(a_connection_that_cannot_be_adopted_counts_no_longer)
{
    int ours, peer;

    begin_listening(10, 20);
    domt_bed_make_connection_from(1, &ours, &peer);
    domt_fake_complete_operation(bed->fake, find_accept_operation(), ours, DOMI_MORE);
    (void)domi_io_enter_ring_if_useful(&bed->io);
    (void)domi_io_reap_completions(&bed->io);
    ck_assert_uint_eq(peers.count, 1);
    domi_memory_fail_allocation_after(0, 1);
    domt_bed_take_turn();
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(bed->opened, 0);
    ck_assert_uint_eq(peers.count, 0);
    ck_assert_uint_eq(bed->io.connections, 0);
    ck_assert(!is_peer_served(peer));
    end_listening();
}

static void complete_accept_with_socket(int ours)
{
    domt_fake_complete_operation(bed->fake, find_accept_operation(), ours, DOMI_MORE);
    domt_bed_take_turn();
    domt_bed_take_turn();
}

/* Two connections of each address are served, and the third one is reset. */
DOMT_TEST(addresses_of_every_family_have_their_share_and_are_logged)
{
    int ends[2][2];

    begin_listening(10, 20);
    for (int i = 0; i < 3; i++) {
        struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        socklen_t size = sizeof to;
        int at = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (at < 0 || bind(at, (struct sockaddr *)&to, size) != 0)
            break; /* the machine has no IPv6, so it is not tried */
        ck_assert_int_eq(listen(at, 1), 0);
        ck_assert_int_eq(getsockname(at, (struct sockaddr *)&to, &size), 0);
        int peer = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(peer, (struct sockaddr *)&to, size), 0);
        complete_accept_with_socket(accept(at, NULL, NULL));
        ck_assert_int_eq(is_peer_reset(peer), i == 2);
        close(at);
        if (i == 2)
            ck_assert_ptr_nonnull(strstr(said, "w listener web: ::/64 has 2 connections, the most "
                                               "that channel.maxPerLoopback allows"));
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends[i]), 0);
        complete_accept_with_socket(ends[i][0]);
        ck_assert(is_peer_served(ends[i][1]));
    }
    ck_assert_int_eq(bed->channels[bed->opened - 1]->peer->key.family, AF_UNIX);
    ck_assert(bed->channels[bed->opened - 1]->peer->key.is_local);
    end_listening();
    close(ends[0][1]);
    close(ends[1][1]);
}

/* getpeername() fails for a peer that has already reset its connection, but the accept has told its
 * address. */
DOMT_TEST(a_peer_that_has_reset_counts_by_its_address)
{
    const struct linger at_once = {.l_onoff = 1};
    int ours, peer;

    begin_listening(10, 20);
    for (int i = 0; i < 3; i++) {
        domt_bed_make_connection_from(1, &ours, &peer);
        ck_assert_int_eq(setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
        domt_bed_close_peer(peer);
        domt_fake_complete_operation(bed->fake, find_accept_operation(), ours, DOMI_MORE);
        domt_bed_take_turn();
    }
    ck_assert_uint_eq(peers.count, 1);
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.refused_by_address), 1);
    end_listening();
}

/* --- what is said about it ------------------------------------------------------------------- */

DOMT_TEST(a_greedy_address_is_told_once_when_it_begins_and_when_it_is_over)
{
    begin_listening(10, 20);
    for (int i = 0; i < 2; i++)
        (void)bring_connection_from_host(1);
    expect_logged("");
    for (int i = 0; i < 100; i++)
        (void)bring_connection_from_host(1);
    expect_logged(
        "w listener web: 127.0.0.1 has 2 connections, the most that channel.maxPerLoopback "
        "allows: more are reset at once\n");
    domt_bed_pass_ms(500);
    (void)bring_connection_from_host(1);
    domt_bed_pass_ms(990);
    expect_logged("");
    pass_seconds_with_turns(1);
    expect_logged(
        "i listener web: no connection is reset for its address any more (it lasted 0.500 s "
        "and was met 101 times)\n");
    pass_seconds_with_turns(100);
    expect_logged("");
    ck_assert(!domi_wheel_is_armed(&bed->io.shortage_timer.node));
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.address_spells), 1);
    end_listening();
}

DOMT_TEST(reached_limit_of_connections_is_logged_and_when_it_is_over)
{
    begin_listening(2, 100);
    (void)bring_connection_from_host(1);
    expect_logged("");
    (void)bring_connection_from_host(1);
    expect_logged("w listener web: all 2 connections of channel.maxConnections are taken: new ones "
                  "wait\n");
    domt_fake_complete_cancel(bed->fake);
    /* the spell goes on while the limit is reached, however quiet it is */
    pass_seconds_with_turns(5);
    expect_logged("");
    end_channel(0);
    pass_seconds_with_turns(3);
    ck_assert_ptr_nonnull(strstr(said, "i listener web: there is room for new connections again "
                                       "(it lasted 5."));
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.full_spells), 1);
    said[0] = '\0';
    domi_io_set_memory_shortage(
        &bed->io, &(domi_io_pressure){.pauses = true,
                                      /* a pause for lack of memory is logged elsewhere */
                                      .queue_max = UINT64_MAX});
    pass_seconds_with_turns(2);
    domi_io_set_memory_shortage(&bed->io, &(domi_io_pressure){.queue_max = UINT64_MAX});
    domt_bed_settle();
    pass_seconds_with_turns(2);
    expect_logged("");
    end_listening();
}

DOMT_TEST(a_failing_accept_is_told_by_its_cause)
{
    struct rlimit limit;
    char expected[512];
    static const struct {
        int error;
        const char *text;
        const char *over;
    } causes[] = {
        {-EMFILE, NULL, "there are descriptors"},
        {-ENFILE, "all descriptors of this machine (fs.file-max) are in use: new connections wait",
         "there are descriptors"},
        {-ENOBUFS, "the kernel has no memory for a connection (ENOBUFS): new ones wait",
         "the kernel has memory"},
        {-ENOMEM, "the kernel has no memory for a connection (ENOMEM): new ones wait",
         "the kernel has memory"},
        {-EACCES, "the kernel refuses to accept a connection (EACCES: ", "the kernel accepts"},
    };

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        begin_listening(10, 100);
        snprintf(expected, sizeof expected,
                 "all %lu descriptors of this process (RLIMIT_NOFILE) are in use: new connections "
                 "wait",
                 (unsigned long)limit.rlim_cur);
        /* the accept is tried again after 10, 20, 40 ... ms */
        for (int tries = 0; tries < 6; tries++) {
            domt_fake_complete_operation(bed->fake, find_accept_operation(), causes[i].error, 0);
            domt_bed_take_turn();
            while (find_accept_operation() == NULL)
                domt_bed_pass_ms(10);
        }
        ck_assert_ptr_nonnull(strstr(said, causes[i].text != NULL ? causes[i].text : expected));
        ck_assert_ptr_null(strchr(strchr(said, '\n') + 1, '\n')); /* only one line was logged */
        said[0] = '\0';
        pass_seconds_with_turns(3);
        ck_assert_ptr_nonnull(strstr(said, causes[i].over));
        ck_assert_uint_eq(domi_counter_read(&bed->io.counters.accept_spells), 1);
        end_listening();
    }
}

/* While the accept is paused for another reason, nobody knows whether there are descriptors
 * again. */
DOMT_TEST(shortage_goes_on_while_no_accept_is_tried)
{
    begin_listening(1, 100);
    domt_fake_complete_operation(bed->fake, find_accept_operation(), -EMFILE, 0);
    domt_bed_take_turn();
    while (find_accept_operation() == NULL)
        domt_bed_pass_ms(10);
    (void)bring_connection_from_host(1);
    domt_fake_complete_cancel(bed->fake);
    pass_seconds_with_turns(5);
    ck_assert_ptr_null(strstr(said, "there are descriptors"));
    end_channel(0);
    pass_seconds_with_turns(3);
    ck_assert_ptr_nonnull(strstr(said, "there are descriptors"));
    ck_assert_ptr_nonnull(strstr(said, "there is room for new connections again"));
    end_listening();
}

DOMT_TEST(receive_buffers_are_told_while_anybody_waits_for_one)
{
    int ours, peer;

    begin_listening(10, 100);
    bed->mode = DOMT_BED_KEEP;
    domt_bed_make_connection(&ours, &peer);
    ck_assert_int_eq(domt_bed_adopt_connection(bed->actor, ours), 0);
    domt_bed_take_turn();
    /* as if other channels had all buffers */
    bed->io.buffers_used = bed->io.config->io.buffers.count;
    domt_fake_end_receive(bed->fake, ours, -ENOBUFS);
    domt_bed_take_turn();
    expect_logged("w all 64 receive buffers (io.buffers.count) are in use: connections wait to be "
                  "read\n");
    pass_seconds_with_turns(3);
    expect_logged("");
    bed->io.buffers_used = 0;
    pass_seconds_with_turns(3);
    ck_assert_ptr_nonnull(strstr(said, "i there are receive buffers again (it lasted "));
    ck_assert_uint_eq(domi_counter_read(&bed->io.counters.buffer_spells), 1);
    end_listening();
}

DOMT_SUITE(60)
