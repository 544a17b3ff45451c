/* Trash: values that were deleted and are so large that to free them at once would hold up the
 * thread. They count as used memory until they are freed, which the shard does piece by piece, by a
 * timer.
 *
 * Thread-safety: the shard that owns the store. */
#ifndef KV_TRASH_H
#define KV_TRASH_H

#include "list.h"

#define KV_TRASH_PIECE 2048u /* number of items and nodes that one piece frees */

/* Put into the trash a list, or a table that was allocated by itself. Returns false if the value is
 * small, or there is no memory: then the caller frees it. */
bool kv_trash_put_list(struct kv_memory *memory, struct kv_list *list);
bool kv_trash_put_table(struct kv_memory *memory, struct kv_table *table);

/* Free a piece of the trash. Returns whether there is more trash. */
bool kv_trash_free_some_elements(struct kv_memory *memory);

#endif
