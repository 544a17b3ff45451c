/* The actor of a consumer, and the functions that its files call of each other.
 *
 * The server delivers to an inbox of the actor. Each fetch asks for messages with another last
 * token of the inbox, so that the status which ends an abandoned fetch is not taken for the end of
 * the next one. A message counts for the current fetch whichever fetch has asked for it. */
#ifndef DOMI_PROTOCOLS_NATS_JS_PULL_H
#define DOMI_PROTOCOLS_NATS_JS_PULL_H

#include "protocols/nats/js.h"

typedef struct domi_js_consumer {
    domus_address client;
    domus_slice create; /* JSON of the request that makes the consumer; owned */
    uint64_t random;
    uint64_t subscription;
    /* number of the consumer's current fetch, which is the last token of the reply subject */
    uint64_t fetches;
    uint64_t bytes; /* size of what `messages` hold, in bytes */
    /* messages that have come and were not fetched, `count` of them; owned */
    domus_nats_stream_message *messages;
    uint32_t count;
    uint32_t bytes_max;
    bool is_open;   /* the server has confirmed that the consumer exists */
    bool is_busy;   /* a fetch is opening the consumer; asks that come meanwhile are put aside */
    bool is_ended;  /* the server has told the end of the current fetch */
    bool is_shared; /* the consumer has a name that the user gave, so others may use it, too */
    int error;      /* error with which the server has ended the current fetch; 0: none */
    char inbox[DOMI_JS_INBOX_SIZE];
    char stream[DOMUS_NATS_STREAM_NAME_MAX + 1];
    /* name of the consumer; "": the server has not told it yet */
    char name[DOMUS_NATS_STREAM_NAME_MAX + 1];
} domi_js_consumer;

/* Open a consumer in two steps (js_consumer_open.c): subscribe to its inbox, if that was not done,
 * then make the consumer on the server. domi_js_store_number_of_subscription() handles the answer
 * to the first step, domi_js_store_name_of_made_consumer() the answer to the second. */
int domi_js_subscribe_to_consumer_inbox(domus_stack *stack, const domi_js_consumer *consumer,
                                        domus_resumed *then);
int domi_js_store_number_of_subscription(domi_js_consumer *consumer, const domus_answer *answer);
int domi_js_make_consumer_on_server(domus_stack *stack, const domi_js_consumer *consumer,
                                    domus_resumed *then);
int domi_js_store_name_of_made_consumer(domi_js_consumer *consumer, const domus_answer *answer);

/* Bytes of the frame of a DOMUS_SEQUENCE that serves a fetch (js_fetch.c). */
#define DOMI_JS_FETCH_FRAME 64u

int domi_js_serve_fetch(domus_stack *stack, void *self, const void *payload);

/* Keep a message of the consumer that comes while no fetch waits for it. */
int domi_js_keep_message_between_fetches(domus_stack *stack, void *self, const void *payload);

#endif
