/* An echo service in a test kit, and its clients. */
#ifndef DOMT_NETWORK_H
#define DOMT_NETWORK_H

#include <domus/domus.h>
#include <domus/testkit_net.h>

#define DOMT_NET_SECOND UINT64_C(1000000000)

/* A channel that sends back every byte. */
extern const domus_behaviour domt_net_echo;

/* Fill a configuration of three threads, without time-outs and without bounds for addresses. */
void domt_net_configure(domus_config *ret_config);

/* Make a kit of three threads, one of which listens at `at` and echoes. */
domus_testkit *domt_net_kit(const char *at, uint64_t seed);

/* Begin to connect a peer. */
domus_peer *domt_net_client(domus_testkit *kit, const char *to);

/* Check that a call on the kit has returned 0; if not, print the reason. */
void domt_net_ok(domus_testkit *kit, int result);

#endif
