/* The hand-over of accepted connections to the channels actors that serve them. Owner thread. */
#ifndef DOMI_IO_ACCEPTORS_HAND_OVER_H
#define DOMI_IO_ACCEPTORS_HAND_OVER_H

#include "io/acceptors/acceptor.h"

/* The event that hands a connection over. */
typedef struct domi_accepted {
    domi_connection connection; /* the event is one of the users of the connection's settings */
    domi_io *io; /* the io of the receiving thread; its `connections` counts this one */
} domi_accepted;
extern const domus_type domi_accepted_type;

/* Let the actor that such an event has reached adopt the connection, or reset it. */
void domi_accepted_adopt(const domi_accepted *accepted, domi_house *owner);

/* Whether the threads of the system have all connections that they may have together. */
bool domi_acceptor_is_at_max(const domi_acceptor *acceptor);

/* Returns true if the acceptor's targets are full or memory is short: no connection is handed over
 * now. */
bool domi_acceptor_is_full(const domi_acceptor *acceptor);

/* If proxies use the listener: true if the connection does not come from one of their networks, and
 * this was counted; otherwise the connection is noted as one of a proxy. */
bool domi_acceptor_is_from_elsewhere(domi_acceptor *acceptor, domi_connection *arrival);

/* Reset a connection whose address may not have it, and count it at its listener. */
void domi_acceptor_refuse(domi_acceptor *acceptor, int fd);

/* Turn a connection away. */
void domi_arrival_drop(domi_acceptor *acceptor, const domi_connection *arrival);

/* Hand a connection over to the target that has the fewest. If that fails, it is dropped. */
void domi_arrival_hand_over(domi_acceptor *acceptor, const domi_connection *arrival);

/* Keep a connection that was accepted although there was no room. One multishot accept brings all
 * connections that wait in the backlog. If they were turned away, their peers would have to come
 * again; so they wait here instead. */
void domi_arrival_keep(domi_acceptor *acceptor, const domi_connection *arrival);

/* Hand over the kept connections for which there is room now. */
void domi_acceptor_serve_waiting(domi_acceptor *acceptor);

#endif
