/* A client of nats-server in a real system, used by the thread of the test. */
#ifndef DOMT_NATS_USER_H
#define DOMT_NATS_USER_H

#include "tests/support/nats_server.h"

#include <domus/nats.h>
#include <domus/outsider.h>

/* A client in a system with one thread. */
typedef struct domt_nats_user {
    domus_system *system;
    domus_outsider *outsider;
    domus_address client;
} domt_nats_user;

void domt_nats_user_start(domt_nats_user *user, const domus_nats_options *options);
void domt_nats_user_stop(domt_nats_user *user);

/* One more client in the same system. */
domus_address domt_nats_user_open(domt_nats_user *user, const domus_nats_options *options);

/* Wait until it is connected. */
void domt_nats_user_connected(domt_nats_user *user);
domus_nats_status domt_nats_user_look(domt_nats_user *user);

/* Ask the client for something, of which nothing but success is expected. */
void domt_nats_user_does(domt_nats_user *user, const domus_type *type, const void *payload);

void domt_nats_user_publish(domt_nats_user *user, const char *subject, const void *data,
                            size_t size);
uint64_t domt_nats_user_subscribe(domt_nats_user *user, const char *subject, const char *queue,
                                  uint64_t tag);

/* Receive the next message; it is valid until the next one. */
const domus_nats_message *domt_nats_user_message(domt_nats_user *user);

/* Request: returns 0 and the answer, whose bytes are the caller's; or the error. */
int domt_nats_user_request(domt_nats_user *user, const char *subject, const char *payload,
                           uint64_t timeout_ns, domus_nats_message *ret_answer);

/* Whether a slice is this text. */
bool domt_slice_is(domus_slice slice, const char *text);

#endif
