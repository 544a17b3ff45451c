/* Redirects of a client: which answers are followed, and by what request. */
#ifndef DOMI_PROTOCOLS_HTTP_REDIRECT_H
#define DOMI_PROTOCOLS_HTTP_REDIRECT_H

#include <domus/http.h>

/* A request on the way from one redirect to the next. It owns the slices. */
typedef struct domi_http_hop {
    domus_slice target; /* a whole address */
    domus_slice fields;
    uint8_t method;
    bool has_body; /* the next request has the body of the first one */
} domi_http_hop;

void domi_http_free_hop(domi_http_hop *hop);

/* Whether an answer has the status and the field of a redirect. */
bool domi_http_is_redirect(const domus_http_response *response);

/* Where redirects may lead. */
enum {
    DOMI_HTTP_TO_HTTPS = 1,   /* to https */
    DOMI_HTTP_FROM_HTTPS = 2, /* from https to http */
};

/* Make the hop that follows `hop`, and free that. Returns 0; -ENOMEM; -EINVAL if the redirect is
 * not one that may be followed. With an error `hop` is as it was. */
int domi_http_follow(domi_http_hop *hop, const domus_http_response *response, uint32_t may);

#endif
