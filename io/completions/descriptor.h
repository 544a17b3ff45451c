/* Watches on descriptors that belong to users. A watch has one poll at a time in the ring of its
 * actor's home, and the poll is armed again when its event has been handled. The record is freed
 * when neither its poll nor its event is under way. Owner thread only. */
#ifndef DOMI_IO_COMPLETIONS_DESCRIPTOR_H
#define DOMI_IO_COMPLETIONS_DESCRIPTOR_H

#include "io/resources/io.h"

typedef struct domi_descriptor domi_descriptor;

/* Handle the result of the poll of `descriptor`, which has come back. */
void domi_descriptor_handle_poll_result(domi_io *io, domi_descriptor *descriptor, int result);

/* Tell each actor that watches a descriptor once that the ring has failed, with the error of the
 * ring. */
void domi_descriptors_tell_ring_failed(domi_io *io);

/* Implement the hooks descriptor_handled, descriptor_cancel and descriptor_noted of
 * domi_io_hooks. */
void domi_descriptor_free_or_rearm_watch(domi_manager *manager, domi_node *node);
void domi_descriptor_cancel_watch(domi_manager *manager, domi_node *node);
void domi_descriptor_arm_noted_watch(domi_manager *home, domi_node *node);

#endif
