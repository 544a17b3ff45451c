/* The service of examples/api in a test kit, with a database in memory. Programs that are copied
 * from this example can begin their tests with it. */
#ifndef DOMT_API_TRACKER_H
#define DOMT_API_TRACKER_H

#include <domus/testkit_net.h>

/* Make a kit with the service and the settings in api_settings (files of at most 1 MiB by default),
 * which takes `rate` requests of a client in a second. */
domus_testkit *tracker_begin_service(uint64_t seed, uint32_t rate);
void tracker_end_service(domus_testkit *kit);

/* Send bytes from a peer, and return all bytes that it has received, as text. The text is valid
 * until the next call. */
const char *tracker_send_bytes_and_read(domus_testkit *kit, domus_peer *peer, const char *bytes);

/* Send a request with a body of JSON from a peer, and return all bytes that it has received, as
 * text. The text is valid until the next call. */
const char *tracker_send_request_and_read(domus_testkit *kit, domus_peer *peer, const char *line,
                                          const char *cookie, const char *body);

/* Log a user in from a peer. `cookie` gets the pair of name and value that the browser sends
 * back. */
void tracker_log_user_in(domus_testkit *kit, domus_peer *peer, const char *name, char cookie[256]);

#endif
