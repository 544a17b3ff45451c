/* Commands that wait for elements of lists: BLPOP, BRPOP, BLMPOP, BLMOVE and BRPOPLPUSH; and LMPOP,
 * LMOVE and RPOPLPUSH, which do not wait. */
#ifndef KV_WAIT_H
#define KV_WAIT_H

#include "gift.h"
#include "kv.h"
#include "observed.h"

/* The command of a client has ended: forget it, with its marks. */
void kv_waiter_free(struct kv_store *store, struct kv_client *client);

/* Give the elements that a command has brought to clients that wait for them. */
void kv_wait_serve(domus_stack *stack, struct kv_store *store);

/* Put the elements of a gift back, which is consumed. */
void kv_wait_put_back(domus_stack *stack, struct kv_store *store, struct kv_gift *gift);

/* Put the elements back that were on their way to clients that are gone (gift.h). */
void kv_wait_take_returned(domus_stack *stack, struct kv_store *store);

/* Rows of the shard. An event: the time of a client is over. A notice: nobody may wait any more,
 * because the program ends. An event: a client has ended. */
extern const domus_type kv_wait_over_type, kv_wait_end_type;
domus_handler kv_wait_over, kv_wait_end, kv_client_down;

/* An ask: end the command of a client that waits. The answer is the integer 1, or 0 if none
 * waits. */
enum kv_why {
    KV_BY_TIME,  /* as if its time were over */
    KV_BY_ERROR, /* by an error */
    KV_BY_END,   /* because the program of the connection ends */
};
struct kv_unblock {
    domus_address who; /* the connection */
    enum kv_why why;
};
extern const domus_type kv_unblock_type;
domus_handler kv_unblock;

/* Tell a shard that a client is gone, by an ask that comes after the client's command. If the
 * command waits, the shard answers it with null. Nobody waits for the answer to this ask. */
extern const domus_type kv_leave_type;
domus_handler kv_leave;

/* On the channel: ask the shard, and wait for its answer. */
domus_handler kv_serve_wait;

#define KV_UNBLOCKED "UNBLOCKED force unblock from blocking operation, the server is shutting down"

kv_run kv_run_blpop, kv_run_brpop, kv_run_blmpop, kv_run_blmove, kv_run_brpoplpush, kv_run_lmove,
    kv_run_rpoplpush, kv_run_lmpop;

#endif
