/* Lists: elements that stand one behind the other in nodes of some KiB, which are linked.
 *
 * Each element has its size before and behind it, so a list is walked from both ends. */
#ifndef KV_LIST_H
#define KV_LIST_H

#include "store.h"

struct kv_node;

struct kv_list {
    struct kv_node *ends[2]; /* the first node and the last one */
    uint64_t count;          /* elements */
};

enum kv_end { KV_HEAD, KV_TAIL };

/* A place in a list, at an element or (`node` is NULL) behind the last one. */
struct kv_place {
    struct kv_node *node;
    uint32_t at;
};

struct kv_list *kv_list_new(struct kv_memory *memory);
void kv_list_free(struct kv_memory *memory, struct kv_list *list);

/* Put an element at an end. Returns 0; -ENOMEM; -EMSGSIZE for an element of more than 1 GiB. */
int kv_list_push(struct kv_memory *memory, struct kv_list *list, enum kv_end end, const char *bytes,
                 uint32_t size);

/* The element at an end of a list that is not empty, valid until the list changes; and remove it.
 */
domus_resp_bytes kv_list_end(const struct kv_list *list, enum kv_end end);
void kv_list_pop(struct kv_memory *memory, struct kv_list *list, enum kv_end end);

/* The place of element `index`, which is less than the count; the element there; and the next
 * place. */
struct kv_place kv_list_seek(const struct kv_list *list, uint64_t index);
domus_resp_bytes kv_list_at(struct kv_place place);
struct kv_place kv_list_next(struct kv_place place);

#endif
