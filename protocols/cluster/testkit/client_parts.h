/* The inside of the actor that plays a client: the functions that its files call of each other.
 *
 * All are called in turns of the actor, except domi_sim_put() and domi_sim_end_subscriptions(),
 * which need no stack. */
#ifndef DOMI_CLUSTER_TESTKIT_CLIENT_PARTS_H
#define DOMI_CLUSTER_TESTKIT_CLIENT_PARTS_H

#include "protocols/cluster/testkit/sim.h"

typedef struct domi_sim_actor {
    domi_sim_client *client;
} domi_sim_actor;

extern const domus_type domi_sim_wake_type;
extern const domus_type domi_sim_timer_type;
extern const domus_type domi_sim_mark_type;

/* Set the timer to the next time at which the client has something to do (client_base.c). */
void domi_sim_arm(domus_stack *stack, domi_sim_client *client);

/* Send an event to the actor that the options name as `events`. */
void domi_sim_event(domus_stack *stack, domi_sim_client *client, domus_nats_happening happening,
                    int error, const char *text);

/* Count and fail an ask that is refused. Returns what the handler must return. */
int domi_sim_refuse(domus_stack *stack, domi_sim_client *client, int error);

/* Send a packet now, or put it into the queue of those that wait (client_send.c). */
void domi_sim_put(domi_sim_client *client, domi_sim_packet *packet);

int domi_sim_on_publish(domus_stack *stack, void *self, const void *payload);
int domi_sim_on_request(domus_stack *stack, void *self, const void *payload);

/* Slots of requests and flushes (client_slots.c, client_asks.c). */
/* Find a slot for an ask that is kept already. Returns 0; -ENOBUFS; -ENOMEM. */
int domi_sim_take_slot(domi_sim_client *client, domus_kept kept, uint64_t deadline_ns,
                       uint32_t *ret_slot);
/* Returns the time at which the current ask fails; without a deadline, the preset. */
uint64_t domi_sim_deadline(domus_stack *stack, const domi_sim_client *client);
/* Keep the current ask in a slot. */
int domi_sim_keep(domus_stack *stack, domi_sim_client *client, uint32_t *ret_slot);
void domi_sim_free_slot(domi_sim_client *client, uint32_t slot);
void domi_sim_fail_sent(domus_stack *stack, domi_sim_client *client, int error);
void domi_sim_expire(domus_stack *stack, domi_sim_client *client);
void domi_sim_answer(domus_stack *stack, domi_sim_client *client, domi_sim_message *message);
void domi_sim_pong(domus_stack *stack, domi_sim_client *client);
int domi_sim_on_flush(domus_stack *stack, void *self, const void *payload);
int domi_sim_on_mark(domus_stack *stack, void *self, const void *payload);
/* Send a ping. Returns its number; 0 without memory. */
uint64_t domi_sim_ping(domi_sim_client *client);

/* Connecting (client_life.c). */
void domi_sim_try(domus_stack *stack, domi_sim_client *client);
void domi_sim_lost_connection(domus_stack *stack, domi_sim_client *client, int error);
void domi_sim_welcome(domus_stack *stack, domi_sim_client *client);
void domi_sim_pass_time(domus_stack *stack, domi_sim_client *client);
/* End a drain if everything was sent and answered. */
void domi_sim_check_drain(domus_stack *stack, domi_sim_client *client);
int domi_sim_on_drain(domus_stack *stack, void *self, const void *payload);

/* Subscriptions (client_subs.c). */
int domi_sim_on_subscribe(domus_stack *stack, void *self, const void *payload);
int domi_sim_on_unsubscribe(domus_stack *stack, void *self, const void *payload);
int domi_sim_on_down(domus_stack *stack, void *self, const void *payload);
void domi_sim_deliver(domus_stack *stack, domi_sim_client *client, uint64_t number,
                      domi_sim_message *message);
void domi_sim_subscribe_again(domi_sim_client *client);
void domi_sim_end_subscriptions(domi_sim_client *client, bool tells);

/* Make the payload of domus_nats_message_type. Ownership: the caller's. Returns 0; -ENOMEM. */
int domi_sim_make_message(const domi_sim_message *message, domus_nats_message *ret_message);

#endif
