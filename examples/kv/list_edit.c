/* Changes in the middle of lists. A node that has no room for one more element is split at the
 * place of the change. */
#include "list.h"

#include <errno.h>
#include <string.h>

/* --- places ----------------------------------------------------------------------------------- */

static struct kv_place last_place_of_node(struct kv_node *node)
{
    uint32_t size = kv_list_size_of_element_from_bytes(node->bytes + node->end - sizeof size);

    return (struct kv_place){node, node->end - size - KV_AROUND};
}

struct kv_place kv_list_last_place(const struct kv_list *list)
{
    return last_place_of_node(list->ends[KV_TAIL]);
}

struct kv_place kv_list_place_before(struct kv_place place)
{
    if (place.at == place.node->begin) {
        struct kv_node *before = place.node->next[KV_HEAD];
        return before != NULL ? last_place_of_node(before) : (struct kv_place){NULL, 0};
    }
    uint32_t size = kv_list_size_of_element_from_bytes(place.node->bytes + place.at - sizeof size);
    return (struct kv_place){place.node, place.at - size - KV_AROUND};
}

/* --- nodes ------------------------------------------------------------------------------------ */

static void unlink_node(struct kv_memory *memory, struct kv_list *list, struct kv_node *node)
{
    for (int end = KV_HEAD; end <= KV_TAIL; end++) {
        struct kv_node *beside = node->next[end];
        if (beside != NULL)
            beside->next[1 - end] = node->next[1 - end];
        else
            list->ends[end] = node->next[1 - end];
    }
    kv_free_and_uncount_memory(memory, node);
}

/* Add an empty node to a list, behind another node. */
static struct kv_node *add_node_behind(struct kv_memory *memory, struct kv_list *list,
                                       struct kv_node *node, uint32_t least)
{
    uint32_t room = least > KV_NODE_BYTES ? least : KV_NODE_BYTES;
    struct kv_node *behind = node->next[KV_TAIL];
    struct kv_node *fresh = kv_allocate_and_count_memory(memory, sizeof *fresh + room);

    if (fresh == NULL)
        return NULL;
    *fresh = (struct kv_node){.room = room, .next = {node, behind}};
    node->next[KV_TAIL] = fresh;
    if (behind != NULL)
        behind->next[KV_HEAD] = fresh;
    else
        list->ends[KV_TAIL] = fresh;
    return fresh;
}

/* Move the elements of a node from `at` on to a new node behind it. */
static struct kv_node *split_node(struct kv_memory *memory, struct kv_list *list,
                                  struct kv_node *node, uint32_t at)
{
    uint32_t bytes = node->end - at;
    struct kv_node *behind = add_node_behind(memory, list, node, bytes);

    if (behind == NULL)
        return NULL;
    memcpy(behind->bytes, node->bytes + at, bytes);
    behind->end = bytes;
    for (uint32_t i = 0; i < bytes;
         i += kv_list_size_of_element_from_bytes(behind->bytes + i) + KV_AROUND)
        behind->count++;
    node->end = at;
    node->count -= behind->count;
    return behind;
}

/* --- elements --------------------------------------------------------------------------------- */

/* Write an element into a gap of the right size, at byte `at` of a node. */
static struct kv_place write_element_into_gap_of_node(struct kv_node *node, uint32_t at,
                                                      const char *bytes, uint32_t size)
{
    char *to = node->bytes + at;

    memcpy(to, &size, sizeof size);
    memcpy(to + sizeof size, bytes, size);
    memcpy(to + sizeof size + size, &size, sizeof size);
    node->count++;
    return (struct kv_place){node, at};
}

/* Make a gap of `whole` bytes before byte `at` of a node. Returns false if the node has no room for
 * it. */
static bool make_gap_in_node(struct kv_node *node, uint32_t *at, uint32_t whole)
{
    if (node->room - node->end >= whole) {
        memmove(node->bytes + *at + whole, node->bytes + *at, node->end - *at);
        node->end += whole;
        return true;
    }
    if (node->begin < whole)
        return false;
    memmove(node->bytes + node->begin - whole, node->bytes + node->begin, *at - node->begin);
    node->begin -= whole;
    *at -= whole;
    return true;
}

int kv_list_insert_before_place(struct kv_memory *memory, struct kv_list *list,
                                struct kv_place *place, const char *bytes, uint32_t size)
{
    uint32_t whole = size + KV_AROUND;
    struct kv_node *node = place->node;
    uint32_t at = place->at;

    memory->changes++;
    if (!make_gap_in_node(node, &at, whole)) {
        struct kv_node *before = node->next[KV_HEAD];
        if (at == node->begin && before == NULL) {
            int error = kv_list_add_element_at_end(memory, list, KV_HEAD, bytes, size);
            if (error == 0)
                *place = (struct kv_place){list->ends[KV_HEAD], list->ends[KV_HEAD]->begin};
            return error;
        }
        if (at == node->begin)
            node = before;
        else if (split_node(memory, list, node, at) == NULL)
            return -ENOMEM;
        if (node->room - node->end < whole &&
            (node = add_node_behind(memory, list, node, whole)) == NULL)
            return -ENOMEM;
        at = node->end;
        node->end += whole;
    }
    *place = write_element_into_gap_of_node(node, at, bytes, size);
    list->count++;
    return 0;
}

struct kv_place kv_list_remove_element_at_place(struct kv_memory *memory, struct kv_list *list,
                                                struct kv_place place)
{
    struct kv_node *node = place.node, *behind = node->next[KV_TAIL];
    uint32_t whole = kv_list_size_of_element_from_bytes(node->bytes + place.at) + KV_AROUND;

    memory->changes++;
    list->count--;
    node->end -= whole;
    if (--node->count == 0) {
        unlink_node(memory, list, node);
    } else {
        memmove(node->bytes + place.at, node->bytes + place.at + whole, node->end - place.at);
        if (place.at != node->end)
            return place;
    }
    return (struct kv_place){behind, behind != NULL ? behind->begin : 0};
}

void kv_list_remove_elements_at_end(struct kv_memory *memory, struct kv_list *list, enum kv_end end,
                                    uint64_t count)
{
    memory->changes++;
    while (count != 0 && list->count != 0) {
        struct kv_node *node = list->ends[end];
        if (node->count > count) {
            kv_list_remove_element_at_end(memory, list, end);
            count--;
            continue;
        }
        count -= node->count;
        list->count -= node->count;
        unlink_node(memory, list, node);
    }
}

void kv_list_remove_first_node(struct kv_memory *memory, struct kv_list *list)
{
    list->count -= list->ends[KV_HEAD]->count;
    unlink_node(memory, list, list->ends[KV_HEAD]);
}
