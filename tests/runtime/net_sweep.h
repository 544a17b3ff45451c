/* Sweeps over the seeds of a simulated network: their faults, their clients, and the checks of
 * their sums.
 *
 * Each byte that a client sends follows from the client and the byte's position, so a byte that
 * comes back shows to which client and position it belongs. When a seed is over, the sums are
 * checked: all bytes sent were received, lost or refused, the counters of the library agree with
 * those of the network, and no descriptor, channel or buffer is left. */
#ifndef DOMT_NET_SWEEP_H
#define DOMT_NET_SWEEP_H

#include "base/random.h"

#include <domus/domus.h>
#include <domus/testkit_net.h>

#define DOMT_SWEEP_MS      UINT64_C(1000000)
#define DOMT_SWEEP_SECOND  (1000 * DOMT_SWEEP_MS)
#define DOMT_SWEEP_CLIENTS 6u

/* A client of an echo service in a sweep over seeds. */
typedef struct domt_client {
    domus_peer *peer;
    /* number from which the client's bytes are made, so that they differ from those of other
     * clients */
    uint64_t key;
    uint64_t sent;    /* number of bytes that the client has given to its peer */
    uint64_t checked; /* number of bytes that have come back and equal those that were sent */
    /* the client has finished, closed or reset its connection, and sends no more */
    bool is_done;
    bool was_rude; /* the client has closed or reset its connection, so bytes may be lost */
    /* the client has reset a connection that the service had accepted and not finished */
    bool has_reset;
} domt_client;

typedef struct domt_sweep {
    uint64_t seed;
    domi_random random; /* source of the random choices that the test itself makes */
    domus_testkit *kit;
    domus_net_faults faults; /* faults of the simulated network that are drawn for this seed */
    domt_client clients[DOMT_SWEEP_CLIENTS];
    uint32_t client_count;
    /* the clients' bytes go through a second connection, which may be reset, too */
    bool is_relayed;
    bool has_datagrams; /* the bytes in the system's profile include those of datagrams */
    bool has_failed;    /* a check of this seed has failed and was printed */
} domt_sweep;

/* Call `run_seed` for the seeds from 1 (or DOMT_FROM) to `count` (to 20 times that with DOMT_LONG,
 * or to DOMT_TO), or only for the seed in DOMUS_SEED. `run_seed` returns 0 if all its checks hold,
 * and the first seed that fails fails the test. */
void domt_sweep_run_seeds(uint64_t count, int (*run_seed)(uint64_t seed, void *context));

/* Draw the faults of the network for this seed: of streams and rings, or of datagrams. The second
 * function also draws the sizes of the sockets' buffers anew. */
void domt_sweep_draw_faults(domt_sweep *sweep);
void domt_sweep_draw_datagram_faults(domt_sweep *sweep);

/* Make a configuration of three threads without time-outs, whose limits are drawn from the seed. */
void domt_sweep_draw_config(domt_sweep *sweep, domus_config *ret_config);

/* Make the test kit of this seed, with a configuration and its listeners. */
void domt_sweep_make_kit(domt_sweep *sweep, domus_config *config,
                         const domus_listener_config *listeners, uint32_t count);

/* Make a configuration and a test kit with one listener. */
void domt_sweep_make_listening_kit(domt_sweep *sweep, const char *name, const char *address);

/* Connect a random number of clients to `to`, and let them do up to `deeds_max` random actions,
 * with steps of the kit between them. */
void domt_sweep_connect_and_run_clients(domt_sweep *sweep, const char *to, uint32_t deeds_max);

/* Draw a random number below `n` from the seed. */
uint64_t domt_sweep_draw_below(domt_sweep *sweep, uint64_t n);

/* Run a random number of steps of the kit, below `steps_below`, and sometimes let a random time
 * pass, below `ms_below` milliseconds. */
void domt_sweep_step_randomly(domt_sweep *sweep, uint64_t steps_below, uint64_t ms_below);

/* Check that `holds` is true; if not, mark the seed as failed, and print `what` with the command
 * that replays the seed. */
void domt_sweep_fail_unless(domt_sweep *sweep, bool holds, const char *what);
#define DOMT_SWEEP_HOLD(sweep, what) domt_sweep_fail_unless(sweep, (what), #what)

/* Connect one more client to the address `to`. */
void domt_sweep_connect_client(domt_sweep *sweep, const char *to);

/* Let a client do one random action: send, finish, reset, close, pause or hold back bytes. */
void domt_sweep_do_random_client_action(domt_sweep *sweep, domt_client *client);

/* Reset or close the connection of a client, and set its `is_done` and `was_rude`, whatever type
 * the client has. */
void domt_sweep_reset_peer(domus_peer *peer, bool *is_done, bool *was_rude);
void domt_sweep_close_peer(domus_peer *peer, bool *is_done, bool *was_rude);

/* Disturb the connection of a client, whatever type it has. The number `deed` says how: 1 pauses
 * its reading, 2 and 3 resume it, 4 resets or closes the connection, 5 holds back its bytes, 6 and
 * 7 let them go. Returns false for any other number. */
bool domt_sweep_disturb_peer(domt_sweep *sweep, uint64_t deed, domus_peer *peer, bool *is_done,
                             bool *was_rude);

/* Returns how many bytes the system has received without giving them to an actor. */
uint64_t domt_sweep_discarded_bytes(const domt_sweep *sweep);

/* Let all clients read what has come back, and check that each byte is the one that they have
 * sent. */
void domt_sweep_check_echoes(domt_sweep *sweep);

/* Let all clients finish, and run the kit until the network is at rest. Then check that each client
 * whose connection was not reset has got back all its bytes. */
void domt_sweep_finish_and_check_clients(domt_sweep *sweep);

/* Stop the system of the seed, check its sums, and free the kit. Returns 0 if all checks of the
 * seed have held, else 1. */
int domt_sweep_end_and_check_seed(domt_sweep *sweep);

#endif
