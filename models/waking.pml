/* One sleeping thread is woken to steal.
 *
 * The idea: `waking` names the one thread that was woken to look for work, so that no second thread
 * is woken before that one has looked. The named thread alone clears `waking`, when it has stolen a
 * house or given up, and it does not sleep while it is named. A home with too many ready houses
 * exposes some of them (puts them where thieves can take them) while `thieves` is not 0, or for a
 * sleeper that it has just woken. Thieves spin or sleep, and are woken by messages, too. A home
 * tells how many ready houses it has (`lendable`) only at its looks, of which one comes after
 * several runs, and once more when it has none left. So thieves see old values. At any look a home
 * may find that its runs are too short to be lent, that houses were exposed for too long, or that
 * it has to expose nothing for a while.
 *
 * Models: runtime/loop/steal.c domi_thread_try_to_steal_house, keep_or_choose_victim, give_up_stealing, note_that_woken_thread_has_looked, abandon_victim, domi_thread_note_it_had_work,
 * domi_thread_publish_ready_count, domi_thread_expose_or_take_back_houses, wake_idle_thread_to_steal; runtime/loop/state_phase.c domi_thread_run_phase_state;
 * house/dispatch/loan.c domi_loans_expose_houses, domi_loans_take_houses_back, domi_loans_settle_returned_houses, domi_loan_take_exposed_house,
 * domi_loan_run_house_and_return; runtime/loop/park.c look_and_fall_asleep; runtime/loop/spin.c. Store buffers are those of park.pml:
 * here every step is seen at once. Holds: at most one thread is woken and has not looked; nobody sleeps while
 * it is named, or counts among the thieves; nothing shown is forgotten; no thief is after a home that has
 * nothing for ever; with an endless surplus somebody always steals again.
 *
 * @run short safety -DHOUSES=2 -DTHIEVES=1
 * @run long safety -DHOUSES=2
 * @run short progress -DTHIEVES=1
 * @run short progress -DENDLESS -DHOUSES=2 -DTHIEVES=1
 * @run long safety -DHOMES=2 -DHOUSES=2 -DTHIEVES=1
 * @run long safety
 * @run long progress -DENDLESS -DTHIEVES=1
 *
 * @mutant short safety NO_LOOK_AT_WAKING : the second look of a park leaves out `waking`
 * @mutant short safety CLEARED_ALWAYS -DHOUSES=4 : a thief that gives up clears `waking`, although another thread may be named
 * @mutant short safety CLEARED_EARLY : a thief that is woken clears `waking` before it has looked
 * @mutant short progress STALE_DEPTH -DHOUSES=2 -DTHIEVES=1 : a home that has no work left does not write `lendable`
 * @mutant short safety SPINNER_NAMED_BLIND : a spinner that falls asleep does not look at `waking`
 * @mutant short safety NOT_NAMED -DHOUSES=4 : a home with too many houses wakes a sleeper, although another one was woken already
 * @mutant short safety THIEF_COUNTED : a thief that sleeps still counts in `thieves`
 * @mutant short safety SHOWN_IS_NO_WORK : a home sleeps while a house is exposed
 * @mutant long progress NOT_CLEARED -DTHIEVES=1 : a thief that gives up does not clear `waking`
 * @mutant long progress SHOWN_NOT_COUNTED -DENDLESS -DHOUSES=2 -DTHIEVES=1 : exposed houses are not counted as ready
 * @mutant long safety WAKING_STORED -DHOMES=2 -DHOUSES=2 -DTHIEVES=1 : `waking` is looked at, then stored, in two steps
 * @mutant long safety RETURN_SILENT : a thief that gives a house back does not wake its home
 * @mutant long progress NOTIFIED_NOT -DENDLESS -DHOUSES=2 -DTHIEVES=1 : the thread that is named is not woken */
#ifndef HOUSES
#define HOUSES 3 /* houses that are ready at each home */
#endif
#ifndef HOMES
#define HOMES 1
#endif
#ifndef THIEVES
#define THIEVES 2
#endif
#define FLOOR 1
#define LOOKS 1 /* how often a woken thief looks again when no home has too many houses */
#define THREADS (HOMES + THIEVES) /* homes have the first numbers */
#define RUNS 2 /* the most runs of a home between two looks */
#define RUNNING  0
#define SLEEPING 1
#define NOTIFIED 2
#define SPINNING 3

byte park[THREADS];
byte waking; /* 0, or the number of the thread that was woken, plus 1 */
byte thieves[HOMES], lendable[HOMES], shown[HOMES], returns[HOMES];
byte private[HOMES]; /* ready houses that are not exposed; only the home writes this */
byte messages[THREADS];
bit chosen[THREADS];   /* ghost: the thread was woken to look, and has not cleared `waking` yet */
byte done;

#define IS_NAMED (waking == me + 1)

inline notify(whom)
{
    if
    :: atomic { park[whom] == SLEEPING -> park[whom] = NOTIFIED }
    :: else
    fi
}

inline note_that_woken_thread_has_looked()
{
#ifdef CLEARED_ALWAYS
    atomic { waking = 0; chosen[me] = 0 }
#else
    if
    :: atomic { IS_NAMED -> assert(has_looked); waking = 0; chosen[me] = 0 }
    :: else
    fi
#endif
}

inline leave()
{
    atomic {
        if
        :: victim != HOMES -> thieves[victim]--; victim = HOMES
        :: else
        fi
    }
}

/* This models domi_loan_take_exposed_house, domi_loan_run_house_and_return. */
inline steal()
{
    if
    :: atomic { shown[victim] > 0 -> shown[victim]--; other = victim }
progress_steals:
        note_that_woken_thread_has_looked();
        returns[other]++;
#ifndef RETURN_SILENT
        notify(other);
#endif
        other = 0
    :: else
    fi
}

proctype thief(byte me)
{
    byte victim = HOMES, looks, other;
    bit has_looked; /* ghost: the thief has looked since it woke */

again:
#ifdef CLEARED_EARLY
    note_that_woken_thread_has_looked();
#endif
    do
    :: atomic { messages[me] > 0 -> messages[me]--; looks = 0; has_looked = 1 /* the thief has work */ }
        leave();
        note_that_woken_thread_has_looked();
        break
    :: messages[me] == 0 && victim == HOMES ->
        atomic {
            has_looked = 1;
            if
            :: lendable[0] > FLOOR -> victim = 0
            :: HOMES > 1 && lendable[HOMES - 1] > FLOOR -> victim = HOMES - 1
            :: else
            fi;
            if
            :: victim != HOMES -> thieves[victim]++
            :: else
            fi
        };
        if
        :: victim != HOMES -> steal()
        :: victim == HOMES && IS_NAMED && looks < LOOKS -> looks++
        :: else ->
            looks = 0;
#ifndef NOT_CLEARED
            note_that_woken_thread_has_looked();
#endif
            break
        fi
    :: messages[me] == 0 && victim != HOMES ->
        if
        :: lendable[victim] <= FLOOR -> leave()
        :: lendable[victim] > FLOOR -> steal()
#ifndef ENDLESS
        /* the thief gives up, because its time to wait for this home is over */
        :: lendable[victim] > FLOOR ->
#ifndef THIEF_COUNTED
            leave();
#endif
            looks = 0;
#ifndef NOT_CLEARED
            note_that_woken_thread_has_looked();
#endif
            break
#endif
        fi
    od;
    has_looked = 0;
    if
    /* while it spins it looks for work by itself, so nobody has to wake it */
    :: park[me] = SPINNING;
        if
        :: messages[me] > 0 || IS_NAMED -> park[me] = RUNNING; goto again
        :: skip
        fi
#ifdef SPINNER_NAMED_BLIND
        ;
        park[me] = SLEEPING;
        if
        :: messages[me] > 0 -> park[me] = RUNNING; goto again
        :: else -> goto asleep
        fi
#endif
    :: skip
    fi;
    park[me] = SLEEPING;
    if
    :: messages[me] > 0 -> park[me] = RUNNING; goto again
    :: else
    fi;
#ifndef NO_LOOK_AT_WAKING
    if
    :: IS_NAMED -> park[me] = RUNNING; goto again
    :: else
    fi;
#endif
#ifdef SPINNER_NAMED_BLIND
asleep:
#endif
end_asleep:
    atomic { park[me] == NOTIFIED -> park[me] = RUNNING };
    goto again
}

#define IS_IDLE(whom) (park[whom] == SLEEPING || park[whom] == SPINNING)

/* Name an idle thread and wake it. `woke` becomes 1 if one was named, which will look. */
inline wake_idle_thread_to_steal()
{
    if
#ifdef NOT_NAMED
    :: true ->
#else
    :: waking == 0 ->
#endif
        atomic {
            other = HOMES;
            do
            :: other < THREADS && !IS_IDLE(other) -> other++
            :: other < THREADS && IS_IDLE(other) -> break
            /* the search may begin at any thread, so skip this one */
            :: other < THREADS - 1 -> other++
            :: other == THREADS -> break
            od
        };
        if
        :: other < THREADS ->
#if defined(WAKING_STORED) || defined(NOT_NAMED)
            atomic {
                waking = other + 1;
#else
            if
            :: atomic {
                waking == 0 -> waking = other + 1;
#endif
                assert(chosen[HOMES] + chosen[THREADS - 1] == 0);
                chosen[other] = 1;
                woke = 1
            };
#ifndef NOTIFIED_NOT
            notify(other);
#endif
#if !defined(WAKING_STORED) && !defined(NOT_NAMED)
            :: else
            fi
#endif
        :: else
        fi;
        other = 0
    :: else
    fi
}

#ifdef ENDLESS
#define MAY_DIFFER false
#else
/* decisions that depend on measured times: runs too short, exposed too long, expose nothing for a
 * while */
#define MAY_DIFFER true
#endif

/* domi_thread_expose_or_take_back_houses. The work of home or a thief under the lock of the shared queue is one
 * step. */
inline share()
{
    if
    :: shown[me] > 0 && (private[me] == 0 || MAY_DIFFER || (thieves[me] == 0 && waking == 0)) ->
        atomic { private[me] = private[me] + shown[me]; shown[me] = 0 }
    :: shown[me] == 0 && MAY_DIFFER
    :: private[me] > FLOOR ->
        woke = (thieves[me] > 0 || (shown[me] > 0 && waking != 0));
        wake_idle_thread_to_steal();
        atomic {
            if
            :: woke && shown[me] < FLOOR -> shown[me]++; private[me]--
            :: else
            fi;
            woke = 0
        }
    :: private[me] <= FLOOR && shown[me] == 0
    :: private[me] > 0 && private[me] <= FLOOR && shown[me] > 0 && (thieves[me] > 0 || waking != 0)
    fi
}

#ifdef SHOWN_IS_NO_WORK
#define WORK (returns[me] > 0 || private[me] > 0)
#else
#define WORK (returns[me] > 0 || private[me] > 0 || shown[me] > 0)
#endif

/* Exposed houses count as ready, too, because otherwise a thief would leave as soon as houses are
 * exposed to it. If runs are too short to be lent, the number of ready houses is told as 0. */
inline publish()
{
    if
#ifndef ENDLESS
    :: lendable[me] = 0
#endif
    :: true ->
#ifdef SHOWN_NOT_COUNTED
        lendable[me] = private[me]
#else
        lendable[me] = private[me] + shown[me]
#endif
    fi
}

proctype home(byte me)
{
    byte other, runs;
    bit woke;

again:
    do
    :: WORK ->
        atomic { /* home looks */
#ifdef ENDLESS
            private[me] = private[me] + returns[me];
#else
            done = done + returns[me];
#endif
            returns[me] = 0;
            publish()
        };
        share();
        runs = 0;
        do
#ifndef ENDLESS
        :: atomic { private[me] > 0 && runs < RUNS -> private[me]--; done++; runs++ }
        :: private[me] == 0 -> break
        :: runs > 0 -> break /* home looks because 64 messages were handled */
#else
        :: true -> break
#endif
        od;
        runs = 0
    :: else -> break
    od;
#ifndef STALE_DEPTH
    atomic { publish() }; /* home tells that it has nothing left */
#endif
    park[me] = SLEEPING;
    if
    :: WORK -> park[me] = RUNNING; goto again
    :: else
    fi;
end_asleep:
    atomic { park[me] == NOTIFIED -> park[me] = RUNNING };
    goto again
}

/* Another thread sends messages to the thieves. */
proctype sender()
{
    byte i = HOMES;

    do
    :: i < THREADS -> messages[i] = 1; notify(i); i++
    :: else -> break
    od
}

init {
    byte i;

    atomic {
        do
        :: i < HOMES -> private[i] = HOUSES; run home(i); i++
        :: i >= HOMES && i < THREADS -> run thief(i); i++
        :: else -> break
        od;
        run sender()
    };
    timeout -> /* all threads sleep */
    assert(done == HOMES * HOUSES);
    assert(waking == 0);
    assert(thieves[0] + thieves[HOMES - 1] == 0)
}
