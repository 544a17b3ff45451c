/* A pool of connections (domus/pool.h) of a line protocol in a test kit; its service is a script of
 * the test. Each test has one such pool. */
#ifndef DOMT_POOLS_H
#define DOMT_POOLS_H

#include "tests/runtime/clients.h"
#include "tests/support/suite.h"

#include <domus/pool.h>

extern domus_testkit *domt_pool_kit;
extern domus_probe *domt_pool_probe; /* the probe that asks the pool */
extern domus_address domt_pool;

/* Behaviour of a line protocol's channels that have at most one ask under way. */
extern const domus_behaviour domt_pool_narrow;

domus_peer_listener *domt_pool_listen_as_service(const char *at);

/* Accept the next connection that the pool makes to the service. Returns its peer. */
domus_peer *domt_pool_accept_connection(domus_peer_listener *listener);

/* Make the test kit and its probe. */
void domt_pool_begin_kit(void);

/* Open a pool of connections to the address `to`. */
void domt_pool_open(const char *to, const domus_pool_options *options);

/* Make the kit with its probe, a service that listens at 10.0.0.9:1, and a pool of connections to
 * this service. */
domus_peer_listener *domt_pool_begin_with_service(const domus_pool_options *options);

/* Check that the probe gets nothing more, and free the kit. */
void domt_pool_end_kit(void);

/* Let the probe ask the pool with a line. */
void domt_pool_ask_line(const char *text);

/* Check that the service at the end `peer` of a connection got exactly this text. */
void domt_pool_expect_service_got(domus_peer *peer, const char *text);

/* Let the service send this text on a connection. */
void domt_pool_service_send(domus_peer *peer, const char *text);

/* Check that the probe's ask fails with this error. */
void domt_pool_expect_error(int error);

/* Check that the probe gets this line as its answer. */
void domt_pool_expect_answer(const char *text);

/* Let the service answer with a line, and check that the probe gets this answer. */
void domt_pool_answer_and_expect(domus_peer *peer, const char *answer);

/* Check that the service was asked with the line `asked`, let it answer, and check that the probe
 * gets this answer. */
void domt_pool_serve_ask(domus_peer *peer, const char *asked, const char *answer);

/* Run the test kit until nothing is left to do now, or let `ns` pass on its clock. */
void domt_pool_run_kit(void);
void domt_pool_pass_time(uint64_t ns);

domus_pool_status domt_pool_ask_status(void);

#endif
