/* Relays the bytes of two peers that have changed to another protocol. Each direction reads a
 * piece, writes it, and reads the next one when the other side takes more; the two do not wait for
 * each other. So each holds one piece, and a peer that does not read slows its own sender alone. */
#ifndef DOMI_PROTOCOLS_HTTP_RELAY_H
#define DOMI_PROTOCOLS_HTTP_RELAY_H

#include <domus/conversation.h>
#include <domus/stream.h>

/* Tags of what is waited for; 0 is that of other things. */
enum {
    DOMI_HTTP_READ_UP = 1,
    DOMI_HTTP_READ_DOWN,
    DOMI_HTTP_WRITTEN_UP,
    DOMI_HTTP_WRITTEN_DOWN,
};

/* Both directions between a client and a server. */
typedef struct domi_http_ways {
    domus_request request; /* to the server */
    domus_stream answer;   /* to the client; begin_relay sets it */
    domus_body up;         /* from the client; of number 0: there is none, or it has ended */
    domus_body down;       /* from the server, as this */
    bool waits_up;         /* a piece of that way is read, or written */
    bool waits_down;
} domi_http_ways;

/* Begin, behind the answer 101, in the conversation of the request of the client's channel.
 * Returns as domus_wait_first(). */
int domi_http_begin_relay(domus_stack *stack, domi_http_ways *ways, domus_resumed *then);

/* Go on behind this answer. Returns as domus_wait_first(); 0 at the end of both ways; or an error,
 * which cuts both. */
int domi_http_relay(domus_stack *stack, domi_http_ways *ways, const domus_answer *answer,
                    domus_resumed *then);

#endif
