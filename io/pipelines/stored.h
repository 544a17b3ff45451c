/* Turns the bytes that stages have made (the scratch of the thread) into buffers, which are queued
 * at once or wait for the turn of their request. Owner thread. */
#ifndef DOMI_IO_PIPELINES_STORED_H
#define DOMI_IO_PIPELINES_STORED_H

#include "io/pipelines/pipe.h"

/* Turn the scratch (the thread's output of stages) into buffers: the bytes of its block are copied,
 * its slices are moved. Returns 0, and hands out the number of bytes; -EPIPE and -ENOBUFS when the
 * channel does not accept them; -ENOMEM. */
int domi_stored_turn_output_into_buffers(const domus_channel *channel, domi_out *out,
                                         domi_buffer_list *list, uint64_t *ret_size);
void domi_stored_drop_buffers(domi_buffer_list *list);

/* Queue the bytes of the scratch (the thread's output of stages) for sending. Returns as
 * domi_stored_turn_output_into_buffers(). */
int domi_stored_queue_output(domus_channel *channel, domi_out *out);

/* Let byte stages wrap the bytes of an answer that have waited, and send them. Returns as
 * domi_stored_turn_output_into_buffers(). */
int domi_stored_wrap_and_send(domi_pipe *pipe, domi_buffer_list *list);

#endif
