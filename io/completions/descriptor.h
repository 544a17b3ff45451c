/* Watches on foreign descriptors: one poll at a time in the ring of the actor's thread, armed again
 * when its event was handled. The record is freed when neither its poll nor its event is under way.
 * Owner thread only. */
#ifndef DOMI_IO_COMPLETIONS_DESCRIPTOR_H
#define DOMI_IO_COMPLETIONS_DESCRIPTOR_H

#include "io/resources/io.h"

typedef struct domi_descriptor domi_descriptor;

/* Its poll has come back. */
void domi_descriptor_completed(domi_io *io, domi_descriptor *descriptor, int result);

/* The ring has failed: tell every actor that watches, once, with the ring's error. */
void domi_descriptors_fail(domi_io *io);

/* domi_manager.descriptor_handled, descriptor_cancel and descriptor_noted. */
void domi_descriptor_handled(domi_manager *manager, domi_node *node);
void domi_descriptor_cancel(domi_manager *manager, domi_node *node);
void domi_descriptor_noted(domi_manager *home, domi_node *node);

#endif
