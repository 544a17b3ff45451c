/* Rules for both traces and CPU profiles: when there may be none, and what their errors mean. */
#ifndef DOMI_PROTOCOLS_OBSERVE_RECORDING_H
#define DOMI_PROTOCOLS_OBSERVE_RECORDING_H

#include <domus/domus.h>

#include <stdbool.h>

/* Returns whether viewers have left so much of their answers unread that there is no other large
 * one. */
bool domi_recording_is_unread(void);

/* Answer with what an error of domus_blocking() or of its function means. Returns as
 * domi_observe_say(); the error if it is none of these. */
int domi_recording_refuse(domus_stack *stack, int error);

#endif
