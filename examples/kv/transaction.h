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
    domus_resp_command command; /* an owner */
    int64_t receivers;          /* receivers of a PUBLISH; negative: its error */
};

struct kv_transaction {
    bool is_wrong;      /* a command was refused, so EXEC will be, too */
    bool watches;       /* the commands run only if no watched key has changed */
    uint8_t version;    /* the version of RESP */
    uint32_t shard;     /* the shard of all keys; KV_NO_SHARD: there are no keys yet */
    uint32_t keyed;     /* commands that run in the shard; the others run on the channel */
    uint32_t publishes; /* commands among the others that the switchboard runs */
    uint32_t count, room;
    uint64_t bytes;         /* bytes that were charged for the queued commands */
    uint64_t growing_bytes; /* bytes of those commands that are refused when the memory is full */
    struct kv_queued *queue;
    domus_resp_reply array; /* the answers of the commands that have run in the shard */
};

/* Count bytes that a transaction is about to queue. Returns false if all transactions together have
 * no room for them. */
bool kv_transaction_charge(struct kv_transaction *transaction, uint64_t bytes);
/* Put a command at the end of the queue, which keeps it. Returns 0; -ENOMEM. */
int kv_transaction_put(struct kv_transaction *transaction, const domus_resp_command *command,
                       const struct kv_command *row);
void kv_transaction_free(struct kv_transaction *transaction);

/* An ask of a shard; its payload is a pointer to a transaction, which it owns. */
extern const domus_type kv_exec_type;
/* The answer, if it has run: the transaction, which has `array` now. */
extern const domus_type kv_executed_type;

/* The row of the shard. */
domus_handler kv_exec;

/* A command comes after MULTI. */
int kv_transaction_take(domus_stack *stack, struct kv_session *session,
                        const domus_resp_command *command, const struct kv_command *row);
/* A command was refused, so the transaction will fail. Outside of one this does nothing. */
void kv_transaction_spoil(struct kv_session *session);

/* On the channel. */
domus_handler kv_serve_multi, kv_serve_exec, kv_serve_discard;

#endif
