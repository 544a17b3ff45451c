/* A run of a house in which mail of several kinds waits, or which has marks: its mailboxes are
 * taken in their order, and places are kept for those that come later. Whoever runs the house. */
#ifndef DOMI_HOUSE_DISPATCH_ORDER_H
#define DOMI_HOUSE_DISPATCH_ORDER_H

#include "house/conversation/stack.h"

typedef struct domi_run domi_run;

/* Take all mailboxes, and what the channels have. Returns how many places are left. */
uint32_t domi_run_take_in_order(domi_run run);

/* Take the mailboxes behind that of `kind`, which only was not empty when the run began, and what
 * the channels have. Returns how many places are left. */
uint32_t domi_run_take_behind(domi_run run, uint32_t kind);

/* Call a row that has a frame. A frame lies in a pooled stack, so the conversation begins in one.
 */
void domi_run_handle_framed(domi_manager *manager, domi_house *house, domi_envelope *message,
                            const domus_on *on, uint32_t kind);

/* Handle an ask or notice whose type has no row: a message of the library, else by the last row;
 * without a last row an ask fails with -EOPNOTSUPP, and a notice is a dead letter. */
void domi_run_handle_rest(domi_manager *manager, domi_house *house, domus_stack *stack,
                          domi_envelope *message, uint32_t kind);

#endif
