/* Pools look how much their connections have, and let them bring back what they cannot answer.
 * Owner thread. */
#ifndef DOMI_IO_PIPELINES_LOAD_H
#define DOMI_IO_PIPELINES_LOAD_H

#include "io/channels/channel.h"

#define DOMI_PIPE_CLOSED UINT32_MAX
#define DOMI_PIPE_SHAKES (1u << 29)
#define DOMI_PIPE_LAST   (1u << 30)
#define DOMI_PIPE_ENDS   (1u << 31)
#define DOMI_PIPE_MARKS  (DOMI_PIPE_SHAKES | DOMI_PIPE_LAST | DOMI_PIPE_ENDS)

/* Returns how many asks the channel at this address of this thread has, in its mailbox, waiting and
 * with its peer, or'ed with DOMI_PIPE_LAST if others are better: it has more than sendHigh to send,
 * or will close when it has none; and with DOMI_PIPE_SHAKES if it has not come to terms with its
 * peer yet (TLS), so asks would wait. DOMI_PIPE_CLOSED if it takes none; DOMI_PIPE_ENDS or'ed with
 * those that are with its peer if these are the last. */
uint32_t domi_pipe_load(domus_address address);

/* Returns how many asks it may have with its peer. */
uint64_t domi_pipe_room(domus_address address);

/* Asks that the channel at this address cannot have answered go back to `pool`. With
 * `ret_last_word` the channel also takes the asks that wait there, its parent, when it has room,
 * and leaves a last word at its end, in the memory of the pool. */
void domi_pipe_return_asks_to(domus_address address, domus_address pool,
                              domi_last_word *ret_last_word);

#endif
