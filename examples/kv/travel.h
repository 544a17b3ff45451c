/* How messages between sessions and shards travel to other nodes (domus/pickle.h). Messages between
 * actors of one node never come here.
 *
 * Everything that is read is checked: another node may be wrong, and a shard relies on what a
 * session has checked.
 *
 * Thread-safety: any thread. */
#ifndef KV_TRAVEL_H
#define KV_TRAVEL_H

#include "kv.h"

#include <domus/pickle_code.h>

/* Bytes of a command, and of an answer, that travel at most: a message of a cluster has 512 KiB. */
#define KV_TRAVEL_MAX    (500u * 1024)
#define KV_MESSAGE_LEAST (512u * 1024)

/* The picklers of all types that travel. */
extern const domus_pickler kv_picklers[];

/* Put and get a command; one that was got is the caller's to release. */
int kv_put_command(domus_pickle_writer *writer, const domus_resp_command *command);
int kv_get_command(domus_pickle_reader *reader, domus_resp_command *ret_command);

/* Whether a command is one that a shard may run. */
bool kv_may_run(const domus_resp_command *command);

/* Whether the bytes are one array of so many elements, and nothing else. */
bool kv_is_array(domus_slice bytes, uint32_t count);

/* The functions of picklers: of commands, of transactions on their way to a shard and back, and of
 * gifts. */
int kv_write_command(domus_pickle_writer *writer, const void *payload);
int kv_read_command(domus_pickle_reader *reader, void *payload, uint32_t version);
int kv_read_publish(domus_pickle_reader *reader, void *payload, uint32_t version);
int kv_write_exec(domus_pickle_writer *writer, const void *payload);
int kv_read_exec(domus_pickle_reader *reader, void *payload, uint32_t version);
int kv_write_executed(domus_pickle_writer *writer, const void *payload);
int kv_read_executed(domus_pickle_reader *reader, void *payload, uint32_t version);
int kv_write_gift(domus_pickle_writer *writer, const void *payload);
int kv_read_gift(domus_pickle_reader *reader, void *payload, uint32_t version);

#endif
