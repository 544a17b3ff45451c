/* The hand-over of accepted connections to the channels actors that serve them. Owner thread. */
#ifndef DOMI_IO_ACCEPTORS_HAND_OVER_H
#define DOMI_IO_ACCEPTORS_HAND_OVER_H

#include "io/acceptors/acceptor.h"

/* The payload of the event that hands a connection over. */
typedef struct domi_accepted {
    /* the connection; the event counts as one of the users of its settings */
    domi_connection connection;
    domi_io *io; /* the io of the receiving thread, whose `connections` counts this connection */
} domi_accepted;
extern const domus_type domi_accepted_type;

/* Let the actor that has got such an event adopt the connection, or reset it. */
void domi_accepted_adopt(const domi_accepted *accepted, domi_house *owner);

/* True if all threads of the system together have as many connections as they may have. */
bool domi_acceptor_is_at_max(const domi_acceptor *acceptor);

/* Returns true if the acceptor's targets are full or memory is short: no connection is handed over
 * now. */
bool domi_acceptor_is_full(const domi_acceptor *acceptor);

/* Check the source of a connection, if proxies use the listener: true if it does not come from a
 * network of proxies, and then it is counted as refused; otherwise the connection is marked as that
 * of a proxy. */
bool domi_acceptor_is_from_elsewhere(domi_acceptor *acceptor, domi_connection *arrival);

/* Reset a connection that its address may not have, and count it at its listener. */
void domi_acceptor_refuse(domi_acceptor *acceptor, int fd);

/* Turn away a connection that gets no channel. */
void domi_arrival_drop(domi_acceptor *acceptor, const domi_connection *arrival);

/* Hand a connection over to the target that has the fewest connections. If that fails, it is
 * dropped. */
void domi_arrival_hand_over(domi_acceptor *acceptor, const domi_connection *arrival);

/* Keep a connection that was accepted although there was no room. One multishot accept brings all
 * connections that wait in the backlog. If these were turned away, their peers would have to
 * connect again; so they wait here instead. */
void domi_arrival_keep(domi_acceptor *acceptor, const domi_connection *arrival);

/* Hand over as many kept connections as there is room for now. */
void domi_acceptor_serve_waiting(domi_acceptor *acceptor);

#endif
