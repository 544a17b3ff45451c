/* The bucket in which accounts have their entries, and the file in which a node of the bank logs
 * its changes. */
#ifndef DOMUS_CHAOS_STORE_H
#define DOMUS_CHAOS_STORE_H

#include "tests/chaos/entry.h"

/* Open the client and the bucket of this node, in the on_mount of the program's root actor. */
int chaos_store_open_bucket(domus_stack *stack);
int chaos_audit_open_file(void);

/* Read the entry of an account; the answer is a domus_nats_kv_entry. Returns as
 * domus_ask_within(). */
int chaos_store_read_entry(domus_stack *stack, uint32_t account, domus_resumed *then);

/* Write the entry of an account if it still has this revision (0: if there is no entry); the answer
 * is a domus_nats_kv_revision. */
int chaos_store_write_entry(domus_stack *stack, uint32_t account, const struct chaos_entry *entry,
                            uint64_t revision, domus_resumed *then);

/* Log that an entry was written. The line goes to the file at once, so a kill of the node does not
 * lose it. */
void chaos_audit_log_change(uint32_t account, const struct chaos_entry *entry, uint64_t revision);

#endif
