/* Test kits and peers of a service in a kit; each function checks that its step succeeds. */
#ifndef DOMT_KITS_H
#define DOMT_KITS_H

#include <domus/domus.h>
#include <domus/testkit_net.h>

/* Make a kit. `config` may be NULL: then it is the default configuration of a kit. */
domus_testkit *domt_kit_new(const domus_config *config, uint64_t seed);

/* Make a kit with one listener, which no actor serves yet. */
domus_testkit *domt_kit_listening(const domus_config *config, const char *name, const char *address,
                                  uint64_t seed);

/* Connect a peer to an address in the kit. */
domus_peer *domt_kit_peer(domus_testkit *kit, const char *address);

/* Send text, and check that the same text, and nothing before it, comes back within a minute. */
void domt_kit_send(domus_peer *peer, const char *text);
void domt_kit_expect(domus_testkit *kit, domus_peer *peer, const char *text);

#endif
