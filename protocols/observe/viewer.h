/* The state of a connection of the observation port, with room for texts that helper threads make
 * for it.
 *
 * A connection has one request under way (channel.requestsMax is 1), so it needs room for only one
 * of each. */
#ifndef DOMI_PROTOCOLS_OBSERVE_VIEWER_H
#define DOMI_PROTOCOLS_OBSERVE_VIEWER_H

#include <domus/domus.h>
#include <domus/log.h>

#include <stdatomic.h>

/* A page of the dump of actors, which a helper thread makes. */
typedef struct domi_actors_page {
    domus_dump_filter filter;
    char behaviour[64]; /* name of the behaviour in the filter, with a zero */
    char *text;         /* text of the page, in allocated memory; NULL: none was made */
} domi_actors_page;

/* The state of a viewer of the log (pages.h). */
typedef struct domi_follow {
    uint64_t next;         /* number of the next line that the viewer gets */
    domus_log_level level; /* lines of this level and of more severe ones are sent */
    bool follows;          /* the viewer has one of the places for those that follow */
} domi_follow;
/* A trace that a viewer has asked for. */
typedef struct domi_viewer_trace {
    /* time at which the trace begins, and time at which it ends; 0: it has what the rings hold */
    uint64_t since_ns, end_ns;
    domus_slice bytes; /* the trace, which a helper thread has made */
} domi_viewer_trace;

/* A CPU profile that a viewer has asked for, which a helper thread takes. */
typedef struct domi_viewer_cpu {
    uint32_t seconds, frequency;
    bool is_svg;                /* true: the profile is a flame graph; false: folded stacks */
    const atomic_bool *is_gone; /* flag of the viewer that its connection is closed */
    domus_slice text;
} domi_viewer_cpu;

/* A viewer of the doctor (pages.h) that waits for the end of its seconds. */
typedef struct domi_visit {
    struct domi_shared_look *before; /* the first look; NULL: the viewer has no place */
    uint64_t end_ns;
    bool is_json;
} domi_visit;

/* The state of a connection. */
typedef struct domi_viewer {
    domi_actors_page page;
    domus_slice stalls; /* text of stalls that a helper thread has made; empty: none */
    domi_follow follow;
    bool is_live; /* the viewer has one of the places of /live (live.h) */
    domi_viewer_trace trace;
    domi_viewer_cpu cpu;
    domi_visit visit;
    atomic_bool is_gone; /* the connection of the viewer is closed; relaxed: it orders nothing */
} domi_viewer;

/* Handle a request for a page of actors. */
int domi_observe_serve_actors(domus_stack *stack, void *self, const void *payload);

/* Handle GET /trace for a viewer. */
int domi_observe_serve_trace(domus_stack *stack, void *self, const void *payload);

/* Handle GET /profile?cpu= for a viewer. */
int domi_observe_serve_cpu(domus_stack *stack, void *self, const void *payload);

/* Returns whether a query asks for a CPU profile. */
bool domi_observe_wants_cpu(domus_slice query);

/* Free the text of a page of actors. */
void domi_actors_page_free(domi_actors_page *made);

#endif
