/* The live page, which the build has assembled (page/page.cmake). */
#ifndef DOMI_PROTOCOLS_OBSERVE_PAGE_H
#define DOMI_PROTOCOLS_OBSERVE_PAGE_H

#include <domus/domus.h>

typedef struct domi_page {
    const unsigned char *plain; /* HTML that contains its style and script */
    size_t plain_size;
    const unsigned char *packed; /* the same HTML, compressed by gzip */
    size_t packed_size;
    const char *policy; /* the Content-Security-Policy, which forbids any other script */
} domi_page;

extern const domi_page domi_observe_page;

/* Handle a request for / of a viewer: one that accepts HTML gets the page, and others get a list of
 * all paths. */
int domi_observe_serve_page(domus_stack *stack, void *self, const void *payload);

#endif
