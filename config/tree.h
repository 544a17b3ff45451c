/* A YAML document as a tree of nodes, each of which knows its line and column. */
#ifndef DOMI_CONFIG_TREE_H
#define DOMI_CONFIG_TREE_H

#include "config/issues.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* most mappings and sequences that a document may have within each other */
#define DOMI_YAML_DEPTH_MAX 16
#define DOMI_YAML_NODES_MAX 4096 /* most nodes of one document */
/* bytes of a path of keys such as "io.backend", its NUL included */
#define DOMI_YAML_PATH_SIZE 256

enum domi_yaml_node_kind {
    DOMI_YAML_SCALAR,
    DOMI_YAML_MAPPING,
    DOMI_YAML_SEQUENCE,
};

/* A node is named by its number. Number 0 is the root. The root is no node's child, so in `first`,
 * `last` and `next` 0 means that there is none. */
struct domi_yaml_node {
    enum domi_yaml_node_kind kind; /* kind of the node: mapping, sequence or scalar */
    bool dropped; /* whether the node is wrong and was reported; it and all below it are ignored */
    uint32_t parent, first, last, next;
    uint32_t place; /* index of the node among its parent's children, from 0 */
    uint32_t count; /* number of the node's children in the tree */
    size_t key;   /* offset in `text` of the node's key; an element of a sequence has the key "" */
    size_t value; /* offset in `text` of the node's value, if it is a scalar */
    /* place of the node's key in the source; the same as `at` for an element of a sequence */
    struct domi_yaml_origin key_at;
    struct domi_yaml_origin at; /* place of the node's value in the source */
};

struct domi_yaml_tree {
    struct domi_yaml_node *nodes; /* all nodes of the document, the root first */
    uint32_t count;               /* number of nodes; 0: there was no document in the source */
    size_t capacity;              /* number of nodes for which there is room in the tree */
    /* all keys and values of the document, each NUL-terminated; the array starts with "" */
    char *text;
    size_t text_size, text_capacity;
    /* whether reading the source stopped at an error, so keys that seem to be missing may follow
     * it */
    bool cut;
    /* text that is printed as the path of every node; NULL: the node's own path is */
    const char *named;
};

/* Add a node to the tree under `parent`; `value` is NULL for mappings and sequences. Returns 0;
 * -ENOMEM; -E2BIG beyond DOMI_YAML_NODES_MAX. */
int domi_yaml_tree_add_node(struct domi_yaml_tree *tree, uint32_t parent,
                            const struct domi_yaml_node *node, const char *key, const char *value,
                            uint32_t *ret_number);

/* Make a node of the tree a scalar with this value; its children are forgotten. Returns 0;
 * -ENOMEM. */
int domi_yaml_tree_make_scalar(struct domi_yaml_tree *tree, uint32_t number, const char *value);

/* Returns the child of `parent` that has the key `key`; 0 if there is none. */
uint32_t domi_yaml_tree_find_child(const struct domi_yaml_tree *tree, uint32_t parent,
                                   const char *key);

/* Write the path of a node of the tree, such as "scheduler.steal.floor" or "listeners[0].address";
 * "" for the root. */
void domi_yaml_tree_write_path(const struct domi_yaml_tree *tree, uint32_t number,
                               char path[DOMI_YAML_PATH_SIZE]);

void domi_yaml_tree_fini(struct domi_yaml_tree *tree);

static inline const char *domi_yaml_tree_get_key(const struct domi_yaml_tree *tree, uint32_t number)
{
    return tree->text + tree->nodes[number].key;
}

static inline const char *domi_yaml_tree_get_value(const struct domi_yaml_tree *tree,
                                                   uint32_t number)
{
    return tree->text + tree->nodes[number].value;
}

#endif
