/* Delivery: home sorts the mail that has come into a house's inbox. */
#ifndef DOMI_HOUSE_DISPATCH_DELIVER_H
#define DOMI_HOUSE_DISPATCH_DELIVER_H

#include "house/message/manager.h"

/* Empty the inbox into the mailboxes, the oldest message first. Called by home, after it took the
 * house off its arrivals; if the house was exposed then, home calls this when the house is back. */
void domi_mailbox_sort_inbox(domi_manager *manager, domi_house *house);

/* Do so for each house of a list that is linked by `arrival_next`; but if a house is exposed, note
 * that its inbox is to be sorted when it is back. Returns how many houses there were. Home, which
 * has taken the list off its arrivals. */
uint32_t domi_inboxes_sort(domi_manager *manager, domi_house *list);

/* Empty the inbox of an actor of a pool in the same way, and leave DOMI_INBOX_BUSY there. Called by
 * the runner that has the house; if the house has something to do, it is in the runner's queue
 * then. */
void domi_mailbox_sort_pooled(domi_manager *runner, domi_house *house);

/* Put one message, which a belt has brought, where it belongs. Called by home, if `house`
 * is not exposed. */
void domi_mailbox_deliver_one(domi_manager *manager, domi_house *house, domi_node *node);

#endif
