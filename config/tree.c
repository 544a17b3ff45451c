/* A tree of a YAML document is one array of nodes and one of text. Both grow as needed, up to a
 * limit. */
#include "config/tree.h"

#include "config/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Copy a string into the text of the tree; `ret_place` gets its offset there. */
static int copy_text_into_tree(struct domi_yaml_tree *tree, const char *text, size_t *ret_place)
{
    size_t size = strlen(text) + 1;
    int result = domi_yaml_memory_grow((void **)&tree->text, &tree->text_capacity,
                                       tree->text_size + size, 1);

    if (result < 0)
        return result;
    memcpy(tree->text + tree->text_size, text, size);
    *ret_place = tree->text_size;
    tree->text_size += size;
    return 0;
}

/* Link a node as the last child of its parent in the tree. */
static void link_child_to_parent(struct domi_yaml_tree *tree, uint32_t parent, uint32_t child)
{
    struct domi_yaml_node *above = &tree->nodes[parent];

    if (above->first == 0)
        above->first = child;
    else
        tree->nodes[above->last].next = child;
    above->last = child;
    tree->nodes[child].parent = parent;
    tree->nodes[child].place = above->count++;
}

int domi_yaml_tree_add_node(struct domi_yaml_tree *tree, uint32_t parent,
                            const struct domi_yaml_node *node, const char *key, const char *value,
                            uint32_t *ret_number)
{
    struct domi_yaml_node added = *node;
    size_t empty;
    int result = tree->text_size == 0 ? copy_text_into_tree(tree, "", &empty) : 0;

    if (tree->count == DOMI_YAML_NODES_MAX)
        return -E2BIG;
    added.key = added.value = 0;
    if (result == 0 && key[0] != '\0')
        result = copy_text_into_tree(tree, key, &added.key);
    if (result == 0 && value != NULL)
        result = copy_text_into_tree(tree, value, &added.value);
    if (result == 0)
        result = domi_yaml_memory_grow((void **)&tree->nodes, &tree->capacity,
                                       (size_t)tree->count + 1, sizeof added);
    if (result < 0)
        return result;

    uint32_t number = tree->count++;
    tree->nodes[number] = added;
    if (number != 0)
        link_child_to_parent(tree, parent, number);
    *ret_number = number;
    return 0;
}

int domi_yaml_tree_make_scalar(struct domi_yaml_tree *tree, uint32_t number, const char *value)
{
    struct domi_yaml_node *node = &tree->nodes[number];
    int result = copy_text_into_tree(tree, value, &node->value);

    if (result < 0)
        return result;
    node->kind = DOMI_YAML_SCALAR;
    node->first = node->last = node->count = 0;
    return 0;
}

uint32_t domi_yaml_tree_find_child(const struct domi_yaml_tree *tree, uint32_t parent,
                                   const char *key)
{
    uint32_t child = tree->nodes[parent].first;

    while (child != 0 && strcmp(domi_yaml_tree_get_key(tree, child), key) != 0)
        child = tree->nodes[child].next;
    return child;
}

/* The path is written from the root down; it has at most DOMI_YAML_DEPTH_MAX + 1 steps, because no
 * node lies deeper. */
void domi_yaml_tree_write_path(const struct domi_yaml_tree *tree, uint32_t number,
                               char path[DOMI_YAML_PATH_SIZE])
{
    uint32_t way[DOMI_YAML_DEPTH_MAX + 1];
    size_t steps = 0, used = 0;

    path[0] = '\0';
    if (tree->named != NULL) {
        snprintf(path, DOMI_YAML_PATH_SIZE, "%s", tree->named);
        return;
    }
    for (; number != 0 && steps <= DOMI_YAML_DEPTH_MAX; number = tree->nodes[number].parent)
        way[steps++] = number;
    while (steps > 0 && used < DOMI_YAML_PATH_SIZE) {
        const struct domi_yaml_node *node = &tree->nodes[way[--steps]];
        const char *key = domi_yaml_tree_get_key(tree, way[steps]);
        size_t room = DOMI_YAML_PATH_SIZE - used;

        if (tree->nodes[node->parent].kind == DOMI_YAML_SEQUENCE)
            used += (size_t)snprintf(path + used, room, "[%u]", node->place);
        else
            used += (size_t)snprintf(path + used, room, "%s%.*s", used > 0 ? "." : "",
                                     domi_yaml_count_bytes_of_text_to_show(key), key);
    }
}

void domi_yaml_tree_fini(struct domi_yaml_tree *tree)
{
    domi_yaml_memory_realloc(NULL, tree->nodes, 0);
    domi_yaml_memory_realloc(NULL, tree->text, 0);
    *tree = (struct domi_yaml_tree){0};
}
