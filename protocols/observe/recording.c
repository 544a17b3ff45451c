/* Rules that traces and CPU profiles have in common (recording.h). */
#include "protocols/observe/recording.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/observe.h"

#include <domus/observe.h>

#include <errno.h>

bool domi_recording_have_viewers_unread_much(void)
{
    domus_profile port = {0};

    (void)domus_system_profile(domi_observed.own, 0, &port);
    return port.queued_bytes > DOMUS_OBSERVE_UNREAD_BYTES;
}

int domi_recording_answer_503_for_error(domus_stack *stack, int error)
{
    if (error == -ESHUTDOWN)
        return domi_observe_answer_with_line(stack, 503, "the program stops\n");
    if (error == -EAGAIN)
        return domi_observe_answer_with_line(stack, 503, "too many viewers wait\n");
    if (error == -EMSGSIZE)
        return domi_observe_answer_with_line(stack, 503, "it is too long for one answer\n");
    return error;
}
