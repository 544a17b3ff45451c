/* Lanes, exposure and loans.
 *
 * The idea: one thread at a time touches a house's plain fields. A house goes to another thread in
 * three ways only (shared queue, loan, return). Mail for a house that is away waits in its inbox,
 * which keeps its order. The model has two threads, each of which is a home and a thief, and two
 * houses. House S sends to house R from the thread on which S runs, R sends to itself, and F is a
 * foreign thread.
 *
 * Models: house/message/mailbox.h domi_mailbox_put, domi_mailbox_append_node, domi_house_make_ready;
 * house/message/mailbox.c put_node_to_inbox, domi_mailbox_put_slow; house/dispatch/deliver.c domi_mailbox_sort_inbox;
 * house/message/arrivals.c domi_links_add_house_to_arrivals, domi_links_end_batch; house/dispatch/phases.c take_houses_off_arrivals; house/dispatch/dispatch.c
 * domi_house_run_lent (with its budget), domi_house_settle_after_run; house/dispatch/loan.c domi_loans_expose_houses,
 * domi_loans_take_houses_back, domi_loans_settle_returned_houses, make_exposed_house_home_again, domi_loan_take_exposed_house, domi_loan_run_house_and_return; runtime/loop/steal.c
 * domi_thread_expose_or_take_back_houses. Holds: one runner at a time (holder[], a ghost), M6 (each sender's numbers arrive in
 * order), every message is handled exactly once, mail that may not run does not make ready (M7), somebody
 * always handles something.
 *
 * @run short safety
 * @run short safety -DAPART
 * @run short safety -DBARRIER -DKICKS=1 -DNOTES=2
 * @run short progress -DKEEP=1 -DNOTES=1
 * @run long safety -DKICKS=3 -DNOTES=2
 * @run long safety -DAPART -DNOTES=3
 * @run long safety -DAPART -DBUDGET=2 -DKICKS=3
 * @run long safety -DBARRIER
 * @run long safety -DBARRIER -DAPART
 * @run long progress -DKEEP=1 -DAPART
 * @run long progress -DKEEP=1 -DBARRIER
 *
 * @mutant short safety SORT_EXPOSED : the inbox of a house that is away is sorted
 * @mutant short safety ARRIVAL_DROPPED : the inbox of a house that is away is not sorted, and `pending` is not set
 * @mutant short safety NO_SORT_AT_RETURN : pending is not looked at when a loan comes back
 * @mutant short safety PENDING_KEPT : pending is not cleared, so the inbox is sorted while the house is linked
 * @mutant short safety HOME_LANE_EXPOSED : home puts into the lists of a house that is away
 * @mutant short safety HOME_LANE_OVERTAKES : home does not look whether the inbox is empty
 * @mutant short safety LENT_SELF_PLAIN : a lent house puts to itself by the home lane
 * @mutant short safety NO_LINK : a sender that found the inbox empty does not link the house
 * @mutant short safety LINKS_FORGOTTEN : a run ends, and its links stay in the chain
 * @mutant short safety TAKE_BACK_UNLOCKED : home takes back without the lock
 * @mutant short safety SHARED_IS_NO_WORK : home sleeps while a house is in its shared queue
 * @mutant short safety BARRIER_IGNORED -DBARRIER -DKICKS=1 -DBUDGET=2 : a barrier holds back nothing
 * @mutant short safety BARRIER_SPINS -DBARRIER -DKICKS=1 : mail that may not run makes READY
 * @mutant short progress NO_FLOOR -DNOTES=1 : home exposes all its houses, and takes them back
 * @mutant long safety NO_SORT_AT_TAKE_BACK : pending is not looked at when home takes a house back
 * @mutant long safety FOREIGN_PLAIN : the lane is chosen without asking whose house it is
 * @mutant long safety LINK_ALWAYS : a sender that found the inbox filled links the house, too
 * @mutant long safety LINKS_TWICE : a house that was linked at once is put into the chain as well
 * @mutant long safety LINK_FIRST : a sender links the house before the put
 * @mutant long safety RETURN_KEEPS_EXPOSED : a loan comes back, and its house stays exposed
 * @mutant long safety THIEF_SETTLES : the thief makes the house READY or WAITING, and so does home
 * @mutant long safety STEAL_UNCHECKED : the thief looked before it locked, and not again
 * @mutant long safety NO_REQUEUE : a house whose budget is spent waits, with mail left
 * @mutant long safety REPLY_HELD -DBARRIER -DKICKS=1 : in a barrier a reply does not make ready */
#ifndef KICKS
#define KICKS 2 /* how many messages S gets; for each it sends one to R */
#endif
#ifndef NOTES
#define NOTES 2 /* how many messages F sends to R; for each R sends one to itself */
#endif
#ifndef BUDGET
#define BUDGET 1 /* how many messages one run handles */
#endif
#ifndef KEEP
/* home keeps this many ready houses and exposes the others; the code keeps more than 0 */
#define KEEP 0
#endif
#ifdef APART
#define R_HOME 1
#else
#define R_HOME 0
#endif
#ifdef BARRIER
#define REPLIES 1
#else
#define REPLIES 0
#endif

#define THREADS 2
#define HOUSES  2
#define S       0 /* a house, and also a sender */
#define R       1
#define F       2 /* a sender that is no house */
#define A       3
#define SENDERS 4
#define NOBODY  THREADS
#define TOTAL   (2 * KICKS + 2 * NOTES + REPLIES)
#define HOME(h) ((h) * R_HOME)

mtype = { WAITING, READY, RUNNING };
mtype state[HOUSES];
/* the sender, and the number of its message */
chan mail[HOUSES]  = [KICKS + 2 * NOTES] of { byte, byte };
chan inbox[HOUSES] = [KICKS + 2 * NOTES + 1] of { byte, byte };
bit reply;          /* R's mailbox of replies */
bit barrier, asked; /* R's barrier, and R's ask that is under way */
bit exposed[HOUSES], pending[HOUSES];
bit linked[HOUSES];                   /* ghost: the house is among the arrivals */
byte holder[HOUSES];                  /* ghost: the thread that may touch the house's plain fields */
byte expected[SENDERS];               /* the next number that R expects from each sender */
byte own;                             /* messages that R has sent to itself */
byte handled;

chan private[THREADS]  = [HOUSES] of { byte };
chan shared[THREADS]   = [HOUSES] of { byte };
chan arrivals[THREADS] = [HOUSES] of { byte };
chan returns[THREADS]  = [HOUSES] of { byte };
bit locked[THREADS];
byte wanted[THREADS];

#define NOTICES(h) (len(mail[h]) > 0 && !(h == R && barrier))
#define REPLY(h)   (h == R && reply)
#ifdef BARRIER_SPINS
#define RUNNABLE(h) (len(mail[h]) > 0 || REPLY(h))
#else
#define RUNNABLE(h) (NOTICES(h) || REPLY(h))
#endif
#ifdef SHARED_IS_NO_WORK
#define SHARED(t) false
#else
#define SHARED(t) (len(shared[t]) > 0)
#endif
#define WORK(t) \
    (len(arrivals[t]) > 0 || len(returns[t]) > 0 || len(private[t]) > 0 || SHARED(t))

inline touch(h) { assert(holder[h] == me) }

/* domi_house_make_ready: move from WAITING, or at the settle from RUNNING, to READY, and go into
 * home's queue. */
inline make_ready(h)
{
    assert(state[h] != READY && !exposed[h]);
    state[h] = READY;
    private[HOME(h)]!h
}

/* This models domi_mailbox_append_node. */
inline add(h, sender, number)
{
    touch(h);
    if
    :: sender == A -> reply = 1
    :: else -> mail[h]!sender, number
    fi;
    if
#ifdef REPLY_HELD
    :: state[h] == WAITING && NOTICES(h) -> make_ready(h)
#else
    :: state[h] == WAITING && RUNNABLE(h) -> make_ready(h)
#endif
    :: else
    fi
}

/* This models domi_mailbox_sort_inbox. */
inline sort(h)
{
    do
    :: inbox[h]?sender, number -> add(h, sender, number)
    :: empty(inbox[h]) -> break
    od;
    sender = 0;
    number = 0
}

inline link(to)
{
    atomic {
        assert(!linked[to]);
        linked[to] = 1;
        arrivals[HOME(to)]!to
    }
}

/* put_node_to_inbox, and domi_links_add_house_to_arrivals: a sender that `gathers` may link later, at the end of its
 * batch. */
inline put(to, from, which, gathers)
{
#ifdef LINK_FIRST
    if
    :: atomic { empty(inbox[to]) && !linked[to] -> linked[to] = 1; arrivals[HOME(to)]!to }
    :: atomic { nempty(inbox[to]) || linked[to] -> skip }
    fi;
    inbox[to]!from, which
#else
    atomic {
        first = (len(inbox[to]) == 0);
        inbox[to]!from, which
    }
#ifdef LINK_ALWAYS
    first = 1;
#endif
    if
#ifndef NO_LINK
    :: atomic {
            first -> first = 0;
            assert(!linked[to]);
            linked[to] = 1;
            arrivals[HOME(to)]!to;
#ifdef LINKS_TWICE
            owes = gathers
#endif
        }
    :: atomic { first && gathers -> first = 0; owes = 1 }
#endif
    :: else
    fi
#endif
}

#ifdef HOME_LANE_EXPOSED
#define IS_AWAY(to) false
#else
#define IS_AWAY(to) exposed[to]
#endif
#ifdef HOME_LANE_OVERTAKES
#define IS_BEHIND(to) false
#else
#define IS_BEHIND(to) (len(inbox[to]) > 0)
#endif
#if defined(FOREIGN_PLAIN)
#define MAY_PLAINLY(to, from) (!IS_AWAY(to) && !IS_BEHIND(to))
#elif defined(LENT_SELF_PLAIN)
#define MAY_PLAINLY(to, from) \
    ((to == from && HOME(to) != me) || (HOME(to) == me && !IS_AWAY(to) && !IS_BEHIND(to)))
#else
#define MAY_PLAINLY(to, from) (HOME(to) == me && !IS_AWAY(to) && !IS_BEHIND(to))
#endif

/* domi_mailbox_put, from the thread `me`. The look and the plain put are one step. Home alone
 * writes its bits, and other threads only fill the inbox, so no other step between the two would
 * change the result. */
inline send(to, from, which)
{
    if
    :: atomic { MAY_PLAINLY(to, from) -> add(to, from, which) }
    :: else -> put(to, from, which, true)
    fi
}

/* domi_house_settle_after_run: home has the house, which has run. */
inline settle(h)
{
    touch(h);
    if
#ifndef NO_REQUEUE
    :: RUNNABLE(h) -> make_ready(h)
#endif
    :: else -> state[h] = WAITING
    fi
}

/* This models take_houses_off_arrivals. */
inline take_houses_off_arrivals()
{
    do
    :: atomic {
            arrivals[me]?h -> linked[h] = 0;
            if
#ifdef SORT_EXPOSED
            :: true -> sort(h)
#elif defined(ARRIVAL_DROPPED)
            :: exposed[h]
            :: else -> sort(h)
#else
            :: exposed[h] -> pending[h] = 1
            :: else -> sort(h)
#endif
            fi
        }
    :: empty(arrivals[me]) -> break
    od
}

inline sort_pending(h)
{
    if
    :: pending[h] ->
#ifndef PENDING_KEPT
        pending[h] = 0;
#endif
        sort(h)
    :: else
    fi
}

inline take_returned_loans()
{
    do
    :: atomic {
            returns[me]?h -> assert(holder[h] == NOBODY && HOME(h) == me);
            holder[h] = me;
#ifndef RETURN_KEEPS_EXPOSED
            exposed[h] = 0;
#endif
#ifndef NO_SORT_AT_RETURN
            sort_pending(h);
#endif
            settle(h)
        }
    :: empty(returns[me]) -> break
    od
}

inline lock(t) { atomic { !locked[t] -> locked[t] = 1 } }
inline unlock(t) { locked[t] = 0 }

/* domi_thread_expose_or_take_back_houses, at a look: expose a house beyond the floor. */
inline expose()
{
    lock(me);
    atomic {
        private[me]?h;
        touch(h);
        exposed[h] = 1;
        holder[h] = NOBODY;
        shared[me]!h
    };
    unlock(me)
}

/* domi_thread_expose_or_take_back_houses, at a look: take all exposed houses back. */
inline take_back()
{
#ifndef TAKE_BACK_UNLOCKED
    lock(me);
#endif
    do
    :: shared[me]?<h> ->
        atomic {
            shared[me]?_;
            exposed[h] = 0;
            holder[h] = me;
#ifndef NO_SORT_AT_TAKE_BACK
            sort_pending(h);
#endif
            private[me]!h
        }
    :: empty(shared[me]) -> break
    od;
#ifndef TAKE_BACK_UNLOCKED
    unlock(me)
#endif
}

#define TOO_MANY(floor) (wanted[me] > 0 && len(private[me]) > floor && len(shared[me]) == 0)
#define TOO_FEW         (len(shared[me]) > 0 && (wanted[me] == 0 || len(private[me]) == 0))

inline offer()
{
#ifdef NO_FLOOR
    if
    :: TOO_FEW -> take_back()
    :: else
    fi;
    if
    :: TOO_MANY(0) -> expose()
    :: else
    fi
#else
    if
    :: TOO_MANY(KEEP) -> expose()
    :: TOO_FEW -> take_back()
    :: else
    fi
#endif
}

/* The house handles one message. A message to S makes S send to R. A message from F makes R send to
 * itself; its first one also makes R raise its barrier and ask. */
inline handle(h)
{
    if
    :: atomic {
            REPLY(h) -> reply = 0;
            assert(barrier);
            barrier = 0;
            handled++
        }
    :: atomic {
            !REPLY(h) -> mail[h]?sender, number;
            handled++;
#ifndef BARRIER_IGNORED
            assert(!(h == R && barrier));
#else
            assert(!barrier || h == S);
#endif
            if
            :: h == R -> assert(number == expected[sender]); expected[sender]++
            :: else
            fi
        };
        if
        :: h == S -> send(R, S, number)
        :: h == R && sender == F ->
            own++;
            send(R, R, own - 1);
#ifdef BARRIER
            if
            :: number == 0 -> atomic { barrier = 1; asked = 1 }
            :: else
            fi
#endif
        :: else
        fi;
        sender = 0;
        number = 0
    fi
}

#ifdef BARRIER_IGNORED
#define MAY_HANDLE(h) (len(mail[h]) > 0 || REPLY(h))
#else
#define MAY_HANDLE(h) (NOTICES(h) || REPLY(h))
#endif

/* domi_links_end_batch: link the house that the chain holds, which is always R. The code ends a batch
 * before its run ends; here the end of the run is the latest moment. */
inline push_links()
{
#ifndef LINKS_FORGOTTEN
    if
    :: owes -> atomic { owes = 0; link(R) }
    :: else
    fi
#else
    skip
#endif
}

/* domi_house_run_lent, on home or on a thief; then home settles the house, or the thief gives it
 * back. */
inline run_house(h)
{
    atomic {
        touch(h);
        assert(state[h] == READY);
        assert(NOTICES(h) || REPLY(h)); /* M7 */
        state[h] = RUNNING;
        left = BUDGET
    };
    do
    :: left > 0 && MAY_HANDLE(h) ->
progress:
        left--;
        handle(h)
    :: else -> break
    od;
    left = 0;
    push_links();
    if
    :: HOME(h) == me -> atomic { settle(h) }
    :: else ->
        atomic {
            touch(h);
            assert(state[h] == RUNNING);
#ifdef THIEF_SETTLES
            if
            :: RUNNABLE(h) -> state[h] = READY
            :: else -> state[h] = WAITING
            fi;
#endif
            holder[h] = NOBODY;
            returns[HOME(h)]!h
        }
    fi;
    h = 0
}

proctype thread(byte me)
{
    byte h, sender, number, left;
    bit first, wants, owes;

end:
    do
    :: WORK(me) ->
        atomic {
            if
            :: wants -> wants = 0; wanted[1 - me]--
            :: else
            fi
        };
        take_houses_off_arrivals();
        take_returned_loans();
        offer();
        h = 0;
        if
        :: private[me]?h -> goto runs
        :: empty(private[me])
        fi
    :: atomic { !WORK(me) && !wants && len(private[1 - me]) > KEEP -> wants = 1; wanted[1 - me]++ }
    :: atomic { wants -> wants = 0; wanted[1 - me]-- } /* the thief gives up and parks */
    :: wants && nempty(shared[1 - me]) && !WORK(me) ->
        if
        :: atomic { !locked[1 - me] -> locked[1 - me] = 1 }
#ifdef STEAL_UNCHECKED
            if
            :: true ->
                assert(len(shared[1 - me]) > 0);
#else
            if
            :: shared[1 - me]?<h> ->
#endif
                atomic {
                    shared[1 - me]?h;
                    assert(holder[h] == NOBODY);
                    holder[h] = me
                };
                unlock(1 - me);
                goto runs
#ifndef STEAL_UNCHECKED
            :: empty(shared[1 - me]) -> unlock(1 - me)
#endif
            fi
        :: else /* the lock is taken, so the thief tries later */
        fi
    od;
runs:
    run_house(h);
    goto end
}

proctype foreign()
{
    byte i;
    bit first, owes;

    do
    :: i < NOTES -> put(R, F, i, false); i++
    :: else -> break
    od
}

#ifdef BARRIER
proctype answerer()
{
    bit first, owes;

    asked -> asked = 0;
    put(R, A, 0, false)
}
#endif

init {
    byte i;

    atomic {
        state[S] = READY;
        state[R] = WAITING;
        holder[R] = R_HOME;
        do
        :: i < KICKS -> mail[S]!F, i; i++
        :: else -> break
        od;
        i = 0;
        private[0]!S;
        run thread(0);
        run thread(1);
        run foreign();
#ifdef BARRIER
        run answerer()
#endif
    };
    timeout -> /* no process can move any more */
    assert(handled == TOTAL);
    assert(state[S] == WAITING && state[R] == WAITING);
    assert(!exposed[S] && !exposed[R] && !pending[S] && !pending[R] && !barrier)
}
