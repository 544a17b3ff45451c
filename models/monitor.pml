/* How the monitor falls asleep, and how threads wake it.
 *
 * The idea: the monitor sleeps only while every thread of the loop sleeps. It writes ASLEEP before
 * it looks at the park words, and a thread writes RUNNING before it looks at the monitor's word, so
 * at least one of the two sees what the other wrote. A plain store stays in its writer's buffer
 * until it drains, as in park.pml; the accesses of the code that are seq_cst read-modify-writes
 * drain it first. The model has two threads, which wake, run an actor and sleep again, and a
 * process that ends the system.
 *
 * Models: runtime/system/monitor.c is_any_thread_awake, domi_monitor_sleep_until_woken, run_monitor_thread, domi_monitor_wake_if_asleep, domi_monitor_stop;
 * runtime/system/monitor.h domi_monitor_wake_if_resting; runtime/loop/park.c look_and_fall_asleep, domi_thread_end_rest.
 * Holds: while a thread runs an actor, the monitor is awake or somebody is about to wake it; the
 * monitor sleeps when all threads do; it ends when it is told to, and only then.
 *
 * @run short safety
 * @run short progress -DWAKES=1
 * @run long safety -DWAKES=3
 *
 * @mutant short safety NO_LOOK : the monitor does not look at the threads after it wrote ASLEEP
 * @mutant short safety LOOK_FIRST : the monitor looks at the threads only before it writes ASLEEP
 * @mutant short safety LOOK_AT_ONE : the monitor looks at the first thread only
 * @mutant long safety NO_ATTEND : a thread that wakes does not look at the monitor
 * @mutant long safety ATTEND_FIRST : a thread that wakes looks at the monitor before it writes RUNNING
 * @mutant long safety RUNNING_PLAIN : a thread that wakes stores RUNNING instead of exchanging it
 * @mutant long safety ASLEEP_STORED : ASLEEP is stored over any value of the word, and an end is lost
 * @mutant long safety AWAKE_STORED : a thread that wakes the monitor stores AWAKE over any value, and an end is lost
 * @mutant long progress NEVER_RESTS -DWAKES=1 : the monitor goes on although all threads sleep
 * @mutant long safety NO_FUTEX_WAKE : the word is changed without a futex wake */
#ifndef WAKES
#define WAKES 2 /* how often each thread wakes */
#endif
#define THREADS 2

#define AWAKE  0 /* the values of the monitor's word */
#define ASLEEP 1
#define ENDING 2

byte word = AWAKE;
bit running[THREADS]; /* the park words as they are in memory; 0 is SLEEPING */
bit stored[THREADS];  /* a plain store of RUNNING is under way */
/* ghost: the thread runs an actor, and has looked at the monitor before that */
bit at_work[THREADS];
bit in_futex;         /* the monitor sleeps in the kernel */
bit over;             /* the monitor has ended */

/* domi_monitor_wake_if_asleep: the thread that changes the word from ASLEEP also makes the futex wake. */
inline wake_monitor()
{
#ifdef AWAKE_STORED
    if
    :: word != AWAKE -> word = AWAKE; in_futex = 0
    :: else
    fi
#else
    atomic {
        if
        :: word == ASLEEP -> word = AWAKE; won = 1
        :: else
        fi
    };
    if
#ifdef NO_FUTEX_WAKE
    :: atomic { won -> won = 0 }
#else
    :: atomic { won -> won = 0; in_futex = 0 }
#endif
    :: else
    fi
#endif
}

/* This models domi_monitor_wake_if_resting. */
inline attend()
{
    if
    :: word == ASLEEP -> wake_monitor()
    :: else
    fi
}

inline write_running()
{
#ifdef RUNNING_PLAIN
    stored[me] = 1
#else
    running[me] = 1
#endif
}

proctype thread(byte me)
{
    byte i;
    bit won;

    do
    :: i < WAKES ->
        i++;
#ifdef ATTEND_FIRST
        attend();
        write_running();
#else
        write_running();
#ifndef NO_ATTEND
        attend();
#endif
#endif
        at_work[me] = 1;
        if
        :: at_work[me] = 0 /* the handler ends, and the thread parks by an exchange */
        :: i == WAKES -> break /* a handler that does not return while nothing else moves */
        fi;
        atomic { !stored[me] -> running[me] = 0 }
    :: else -> break
    od
}

/* A plain store reaches the memory at any later time. */
proctype drain(byte me)
{
end:
    do
    :: atomic { stored[me] -> stored[me] = 0; running[me] = 1 } /* unreached: only mutants store plainly */
    od
}

/* is_any_thread_awake: the park words are looked at one after the other. */
inline look()
{
    seen = 0;
    if
    :: running[0] -> seen = 1
    :: else
    fi;
#ifndef LOOK_AT_ONE
    if
    :: running[1] -> seen = 1
    :: else
    fi
#endif
}

proctype monitor()
{
    bit seen, may_rest;

    do
    :: word == ENDING -> break
    :: word != ENDING ->
        look();
        may_rest = !seen;
        if
        :: seen ->
progress_watches:
            skip
        :: may_rest -> /* domi_monitor_sleep_until_woken: no thread seems to be awake */
#ifndef LOOK_FIRST
            seen = 0;
#endif
#ifdef ASLEEP_STORED
            word = ASLEEP;
            may_rest = 1;
#else
            atomic {
                may_rest = (word == AWAKE);
                if
                :: may_rest -> word = ASLEEP
                :: else
                fi
            };
#endif
            if
            :: may_rest ->
#if !defined(NO_LOOK) && !defined(LOOK_FIRST)
                look();
#endif
                if
#ifdef NEVER_RESTS
                :: atomic { word == ASLEEP -> word = AWAKE }
                :: word != ASLEEP
#else
                :: atomic { seen && word == ASLEEP -> word = AWAKE }
                :: seen && word != ASLEEP
                :: !seen ->
                    do
                    :: atomic { word == ASLEEP -> in_futex = 1 } /* the kernel compares the word */
end_in_futex:
                        !in_futex
                    :: word != ASLEEP -> break
                    od
#endif
                fi
            :: else
            fi
        fi;
        seen = 0;
        may_rest = 0
    od;
    over = 1
}

/* domi_monitor_stop is called at any time, perhaps never. */
proctype ender()
{
    if
    :: word = ENDING;
        in_futex = 0; /* domi_monitor_stop makes a futex wake */
        over /* and joins the monitor's thread */
    :: skip
    fi
}

init {
    atomic {
        run thread(0);
        run thread(1);
        run drain(0);
        run drain(1);
        run monitor();
        run ender()
    };
    timeout ->
    /* Each thread that works is watched. If no thread works, the monitor sleeps until it is
     * woken. */
    assert(over || (word == ASLEEP && in_futex && !at_work[0] && !at_work[1]))
}
