/* Channels in the storm (storm.h). It is checked, whatever the channels and their peers do, that
 * on_open, on_read, on_end and on_close come in this order, for the channel whose actor runs; that
 * each opened channel is closed, and each mounted one stopped. */
#ifndef DOMT_STORM_CHANNELS_H
#define DOMT_STORM_CHANNELS_H

#include "tests/runtime/storm.h"

enum domt_line_deed {
    DOMT_LINE_READ,
    DOMT_LINE_CLOSE,
    DOMT_LINE_RESET,
    DOMT_LINE_FINISH,
    DOMT_LINE_PAUSE,
    DOMT_LINE_STOP,
    DOMT_LINE_REFUSE,
    DOMT_LINE_ESCALATE,
    DOMT_LINE_UNMOUNTED, /* mounts that failed */
    DOMT_LINE_OUTLIVED,  /* conversations that went on without their connection */
    DOMT_LINE_DEEDS,
};

extern _Atomic uint64_t domt_channels_deeds[DOMT_LINE_DEEDS];
extern _Atomic uint64_t domt_channels_open; /* channels that were opened and not closed */
/* channels and owners that were mounted and not stopped */
extern _Atomic uint64_t domt_channels_mounted;

#define DOMT_STORM_OWNERS 3u

extern const domus_behaviour domt_storm_owners[DOMT_STORM_OWNERS];

#endif
