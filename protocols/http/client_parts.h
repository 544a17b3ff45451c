/* The parts of an HTTP client: the origins that it knows, each with its pool of connections, and
 * the redirects that it follows. */
#ifndef DOMI_PROTOCOLS_HTTP_CLIENT_PARTS_H
#define DOMI_PROTOCOLS_HTTP_CLIENT_PARTS_H

#include <domus/http.h>
#include <domus/http_client.h>
#include <domus/http_url.h>
#include <domus/supervise.h>

/* ---- origins.c --------------------------------------------------------------------------------*/

/* The origins that a client asks, each with its pool of connections. Only the client's actor uses
 * this. */

/* An origin (scheme, host and port) of a client that has a pool of connections. */
typedef struct domi_http_origin {
    domus_address pool; /* the pool of the origin; nobody: this place is free */
    uint64_t used;      /* number of the last request that has used the origin */
    uint32_t under_way; /* number of requests to the origin that are under way */
    uint32_t host_size;
    uint16_t port;
    bool secure;
    char host[DOMUS_HTTP_HOST_MAX];
} domi_http_origin;

typedef struct domi_http_origins {
    /* the options of the client with every default filled in; `channel` in them is not used */
    domus_http_client_options options;
    domus_channel_options channel;
    uint64_t requests; /* number of requests that the client has sent so far */
    uint32_t leaving;  /* number of pools of the client that were told to end and have not yet */
    domi_http_origin list[DOMUS_HTTP_ORIGINS_MAX];
} domi_http_origins;

/* Find the pool of a URL's origin, or open one. Returns 0; -EPROTONOSUPPORT; -EBUSY when too many
 * origins are in use; an error of domus_pool_open(). */
int domi_http_find_pool_of_origin(domus_stack *stack, domi_http_origins *origins,
                                  const domus_http_url *url, domus_address *ret_pool);

/* Count a request to this pool as under way; count the end of a request to this pool. */
void domi_http_count_begun_request_of_pool(domi_http_origins *origins, domus_address pool);
void domi_http_count_ended_request_of_pool(domi_http_origins *origins, domus_address pool);

/* Free the place of an origin whose pool has ended. */
void domi_http_free_origin_of_ended_pool(domi_http_origins *origins, const domus_down *down);

/* ---- redirect.c -------------------------------------------------------------------------------*/

/* The redirects of a client: which answers are followed, and by which requests. */

/* A request as it is sent to one of the URLs to which redirects lead. It owns its slices. */
typedef struct domi_http_hop {
    domus_slice target; /* target of the request as a whole URL */
    domus_slice fields;
    uint8_t method;
    bool has_body; /* the request that follows the redirect has the body of the first request */
} domi_http_hop;

void domi_http_free_request_of_next_hop(domi_http_hop *hop);

/* Returns whether an answer has the status and the Location of a redirect. */
bool domi_http_is_answer_redirect(const domus_http_response *response);

/* Flags for the changes of scheme that redirects may make. */
enum {
    DOMI_HTTP_TO_HTTPS = 1,   /* redirects may lead from http to https */
    DOMI_HTTP_FROM_HTTPS = 2, /* redirects may lead from https to http */
};

/* Make the request to which a redirect leads, in place of `hop`, which is freed. Returns 0;
 * -ENOMEM; -EINVAL if the redirect must not be followed. After an error `hop` is unchanged. */
int domi_http_follow_redirect(domi_http_hop *hop, const domus_http_response *response,
                              uint32_t may);

#endif
