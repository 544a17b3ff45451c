/* Keeps the asks that the peer of a channel has to answer (asked.h). The number of an ask is in its
 * `error`, which has no other use before the ask is answered. */
#include "io/pipelines/asked.h"

#include "base/check.h"
#include "base/memory.h"

#include <errno.h>

#define LISTS_LEAST 16u

static uint32_t get_number_of_ask(const domi_node *node)
{
    return (uint32_t)((const domi_envelope *)(const void *)node)->error;
}

static domi_node **find_list_of_asks_with_number(const domi_asked *asked, uint32_t number)
{
    return &asked->lists[number & (asked->lists_count - 1)];
}

int domi_asked_make_room_for_ask(domi_asked *asked)
{
    domi_asked grown = *asked;

    if (DOMI_LIKELY(asked->count < asked->lists_count))
        return 0;
    grown.lists_count = asked->lists_count == 0 ? LISTS_LEAST : 2 * asked->lists_count;
    grown.lists = domi_memory_new(grown.lists_count * sizeof(domi_node *));
    if (grown.lists == NULL)
        /* without memory for more lists the present ones stay, and only grow longer */
        return asked->lists_count == 0 ? -ENOMEM : 0;
    for (uint32_t i = 0; i < asked->lists_count; i++) {
        while (asked->lists[i] != NULL) {
            domi_node *node = domi_list_take_first_node(&asked->lists[i]);
            domi_list_append_node(find_list_of_asks_with_number(&grown, get_number_of_ask(node)),
                                  node);
        }
    }
    domi_memory_free(asked->lists);
    *asked = grown;
    return 0;
}

void domi_asked_put_ask(domi_asked *asked, domi_envelope *ask, uint32_t number)
{
    ask->error = (int32_t)number;
    domi_list_append_node(find_list_of_asks_with_number(asked, number), &ask->node);
    if (asked->count++ == 0)
        asked->oldest = number;
}

/* Returns the node before the ask with this number, in the list that holds the ask; NULL: there is
 * no such ask. */
static domi_node *find_node_before_ask(domi_node *tail, uint32_t number)
{
    domi_node *before = tail;

    if (tail == NULL)
        return NULL;
    while (get_number_of_ask(before->next) != number) {
        before = before->next;
        if (before == tail)
            return NULL;
    }
    return before;
}

domi_envelope *domi_asked_take_by_number(domi_asked *asked, uint32_t number)
{
    if (asked->count == 0)
        return NULL;
    domi_node **tail = find_list_of_asks_with_number(asked, number);
    domi_node *before = find_node_before_ask(*tail, number);
    if (before == NULL)
        return NULL;
    domi_node *node = before->next;
    domi_list_take_node_behind(tail, before);
    asked->count--;
    return (domi_envelope *)(void *)node;
}

/* Returns the lowest number of all asks with the peer. The first ask of each list is the oldest one
 * of that list. */
static uint32_t find_lowest_number(const domi_asked *asked)
{
    /* numbers of asks are compared as distances from asked->oldest, because they wrap */
    uint32_t lowest = UINT32_MAX;

    for (uint32_t i = 0; i < asked->lists_count; i++) {
        const domi_node *tail = asked->lists[i];
        if (tail != NULL && get_number_of_ask(tail->next) - asked->oldest < lowest)
            lowest = get_number_of_ask(tail->next) - asked->oldest;
    }
    return asked->oldest + lowest;
}

/* Find the oldest ask with the peer. Each number is passed once, so this costs O(1) for each ask;
 * if very many younger asks were answered before the oldest, it costs at most one look into each
 * list. */
domi_envelope *domi_asked_get_oldest(domi_asked *asked)
{
    domi_node *before = NULL;

    if (asked->count == 0)
        return NULL;
    for (uint32_t i = 0; before == NULL; i++) {
        before = find_node_before_ask(*find_list_of_asks_with_number(asked, asked->oldest),
                                      asked->oldest);
        if (before == NULL)
            asked->oldest = i < asked->lists_count ? asked->oldest + 1 : find_lowest_number(asked);
    }
    return (domi_envelope *)(void *)before->next;
}

domi_envelope *domi_asked_take_oldest(domi_asked *asked)
{
    return domi_asked_get_oldest(asked) != NULL ? domi_asked_take_by_number(asked, asked->oldest)
                                                : NULL;
}

void domi_asked_free_lists(domi_asked *asked)
{
    DOMI_CHECK(asked->count == 0);
    domi_memory_free(asked->lists);
}
