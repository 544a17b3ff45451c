/* Puts the events of domus_later(). They wait in one list of the manager, each signed by the actor
 * that has asked. Houses of channels actors never leave home, so each event is appended to its
 * mailbox directly. */
#include "house/dispatch/later.h"

#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/sign.h"

#include <domus/channel.h>

#include <errno.h>

const domus_type domus_later_type = {.name = "later"};

int domus_later(domus_stack *stack)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_get_house(stack);

    if (house->behaviour->kind != DOMUS_CHANNELS)
        return -EOPNOTSUPP;
    if (house->channels.later)
        return 0;
    domi_envelope *event = domi_envelope_new(manager, sizeof *event);
    if (event == NULL)
        return -ENOMEM;
    domi_envelope_set_type_and_sender(event, &domus_later_type, house);
    event->node.kind = DOMI_EVENT;
    house->channels.later = true;
    domi_list_append_node(&manager->schedule.laters, &event->node);
    return 0;
}

/* Put the event of one actor's domus_later(), or free it if the life of that actor is over. */
static void put_event_of_later_run(domi_manager *manager, domi_envelope *event)
{
    domi_house *house = event->sender;
    uint64_t life = domi_house_life_word(house);

    if (DOMI_LIFE_LEASE(life) != event->sender_lease || (life & DOMI_LIFE_CLOSED) != 0) {
        domi_pool_free_object(manager, &event->node);
        return;
    }
    house->channels.later = false;
    event->node.lease = event->sender_lease;
    domi_mailbox_append_node(manager, house, &event->node, DOMI_EVENT);
}

void domi_laters_put_events(domi_manager *manager)
{
    domi_node *laters = manager->schedule.laters;

    manager->schedule.laters = NULL;
    while (laters != NULL)
        put_event_of_later_run(manager,
                               (domi_envelope *)(void *)domi_list_take_first_node(&laters));
}

void domi_laters_free_events(domi_manager *manager)
{
    while (manager->schedule.laters != NULL)
        domi_pool_free_object(manager, domi_list_take_first_node(&manager->schedule.laters));
}
