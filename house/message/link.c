/* Cancels the objects that are attached to a house, each by the function of its kind (kind.h). */
#include "house/message/link.h"

#include "house/message/kind.h"

void domi_link_cancel_attached_objects(domi_manager *manager, domi_house *house)
{
    domi_link *next;

    for (domi_link *link = house->attached; link != NULL; link = next) {
        domi_node *node = domi_link_get_node(link);

        next = link->next;
        domi_kind_of_node(node)->cancel(manager, node);
    }
}
