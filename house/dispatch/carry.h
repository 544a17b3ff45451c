/* The receiver's side of belts: home polls the belts that are on, and carries their messages to the
 * mailboxes (house/message/belt.h). Owner thread only. */
#ifndef DOMI_HOUSE_DISPATCH_CARRY_H
#define DOMI_HOUSE_DISPATCH_CARRY_H

#include "house/message/belt.h"

/* Take up to DOMI_BELT_LOOK messages from each belt that is on, and turn off belts that have been
 * empty for long. Returns the number of messages. */
#define DOMI_BELT_LOOK 64u
uint32_t domi_belts_take(domi_manager *manager);

/* Take every message that was on the belts at the call. Returns false if there was no memory for
 * some of them; these stay on the belts. */
bool domi_belts_drain(domi_manager *manager);

/* Deliver the messages that belts have brought for `house` while it was exposed. Called when the
 * house is back, before its inbox is sorted. */
void domi_belts_deliver_held(domi_manager *manager, domi_house *house);

/* Turn all belts off, before a park. Returns false if a message has come meanwhile. */
bool domi_belts_rest(domi_manager *manager);

/* Let senders use the belts again when there is memory again. Called once a tick. */
void domi_belts_look_at_memory(domi_manager *manager);

#endif
