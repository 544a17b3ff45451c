/* Park and wake, on a machine whose stores are buffered.
 *
 * The idea: a thread that puts and a thread that parks both make a read-modify-write before they
 * look at what the other wrote. So at least one of them sees the other. A plain store stays in its
 * thread's buffer until it drains, at any later time and in order (x86-TSO; the compiler may turn
 * release and acquire into this). A read-modify-write or a seq_cst store drains the buffer first.
 * The model has no time-outs. So a wake-up that is lost, which the code would notice only at the
 * end of a doze or of a capped sleep, is here a state in which no process moves.
 *
 * Models: base/park.h domi_park_begin_look_before_sleep, domi_park_end_look_and_sleep, domi_park_end_sleep, domi_park_try_notify,
 * domi_park_try_hold_dozing_owner, domi_park_release_held_owner; runtime/loop/stand_in.c hold_sleeper_and_sort_its_mail,
 * stand_in_for_or_wake_sleeper;
 * house/message/manager.h domi_manager_notify_of_push; house/message/arrivals.c push_chain_to_arrivals; the push of a loan onto
 * home's returns (runtime/loop/steal.c); runtime/control/stop.c domi_system_set_stop_step; runtime/loop/park.c
 * look_and_fall_asleep, domi_thread_end_rest, domi_thread_wake_by_eventfd; io/completions/ring.c domi_io_arm_wake_poll, the reaping of
 * the wake poll. Holds: no lost wake-up (M3), at most one write per sleep (M12), what was written before a
 * put is seen by who takes it, no thread runs for ever with nothing to do, and the owner and a stand-in do
 * not use the manager at the same time.
 *
 * @run short safety
 * @run long progress
 *
 * @mutant short safety PUT_PLAIN : the link into the arrivals is a release store
 * @mutant short safety PARK_PLAIN : LOOKING is stored, not exchanged
 * @mutant short safety NO_SECOND_LOOK : the owner looks at nothing after it wrote LOOKING
 * @mutant short safety NO_LOOK_AT_RETURNS : the second look leaves out the returns
 * @mutant short safety NOTIFY_STORES : each sender that saw SLEEPING stores NOTIFIED and writes to the eventfd
 * @mutant short safety NO_REARM : a poll whose last shot has gone is not armed anew
 * @mutant short safety PAYLOAD_LATE : a message is filled after it was put
 * @mutant short progress ONE_SHOT : every shot is the last; nobody reads the eventfd
 * @mutant short safety HOLD_LOOKING : a stand-in holds an owner that still looks
 * @mutant short safety END_BY_STORE : an owner that wakes does not wait for the end of a hold
 * @mutant short safety NO_WANTED : a sender that finds the owner held leaves it at that
 * @mutant short safety RELEASE_BY_STORE : a stand-in writes DOZING also when the owner is wanted
 * @mutant short safety END_LOOK_BY_STORE : an owner that has looked writes DOZING though it was notified
 * @mutant short safety DOZE_UNSEEN : a sender takes an owner that dozes for one that is awake
 * @mutant short safety LEAVES_IT : a stand-in that leaves something to do does not wake the owner
 * @mutant long safety RETURN_PLAIN : the return of a loan is a release store
 * @mutant long safety WANTED_RELEASE : the word of what the system wants is written by a release store
 * @mutant long safety LOOK_FIRST : the owner looks only before it writes LOOKING
 * @mutant long safety NO_LOOK_AT_WANTED : the second look leaves out what the system wants
 * @mutant long safety NOTIFY_FIRST : a sender looks at the park word before the put */
#define PUTS 1 /* puts by each sender */
#define ENDS 1 /* how often the kernel ends the poll by itself */

#define SENDERS 3 /* one puts a message, one returns a loan, one stops the system */
#define OWNER   SENDERS

/* The words in memory, by number. */
#define ARRIVALS 0
#define RETURNS  1
#define WANTED   2
#define PARK     3
#define PAYLOAD  4 /* one for each sender */
#define WORDS    7

#define RUNNING  0
#define SLEEPING 1
#define NOTIFIED 2
#define LOOKING  3
#define HELD     4
#define WANTED_P 5 /* WANTED is the number of a word */
#define DOZING   6

byte memory[WORDS];
/* plain stores that have not reached the memory: word, value */
chan buffer[OWNER + 1] = [2] of { byte, byte };
byte taken[SENDERS];
byte writes, sleeps;
bit owner_uses, holder_uses; /* the manager */

/* The kernel's state: the poll is armed; the eventfd is not 0; a completion of the poll waits; that
 * completion was the poll's last. */
bit armed, readable, completed, last;
byte ends;

#define DRAINED (len(buffer[me]) == 0)

inline store(word, value) { buffer[me]!word, value }

#define LEFT (memory[ARRIVALS] > 0 || memory[RETURNS] > 0 || memory[WANTED] > taken[WANTED])

inline fire()
{
    completed = 1;
    if
#ifdef ONE_SHOT
    :: true -> armed = 0; last = 1
#else
    :: true
    :: ends < ENDS -> ends++; armed = 0; last = 1
#endif
    fi
}

#ifdef DOZE_UNSEEN
#define IS_FREE (memory[PARK] == SLEEPING || memory[PARK] == LOOKING)
#else
#define IS_FREE (memory[PARK] == SLEEPING || memory[PARK] == LOOKING || memory[PARK] == DOZING)
#endif
#ifdef NO_WANTED
#define IS_ASLEEP IS_FREE
#else
#define IS_ASLEEP (IS_FREE || memory[PARK] == HELD)
#endif

/* domi_manager_notify_of_push: domi_park_try_notify, and the write of domi_thread_wake_by_eventfd */
inline notify()
{
    won = 0;
    if
    :: IS_ASLEEP ->
#ifdef NOTIFY_STORES
        store(PARK, NOTIFIED);
        won = 1
#else
        atomic {
            DRAINED ->
            if
            :: IS_FREE ->
                memory[PARK] = NOTIFIED;
                won = 1
            :: memory[PARK] == HELD -> memory[PARK] = WANTED_P
            :: else
            fi
        }
#endif
    :: else
    fi;
    write_eventfd()
}

/* end the sleep, if this process has won that */
inline write_eventfd()
{
    if
    :: atomic {
            won && DRAINED -> won = 0;
            writes++;
            assert(writes <= sleeps); /* M12 */
            readable = 1;
            if
            :: armed -> fire()
            :: else
            fi
        }
    :: !won
    fi
}

/* The owner takes a list by an exchange, or loads what is wanted. */
inline take(word)
{
    atomic {
        DRAINED && memory[word] > 0 ->
        if
        :: word == WANTED -> found = memory[WANTED] - taken[WANTED]
        :: else -> found = memory[word]; memory[word] = 0
        fi;
        taken[word] = taken[word] + found;
        assert(memory[PAYLOAD + word] >= taken[word]);
        found = 0
    }
}

/* domi_park_try_hold_dozing_owner, domi_manager_take_arrivals_as_stand_in, domi_park_release_held_owner */
inline stand_in()
{
    left = 0;
    atomic {
        DRAINED ->
        if
        :: memory[PARK] == DOZING -> memory[PARK] = HELD; held = 1
#ifdef HOLD_LOOKING
        :: memory[PARK] == LOOKING -> memory[PARK] = HELD; held = 1
#endif
        :: else -> held = 0
        fi;
        if
        :: held -> assert(!owner_uses); holder_uses = 1
        :: else
        fi
    };
    if
    :: held ->
        if
        :: memory[ARRIVALS] > 0 -> take(ARRIVALS)
        :: memory[ARRIVALS] > 0 -> left = 1 /* they are not plain */
        :: memory[ARRIVALS] == 0
        fi;
        if
        :: memory[RETURNS] > 0 -> left = 1
        :: else
        fi;
        if
        :: memory[WANTED] > taken[WANTED] -> left = 1
        :: else
        fi;
#ifdef LEAVES_IT
        left = 0;
#endif
        holder_uses = 0;
        atomic {
            DRAINED ->
            if
#ifdef RELEASE_BY_STORE
            :: !left -> memory[PARK] = DOZING
            :: left -> memory[PARK] = NOTIFIED; won = 1
#else
            :: !left && memory[PARK] == HELD -> memory[PARK] = DOZING
            :: else -> memory[PARK] = NOTIFIED; won = 1
#endif
            fi
        };
        left = 0;
        write_eventfd()
    :: else -> left = 0; notify()
    fi;
    held = 0
}

#ifdef PUT_PLAIN
#define IS_PLAIN_PUT true
#else
#define IS_PLAIN_PUT false
#endif
#ifdef RETURN_PLAIN
#define IS_PLAIN_RETURN true
#else
#define IS_PLAIN_RETURN false
#endif
#ifdef WANTED_RELEASE
#define IS_PLAIN_WANTED true
#else
#define IS_PLAIN_WANTED false
#endif
#define IS_PLAIN                                                        \
    ((me == ARRIVALS && IS_PLAIN_PUT) || (me == RETURNS && IS_PLAIN_RETURN) || \
     (me == WANTED && IS_PLAIN_WANTED))

/* Sender number `me` puts into word number `me`. */
proctype sender(byte me)
{
    byte i, found;
    bit won, held, left;

    do
    :: i < PUTS ->
        i++;
#ifdef NOTIFY_FIRST
        notify();
#endif
#ifndef PAYLOAD_LATE
        store(PAYLOAD + me, i);
#endif
        if
        :: IS_PLAIN -> store(me, i) /* only mutants come here */
        :: !IS_PLAIN -> atomic { DRAINED -> memory[me]++ }
        fi;
#ifdef PAYLOAD_LATE
        store(PAYLOAD + me, i);
#endif
#ifndef NOTIFY_FIRST
        if
        :: notify()
        :: me == ARRIVALS -> stand_in() /* a thread of the loop */
        fi
#endif
    :: else -> break
    od
}

proctype owner(byte me)
{
    /* the owner believes that the poll is armed; the arming is not submitted yet */
    bit wake_armed, arming;
    byte found;

runs:
    owner_uses = 1;
    assert(!holder_uses);
    do
    :: atomic {
            completed -> completed = 0; /* phase 1 reaps */
            if
            :: last -> last = 0; wake_armed = 0
            :: else
            fi
        }
    :: memory[ARRIVALS] > 0 ->
progress_arrivals:
        take(ARRIVALS)
    :: memory[RETURNS] > 0 ->
progress_returns:
        take(RETURNS)
    :: memory[WANTED] > taken[WANTED] ->
progress_wanted:
        take(WANTED)
    :: !completed && !LEFT -> break
    od;
    /* look_and_fall_asleep: arm the poll if it is not armed */
    if
#ifdef NO_REARM
    :: !wake_armed && sleeps == 0 ->
#else
    :: !wake_armed ->
#endif
        wake_armed = 1;
        arming = 1
    :: else
    fi;
    sleeps++;
#ifdef LOOK_FIRST
    if
    :: LEFT -> goto runs
    :: else
    fi;
#endif
#ifdef PARK_PLAIN
    store(PARK, LOOKING);
#else
    atomic { DRAINED -> memory[PARK] = LOOKING };
#endif
#if !defined(NO_SECOND_LOOK) && !defined(LOOK_FIRST)
    if
    :: memory[ARRIVALS] > 0 -> goto stays
    :: else
    fi;
#ifndef NO_LOOK_AT_RETURNS
    if
    :: memory[RETURNS] > 0 -> goto stays
    :: else
    fi;
#endif
#ifndef NO_LOOK_AT_WANTED
    if
    :: memory[WANTED] > taken[WANTED] -> goto stays
    :: else
    fi;
#endif
#endif
    owner_uses = 0;
    atomic { /* domi_park_end_look_and_sleep */
        DRAINED ->
        if
#ifdef END_LOOK_BY_STORE
        :: true -> memory[PARK] = DOZING
#else
        :: memory[PARK] == LOOKING -> memory[PARK] = SLEEPING
        :: memory[PARK] == LOOKING -> memory[PARK] = DOZING
        :: else
#endif
        fi
    };
    atomic { /* the owner enters the ring: it submits, then waits for a completion */
        DRAINED ->
        if
        :: arming ->
            arming = 0;
            armed = 1;
            if
            :: readable -> fire()
            :: else
            fi
        :: else
        fi
    };
end_asleep:
    completed;
stays:
#ifdef END_BY_STORE
    atomic { DRAINED -> memory[PARK] = RUNNING };
#else
    atomic { DRAINED && memory[PARK] != HELD && memory[PARK] != WANTED_P -> memory[PARK] = RUNNING };
#endif
    goto runs
}

/* A buffered store reaches the memory at any later time. */
proctype drain(byte whose)
{
    byte word, value;

end:
    do
    :: atomic { buffer[whose]?word, value -> memory[word] = value; word = 0; value = 0 }
    od
}

init {
    byte i;

    atomic {
        run owner(OWNER);
        do
        :: i < SENDERS -> run sender(i); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i <= OWNER -> run drain(i); i++
        :: else -> break
        od
    };
    timeout -> /* no process can move any more, because the owner sleeps */
    assert(taken[ARRIVALS] == PUTS && taken[RETURNS] == PUTS && taken[WANTED] == PUTS)
}
