/* /live: the counters of a program four times a second, as server-sent events (domus/http_event.h).
 *
 * One actor of the port, the sampler (sampler.c), reads all counters at each tick and makes one
 * text of them (sample.c), which all viewers share. A viewer (live.c) asks for the tick after the
 * last one that it has seen, and the sampler keeps the ask until that tick comes. So a viewer that
 * reads slowly asks late and misses ticks, and nothing queues up for it. While no viewer asks there
 * are no ticks. */
#ifndef DOMI_PROTOCOLS_OBSERVE_LIVE_H
#define DOMI_PROTOCOLS_OBSERVE_LIVE_H

#include <domus/domus.h>

struct domi_viewer;

/* bytes of the frame of the DOMUS_SEQUENCE that serves a request for /live */
#define DOMI_LIVE_FRAME_MAX 64u

/* Start the sampler in the system of the port, before the port is served. Returns 0; or as
 * domus_outside_spawn(). */
int domi_live_start_sampler(domus_system *port);

/* End all streams because the program begins to stop; no more begin. Thread-safety: any thread,
 * while the system of the port runs. */
void domi_live_end_all_streams(domus_system *port);

/* Handle a viewer's request for /live. The frame of this handler has DOMI_LIVE_FRAME_MAX bytes. */
int domi_observe_serve_live(domus_stack *stack, void *self, const void *payload);

/* Free the place for a stream of /live that a viewer has, if it has one. */
void domi_live_free_place_of_viewer(struct domi_viewer *viewer);

#endif
