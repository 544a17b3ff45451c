/* A nats-server with JetStream, whose store is a directory of its own, and a client of this
 * server. */
#ifndef DOMT_JS_SERVER_H
#define DOMT_JS_SERVER_H

#include "tests/nats/user.h"

#include <domus/nats_kv.h>

#define DOMT_SECOND UINT64_C(1000000000)

typedef struct domt_js_server {
    domt_nats_server server;
    domt_nats_user user;
    char store[64];
    uint64_t ask_ns; /* time-out in nanoseconds of each ask that the kit sends; 0: 10 s */
} domt_js_server;

void domt_js_server_start_with_client(domt_js_server *js);
void domt_js_server_stop_with_client(domt_js_server *js);

/* Kill the nats-server, and start another one on the same port with the same store. */
void domt_js_server_kill_and_restart(domt_js_server *js);

/* Open a bucket, stream or consumer as a child of the outsider of the test's thread. Returns its
 * address. */
domus_address domt_js_server_open_bucket(domt_js_server *js, const domus_nats_kv_options *options);
domus_address domt_js_server_open_stream(domt_js_server *js,
                                         const domus_nats_stream_options *options);
domus_address domt_js_server_open_consumer(domt_js_server *js,
                                           const domus_nats_consumer_options *options);

/* Ask the actor of a bucket, stream or consumer (domt_js_server_open_...()), and wait. Returns 0
 * and the answer, whose bytes the caller frees; or the error. */
int domt_js_server_ask_actor(domt_js_server *js, domus_address to, const domus_type *type,
                             const void *payload, void *ret_answer, uint32_t size);

/* Put or get an entry of a bucket of the server, and wait for the answer. `value` and
 * `ret_revision` may be NULL. */
int domt_js_server_put_entry(domt_js_server *js, domus_address bucket, const char *key,
                             const char *value, domus_nats_kv_operation operation,
                             domus_nats_kv_condition condition, uint64_t revision,
                             uint64_t *ret_revision);
int domt_js_server_get_entry(domt_js_server *js, domus_address bucket, const char *key,
                             uint64_t revision, domus_nats_kv_entry *ret_entry);

/* Receive the outsider's next notice, which has to have this type. It is valid until the next
 * call. */
const void *domt_js_server_receive_notice(domt_js_server *js, const domus_type *type,
                                          uint64_t within_ns);

#endif
