/* Ends messages that nobody will handle, and embedded nodes by the table of their kinds. */
#include "house/conversation/dead.h"

#include "house/conversation/asks.h"
#include "house/message/doors.h"
#include "house/message/family.h"
#include "house/message/kind.h"
#include "house/message/letters.h"
#include "house/message/mailbox.h"
#include "house/message/order.h"
#include "house/message/owned.h"
#include "house/message/shared.h"
#include "house/message/types.h"

#include <errno.h>

void domi_mailbox_end_unhandled_message(domi_manager *manager, domi_house *house, domi_node *node,
                                        int error)
{
    domi_envelope *envelope = (domi_envelope *)(void *)node;

    if (domi_node_is_part_of_object(node)) {
        domi_kind_of_node(node)->drop(manager, node);
        return;
    }
    if (envelope->type == &domi_delivery_type) {
        domi_counter_add(&manager->counters.dead_letters, 1);
        domi_delivery_drop_references(manager, envelope, 1);
        return;
    }
    if (envelope->type == &domi_held_type)
        domi_ask_cancel_at_holder(manager, envelope);
    domi_letters_report_dead_letter(manager, (domus_address){house, node->lease}, envelope, error);
    if (node->kind == DOMI_ASK)
        domi_ask_fail(manager, envelope, error);
    else
        domi_answer_release_and_free(manager, envelope);
}

/* Drop all messages of one list of mail. Inlined, because each end of an actor looks at seven
 * lists, and most of them are empty. */
DOMI_INLINE void drop_all_mail_of_list(domi_manager *manager, domi_house *house, domi_node **tail)
{
    while (*tail != NULL)
        domi_mailbox_end_unhandled_message(manager, house, domi_list_take_first_node(tail),
                                           -ESTALE);
}

/* Drop the mail that was stashed or sorted by an order; it came before the mail that waits in the
 * mailboxes. The life of a grain gives this mail to its next life instead. This is a function of
 * its own, because few actors have a family, and inlined it would cost the others registers. */
__attribute__((noinline)) static void
drop_stashed_and_sorted_mail(domi_manager *manager, domi_house *house, domi_family *family)
{
    domi_strand *strand;

    if (family->grain != NULL)
        domi_doors.return_mail(manager, house);
    if (family->stashed != 0) {
        drop_all_mail_of_list(manager, house, &family->stash[0]);
        drop_all_mail_of_list(manager, house, &family->stash[1]);
        family->stashed = 0;
    }
    if (family->order == NULL)
        return;
    for (uint32_t i = 0; (strand = domi_order_get_strand(house, i)) != NULL; i++) {
        drop_all_mail_of_list(manager, house, &strand->tail);
        strand->count = 0;
    }
    domi_order_correct_strands_after_walk(house);
    family->order->at_last = false;
}

void domi_mailbox_drop_mail_of_house(domi_manager *manager, domi_house *house, bool all)
{
    if (DOMI_UNLIKELY(house->family != NULL))
        drop_stashed_and_sorted_mail(manager, house, house->family);
    if (all) {
        drop_all_mail_of_list(manager, house, &house->tails[DOMI_REPLY]);
        drop_all_mail_of_list(manager, house, &house->tails[DOMI_EXCEPTION]);
    }
    drop_all_mail_of_list(manager, house, &house->tails[DOMI_ASK]);
    drop_all_mail_of_list(manager, house, &house->tails[DOMI_NOTICE]);
    if (all)
        drop_all_mail_of_list(manager, house, &house->tails[DOMI_EVENT]);
    house->mail = 0;
    if (all)
        house->replies = house->events = 0;
    domi_mailbox_let_receives_look_again(house);
}
