/* Order, over the home lane, the inbox lane and the belts.
 *
 * The idea: a message that takes a belt and one that takes the inbox have no common queue, so two rules
 * keep the messages of one sender in order. A sender uses a belt only if the receiver's inbox is empty;
 * and home, before it delivers what it took out of an inbox, takes what the belts hold. Between the two
 * the inbox is marked BUSY, which is not empty, so nobody uses a belt until everything of the inbox has
 * been delivered. A sender that is lent uses inboxes alone: its thief has belts and a home lane of its
 * own, on which its messages would overtake those that wait on the belt of its home. A message that a
 * belt brings for an exposed house is held by home, and is delivered before the inbox when the house is
 * back. A stand-in (base/park.h) takes nothing off the belts: if one is linked when it has taken an inbox
 * and marked it, it puts everything back below what came meanwhile, and the house is linked again. belt.pml
 * shows that nothing on a belt is forgotten. (The mark may fall before the delivery, but not
 * before the belts were taken: home looks at no belt while it delivers. The code does not rely on that.)
 *
 * Home of the house S is thread 0, and that of R is thread 1; thread 2 may borrow either. F is a foreign
 * sender, and O is a house of thread 1 that sends to R.
 *
 * Models: house/message/mailbox.c domi_mailbox_put_slow, put_node_to_inbox; house/message/mailbox.h
 * domi_mailbox_put; house/message/belt.c domi_belt_put_notice; house/dispatch/deliver.c domi_mailbox_sort_inbox,
 * domi_inboxes_sort_all_of_list, remove_busy_mark_of_inbox; house/dispatch/carry.c domi_belts_take_some_messages, carry_message_to_house, domi_belts_deliver_held_messages;
 * house/dispatch/phases.c take_houses_off_arrivals; house/dispatch/loan.c make_exposed_house_home_again, domi_loan_run_house_and_return.
 * Holds: M6 (each sender's numbers arrive in order), every message arrives once, no house is linked twice.
 *
 * @run short safety
 * @run long safety -DMESSAGES=4
 * @run long safety -DSLOTS=1 -DOTHERS=2
 *
 * @mutant short safety STAND_IN_DELIVERS : a stand-in delivers an inbox whatever the belts hold
 * @mutant short safety STAND_IN_LOOKS_FIRST : a stand-in looks at the belts before it takes the inbox
 * @mutant short safety KEPT_ON_TOP : what a stand-in keeps is put back above what came meanwhile
 * @mutant short safety MARK_CLEARED_EARLY : the inbox is empty as soon as it was taken
 * @mutant short safety DRAINS_ONE : only the belt of the thread that put last is taken before a delivery
 * @mutant short safety DRAINS_NONE : an inbox is delivered whatever the belts hold
 * @mutant short safety DRAINS_FIRST : the belts are taken before the inbox is
 * @mutant short safety LENT_USES_BELT : a lent house sends by the belt of its thief
 * @mutant short safety LENT_USES_HOME_LANE : a lent house uses the home lane of its thief
 * @mutant short safety BELT_BEHIND_INBOX : a sender does not look whether the inbox is empty
 * @mutant short safety HELD_TO_INBOX : a message for an exposed house goes from the belt to its inbox
 * @mutant short safety HELD_LATE : what is held for a house is delivered behind its inbox
 * @mutant short safety EXPOSED_APPENDED : a message from a belt goes to the lists of an exposed house
 * @mutant short safety RELEASED_UNLINKED : the mark is released over new mail, and the house is not linked
 * @mutant short safety FULL_IS_DROPPED : a message for which the belt has no slot goes nowhere */
#ifndef MESSAGES
#define MESSAGES 3 /* messages of S */
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef OTHERS
#define OTHERS 1 /* messages of F and of O, each */
#endif
#define THREADS 3
#define S       0
#define F       1
#define O       2
#define SENDERS 3

/* sender, number */
chan belt[THREADS] = [SLOTS] of { byte, byte };                 /* from each thread to thread 1 */
chan inbox         = [MESSAGES + 2 * OTHERS] of { byte, byte }; /* of R */
chan sorting       = [MESSAGES + 2 * OTHERS] of { byte, byte }; /* what home took out of it */
chan held          = [MESSAGES + 2 * OTHERS] of { byte, byte };
bit busy;    /* the mark in R's inbox */
bit linked;  /* R is among the arrivals of thread 1 */
bit exposed, pending;
byte newest; /* the thread that put last into the inbox, for a mutant */
byte at;     /* the thread that runs S, or may do so */
byte sent[SENDERS];
byte expected[SENDERS]; /* the next number that R gets from each sender */
byte arrived;
bit over; /* every sender has ended */

#define IS_EMPTY (len(inbox) == 0 && !busy)

inline deliver(sender, number)
{
    assert(!exposed);
    assert(number == expected[sender]);
    expected[sender]++;
    arrived++
}

/* put_node_to_inbox: one compare-exchange */
inline put_node_to_inbox(from, me)
{
    atomic {
        if
        :: IS_EMPTY -> assert(!linked); linked = 1
        :: else
        fi;
        inbox!from, sent[from];
        newest = me;
        sent[from]++
    }
}

#ifdef LENT_USES_BELT
#define MAY_BELT(from, me) (me != 1)
#else
#define MAY_BELT(from, me) (me == 0)
#endif
#ifdef BELT_BEHIND_INBOX
#define SEES_EMPTY true
#else
#define SEES_EMPTY IS_EMPTY
#endif

/* S sends one message from the thread `me`, which is not thread 1. The look at the inbox, the look for a
 * slot and the fill are apart. */
inline send_from_afar(me)
{
    if
    :: MAY_BELT(S, me) && SEES_EMPTY ->
        if
        :: atomic { len(belt[me]) < SLOTS -> belt[me]!S, sent[S]; sent[S]++ }
#ifdef FULL_IS_DROPPED
        :: atomic { len(belt[me]) == SLOTS -> sent[S]++ }
#else
        :: put_node_to_inbox(S, me) /* there is no slot, or the receiver dozes */
#endif
        fi
    :: !(MAY_BELT(S, me) && SEES_EMPTY) -> put_node_to_inbox(S, me)
    fi
}

/* S is with a thread that is not thread 1: its home, or a thief. A loan comes and goes by operations that
 * order everything before them, so moving is one step. */
proctype afar()
{
    do
    :: sent[S] < MESSAGES && at == 0 -> send_from_afar(0)
    :: sent[S] < MESSAGES && at == 2 -> send_from_afar(2)
    :: atomic { sent[S] < MESSAGES && at == 0 -> if :: at = 1 :: at = 2 fi }
    :: atomic { sent[S] < MESSAGES && at == 2 -> at = 0 }
    :: sent[S] == MESSAGES -> break
    od
}

proctype foreign()
{
    do
    :: sent[F] < OTHERS -> put_node_to_inbox(F, THREADS)
    :: else -> break
    od
}

/* carry: one message that a belt has brought */
inline carry(from)
{
    atomic {
        belt[from]?sender, number ->
#ifdef HELD_TO_INBOX
        if
        :: exposed ->
            if
            :: IS_EMPTY -> assert(!linked); linked = 1
            :: else
            fi;
            inbox!sender, number
#elif defined(EXPOSED_APPENDED)
        if
        :: false
#else
        if
        :: exposed -> held!sender, number
#endif
        :: else -> deliver(sender, number)
        fi;
        sender = 0;
        number = 0
    }
}

inline take_belts()
{
    do
    :: carry(0)
    :: carry(2)
    :: len(belt[0]) == 0 && len(belt[2]) == 0 -> break
    od
}

/* sort_inboxes_after_draining_belts of a stand-in: put_kept_notices_back_into_inbox if a belt holds anything */
inline sort_held()
{
#ifdef STAND_IN_LOOKS_FIRST
    left = len(belt[0]) > 0 || len(belt[2]) > 0;
#endif
    atomic {
        do
        :: inbox?sender, number -> sorting!sender, number
        :: len(inbox) == 0 -> break
        od;
        sender = 0;
        number = 0;
        busy = 1
    };
#ifdef STAND_IN_DELIVERS
    left = 0;
#elif !defined(STAND_IN_LOOKS_FIRST)
    left = len(belt[0]) > 0 || len(belt[2]) > 0;
#endif
    if
    :: left ->
        atomic {
            left = 0;
            do
#ifdef KEPT_ON_TOP
            :: sorting?sender, number -> inbox!sender, number
            :: len(sorting) == 0 -> break
            od;
#else
            :: inbox?sender, number -> sorting!sender, number
            :: len(inbox) == 0 -> break
            od;
            do
            :: sorting?sender, number -> inbox!sender, number
            :: len(sorting) == 0 -> break
            od;
#endif
            sender = 0;
            number = 0
        }
    :: else ->
        do
        :: atomic { sorting?sender, number -> deliver(sender, number); sender = 0; number = 0 }
        :: len(sorting) == 0 -> break
        od
    fi;
    release()
}

/* domi_mailbox_sort_inbox */
inline sort()
{
#ifdef DRAINS_FIRST
    take_belts();
#endif
    atomic {
        do
        :: inbox?sender, number -> sorting!sender, number
        :: len(inbox) == 0 -> break
        od;
        sender = 0;
        number = 0;
#ifndef MARK_CLEARED_EARLY
        busy = 1
#endif
    };
#if defined(DRAINS_ONE)
    do
    :: newest == 0 && len(belt[0]) > 0 -> carry(0)
    :: newest == 2 && len(belt[2]) > 0 -> carry(2)
    :: else -> break
    od;
#elif !defined(DRAINS_NONE) && !defined(DRAINS_FIRST)
    take_belts();
#endif
    do
    :: atomic { sorting?sender, number -> deliver(sender, number); sender = 0; number = 0 }
    :: len(sorting) == 0 -> break
    od;
#ifndef MARK_CLEARED_EARLY
    release()
#endif
}

/* remove_busy_mark_of_inbox: a compare-exchange; if it finds new mail, home links the house itself */
inline release()
{
    atomic {
        busy = 0;
        if
#ifndef RELEASED_UNLINKED
        :: len(inbox) > 0 -> assert(!linked); linked = 1
#endif
        :: else
        fi
    }
}

inline deliver_held()
{
    do
    :: atomic { held?sender, number -> deliver(sender, number); sender = 0; number = 0 }
    :: len(held) == 0 -> break
    od
}

/* make_exposed_house_home_again */
inline take_back()
{
    exposed = 0;
#ifndef HELD_LATE
    deliver_held();
#endif
    if
    :: pending -> pending = 0; sort()
    :: else
    fi;
#ifdef HELD_LATE
    deliver_held()
#endif
}

#define HAS_ARRIVED (linked || len(belt[0]) > 0 || len(belt[2]) > 0)

/* Thread 1, the home of R. */
proctype home()
{
    byte sender, number;
    bit left;

end:
    do
    :: len(belt[0]) > 0 || len(belt[2]) > 0 -> /* a look takes some of what the belts hold */
        if
        :: carry(0)
        :: carry(2)
        fi
    :: linked ->
        linked = 0;
        if
        :: exposed -> pending = 1
        :: !exposed -> sort()
        :: !exposed -> sort_held()
        fi
    :: atomic { !exposed && !over -> exposed = 1 }
    :: exposed -> take_back()
    :: sent[O] < OTHERS -> /* O sends, by the home lane or by the inbox */
        if
        :: atomic { IS_EMPTY && !exposed -> deliver(O, sent[O]); sent[O]++ }
        :: !(IS_EMPTY && !exposed) -> put_node_to_inbox(O, 1)
        fi
    /* this thread has borrowed S, which sends to R */
    :: at == 1 && sent[S] < MESSAGES ->
        if
#ifdef LENT_USES_HOME_LANE
        :: atomic { IS_EMPTY && !exposed -> deliver(S, sent[S]); sent[S]++ }
        :: !(IS_EMPTY && !exposed) -> put_node_to_inbox(S, 1)
#else
        :: true -> put_node_to_inbox(S, 1)
#endif
        fi
    :: atomic { at == 1 -> at = 0 }
    od
}

init {
    atomic {
        run home();
        run afar();
        run foreign();
        sent[S] == MESSAGES && sent[F] == OTHERS && sent[O] == OTHERS -> over = 1
    };
    timeout -> /* no process can move any more */
    assert(arrived == MESSAGES + 2 * OTHERS);
    assert(!busy && !linked && !exposed && !pending && len(held) == 0)
}
