/* A belt, its switch, and the sleep of the thread to which it leads, on a machine whose stores are
 * buffered.
 *
 * The idea: a thread that fills a slot looks at the belt's switch after that, and a thread that turns
 * the switch off looks at the next slot after that. Each does so behind a read-modify-write, so at
 * least one of them sees the other. Only a belt that is off is not polled, and only the sender that
 * turns it on links it and looks at the park word. So a thread that sleeps has turned all its belts
 * off before, and its second look needs no belt: it looks at the list of those that were linked. The
 * switch has a third value while the receiver takes its second look at the slot. So a sender that
 * finds it off knows that nobody looks at the slots, and may give them back. Plain stores stay in
 * their thread's buffer as in park.pml.
 *
 * Models: house/message/belt.c fill_and_publish_slot, turn_belt_on, domi_belts_free_unused_rings;
 * house/dispatch/carry.c turn_off_empty_belt, domi_belts_turn_all_off; house/message/manager.h domi_manager_notify_of_push; base/park.h, the sleep without standing in,
 * because a stand-in leaves the belts alone; runtime/loop/park.c look_and_fall_asleep. Holds: no lost wake-up (M3), every message is taken, none before it was filled, no belt
 * is linked twice, at most one write per sleep (M12), and nobody looks at slots that were given back.
 *
 * @run short safety
 * @run long safety -DMESSAGES=3
 * @run long progress
 *
 * @mutant short safety SLOT_RELEASED : the sequence of a slot is written by a release store
 * @mutant short safety SWITCH_READ_EARLY : the load of the switch passes the store of the sequence
 * @mutant short safety OFF_STORED : the receiver turns a belt off by a plain store
 * @mutant short safety NO_SECOND_LOOK : the receiver turns a belt off and does not look at its slot again
 * @mutant short safety SLEEPS_ON : the receiver falls asleep while a belt is on
 * @mutant short safety LINKED_UNSEEN : the second look of a park leaves out the belts that were linked
 * @mutant short safety NO_NOTIFY : a sender that has linked a belt does not look at the park word
 * @mutant short safety LINKS_ALWAYS : a sender links the belt whatever it found in the switch
 * @mutant short safety ON_AGAIN_STORED : the receiver found a slot in its second look, and stores ON
 * @mutant short safety GIVEN_BACK_EARLY : the sender gives back the slots while the receiver looks again
 * @mutant long safety OFF_BY_STORE -DMESSAGES=3 : behind its second look the receiver stores OFF
 * @mutant long safety FILLED_LATE : the slot is filled after its sequence was written */
#ifndef MESSAGES
#define MESSAGES 2 /* messages of each sender */
#endif
#define SENDERS 2 /* each has a belt of its own to the receiver */
#define OWNER   SENDERS

/* The words in memory, by number; the first three have one for each belt. */
#define SLOT    0 /* the sequence in the slot that was filled last */
#define SWITCH  2
#define PAYLOAD 4
#define PARK    6
#define WORDS   7

#define OFF     0
#define ON      1
#define LOOKING 2

#define RUNNING  0
#define SLEEPING 1
#define NOTIFIED 2

byte memory[WORDS];
/* plain stores that have not reached the memory: word, value */
chan buffer[OWNER + 1] = [2] of { byte, byte };
bit linked[SENDERS]; /* the belt is in the list of linked ones, which home takes by an exchange */
byte taken[SENDERS];
bit given_back[SENDERS]; /* ghost: the belt has no slots at the moment */
byte writes, sleeps;
bit woken; /* the eventfd */

#define DRAINED          (len(buffer[me]) == 0)
#define store(word, value) buffer[me]!word, value
#define ANY_LINKED       (linked[0] || linked[1])

inline notify()
{
    if
    :: atomic {
            DRAINED && memory[PARK] == SLEEPING -> memory[PARK] = NOTIFIED;
            writes++;
            assert(writes <= sleeps); /* M12 */
            woken = 1
        }
    :: DRAINED && memory[PARK] != SLEEPING
    fi
}

/* The sender's part of a put: fill, publish, and look at the switch. */
proctype sender(byte me)
{
    byte i, found;

    do
    :: i < MESSAGES ->
        if
#ifdef GIVEN_BACK_EARLY
        :: atomic { memory[SWITCH + me] != ON && taken[me] == i -> given_back[me] = 1 }
#else
        /* domi_belts_free_unused_rings; only this sender and the receiver write the switch */
        :: atomic { memory[SWITCH + me] == OFF && taken[me] == i -> given_back[me] = 1 }
#endif
        :: true
        fi;
        atomic { given_back[me] = 0; i++ };
#ifdef SWITCH_READ_EARLY
        found = memory[SWITCH + me];
#endif
#ifndef FILLED_LATE
        store(PAYLOAD + me, i);
#endif
#ifdef SLOT_RELEASED
        store(SLOT + me, i);
#else
        atomic { DRAINED -> memory[SLOT + me] = i };
#endif
#ifdef FILLED_LATE
        store(PAYLOAD + me, i);
#endif
#ifndef SWITCH_READ_EARLY
        found = memory[SWITCH + me];
#endif
        if
#ifndef LINKS_ALWAYS
        :: found == ON
        :: found != ON ->
#else
        :: true ->
#endif
            atomic { DRAINED -> found = memory[SWITCH + me]; memory[SWITCH + me] = ON };
            if
#ifndef LINKS_ALWAYS
            :: found == ON
            :: found != ON ->
#else
            :: true ->
#endif
                atomic { DRAINED -> assert(!linked[me]); linked[me] = 1 };
#ifndef NO_NOTIFY
                notify()
#endif
            fi
        fi;
        found = 0
    :: else -> break
    od
}

/* The receiver takes what is in the next slots of a belt that is on. */
inline take(belt)
{
    assert(!given_back[belt]);
    atomic {
        taken[belt] = memory[SLOT + belt];
        assert(memory[PAYLOAD + belt] >= taken[belt])
    }
}

/* turn_off: the belt leaves the receiver's list unless something has come meanwhile. */
inline turn_off(belt)
{
#ifdef OFF_STORED
    store(SWITCH + belt, LOOKING);
#else
    atomic { DRAINED -> memory[SWITCH + belt] = LOOKING };
#endif
#ifndef NO_SECOND_LOOK
    assert(!given_back[belt]);
    if
    :: memory[SLOT + belt] != taken[belt] ->
#ifdef ON_AGAIN_STORED
        atomic { DRAINED -> memory[SWITCH + belt] = ON }
#else
        atomic {
            DRAINED ->
            if
            :: memory[SWITCH + belt] == LOOKING -> memory[SWITCH + belt] = ON
            :: else -> on[belt] = 0 /* the sender has linked it, or is about to */
            fi
        }
#endif
    :: memory[SLOT + belt] == taken[belt] ->
#else
    if
    :: true ->
#endif
        atomic {
            DRAINED ->
            on[belt] = 0;
            if
#ifdef OFF_BY_STORE
            :: true -> memory[SWITCH + belt] = OFF
#else
            :: memory[SWITCH + belt] == LOOKING -> memory[SWITCH + belt] = OFF
            :: else
#endif
            fi
        }
    fi
}

#define HAS_MAIL(belt) (on[belt] && memory[SLOT + belt] != taken[belt])

proctype owner(byte me)
{
    bit on[SENDERS];

runs:
    do
    :: atomic { linked[0] && DRAINED -> linked[0] = 0; assert(!on[0]); on[0] = 1 }
    :: atomic { linked[1] && DRAINED -> linked[1] = 0; assert(!on[1]); on[1] = 1 }
    :: HAS_MAIL(0) ->
progress_0:
        take(0)
    :: HAS_MAIL(1) ->
progress_1:
        take(1)
    :: !ANY_LINKED && !HAS_MAIL(0) && !HAS_MAIL(1) -> break
    od;
    /* some looks have found nothing, or the thread is about to sleep */
    if
    :: on[0] -> turn_off(0)
    :: !on[0]
    fi;
    if
    :: on[1] -> turn_off(1)
    :: !on[1]
    fi;
#ifndef SLEEPS_ON
    if
    :: on[0] || on[1] -> goto runs
    :: else
    fi;
#endif
    atomic { DRAINED -> memory[PARK] = SLEEPING; sleeps++ };
#ifndef LINKED_UNSEEN
    if
    :: ANY_LINKED -> goto stays
    :: else
    fi;
#endif
end_asleep:
    atomic { woken && DRAINED -> woken = 0 };
stays:
    atomic { DRAINED -> memory[PARK] = RUNNING };
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
    atomic {
        run owner(OWNER);
        run sender(0);
        run sender(1);
        run drain(0);
        run drain(1);
        run drain(OWNER)
    };
    timeout -> /* no process can move any more, because the receiver sleeps */
    assert(taken[0] == MESSAGES && taken[1] == MESSAGES)
}
