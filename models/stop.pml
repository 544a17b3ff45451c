/* Stop and drain.
 *
 * The idea: a stop is a word that goes up step by step, and each thread says which step it has
 * begun; a step ends when all have begun it and the counters are 0. So nothing is born, accepted or
 * run behind the back of who stops, and actors are ended when no thread runs any more. Two threads;
 * actor A of thread 0 is stolen by thread 1, and spawns; acceptors hand connections of thread 0 to
 * thread 1; a foreign thread sends and spawns.
 *
 * Models: runtime/stop.c is_quiet, is_closed, is_empty, stop, domi_system_end; runtime/drain.c
 * domi_thread_follow; runtime/start.c wait_for_all, run; runtime/outside.c domi_outside_enter;
 * house/manager.c domi_manager_stop, domi_manager_end; house/loan.c domi_loans_end, domi_loan_take,
 * domi_loan_repay; io/acceptor.c hand_to. Holds: after the drain no connection is open or on its
 * way; after the stop nobody is born; nobody is ended while it is lent; each message that
 * was accepted is handled or a dead letter; the stop comes to its end.
 *
 * @run short safety
 * @run long safety -DMESSAGES=2
 *
 * @mutant short safety COUNTED_LATE : a connection is counted when it arrives, not when it is sent
 * @mutant short safety LISTENING_IGNORED : quiet is when no connection is open
 * @mutant short safety CONNECTIONS_FIRST : connections are counted before listeners
 * @mutant short safety NO_CLOSE : actors are stopped while others may spawn
 * @mutant short safety OUTSIDE_UNLOCKED : foreign threads look at the stage without the mutex
 * @mutant short safety NO_WAIT_FOR_ALL : a thread ends its actors when it has left its loop
 * @mutant short safety LOANS_FORGOTTEN : what is shown or returned is not taken back at the end
 * @mutant short safety LATE_MAIL_LEFT : what was put after its receiver had ended stays there
 * @mutant long safety FOLLOWING_IGNORED : ... and nobody listens, whoever has begun to drain
 * @mutant long safety CLOSE_NOT_AWAITED : ... while a thread has not heard of the end of spawning
 * @mutant long safety STAGE_LATE : threads are ended before foreign ones are kept out
 * @mutant long safety LOAN_KEPT : a thief leaves its loop with a loan
 */
#ifndef MESSAGES
#define MESSAGES 1
#endif
#define CONNECTIONS 2

#define RUN   0 /* the words of the system */
#define DRAIN 1
#define CLOSE 2
#define STOP  3
#define END   4

#define IS_RUNNING  0 /* stages, under the mutex */
#define IS_DRAINING 1
#define IS_ENDING   2

mtype = { IDLE, SHOWN, LENT, BACK }; /* where A is: at home; with thieves */

byte wanted, following[2], ended;
bit closing[2];
byte stage;
bit mutex;

/* Connections: listening is thread 0's, they are opened on thread 1. */
bit listening = 1, draining;
byte connections, accepted_connections, under_way, open;

/* A: its inbox, and what of it was sorted. */
mtype place = IDLE;
byte inbox, mail;
bit arrived, pending, exposed, a_stop, a_closed, a_spawned;

/* Others that live, by home: those whose mount has not arrived, and the others. */
byte mounts[2], houses[2];

/* Ghosts. */
bit quiet, walked[2], thread_ended[2], freed;
byte accepted, handled, dead;

inline put_to_a()
{
    atomic {
        assert(!freed);
        if
        :: inbox == 0 -> arrived = 1
        :: else
        fi;
        inbox++;
        accepted++
    }
}

inline spawn_on(where)
{
    atomic {
        assert(!walked[where]); /* nobody is born behind the stop's back */
        mounts[where]++
    }
}

inline sort_a()
{
    atomic {
        if
        :: a_closed -> dead = dead + inbox
        :: else -> mail = mail + inbox
        fi;
        inbox = 0
    }
}

/* A handler of A, on thread `me`: it may spawn, once. */
inline run_a()
{
    if
    :: mail > 0 && !a_stop ->
        mail--;
        handled++;
        if
        :: !a_spawned && !closing[me] ->
            a_spawned = 1;
            spawn_on(1 - me)
        :: else
        fi
    :: else
    fi
}

/* domi_thread_follow */
inline follow()
{
    step = wanted;
    if
    :: step >= DRAIN && me == 0 && !draining -> draining = 1
    :: else
    fi;
    if
    :: step >= CLOSE -> closing[me] = 1
    :: else
    fi;
    if
    :: step == STOP -> /* domi_manager_stop: mounts under way are seen by their life words */
        atomic {
            walked[me] = 1;
            if
            :: me == 0 -> a_stop = 1
            :: else
            fi
        }
    :: else
    fi;
    doing = step;
    following[me] = step
}

/* Phase 1 and 2 of thread 0, of thread 1. */
inline accept()
{
    if
    :: accepted_connections < CONNECTIONS && listening ->
        atomic {
            assert(!quiet);
            accepted_connections++;
            open++
        };
#ifndef COUNTED_LATE
        connections++;
#endif
        under_way++
    :: listening && (draining || accepted_connections < CONNECTIONS) -> listening = 0 /* a pause */
    :: !listening && !draining -> listening = 1
    fi
}

inline serve()
{
#ifdef COUNTED_LATE
    connections++;
#endif
    under_way--;
    open--;
    connections--
}

inline have_back()
{
    atomic {
        exposed = 0;
        place = IDLE;
        if
        :: pending -> pending = 0; sort_a()
        :: else
        fi
    }
}

/* A has run at home, or is back. */
inline settle_a()
{
    atomic {
        if
        :: a_stop && inbox == 0 && !a_closed -> a_closed = 1; dead = dead + mail; mail = 0
        :: else
        fi
    }
}

#ifdef NO_WAIT_FOR_ALL
#define ALL_ENDED true
#else
#define ALL_ENDED (ended == 2)
#endif

proctype thread(byte me)
{
    byte doing, step;

    do
    :: doing == END -> break
    :: doing != END && wanted != doing -> follow()
    :: doing != END && me == 0 && (listening || !draining) &&
            (accepted_connections < CONNECTIONS || draining) -> accept()
    :: doing != END && me == 1 && under_way > 0 -> serve()
    :: atomic { doing != END && mounts[me] > 0 -> mounts[me]--; houses[me]++ }
    :: atomic { doing != END && walked[me] && houses[me] > 0 -> houses[me]-- }
    :: doing != END && me == 0 && arrived ->
        atomic {
            arrived = 0;
            if
            :: exposed -> pending = 1
            :: else -> sort_a()
            fi
        }
    :: doing != END && me == 0 && place == IDLE && !a_closed && (mail > 0 || a_stop) ->
        run_a();
        settle_a()
    :: atomic { doing != END && me == 0 && place == IDLE && mail > 0 && !a_closed ->
            exposed = 1;
            place = SHOWN
        }
    :: doing != END && me == 0 && place == BACK -> have_back(); settle_a()
    :: atomic { doing != END && me == 0 && place == SHOWN -> place = IDLE } have_back()
    :: atomic { doing != END && me == 1 && place == SHOWN -> place = LENT }
#ifdef LOAN_KEPT
        if
        :: wanted == END -> break
        :: else
        fi;
#endif
        run_a();
        place = BACK
    od;
    ended++;
    ALL_ENDED;
    /* domi_manager_end */
    if
    :: me == 0 ->
        assert(place != LENT);
#ifndef LOANS_FORGOTTEN
        if
        :: place == SHOWN || place == BACK -> have_back()
        :: else
        fi;
#endif
        if
        :: arrived && !exposed -> arrived = 0; sort_a()
        :: else
        fi;
        atomic { a_closed = 1; dead = dead + mail; mail = 0 }
    :: else /* an on_stop sends to A */
        if
        :: !a_closed -> put_to_a()
        :: else
        fi
    fi;
    atomic { mounts[me] = 0; houses[me] = 0 };
    thread_ended[me] = 1
}

inline lock() { atomic { !mutex -> mutex = 1 } }
inline unlock() { mutex = 0 }

/* What it does, it does as long as the stage lets it. */
proctype foreign()
{
    byte i;
    bit spawned;

    do
    :: i < MESSAGES ->
        i++;
#ifndef OUTSIDE_UNLOCKED
        lock();
#endif
        if
        :: stage <= IS_DRAINING && !a_closed -> put_to_a()
        :: else
        fi;
#ifndef OUTSIDE_UNLOCKED
        unlock()
#endif
    :: !spawned ->
        spawned = 1;
#ifndef OUTSIDE_UNLOCKED
        lock();
#endif
        if
        :: stage == IS_RUNNING -> spawn_on(0)
        :: else
        fi;
#ifndef OUTSIDE_UNLOCKED
        unlock()
#endif
    :: i == MESSAGES && spawned -> break
    od
}

#define HAVE_FOLLOWED(what) (following[0] >= what && following[1] >= what)

/* is_quiet, look after look; counters are read one by one. */
inline await_quiet()
{
    do
    :: true ->
#ifndef FOLLOWING_IGNORED
        HAVE_FOLLOWED(DRAIN);
#endif
#ifdef CONNECTIONS_FIRST
        connections == 0;
#endif
#ifndef LISTENING_IGNORED
        !listening;
#endif
        if
#ifndef CONNECTIONS_FIRST
        :: connections == 0 -> break
        :: else /* anew */
#else
        :: true -> break
#endif
        fi
    od;
    quiet = 1;
    assert(open == 0)
}

proctype controller()
{
    lock();
    stage = IS_DRAINING;
    unlock();
    wanted = DRAIN;
    await_quiet();
#ifndef NO_CLOSE
    wanted = CLOSE;
#ifndef CLOSE_NOT_AWAITED
    HAVE_FOLLOWED(CLOSE);
#endif
#endif
    wanted = STOP;
    if
    :: HAVE_FOLLOWED(STOP) && houses[0] + houses[1] == 0 && a_closed
    :: true /* its time is over */
    fi;
#ifndef STAGE_LATE
    lock();
    stage = IS_ENDING;
    unlock();
#endif
    wanted = END;
    (thread_ended[0] && thread_ended[1]); /* join */
#ifndef LATE_MAIL_LEFT
    if
    :: arrived && !exposed -> arrived = 0; sort_a()
    :: else
    fi;
#endif
    freed = 1;
#ifdef STAGE_LATE
    lock();
    stage = IS_ENDING;
    unlock();
#endif
end_stopped:
    skip
}

init {
    atomic {
        run thread(0);
        run thread(1);
        run foreign();
        run controller()
    };
    timeout ->
    assert(freed);
    assert(accepted == handled + dead)
}
