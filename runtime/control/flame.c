/* The tree of a flame (flame.h): its names, its nodes, and the walk over them. */
#include "runtime/control/flame.h"

#include "base/check.h"
#include "base/memory.h"

#include <domus/text.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 256u
/* largest number of nodes, of names and of bytes of names in a flame: indices have 32 bits */
#define COUNT_MAX UINT32_MAX

/* --- arrays ----------------------------------------------------------------------------------- */

/* Make room for `more` elements of `size` bytes each in a growing array of a flame. Returns 0;
 * -ENOMEM. */
static int make_room_in_array_of_flame(domi_flame_array *array, size_t more, size_t size)
{
    size_t wanted = array->capacity != 0 ? array->capacity : CAPACITY_FIRST;

    if (array->count + more > COUNT_MAX)
        return -ENOMEM;
    if (array->count + more <= array->capacity)
        return 0;
    while (wanted < array->count + more)
        wanted *= 2;
    void *grown = array->at == NULL ? domi_memory_new_bytes(wanted * size)
                                    : domi_memory_grow_block(array->at, wanted * size);
    if (grown == NULL)
        return -ENOMEM;
    array->at = grown;
    array->capacity = wanted;
    return 0;
}

static domi_flame_node *get_node_of_flame(domi_flame *flame, uint32_t index)
{
    return (domi_flame_node *)flame->nodes.at + index;
}

/* Make a node of a flame, without a parent yet. Returns 0; -ENOMEM. */
static int add_node_to_flame(domi_flame *flame, uint32_t name, uint32_t *ret_index)
{
    if (make_room_in_array_of_flame(&flame->nodes, 1, sizeof(domi_flame_node)) != 0)
        return -ENOMEM;
    *ret_index = (uint32_t)flame->nodes.count++;
    *get_node_of_flame(flame, *ret_index) = (domi_flame_node){.name = name};
    return 0;
}

int domi_flame_init(domi_flame *flame)
{
    uint32_t top;

    memset(flame, 0, sizeof *flame);
    return add_node_to_flame(flame, 0, &top);
}

void domi_flame_fini(domi_flame *flame)
{
    domi_memory_free(flame->nodes.at);
    domi_memory_free(flame->names.at);
    domi_memory_free(flame->texts.at);
}

/* --- names ------------------------------------------------------------------------------------ */

static uint32_t hash_text_to_bucket(const char *text)
{
    /* the hash is FNV-1a without a secret key, because the names come from the program and not
     * from a stranger */
    uint32_t hash = 2166136261u;

    for (const char *at = text; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return hash % DOMI_FLAME_BUCKETS;
}

int domi_flame_find_or_add_name(domi_flame *flame, const char *given, uint32_t *ret_name)
{
    char text[DOMUS_CPU_PROFILE_NAME_MAX + 1];

    (void)domus_text_escape(given, strlen(given), text, sizeof text);
    for (char *at = strchr(text, ';'); at != NULL; at = strchr(at, ';'))
        *at = ':';
    uint32_t *bucket = &flame->buckets[hash_text_to_bucket(text)];
    for (uint32_t i = *bucket; i != 0; i = ((domi_flame_name *)flame->names.at)[i - 1].next) {
        if (strcmp(domi_flame_text_of_name(flame, i - 1), text) == 0) {
            *ret_name = i - 1;
            return 0;
        }
    }
    size_t size = strlen(text) + 1;
    if (make_room_in_array_of_flame(&flame->names, 1, sizeof(domi_flame_name)) != 0 ||
        make_room_in_array_of_flame(&flame->texts, size, 1) != 0)
        return -ENOMEM;
    *ret_name = (uint32_t)flame->names.count++;
    ((domi_flame_name *)flame->names.at)[*ret_name] =
        (domi_flame_name){(uint32_t)flame->texts.count, *bucket};
    *bucket = *ret_name + 1;
    memcpy((char *)flame->texts.at + flame->texts.count, text, size);
    flame->texts.count += size;
    return 0;
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* Find the child of a node of a flame that has this name, or make it. Returns 0; -ENOMEM. */
static int find_or_add_child_of_node(domi_flame *flame, uint32_t parent, uint32_t name,
                                     uint32_t *ret_child)
{
    for (uint32_t i = get_node_of_flame(flame, parent)->first; i != 0;
         i = get_node_of_flame(flame, i)->next) {
        if (get_node_of_flame(flame, i)->name == name) {
            *ret_child = i;
            return 0;
        }
    }
    if (add_node_to_flame(flame, name, ret_child) != 0)
        return -ENOMEM;
    get_node_of_flame(flame, *ret_child)->next = get_node_of_flame(flame, parent)->first;
    get_node_of_flame(flame, parent)->first = *ret_child;
    return 0;
}

int domi_flame_add_stack(domi_flame *flame, const uint32_t *names, uint32_t depth, uint64_t weight)
{
    uint32_t path[DOMI_FLAME_DEPTH_MAX + 1] = {0};

    DOMI_CHECK(depth >= 1 && depth <= DOMI_FLAME_DEPTH_MAX);
    for (uint32_t i = 0; i < depth; i++) {
        if (find_or_add_child_of_node(flame, path[i], names[i], &path[i + 1]) != 0)
            return -ENOMEM;
    }
    for (uint32_t i = 0; i <= depth; i++)
        get_node_of_flame(flame, path[i])->total += weight;
    get_node_of_flame(flame, path[depth])->self += weight;
    return 0;
}

/* Merge two sorted lists of sibling nodes into one. Returns the first sibling of the merged
 * list. */
static uint32_t merge_sorted_siblings(domi_flame *flame, uint32_t left, uint32_t right)
{
    uint32_t first = 0;
    uint32_t *link = &first;

    while (left != 0 && right != 0) {
        bool is_left =
            strcmp(domi_flame_text_of_name(flame, get_node_of_flame(flame, left)->name),
                   domi_flame_text_of_name(flame, get_node_of_flame(flame, right)->name)) <= 0;
        uint32_t *taken = is_left ? &left : &right;
        *link = *taken;
        link = &get_node_of_flame(flame, *taken)->next;
        *taken = *link;
    }
    *link = left != 0 ? left : right;
    return first;
}

/* list i of the merge sort has 2^i siblings, so 32 lists hold as many as a 32-bit number counts */
#define LISTS 32u

/* Sort a list of sibling nodes by name, with a merge sort from the bottom up. Returns the first
 * sibling. */
static uint32_t sort_siblings_by_name(domi_flame *flame, uint32_t rest)
{
    uint32_t lists[LISTS] = {0};
    uint32_t sorted = 0;

    while (rest != 0) {
        uint32_t one = rest;
        uint32_t i = 0;
        rest = get_node_of_flame(flame, one)->next;
        get_node_of_flame(flame, one)->next = 0;
        for (; i < LISTS - 1 && lists[i] != 0; i++) {
            one = merge_sorted_siblings(flame, lists[i], one);
            lists[i] = 0;
        }
        lists[i] = merge_sorted_siblings(flame, lists[i], one);
    }
    for (uint32_t i = 0; i < LISTS; i++)
        sorted = merge_sorted_siblings(flame, lists[i], sorted);
    return sorted;
}

void domi_flame_sort_children(domi_flame *flame)
{
    for (uint32_t i = 0; i < flame->nodes.count; i++)
        get_node_of_flame(flame, i)->first =
            sort_siblings_by_name(flame, get_node_of_flame(flame, i)->first);
}

/* --- the walk --------------------------------------------------------------------------------- */

void domi_flame_walk_begin(domi_flame_walk *walk, const domi_flame *flame)
{
    walk->flame = flame;
    walk->depth = 0;
    walk->path[0] = 0;
    walk->before[0] = 0;
}

bool domi_flame_walk_to_next_node(domi_flame_walk *walk, bool into)
{
    const domi_flame_node *node = domi_flame_node_at(walk->flame, walk->path[walk->depth]);

    if (into && node->first != 0) {
        walk->depth++;
        walk->path[walk->depth] = node->first;
        walk->before[walk->depth] = walk->before[walk->depth - 1];
        return true;
    }
    for (; walk->depth != 0; walk->depth--) {
        node = domi_flame_node_at(walk->flame, walk->path[walk->depth]);
        if (node->next == 0)
            continue;
        walk->before[walk->depth] += node->total;
        walk->path[walk->depth] = node->next;
        return true;
    }
    return false;
}
