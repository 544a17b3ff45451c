/* Relays the bytes of two peers that have changed to another protocol. Each direction reads a
 * piece, writes it, and reads the next one when the receiver accepts more; the directions do not
 * wait for each other. So each holds one piece, and a peer that does not read slows only its own
 * sender. */
#ifndef DOMI_PROTOCOLS_HTTP_RELAY_H
#define DOMI_PROTOCOLS_HTTP_RELAY_H

#include <domus/conversation.h>
#include <domus/stream.h>

/* Tags of the answers that are waited for; tag 0 is used for other things. */
enum {
    DOMI_HTTP_READ_UP = 1,
    DOMI_HTTP_READ_DOWN,
    DOMI_HTTP_WRITTEN_UP,
    DOMI_HTTP_WRITTEN_DOWN,
};

/* Both directions between a client and a server. */
typedef struct domi_http_ways {
    domus_request request; /* the request, by which bytes go to the server */
    /* the answer, by which bytes go to the client; domi_http_begin_relay() sets it */
    domus_stream answer;
    /* bytes from the client; of number 0: there are none, or they have ended */
    domus_body up;
    domus_body down; /* bytes from the server; of number 0: as in `up` */
    bool waits_up;   /* a read or write of the direction to the server is under way */
    bool waits_down;
} domi_http_ways;

/* Begin to relay, after the answer 101, in the conversation of the request on the client's channel.
 * Returns as domus_wait_first(). */
int domi_http_begin_relay(domus_stack *stack, domi_http_ways *ways, domus_resumed *then);

/* Continue to relay after this answer. Returns as domus_wait_first(); 0 when both directions have
 * ended; or an error, which ends both. */
int domi_http_relay(domus_stack *stack, domi_http_ways *ways, const domus_answer *answer,
                    domus_resumed *then);

#endif
