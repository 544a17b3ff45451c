/* Commands that wait for elements of lists: BLPOP, BRPOP, BLMPOP, BLMOVE and BRPOPLPUSH; and LMPOP,
 * LMOVE and RPOPLPUSH, which do not wait. */
#ifndef KV_WAIT_H
#define KV_WAIT_H

#include "gift.h"
#include "kv.h"
#include "observed.h"

/* Forget the command of a client that waits, with its marks, because the command has ended. */
void kv_free_waiter(struct kv_store *store, struct kv_client *client);

/* Give elements that the last command has brought to the clients that wait for them. */
void kv_serve_clients_that_wait_at_changed(domus_stack *stack, struct kv_store *store);

/* Put the elements of a gift (gift.h) back into their list. The gift is consumed. */
void kv_put_gift_back_and_free_it(domus_stack *stack, struct kv_store *store, struct kv_gift *gift);

/* Put all elements back into their lists that were on their way to clients that are gone
 * (gift.h). */
void kv_put_all_returned_gifts_back(domus_stack *stack, struct kv_store *store);

/* Handlers of a shard: for the event that the time of a waiting client is over; for the notice that
 * nobody may wait any more, because the program ends; for the event that a client has ended. */
extern const domus_type kv_wait_over_type, kv_wait_end_type;
domus_handler kv_answer_null_at_wait_timeout, kv_end_all_waits_of_store, kv_forget_ended_client;

/* An ask to a shard: end the command of a client that waits. The answer is the integer 1, or 0 if
 * none waits. */
enum kv_why {
    KV_BY_TIME,  /* the wait ends as if its time were over */
    KV_BY_ERROR, /* the wait ends with an error */
    KV_BY_END,   /* the wait ends because the program that has the connection ends */
};
struct kv_unblock {
    domus_address who; /* the address of the client's connection */
    enum kv_why why;
};
extern const domus_type kv_unblock_type;
domus_handler kv_end_wait_of_client_as_asked;

/* Tell a shard that a client is gone, by an ask that comes after the client's command. If the
 * command waits, the shard answers it with null. Nobody waits for the answer to this ask. */
extern const domus_type kv_leave_type;
domus_handler kv_end_wait_of_leaving_client;

/* The handler of a session for a command that may wait: it asks the shard, and waits for the
 * answer. */
domus_handler kv_ask_shard_to_run_blocking_command;

#define KV_UNBLOCKED "UNBLOCKED force unblock from blocking operation, the server is shutting down"

kv_run kv_run_blpop, kv_run_brpop, kv_run_blmpop, kv_run_blmove, kv_run_brpoplpush, kv_run_lmove,
    kv_run_rpoplpush, kv_run_lmpop;

#endif
