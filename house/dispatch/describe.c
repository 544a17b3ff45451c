/* Describes a house from its own fields. It reads of other actors only what any thread may read:
 * their addresses, and the names of types. Each list is read up to a bound, so that an actor with a
 * million messages or timers does not hold up its thread. */
#include "house/dispatch/describe.h"

#include "house/conversation/stack.h"
#include "house/conversation/timer.h"
#include "house/directory/grain.h"
#include "house/directory/name_table.h"
#include "house/directory/remote.h"
#include "house/family/family.h"
#include "house/family/slots.h"
#include "house/family/watch.h"
#include "house/message/mailbox.h"
#include "house/message/order.h"
#include "house/message/remote.h"
#include "house/message/types.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define LOOKS_MAX         1024u /* most nodes of one list that a description counts */
#define CONVERSATIONS_MAX 16u   /* most conversations of one actor that a description tells of */
/* most promises of one conversation that a description tells of */
#define PROMISES_MAX 8u
#define NS_OF_MS     UINT64_C(1000000) /* nanoseconds in a millisecond */

void domi_text_append_formatted(domi_text *text, const char *format, ...)
{
    bool room = text->length < text->size;
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(room ? text->at + text->length : NULL,
                           room ? text->size - text->length : 0, format, arguments);
    va_end(arguments);
    if (length > 0)
        text->length += (size_t)length;
}

bool domi_text_cut_back_unless_whole(domi_text *text, size_t before)
{
    if (text->length < text->size)
        return true;
    text->length = before;
    text->at[before] = '\0';
    return false;
}

void domi_text_append_name_of_actor(domi_text *text, const domus_config *config,
                                    domus_address address)
{
    const domi_house *house = address.house;

    if (house == NULL) {
        domi_text_append_formatted(text, "nobody");
        return;
    }
    if (domi_house_is_remote(house))
        domi_text_append_formatted(text, "remote %" PRIu32 ".%" PRIu32,
                                   domi_remote_of_face(address.house)->index, address.lease);
    else if (house->home == NULL)
        domi_text_append_formatted(text, "router.%" PRIu32, address.lease);
    else
        domi_text_append_formatted(text, "%" PRIu32 "/%" PRIu32 ".%" PRIu32, house->home->index,
                                   domi_slots_number_of_house(house), address.lease);
    if (config->log.addresses)
        domi_text_append_formatted(text, " (%p)", (const void *)house);
}

/* --- mail, timers ----------------------------------------------------------------------------- */

static void append_count_of_list_to_text(domi_text *text, const char *what, uint32_t count)
{
    domi_text_append_formatted(text, " %" PRIu32 "%s %s", count,
                               count == LOOKS_MAX ? " or more" : "", what);
}

static uint32_t count_nodes_of_list(const domi_node *tail)
{
    const domi_node *node = tail;
    uint32_t count = 0;

    while (tail != NULL && count < LOOKS_MAX) {
        count++;
        node = node->next;
        if (node == tail)
            break;
    }
    return count;
}

static void describe_mail_of_house(domi_text *text, const domi_house *house)
{
    static const char *const kinds[DOMI_MAILBOXES] = {
        [DOMI_REPLY] = "replies,",  [DOMI_EXCEPTION] = "exceptions,", [DOMI_ASK] = "asks,",
        [DOMI_NOTICE] = "notices,", [DOMI_EVENT] = "events,",
    };

    domi_text_append_formatted(text, "  mail:");
    for (uint32_t kind = 0; kind < DOMI_MAILBOXES; kind++)
        append_count_of_list_to_text(text, kinds[kind], count_nodes_of_list(house->tails[kind]));
    if (domi_house_is_ordered(house))
        domi_text_append_formatted(text, " %" PRIu32 " in their order,",
                                   domi_order_count_mail(house));
    domi_text_append_formatted(text, " %" PRIu32 " not sorted", domi_mailbox_depth_of_inbox(house));
    if (house->family != NULL && house->family->stashed != 0)
        domi_text_append_formatted(text, ", %" PRIu32 " put aside", house->family->stashed);
    domi_text_append_formatted(text, "\n");
}

static void describe_relations_of_actor(const domi_manager *manager, domi_text *text,
                                        const domi_house *house)
{
    uint32_t timers = 0;
    uint32_t descriptors = 0;
    uint32_t watchers = 0;
    uint32_t watches = 0;
    uint32_t looks = LOOKS_MAX;

    for (domi_link *link = house->attached; link != NULL && looks-- != 0; link = link->next) {
        if (domi_node_is_timer(domi_link_get_node(link)))
            timers++;
        else if (domi_link_get_node(link)->slab == DOMI_SLAB_DESCRIPTOR)
            descriptors++;
        else if (domi_link_get_node(link)->slab == DOMI_SLAB_MEMORY_WATCH)
            watches++;
        else
            watchers++;
    }
    if (house->family != NULL) {
        for (const domi_watch *watch = house->family->watches; watch != NULL && watches < LOOKS_MAX;
             watch = watch->next)
            watches++;
    }
    domi_text_append_formatted(text, "  parent ");
    domi_text_append_name_of_actor(text, manager->config,
                                   house->parent != NULL ? domi_house_get_address(house->parent)
                                                         : (domus_address){NULL, 0});
    domi_text_append_formatted(text, ",");
    append_count_of_list_to_text(text, "children,", domi_house_count_children(house));
    append_count_of_list_to_text(text, "timers,", timers);
    append_count_of_list_to_text(text, "descriptors,", descriptors);
    append_count_of_list_to_text(text, "watchers,", watchers);
    append_count_of_list_to_text(text, "watches\n", watches);
}

/* --- conversations ---------------------------------------------------------------------------- */

static void describe_times_of_promise(const domi_manager *manager, domi_text *text,
                                      const domi_promise *promise)
{
    uint64_t now_ns = manager->now_ns;
    uint64_t end_ns = promise->wheel.expires_ns;

    domi_text_append_formatted(text, ", since %" PRIu64 " ms",
                               (now_ns - promise->wait.since_ns) / NS_OF_MS);
    if (promise->timed)
        domi_text_append_formatted(text, ", %" PRIu64 " ms left",
                                   end_ns > now_ns ? (end_ns - now_ns) / NS_OF_MS : 0);
}

static void describe_promise_of_conversation(const domi_manager *manager, domi_text *text,
                                             const domi_promise *promise)
{
    if (promise->state == DOMI_PROMISE_FAILED) {
        domi_text_append_formatted(text, "      something that is over (%d)\n",
                                   promise->answer.error);
        return;
    }
    switch ((domi_promise_kind)promise->kind) {
    case DOMI_PROMISE_ASK:
        domi_text_append_formatted(text, "      ask %s to ", domi_type_name(promise->wait.asked));
        domi_text_append_name_of_actor(text, manager->config, promise->target);
        break;
    case DOMI_PROMISE_SLEEP:
        domi_text_append_formatted(text, "      sleep");
        break;
    case DOMI_PROMISE_RECEIVE:
        domi_text_append_formatted(text, "      receive");
        for (const domus_type *const *type = promise->pattern->types; type != NULL && *type != NULL;
             type++)
            domi_text_append_formatted(text, " %s", domi_type_name(*type));
        break;
    case DOMI_PROMISE_BLOCKING:
        domi_text_append_formatted(text, "      blocking work");
        break;
    case DOMI_PROMISE_FLUSH:
        domi_text_append_formatted(text, "      bytes to leave");
        break;
    case DOMI_PROMISE_BEGIN:
        domi_text_append_formatted(text, "      the begin of that ask");
        break;
    case DOMI_PROMISE_PEER: /* the promise for a peer's request belongs to no conversation */
    default:
        domi_text_append_formatted(text, "      something else");
        break;
    }
    describe_times_of_promise(manager, text, promise);
    domi_text_append_formatted(text, "\n");
}

static void describe_conversation_of_actor(const domi_manager *manager, domi_text *text,
                                           const domus_stack *stack)
{
    static const char *const waits[] = {
        [DOMI_WAIT_NONE] = "waits for nothing",      [DOMI_WAIT_ONE] = "waits for one of",
        [DOMI_WAIT_ALL] = "waits for all of",        [DOMI_WAIT_FIRST] = "waits for the first of",
        [DOMI_WAIT_KEPT] = "is an ask that is kept",
    };
    uint32_t told = 0;

    domi_text_append_formatted(
        text, "    begun by %s%s%s %s",
        stack->begun_by != NULL ? domi_type_name(stack->begun_by) : "something else",
        stack->barrier ? ", holds the barrier," : "", stack->cancelled ? ", cancelled," : "",
        stack->wait <= DOMI_WAIT_KEPT ? waits[stack->wait] : "waits");
    if (stack->wait != DOMI_WAIT_KEPT)
        domi_text_append_formatted(text, " %" PRIu32, stack->pending);
    if (stack->ask != NULL) {
        domi_text_append_formatted(text, ", to answer ");
        domi_text_append_name_of_actor(
            text, manager->config, (domus_address){stack->ask->sender, stack->ask->sender_lease});
    }
    domi_text_append_formatted(text, "\n");
    for (const domi_promise *promise = stack->waiting; promise != NULL && told < PROMISES_MAX;
         promise = promise->next, told++)
        describe_promise_of_conversation(manager, text, promise);
    if (stack->pending > told)
        domi_text_append_formatted(text, "      and %" PRIu32 " more\n", stack->pending - told);
}

/* --- a house ---------------------------------------------------------------------------------- */

static void describe_marks_of_house(domi_text *text, uint32_t marks)
{
    static const struct {
        uint32_t mark;    /* a mark of a house that a description names, as a bit */
        const char *word; /* the word for this mark in a description */
    } words[] = {
        {DOMI_MARK_BARRIER, "barrier"},        {DOMI_MARK_SATURATED, "saturated"},
        {DOMI_MARK_STOPPING, "stopping"},      {DOMI_MARK_RECEIVING, "receiving"},
        {DOMI_MARK_SUSPENDED, "suspended"},    {DOMI_MARK_PASSIVATES, "passivates"},
        {DOMI_MARK_PINNED, "pinned"},          {DOMI_MARK_RESTART, "restarting"},
        {DOMI_MARK_CHANNELS, "bytes to read"}, {DOMI_MARK_UNMOUNTED, "not mounted"},
        {DOMI_MARK_GONE, "connection gone"},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if ((marks & words[i].mark) != 0)
            domi_text_append_formatted(text, ", %s", words[i].word);
    }
}

static void describe_address_and_behaviour(const domi_manager *manager, domi_text *text,
                                           const domi_house *house)
{
    uint64_t life = domi_house_life_word(house);
    const domi_family *family = house->family;
    char name[DOMI_NAME_MAX + 1];

    domi_text_append_formatted(text, "actor ");
    domi_text_append_name_of_actor(text, manager->config, domi_house_get_address(house));
    domi_text_append_formatted(text, " %s", domi_behaviour_name(house->behaviour));
    if (family != NULL && family->name_slot != DOMI_NAMELESS && manager->directory.names != NULL &&
        domi_names_copy_name_of_slot(manager->directory.names, family->name_slot, name) == 0)
        domi_text_append_formatted(text, " \"%s\"", name);
    if (family != NULL && family->grain != NULL)
        domi_text_append_formatted(text, " (%s of the grains %s)", family->grain->key,
                                   family->grain->kind->name);
    domi_text_append_formatted(text, ": %s%s%s%s", domi_house_name_of_state(house->state),
                               house->behaviour->kind == DOMUS_CHANNELS ? ", channels actor" : "",
                               (life & DOMI_LIFE_STOP) != 0 ? ", asked to stop" : "",
                               (life & DOMI_LIFE_FULL) != 0 ? ", full" : "");
    describe_marks_of_house(text, house->marks);
    if (house->reason != 0)
        domi_text_append_formatted(text, ", failed with %d", house->reason);
    domi_text_append_formatted(text, "\n");
}

void domi_house_describe(const domi_manager *manager, const domi_house *house, domi_text *text)
{
    uint32_t told = 0;

    /* Only address and behaviour of such a house may be read: a thief may run an exposed house now,
     * and another thread may have spawned a CREATED house whose mount has not arrived here. */
    if (domi_house_is_exposed(house) || house->state == DOMI_CREATED) {
        domi_text_append_formatted(text, "actor ");
        domi_text_append_name_of_actor(text, manager->config, domi_house_get_address(house));
        domi_text_append_formatted(
            text, " %s: %s\n", domi_behaviour_name(domi_house_get_behaviour(house)),
            domi_house_is_exposed(house) ? "shown to other threads" : "CREATED");
        return;
    }
    describe_address_and_behaviour(manager, text, house);
    describe_mail_of_house(text, house);
    describe_relations_of_actor(manager, text, house);
    if (domi_house_count_parked_conversations(house) != 0)
        domi_text_append_formatted(text, "  %" PRIu32 " conversations:\n",
                                   domi_house_count_parked_conversations(house));
    for (const domus_stack *stack = house->stacks; stack != NULL && told < CONVERSATIONS_MAX;
         stack = stack->next, told++)
        describe_conversation_of_actor(manager, text, stack);
    if (domi_house_count_parked_conversations(house) > told)
        domi_text_append_formatted(text, "    and %" PRIu32 " more\n",
                                   domi_house_count_parked_conversations(house) - told);
}
