/* Inner channels: channels without a descriptor, whose bytes travel in frames of another channel of
 * the same thread, the outer one. The insides of domus/inner.h.
 *
 * An inner channel has the slot, the house, the limits and the states of every channel
 * (io/channels/channel.h), and a domi_inner besides, by which it receives and sends:
 *
 *   in    The stage of the outer channel puts bytes into `inbound`, as a completion would. It is
 *         told when they have been used, and so can give its peer credit.
 *   out   The queued bytes stay in `outbound` until the stage takes them. `sending` is set
 *         meanwhile, so channel.sendTimeout bounds the wait.
 *
 * Both sides have the domi_inner: the channel until it is CLOSED, and the stage until it drops it.
 * The later of the two frees it. Owner thread. */
#ifndef DOMI_IO_INNER_INNER_H
#define DOMI_IO_INNER_INNER_H

#include "io/channels/channel.h"
#include "io/wire/inner.h"

typedef struct domi_inner {
    /* the part to which the channel's field `special` points, which comes first; its `outer` is
     * NULL when the stage has dropped the inner channel */
    domi_special special;
    domus_inner base; /* the part of an inner channel that the stage of the outer one sees */
    /* the name of the stage of the outer channel that has opened this inner channel */
    const char *carrier;
    domus_channel *channel; /* the inner channel itself; NULL: it is CLOSED */
    /* the last piece of bytes that was passed to the inner channel, while it is in `inbound` */
    domus_buffer *tail;
    uint32_t tail_room; /* number of free bytes in the piece `tail` */
    int error;          /* the error with which the inner channel has ended */
    bool has_news; /* the inner channel is in the list `news` of its outer channel's pipeline */
    bool finished; /* the inner channel sends nothing behind the queued bytes */
    struct domi_inner *next_news;
} domi_inner;

/* Tell the stage of the outer channel that the inner channel has something new for it. */
void domi_inner_tell_stage_news(domi_inner *inner);

/* Free the record of an inner channel if neither the channel nor the stage has it any more. */
void domi_inner_free_if_unused(domi_inner *inner);

/* The functions by which an inner channel does without a descriptor what other channels do with one
 * (ways.c). */
extern const domi_channel_ways domi_ways_of_inner_channels;

/* The functions by which a stage of the outer channel acts on an inner channel (pass.c). */
extern const domi_inner_ways domi_ways_of_inner;

/* The functions by which a stage of the outer channel makes inner channels, and reads and sets
 * properties of the outer one (make.c). */
extern const domi_inners domi_ways_of_inners;

/* Call the stages of outer channels whose inner channels have news (carry.c). */
void domi_io_call_carrying_stages(domi_io *io);

#endif
