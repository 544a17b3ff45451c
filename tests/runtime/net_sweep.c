/* The clients of a sweep over seeds, and the checks of its sums; tests/runtime/net_sweep.h has the
 * contract. */
#include "tests/runtime/net_sweep.h"
#include "tests/runtime/network.h"
#include "tests/support/kits.h"

#include "runtime/network/ready.h"
#include "runtime/testkit/peer.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_MAX 3000u /* most bytes that a client sends at once */
#define LONG      20u   /* factor by which the long form of the tests runs more seeds */

void domt_sweep_run_seeds(uint64_t count, int (*run_seed)(uint64_t seed, void *context))
{
    const char *from = getenv("DOMT_FROM");
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
    const char *to = getenv("DOMT_TO");
    uint64_t seed = 0;

    if (getenv("DOMT_LONG") != NULL)
        count *= LONG;
    if (to != NULL)
        count = strtoull(to, NULL, 10);
    count = first <= count ? count - first + 1 : 1;
    ck_assert_msg(domus_testkit_sweep(first, count, run_seed, NULL, &seed) == 0, "seed %" PRIu64,
                  seed);
}

uint64_t domt_sweep_draw_below(domt_sweep *sweep, uint64_t n)
{
    return domi_random_below(&sweep->random, n);
}

void domt_sweep_step_randomly(domt_sweep *sweep, uint64_t steps_below, uint64_t ms_below)
{
    for (uint64_t steps = domt_sweep_draw_below(sweep, steps_below); steps != 0; steps--)
        (void)domus_testkit_step(sweep->kit);
    if (domt_sweep_draw_below(sweep, 8) == 0)
        (void)domus_testkit_advance(sweep->kit,
                                    domt_sweep_draw_below(sweep, ms_below * DOMT_SWEEP_MS));
}

void domt_sweep_draw_config(domt_sweep *sweep, domus_config *ret_config)
{
    domt_net_make_config(ret_config);
    if (domt_sweep_draw_below(sweep, 2) == 0) {
        ret_config->channel.send_high_bytes = 1 + domt_sweep_draw_below(sweep, 2000);
        ret_config->channel.send_low_bytes =
            domt_sweep_draw_below(sweep, ret_config->channel.send_high_bytes + 1);
    }
    if (domt_sweep_draw_below(sweep, 2) == 0) {
        ret_config->io.buffers.count = 16;
        ret_config->io.buffers.size_bytes = 256;
        ret_config->io.ring_entries = 16;
        ret_config->io.completion_entries = 32;
    }
}

void domt_sweep_make_kit(domt_sweep *sweep, domus_config *config,
                         const domus_listener_config *listeners, uint32_t count)
{
    config->listeners = listeners;
    config->listener_count = count;
    sweep->kit = domt_kit_new(config, sweep->seed);
}

void domt_sweep_make_listening_kit(domt_sweep *sweep, const char *name, const char *address)
{
    domus_listener_config listener = {.name = name, .address = address, .backlog = 4};
    domus_config config;
    domt_sweep_draw_config(sweep, &config);
    domt_sweep_make_kit(sweep, &config, &listener, 1);
}

/* Draw the probability of a fault for this seed: 0 in half of the seeds, and otherwise one of four
 * values up to `most`. */
static uint32_t draw_chance_of_fault(domt_sweep *sweep, uint32_t most)
{
    static const uint32_t parts[] = {1, 4, 16, 64};
    return domt_sweep_draw_below(sweep, 2) == 0 ? 0 : most / parts[domt_sweep_draw_below(sweep, 4)];
}

void domt_sweep_draw_faults(domt_sweep *sweep)
{
    domus_net_faults *faults = &sweep->faults;
    static const uint32_t buffers[] = {0, 1, 17, 200, 1500, 5000};

    *faults = (domus_net_faults){
        .short_writes = draw_chance_of_fault(sweep, 1000000),
        .short_reads = draw_chance_of_fault(sweep, 1000000),
        .resets = draw_chance_of_fault(sweep, 300000),
        .reset_within_bytes = (uint32_t)domt_sweep_draw_below(sweep, 10000),
        .ends = draw_chance_of_fault(sweep, 300000),
        .end_within_bytes = (uint32_t)domt_sweep_draw_below(sweep, 10000),
        .refusals = draw_chance_of_fault(sweep, 300000),
        .no_buffers = draw_chance_of_fault(sweep, 300000),
        .no_memory = draw_chance_of_fault(sweep, 300000),
        .no_descriptors = draw_chance_of_fault(sweep, 300000),
        .overflows = draw_chance_of_fault(sweep, 500000),
        .refused_enters = draw_chance_of_fault(sweep, 300000),
        .send_buffer_bytes = buffers[domt_sweep_draw_below(sweep, 6)],
        .receive_buffer_bytes = buffers[domt_sweep_draw_below(sweep, 6)],
    };
    if (domt_sweep_draw_below(sweep, 2) == 0) {
        faults->latency_min_ns = domt_sweep_draw_below(sweep, DOMT_SWEEP_MS);
        faults->latency_max_ns =
            faults->latency_min_ns + domt_sweep_draw_below(sweep, DOMT_SWEEP_MS);
    }
    if (domt_sweep_draw_below(sweep, 4) == 0)
        faults->bandwidth_bytes = 1000000 + domt_sweep_draw_below(sweep, 10000000);
}

void domt_sweep_draw_datagram_faults(domt_sweep *sweep)
{
    domus_net_faults *faults = &sweep->faults;
    static const uint32_t buffers[] = {0, 1, 250, 1500, 5000, 0};
    static const uint32_t bounds[] = {0, 0, 0, 100};

    faults->datagram_losses = draw_chance_of_fault(sweep, 300000);
    faults->datagram_doubles = draw_chance_of_fault(sweep, 500000);
    faults->datagram_reorders = draw_chance_of_fault(sweep, 500000);
    faults->datagram_refusals = draw_chance_of_fault(sweep, 300000);
    faults->datagram_bytes_max = bounds[domt_sweep_draw_below(sweep, 4)];
    faults->send_buffer_bytes = buffers[domt_sweep_draw_below(sweep, 6)];
    faults->receive_buffer_bytes = buffers[domt_sweep_draw_below(sweep, 6)];
}

void domt_sweep_fail_unless(domt_sweep *sweep, bool holds, const char *what)
{
    char replay[256];

    if (holds || sweep->has_failed)
        return;
    sweep->has_failed = true;
    printf("does not hold: %s\n%s\n", what,
           domus_testkit_replay(sweep->seed, replay, sizeof replay));
    if (sweep->kit != NULL && getenv("DOMUS_SEED") != NULL)
        printf("%s\n", domus_testkit_trace(sweep->kit));
    /* flushed here, because the process of a failing test does not flush its output */
    (void)fflush(stdout);
}

/* --- clients ---------------------------------------------------------------------------------- */

static char byte_of_client(const domt_client *client, uint64_t position)
{
    return (char)((client->key + position) * UINT64_C(0x9E3779B97F4A7C15) >> 56);
}

void domt_sweep_connect_client(domt_sweep *sweep, const char *to)
{
    domt_client *client = &sweep->clients[sweep->client_count];
    *client = (domt_client){.key = domi_random_next_bits(&sweep->random)};
    ck_assert_int_eq(domus_peer_connect(sweep->kit, to, NULL, &client->peer), 0);
    sweep->client_count++;
}

/* In a network with tiny buffers every byte is an event, so clients send smaller pieces then. */
static uint32_t piece_max_of_sweep(const domt_sweep *sweep)
{
    uint32_t least = PIECE_MAX;

    if (sweep->faults.send_buffer_bytes != 0)
        least = 8 * sweep->faults.send_buffer_bytes + 8;
    if (sweep->faults.receive_buffer_bytes != 0 &&
        8 * sweep->faults.receive_buffer_bytes + 8 < least)
        least = 8 * sweep->faults.receive_buffer_bytes + 8;
    return least < PIECE_MAX ? least : PIECE_MAX;
}

static void send_piece_of_client(domt_sweep *sweep, domt_client *client)
{
    char bytes[PIECE_MAX];
    uint32_t most = 1 + (uint32_t)domt_sweep_draw_below(sweep, piece_max_of_sweep(sweep));
    uint32_t size = 1 + (uint32_t)domt_sweep_draw_below(sweep, most);

    for (uint32_t i = 0; i < size; i++)
        bytes[i] = byte_of_client(client, client->sent + i);
    if (domus_peer_send(client->peer, bytes, size) == 0)
        client->sent += size;
}

void domt_sweep_reset_peer(domus_peer *peer, bool *is_done, bool *was_rude)
{
    domus_peer_reset(peer);
    *is_done = *was_rude = true;
}

void domt_sweep_close_peer(domus_peer *peer, bool *is_done, bool *was_rude)
{
    domus_peer_close(peer);
    *is_done = *was_rude = true;
}

bool domt_sweep_disturb_peer(domt_sweep *sweep, uint64_t deed, domus_peer *peer, bool *is_done,
                             bool *was_rude)
{
    switch (deed) {
    case 1:
        domus_peer_pause(peer);
        return true;
    case 2:
    case 3:
        if (!*was_rude)
            domus_peer_resume(peer);
        return true;
    case 4:
        if (domt_sweep_draw_below(sweep, 2) == 0)
            domt_sweep_reset_peer(peer, is_done, was_rude);
        else
            domt_sweep_close_peer(peer, is_done, was_rude);
        return true;
    case 5:
        domus_peer_hold(peer);
        return true;
    case 6:
    case 7:
        domus_peer_release(peer);
        return true;
    default:
        return false;
    }
}

void domt_sweep_do_random_client_action(domt_sweep *sweep, domt_client *client)
{
    uint64_t deed = domt_sweep_draw_below(sweep, 24);

    switch (deed) {
    case 0:
        domus_peer_finish(client->peer);
        client->is_done = true;
        break;
    /* an echo is reset more seldom than requests are in other sweeps, because the reset ends its
     * checks */
    case 4:
        if (domt_sweep_draw_below(sweep, 4) != 0)
            break;
        client->has_reset = !client->is_done && domus_peer_is_connected(client->peer) &&
                            !domus_peer_has_end(client->peer) &&
                            domus_peer_count(client->peer).delivered != 0;
        domt_sweep_reset_peer(client->peer, &client->is_done, &client->was_rude);
        break;
    case 5:
        if (domt_sweep_draw_below(sweep, 4) == 0)
            domt_sweep_close_peer(client->peer, &client->is_done, &client->was_rude);
        break;
    default:
        if (deed > 5) /* number 6 here is number 5 of domt_sweep_disturb_peer(), and so on */
            deed--;
        if (!domt_sweep_disturb_peer(sweep, deed, client->peer, &client->is_done,
                                     &client->was_rude) &&
            !client->is_done)
            send_piece_of_client(sweep, client);
        break;
    }
}

void domt_sweep_connect_and_run_clients(domt_sweep *sweep, const char *to, uint32_t deeds_max)
{
    uint32_t clients = 1 + (uint32_t)domt_sweep_draw_below(sweep, DOMT_SWEEP_CLIENTS);
    uint32_t deeds = 1 + (uint32_t)domt_sweep_draw_below(sweep, deeds_max);

    for (uint32_t i = 0; i < clients; i++)
        domt_sweep_connect_client(sweep, to);
    for (uint32_t i = 0; i < deeds; i++) {
        domt_sweep_do_random_client_action(sweep,
                                           &sweep->clients[domt_sweep_draw_below(sweep, clients)]);
        domt_sweep_step_randomly(sweep, 20, 3);
        domt_sweep_check_echoes(sweep);
    }
}

static void check_echo_of_client(domt_sweep *sweep, domt_client *client)
{
    size_t size;
    const char *data = domus_peer_got(client->peer, &size);

    DOMT_SWEEP_HOLD(sweep, client->checked + size <= client->sent);
    for (size_t i = 0; i < size && !sweep->has_failed; i++)
        DOMT_SWEEP_HOLD(sweep, data[i] == byte_of_client(client, client->checked + i));
    client->checked += size;
    domus_peer_take(client->peer, size);
}

void domt_sweep_check_echoes(domt_sweep *sweep)
{
    for (uint32_t i = 0; i < sweep->client_count; i++)
        check_echo_of_client(sweep, &sweep->clients[i]);
}

/* Returns whether all bytes of a client must have come back: neither the client nor a fault of the
 * network has cut its connection. With a second connection, an early end of that one looks like a
 * short stream, so then the bytes need not be complete. */
static bool must_all_bytes_come_back(const domt_sweep *sweep, const domt_client *client)
{
    domus_peer_counts counts = domus_peer_count(client->peer);
    return !(sweep->is_relayed && sweep->faults.ends != 0) && !client->was_rude &&
           domus_peer_error(client->peer) == 0 && counts.lost == 0 && counts.missed == 0;
}

/* Returns whether the faults of this seed can neither refuse nor reset a connection. */
static bool is_network_reliable(const domt_sweep *sweep)
{
    const domus_net_faults *faults = &sweep->faults;
    return faults->resets == 0 && faults->ends == 0 && faults->refusals == 0 &&
           !(sweep->is_relayed && (faults->no_memory != 0 || faults->no_descriptors != 0));
}

/* Check that the service has seen at least as many resets as the clients have made. */
static void check_resets_are_seen(domt_sweep *sweep)
{
    uint64_t resets = 0, made = 0;
    domus_profile profile;

    for (uint32_t i = 0; i < sweep->client_count; i++)
        made += sweep->clients[i].has_reset;
    for (uint32_t i = 0; i < sweep->kit->system->count; i++) {
        ck_assert_int_eq(domus_system_profile(sweep->kit->system, i, &profile), 0);
        resets += profile.channels_reset;
    }
    DOMT_SWEEP_HOLD(sweep, resets >= made);
}

/* Returns whether each client that has not broken off its connection has sent all bytes, and has
 * seen the end of its stream or an error. */
static bool has_network_come_to_rest(const domt_sweep *sweep)
{
    for (uint32_t i = 0; i < sweep->client_count; i++) {
        const domt_client *client = &sweep->clients[i];
        if (!client->was_rude && domus_peer_count(client->peer).unsent != 0)
            return false;
        if (!client->was_rude && !domus_peer_has_end(client->peer) &&
            domus_peer_error(client->peer) == 0)
            return false;
    }
    return true;
}

void domt_sweep_finish_and_check_clients(domt_sweep *sweep)
{
    for (uint32_t i = 0; i < sweep->client_count; i++) {
        domt_client *client = &sweep->clients[i];

        domus_peer_finish(client->peer);
        domus_peer_release(client->peer);
        if (!client->was_rude)
            domus_peer_resume(client->peer);
    }
    for (int tries = 0; tries < 200 && (tries == 0 || !has_network_come_to_rest(sweep)); tries++)
        DOMT_SWEEP_HOLD(sweep, domus_testkit_advance(sweep->kit, 3 * DOMT_SWEEP_SECOND) == 0);
    domt_sweep_check_echoes(sweep);
    for (uint32_t i = 0; i < sweep->client_count; i++) {
        const domt_client *client = &sweep->clients[i];
        domus_peer_counts counts = domus_peer_count(client->peer);

        /* A client that has closed its connection reads no more, so echoes to it may be stuck, and
         * bytes that it has sent may be stuck behind them. */
        DOMT_SWEEP_HOLD(sweep, client->was_rude || counts.unsent == 0);
        DOMT_SWEEP_HOLD(sweep, client->was_rude || domus_peer_has_end(client->peer) ||
                                   domus_peer_error(client->peer) != 0);
        if (must_all_bytes_come_back(sweep, client)) {
            DOMT_SWEEP_HOLD(sweep, client->checked == client->sent);
            DOMT_SWEEP_HOLD(sweep, counts.delivered == client->sent);
        } else if (is_network_reliable(sweep)) {
            /* without faults that reset, only the client itself can have broken off the
             * connection */
            DOMT_SWEEP_HOLD(sweep, client->was_rude);
        }
    }
    if (sweep->faults.ends == 0)
        check_resets_are_seen(sweep);
}

uint64_t domt_sweep_discarded_bytes(const domt_sweep *sweep)
{
    domus_profile profile;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < sweep->kit->system->count; i++) {
        ck_assert_int_eq(domus_system_profile(sweep->kit->system, i, &profile), 0);
        sum += profile.discarded_bytes;
    }
    return sum;
}

/* --- books ------------------------------------------------------------------------------------ */

static void check_rings_hold_nothing(domt_sweep *sweep)
{
    const domus_system *system = sweep->kit->system;

    for (uint32_t i = 0; i < system->count; i++) {
        const domi_io *io = &system->threads[i].io;
        const domi_net_ring *ring = io->ring;

        DOMT_SWEEP_HOLD(sweep, io->open == 0);
        DOMT_SWEEP_HOLD(sweep, domi_io_count_free_buffers(io) == io->config->io.buffers.count);
        DOMT_SWEEP_HOLD(sweep, ring->given_tail - ring->free_head == io->config->io.buffers.count);
        DOMT_SWEEP_HOLD(sweep, atomic_load(&io->connections) == 0);
        DOMT_SWEEP_HOLD(sweep, domi_counter_read(&io->queued) == 0 && io->copied == 0);
    }
}

static void check_sums_of_counters(domt_sweep *sweep)
{
    domus_net_totals totals = domus_testkit_net_totals(sweep->kit);
    uint64_t received = 0, opened = 0, closed = 0, of_peers = 0, discarded = 0;
    domus_profile profile;

    for (uint32_t i = 0; i < sweep->kit->system->count; i++) {
        ck_assert_int_eq(domus_system_profile(sweep->kit->system, i, &profile), 0);
        received += profile.received_bytes + profile.discarded_bytes;
        discarded += profile.discarded_bytes;
        opened += profile.channels_opened;
        closed += profile.channels_closed;
    }
    for (const domus_peer *peer = sweep->kit->peers; peer != NULL; peer = peer->next)
        of_peers += domus_peer_count(peer).received;
    DOMT_SWEEP_HOLD(sweep, opened == closed);
    /* only the eventfd of each thread is left of all descriptors */
    DOMT_SWEEP_HOLD(sweep, totals.descriptors == sweep->kit->system->count);
    DOMT_SWEEP_HOLD(sweep, totals.sent == totals.received + totals.lost + totals.in_flight);
    if (sweep->has_datagrams)
        return;
    /* Bytes that had come to a proxy and were not read when it closed are in both counters. */
    uint64_t of_system = totals.received - of_peers;
    DOMT_SWEEP_HOLD(sweep, sweep->is_relayed ? received >= of_system : received == of_system);
    DOMT_SWEEP_HOLD(sweep, received - discarded <= of_system);
}

int domt_sweep_end_and_check_seed(domt_sweep *sweep)
{
    (void)domus_testkit_stop(sweep->kit);
    check_sums_of_counters(sweep);
    check_rings_hold_nothing(sweep);
    domus_testkit_free(sweep->kit);
    sweep->kit = NULL;
    return sweep->has_failed ? 1 : 0;
}
