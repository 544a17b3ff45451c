/* Keeps the table of subscribers, and sends them their letters (domus/letters.h). */
#include "house/message/letters.h"

#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/types.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

const domus_type domus_letter_type = {.name = "letter", .size = sizeof(domus_letter)};

static_assert((int)DOMUS_LETTER_REPLY == DOMI_REPLY && (int)DOMUS_LETTER_EVENT == DOMI_EVENT,
              "the kinds of mail, in their order");

/* --- subscribers ------------------------------------------------------------------------------ */

void domi_letters_init(domi_letters *letters)
{
    domi_spinlock_init(&letters->lock);
    letters->count = 0;
    atomic_store_explicit(&letters->wanted, 0, memory_order_relaxed);
}

static domi_subscriber *find_subscriber(domi_letters *letters, domus_address address)
{
    for (uint32_t i = 0; i < letters->count; i++) {
        domi_subscriber *subscriber = &letters->subscribers[i];
        if (subscriber->address.house == address.house &&
            subscriber->address.lease == address.lease)
            return subscriber;
    }
    return NULL;
}

/* True if the actor that subscribed has ended. Relaxed: the memory of a slot stays a slot, and an
 * actor that ends at this moment is found ended at the next check. */
static bool has_subscriber_ended(const domi_subscriber *subscriber)
{
    uint64_t life = domi_house_life_word(subscriber->address.house);

    return DOMI_LIFE_LEASE(life) != subscriber->address.lease || (life & DOMI_LIFE_CLOSED) != 0;
}

/* Remove the subscribers that have ended: a subscription ends with its actor. */
static void remove_ended_subscribers(domi_letters *letters)
{
    for (uint32_t i = letters->count; i-- != 0;) {
        if (has_subscriber_ended(&letters->subscribers[i]))
            letters->subscribers[i] = letters->subscribers[--letters->count];
    }
}

/* Set the kinds of letters to which an address subscribes; 0 removes its subscription. The caller
 * holds the lock. */
static int set_letter_kinds_of_subscriber(domi_letters *letters, domus_address address,
                                          uint32_t what)
{
    domi_subscriber *subscriber = find_subscriber(letters, address);
    uint32_t wanted = 0;

    if (subscriber == NULL && what == 0)
        return 0;
    if (subscriber == NULL && letters->count == DOMUS_LETTERS_SUBSCRIBERS_MAX)
        remove_ended_subscribers(letters);
    if (subscriber == NULL && letters->count == DOMUS_LETTERS_SUBSCRIBERS_MAX)
        return -ENOSPC;
    if (subscriber == NULL) {
        subscriber = &letters->subscribers[letters->count++];
        subscriber->address = address;
    }
    subscriber->what = what;
    if (what == 0)
        *subscriber = letters->subscribers[--letters->count];
    for (uint32_t i = 0; i < letters->count; i++)
        wanted |= letters->subscribers[i].what;
    /* Relaxed: a reader of `wanted` only learns whether it has to read the table, which it does
     * under the lock. */
    atomic_store_explicit(&letters->wanted, wanted, memory_order_relaxed);
    return 0;
}

int domi_letters_subscribe(domi_letters *letters, domus_address subscriber, uint32_t what)
{
    if ((what & ~(DOMUS_LETTERS_DEAD | DOMUS_LETTERS_REFUSED)) != 0 || subscriber.house == NULL)
        return -EINVAL;
    domi_spinlock_lock(&letters->lock);
    int result = set_letter_kinds_of_subscriber(letters, subscriber, what);
    domi_spinlock_unlock(&letters->lock);
    return result;
}

/* --- telling ---------------------------------------------------------------------------------- */

static int send_letter_to_subscriber(domi_manager *manager, domus_address to,
                                     const domus_letter *letter)
{
    domi_envelope *envelope = domi_envelope_new(manager, DOMI_ENVELOPE_HEAD + sizeof *letter);

    if (envelope == NULL)
        return -ENOMEM;
    envelope->type = &domus_letter_type;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    memcpy(envelope->payload, letter, sizeof *letter);
    int error = domi_mailbox_put(manager, to, &envelope->node, DOMI_NOTICE);
    if (error != 0)
        domi_pool_free_object(manager, &envelope->node);
    return error;
}

void domi_letters_send_to_subscribers(domi_manager *manager, const domus_letter *letter)
{
    domi_letters *letters = manager->directory.letters;
    domi_subscriber copy[DOMUS_LETTERS_SUBSCRIBERS_MAX];

    domi_spinlock_lock(&letters->lock);
    uint32_t count = letters->count;
    memcpy(copy, letters->subscribers, count * sizeof copy[0]);
    domi_spinlock_unlock(&letters->lock);
    for (uint32_t i = 0; i < count; i++) {
        if ((copy[i].what & letter->what) == 0)
            continue;
        int error = send_letter_to_subscriber(manager, copy[i].address, letter);
        if (error == 0)
            continue;
        domi_counter_add(&manager->counters.letters_missed, 1);
        if (error == -ESTALE)
            (void)domi_letters_subscribe(letters, copy[i].address, 0);
    }
}

/* True if somebody subscribes to letters about messages of this type. There are no letters about
 * letters. */
static bool has_subscribers_for_type(const domi_manager *manager, const domus_type *type,
                                     uint32_t what)
{
    return domi_letters_has_subscriber(manager, what) && !manager->ending.has_stopped &&
           type != &domus_letter_type;
}

void domi_letters_report_dead_letter(domi_manager *manager, domus_address receiver,
                                     const domi_envelope *message, int why)
{
    if (message->type == &domi_cancel_type || message->type == &domi_held_type)
        return;
    domi_counter_add(&manager->counters.dead_letters, 1);
    if (!has_subscribers_for_type(manager, message->type, DOMUS_LETTERS_DEAD))
        return;
    bool is_ours = domi_node_is_part_of_object(&message->node) || message->sender == manager->asker;
    const domus_letter letter = {
        .what = DOMUS_LETTERS_DEAD,
        .kind = (domus_letter_kind)message->node.kind,
        .why = why,
        .type = message->type,
        .receiver = receiver,
        /* A message whose node is part of another object (a timer, a watch) has no sender: the
         * object uses that field otherwise. */
        .sender = {is_ours ? NULL : message->sender,
                   is_ours || message->sender == NULL ? 0 : message->sender_lease},
    };
    domi_letters_send_to_subscribers(manager, &letter);
}

void domi_letters_report_refusal(domi_manager *manager, domi_house *receiver, const domi_node *node)
{
    const domi_envelope *message = (const domi_envelope *)(const void *)node;

    if (!has_subscribers_for_type(manager, message->type, DOMUS_LETTERS_REFUSED))
        return;
    bool is_known = message->sender != NULL && message->sender != manager->asker;
    const domus_letter letter = {
        .what = DOMUS_LETTERS_REFUSED,
        .kind = (domus_letter_kind)node->kind,
        .why = -ENOBUFS,
        .type = message->type,
        .receiver = {receiver, node->lease},
        .sender = {is_known ? message->sender : NULL, is_known ? message->sender_lease : 0},
    };
    domi_letters_send_to_subscribers(manager, &letter);
}
