/* /live: the counters of a program four times a second, as server-sent events (domus/http_event.h).
 *
 * One actor of the port, the sampler (sampler.c), reads all counters at each tick and makes one
 * text of them (sample.c), which all viewers share. A viewer (live.c) asks for the tick behind the
 * last one that it has seen, and the sampler keeps the ask until there is one. So a viewer that
 * reads slowly asks late and misses ticks, and nothing piles up for it. While nobody asks there are
 * no ticks. */
#ifndef DOMI_PROTOCOLS_OBSERVE_LIVE_H
#define DOMI_PROTOCOLS_OBSERVE_LIVE_H

#include <domus/domus.h>

#define DOMI_LIVE_FRAME_MAX 64u /* bytes of the frame of a request for /live */

/* Start the sampler in the system of the port, before it is served. Returns 0; what
 * domus_outside_spawn() says. */
int domi_live_begin(domus_system *port);

/* The program begins to stop: all streams end, and no more begin. Thread-safety: any thread, while
 * the system of the port runs. */
void domi_live_end(domus_system *port);

/* Answer a request for /live; a handler of a viewer. Its frame has DOMI_LIVE_FRAME_MAX bytes. */
int domi_observe_serve_live(domus_stack *stack, void *self, const void *payload);

/* --- the sampler ------------------------------------------------------------------------------ */

/* An ask for the tick behind the one that was seen; 0: none was. The answer is a domi_live_tick. It
 * fails with -ESHUTDOWN once the program stops. */
typedef struct domi_live_next {
    uint64_t serial;
} domi_live_next;

/* What happened at a tick, as events. */
typedef struct domi_live_tick {
    domus_slice names; /* for a viewer that has seen no tick; else empty */
    domus_slice sample;
    uint64_t serial;
} domi_live_tick;

extern const domus_type domi_live_next_type, domi_live_tick_type, domi_live_end_type;
extern const domus_behaviour domi_live_sampler;

/* How many streams there may be at a time: half of observe.viewersMax, so that a page that looks
 * does not keep a scrape out. */
uint32_t domi_live_streams_max(void);

#endif
