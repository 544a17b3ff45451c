/* A bucket, stream or consumer in a test kit, with a probe in place of the client: the test answers
 * as a server would. */
#ifndef DOMT_JS_WORLD_H
#define DOMT_JS_WORLD_H

#include <domus/nats_kv.h>
#include <domus/testkit.h>

#define DOMT_SECOND UINT64_C(1000000000)

typedef struct domt_js_world {
    domus_testkit *kit;
    domus_probe *client;
    domus_probe *user;
    domus_address opened; /* address of the bucket, stream or consumer under test */
} domt_js_world;

void domt_js_world_begin(domt_js_world *world);

/* Stop the kit's system, and check that all memory was freed. */
void domt_js_world_end(domt_js_world *world);

/* Open a bucket, stream or consumer that has the probe `world->client` as its client. Returns the
 * result of the opening function. */
int domt_js_open_bucket(domt_js_world *world, const domus_nats_kv_options *options);
int domt_js_open_stream(domt_js_world *world, const domus_nats_stream_options *options);
int domt_js_open_consumer(domt_js_world *world, const domus_nats_consumer_options *options);

/* Check that the client's probe gets a publication with this content, as a request or as an ask or
 * notice of `type`. `headers` is the block without its first line and the empty line, or NULL for
 * none; a `body` of NULL allows any. The reply subject is copied to `reply` if that is not NULL. */
void domt_js_expect_publication(domt_js_world *world, const domus_type *type, const char *subject,
                                const char *headers, const char *body, char reply[64]);
void domt_js_expect_request(domt_js_world *world, const char *subject, const char *headers,
                            const char *body);

/* Answer the last request that the client's probe got. `headers` is a whole block, or NULL. */
void domt_js_answer_request(domt_js_world *world, const char *headers, const char *payload);

/* Make a message as the client gets it from a server. `reply` may be NULL. */
domus_nats_message domt_js_make_message(const char *subject, const char *reply, const char *headers,
                                        const char *payload);

/* Let the client's probe deliver a message to a subscriber as a notice, with this tag. */
void domt_js_deliver_message(domt_js_world *world, domus_address to, uint64_t tag,
                             domus_nats_message message);

/* Check that the ask of `world->user` has failed with this error. */
void domt_js_expect_failed_ask(domt_js_world *world, int error);

/* Expect an ask for a subscription, and answer with this number. Returns the subscriber's address,
 * and the tag. */
domus_address domt_js_expect_subscription(domt_js_world *world, uint64_t number, uint64_t *ret_tag,
                                          char inbox[64]);
/* Check that the client is asked to end the subscription `number`, at once or within this time. */
void domt_js_expect_unsubscription(domt_js_world *world, uint64_t number);
void domt_js_expect_unsubscription_within(domt_js_world *world, uint64_t number,
                                          uint64_t within_ns);

bool domt_js_slice_has_text(domus_slice slice, const char *text);

#endif
