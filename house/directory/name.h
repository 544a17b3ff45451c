/* Names of actors: an actor has at most one name in the registry (name_table.h), and gives it back
 * when it ends. */
#ifndef DOMI_HOUSE_DIRECTORY_NAME_H
#define DOMI_HOUSE_DIRECTORY_NAME_H

#include "house/message/manager.h"

/* Register `name` for an actor. Returns the errors of domus_name_register(). */
int domi_name_register_for_actor(domi_manager *manager, domi_house *house, const char *name,
                                 domus_address address);

/* Give the name of an actor that ends back, if it has one. */
void domi_name_give_back_of_actor(domi_manager *manager, domi_house *house);

#endif
