/* Tells a pool the load of its connections, and sends asks that a connection cannot answer back to
 * the pool. Owner thread. */
#ifndef DOMI_IO_PIPELINES_LOAD_H
#define DOMI_IO_PIPELINES_LOAD_H

#include "io/channels/channel.h"

#define DOMI_PIPE_CLOSED UINT32_MAX
#define DOMI_PIPE_SHAKES (1u << 29)
#define DOMI_PIPE_LAST   (1u << 30)
#define DOMI_PIPE_ENDS   (1u << 31)
#define DOMI_PIPE_MARKS  (DOMI_PIPE_SHAKES | DOMI_PIPE_LAST | DOMI_PIPE_ENDS)

/* Returns the number of asks that the channel at this address of this thread has, in its mailbox,
 * waiting and with its peer. DOMI_PIPE_LAST is added (by or) if other channels are better: this one
 * has more than sendHigh bytes to send, or will close when it has no ask; DOMI_PIPE_SHAKES if its
 * handshake (TLS) is not over, so that asks would wait. Returns DOMI_PIPE_CLOSED if it accepts no
 * asks; DOMI_PIPE_ENDS and, by or, the number of asks with its peer if these are its last. */
uint32_t domi_pipe_load_of_channel(domus_address address);

/* Returns the number of asks that the peer of the channel at this address may have at the same
 * time. */
uint64_t domi_pipe_most_asks_of_channel(domus_address address);

/* Let asks that the peer of the channel at this address does not answer go back to `pool`. With
 * `ret_last_word` the channel also takes the asks that wait in the pool, its parent, when it has
 * room, and writes `ret_last_word`, in the memory of the pool, at its end. */
void domi_pipe_let_asks_return_to_pool(domus_address address, domus_address pool,
                                       domi_last_word *ret_last_word);

#endif
