/* The parts of a client: the origins that it knows, and the redirects that it follows. */
#ifndef DOMI_PROTOCOLS_HTTP_CLIENT_PARTS_H
#define DOMI_PROTOCOLS_HTTP_CLIENT_PARTS_H

#include <domus/http.h>
#include <domus/http_client.h>
#include <domus/http_url.h>
#include <domus/supervise.h>

/* ---- origins.c --------------------------------------------------------------------------------*/

/* The origins of a client, each with its pool. The client's actor alone uses this. */

/* An origin that has a pool. */
typedef struct domi_http_origin {
    domus_address pool; /* its pool; nobody: the place is free */
    uint64_t used;      /* number of the last request that has used it */
    uint32_t under_way; /* requests that are under way */
    uint32_t host_size;
    uint16_t port;
    bool secure;
    char host[DOMUS_HTTP_HOST_MAX];
} domi_http_origin;

typedef struct domi_http_origins {
    /* the options with every default filled in, except `channel`, which is not used */
    domus_http_client_options options;
    domus_channel_options channel;
    uint64_t requests; /* requests that were asked so far */
    uint32_t leaving;  /* pools that were told to end, and have not ended yet */
    domi_http_origin list[DOMUS_HTTP_ORIGINS_MAX];
} domi_http_origins;

/* Find the pool for a URL, or open one. Returns 0; -EPROTONOSUPPORT; -EBUSY when too many origins
 * are in use; an error of domus_pool_open(). */
int domi_http_find_pool(domus_stack *stack, domi_http_origins *origins, const domus_http_url *url,
                        domus_address *ret_pool);

/* Count the begin, and the end, of a request by this pool. */
void domi_http_begin_request(domi_http_origins *origins, domus_address pool);
void domi_http_end_request(domi_http_origins *origins, domus_address pool);

/* Free the place of a pool that has ended. */
void domi_http_note_down(domi_http_origins *origins, const domus_down *down);

/* ---- redirect.c -------------------------------------------------------------------------------*/

/* Redirects of a client: which answers are followed, and by which request. */

/* A request at one of the stations to which redirects lead. It owns its slices. */
typedef struct domi_http_hop {
    domus_slice target; /* target as a whole URL */
    domus_slice fields;
    uint8_t method;
    bool has_body; /* the next request has the body of the first one */
} domi_http_hop;

void domi_http_free_hop(domi_http_hop *hop);

/* Returns whether an answer has the status and the Location of a redirect. */
bool domi_http_is_redirect(const domus_http_response *response);

/* Flags for the schemes to which redirects may lead. */
enum {
    DOMI_HTTP_TO_HTTPS = 1,   /* from http to https */
    DOMI_HTTP_FROM_HTTPS = 2, /* from https to http */
};

/* Make the hop to which a redirect leads, in place of `hop`, which is freed. Returns 0; -ENOMEM;
 * -EINVAL if the redirect must not be followed. After an error `hop` is unchanged. */
int domi_http_follow(domi_http_hop *hop, const domus_http_response *response, uint32_t may);

#endif
