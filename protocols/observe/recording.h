/* Rules that traces and CPU profiles have in common: when no further one may be made, and how their
 * errors are answered. */
#ifndef DOMI_PROTOCOLS_OBSERVE_RECORDING_H
#define DOMI_PROTOCOLS_OBSERVE_RECORDING_H

#include <domus/domus.h>

#include <stdbool.h>

/* Returns whether viewers have left so many bytes of their answers unread that no further large
 * answer is allowed. */
bool domi_recording_have_viewers_unread_much(void);

/* Answer a viewer with a sentence about an error of domus_blocking() or of the function that it
 * ran. Returns as domi_observe_answer_with_line(); or the error if there is no sentence for it. */
int domi_recording_answer_503_for_error(domus_stack *stack, int error);

#endif
