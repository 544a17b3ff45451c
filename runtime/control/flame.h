/* A flame is a tree of names: stacks that begin with the same names share them, and each node
 * counts the stacks that go through it. It is written as folded stacks, and as a flame graph.
 *
 * Its memory grows by the stacks that are added; whoever adds them bounds it. Thread-safety: one
 * thread at a time while stacks are added; then any thread reads. */
#ifndef DOMI_RUNTIME_CONTROL_FLAME_H
#define DOMI_RUNTIME_CONTROL_FLAME_H

#include <domus/cpu_profile.h>

#include <stdbool.h>

/* Most names of a stack in a flame: the root of the behaviour, "(cut)", and the functions. */
#define DOMI_FLAME_DEPTH_MAX (DOMUS_CPU_PROFILE_DEPTH_MAX + 2)

#define DOMI_FLAME_BUCKETS 4096u /* number of buckets in a flame's hash table of names */

typedef struct domi_flame_node {
    uint32_t name;  /* node's name, as its number in the flame */
    uint32_t first; /* number of the node's first child; 0: no child */
    uint32_t next;  /* number of the node's next sibling; 0: no further sibling */
    uint64_t self;  /* number of stacks in the flame that end at the node */
    /* number of stacks in the flame that go through the node, those that end there included */
    uint64_t total;
} domi_flame_node;

typedef struct domi_flame_name {
    uint32_t text; /* offset of the name's text in `texts` of the flame */
    /* index, plus 1, of the next name in the same bucket of the hash table; 0: none */
    uint32_t next;
} domi_flame_name;

/* An array of a flame, which grows by doubling. */
typedef struct domi_flame_array {
    void *at;
    size_t count;
    size_t capacity;
} domi_flame_array;

typedef struct domi_flame {
    /* nodes of the flame, an array of domi_flame_node; node 0 is the root and has no name */
    domi_flame_array nodes;
    domi_flame_array names; /* names in the flame, an array of domi_flame_name */
    domi_flame_array texts; /* texts of the names, each with a NUL, in an array of char */
    /* hash table of names: for each bucket the index, plus 1, of its first name; 0: none */
    uint32_t buckets[DOMI_FLAME_BUCKETS];
} domi_flame;

/* Make a flame without stacks. Returns 0; -ENOMEM, and then there is nothing to free. */
int domi_flame_init(domi_flame *flame);
void domi_flame_fini(domi_flame *flame);

/* Find the number of a name in a flame, or add the name. Bytes that are no printable ASCII are
 * escaped, a semicolon becomes a colon, and a name of more than DOMUS_CPU_PROFILE_NAME_MAX bytes is
 * cut. Returns 0; -ENOMEM. */
int domi_flame_find_or_add_name(domi_flame *flame, const char *text, uint32_t *ret_name);

/* Add a stack of 1..DOMI_FLAME_DEPTH_MAX names, the outermost first, to a flame, and count it
 * `weight` times. Returns 0; -ENOMEM, and then no count has changed, but the flame may have new
 * nodes that count nothing. */
int domi_flame_add_stack(domi_flame *flame, const uint32_t *names, uint32_t depth, uint64_t weight);

/* Sort the children of each node of a flame by their names; called when all stacks are added. */
void domi_flame_sort_children(domi_flame *flame);

static inline const domi_flame_node *domi_flame_node_at(const domi_flame *flame, uint32_t index)
{
    return (const domi_flame_node *)flame->nodes.at + index;
}

static inline const char *domi_flame_text_of_name(const domi_flame *flame, uint32_t name)
{
    const domi_flame_name *names = flame->names.at;

    return (const char *)flame->texts.at + names[name].text;
}

/* A walk over all nodes of a flame; each node comes before its children. */
typedef struct domi_flame_walk {
    const domi_flame *flame;
    uint32_t depth; /* depth of the node at which the walk is */
    /* numbers of the nodes on the way from node 0 to the node at which the walk is */
    uint32_t path[DOMI_FLAME_DEPTH_MAX + 1];
    /* for each node of `path`: how many stacks are drawn to its left */
    uint64_t before[DOMI_FLAME_DEPTH_MAX + 1];
} domi_flame_walk;

/* Begin a walk over a flame at node 0. */
void domi_flame_walk_begin(domi_flame_walk *walk, const domi_flame *flame);

/* Go to the next node of a flame: with `into` to the first child of the present node, if it has
 * one, else past its children. Returns false after the last node. */
bool domi_flame_walk_to_next_node(domi_flame_walk *walk, bool into);

/* Write a flame as folded stacks (domus/cpu_profile.h). */
int domi_flame_write_folded(const domi_flame *flame, domus_cpu_profile_write *write, void *context);

/* Write a flame as a flame graph in SVG, which has `title` at its top. */
int domi_flame_write_svg(const domi_flame *flame, const char *title, domus_cpu_profile_write *write,
                         void *context);

#endif
