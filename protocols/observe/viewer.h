/* The state of a connection of the observation port: room for what helper threads make for it.
 *
 * A connection has one request under way (channel.requestsMax is 1), so there is room for one of
 * each. */
#ifndef DOMI_PROTOCOLS_OBSERVE_VIEWER_H
#define DOMI_PROTOCOLS_OBSERVE_VIEWER_H

#include <domus/domus.h>
#include <domus/log.h>

/* A page of a dump, which a helper thread makes. */
typedef struct domi_actors_page {
    domus_dump_filter filter;
    char behaviour[64]; /* the name in the filter, with a NUL */
    char *text;         /* on the heap; NULL: none was made */
} domi_actors_page;

/* The place of a viewer in the log (log.h). */
typedef struct domi_follow {
    uint64_t next;         /* the number of the line that it gets next */
    domus_log_level level; /* it gets lines of this level, and those that are more severe */
    bool follows;          /* it has one of the places of those that follow */
} domi_follow;

/* The state of a connection. */
typedef struct domi_viewer {
    domi_actors_page page;
    domus_slice stalls; /* a text that a helper thread has made; empty: none */
    domi_follow follow;
    bool is_live; /* it has one of the places of /live (live.h) */
} domi_viewer;

/* Answer a request for a page; a handler of a viewer. */
int domi_observe_serve_actors(domus_stack *stack, void *self, const void *payload);

/* Free the text of a page. */
void domi_actors_page_free(domi_actors_page *made);

#endif
