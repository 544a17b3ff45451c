/* The state of a connection of the observation port: room for what helper threads make for it.
 *
 * A connection has one request under way (channel.requestsMax is 1), so there is room for one of
 * each. */
#ifndef DOMI_PROTOCOLS_OBSERVE_VIEWER_H
#define DOMI_PROTOCOLS_OBSERVE_VIEWER_H

#include <domus/domus.h>
#include <domus/log.h>

#include <stdatomic.h>

/* A page of a dump, which a helper thread makes. */
typedef struct domi_actors_page {
    domus_dump_filter filter;
    char behaviour[64]; /* the name in the filter, with a NUL */
    char *text;         /* on the heap; NULL: none was made */
} domi_actors_page;

/* The place of a viewer in the log (log.h). */
typedef struct domi_follow {
    uint64_t next;         /* the number of the line that it gets next */
    domus_log_level level; /* the viewer gets lines of this level and of more severe ones */
    bool follows;          /* the viewer has a place among those that follow */
} domi_follow;
/* A trace that a viewer has asked for. */
typedef struct domi_viewer_trace {
    uint64_t since_ns, end_ns; /* 0: what the rings hold */
    domus_slice bytes;         /* made by a helper thread */
} domi_viewer_trace;

/* A CPU profile that a viewer has asked for, which a helper thread takes. */
typedef struct domi_viewer_cpu {
    uint32_t seconds, frequency;
    bool is_svg;                /* a flame graph; else folded stacks */
    const atomic_bool *is_gone; /* of the viewer */
    domus_slice text;
} domi_viewer_cpu;

/* The visit at the doctor (visit.h) of a viewer that waits for the end of its seconds. */
typedef struct domi_visit {
    struct domi_shared_look *before; /* NULL: it has no place */
    uint64_t end_ns;
    bool is_json;
} domi_visit;

/* The state of a connection. */
typedef struct domi_viewer {
    domi_actors_page page;
    domus_slice stalls; /* a text that a helper thread has made; empty: none */
    domi_follow follow;
    bool is_live; /* the viewer has one of the places of /live (live.h) */
    domi_viewer_trace trace;
    domi_viewer_cpu cpu;
    domi_visit visit;
    atomic_bool is_gone; /* its connection is closed. Relaxed: it orders nothing */
} domi_viewer;

/* Answer a request for a page; a handler of a viewer. */
int domi_observe_serve_actors(domus_stack *stack, void *self, const void *payload);

/* Answer GET /trace; a handler of a viewer. */
int domi_observe_serve_trace(domus_stack *stack, void *self, const void *payload);

/* Answer GET /profile?cpu=; part of a handler of a viewer. */
int domi_observe_serve_cpu(domus_stack *stack, void *self, const void *payload);

/* Returns whether a query wants such a profile. */
bool domi_observe_wants_cpu(domus_slice query);

/* Free the text of a page. */
void domi_actors_page_free(domi_actors_page *made);

#endif
