/* The service of examples/api in a test kit, with a database in memory: what a program that was
 * copied from it begins its own tests with. */
#ifndef DOMT_API_TRACKER_H
#define DOMT_API_TRACKER_H

#include <domus/testkit_net.h>

/* Begin the service, with what api_settings has (files of 1 MiB if it does not say), and so many
 * requests a second. */
domus_testkit *tracker_begin(uint64_t seed, uint32_t rate);
void tracker_end(domus_testkit *kit);

/* Send bytes, and return what has come by then, as a text. It is valid until the next call. */
const char *tracker_ask_raw(domus_testkit *kit, domus_peer *peer, const char *bytes);

/* Send a request with a body of JSON, and return what has come by then, as a text. It is valid
 * until the next one. */
const char *tracker_ask(domus_testkit *kit, domus_peer *peer, const char *line, const char *cookie,
                        const char *body);

/* Log in. `cookie` gets the pair that the browser sends back. */
void tracker_log_in(domus_testkit *kit, domus_peer *peer, const char *name, char cookie[256]);

#endif
