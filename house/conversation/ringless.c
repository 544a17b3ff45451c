/* Refuses verbs that need a ring, on threads without one. */
#include "house/conversation/ringless.h"

#include <errno.h>

int domi_refuse_verb_without_ring(domus_stack *stack)
{
    domi_manager *manager = stack->manager;

    if (manager->pooled != NULL)
        domi_manager_report_mistake(manager, domi_stack_get_house(stack), DOMI_NEEDS_RING,
                                    stack->message != NULL ? stack->message->type : stack->begun_by,
                                    -EOPNOTSUPP);
    return -EOPNOTSUPP;
}
