/* The way through the ring: enter it, reap it, and hand each completion to its owner.
 * Owner thread. */
#ifndef DOMI_IO_COMPLETIONS_RING_H
#define DOMI_IO_COMPLETIONS_RING_H

#include "io/resources/io.h"

/* Arm the wake poll if it is not armed; with `again`, cancel it and arm it in any case. */
void domi_io_arm_wake(domi_io *io, bool again);

/* Submit what is queued, and wait for `min_complete` completions, at most `timeout_ns`. If the ring
 * has failed, this only waits to be woken. */
void domi_io_enter(domi_io *io, uint32_t min_complete, uint64_t timeout_ns);

/* Phase 1: enter the ring if that would bring anything. If completions wait already (the enter of a
 * park brings some), they can be reaped without one. Returns whether it entered. */
bool domi_io_submit(domi_io *io);

/* Before a rest: carry out the sends that phase 2 has queued, if there are any and if that takes no
 * enter. Returns whether it did. */
bool domi_io_submit_sends(domi_io *io);

/* Phase 1, and after domi_io_submit_sends(): reap up to io.completionsPerPoll completions. Returns
 * how many there were. */
uint32_t domi_io_reap(domi_io *io);

/* Enter and reap until nothing comes any more. Then everything that had arrived when this began has
 * been handed to its channel. (With deferred task work an empty completion queue proves nothing,
 * because only an enter fills it, and by 20 at a time.) `ret_taken` gets the number of completions.
 * Returns true if all was taken. Returns false if there may be more, because `limit` completions
 * were taken, as many enters were made, or the kernel refused one. */
bool domi_io_reap_all(domi_io *io, uint32_t limit, uint32_t *ret_taken);

/* Show the kernel the receive buffers that have come back. */
void domi_io_publish(domi_io *io);

#endif
