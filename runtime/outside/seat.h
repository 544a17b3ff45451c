/* Seats: a foreign thread sits on a seat while it is an actor (domus/outsider.h).
 *
 * A seat is a manager without a thread of its own, and stands in the list of detached actors. While
 * it is *manned*, its owner is the foreign thread that has attached. The owner uses the manager
 * under the seat's mutex, and sleeps on the park word as a detached thread does. While no thread
 * sits on the seat, it is *vacant*: its park word is SLEEPING, and a thread that puts something
 * wakes the *caretaker*. This is one thread for all seats of a system; it handles late mail, and
 * actors that wait for the end of their children. A seat exists as long as the system, because
 * addresses of its houses do.
 *
 * 1. A leaving owner clears `owner`, and exchanges the park word for SLEEPING.
 * 2. It looks at its manager once more, and calls the caretaker if anything is there.
 * 3. A sender puts, and exchanges SLEEPING for NOTIFIED (base/park.h). Its wake-up ends a sleep of
 * the owner, and if `owner` is clear, it calls the caretaker.
 *
 * So either step 2 finds what was put, or step 3 finds SLEEPING, and then `owner` is clear, too.
 *
 * A call of the caretaker adds 1 to a word. The caretaker reads the word before it looks at the
 * seats, and the kernel compares it before the caretaker sleeps. At the end of the system the
 * caretaker closes all seats, under their mutexes. Then the thread that stops the system is the
 * owner of their managers, and `closed` tells the former owners so. */
#ifndef DOMI_RUNTIME_OUTSIDE_SEAT_H
#define DOMI_RUNTIME_OUTSIDE_SEAT_H

#include "runtime/outside/detached.h"
#include "runtime/outside/seat_mail.h"

#include <domus/outsider.h>

struct domus_outsider {
    /* the manager of the seat, with its place in the system's list; must be the first field */
    domi_detached detached;
    pthread_mutex_t mutex; /* locked by the thread that uses the manager */
    /* &domi_here of the thread that sits here; NULL: vacant. Written under the mutex. */
    _Atomic(const char *) owner;
    bool closed; /* the system has ended; protected by the mutex */
    /* The owner has left the seat, which stays busy until its actor has ended. A seat that was just
     * reserved is busy and vacant, too, but not leaving. Protected by the mutex. */
    bool leaving;

    /* The fields from here to `events_count` are protected by the mutex. */
    domus_address address;      /* address of the outsider's actor */
    domi_outside_mails asked;   /* asks under way whose answers the owner will receive */
    domi_outside_mails answers; /* answers that wait to be received */
    domi_outside_mails events;  /* events that wait to be received */
    /* places for the events of watches, each allocated with its watch */
    domi_outside_mails spares;
    /* number of asks whose answers were not received: entries of `asked` and `answers` */
    uint32_t asked_count;
    uint32_t events_count; /* number of entries of `events` that are `counted` */

    /* The fields from here on are used only by the owner. */
    bool acting;              /* the owner runs a function of domus_outsider_act() */
    bool answered;            /* the ask that was received last was answered, kept or forwarded */
    domi_envelope *received;  /* the ask or notice that was received last; NULL: none */
    domi_outside_mail *shown; /* the answer or event that was received last; NULL: none */
    domi_manager *outer;      /* value of domi_thread_manager before the owner entered */
};

/* Find a vacant seat, or make one, and let the calling thread sit there. Returns 0; -EAGAIN;
 * -ENOMEM; -ESHUTDOWN. */
int domi_seat_attach_thread(domus_system *system, domus_outsider **ret_seat);

/* Lock a seat and begin the use of its manager by the owner; unlock it and end the use.
 * domi_seat_lock() returns false, and locks nothing, if the seat was closed. */
bool domi_seat_lock(domus_outsider *seat);
void domi_seat_unlock(domus_outsider *seat);

/* Sort the arrived messages, and run the actor for answers, events and a stop. Asks and notices
 * stay in the mailboxes. `seen` holds the places up to which a receive has looked
 * (domi_receive_find()), and is cleared if messages before them may be gone; NULL: no receive
 * waits. The caller has locked the seat. */
void domi_seat_serve(domus_outsider *seat, domi_node *seen[2]);

/* Sleep until another thread puts something, a timer is due, or `until_ns` has come. The caller has
 * locked the seat; the lock is open during the sleep. Returns false, and leaves the seat unlocked,
 * if it was closed. */
bool domi_seat_sleep(domus_outsider *seat, uint64_t until_ns);

/* domi_seat_has_actor_ended() returns true if the actor has ended; domi_seat_has_to_stop() returns
 * true if the system wants all actors to stop. The caller has locked the seat. */
bool domi_seat_has_actor_ended(const domus_outsider *seat);
bool domi_seat_has_to_stop(const domus_outsider *seat);

/* End a turn of the actor that was not in a run: make the actor ready if it has anything to do. */
void domi_seat_ready_actor_if_runnable(domus_outsider *seat);

/* Serve the seat until nothing is left to do, but only for some rounds, so that an actor that was
 * asked to stop goes as far as it can without waiting for others. The caller has locked the
 * seat. */
void domi_seat_serve_until_idle(domus_outsider *seat);

/* Stop the actor, and leave the seat to the caretaker. The caller has locked the seat. */
void domi_seat_leave(domus_outsider *seat);

/* Wake the caretaker, which then looks at all seats. Any thread. */
void domi_seats_wake_caretaker(domus_system *system);

/* End all seats: domi_seats_join() waits for the end of the caretaker, which has closed them;
 * domi_seats_fini() ends the messages that are left at them. */
void domi_seats_join(domus_system *system);
void domi_seats_fini(domus_system *system);

#endif
