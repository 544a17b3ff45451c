/* Sweeps over the seeds of a simulated network: faults, clients and checks of sums.
 *
 * A client sends bytes that only it sends, at their positions, so each byte shows from which client
 * and position it comes. When a seed is over, the sums are checked: bytes sent were received, lost
 * or refused, the counters of the library agree with those of the network, and no descriptor, no
 * channel and no buffer is left. */
#ifndef DOMT_NET_SWEEP_H
#define DOMT_NET_SWEEP_H

#include "base/random.h"

#include <domus/domus.h>
#include <domus/testkit_net.h>

#define DOMT_SWEEP_MS      UINT64_C(1000000)
#define DOMT_SWEEP_SECOND  (1000 * DOMT_SWEEP_MS)
#define DOMT_SWEEP_CLIENTS 6u

/* A client of a service that sends back each byte. */
typedef struct domt_client {
    domus_peer *peer;
    uint64_t key;     /* makes the bytes of this client differ from those of others */
    uint64_t sent;    /* bytes given to the peer */
    uint64_t checked; /* bytes that have come back and equal those that were sent */
    bool is_done;     /* the client has finished, closed or reset, and sends no more */
    bool was_rude;    /* the client has closed or reset, so bytes may be lost */
    /* the client has reset a connection that the service had, and had not finished it */
    bool has_reset;
} domt_client;

typedef struct domt_sweep {
    uint64_t seed;
    domi_random random; /* source of the test's own choices */
    domus_testkit *kit;
    domus_net_faults faults; /* faults drawn from the seed */
    domt_client clients[DOMT_SWEEP_CLIENTS];
    uint32_t client_count;
    bool is_relayed;    /* bytes go through a second connection, which may be reset, too */
    bool has_datagrams; /* the bytes in the profile include those of datagrams */
    bool has_failed;    /* a check failed, and was printed */
} domt_sweep;

/* Run the seeds from 1 (or DOMT_FROM) to `count`, or to 50 times that with DOMT_LONG, or to
 * DOMT_TO, or only the one that DOMUS_SEED names. `run_seed` returns 0 if all checks hold. The
 * first seed that fails ends the test. */
void domt_sweep_seeds(uint64_t count, int (*run_seed)(uint64_t seed, void *context));

/* Draw the faults of this seed: those of streams and rings, and those of datagrams, for which the
 * buffers are drawn again. */
void domt_sweep_draw_faults(domt_sweep *sweep);
void domt_sweep_draw_datagram_faults(domt_sweep *sweep);

/* Set up a configuration of three threads without time-outs. Its limits are drawn by chance. */
void domt_sweep_configure(domt_sweep *sweep, domus_config *ret_config);

/* Make the kit with a configuration and its listeners. */
void domt_sweep_make(domt_sweep *sweep, domus_config *config,
                     const domus_listener_config *listeners, uint32_t count);

/* Configure and make a kit with one listener. */
void domt_sweep_listen(domt_sweep *sweep, const char *name, const char *address);

/* Connect some clients to `to`, and let them do up to `deeds_max` actions, with steps between. */
void domt_sweep_play(domt_sweep *sweep, const char *to, uint32_t deeds_max);

/* Draw a number below `n`. */
uint64_t domt_sweep_below(domt_sweep *sweep, uint64_t n);

/* Take some steps, and now and then let some time pass; both numbers are drawn below these. */
void domt_sweep_go_on(domt_sweep *sweep, uint64_t steps_below, uint64_t ms_below);

/* Check a condition; if it fails, print it with the command that replays the seed. */
void domt_sweep_hold(domt_sweep *sweep, bool holds, const char *what);
#define DOMT_SWEEP_HOLD(sweep, what) domt_sweep_hold(sweep, (what), #what)

/* Connect a client. */
void domt_sweep_connect(domt_sweep *sweep, const char *to);

/* Let a client do a random action. */
void domt_sweep_act(domt_sweep *sweep, domt_client *client);

/* Reset or close a connection whose client is of any kind; `is_done` and `was_rude` are set. */
void domt_sweep_reset(domus_peer *peer, bool *is_done, bool *was_rude);
void domt_sweep_close(domus_peer *peer, bool *is_done, bool *was_rude);

/* Disturb the connection of a client of any kind: `deed` 1 pauses its reading, 2 and 3 let it go
 * on, 4 resets or closes it, 5 holds back its bytes, 6 and 7 let them go. Returns false for another
 * `deed`, which the caller handles. */
bool domt_sweep_disturb(domt_sweep *sweep, uint64_t deed, domus_peer *peer, bool *is_done,
                        bool *was_rude);

/* Returns how many bytes the system has received and given to no actor. */
uint64_t domt_sweep_discarded(const domt_sweep *sweep);

/* Let all clients read what has come back, and check that it is what they sent. */
void domt_sweep_check_echoes(domt_sweep *sweep);

/* Let all clients finish, and wait until the network is at rest. Then check that each client whose
 * connection was not reset has got back everything. */
void domt_sweep_settle(domt_sweep *sweep);

/* Stop the system, check the sums, and free the kit. Returns 0 if all checks have held. */
int domt_sweep_end(domt_sweep *sweep);

#endif
