/* Redirects of a client: which answers are followed, and by which request. */
#ifndef DOMI_PROTOCOLS_HTTP_REDIRECT_H
#define DOMI_PROTOCOLS_HTTP_REDIRECT_H

#include <domus/http.h>

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
