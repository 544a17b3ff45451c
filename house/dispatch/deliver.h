/* Delivery: home sorts the mail that has come into a house's inbox. */
#ifndef DOMI_HOUSE_DISPATCH_DELIVER_H
#define DOMI_HOUSE_DISPATCH_DELIVER_H

#include "house/message/manager.h"

/* Empty the inbox into the mailboxes, the oldest message first. Home calls this after it took the
 * house off its arrivals; for an exposed house it waits until the house is back. */
void domi_mailbox_sort_inbox(domi_manager *manager, domi_house *house);

/* Empty the inboxes of all houses of a list that is linked by `arrival_next`. The inbox of an
 * exposed house is marked, and sorted when the house is back. Returns the number of houses. Home
 * calls this for the list that it took off its arrivals. */
uint32_t domi_inboxes_sort(domi_manager *manager, domi_house *list);

/* Empty the inbox of a pooled actor into the mailboxes, and leave DOMI_INBOX_BUSY there. Called by
 * the runner that has the house; if the house has something to do, it is in the runner's queue
 * then. */
void domi_mailbox_sort_pooled(domi_manager *runner, domi_house *house);

/* Deliver one message that a belt has brought. Called by home, if `house` is not exposed. */
void domi_mailbox_deliver_one(domi_manager *manager, domi_house *house, domi_node *node);

#endif
