/* The actor of a consumer, and the doors between its files.
 *
 * The server delivers to an inbox of the actor. A fetch asks for messages, each time with another
 * last token of the inbox, so that the end of a fetch that nobody waits for any more is not taken
 * for that of the next one. Messages are the same to whichever fetch they come. */
#ifndef DOMI_PROTOCOLS_NATS_JS_PULL_H
#define DOMI_PROTOCOLS_NATS_JS_PULL_H

#include "protocols/nats/js.h"

typedef struct domi_js_consumer {
    domus_address client;
    domus_slice create; /* JSON of the request that makes it; owned */
    uint64_t random;
    uint64_t subscription;
    uint64_t fetches;                    /* the last token of the inbox */
    uint64_t bytes;                      /* of the messages that are here */
    domus_nats_stream_message *messages; /* those that have come, `count` of them; owned */
    uint32_t count;
    uint32_t bytes_max;
    bool is_open;   /* the server has said that the consumer is there */
    bool is_busy;   /* a fetch opens it; further asks are put aside */
    bool is_ended;  /* the server has ended the fetch */
    bool is_shared; /* the consumer has a name that others may know, too */
    int error;      /* of the fetch that has ended */
    char inbox[DOMI_JS_INBOX_SIZE];
    char stream[DOMUS_NATS_STREAM_NAME_MAX + 1];
    char name[DOMUS_NATS_STREAM_NAME_MAX + 1]; /* "": the server has not said it yet */
} domi_js_consumer;

/* Subscribe to the inbox, if that is not done, and make the consumer (js_consumer.c). The answer
 * goes to domi_js_consumer_subscribed() and domi_js_consumer_made(). */
int domi_js_consumer_subscribe(domus_stack *stack, const domi_js_consumer *consumer,
                               domus_resumed *then);
int domi_js_consumer_subscribed(domi_js_consumer *consumer, const domus_answer *answer);
int domi_js_consumer_make(domus_stack *stack, const domi_js_consumer *consumer,
                          domus_resumed *then);
int domi_js_consumer_made(domi_js_consumer *consumer, const domus_answer *answer);

/* Bytes of the frame of the row of a fetch (js_fetch.c). */
#define DOMI_JS_FETCH_FRAME 64u

int domi_js_serve_fetch(domus_stack *stack, void *self, const void *payload);

/* Take a message that comes when no fetch waits for it. */
int domi_js_take_message(domus_stack *stack, void *self, const void *payload);

#endif
