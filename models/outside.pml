/* Foreign threads ask actors and wait for the answers.
 *
 * The idea: one actor asks for all foreign threads. A thread that holds the mutex runs it, and so
 * completes also asks for which other threads wait. One of the waiting threads is the leader: it
 * sleeps on the manager's park word, and a put wakes it. The others sleep on condition variables of
 * their own, until they are answered or become the leader. The model has ASKERS askers (2 or 3). A thread of
 * the loop answers at any time, or never; then the ask's time-out ends it, and nothing else wakes
 * its asker. A visitor takes and leaves the mutex once, and the system closes.
 *
 * Models: runtime/outside/visit.c domi_outside_handle_arrivals; runtime/outside/outside_ask.c wake_asking_thread, on_answer_complete_ask, let_leading_asker_sleep, give_lead_to_next_asking_thread, domi_asking_wait_for_answer,
 * domi_outside_fail_all_asks; runtime/outside/visit.c domi_outside_enter; house/message/manager.h
 * domi_manager_notify_of_push; base/park.h domi_park_begin_sleep, domi_park_end_sleep,
 * domi_park_try_notify. Under the mutex one step of the model stands for many accesses. Accesses to the
 * park word and to the arrivals are steps of their own, because the threads of the loop make them without the
 * mutex. There are no store buffers here (park.pml has them), because both sides make a read-modify-write
 * before they look. Holds: each ask is completed exactly once, and
 * its asker returns, whoever else comes or goes; an asker that sleeps on its condition is not alone (somebody
 * leads); the system is not freed while an asker is inside.
 *
 * @run short safety
 * @run long progress
 * @run long safety -DASKERS=3
 *
 * @mutant short safety NO_SECOND_LOOK : the leader does not look after it wrote SLEEPING
 * @mutant short safety LOOK_FIRST : the leader looks before it writes SLEEPING
 * @mutant short safety FUTEX_BLIND : the leader sleeps without comparing the word once more
 * @mutant long safety NO_NOTIFY : an answer is put, and the leader is not woken
 * @mutant long safety LEADER_SIGNALLED : a thread that completes the leader's ask signals the leader's condition
 * @mutant long safety FOLLOWER_NOT_SIGNALLED : a thread that completes the ask of another one does not signal it
 * @mutant long safety LEAD_KEPT : a leader leaves, and `leader` still names it
 * @mutant long safety NO_HAND_ON : a leader leaves, and wakes no other asker to lead
 * @mutant long progress NO_TURN : a thread that is woken does not run the asking actor
 * @mutant long safety SERIAL_IGNORED : a late answer completes an ask again
 * @mutant long safety CLOSE_NOT_AWAITED : the system is freed while askers are inside
 * @mutant long safety CLOSE_KEEPS_ASKS : the close does not end the asks that wait
 * @mutant long safety STAGE_IGNORED : an ask begins after the close */
#ifndef ASKERS
#define ASKERS 2
#endif
#define NOBODY ASKERS

#define RUNNING  0
#define SLEEPING 1
#define NOTIFIED 2

byte park = RUNNING;
bit mutex, closed, freed;
byte leader = NOBODY;
byte inside; /* askers that have not left */
bit in_futex;
bit nobody_asks; /* the condition variable on which the close waits was signalled */

/* the ask has begun; its promise waits; it is complete */
bit begun[ASKERS], waits[ASKERS], done[ASKERS];
bit arrived[ASKERS];                            /* the answer is among the arrivals */
bit silent[ASKERS];                             /* nobody will answer this ask */
bit late[ASKERS];                               /* the ask's time-out is over */
bit on_condition[ASKERS], signalled[ASKERS];

bit endless; /* only the close ends the first ask */

byte completed[ASKERS]; /* ghosts: only the checks use them */
bit returned[ASKERS];

#define ANY_ARRIVED (arrived[0] || arrived[1] || arrived[ASKERS - 1])

inline lock() { atomic { !mutex -> mutex = 1 } }
inline unlock() { assert(mutex); mutex = 0 }

/* domi_park_try_notify: one thread changes the word to NOTIFIED, and that one makes the futex wake. */
inline notify()
{
    if
    :: park == SLEEPING ->
        atomic {
            if
            :: park == SLEEPING -> park = NOTIFIED; in_futex = 0
            :: else
            fi
        }
    :: else
    fi
}

inline signal(whom)
{
    if
    :: on_condition[whom] -> signalled[whom] = 1
    :: else
    fi
}

/* This models on_answer_complete_ask, wake_asking_thread. */
inline complete(whom)
{
    completed[whom]++;
    done[whom] = 1;
    waits[whom] = 0;
    if
#ifndef FOLLOWER_NOT_SIGNALLED
    :: leader != whom -> signal(whom)
#else
    :: leader != whom
#endif
    :: leader == whom ->
#ifdef LEADER_SIGNALLED
        signal(whom)
#else
        notify()
#endif
    fi
}

#ifdef SERIAL_IGNORED
#define IS_HIS(k) begun[k]
#else
#define IS_HIS(k) waits[k]
#endif

/* domi_outside_handle_arrivals: one exchange takes the arrivals, and the timer wheel ends the asks
 * that are late. */
inline turn()
{
    atomic {
        k = 0;
        do
        :: k < ASKERS ->
            if
            :: arrived[k] && IS_HIS(k) -> arrived[k] = 0; complete(k)
            :: arrived[k] && !IS_HIS(k) -> arrived[k] = 0 /* a late reply */
            :: !arrived[k] && waits[k] && late[k] -> complete(k)
            :: else
            fi;
            k++
        :: else -> break
        od;
        k = 0
    }
}

/* The leader's sleep. */
inline sleep_as_leader()
{
#ifdef LOOK_FIRST
    looked = ANY_ARRIVED;
    park = SLEEPING;
#else
    park = SLEEPING;
#ifdef NO_SECOND_LOOK
    looked = 0;
#else
    looked = ANY_ARRIVED;
#endif
#endif
    if
    :: !looked ->
        unlock();
#ifdef FUTEX_BLIND
        in_futex = 1;
#else
        if
        :: atomic { park == SLEEPING -> in_futex = 1 }
        :: else
        fi;
#endif
end_in_futex:
        if
        :: !in_futex
        :: late[me] -> in_futex = 0
        fi;
        lock()
    :: else
    fi;
    looked = 0;
    park = RUNNING
}

inline hand_on()
{
#ifndef LEAD_KEPT
    if
    :: leader == me -> leader = NOBODY
    :: else
    fi;
#endif
    if
    :: leader == NOBODY ->
        k = 0;
        do
        :: k < ASKERS && !on_condition[k] -> k++
        :: k < ASKERS && on_condition[k] ->
#ifndef NO_HAND_ON
            signalled[k] = 1;
#endif
            break
        :: k == ASKERS -> break
        od;
        k = 0
    :: else
    fi
}

proctype asker(byte me)
{
    byte k;
    bit looked;

    lock();
#ifndef STAGE_IGNORED
    if
    :: closed -> unlock(); goto refused
    :: else
    fi;
#endif
    atomic {
        assert(!freed);
        inside++;
        begun[me] = 1;
        waits[me] = 1
    };
    turn();
    do
    :: done[me] -> break
    :: else ->
        atomic {
            if
            :: leader == NOBODY -> leader = me
            :: else
            fi
        };
        if
        :: leader == me -> sleep_as_leader()
        :: else ->
            atomic { unlock(); on_condition[me] = 1 };
end_on_condition:
            (signalled[me] || late[me]);
            lock();
            atomic { on_condition[me] = 0; signalled[me] = 0 }
        fi;
#ifdef NO_TURN
        if
        :: late[me] -> turn()
        :: else
        fi
#else
        turn()
#endif
    od;
    atomic { hand_on() };
    atomic {
        inside--;
        if
        :: inside == 0 -> nobody_asks = 1
        :: else
        fi
    };
    unlock();
refused:
    returned[me] = 1
}

/* A thread of the loop answers each ask once, or leaves it unanswered. It never uses a freed
 * system, because the code frees the system after its threads have ended. */
proctype thread()
{
    bit answered[ASKERS];
    byte i;

    do
    :: i < ASKERS ->
end_idle:
        if
        :: begun[i] ->
            if
            :: silent[i] = 1
            :: atomic { arrived[i] = 1 } /* the put */
#ifndef NO_NOTIFY
                notify()
#endif
            fi
        :: closed
        fi;
        i++
    :: else -> break
    od
}

/* The time-out of an ask that is not answered, or is answered late. The first ask may have a
 * time-out that never comes; no other asker may have to wait for it. */
proctype clock(byte whose)
{
end:
    if
    :: atomic { silent[whose] -> late[whose] = 1 }
    :: silent[0] && whose == 0 -> endless = 1
    :: atomic { begun[whose] && whose == 0 -> late[whose] = 1 } /* the answer comes later */
    fi
}

proctype visitor()
{
    byte k;

    lock();
    if
    :: ANY_ARRIVED -> turn()
    :: else
    fi;
    unlock()
}

/* domi_system_set_stage(ENDING) is called, perhaps never; after it the system is freed. */
proctype closer()
{
    byte k;

    if
    :: skip ->
        lock();
        closed = 1;
#ifndef CLOSE_KEEPS_ASKS
        atomic {
            do
            :: k < ASKERS ->
                if
                :: waits[k] -> complete(k)
                :: else
                fi;
                k++
            :: else -> break
            od;
            k = 0
        };
#endif
        turn();
#ifndef CLOSE_NOT_AWAITED
        do
        :: inside > 0 ->
            atomic { nobody_asks = 0; unlock() };
            nobody_asks;
            lock()
        :: else -> break
        od;
#endif
        unlock();
        atomic { freed = 1; assert(inside == 0) }
    :: skip
    fi
}

init {
    byte i;

    atomic {
        do
        :: i < ASKERS -> run asker(i); run clock(i); i++
        :: else -> break
        od;
        run thread();
        run visitor();
        run closer()
    };
    timeout ->
    i = 0;
    do
    :: i < ASKERS ->
        if
        :: i == 0 && endless && !closed && !returned[0]
        :: else -> assert(returned[i] && completed[i] == begun[i])
        fi;
        i++
    :: else -> break
    od;
    assert(!mutex && inside == 1 - returned[0])
}
