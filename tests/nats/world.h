/* A client of NATS in a test kit, whose servers are scripts of the test. */
#ifndef DOMT_NATS_WORLD_H
#define DOMT_NATS_WORLD_H

#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/nats.h>

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

#define PLACE "10.0.0.9:4222" /* address at which the test's server listens */

/* The line INFO, which a server sends first. */
#define INFO                                                                                       \
    "INFO {\"headers\":true,\"max_payload\":1000,\"version\":\"2.9\",\"server_name\":\"n\"}\r\n"

extern domus_testkit *domt_kit;
extern domus_probe *domt_probe; /* probe that uses the client: its asks, and messages for it */
extern domus_probe *domt_event_probe; /* probe that receives the client's events */
extern domus_address domt_nats;

/* Check that a function of the kit or its peers has returned 0. */
void domt_expect_success(int result);

/* Make the kit, a server at PLACE, and a client. `options` may be NULL; servers, events and seed
 * are set if they are missing. Returns the server's listener. domt_nats_end_kit() ends the kit. */
domus_peer_listener *domt_nats_begin_with_server_and_client(const domus_nats_options *options);
void domt_nats_end_kit(void);

/* Make the kit and its probes; open a client; listen as a server. */
void domt_nats_make_kit(void);
void domt_nats_open_client(const domus_nats_options *options);
domus_peer_listener *domt_nats_listen_as_server(const char *at);

/* Accept the next connection of the client. */
domus_peer *domt_nats_accept_connection(domus_peer_listener *listener);

/* Send text to the client; check that the client's next bytes are this text. */
void domt_nats_send_to_client(domus_peer *peer, const char *text);
void domt_nats_expect_text_from_client(domus_peer *peer, const char *text);

/* Returns the next line that the client has sent, without its end, valid until the next call. */
const char *domt_nats_read_line_from_client(domus_peer *peer);

/* Let the client log in after this INFO (NULL: the usual one). Returns its inbox: the subject
 * without the star. If the client has a receiver of events, check that it hears of the
 * connection. */
const char *domt_nats_let_client_log_in(domus_peer *peer, const char *info);

/* Accept the next connection, and let the client log in. */
domus_peer *domt_nats_accept_client_login(domus_peer_listener *listener);

/* Make the kit, a server and a client that has logged in. */
domus_peer *domt_nats_begin_with_logged_in_client(const domus_nats_options *options,
                                                  domus_peer_listener **ret_listener);

/* Let the probe publish, ask for an answer, or subscribe through the client. */
domus_nats_publish domt_nats_make_publication(const char *subject, const char *payload);
void domt_nats_publish_by_probe(const char *subject, const char *payload);
void domt_nats_request_by_probe(const char *subject, const char *payload, uint64_t within_ns);
uint64_t domt_nats_subscribe_by_probe(const char *subject, const char *queue, uint64_t max,
                                      uint64_t tag);

/* Check that the probe receives a message with this subject, payload and tag. */
void domt_nats_expect_message(domus_probe *probe, const char *subject, const char *payload,
                              uint64_t tag);
void domt_nats_expect_failed_ask(int error);
void domt_nats_expect_event(domus_nats_happening happening, int error);

void domt_nats_run_kit(void);
void domt_nats_advance_kit_time(uint64_t time_ns);
domus_nats_status domt_nats_read_client_status(void);

#endif
