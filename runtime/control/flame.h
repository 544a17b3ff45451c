/* A flame is a tree of names: stacks that begin with the same names share them, and each node
 * counts the stacks that go through it. It is written as folded stacks, and as a flame graph.
 *
 * Its memory grows by the stacks that are added; whoever adds them bounds it. Thread-safety: one
 * thread at a time while stacks are added; then any thread reads. */
#ifndef DOMI_RUNTIME_CONTROL_FLAME_H
#define DOMI_RUNTIME_CONTROL_FLAME_H

#include <domus/cpu_profile.h>

#include <stdbool.h>

/* Most names of a stack: the root of the behaviour, "(cut)", and the functions. */
#define DOMI_FLAME_DEPTH_MAX (DOMUS_CPU_PROFILE_DEPTH_MAX + 2)

#define DOMI_FLAME_BUCKETS 4096u /* number of buckets in the table of names */

typedef struct domi_flame_node {
    uint32_t name;  /* number of the node's name */
    uint32_t first; /* number of its first child; 0: none */
    uint32_t next;  /* number of its next sibling; 0: none */
    uint64_t self;  /* number of stacks that end at the node */
    uint64_t total; /* number of stacks that go through the node, with those that end there */
} domi_flame_node;

typedef struct domi_flame_name {
    uint32_t text; /* offset of the name in `texts` */
    uint32_t next; /* index, plus 1, of the next name in the same bucket; 0: none */
} domi_flame_name;

/* An array that grows. */
typedef struct domi_flame_array {
    void *at;
    size_t count;
    size_t capacity;
} domi_flame_array;

typedef struct domi_flame {
    domi_flame_array nodes; /* array of domi_flame_node; node 0 is the root and has no name */
    domi_flame_array names; /* array of domi_flame_name */
    domi_flame_array texts; /* array of char: the names, each with a NUL */
    /* index, plus 1, of the first name of each bucket; 0: none */
    uint32_t buckets[DOMI_FLAME_BUCKETS];
} domi_flame;

/* Make an empty flame. Returns 0; -ENOMEM, and there is nothing to free. */
int domi_flame_init(domi_flame *flame);
void domi_flame_fini(domi_flame *flame);

/* Find or make the number of a name. Bytes that are no printable ASCII are escaped, a semicolon
 * becomes a colon, and a name of more than DOMUS_CPU_PROFILE_NAME_MAX bytes is cut. Returns 0;
 * -ENOMEM. */
int domi_flame_find_name(domi_flame *flame, const char *text, uint32_t *ret_name);

/* Add `weight` stacks of 1..DOMI_FLAME_DEPTH_MAX names, the outermost first. Returns 0; -ENOMEM,
 * and then the flame is as it was, but may have nodes that count nothing. */
int domi_flame_add(domi_flame *flame, const uint32_t *names, uint32_t depth, uint64_t weight);

/* Sort the children of each node by their names, when all stacks are there. */
void domi_flame_sort(domi_flame *flame);

static inline const domi_flame_node *domi_flame_node_at(const domi_flame *flame, uint32_t index)
{
    return (const domi_flame_node *)flame->nodes.at + index;
}

static inline const char *domi_flame_text(const domi_flame *flame, uint32_t name)
{
    const domi_flame_name *names = flame->names.at;

    return (const char *)flame->texts.at + names[name].text;
}

/* A walk over all nodes of a flame, each before its children. */
typedef struct domi_flame_walk {
    const domi_flame *flame;
    uint32_t depth; /* depth of the present node */
    /* numbers of the nodes from node 0 to the present one */
    uint32_t path[DOMI_FLAME_DEPTH_MAX + 1];
    uint64_t before[DOMI_FLAME_DEPTH_MAX + 1]; /* stacks to the left of each node of `path` */
} domi_flame_walk;

/* Begin a walk at node 0. */
void domi_flame_walk_begin(domi_flame_walk *walk, const domi_flame *flame);

/* Go to the next node, `into` the children of the present one or past them. Returns false after the
 * last one. */
bool domi_flame_walk_next(domi_flame_walk *walk, bool into);

/* Write the folded stacks (domus/cpu_profile.h). */
int domi_flame_write_folded(const domi_flame *flame, domus_cpu_profile_write *write, void *context);

/* Write the flame graph, which has `title` in its head. */
int domi_flame_write_svg(const domi_flame *flame, const char *title, domus_cpu_profile_write *write,
                         void *context);

#endif
