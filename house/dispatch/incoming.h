/* How messages come into the mailboxes of a house: home, or the runner of a pool, sorts inboxes,
 * and home carries what lies on belts. Owner thread only, where nothing else is said. */
#ifndef DOMI_HOUSE_DISPATCH_INCOMING_H
#define DOMI_HOUSE_DISPATCH_INCOMING_H

#include "house/message/belt.h"
#include "house/message/manager.h"

/* ---- deliver.c --------------------------------------------------------------------------------*/

/* Delivery: home sorts the mail that has come into a house's inbox. */

/* Empty the inbox of a house into its mailboxes, the oldest message first. Home calls this after it
 * took the house off its arrivals; for an exposed house it waits until the house is back. */
void domi_mailbox_sort_inbox(domi_manager *manager, domi_house *house);

/* Empty the inboxes of all houses of a list that is linked by `arrival_next`. The inbox of an
 * exposed house is marked, and sorted when the house is back. Returns the number of houses. Home
 * calls this for the list that it took off its arrivals. */
uint32_t domi_inboxes_sort_all_of_list(domi_manager *manager, domi_house *list);

/* Empty the inbox of a pooled actor into the mailboxes, and leave DOMI_INBOX_BUSY there. Called by
 * the runner that has the house; if the house has something to do, it is in the runner's queue
 * then. */
void domi_mailbox_sort_inbox_of_pooled(domi_manager *runner, domi_house *house);

/* Deliver one message that a belt has brought to the mailboxes of `house`. Called by home, if
 * `house` is not exposed. */
void domi_mailbox_deliver_belt_message(domi_manager *manager, domi_house *house, domi_node *node);

/* ---- carry.c ----------------------------------------------------------------------------------*/

/* The receiver's side of belts: home polls the belts that are on, and carries their messages to the
 * mailboxes (house/message/belt.h). Owner thread only. */

/* Take up to DOMI_BELT_LOOK messages from each belt to this thread that is on, and turn off belts
 * that have been empty for long. Returns the number of messages. */
#define DOMI_BELT_LOOK 64u
uint32_t domi_belts_take_some_messages(domi_manager *manager);

/* Take every message that was on the belts to this thread at the call. Returns false if there was
 * no memory for some of them; these stay on the belts. */
bool domi_belts_take_all_messages(domi_manager *manager);

/* Deliver the messages that belts have brought for `house` while it was exposed. Called when the
 * house is back, before its inbox is sorted. */
void domi_belts_deliver_held_messages(domi_manager *manager, domi_house *house);

/* Turn all belts to this thread off, before a park. Returns false if a message has come
 * meanwhile. */
bool domi_belts_turn_all_off(domi_manager *manager);

/* Let senders use the belts to this thread again when there is memory again. Called once a tick. */
void domi_belts_allow_when_memory_is_back(domi_manager *manager);

#endif
