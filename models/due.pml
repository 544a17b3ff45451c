/* Until when the runners of a pool sleep.
 *
 * The idea: a runner that is about to sleep writes the time at which the next timer of the pool is due,
 * and sleeps until then. A thread that arms an earlier one calls all runners, and each of them looks again. Reading
 * the wheels and writing the time is one step under the lock, and so is arming a timer and comparing. So a
 * runner that sleeps, and has not been called, wakes before every timer on the wheels. It does not
 * count on the runner that has armed the timer, or on the one that wrote the time last: each of these may be
 * in a turn that takes long. The caller writes its own time, so that later timers do not call again. The lock makes each step whole, so there are no store buffers.
 *
 * Here some turns never end. The time is 0 to 2, and there are two timers.
 *
 * Models: runtime/pools/runner.c let_runner_wait_for_job, look_between_turns, domi_runner_take_step;
 * runtime/policies/services.c domi_pool_call_all_runners, domus_runner_is_called; house/message/pooled.c domi_pooled_arm_node_on_pools_wheel,
 * domi_pooled_disarm_node_on_pools_wheel. Holds: no runner sleeps while a timer is due, no runner sleeps while a job waits.
 *
 * @run short safety
 * @run long safety -DJOBS=3
 *
 * @mutant short safety AWAKE_UNLOCKED : the time is written after the look at the wheels, which is followed by a second look
 * @mutant short safety ARM_UNLOCKED : who arms a timer compares after it has let go of the lock
 * @mutant short safety NO_COMPARE : who arms a timer calls nobody
 * @mutant short safety AWAKE_LOWERED : a runner leaves the time that is there if it is earlier
 * @mutant short safety CALL_FIRST : who arms a timer calls before
 * @mutant short safety CALL_ONE : who arms a timer calls one runner
 * @mutant short safety CALLED_UNSEEN : a runner that is about to sleep does not look whether it was called
 * @mutant short safety CALLED_CLEARED_LATE : a runner forgets that it was called after it has looked at the wheels */
#ifndef JOBS
#define JOBS 2
#endif
#define RUNNERS 3
#define NEVER   3 /* timers are for the times 1 and 2, one each */

byte now_ns;
bit on[NEVER]; /* a timer for that time is on the wheels */
byte awake_ns = NEVER;
bit called[RUNNERS];
byte jobs, given;

/* Ghosts. */
bit sleeps[RUNNERS];
byte until_ns[RUNNERS];

#define DUE_NS (on[1] -> 1 : (on[2] -> 2 : NEVER))

inline look()
{
    atomic { /* what is due is fired */
        if
        :: now_ns >= 1 -> on[1] = 0
        :: else
        fi;
        if
        :: now_ns >= 2 -> on[2] = 0
        :: else
        fi
    }
}

inline call()
{
#ifdef CALL_ONE
    called[0] = 1
#else
    called[0] = 1;
    called[1] = 1;
    called[2] = 1
#endif
}

inline arm(time)
{
#ifdef CALL_FIRST
    if
    :: time < awake_ns -> call()
    :: else
    fi;
    on[time] = 1
#else
#ifdef ARM_UNLOCKED
    on[time] = 1;
    sooner = (time < awake_ns);
#else
    atomic {
        on[time] = 1;
        sooner = (time < awake_ns);
        if
        :: sooner -> awake_ns = time
        :: else
        fi
    };
#endif
#ifndef NO_COMPARE
    if
    :: sooner -> sooner = 0; call()
    :: else
    fi
#else
    sooner = 0
#endif
#endif
}

proctype runner(byte me)
{
    byte due_ns;
    bit sooner;

step:
#ifndef CALLED_CLEARED_LATE
    called[me] = 0;
#endif
    if
    :: atomic { jobs > 0 -> jobs-- }
        goto turn
    :: jobs == 0
    fi;
    look();
    /* it is about to sleep */
#if defined(AWAKE_UNLOCKED)
    due_ns = DUE_NS;
    awake_ns = due_ns;
    due_ns = DUE_NS;
#elif defined(AWAKE_LOWERED)
    atomic {
        due_ns = DUE_NS;
        if
        :: due_ns < awake_ns -> awake_ns = due_ns
        :: else
        fi
    };
#else
    atomic { due_ns = DUE_NS; awake_ns = due_ns };
#endif
#ifdef CALLED_CLEARED_LATE
    called[me] = 0;
#endif
    if
    :: due_ns <= now_ns -> goto step
    :: else
    fi;
#ifdef CALLED_UNSEEN
    atomic { called[me] = 0; sleeps[me] = 1; until_ns[me] = due_ns; due_ns = 0 };
#else
    atomic { sleeps[me] = 1; until_ns[me] = due_ns; due_ns = 0 };
#endif
end_asleep:
    if
    :: atomic { jobs > 0 -> jobs--; sleeps[me] = 0; until_ns[me] = 0 }
    :: atomic { called[me] || until_ns[me] <= now_ns -> sleeps[me] = 0; until_ns[me] = 0 }
        goto step
    fi;
turn:
    if
    :: !on[1] && now_ns < 1 -> arm(1)
    :: !on[2] && now_ns < 2 -> arm(2)
    :: on[1] -> on[1] = 0 /* it is taken back */
    :: true
    fi;
    if
    :: goto step
    :: true /* the turn does not end */
    fi
}

proctype others()
{
end:
    do
    :: atomic { given < JOBS -> given++; jobs++ }
    :: atomic { now_ns < 2 -> now_ns++ }
    od
}

init {
    atomic {
        run runner(0);
        run runner(1);
        run runner(2);
        run others()
    };
    timeout -> /* no process can move any more */
    assert(now_ns == 2 && given == JOBS);
    if
    :: sleeps[0] || sleeps[1] || sleeps[2] -> assert(DUE_NS == NEVER && jobs == 0)
    :: else
    fi
}
