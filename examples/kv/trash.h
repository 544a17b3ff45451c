/* Trash: what was deleted and is so large that to free it at once would hold up the thread. It
 * counts as used memory until it is freed, which the shard does piece by piece, by a timer.
 *
 * Thread-safety: the shard that owns the store. */
#ifndef KV_TRASH_H
#define KV_TRASH_H

#include "list.h"

#define KV_TRASH_PIECE 2048u /* items and nodes that are freed at once */

/* Take a list, or a table that was allocated by itself. Returns false if it is small, or there is
 * no memory: then the caller frees it. */
bool kv_trash_list(struct kv_memory *memory, struct kv_list *list);
bool kv_trash_table(struct kv_memory *memory, struct kv_table *table);

/* Free a piece. Returns whether there is more. */
bool kv_trash_step(struct kv_memory *memory);

#endif
