/* Lists that pack their elements into nodes (list.h). */
#include "list.h"

#include <errno.h>
#include <string.h>

#define NODE_FIRST  120u /* bytes of the only node of a small list, at first */
#define ELEMENT_MAX DOMUS_SLICE_MAX

uint32_t kv_list_size_of_element_from_bytes(const char *from)
{
    uint32_t size;

    memcpy(&size, from, sizeof size);
    return size;
}

struct kv_list *kv_list_new(struct kv_memory *memory)
{
    struct kv_list *list = kv_allocate_and_count_memory(memory, sizeof *list);

    if (list != NULL)
        *list = (struct kv_list){0};
    return list;
}

void kv_list_free(struct kv_memory *memory, struct kv_list *list)
{
    for (struct kv_node *node = list->ends[KV_HEAD], *next; node != NULL; node = next) {
        next = node->next[KV_TAIL];
        kv_free_and_uncount_memory(memory, node);
    }
    kv_free_and_uncount_memory(memory, list);
}

static int add_node_at_end(struct kv_memory *memory, struct kv_list *list, enum kv_end end,
                           uint32_t least)
{
    uint32_t room = list->count == 0 ? NODE_FIRST : KV_NODE_BYTES;
    struct kv_node *old = list->ends[end];

    if (room < least)
        room = least;
    struct kv_node *node = kv_allocate_and_count_memory(memory, sizeof *node + room);
    if (node == NULL)
        return -ENOMEM;
    *node = (struct kv_node){.room = room};
    if (end == KV_HEAD)
        node->begin = node->end = room;
    node->next[1 - end] = old;
    if (old != NULL)
        old->next[end] = node;
    else
        list->ends[1 - end] = node;
    list->ends[end] = node;
    return 0;
}

int kv_list_add_element_at_end(struct kv_memory *memory, struct kv_list *list, enum kv_end end,
                               const char *bytes, uint32_t size)
{
    struct kv_node *node = list->ends[end];
    uint32_t whole = size + KV_AROUND;

    if (size > ELEMENT_MAX)
        return -EMSGSIZE;
    if (node == NULL || (end == KV_HEAD ? node->begin : node->room - node->end) < whole) {
        int error = add_node_at_end(memory, list, end, whole);
        if (error != 0)
            return error;
        node = list->ends[end];
    }
    if (end == KV_HEAD)
        node->begin -= whole;
    char *to = node->bytes + (end == KV_HEAD ? node->begin : node->end);
    if (end == KV_TAIL)
        node->end += whole;
    memcpy(to, &size, sizeof size);
    memcpy(to + sizeof size, bytes, size);
    memcpy(to + sizeof size + size, &size, sizeof size);
    memory->changes++;
    node->count++;
    list->count++;
    return 0;
}

domus_resp_bytes kv_list_element_at_end(const struct kv_list *list, enum kv_end end)
{
    const struct kv_node *node = list->ends[end];
    const char *at;
    uint32_t size;

    if (end == KV_HEAD) {
        at = node->bytes + node->begin;
        size = kv_list_size_of_element_from_bytes(at);
        return (domus_resp_bytes){at + sizeof size, size};
    }
    at = node->bytes + node->end - sizeof size;
    size = kv_list_size_of_element_from_bytes(at);
    return (domus_resp_bytes){at - size, size};
}

void kv_list_remove_element_at_end(struct kv_memory *memory, struct kv_list *list, enum kv_end end)
{
    struct kv_node *node = list->ends[end];
    uint32_t whole = (uint32_t)kv_list_element_at_end(list, end).size + KV_AROUND;

    if (end == KV_HEAD)
        node->begin += whole;
    else
        node->end -= whole;
    memory->changes++;
    list->count--;
    if (--node->count != 0)
        return;
    struct kv_node *next = node->next[1 - end];
    list->ends[end] = next;
    if (next != NULL)
        next->next[end] = NULL;
    else
        list->ends[1 - end] = NULL;
    kv_free_and_uncount_memory(memory, node);
}

struct kv_place kv_list_place_of_index(const struct kv_list *list, uint64_t index)
{
    struct kv_node *node = list->ends[KV_HEAD];

    if (index >= list->count / 2) { /* walk from the tail, which is nearer to the element */
        uint64_t behind = list->count;
        for (node = list->ends[KV_TAIL]; behind - node->count > index; node = node->next[KV_HEAD])
            behind -= node->count;
        index -= behind - node->count;
    } else {
        for (; index >= node->count; node = node->next[KV_TAIL])
            index -= node->count;
    }
    struct kv_place place = {node, node->begin};
    while (index-- > 0)
        place = kv_list_place_behind(place);
    return place;
}

domus_resp_bytes kv_list_element_at_place(struct kv_place place)
{
    const char *at = place.node->bytes + place.at;

    return (domus_resp_bytes){at + sizeof(uint32_t), kv_list_size_of_element_from_bytes(at)};
}

struct kv_place kv_list_place_behind(struct kv_place place)
{
    place.at += kv_list_size_of_element_from_bytes(place.node->bytes + place.at) + KV_AROUND;
    if (place.at == place.node->end) {
        place.node = place.node->next[KV_TAIL];
        place.at = place.node != NULL ? place.node->begin : 0;
    }
    return place;
}
