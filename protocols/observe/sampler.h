/* The messages between a viewer and the sampler of /live (live.h). */
#ifndef DOMI_PROTOCOLS_OBSERVE_SAMPLER_H
#define DOMI_PROTOCOLS_OBSERVE_SAMPLER_H

#include <domus/domus.h>

/* A viewer's ask to the sampler for the tick after the one with the number `serial`; 0: the viewer
 * has seen none. The answer is a domi_live_tick. The ask fails with -ESHUTDOWN once the program
 * stops. */
typedef struct domi_live_next {
    uint64_t serial;
} domi_live_next;

/* The sampler's answer to a viewer: a tick as server-sent events. */
typedef struct domi_live_tick {
    /* the event with the names, for a viewer that has seen no tick; otherwise empty */
    domus_slice names;
    domus_slice sample;
    uint64_t serial;
} domi_live_tick;

extern const domus_type domi_live_next_type, domi_live_tick_type, domi_live_end_type;
extern const domus_behaviour domi_live_sampler;

/* Returns how many streams of /live there may be: half of observe.viewersMax, so that live pages
 * leave room for a scrape of metrics. */
uint32_t domi_live_max_streams(void);

#endif
