/* The events of a network, in a heap by the time at which they are due; chance; and the notes that
 * a trace shows. */
#ifndef DOMI_RUNTIME_NETWORK_EVENTS_H
#define DOMI_RUNTIME_NETWORK_EVENTS_H

#include "runtime/network/network.h"

/* Set the time to `now_ns`, and carry out the events that are due by then. */
void domi_net_advance(domi_net *net, uint64_t now_ns);

/* Returns when the next event is due; UINT64_MAX: there is none. */
uint64_t domi_net_due_ns(const domi_net *net);

/* Add an event that is due at `due_ns`. Returns whether there was memory; if not, the network notes
 * it, and what the event owns stays with the caller. */
bool domi_net_add_event(domi_net *net, const domi_net_event *event);

/* The link of a connection works again: what was held up goes on. */
void domi_net_release_held(domi_net_connection *connection);

/* Returns true as often as `of_a_million` says. */
bool domi_net_draw(domi_net *net, uint32_t of_a_million);

/* Draw the errno with which a call that makes a socket fails by a fault; 0: none. */
int domi_net_draw_failure(domi_net *net);

/* Draw the time that something takes from one side to the other. */
uint64_t domi_net_draw_latency(domi_net *net);

/* Tell the trace. */
void domi_net_tell(const domi_net_connection *connection, const char *what, uint8_t side,
                   uint64_t amount);

void domi_net_tell_datagram(const domi_net *net, const char *what,
                            const domi_net_datagram *datagram);

/* Returns how many datagrams were sent or doubled, and have not come to an end yet. */
uint64_t domi_net_datagrams_in_flight(const domi_net *net);

/* Check that every byte and every datagram is accounted for. */
void domi_net_check(const domi_net *net);

#endif
