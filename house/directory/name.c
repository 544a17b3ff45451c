/* Implements the verbs of domus/name.h, and records in an actor's family which name the actor has.
 * The table of names is in name_table.c. */
#include "house/directory/name.h"

#include "house/conversation/stack.h"
#include "house/directory/name_table.h"
#include "house/family/family.h"

#include <domus/name.h>

#include <errno.h>

int domi_name_register_for_actor(domi_manager *manager, domi_house *house, const char *name,
                                 domus_address address)
{
    domi_family *family = domi_family_get_or_make(house);

    if (family == NULL)
        return -ENOMEM;
    if (family->name_slot != DOMI_NAMELESS)
        return -EALREADY;
    if (manager->directory.names == NULL)
        return -ENOSPC;
    return domi_names_register_address(manager->directory.names, name, address, &family->name_slot);
}

void domi_name_give_back_of_actor(domi_manager *manager, domi_house *house)
{
    domi_family *family = house->family;

    if (family == NULL || family->name_slot == DOMI_NAMELESS)
        return;
    domi_names_remove_name(manager->directory.names, family->name_slot,
                           domi_house_get_address(house));
    family->name_slot = DOMI_NAMELESS;
}

int domus_name_find(domus_stack *stack, const char *name, domus_address *ret_address)
{
    if (stack->manager->directory.names == NULL)
        return -ENOENT;
    return domi_names_find_address(stack->manager->directory.names, name, ret_address);
}

int domus_name_register(domus_stack *stack, const char *name)
{
    domi_house *house = domi_stack_get_house(stack);

    return domi_name_register_for_actor(stack->manager, house, name, domi_house_get_address(house));
}

int domus_name_release(domus_stack *stack)
{
    domi_house *house = domi_stack_get_house(stack);

    if (house->family == NULL || house->family->name_slot == DOMI_NAMELESS)
        return -ENOENT;
    domi_name_give_back_of_actor(stack->manager, house);
    return 0;
}
