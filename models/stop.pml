/* Stop and drain.
 *
 * The idea: a stop is a word that goes up step by step, and each thread tells which step it has
 * begun. A step ends in order when all threads have begun it and its counters are 0; otherwise its
 * end is forced when its time-out is over. So nothing is born, accepted or run unseen by the thread
 * that stops the system (the controller), and actors are ended when no thread runs any more. The
 * model has two threads. Thread 1 steals actor A of thread 0; A spawns an actor, and a helper
 * thread does blocking work for A. Acceptors of thread 0 hand connections to thread 1. A foreign
 * thread sends, spawns and asks A.
 *
 * Models: runtime/control/stop.c is_drain_over, have_all_threads_begun_close, have_all_actors_ended, drain_connections_of_system, close_spawning_and_stop_actors, stop_system_step_by_step, domi_system_set_stage,
 * domi_system_end_threads; runtime/loop/follow.c domi_thread_follow_orders; runtime/control/thread_life.c wait_until_all_have_left_their_loops, run_loop_of_thread;
 * runtime/outside/visit.c domi_outside_enter; runtime/outside/outside_ask.c domi_outside_fail_all_asks;
 * runtime/outside/blocking.c send_answer_of_blocking_work; runtime/os/workers.c domi_workers_stop; house/dispatch/manage.c
 * domi_manager_stop_actors, domi_manager_end_actors; house/family/life.c domi_house_end_with_system; house/dispatch/loan.c
 * domi_loans_take_all_back_at_end, domi_loan_take_exposed_house, domi_loan_run_house_and_return; io/acceptors/hand_over.c hand_connection_to_target. detached.pml has the
 * detached actors, outside.pml how those who ask outside are woken. Holds: after an orderly drain no
 * connection is open or on its way, and none is reset; after an orderly stop no actor is left, at that moment
 * and not later; after any stop nobody is born; nobody is ended while it is lent; each message that was
 * accepted is handled or a dead letter; an asker outside returns before the system is freed; an actor whose
 * work a helper still does is left as it is; the stop comes to its end.
 *
 * @run short safety -DCONNECTIONS=1 -DFOREIGNLESS
 * @run short safety -DCONNECTIONS=0
 * @run short safety -DCONNECTIONS=0 -DFOREIGNLESS -DWORK
 * @run short safety -DCONNECTIONS=0 -DFOREIGNLESS -DASKS
 * @run long safety -DCONNECTIONS=0 -DMESSAGES=2
 * @run long safety -DCONNECTIONS=0 -DFOREIGNLESS -DWORK -DASKS
 * @run long safety -DCONNECTIONS=1
 * @run long safety -DFOREIGNLESS
 *
 * @mutant short safety COUNTED_LATE -DFOREIGNLESS : a connection is counted when it arrives, not when it is sent
 * @mutant short safety LISTENING_IGNORED -DFOREIGNLESS : the drain ends when no connection is open, although a listener listens
 * @mutant short safety CONNECTIONS_FIRST -DFOREIGNLESS : connections are counted before listeners
 * @mutant short safety ABORT_IS_QUIET -DFOREIGNLESS -DCONNECTIONS=1 : connections that were reset count as drained
 * @mutant short safety DRAIN_SKIPPED -DFOREIGNLESS -DCONNECTIONS=1 : a thread that sees CLOSE first does not drain
 * @mutant short safety EMPTY_EARLY -DCONNECTIONS=0 : living actors are counted before all threads have followed
 * @mutant short safety MOUNTS_FORGOTTEN -DCONNECTIONS=0 : the stop does not stop actors whose mount has not arrived
 * @mutant short safety WORK_FORGOTTEN -DCONNECTIONS=0 -DFOREIGNLESS -DWORK : an actor ends while a helper works for it
 * @mutant long safety LATE_WORK_TOLD -DCONNECTIONS=0 -DFOREIGNLESS -DWORK : a helper whose work was abandoned still puts its result
 * @mutant long safety ASKERS_NOT_AWAITED -DCONNECTIONS=0 -DFOREIGNLESS -DASKS : the system is freed while a foreign thread asks
 * @mutant long safety ASKS_NOT_ENDED -DCONNECTIONS=0 -DFOREIGNLESS -DASKS : an ask is not ended by the close
 * @mutant long safety NO_CLOSE -DCONNECTIONS=0 : actors are stopped while others may spawn
 * @mutant long safety OUTSIDE_UNLOCKED -DCONNECTIONS=0 : foreign threads look at the stage without the mutex
 * @mutant long safety NO_WAIT_FOR_ALL -DCONNECTIONS=0 : a thread ends its actors when it has left its loop
 * @mutant long safety LOANS_FORGOTTEN -DCONNECTIONS=0 : a house that is exposed or returned is not taken back at the end
 * @mutant long safety LATE_MAIL_LEFT -DCONNECTIONS=0 : mail that was put after its receiver had ended stays there
 * @mutant long safety FOLLOWING_IGNORED -DFOREIGNLESS : the drain ends when nothing listens and no connection is open, before all threads have begun it
 * @mutant long safety CLOSE_NOT_AWAITED -DCONNECTIONS=0 : actors are stopped while a thread has not begun CLOSE and may spawn
 * @mutant long safety STAGE_LATE -DCONNECTIONS=0 : threads are ended before foreign ones are kept out
 * @mutant long safety LOAN_KEPT -DCONNECTIONS=0 : a thief leaves its loop with a loan */
#ifndef MESSAGES
#define MESSAGES 1
#endif
#ifndef CONNECTIONS
#define CONNECTIONS 2
#endif

#define NONE   0 /* the values of the system's `stop_step` and of `begun`, the threads' own */
#define DRAIN  1
#define ABORT  2
#define CLOSE  3
#define ACTORS 4
#define END    5

#define IS_RUNNING  0 /* the values of `stage`, for foreign threads; under the mutex */
#define IS_DRAINING 1
#define IS_ENDING   2

mtype = { IDLE, SHOWN, LENT, BACK }; /* where A is: at home, exposed, with the thief, given back */

byte stop_step, begun[2], ended;
bit closing[2];
byte stage;
bit mutex;

/* Connections: thread 0 listens and accepts, thread 1 has the channels. */
bit listening = (CONNECTIONS > 0), draining;
byte connections, accepted_connections, under_way, open;

/* Actor A: the messages in its inbox, and in `mail` those that were sorted. */
mtype place = IDLE;
byte inbox;
#ifdef WORK
byte mail = 1;
#else
byte mail;
#endif
bit arrived, pending, exposed, a_stop, a_closed, a_spawned;

/* A's blocking work, once: a helper does it, and puts the result into A's inbox. */
mtype = { NOT_YET, AT_WORK, DONE, ABANDONED };
mtype work = NOT_YET;
bit work_waits; /* A's conversation waits for the work */
bit pool_stopped;

/* The foreign thread's ask of A, once. */
bit asks, ask_answered, asks_closed;
byte inside;

/* Other living actors, by home: those whose mount has not arrived, and those that are mounted. */
byte mounts[2], houses[2];

/* These are ghosts: only the checks of the model use them. */
bit quiet, forced, walked[2], thread_ended[2], freed, left_as_it_is;
byte reset;
#ifdef WORK
byte accepted = 1;
#else
byte accepted;
#endif
byte handled, dead;

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
        assert(!walked[where]); /* nobody is born on a thread that has stopped its actors */
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
        inbox = 0;
#ifdef WORK
        if
        :: work == DONE -> work_waits = 0
        :: else
        fi
#endif
    }
}

/* Thread `me` runs a handler of A, which may spawn an actor once, or begin blocking work once. */
inline run_a()
{
    if
    :: mail > 0 && !a_stop ->
        atomic {
            mail--;
            handled++
        };
        if
        :: !a_spawned && !closing[me] ->
            a_spawned = 1;
            spawn_on(1 - me)
#ifdef WORK
        :: atomic { work == NOT_YET && !pool_stopped -> work = AT_WORK; work_waits = 1 }
#endif
        :: else
        fi
    :: else
    fi;
#ifdef ASKS
    if
    :: asks && !ask_answered -> ask_answered = 1
    :: else
    fi
#endif
}

/* This models domi_thread_follow_orders. */
inline follow()
{
    step = stop_step;
    if
#ifdef DRAIN_SKIPPED
    :: step == DRAIN && me == 0 && !draining -> draining = 1
#else
    :: step >= DRAIN && me == 0 && !draining -> draining = 1
#endif
    :: else
    fi;
    if
    /* domi_io_end_all_open_channels: the connections are reset and close soon */
    :: step == ABORT && doing < ABORT && me == 1 ->
        reset = reset + under_way
    :: else
    fi;
    if
    :: step >= CLOSE -> closing[me] = 1
    :: else
    fi;
    if
    :: step == ACTORS && doing < ACTORS -> /* this models domi_manager_stop_actors */
        atomic {
            walked[me] = 1;
#ifndef MOUNTS_FORGOTTEN
            /* it takes arrivals first, so that they are stopped, too */
            houses[me] = houses[me] + mounts[me];
            mounts[me] = 0;
#endif
            if
            :: me == 0 -> a_stop = 1
            :: else
            fi
        }
    :: else
    fi;
    doing = step;
    begun[me] = step
}

/* accept() is phases 1 and 2 of thread 0, serve() those of thread 1. */
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
    /* accepting ends or pauses */
    :: listening && (draining || accepted_connections < CONNECTIONS) -> listening = 0
    :: !listening && !draining && CONNECTIONS > 0 -> listening = 1
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

/* A has run at home, or is back from the thief. */
inline settle_a()
{
    atomic {
        if
        :: a_stop && inbox == 0 && !a_closed && !work_waits ->
            a_closed = 1;
            dead = dead + mail;
            mail = 0;
            ask_answered = ask_answered || asks
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
    :: doing != END && stop_step != doing -> follow()
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
        :: stop_step == END -> break
        :: else
        fi;
#endif
        run_a();
        place = BACK
    od;
    ended++;
    ALL_ENDED;
    /* this models domi_manager_end_actors */
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
        atomic { /* this models domi_house_end_with_system */
            if
#if defined(WORK) && !defined(WORK_FORGOTTEN)
            :: work_waits && work == ABANDONED -> left_as_it_is = 1
#endif
            :: else ->
                a_closed = 1;
                dead = dead + mail;
                mail = 0
            fi
        }
    :: else /* an actor of thread 1 sends to A in its on_stop */
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

#ifndef FOREIGNLESS
/* A foreign thread sends to A and spawns an actor, as long as the stage allows it. */
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
#endif

#ifdef ASKS
/* Another foreign thread asks A, and waits for the answer or the close. */
proctype asker()
{
    lock();
    if
    :: stage <= IS_DRAINING && !a_closed -> inside++; asks = 1; put_to_a()
    :: else
    fi;
    unlock();
    if
    :: asks ->
        (ask_answered || asks_closed); /* the code has a time-out, too */
        assert(!freed);
        inside--
    :: else
    fi
}
#endif

#ifdef WORK
/* The function of the blocking work returns, and `done` puts the result; if the pool was stopped
 * meanwhile, nothing is put. */
proctype helper()
{
end:
    work == AT_WORK || work == ABANDONED;
    if
    /* In the code the function returns before `done` puts the result. Here both are one step,
     * because domi_workers_stop() also waits for each helper that is between the two. */
    :: atomic { work == AT_WORK ->
            work = DONE;
            assert(!freed && !a_closed); /* an actor does not end while its work is under way */
            if
            :: inbox == 0 -> arrived = 1
            :: else
            fi;
            inbox++;
            accepted++
        }
#ifdef LATE_WORK_TOLD
    :: atomic { work == ABANDONED -> assert(!freed && !left_as_it_is); inbox++ }
#else
    :: work == ABANDONED -> assert(!a_closed) /* the function may still use memory of the actor */
#endif
    fi
}
#endif

#define HAVE_FOLLOWED(what) (begun[0] >= what && begun[1] >= what)

/* is_quiet, called again and again; it reads the counters one by one. */
inline await_quiet()
{
    do
    :: true ->
#ifndef FOLLOWING_IGNORED
        if
        :: HAVE_FOLLOWED(DRAIN)
        :: forced = 1; break /* the time-out is over */
        fi;
#endif
#ifdef CONNECTIONS_FIRST
        if
        :: connections == 0
        :: forced = 1; break
        fi;
#endif
#ifndef LISTENING_IGNORED
        if
        :: !listening
        :: forced = 1; break
        fi;
#endif
        if
#ifndef CONNECTIONS_FIRST
        :: connections == 0 -> break
        :: connections != 0 -> /* look again */
#else
        :: true -> break
#endif
        fi
    od;
    if
    :: !forced -> atomic { quiet = 1; assert(open == 0 && reset == 0) }
    :: forced ->
        stop_step = ABORT;
        if
        :: HAVE_FOLLOWED(ABORT) && !listening && connections == 0 ->
            atomic {
#ifdef ABORT_IS_QUIET
                assert(reset == 0);
#endif
                quiet = 1;
                assert(open == 0)
            }
        :: skip
        fi
    fi
}

proctype controller()
{
    bit orderly;

    lock();
    stage = IS_DRAINING;
    unlock();
    stop_step = DRAIN;
    await_quiet();
#ifndef NO_CLOSE
    stop_step = CLOSE;
#ifndef CLOSE_NOT_AWAITED
    if
    :: HAVE_FOLLOWED(CLOSE)
    :: goto ends /* the time-out is over, because some handler does not return */
    fi;
#endif
#endif
    stop_step = ACTORS;
    if
#ifdef EMPTY_EARLY
    :: atomic { houses[0] + houses[1] == 0 && a_closed -> orderly = 1 }
#else
    :: atomic { HAVE_FOLLOWED(ACTORS) && houses[0] + houses[1] == 0 && a_closed -> orderly = 1 }
#endif
        assert(mounts[0] + mounts[1] + houses[0] + houses[1] == 0 && !work_waits)
    :: skip /* the time-out is over */
    fi;
ends:
#ifdef WORK
    atomic { /* this models domi_workers_stop */
        pool_stopped = 1;
        if
        :: work == AT_WORK -> assert(!orderly); work = ABANDONED
        :: else
        fi
    };
#endif
#ifndef STAGE_LATE
    lock();
    stage = IS_ENDING;
#ifndef ASKS_NOT_ENDED
    asks_closed = 1;
#endif
#if defined(ASKS) && !defined(ASKERS_NOT_AWAITED)
    inside == 0;
#endif
    unlock();
#endif
    stop_step = END;
    (thread_ended[0] && thread_ended[1]); /* the threads are joined */
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
    asks_closed = 1;
    unlock();
#endif
end_stopped:
    skip
}

init {
    atomic {
        run thread(0);
        run thread(1);
#ifndef FOREIGNLESS
        run foreign();
#endif
#ifdef ASKS
        run asker();
#endif
#ifdef WORK
        run helper();
#endif
        run controller()
    };
    timeout ->
    assert(freed);
    assert(left_as_it_is || accepted == handled + dead)
}
