/* A pool of a line protocol in a test kit, one for each test, whose service is a script of the
 * test. */
#ifndef DOMT_POOLS_H
#define DOMT_POOLS_H

#include "tests/runtime/clients.h"
#include "tests/support/suite.h"

#include <domus/pool.h>

extern domus_testkit *domt_pool_kit;
extern domus_probe *domt_pool_probe; /* the probe that asks the pool */
extern domus_address domt_pool;

/* A behaviour of channels of lines that have at most one ask under way. */
extern const domus_behaviour domt_pool_narrow;

domus_peer_listener *domt_pool_listen(const char *at);

/* Take the next connection of a service. */
domus_peer *domt_pool_peer(domus_peer_listener *listener);

/* Make the kit and the probe; open the pool; do both, with a service at 10.0.0.9:1; or end all. */
void domt_pool_begin(void);
void domt_pool_open(const char *to, const domus_pool_options *options);
domus_peer_listener *domt_pool_begin_listening(const domus_pool_options *options);
void domt_pool_end(void);

/* Ask the pool with a line; check that a service got it; let it answer; or check that an ask
 * fails. */
void domt_pool_ask(const char *text);
void domt_pool_sent(domus_peer *peer, const char *text);
void domt_pool_answer(domus_peer *peer, const char *text);
void domt_pool_error(int error);

/* Check that the probe gets a line; let a service answer; or first check that it got a line. */
void domt_pool_hear(const char *text);
void domt_pool_reply(domus_peer *peer, const char *answer);
void domt_pool_serve(domus_peer *peer, const char *asked, const char *answer);

/* Run the kit until nothing is left to do now; or let time pass. */
void domt_pool_run(void);
void domt_pool_pass(uint64_t ns);

domus_pool_status domt_pool_look(void);

#endif
