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
    /* manager of the seat, with its place in the system's list of detached actors; must be the
     * first field */
    domi_detached detached;
    pthread_mutex_t mutex; /* locked by the thread that uses the seat's manager */
    /* &domi_here of the thread that sits on the seat; NULL: the seat is vacant. Written under
     * the mutex. */
    _Atomic(const char *) owner;
    /* true: the system has ended, and nobody may use the seat; protected by the mutex */
    bool closed;
    /* True if the owner has left the seat, which stays busy until its actor has ended. A seat that
     * was just reserved is busy and vacant, too, but not leaving. Protected by the mutex. */
    bool leaving;

    /* The fields of the seat from this one to `events_count` are protected by the mutex. */
    domus_address address; /* address of the actor that the owner of the seat is */
    /* asks of the outsider under way whose answers its owner will receive */
    domi_outside_mails asked;
    /* answers to the outsider that wait until its owner receives them */
    domi_outside_mails answers;
    domi_outside_mails events; /* events of the outsider that wait until its owner receives them */
    /* places for the events of the outsider's watches, each allocated with its watch */
    domi_outside_mails spares;
    /* number of asks whose answers the owner has not received: entries of `asked` and `answers` */
    uint32_t asked_count;
    /* number of entries of `events` that count towards the limit (`counted`) */
    uint32_t events_count;

    /* The fields of the seat from this one on are used only by the owner. */
    bool acting; /* true: the owner runs a function of domus_outsider_act() */
    /* true: the ask that the outsider received last was answered, kept or forwarded */
    bool answered;
    domi_envelope *received;  /* ask or notice that the outsider received last; NULL: none */
    domi_outside_mail *shown; /* answer or event that the outsider received last; NULL: none */
    domi_manager *outer;      /* value of domi_thread_manager before the owner entered the seat */
};

/* Find a vacant seat, or make one, and let the calling thread sit on it. Returns 0; -EAGAIN;
 * -ENOMEM; -ESHUTDOWN. */
int domi_seat_attach_thread(domus_system *system, domus_outsider **ret_seat);

/* Lock a seat and begin the use of its manager by the owner; domi_seat_unlock() unlocks it and
 * ends the use. domi_seat_lock() returns false, and locks nothing, if the seat was closed. */
bool domi_seat_lock(domus_outsider *seat);
void domi_seat_unlock(domus_outsider *seat);

/* Serve a seat: sort the messages that have arrived, and run the actor for answers, events and a
 * stop. Asks and notices stay in the mailboxes. `seen` holds the places up to which a receive
 * has looked (domi_receive_take_matching_message()), and is cleared if messages before them may be
 * gone; NULL: no receive waits. The caller has locked the seat. */
void domi_seat_serve_once(domus_outsider *seat, domi_node *seen[2]);

/* Sleep until another thread puts something for the seat, a timer is due, or `until_ns` has
 * come. The caller has locked the seat; the lock is open during the sleep. Returns false, and
 * leaves the seat unlocked, if it was closed. */
bool domi_seat_sleep(domus_outsider *seat, uint64_t until_ns);

/* domi_seat_has_actor_ended() returns true if the seat's actor has ended;
 * domi_seat_must_actor_stop() returns true if the system wants all actors to stop. The caller has
 * locked the seat. */
bool domi_seat_has_actor_ended(const domus_outsider *seat);
bool domi_seat_must_actor_stop(const domus_outsider *seat);

/* After a turn of the seat's actor that was in no run, put the actor into the queue of ready
 * houses if it has anything to do. */
void domi_seat_queue_actor_if_runnable(domus_outsider *seat);

/* Serve a seat until nothing is left to do, but only for some rounds, so that an actor that was
 * asked to stop goes as far as it can without waiting for others. The caller has locked the
 * seat. */
void domi_seat_serve_until_idle(domus_outsider *seat);

/* Stop the seat's actor, and leave the seat to the caretaker. The caller has locked the seat. */
void domi_seat_leave_to_caretaker(domus_outsider *seat);

/* Wake the caretaker, which then looks at all vacant seats. Any thread. */
void domi_seats_wake_caretaker(domus_system *system);

/* End all seats: domi_seats_join_caretaker() waits for the end of the caretaker, which has closed
 * them; domi_seats_fini() ends the messages that are left at them. */
void domi_seats_join_caretaker(domus_system *system);
void domi_seats_fini(domus_system *system);

#endif
