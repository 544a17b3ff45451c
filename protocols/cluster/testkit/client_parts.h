/* The inside of the actor that plays a client of NATS: the functions that its files call of each
 * other.
 *
 * All are called in turns of the actor, except domi_sim_send_or_queue_packet() and
 * domi_sim_end_all_subscriptions(), which need no stack. */
#ifndef DOMI_CLUSTER_TESTKIT_CLIENT_PARTS_H
#define DOMI_CLUSTER_TESTKIT_CLIENT_PARTS_H

#include "protocols/cluster/testkit/sim.h"

typedef struct domi_sim_actor {
    domi_sim_client *client;
} domi_sim_actor;

extern const domus_type domi_sim_wake_type;
extern const domus_type domi_sim_timer_type;
extern const domus_type domi_sim_mark_type;

/* Set the client's timer to the time at which it next has something to do (client_base.c). */
void domi_sim_set_timer_of_client(domus_stack *stack, domi_sim_client *client);

/* Send an event of the client to the actor that the client's options name as `events`. */
void domi_sim_send_event_of_client(domus_stack *stack, domi_sim_client *client,
                                   domus_nats_happening happening, int error, const char *text);

/* Count and fail an ask that the client refuses. Returns what the ask's handler must return. */
int domi_sim_refuse_ask_to_client(domus_stack *stack, domi_sim_client *client, int error);

/* Send a packet to the server now, or put it into the queue of waiting packets (client_send.c). */
void domi_sim_send_or_queue_packet(domi_sim_client *client, domi_sim_packet *packet);

int domi_sim_on_publish_send_message(domus_stack *stack, void *self, const void *payload);
int domi_sim_on_request_send_message(domus_stack *stack, void *self, const void *payload);

/* Slots for requests and flushes that wait for an answer (client_slots.c, client_asks.c). */
/* Find a free slot for an ask that is kept already. Returns 0; -ENOBUFS; -ENOMEM. */
int domi_sim_find_slot_for_kept_ask(domi_sim_client *client, domus_kept kept, uint64_t deadline_ns,
                                    uint32_t *ret_slot);
/* Returns the time at which the ask that is being handled fails: its deadline, or the preset if it
 * has none. */
uint64_t domi_sim_deadline_of_current_ask(domus_stack *stack, const domi_sim_client *client);
/* Keep the ask that is being handled in a free slot. */
int domi_sim_keep_ask_in_slot(domus_stack *stack, domi_sim_client *client, uint32_t *ret_slot);
void domi_sim_free_slot(domi_sim_client *client, uint32_t slot);
void domi_sim_fail_asks_already_sent(domus_stack *stack, domi_sim_client *client, int error);
void domi_sim_fail_asks_after_deadline(domus_stack *stack, domi_sim_client *client);
void domi_sim_answer_request_by_message(domus_stack *stack, domi_sim_client *client,
                                        domi_sim_message *message);
void domi_sim_answer_flushes_of_pong(domus_stack *stack, domi_sim_client *client);
int domi_sim_on_flush_send_mark_to_itself(domus_stack *stack, void *self, const void *payload);
int domi_sim_on_mark_of_flush_send_ping(domus_stack *stack, void *self, const void *payload);
/* Send a ping to the server. Returns its number; 0 without memory. */
uint64_t domi_sim_send_ping_to_server(domi_sim_client *client);

/* How a client connects, notices silence and drains (client_life.c). */
void domi_sim_try_to_connect(domus_stack *stack, domi_sim_client *client);
void domi_sim_close_and_plan_reconnect(domus_stack *stack, domi_sim_client *client, int error);
void domi_sim_connect_client_at_welcome(domus_stack *stack, domi_sim_client *client);
void domi_sim_do_due_work_of_client(domus_stack *stack, domi_sim_client *client);
/* End a drain if everything that the client had to send was sent, and answered. */
void domi_sim_end_drain_if_all_sent(domus_stack *stack, domi_sim_client *client);
int domi_sim_on_drain_begin_drain(domus_stack *stack, void *self, const void *payload);

/* Subscriptions of a client (client_subs.c). */
int domi_sim_on_subscribe_add_subscription(domus_stack *stack, void *self, const void *payload);
int domi_sim_on_unsubscribe_limit_or_end(domus_stack *stack, void *self, const void *payload);
int domi_sim_on_down_end_its_subscriptions(domus_stack *stack, void *self, const void *payload);
void domi_sim_deliver_to_subscription(domus_stack *stack, domi_sim_client *client, uint64_t number,
                                      domi_sim_message *message);
void domi_sim_repeat_subscriptions(domi_sim_client *client);
void domi_sim_end_all_subscriptions(domi_sim_client *client, bool tells);

/* Make the payload of domus_nats_message_type from a message of the simulation. The caller owns it.
 * Returns 0; -ENOMEM. */
int domi_sim_make_nats_message(const domi_sim_message *message, domus_nats_message *ret_message);

#endif
