/* The state of a connection of the observation port, with room for texts that helper threads make
 * for it.
 *
 * A connection has one request under way (channel.requestsMax is 1), so it needs room for only
 * one text of each kind. */
#ifndef DOMI_PROTOCOLS_OBSERVE_VIEWER_H
#define DOMI_PROTOCOLS_OBSERVE_VIEWER_H

#include <domus/domus.h>
#include <domus/log.h>

#include <stdatomic.h>

/* A page of the dump of actors for a viewer, which a helper thread makes. */
typedef struct domi_actors_page {
    domus_dump_filter filter;
    char behaviour[64]; /* name of the behaviour whose actors the page shows, with a zero byte */
    char *text;         /* text of the page, in allocated memory; NULL: no page was made */
} domi_actors_page;

/* The place of a viewer in the log (pages.h). */
typedef struct domi_follow {
    uint64_t next;         /* number of the next line of the log that the viewer gets */
    domus_log_level level; /* the viewer gets lines of this level and of more severe ones */
    bool follows;          /* the viewer has one of the places for viewers that follow the log */
} domi_follow;
/* A trace for which a viewer waits. */
typedef struct domi_viewer_trace {
    /* times at which the trace begins and ends; 0: the trace has what the recorders hold */
    uint64_t since_ns, end_ns;
    domus_slice bytes; /* the trace as bytes, which a helper thread has made */
} domi_viewer_trace;

/* A CPU profile for which a viewer waits, and which a helper thread takes. */
typedef struct domi_viewer_cpu {
    uint32_t seconds, frequency;
    bool is_svg; /* the profile is written as a flame graph; otherwise as folded stacks */
    const atomic_bool *is_gone; /* `is_gone` of the viewer, which ends the profile early */
    domus_slice text;
} domi_viewer_cpu;

/* A viewer's visit to the doctor, which lasts for the seconds that the viewer wants (pages.h). */
typedef struct domi_visit {
    /* the look at the beginning of the visit; NULL: the viewer has no place at the doctor */
    struct domi_shared_look *before;
    uint64_t end_ns;
    bool is_json;
} domi_visit;

/* The state of a viewer, which is a connection to the observation port. */
typedef struct domi_viewer {
    domi_actors_page page;
    domus_slice stalls; /* text of the last stalls that a helper thread has made; empty: none */
    domi_follow follow;
    bool is_live; /* the viewer has one of the places for streams of /live (live.h) */
    domi_viewer_trace trace;
    domi_viewer_cpu cpu;
    domi_visit visit;
    atomic_bool is_gone; /* the viewer's connection is closed; relaxed: it orders nothing */
} domi_viewer;

/* Handle a viewer's request for a page of the dump of actors. */
int domi_observe_serve_actors(domus_stack *stack, void *self, const void *payload);

/* Handle a viewer's GET /trace. */
int domi_observe_serve_trace(domus_stack *stack, void *self, const void *payload);

/* Handle a viewer's GET /profile?cpu=. */
int domi_observe_serve_cpu_profile(domus_stack *stack, void *self, const void *payload);

/* Returns whether a query asks for a CPU profile. */
bool domi_observe_does_query_ask_for_cpu(domus_slice query);

/* Free the text of a page of the dump of actors. */
void domi_free_text_of_actors_page(domi_actors_page *made);

#endif
