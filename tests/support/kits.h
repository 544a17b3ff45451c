/* Makes test kits (domus_testkit) and peers for tests; each function fails the test if its step
 * does not succeed. */
#ifndef DOMT_KITS_H
#define DOMT_KITS_H

#include <domus/domus.h>
#include <domus/testkit_net.h>

/* Make a test kit whose random choices follow from `seed`. If `config` is NULL, the kit has the
 * default configuration of test kits. */
domus_testkit *domt_kit_new(const domus_config *config, uint64_t seed);

/* Make a test kit with one listener `name` at `address`, for which no actor has been made yet. */
domus_testkit *domt_kit_new_listening(const domus_config *config, const char *name,
                                      const char *address, uint64_t seed);

/* Connect a peer to `address` in the simulated network of a test kit. */
domus_peer *domt_kit_connect_peer(domus_testkit *kit, const char *address);

/* Let a peer send text, or check that within a minute of simulated time the peer receives exactly
 * this text. */
void domt_kit_peer_send(domus_peer *peer, const char *text);
void domt_kit_peer_expect(domus_testkit *kit, domus_peer *peer, const char *text);

#endif
