/* How an actor of a pool is scheduled: idle, scheduled, processing.
 *
 * The idea: the inbox word of a house says who may touch the house. While it is 0 the house is idle, and
 * nobody does. The thread that changes it from 0 puts the house into the one queue that it is in (a put), or has it (a
 * claim). The runner that takes the mail leaves BUSY; a put on top of BUSY schedules nothing, so the runner's
 * compare-exchange of BUSY to 0 fails, and it goes on. The model has two runners and one slot, which is used for LIVES lives: one sender
 * whose puts go to the queue at once, one that is no runner of the pool, whose puts go by the arrivals of
 * the home, a spawner, a thread that stops actors also late, and a timer. With -DCROWD there are two houses
 * that live for ever, and two senders that are no runners, so that the list of arrivals has links.
 *
 * A timer is due; whoever looks at the wheel claims an idle house for it, or puts it off by a tick and sets
 * PENDING. The house's runner fires what was put off, whatever the wheel says, since its own turn is over
 * sooner than the tick, and the next tick finds it in a turn again. PENDING goes when a slot is freed,
 * because it stands in the byte that says to which list the slot belongs. The time up to which runners
 * sleep is in due.pml, the links of a push in arrivals.pml, a slot's lives with a home that has a thread in
 * life.pml.
 *
 * Models: house/dispatch/pooled_turn.c domi_pooled_take_idle_house, release_idle_house,
 * fire_due_nodes_of_wheel, fire_postponed_timers_and_promises, does_actor_still_live_in_slot,
 * domi_pooled_run_turn_of_house, domi_pooled_schedule_arrivals; house/message/mailbox.c put_node_to_inbox; house/message/arrivals.c push_chain_to_arrivals,
 * domi_links_add_house_to_arrivals, schedule_house_from_runner; house/dispatch/deliver.c sort_node_of_inbox,
 * domi_mailbox_sort_inbox_of_pooled; house/family/life.c domi_house_try_to_end_stop, free_house; house/family/birth.c publish_life_word;
 * house/message/stop.c domi_house_ask_to_stop; runtime/pools/pools.c schedule_house_for_turn, schedule_houses_with_arrivals; runtime/policies/services.c
 * domus_job_link. Holds: one thread at a time has a house (holder, a ghost); a house is in the queue once; every
 * message is handled in its life, or is a dead letter, once, in the order of its sender; after a stop at
 * most one more is handled; a timer that is due is fired, or its actor ends; all lives end; the link of a job
 * leaves the list of free slots alone.
 *
 * @run short safety
 * @run short safety -DLIVES=1 -DTIMERS=1 -DOUTER=0
 * @run short safety -DCROWD -DLIVES=1 -DOUTER=1
 * @run long safety -DTIMERS=1 -DOUTER=0
 * @run long safety -DLIVES=1 -DTIMERS=1
 * @run long progress -DLIVES=1
 * @run long safety -DLIVES=1 -DTIMERS=2 -DOUTER=0
 * @run long safety -DINNER=2
 * @run long safety -DLIVES=1 -DTIMERS=1 -DBUDGET=2 -DINNER=2 -DOUTER=0
 * @run long safety -DCROWD -DLIVES=1 -DOUTER=2
 *
 * @mutant short safety RELEASE_STORE : the runner lets go by a store of 0
 * @mutant short safety RELEASE_BLIND : a runner whose release fails takes the house for idle
 * @mutant short safety PUT_ALWAYS : a put schedules the house whatever the word was
 * @mutant short safety PUT_BUSY_TOO : a put on top of BUSY schedules the house
 * @mutant short safety PUT_READS_FIRST : a put schedules if it read 0 before its exchange
 * @mutant short safety TAKE_LEAVES_0 : the runner takes the mail and leaves 0
 * @mutant short safety MORE_IS_DROPPED : a turn ends with mail left, and nobody puts the house into a queue
 * @mutant short safety MORE_IS_RELEASED : a turn that ends with mail left lets go of the house as well
 * @mutant short progress READY_FORGOTTEN -DLIVES=1 : a run does not look whether the last one left the house READY
 * @mutant short safety FREED_GOES_ON : a runner looks into the house after its slot was freed
 * @mutant short safety FREED_RELEASED : a freed slot whose inbox has late mail is let go of
 * @mutant short safety SPAWN_SCHEDULES : a spawn schedules the house whatever the word was
 * @mutant short safety JOB_BY_NEXT : the link of a job is that of the list of free slots
 * @mutant short safety STOP_UNSEEN : a run does not look at the stop before each message
 * @mutant short safety CLAIM_BLIND -DLIVES=1 -DTIMERS=1 -DOUTER=0 : who fires a timer takes the house unseen
 * @mutant short safety CLAIM_BY_LOOK -DLIVES=1 -DTIMERS=1 -DOUTER=0 : who fires a timer looks whether the word is 0, then stores BUSY
 * @mutant short safety FIRED_DROPPED -DLIVES=1 -DTIMERS=1 -DOUTER=0 : a claimed house that a timer made READY goes into no queue
 * @mutant short safety FIRED_RELEASED -DLIVES=1 -DTIMERS=1 -DOUTER=0 : a claimed house goes into the queue, and is let go of
 * @mutant short safety FIRED_MAIL_LEFT -DLIVES=1 -DTIMERS=1 -DOUTER=0 : mail that came for a claimed house is left there
 * @mutant short safety PENDING_UNSEEN -DLIVES=1 -DTIMERS=1 -DOUTER=0 : the runner does not look at PENDING
 * @mutant short safety POSTPONED_STAYS -DLIVES=1 -DTIMERS=1 -DOUTER=0 : the runner does not fire what was put off
 * @mutant short safety PENDING_FREED -DLIVES=1 -DTIMERS=1 -DOUTER=0 : a slot is freed with PENDING set
 * @mutant short safety DROPPED_IF_BUSY -DLIVES=1 -DTIMERS=1 -DOUTER=0 : a timer whose house is not idle leaves the wheel
 * @mutant short safety CANCEL_UNLOCKED -DLIVES=1 -DTIMERS=1 -DOUTER=0 : a stop takes the timer back without the lock
 * @mutant short safety ARRIVALS_FIRST : the arrivals are taken before the park word sleeps again
 * @mutant short safety PARK_KEPT : the park word of the home stays NOTIFIED
 * @mutant short safety NEXT_LATE -DCROWD -DLIVES=1 -DOUTER=1 : a house's link is read after the house went into the queue
 * @mutant short safety TAKE_WEAK -DCROWD -DLIVES=1 -DOUTER=1 : the arrivals are taken by an exchange that the store before it may pass */
#ifndef LIVES
#define LIVES 2
#endif
#ifndef TIMERS
#define TIMERS 0 /* how many timers each life arms, one after the other */
#endif
#ifndef INNER
#define INNER 1 /* messages of the sender that is a runner */
#endif
#ifndef OUTER
#define OUTER 1 /* messages of each sender that is none */
#endif
#ifndef BUDGET
#define BUDGET 1 /* runs of a turn */
#endif
#ifdef CROWD
#define HOUSES 2
#define TOTAL (2 * OUTER)
#else
#define HOUSES 1
#define TOTAL (INNER + OUTER)
#endif
#define NONE   HOUSES
#define NOBODY 255
#define RUNNERS 2

mtype = { CREATED, MOUNTING, WAITING, READY, RUNNING };
mtype = { MAIL, MOUNT, STOP };
mtype = { OFF, AHEAD, DUE, LATE, LATE_DUE }; /* LATE: it was put off by a tick, LATE_DUE: which is over */

/* The inbox word: BUSY, and nodes. A put takes BUSY away. Kind, lease, sender, number. */
bit busy[HOUSES];
chan inbox[HOUSES] = [TOTAL + 2] of { mtype, byte, byte, byte };
/* The life word. */
byte lease[HOUSES] = 1;
bit closed[HOUSES] = 1, stop[HOUSES], node[HOUSES];
bit pending[HOUSES]; /* in the atomic `slot` */
byte arrival_next[HOUSES] = NONE;

/* The plain fields. */
mtype state[HOUSES] = CREATED;
chan mail[HOUSES] = [TOTAL] of { byte, byte, byte }; /* lease, sender, number */
bit stopping[HOUSES];
byte events[HOUSES];
byte next = NONE; /* the link of the list of free slots; with one slot, its end */
bit is_free = 1;

/* The home: what others pushed, and its park word; the policy's queue. */
byte arrivals = NONE;
bit notified;
chan queue = [HOUSES] of { byte };

bit locked; /* the lock of the wheels */
mtype timer = OFF;
byte armed, fired;

/* Ghosts. */
byte holder[HOUSES] = NOBODY;
bit queued[HOUSES];
bit making[HOUSES]; /* a spawner writes the plain fields of a free slot */
byte life, known, ended, accepted, handled, dead, after_stop;
byte last[3 * HOUSES]; /* of each sender and house: the number of the message that came last */
chan taken[RUNNERS] = [TOTAL + 2] of { mtype, byte, byte, byte };

#define IS_IDLE(h) (!busy[h] && len(inbox[h]) == 0)

inline lock() { atomic { !locked -> locked = 1 } }
inline unlock() { locked = 0 }

/* internal_enqueue, central_enqueue, resume_later: the lock of the queue makes each one step. */
inline enqueue(job)
{
    atomic {
        assert(!queued[job] && holder[job] == NOBODY);
        queued[job] = 1;
#ifdef JOB_BY_NEXT
        next = 0;
#endif
        arrival_next[job] = NONE;
        queue!job
    }
}

/* --- a thread that is no runner ----------------------------------------------------------------- */

/* schedule_houses_with_arrivals, domi_pooled_schedule_arrivals */
inline take_houses_off_arrivals()
{
    atomic { list = arrivals; arrivals = NONE }
#ifdef TAKE_WEAK
    ;
    notified = 0
#endif
    ;
    do
    :: list != NONE ->
#ifdef NEXT_LATE
        enqueue(list);
        list = arrival_next[list]
#else
        after = arrival_next[list];
        enqueue(list);
        atomic { list = after; after = 0 }
#endif
    :: else -> break
    od
}

/* push_chain_to_arrivals, domi_manager_notify_of_push */
inline link_outer(h)
{
    atomic { arrival_next[h] = arrivals; arrivals = h };
    won = 0;
    atomic {
        if
        :: !notified -> notified = 1; won = 1
        :: else
        fi
    };
    if
    :: won ->
        won = 0;
#ifdef ARRIVALS_FIRST
        take_houses_off_arrivals();
        notified = 0
#else
#if !defined(TAKE_WEAK) && !defined(PARK_KEPT)
        notified = 0;
#endif
        take_houses_off_arrivals()
#endif
    :: else
    fi
}

/* --- puts ----------------------------------------------------------------------------------------- */

#ifdef PUT_ALWAYS
#define SCHEDULES(h) true
#elif defined(PUT_BUSY_TOO)
#define SCHEDULES(h) (len(inbox[h]) == 0)
#else
#define SCHEDULES(h) IS_IDLE(h)
#endif

/* put_node_to_inbox, up to the link */
inline put(h, what, its_lease, from, number)
{
#ifdef PUT_READS_FIRST
    first = SCHEDULES(h);
#endif
    atomic {
#ifndef PUT_READS_FIRST
        first = SCHEDULES(h);
#endif
        busy[h] = 0;
        inbox[h]!what, its_lease, from, number;
        if
        :: what == MAIL -> accepted++
        :: else
        fi
    }
}

/* --- a turn ------------------------------------------------------------------------------------- */

/* A plain field is read or written. */
#define HAS(h) (holder[h] == me && !making[h])

/* domi_house_make_ready: `ready` is the one place of the runner's own queue */
inline make_ready(h)
{
    assert(HAS(h) && !ready);
    state[h] = READY;
    ready = 1
}

/* domi_mailbox_sort_inbox_of_pooled */
inline sort(h)
{
    atomic {
        do
        :: inbox[h]?what, its_lease, from, number -> taken[me]!what, its_lease, from, number
        :: empty(inbox[h]) -> break
        od;
#ifndef TAKE_LEAVES_0
        busy[h] = 1
#else
        busy[h] = 0
#endif
    };
    atomic {
        if
#ifndef READY_FORGOTTEN
        :: state[h] == READY -> ready = 1 /* a slot that is free, or is made anew, is CREATED */
#endif
        :: else
        fi;
        if
        :: closed[h] -> now = 0
        :: else -> now = lease[h]
        fi;
        do
        :: taken[me]?what, its_lease, from, number ->
            if
            :: what == MAIL && its_lease == now && !stopping[h] ->
                mail[h]!its_lease, from, number;
                if
                :: state[h] == WAITING -> make_ready(h)
                :: else -> assert(HAS(h))
                fi
            :: what == MAIL && !(its_lease == now && !stopping[h]) -> dead++
            :: what == MOUNT ->
                assert(HAS(h) && its_lease == now && state[h] == CREATED);
                node[h] = 0;
                state[h] = MOUNTING;
                mounts = 1
            :: what == STOP ->
                assert(HAS(h) && its_lease == now);
                node[h] = 0;
                if
                :: state[h] == WAITING -> make_ready(h)
                :: else
                fi
            fi
        :: empty(taken[me]) -> break
        od;
        if /* update_house_after_new_mail */
        :: now != 0 && stopping[h] && state[h] == WAITING -> make_ready(h)
        :: else
        fi;
        what = 0; its_lease = 0; from = 0; number = 0; now = 0
    }
}

/* A handler arms a timer; the lock makes it one step. */
inline arm()
{
#if TIMERS > 0
    atomic {
        !locked ->
        if
        :: armed < TIMERS && timer == OFF && !stopping[0] -> armed++; timer = AHEAD
        :: else
        fi
    }
#else
    skip
#endif
}

/* domi_manager_mount_actors */
inline mount(h)
{
    mounts = 0;
    arm();
    atomic {
        assert(HAS(h) && state[h] == MOUNTING);
        state[h] = WAITING;
        if
        :: stop[h] || len(mail[h]) > 0 -> make_ready(h)
        :: else
        fi
    }
}

/* domi_house_begin_stop; the lock makes the cancel of the timer one step. */
inline stop_begin(h)
{
    atomic {
#ifndef CANCEL_UNLOCKED
        !locked ->
#endif
        assert(HAS(h));
        stopping[h] = 1;
        do
        :: mail[h]?_, _, _ -> dead++
        :: empty(mail[h]) -> break
        od;
        if
        :: timer != OFF -> timer = OFF; fired++
        :: else
        fi
    }
}

/* domi_house_try_to_end_stop, free_house, domi_slots_free_slot */
inline stop_end(h)
{
    atomic {
        assert(HAS(h));
        if
        :: !node[h] && len(inbox[h]) == 0 && events[h] == 0 ->
            closed[h] = 1;
            gone = 1;
            ended++;
            assert(timer == OFF && armed == fired);
            armed = 0;
            fired = 0;
            stopping[h] = 0;
            state[h] = CREATED;
#ifndef PENDING_FREED
            pending[h] = 0
#endif
        :: else
        fi
    };
    if
    :: gone ->
        atomic { lease[h]++; stop[h] = 0; after_stop = 0 };
        atomic { /* the slot goes to the list that its class says, which is beside PENDING */
            assert(HAS(h) && !pending[h] && next == NONE);
            is_free = 1
        }
    :: else
    fi
}

#ifdef STOP_UNSEEN
#define SEES_STOP false
#else
#define SEES_STOP seen
#endif

/* domi_house_run_and_settle: a run of one event or some messages, and domi_house_settle_after_run */
inline run_house(h)
{
    atomic {
        assert(HAS(h) && state[h] == READY);
        ready = 0;
        gone = 0;
        state[h] = RUNNING
    };
    atomic {
        if
        :: events[h] > 0 -> events[h]--
        :: else
        fi;
        seen = stop[h]
    };
    do
    :: atomic {
            len(mail[h]) > 0 && !SEES_STOP && !stopping[h] ->
            mail[h]?its_lease, from, number;
            assert(its_lease == lease[h] && !closed[h]);
            assert(number > last[3 * h + from]);
            last[3 * h + from] = number;
            handled++;
            if
            :: stop[h] -> after_stop++; assert(after_stop <= 1)
            :: else
            fi;
            its_lease = 0;
            from = 0;
            number = 0
        }
        if
        :: seen = stop[h]
        :: break
        fi
    :: else -> break
    od;
progress_run:
    seen = 0;
    arm();
    if
    :: stop[h] && !stopping[h] -> stop_begin(h)
    :: else
    fi;
    if
    :: stopping[h] -> stop_end(h)
    :: else
    fi;
    atomic {
        if
        :: gone
        :: !gone && (len(mail[h]) > 0 || events[h] > 0) -> make_ready(h)
        :: else -> assert(HAS(h)); state[h] = WAITING
        fi
    }
}

#define IS_LATE (timer == LATE || timer == LATE_DUE)
#define IS_DUE  (timer == DUE || timer == LATE_DUE)
#ifdef POSTPONED_STAYS
#define IS_OWN  IS_DUE
#else
#define IS_OWN  IS_LATE
#endif

/* The timer of house 0 fires, which the caller has. */
inline fire()
{
    assert(HAS(0) && timer != OFF && !closed[0] && !stopping[0]);
    timer = OFF;
    fired++;
    if
    :: true ->
        events[0]++;
        if
        :: state[0] == WAITING -> state[0] = READY
        :: else
        fi
    :: true /* it makes nobody READY */
    fi
}

/* domi_pooled_fire_due_timers, fire_due_nodes_of_wheel. Only house 0 has a timer. */
inline look()
{
    lock();
    if
    :: IS_DUE ->
#ifdef CLAIM_BLIND
        atomic { busy[0] = 1; claimed = 1 };
#elif defined(CLAIM_BY_LOOK)
        if
        :: IS_IDLE(0) -> atomic { busy[0] = 1; claimed = 1 }
        :: else
        fi;
#endif
        atomic {
#if !defined(CLAIM_BLIND) && !defined(CLAIM_BY_LOOK)
            if
            :: IS_IDLE(0) -> busy[0] = 1; claimed = 1
            :: else
            fi;
#endif
            if
            :: claimed -> assert(holder[0] == NOBODY && !queued[0]); holder[0] = me
            :: else
            fi
        };
        if
        :: !claimed ->
            pending[0] = 1;
#ifdef DROPPED_IF_BUSY
            timer = OFF
#else
            timer = LATE
#endif
        :: else ->
            atomic { fire() };
            atomic {
                if
                :: state[0] != READY && busy[0] -> busy[0] = 0
                :: else -> to_queue = 1
                fi;
                holder[0] = NOBODY;
#ifdef FIRED_MAIL_LEFT
                to_queue = to_queue && state[0] == READY;
#endif
                claimed = 0
            }
        fi
    :: else
    fi;
    unlock();
    if
    :: to_queue ->
        to_queue = 0;
#ifdef FIRED_RELEASED
        busy[0] = 0;
#endif
#ifndef FIRED_DROPPED
        enqueue(0)
#endif
    :: else
    fi
}

inline fire_late(h)
{
    lock();
    atomic {
        pending[h] = 0;
        if
        :: IS_OWN -> fire()
        :: else
        fi
    };
    assert(!IS_LATE); /* nothing of one's own stays put off */
    unlock()
}

/* release */
inline release(h)
{
    atomic {
#ifdef RELEASE_STORE
        do
        :: inbox[h]?_, _, _, _
        :: empty(inbox[h]) -> break
        od;
        busy[h] = 0;
        released = 1;
#else
        if
        :: busy[h] -> busy[h] = 0; released = 1
#ifdef RELEASE_BLIND
        :: else -> released = 1
#elif defined(FREED_RELEASED)
        :: else -> released = !alive
#else
        :: else
#endif
        fi;
#endif
        if
        :: released -> holder[h] = NOBODY
        :: else
        fi
    }
}

#ifdef FREED_GOES_ON
#define LIVES_ON(h) true
#else
#define LIVES_ON(h) (lease[h] == begun && !closed[h])
#endif
#ifdef PENDING_UNSEEN
#define SEES_PENDING(h) false
#else
#define SEES_PENDING(h) pending[h]
#endif

/* domi_runner_take_step, domi_pooled_run_turn_of_house */
proctype runner(byte me)
{
    mtype what;
    byte h, its_lease, from, number, now, begun, runs, before;
    bit claimed, to_queue, owed, released, gone, seen, alive, more, ready, mounts;

    h = NONE;
end:
    do
#if TIMERS > 0
    :: IS_DUE -> look()
#endif
    :: atomic {
            queue?h -> queued[h] = 0;
            assert(holder[h] == NOBODY);
            holder[h] = me;
            begun = lease[h]
        }
turn:
#if TIMERS > 0
        /* a ghost: what was put off before a run is fired after it */
        atomic { owed = (pending[h] && IS_LATE); before = fired };
#endif
        sort(h);
        if
        :: mounts -> mount(h)
        :: else
        fi;
        if
        :: ready -> run_house(h)
        :: else
        fi;
        runs++;
        alive = LIVES_ON(h);
#if TIMERS > 0
        if
        :: SEES_PENDING(h) && alive -> fire_late(h)
        :: else
        fi;
        atomic {
            assert(!owed || !alive || fired > before);
            owed = 0;
            before = 0
        };
#endif
        atomic {
            if
            :: alive -> assert(HAS(h)); more = (state[h] == READY)
            :: else -> assert(!ready)
            fi;
            ready = 0
        };
        if
        :: !more -> release(h)
        :: else
        fi;
        if
        :: !released && alive && runs < BUDGET -> more = 0; goto turn
        :: else
        fi;
        if
        :: released -> released = 0
#ifdef MORE_IS_DROPPED
        :: !released && more -> holder[h] = NOBODY
        :: !released && !more -> holder[h] = NOBODY; enqueue(h)
#else
        :: !released -> /* resume_later */
            holder[h] = NOBODY;
#ifdef MORE_IS_RELEASED
            busy[h] = 0;
#endif
            enqueue(h)
#endif
        fi;
        atomic { h = NONE; more = 0; runs = 0; begun = 0; alive = 0; gone = 0 }
    od
}

/* --- all others ----------------------------------------------------------------------------------- */

/* A sender numbers its messages. Sender 0 is a runner. */
proctype sender(byte me, most)
{
    byte i, to, h, list, after;
    bit first, won;

    list = NONE;
    do
    :: i < most ->
        i++;
        atomic { known > 0 -> to = known };
#ifdef CROWD
        if
        :: h = 0
        :: h = 1
        fi;
#endif
        if
        :: lease[h] == to && !closed[h] && !stop[h] ->
            put(h, MAIL, to, me, i);
            if
            :: first && me == 0 -> enqueue(h)
            :: first && me != 0 -> link_outer(h)
            :: else
            fi;
            first = 0
        :: else
        fi
    :: else -> break
    od
}

#ifndef CROWD
/* A runner that spawns. */
proctype spawner()
{
    bit first;

end:
    do
    :: atomic { is_free && life < LIVES ->
            is_free = 0;
            life++;
            making[0] = 1;
            assert(next == NONE && state[0] == CREATED)
        }
        atomic { making[0] = 0; closed[0] = 0; node[0] = 1; known = lease[0] };
        put(0, MOUNT, known, 0, 0);
#ifdef SPAWN_SCHEDULES
        first = 1;
#endif
        if
        :: first -> enqueue(0)
        :: else
        fi;
        first = 0
    od
}

/* A thread that is no runner stops each life, perhaps when it is over. */
proctype stopper()
{
    byte to, list, after;
    bit first, won, was, is_mine;

    list = NONE;
    do
    :: atomic { known > to -> to++ }
        atomic {
            if
            :: lease[0] == to && !closed[0] && !stop[0] ->
                was = node[0];
                stop[0] = 1;
                node[0] = 1;
                is_mine = 1
            :: else
            fi
        };
        if
        :: is_mine && !was ->
            put(0, STOP, to, 0, 0);
            if
            :: first -> link_outer(0)
            :: else
            fi;
            first = 0
        :: else
        fi;
        atomic { is_mine = 0; was = 0 }
    :: to == LIVES -> break
    od
}
#endif

#if TIMERS > 0
/* Time passes. */
proctype clock()
{
end:
    do
    :: atomic { timer == AHEAD -> timer = DUE }
    :: atomic { timer == LATE -> timer = LATE_DUE }
    od
}
#endif

init {
    atomic {
#ifdef CROWD
        known = 1;
        closed[0] = 0;
        closed[1] = 0;
        state[0] = WAITING;
        state[1] = WAITING;
        run sender(1, OUTER);
        run sender(2, OUTER);
#else
        run sender(0, INNER);
        run sender(1, OUTER);
        run spawner();
        run stopper();
#endif
#if TIMERS > 0
        run clock();
#endif
        run runner(0);
        run runner(1)
    };
    timeout -> /* no process can move any more */
    assert(accepted == handled + dead && arrivals == NONE && IS_IDLE(0) && empty(queue));
#ifdef CROWD
    assert(IS_IDLE(1) && state[0] == WAITING && state[1] == WAITING)
#else
    assert(life == LIVES && ended == LIVES && is_free && next == NONE && timer == OFF)
#endif
}
