/* Delivery: home sorts the mail that has come into a house's inbox. */
#ifndef DOMI_HOUSE_DISPATCH_DELIVER_H
#define DOMI_HOUSE_DISPATCH_DELIVER_H

#include "house/message/manager.h"

/* Empty the inbox into the mailboxes, the oldest message first. Called by home, after it took the
 * house off its arrivals; if the house was exposed then, home calls this when the house is back. */
void domi_mailbox_sort_inbox(domi_manager *manager, domi_house *house);

#endif
