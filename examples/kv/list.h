/* Lists: elements that stand one behind the other in nodes of some KiB, which are linked.
 *
 * Each element has its size before and behind it, so a list is walked from both ends. */
#ifndef KV_LIST_H
#define KV_LIST_H

#include "store.h"

/* The bytes of elements for which a node of a list has room. This and struct kv_node are for the
 * files of lists alone. */
#define KV_NODE_BYTES 4000u
/* number of bytes that the two sizes around an element take */
#define KV_AROUND ((uint32_t)(2 * sizeof(uint32_t)))

struct kv_node {
    struct kv_node *next[2]; /* the neighbours of the node: before it and behind it; NULL: none */
    uint32_t room;
    uint32_t begin, end; /* the node's elements are the bytes [begin, end) of `bytes` */
    uint32_t count;
    char bytes[];
};

/* Returns the size of an element of a list. `from` is the place of one of the two sizes at its
 * ends. */
uint32_t kv_list_size_of_element_from_bytes(const char *from);

struct kv_list {
    struct kv_node *ends[2]; /* the first node of the list and the last one */
    uint64_t count;          /* number of elements in the list */
};

enum kv_end { KV_HEAD, KV_TAIL };

/* A place in a list, at an element or (`node` is NULL) behind the last one. */
struct kv_place {
    struct kv_node *node;
    uint32_t at;
};

struct kv_list *kv_list_new(struct kv_memory *memory);
void kv_list_free(struct kv_memory *memory, struct kv_list *list);

/* Put an element at an end of a list. Returns 0; -ENOMEM; -EMSGSIZE for an element of more than 1
 * GiB. */
int kv_list_add_element_at_end(struct kv_memory *memory, struct kv_list *list, enum kv_end end,
                               const char *bytes, uint32_t size);

/* kv_list_element_at_end() returns the element at an end of a list that is not empty, valid until
 * the list changes; kv_list_remove_element_at_end() removes that element. */
domus_resp_bytes kv_list_element_at_end(const struct kv_list *list, enum kv_end end);
void kv_list_remove_element_at_end(struct kv_memory *memory, struct kv_list *list, enum kv_end end);

/* kv_list_place_of_index() returns the place of element `index`, which is less than the count;
 * kv_list_element_at_place() the element at a place; and kv_list_place_behind() the place behind
 * it. */
struct kv_place kv_list_place_of_index(const struct kv_list *list, uint64_t index);
domus_resp_bytes kv_list_element_at_place(struct kv_place place);
struct kv_place kv_list_place_behind(struct kv_place place);
/* the place before another one; its `node` is NULL if that was the first */
struct kv_place kv_list_place_before(struct kv_place place);

/* Returns the place of the last element of a list that is not empty. */
struct kv_place kv_list_last_place(const struct kv_list *list);

/* Insert an element before the one at `*place`, which is the place of the new element then. Returns
 * 0; -ENOMEM, and the list is as it was. */
int kv_list_insert_before_place(struct kv_memory *memory, struct kv_list *list,
                                struct kv_place *place, const char *bytes, uint32_t size);

/* Remove the element at a place. Returns the place of the element behind it. */
struct kv_place kv_list_remove_element_at_place(struct kv_memory *memory, struct kv_list *list,
                                                struct kv_place place);

/* Remove the first node of a list that is not empty. */
void kv_list_remove_first_node(struct kv_memory *memory, struct kv_list *list);

/* Remove `count` elements from an end of a list, or all if it has fewer. */
void kv_list_remove_elements_at_end(struct kv_memory *memory, struct kv_list *list, enum kv_end end,
                                    uint64_t count);

#endif
