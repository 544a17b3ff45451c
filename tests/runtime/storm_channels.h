/* Channels in the storm (storm.h). Held whatever they and their peers do: on_open, on_read, on_end
 * and on_close come in this order, for the channel whose actor runs; what was opened is closed, and
 * what was mounted is stopped. */
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
    DOMT_LINE_UNMOUNTED, /* a mount that failed */
    DOMT_LINE_OUTLIVED,  /* a conversation that went on without its connection */
    DOMT_LINE_DEEDS,
};

extern _Atomic uint64_t domt_channels_deeds[DOMT_LINE_DEEDS];
extern _Atomic uint64_t domt_channels_open;    /* opened and not closed */
extern _Atomic uint64_t domt_channels_mounted; /* channels and owners, mounted and not stopped */

#define DOMT_STORM_OWNERS 3u

extern const domus_behaviour domt_storm_owners[DOMT_STORM_OWNERS];

#endif
