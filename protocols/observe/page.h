/* The live page, as the build has put it together (page/page.cmake). */
#ifndef DOMI_PROTOCOLS_OBSERVE_PAGE_H
#define DOMI_PROTOCOLS_OBSERVE_PAGE_H

#include <domus/domus.h>

typedef struct domi_page {
    const unsigned char *plain; /* HTML with its style and script in it */
    size_t plain_size;
    const unsigned char *packed; /* the same by gzip */
    size_t packed_size;
    const char *policy; /* the Content-Security-Policy, by which no other script runs */
} domi_page;

extern const domi_page domi_observe_page;

/* Answer a request for /; a handler of a viewer. One that accepts HTML gets the page, and others a
 * list of all paths. */
int domi_observe_serve_page(domus_stack *stack, void *self, const void *payload);

#endif
