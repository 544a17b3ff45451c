/* Dead mail: messages and nodes that their house will not handle. */
#ifndef DOMI_HOUSE_CONVERSATION_DEAD_H
#define DOMI_HOUSE_CONVERSATION_DEAD_H

#include "house/message/manager.h"

/* End a message that `house` will not handle. A message of a user becomes a dead letter: it is
 * counted, subscribers hear of it, and what it owns is released; an ask fails with `error`. An
 * event goes back to its timer, watch or other source. */
void domi_mailbox_end_unhandled_message(domi_manager *manager, domi_house *house, domi_node *node,
                                        int error);

/* Turn the asks and notices of a house, or with `all` all of its mail, into dead letters. This
 * includes mail that was put aside (stashed). */
void domi_mailbox_drop_mail_of_house(domi_manager *manager, domi_house *house, bool all);

#endif
