/* Channels in the storm (tests/runtime/storm.h). Whatever channels and peers do, it is checked that
 * on_open, on_read, on_end and on_close are called in this order, for the channel whose actor runs,
 * that each opened channel is closed, and that each mounted one is stopped. */
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
    DOMT_LINE_UNMOUNTED, /* counts mounts of channels that failed */
    DOMT_LINE_OUTLIVED,  /* counts conversations that went on after their connection had ended */
    DOMT_LINE_DEEDS,
};

extern _Atomic uint64_t domt_channels_deeds[DOMT_LINE_DEEDS];
/* number of channels that were opened and are not closed yet */
extern _Atomic uint64_t domt_channels_open;
/* number of channels and owners that were mounted and are not stopped yet */
extern _Atomic uint64_t domt_channels_mounted;

#define DOMT_STORM_OWNERS 3u

extern const domus_behaviour domt_storm_owners[DOMT_STORM_OWNERS];

#endif
