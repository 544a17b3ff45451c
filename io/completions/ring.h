/* The use of the ring: enter it, reap it, and give each completion to its owner. Owner thread. */
#ifndef DOMI_IO_COMPLETIONS_RING_H
#define DOMI_IO_COMPLETIONS_RING_H

#include "io/resources/io.h"

/* Arm the poll of the thread's wake descriptor if it is not armed; with `again`, cancel it and arm
 * it in any case. */
void domi_io_arm_wake_poll(domi_io *io, bool again);

/* Submit the queued operations of the ring, and wait for `min_complete` completions, at most
 * `timeout_ns`. If the ring has failed, this only waits for a wake of the thread. */
void domi_io_enter_ring(domi_io *io, uint32_t min_complete, uint64_t timeout_ns);

/* Enter the ring in phase 1, if that would bring anything. Completions that wait already (the enter
 * of a park brings some) can be reaped without an enter. Returns whether it entered. */
bool domi_io_enter_ring_if_useful(domi_io *io);

/* Carry out the sends that phase 2 has queued, before a rest, if there are any and if that takes no
 * enter of the ring. Returns whether it did. */
bool domi_io_carry_out_queued_sends(domi_io *io);

/* Reap up to io.completionsPerPoll completions, in phase 1 and after
 * domi_io_carry_out_queued_sends(). Returns their number. */
uint32_t domi_io_reap_completions(domi_io *io);

/* Enter and reap until nothing comes any more. Then everything that had arrived when this began has
 * been given to its channel. (With deferred task work an empty completion queue proves nothing,
 * because only an enter fills it, and by 20 at a time.) `ret_taken` gets the number of completions.
 * Returns true if all were taken; false if there may be more, because `limit` completions were
 * taken, as many enters were made, or the kernel refused one. */
bool domi_io_enter_and_reap_all(domi_io *io, uint32_t limit, uint32_t *ret_taken);

/* Give the receive buffers that actors have freed back to the kernel. */
void domi_io_publish_freed_buffers(domi_io *io);

#endif
