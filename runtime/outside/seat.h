/* Seats: what a foreign thread sits on while it is an actor (domus/outsider.h).
 *
 * A seat is a manager without a thread of its own, and stands in the list of detached actors. While
 * it is *manned*, its owner is the foreign thread that has attached. The owner uses the manager
 * while it is inside, under the seat's mutex, and sleeps on the park word as a detached thread
 * does. While nobody sits there, the seat is *vacant*: its park word says SLEEPING, and whoever
 * puts something wakes the *caretaker*, one thread for all seats of a system, which looks after
 * late mail and after actors that wait for the end of their children. A seat lives as long as the
 * system, because addresses of its houses do.
 *
 * 1. A leaving owner clears `owner`, and exchanges the park word for SLEEPING.
 * 2. It looks at its manager once more, and calls the caretaker if anything is there.
 * 3. A sender puts, and exchanges SLEEPING for NOTIFIED (base/park.h). Its wake-up ends a sleep of
 *    the owner, and if `owner` is clear, it calls the caretaker.
 * So either 2 finds what was put, or 3 finds SLEEPING, and then `owner` is clear, too.
 *
 * A call is a word that the caretaker clears before it looks at the seats, and reads again before
 * it sleeps. At the end of the system the caretaker closes all seats, under their mutexes: then the
 * thread that stops the system is the owner of their managers, and who was sitting there is told
 * that by `closed`. */
#ifndef DOMI_RUNTIME_OUTSIDE_SEAT_H
#define DOMI_RUNTIME_OUTSIDE_SEAT_H

#include "runtime/outside/detached.h"
#include "runtime/outside/seat_mail.h"

#include <domus/outsider.h>

struct domus_outsider {
    domi_detached detached; /* the manager, and a place in the system's list */
    pthread_mutex_t mutex;  /* held by whoever uses the manager */
    /* &domi_here of the thread that sits here; NULL: vacant. Written under the mutex. */
    _Atomic(const char *) owner;
    bool closed; /* the system has ended; under the mutex */
    /* The owner has left the seat, which is busy until its actor has ended. A seat that was
     * reserved a moment ago is busy and vacant, too. Read and written under the mutex. */
    bool leaving;

    /* Under the mutex. */
    domus_address address;      /* the actor */
    domi_outside_mails asked;   /* asks under way, whose answers will be received */
    domi_outside_mails answers; /* answers that wait */
    domi_outside_mails events;  /* events that wait */
    domi_outside_mails spares;  /* one for the event of each watch, paid for when it is made */
    uint32_t asked_count;       /* asks whose answers were not received; entries of the first two */
    uint32_t events_count;      /* entries of `events` that are `counted` */

    /* Only the owner uses this field. */
    bool acting;              /* the owner is in a function of domus_outsider_act() */
    bool answered;            /* the ask that was received last was answered, or has left */
    domi_envelope *received;  /* the ask or notice that was received last; NULL: none */
    domi_outside_mail *shown; /* the answer or event that was received last; NULL: none */
    domi_manager *outer;      /* domi_thread_manager before the owner entered */
};

/* Find a vacant seat, or make one, and let the calling thread sit there. Returns 0; -EAGAIN;
 * -ENOMEM; -ESHUTDOWN. */
int domi_seat_take(domus_system *system, domus_outsider **ret_seat);

/* The owner is inside, and begins or ends the use of the manager. domi_seat_lock() returns false,
 * and nothing is locked, if the seat was closed. */
bool domi_seat_lock(domus_outsider *seat);
void domi_seat_unlock(domus_outsider *seat);

/* Sort the arrived messages, and run the actor for answers, events and a stop. Asks and notices
 * stay in the mailboxes. `seen` are the places up to which a receive has looked
 * (domi_receive_find()); they are cleared if messages before them may be gone; NULL: no receive
 * waits. Inside. */
void domi_seat_serve(domus_outsider *seat, domi_node *seen[2]);

/* Sleep until something was put, a timer is due, or `until_ns` has come. Inside; others are inside
 * meanwhile. Returns false, and nothing is locked any more, if the seat was closed. */
bool domi_seat_sleep(domus_outsider *seat, uint64_t until_ns);

/* True if the actor has ended. True if the system wants all actors to stop. Inside. */
bool domi_seat_is_over(const domus_outsider *seat);
bool domi_seat_has_to_stop(const domus_outsider *seat);

/* A turn of the actor has ended outside of a run: see that it runs if it has anything to do. */
void domi_seat_settle(domus_outsider *seat);

/* Serve until nothing is left, for some rounds. So an actor that was asked to stop goes as far as
 * it can without waiting for others. Inside. */
void domi_seat_finish(domus_outsider *seat);

/* Stop the actor, and leave the seat to the caretaker. Inside. */
void domi_seat_leave(domus_outsider *seat);

/* Let the caretaker look at the seats. Any thread. */
void domi_seats_call(domus_system *system);

/* The end: wait for the caretaker, which has closed all seats; end what outsiders were shown. */
void domi_seats_join(domus_system *system);
void domi_seats_release(domus_system *system);

#endif
