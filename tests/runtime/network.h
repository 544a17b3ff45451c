/* An echo service in a test kit, and peers that are its clients. */
#ifndef DOMT_NETWORK_H
#define DOMT_NETWORK_H

#include <domus/domus.h>
#include <domus/testkit_net.h>

#define DOMT_NET_SECOND UINT64_C(1000000000)

/* Behaviour of channels that send back every byte. */
extern const domus_behaviour domt_net_echo;

/* Fill in a configuration of three threads, without time-outs and without limits of connections for
 * each address. */
void domt_net_make_config(domus_config *ret_config);

/* Make a test kit of three threads with an echo service that listens at `at`. */
domus_testkit *domt_net_new_echo_kit(const char *at, uint64_t seed);

/* Make a peer that begins to connect to the address `to`. */
domus_peer *domt_net_connect_peer(domus_testkit *kit, const char *to);

/* Check that `result`, returned by a call on the kit, is 0; if not, fail the test with the kit's
 * error and trace. */
void domt_net_check_ok(domus_testkit *kit, int result);

#endif
