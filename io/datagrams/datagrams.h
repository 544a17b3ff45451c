/* Channels of datagrams: UDP, and Unix sockets of type SOCK_DGRAM.
 *
 * Such a channel has the slot, the house, the limits and the states of every channel
 * (io/channels/channel.h), and a domi_datagrams besides, by whose functions it receives and sends.
 * A received datagram is one buffer, in front of whose content its head stands
 * (io/backend/backend.h), with the address of its sender. A queued datagram is a buffer in
 * `outbound` that points to a domi_datagram, with the address of its receiver.
 *
 * Many sends may be in flight: a service has one socket for all of its peers, so one send for
 * each enter would be one peer for each enter. A send never waits in the kernel, so all of a
 * batch come back with the next enter, and the next batch begins when all are back. Datagrams for
 * which the kernel had no room stay in `outbound` in their order, and are sent again when a poll
 * has told of room. Unix datagrams are sent one for each enter, because users rely on their
 * order. Owner thread. */
#ifndef DOMI_IO_DATAGRAMS_DATAGRAMS_H
#define DOMI_IO_DATAGRAMS_DATAGRAMS_H

#include "io/channels/channel.h"

#include <domus/datagram.h>

/* number of bytes that a queued datagram counts besides its contents, which is the size of a
 * domi_datagram */
#define DOMI_DATAGRAM_COST 128u

/* A datagram of a channel that waits to be sent, or is being sent. */
typedef struct domi_datagram {
    DOMI_KEEP_PLACE(8) domus_channel *channel; /* the channel on which the datagram was queued */
    /* the bytes of the datagram, in `outbound` of the channel */
    DOMI_KEEP_PLACE(8) domus_buffer *buffer;
    uint8_t name_size; /* number of bytes of `name`; 0: the datagram goes to the connected peer */
    unsigned char name[110]; /* destination of the datagram: a struct sockaddr_in, _in6 or _un */
} domi_datagram;

/* The fields of a channel that only channels of datagrams have. */
typedef struct domi_datagrams {
    /* the part that the channel shares with inner channels, which comes first */
    domi_special special;
    /* counters of the channel's datagrams, which domus_datagram_counts() returns */
    domus_datagram_counters counts;
    /* time at which the kernel was last asked how many datagrams of the socket it has thrown
     * away */
    uint64_t looked_ns;
    /* number of thrown away datagrams that the kernel told when it was last asked */
    uint32_t lost_seen;
    uint16_t family; /* family of the channel's socket: AF_INET, AF_INET6 or AF_UNIX */
    /* number of the channel's sends in flight; `sending` is set while there are some */
    uint8_t flying;
    bool is_connected; /* the channel of datagrams has one peer, to which its socket is connected */
    bool ends_on_error; /* the first error of the connected peer ends the channel */
    bool is_full;       /* the kernel had no room for one of the channel's sends in flight */
} domi_datagrams;

static_assert(sizeof(domi_datagram) == DOMI_DATAGRAM_COST, "as it is counted");
static_assert(offsetof(domi_datagrams, special) == 0, "the channel points to it");

static inline domi_datagrams *domi_datagrams_of_channel(const domus_channel *channel)
{
    return (domi_datagrams *)(void *)channel->special;
}

/* --- the way in (receive.c) ------------------------------------------------------------------- */

/* Implement receive, take, receive_failed and note_end of domi_channel_ways for datagrams. note_end
 * asks the kernel how many datagrams it has thrown away, and counts those that are new. */
void domi_datagrams_begin_receive(const domus_channel *channel);
void domi_datagrams_keep_or_drop_received(domus_channel *channel, domus_buffer *buffer,
                                          uint32_t size);
void domi_datagrams_handle_receive_failure(domus_channel *channel, int error);
void domi_datagrams_count_lost_in_kernel(domus_channel *channel);

/* Copy the head of a received datagram. Returns false if the buffer is not a received datagram. */
bool domi_datagram_read_head(const domus_buffer *buffer, domi_datagram_head *ret_head);

/* --- the way out (send.c) --------------------------------------------------------------------- */

/* Implement write, send, be_late and forget_outbound of domi_channel_ways for datagrams. */
int domi_datagrams_write_to_peer(domus_channel *channel, domus_buffer *bytes);
void domi_datagrams_send_waiting(domus_channel *channel);
void domi_datagrams_handle_send_timeout(domus_channel *channel);
void domi_datagrams_drop_waiting(domus_channel *channel);

/* Handle the result of the send of `datagram`, which has come back from the ring. */
void domi_datagram_handle_send_result(domi_datagram *datagram, int result);

/* Send the waiting datagrams of a channel again, because the poll for room in its socket has come
 * back. */
void domi_datagrams_send_after_poll(domi_io *io, const domi_completion *completion);

#endif
