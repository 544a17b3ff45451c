/* Arms, cancels and pauses the accept of a listener. A pause doubles from 10 ms to 1 s. */
#include "io/acceptors/acceptors.h"

/* first pause of an acceptor; each further pause is twice as long */
#define BACKOFF_FIRST_NS UINT64_C(10000000)
#define BACKOFF_LAST_NS  UINT64_C(1000000000) /* the longest pause of an acceptor */

void domi_acceptor_arm_accept(domi_acceptor *acceptor)
{
    if (acceptor->armed || acceptor->stopping || acceptor->io->draining)
        return;
    acceptor->armed = true;
    acceptor->io->backend->accept(acceptor->io->ring, acceptor->fd,
                                  domi_op_user_data(DOMI_OP_ACCEPT, 0, acceptor->slot));
}

void domi_acceptor_cancel_accept(domi_acceptor *acceptor)
{
    if (!acceptor->armed || acceptor->cancelling)
        return;
    acceptor->cancelling = true;
    acceptor->io->backend->cancel(acceptor->io->ring, acceptor->fd,
                                  domi_op_user_data(DOMI_OP_ACCEPT, 0, acceptor->slot),
                                  domi_op_user_data(DOMI_OP_CANCEL_ACCEPT, 0, acceptor->slot));
}

void domi_acceptor_pause_accept(domi_acceptor *acceptor, bool full)
{
    domi_io *io = acceptor->io;

    acceptor->full = full;
    if (full && domi_acceptor_is_at_max_connections(acceptor))
        domi_shortage_record_max_connections(acceptor);
    if (domi_wheel_is_armed(&acceptor->timer.node))
        return;
    domi_counter_add(&io->counters.accept_pauses, 1);
    if (full)
        acceptor->backoff_ns = BACKOFF_FIRST_NS;
    domi_wheel_arm_node(&io->wheel, &acceptor->timer.node,
                        io->manager->now_ns + acceptor->backoff_ns);
    acceptor->backoff_ns *= 2;
    if (acceptor->backoff_ns > BACKOFF_LAST_NS)
        acceptor->backoff_ns = BACKOFF_LAST_NS;
}

void domi_acceptor_reset_backoff(domi_acceptor *acceptor)
{
    acceptor->backoff_ns = BACKOFF_FIRST_NS;
}

void domi_acceptor_pause_if_memory_is_short(domi_acceptor *acceptor)
{
    if (!acceptor->io->pressure.pauses || acceptor->stopping)
        return;
    domi_acceptor_cancel_accept(acceptor);
    domi_acceptor_pause_accept(acceptor, true);
}
