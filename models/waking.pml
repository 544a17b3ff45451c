/* Waking one sleeper to steal.
 *
 * The idea: `waking` names the one thread that was woken to look for work, so that no second one is
 * woken before it has looked; that thread alone clears it, when it has stolen or gave up, and it
 * does not sleep while it is named. Overwhelmed homes show houses while `thieves` counts somebody,
 * and to the sleeper that they have just woken; thieves spin or sleep, and are woken by messages
 * too. A home tells its depth (`lendable`) only at its looks, one look for several runs, and once
 * more when it has nothing left; so thieves see old values. A home may find at any look that its
 * runs are too short to be lent (IS_WORTH), that what it shows has become stale, or that it is alone.
 *
 * Models: runtime/loop/steal.c domi_thread_steal, choose, give_up, end_waking, leave, domi_thread_note_busy,
 * domi_thread_publish_depth, domi_thread_share_houses, wake_sleeper; runtime/loop/loop.c phase_state;
 * house/dispatch/loan.c domi_loans_expose, domi_loans_take_back, domi_loans_settle, domi_loan_take,
 * domi_loan_run; runtime/loop/park.c fall_asleep; runtime/loop/spin.c. Store buffers are those of park.pml:
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
 * @mutant short safety CLEARED_ALWAYS -DHOUSES=4 : who gives up clears it, whoever is named
 * @mutant short safety CLEARED_EARLY : who is woken clears it before it has looked
 * @mutant short progress STALE_DEPTH -DHOUSES=2 -DTHIEVES=1 : a home without work does not tell so
 * @mutant short safety SPINNER_NAMED_BLIND : a spinner that falls asleep does not look at `waking`
 * @mutant short safety NOT_NAMED -DHOUSES=4 : whoever overwhelms wakes a sleeper, whoever is under way
 * @mutant short safety THIEF_COUNTED : who sleeps still counts among the thieves
 * @mutant short safety SHOWN_IS_NO_WORK : a home sleeps while it shows something
 * @mutant long progress NOT_CLEARED -DTHIEVES=1 : who gives up does not clear it
 * @mutant long progress SHOWN_NOT_COUNTED -DENDLESS -DHOUSES=2 -DTHIEVES=1 : shown is not ready
 * @mutant long safety WAKING_STORED -DHOMES=2 -DHOUSES=2 -DTHIEVES=1 : looked at, then stored
 * @mutant long safety RETURN_SILENT : who gives a house back does not wake its home
 * @mutant long progress NOTIFIED_NOT -DENDLESS -DHOUSES=2 -DTHIEVES=1 : who is named is not woken
 */
#ifndef HOUSES
#define HOUSES 3 /* ready at each home */
#endif
#ifndef HOMES
#define HOMES 1
#endif
#ifndef THIEVES
#define THIEVES 2
#endif
#define FLOOR 1
#define LOOKS 1 /* of one who was woken and saw nobody overwhelmed */
#define THREADS (HOMES + THIEVES) /* the homes first */
#define RUNS 2 /* between two looks */
#define RUNNING  0
#define SLEEPING 1
#define NOTIFIED 2
#define SPINNING 3

byte park[THREADS];
byte waking; /* 0, or the number of the thread that was woken, plus 1 */
byte thieves[HOMES], lendable[HOMES], shown[HOMES], returns[HOMES];
byte private[HOMES]; /* the home's */
byte messages[THREADS];
bit chosen[THREADS];   /* ghost: woken to look, and has not said that it has */
byte done;

#define IS_NAMED (waking == me + 1)

inline notify(whom)
{
    if
    :: atomic { park[whom] == SLEEPING -> park[whom] = NOTIFIED }
    :: else
    fi
}

inline end_waking()
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

/* domi_loan_take, domi_loan_run */
inline steal()
{
    if
    :: atomic { shown[victim] > 0 -> shown[victim]--; other = victim }
progress_steals:
        end_waking();
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
    bit has_looked; /* ghost: since it woke */

again:
#ifdef CLEARED_EARLY
    end_waking();
#endif
    do
    :: atomic { messages[me] > 0 -> messages[me]--; looks = 0; has_looked = 1 /* it has work */ }
        leave();
        end_waking();
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
            end_waking();
#endif
            break
        fi
    :: messages[me] == 0 && victim != HOMES ->
        if
        :: lendable[victim] <= FLOOR -> leave()
        :: lendable[victim] > FLOOR -> steal()
#ifndef ENDLESS
        :: lendable[victim] > FLOOR -> /* its patience is over */
#ifndef THIEF_COUNTED
            leave();
#endif
            looks = 0;
#ifndef NOT_CLEARED
            end_waking();
#endif
            break
#endif
        fi
    od;
    has_looked = 0;
    if
    :: park[me] = SPINNING; /* a thread that names it to steal sees that it looks by itself */
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

/* `woke`: one was named, and will look. */
inline wake_sleeper()
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
            :: other < THREADS - 1 -> other++ /* begin behind this one */
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
#define MAY_DIFFER true /* too short runs, stale, alone: what only time tells */
#endif

/* domi_thread_share_houses, and the lock that it and thieves hold is one step */
inline share()
{
    if
    :: shown[me] > 0 && (private[me] == 0 || MAY_DIFFER || (thieves[me] == 0 && waking == 0)) ->
        atomic { private[me] = private[me] + shown[me]; shown[me] = 0 }
    :: shown[me] == 0 && MAY_DIFFER
    :: private[me] > FLOOR ->
        woke = (thieves[me] > 0 || (shown[me] > 0 && waking != 0));
        wake_sleeper();
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
        atomic { /* a look */
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
        :: runs > 0 -> break /* 64 messages were handled */
#else
        :: true -> break
#endif
        od;
        runs = 0
    :: else -> break
    od;
#ifndef STALE_DEPTH
    atomic { publish() }; /* nothing is left */
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

/* Somebody else's messages to the thieves. */
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
    timeout -> /* all sleep */
    assert(done == HOMES * HOUSES);
    assert(waking == 0);
    assert(thieves[0] + thieves[HOMES - 1] == 0)
}
