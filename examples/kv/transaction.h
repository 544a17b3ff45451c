/* Transactions: the connection queues commands from MULTI on, and EXEC lets their shard run them in
 * one turn.
 *
 * These differ from redis-server. All keys, also the watched ones, lie on one shard; a command that
 * needs another one gets CROSSSLOT when it is queued, and so does one that concerns all shards, if
 * there are several. HELLO, SUBSCRIBE and its like, PUBSUB, and commands of the channel that wait
 * for others (CONFIG, INFO, CLIENT, DEBUG) are refused in a transaction. Commands without a key run
 * after those of the shard, and PUBLISH after all of these; a publisher that listens to itself gets
 * its messages behind the answer of EXEC. The memory limit is looked at when a command runs. */
#ifndef KV_TRANSACTION_H
#define KV_TRANSACTION_H

#include "kv.h"

struct kv_queued {
    const struct kv_command *row;
    domus_resp_command command; /* the queued command, which owns its bytes */
    /* number of receivers of the command, a PUBLISH; negative: its error */
    int64_t receivers;
};

struct kv_transaction {
    bool is_wrong;   /* whether a command was refused, so that EXEC will be refused, too */
    bool watches;    /* whether the commands run only if no watched key has changed */
    uint8_t version; /* version of RESP of the connection */
    /* number of the shard that has all keys; KV_NO_SHARD: there are no keys yet */
    uint32_t shard;
    /* number of queued commands that run in the shard; the others run on the channel */
    uint32_t keyed;
    uint32_t publishes; /* number of queued commands, among the others, that the switchboard runs */
    uint32_t count, room;
    /* bytes that were counted for the queued commands (kv_transaction_add_bytes_if_allowed()) */
    uint64_t bytes;
    /* bytes of those queued commands that are refused when the memory is full */
    uint64_t growing_bytes;
    struct kv_queued *queue;
    domus_resp_reply array; /* array with the answers of the commands that have run in the shard */
};

/* Count the bytes of a command that a transaction is about to queue. Returns false if all
 * transactions together have no room for them. */
bool kv_transaction_add_bytes_if_allowed(struct kv_transaction *transaction, uint64_t bytes);
/* Put a command at the end of the queue of a transaction, which keeps it. Returns 0; -ENOMEM. */
int kv_transaction_queue_command(struct kv_transaction *transaction,
                                 const domus_resp_command *command, const struct kv_command *row);
void kv_transaction_free(struct kv_transaction *transaction);

/* The type of an ask to a shard to run a transaction; its payload is a pointer to the transaction,
 * which it owns. */
extern const domus_type kv_exec_type;
/* The type of the answer if the transaction has run: the payload is the transaction, which has its
 * `array` now. */
extern const domus_type kv_executed_type;

/* The handler of a shard that runs a transaction. */
domus_handler kv_run_transaction_on_shard;

/* Handle a command that comes after MULTI: queue it, refuse it or serve it. */
int kv_transaction_queue_or_run_command(domus_stack *stack, struct kv_session *session,
                                        const domus_resp_command *command,
                                        const struct kv_command *row);
/* Note that a command of a transaction was refused, so EXEC will fail. Outside of a transaction
 * this does nothing. */
void kv_transaction_mark_as_wrong(struct kv_session *session);

/* The handlers of a session for MULTI, EXEC and DISCARD. */
domus_handler kv_serve_multi, kv_ask_shard_to_run_transaction, kv_serve_discard;

#endif
