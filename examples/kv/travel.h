/* How messages between sessions and shards travel to other nodes (domus/pickle.h). Messages between
 * actors of one node never come here.
 *
 * Everything that is read from another node is checked, because that node may be wrong, and a shard
 * relies on checks that a session has made.
 *
 * Thread-safety: any thread. */
#ifndef KV_TRAVEL_H
#define KV_TRAVEL_H

#include "kv.h"

#include <domus/pickle_code.h>

/* The most bytes of a command, and of an answer, that travel to another node; and the least that a
 * message of the cluster must be allowed to have. */
#define KV_TRAVEL_MAX    (500u * 1024)
#define KV_MESSAGE_LEAST (512u * 1024)

/* The picklers of all types that travel. */
extern const domus_pickler kv_picklers[];

/* Write a command into a message, and read a command from one; a command that was read is the
 * caller's to release. */
int kv_pickle_command(domus_pickle_writer *writer, const domus_resp_command *command);
int kv_unpickle_command(domus_pickle_reader *reader, domus_resp_command *ret_command);

/* Returns whether a command that came from another node is one that a shard may run. */
bool kv_may_shard_run_foreign_command(const domus_resp_command *command);

/* Returns whether the bytes are one array of RESP with so many elements, and nothing else. */
bool kv_are_bytes_array_of_count(domus_slice bytes, uint32_t count);

/* The functions of the picklers in kv_picklers: of commands, of transactions on their way to a
 * shard and back, and of gifts. */
int kv_pickle_payload_of_command(domus_pickle_writer *writer, const void *payload);
int kv_unpickle_payload_of_command(domus_pickle_reader *reader, void *payload, uint32_t version);
int kv_unpickle_command_publish(domus_pickle_reader *reader, void *payload, uint32_t version);
int kv_pickle_transaction_to_run(domus_pickle_writer *writer, const void *payload);
int kv_unpickle_transaction_to_run(domus_pickle_reader *reader, void *payload, uint32_t version);
int kv_pickle_executed_transaction(domus_pickle_writer *writer, const void *payload);
int kv_unpickle_executed_transaction(domus_pickle_reader *reader, void *payload, uint32_t version);
int kv_pickle_gift(domus_pickle_writer *writer, const void *payload);
int kv_unpickle_gift(domus_pickle_reader *reader, void *payload, uint32_t version);

#endif
