/* The sampler of /live (live.h): what a viewer asks it, and what it answers. */
#ifndef DOMI_PROTOCOLS_OBSERVE_SAMPLER_H
#define DOMI_PROTOCOLS_OBSERVE_SAMPLER_H

#include <domus/domus.h>

/* An ask for the tick behind the one that was seen; 0: none was. The answer is a domi_live_tick. It
 * fails with -ESHUTDOWN once the program stops. */
typedef struct domi_live_next {
    uint64_t serial;
} domi_live_next;

/* A tick, as events. */
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
