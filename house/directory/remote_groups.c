/* The verbs of gateways for groups (domus/remote.h). */
#include "house/directory/group.h"
#include "house/directory/remote.h"

#include "house/conversation/stack.h"
#include "house/message/remote.h"

#include <errno.h>

int domus_remote_join(domus_stack *stack, domus_group group, domus_address outlet)
{
    domi_manager *manager = stack->manager;
    domi_manager *home = domi_stack_house(stack)->home;

    if (group.group == NULL || !domus_address_is_remote(outlet))
        return -EINVAL;
    if (home->index >= manager->threads) /* a pool, or the thread of a detached actor */
        home = manager->managers[0];
    return domi_group_add_outlet(manager, group.group, home, outlet);
}

int domus_remote_publish(domus_stack *stack, domus_address from, domus_group group,
                         const domus_type *type, const void *payload)
{
    int error = stack->manager->gateway != domi_stack_house(stack)        ? -EPERM
                : from.house != NULL && !domi_house_is_remote(from.house) ? -EINVAL
                                                                          : 0;

    if (error == 0)
        return domi_group_publish_from_afar(stack->manager, from, group.group, type, payload);
    if (type->release != NULL)
        type->release((void *)(uintptr_t)payload);
    return error;
}
