/* A client of nats-server in a real system, used by the thread of the test. */
#ifndef DOMT_NATS_USER_H
#define DOMT_NATS_USER_H

#include "tests/support/nats_server.h"

#include <domus/nats.h>
#include <domus/outsider.h>

/* Start a system with one thread, and a client of nats-server in it. */
typedef struct domt_nats_user {
    domus_system *system;
    domus_outsider *outsider;
    domus_address client;
} domt_nats_user;

void domt_nats_user_start_system(domt_nats_user *user, const domus_nats_options *options);
void domt_nats_user_stop_system(domt_nats_user *user);

/* Open one more client in the system of `user`. */
domus_address domt_nats_user_open_client(domt_nats_user *user, const domus_nats_options *options);

/* Wait until the user's client is connected to nats-server. */
void domt_nats_user_await_connection(domt_nats_user *user);
domus_nats_status domt_nats_user_read_client_status(domt_nats_user *user);

/* Send an ask to the client, and check that it succeeds. */
void domt_nats_user_ask_successfully(domt_nats_user *user, const domus_type *type,
                                     const void *payload);

void domt_nats_user_publish_bytes(domt_nats_user *user, const char *subject, const void *data,
                                  size_t size);
uint64_t domt_nats_user_subscribe_to_subject(domt_nats_user *user, const char *subject,
                                             const char *queue, uint64_t tag);

/* Receive the outsider's next message of a subscription. It is valid until the next call. */
const domus_nats_message *domt_nats_user_receive_message(domt_nats_user *user);

/* Send a request. Returns 0 and the answer, whose bytes the caller frees; or the error. */
int domt_nats_user_send_request(domt_nats_user *user, const char *subject, const char *payload,
                                uint64_t timeout_ns, domus_nats_message *ret_answer);

/* Returns whether a slice has exactly this text. */
bool domt_slice_has_text(domus_slice slice, const char *text);

#endif
