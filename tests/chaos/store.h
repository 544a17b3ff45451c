/* The bucket in which accounts have their entries, and the file in which a node notes its changes.
 */
#ifndef DOMUS_CHAOS_STORE_H
#define DOMUS_CHAOS_STORE_H

#include "tests/chaos/entry.h"

/* Make the client and the bucket: called in on_mount of the root of this program's actors. */
int chaos_store_open(domus_stack *stack);
int chaos_audit_open(void);

/* Read the entry of an account; the answer is a domus_nats_kv_entry. Return as domus_ask_within().
 */
int chaos_store_read(domus_stack *stack, uint32_t account, domus_resumed *then);

/* Write it, if it has this revision (0: if there is none); the answer is a domus_nats_kv_revision.
 */
int chaos_store_write(domus_stack *stack, uint32_t account, const struct chaos_entry *entry,
                      uint64_t revision, domus_resumed *then);

/* Note that the entry was written, at once, so that a kill leaves it noted. */
void chaos_audit_note(uint32_t account, const struct chaos_entry *entry, uint64_t revision);

#endif
