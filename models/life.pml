/* A slot is used for one life after another: birth, stop, and the next birth.
 *
 * The idea: a message or a stop that comes late finds another lease. Lease and control bits are one
 * word. A spawn and a stop travel by the node that is embedded in the house, through the inbox as
 * mail does. Home alone frees the slot, when the house is not away, its node is not under way, and
 * its inbox was just emptied. The model has one slot, which is used for LIVES lives; home, a thief,
 * and foreign threads that spawn, send and stop, also with addresses of lives that are over.
 *
 * Models: house/family/birth.c publish_life_word; house/family/life.c domi_house_mount_actor, domi_house_try_to_end_stop, free_house,
 * domi_house_free_dead_slot; house/message/stop.c domi_house_ask_to_stop; house/message/mailbox.c put_node_to_inbox,
 * domi_mailbox_put_slow; house/family/restart.c domi_house_handle_own_node; house/dispatch/deliver.c sort_node_of_inbox,
 * domi_mailbox_sort_inbox; house/dispatch/run.h domi_run_may_take_mail_unless_marked; house/dispatch/settle.c domi_house_settle_after_run; house/dispatch/loan.c
 * make_exposed_house_home_again. Holds: M5 (moves), M9 (a stale stop hits nobody); a message is handled in the life it was sent
 * to, or is a dead letter, exactly once; a stopped house gets nothing; each life that was asked to stop ends,
 * and no other; the node is used for one thing at a time. Others may know the address before the life is
 * published, by its name: until then they are answered that it is gone. With -DFREED_FILLED a slot is freed
 * although its inbox holds late mail, and all of this holds as well: the lease alone protects the next life,
 * the look at the inbox only saves dead letters. family.pml has what a child and its parent say to each
 * other.
 *
 * @run short safety
 * @run long safety -DMESSAGES=2
 * @run long safety -DFREED_FILLED
 * @run long safety -DLIVES=3
 *
 * @mutant short safety SPAWN_RESETS : a spawn empties the inbox and links the house
 * @mutant short safety LEASE_KEPT : the next life has the same lease
 * @mutant short safety STOP_BLIND : a stop sets its bit without comparing the lease
 * @mutant short safety STOP_LOST_AWAY : when a loan comes back, the stop bit is not looked at
 * @mutant short safety RUNNER_BLIND : a runner does not look at the stop before a message
 * @mutant short safety ROUSE_AWAY : home looks at the state of a house that is away, to rouse it
 * @mutant short safety NODE_NOT_AWAITED : a slot is freed while its node is under way
 * @mutant short safety NODE_CLEARED_FIRST : the node is given free before it is read
 * @mutant short safety THIEF_FREES : the thief frees a house that it has to give back
 * @mutant long safety SPAWN_LINKS : a spawn links the house, also if the inbox is not empty
 * @mutant long safety LEASE_IGNORED : sorting does not compare leases
 * @mutant long safety MOUNT_BLIND : the mount does not look at the stop bit, which may have been set before it
 * @mutant long safety NO_ROUSE : a stop that has arrived does not make a waiting house run
 * @mutant long safety NODE_KEPT : the node is never given free
 * @mutant long safety NODE_NOT_ASKED : a stopper uses the node while it carries the mount
 * @mutant long safety BACK_UNSORTED : mail that waited for a house that was away is not sorted */
#ifndef LIVES
#define LIVES 2
#endif
#ifndef MESSAGES
#define MESSAGES 1 /* the most messages for each life; they may come late */
#endif

mtype = { CREATED, MOUNTING, WAITING, READY, RUNNING };
mtype = { NOWHERE, MOUNTS, PRIVATE, SHARED, LENT, RETURNED };
mtype = { MAIL, NODE, MOUNT, STOP };

/* The life word: one atomic. */
byte lease = 1;
bit closed = 1, stop, node;

mtype state = CREATED;
mtype place = NOWHERE;
mtype node_kind;
bit stopping, exposed, pending;
bit is_free = 1; /* in the list of free slots */
bit linked;
/* the kind, the lease, and as a ghost the life */
chan inbox = [LIVES * (MESSAGES + 2)] of { mtype, byte, byte };
/* mail that home took from the inbox, to be sorted */
chan taken = [LIVES * (MESSAGES + 2)] of { mtype, byte, byte };
chan mail  = [LIVES * MESSAGES] of { byte };                    /* ghost: life */

/* These are ghosts: only the checks of the model use them. */
byte life;             /* how many lives were born */
byte known;            /* the newest life whose address others may know */
byte known_lease;
bit asked[LIVES + 1];  /* this life was asked to stop, by its address */
byte ended;
byte accepted, handled, dead;

inline link()
{
    atomic {
        assert(!linked);
        linked = 1
    }
}

/* This models put_node_to_inbox, domi_links_add_house_to_arrivals. */
inline put(what, its_lease, its_life)
{
    atomic {
        first = (len(inbox) == 0);
        inbox!what, its_lease, its_life;
        if
        :: what == MAIL -> accepted++
        :: else
        fi
    };
    if
    :: first -> first = 0; link()
    :: else
    fi
}

inline make_ready()
{
    assert(!exposed && place == NOWHERE && (state == WAITING || state == RUNNING));
    state = READY;
    place = PRIVATE
}

inline rouse()
{
    if
#ifdef ROUSE_AWAY
    :: state == WAITING -> assert(!exposed); make_ready()
    :: state != WAITING -> assert(place != LENT)
#else
    :: !exposed && state == WAITING -> make_ready()
    :: else
#endif
    fi
}

inline empty_mail()
{
    do
    :: mail?_ -> dead++
    :: empty(mail) -> break
    od
}

inline mounting()
{
    assert(state == CREATED && place == NOWHERE);
    state = MOUNTING;
    place = MOUNTS
}

inline stop_begin()
{
    stopping = 1;
    empty_mail()
}

/* This models sort_node_of_inbox, domi_house_handle_own_node. */
inline sort_node_of_inbox()
{
    assert(what == NODE);
#ifdef NODE_CLEARED_FIRST
    node = 0;
    what = node_kind;
#else
    what = node_kind;
#ifndef NODE_KEPT
    node = 0;
#endif
#endif
    atomic {
        assert(its_lease == lease && !closed);
        if
        :: what == MOUNT -> mounting()
        :: else -> assert(what == STOP);
#ifndef NO_ROUSE
            rouse()
#endif
        fi
    }
}

inline sort()
{
    assert(!exposed);
    atomic { /* one exchange */
        do
        :: inbox?what, its_lease, its_life -> taken!what, its_lease, its_life
        :: empty(inbox) -> break
        od
    };
    atomic {
        if
        :: closed -> now = 0
        :: else -> now = lease
        fi
    };
    do
    :: taken?what, its_lease, its_life ->
        if
        :: what == NODE -> sort_node_of_inbox()
        :: else ->
            atomic {
                if
#ifdef LEASE_IGNORED
                :: !stopping ->
#else
                :: its_lease == now && !stopping ->
#endif
                    mail!its_life;
                    if
                    :: state == WAITING -> make_ready()
                    :: else
                    fi
                :: else -> dead++
                fi
            }
        fi
    :: empty(taken) ->
        atomic {
            if
            :: now != 0 && stopping -> rouse()
            :: else
            fi;
            what = 0;
            its_lease = 0;
            its_life = 0;
            now = 0
        };
        break
    od
}

/* This models free_house, domi_house_free_dead_slot. */
inline house_free()
{
    closed = 1;
    atomic {
        empty_mail();
        assert(asked[life]); /* only lives that were asked to stop end */
        assert(!exposed && !pending);
        assert(state == RUNNING && place == NOWHERE);
        ended++;
        stopping = 0;
        state = CREATED
    };
    atomic {
#ifndef LEASE_KEPT
        lease++;
#endif
        stop = 0;
        node = 0
    };
    is_free = 1
}

#ifdef STOP_LOST_AWAY
#define STOP_IS_LOST true
#else
#define STOP_IS_LOST false
#endif
#ifdef NODE_NOT_AWAITED
#define NODE_HOLDS false
#else
#define NODE_HOLDS node
#endif
#ifdef FREED_FILLED
#define FILLED_IS_FREED true
#else
#define FILLED_IS_FREED false
#endif
#ifdef RUNNER_BLIND
#define STOP_IS_SEEN false
#else
#define STOP_IS_SEEN stop
#endif

/* domi_house_settle_after_run: the house has run, and home has it. */
inline settle()
{
    assert(state == RUNNING && !exposed);
    if
    :: stop && !stopping && !(is_back && STOP_IS_LOST) -> atomic { stop_begin() }
    :: else
    fi;
    if
    :: stopping && !NODE_HOLDS && (len(inbox) == 0 || FILLED_IS_FREED) -> house_free()
    :: else ->
        atomic {
            if
            :: len(mail) > 0 -> make_ready()
            :: else -> state = WAITING
            fi
        }
    fi
}

/* A run that handles one message at most. */
inline run_house()
{
    atomic {
        assert(state == READY);
        state = RUNNING;
        if
        :: len(mail) > 0 && STOP_IS_SEEN && !stopping -> stop_begin()
        :: len(mail) > 0 && !STOP_IS_SEEN && !stopping ->
            mail?got;
            assert(got == life); /* the message was sent to this life */
            assert(!stop && !closed);
            handled++;
            got = 0
        :: else
        fi
    }
}

/* The thread that set the NODE bit sends the embedded node. */
inline send_node(kind)
{
    node_kind = kind;
    assert(!closed && node);
    put(NODE, lease, life)
}

/* A thread that has taken the slot spawns an actor there. Home (`me_is_home`) may mount it at
 * once. */
inline spawn(me_is_home)
{
    atomic {
        life++;
        assert(closed && state == CREATED && !exposed && !pending);
        born = life;
        born_lease = lease
    };
    if
    /* others may find the actor by its name before it is published */
    :: atomic { known = born; known_lease = born_lease }
    :: skip
    fi;
    if
    :: atomic { me_is_home && len(inbox) == 0 -> closed = 0; mounting() }
#if defined(SPAWN_RESETS)
    :: else ->
        closed = 0;
        atomic {
            do
            :: inbox?_, _, _
            :: empty(inbox) -> break
            od
        };
        node = 1;
        node_kind = MOUNT;
        inbox!NODE, lease, life;
        link()
#elif defined(SPAWN_LINKS)
    :: else ->
        atomic { closed = 0; node = 1 };
        node_kind = MOUNT;
        inbox!NODE, lease, life;
        link()
#else
    :: else ->
        atomic { closed = 0; node = 1 };
        send_node(MOUNT)
#endif
    fi;
    atomic {
        if
        :: known < born -> known = born; known_lease = born_lease
        :: else
        fi;
        born = 0;
        born_lease = 0
    }
}

proctype home()
{
    mtype what;
    byte its_lease, its_life, now, got, born, born_lease;
    bit first, is_back;

end:
    do
    :: atomic { linked -> linked = 0 } /* this models take_houses_off_arrivals */
        if
        :: exposed -> pending = 1
        :: else -> sort()
        fi
    :: atomic { is_free && life < LIVES -> is_free = 0 }
        spawn(true)
    :: atomic { place == MOUNTS -> place = NOWHERE; state = WAITING }
        atomic {
            if
#ifdef MOUNT_BLIND
            :: len(mail) > 0 -> make_ready()
#else
            :: stop || len(mail) > 0 -> make_ready()
#endif
            :: else
            fi
        }
    :: atomic { place == PRIVATE -> place = NOWHERE }
        run_house();
        settle()
    :: atomic { place == PRIVATE -> exposed = 1; place = SHARED }
    :: atomic { place == SHARED -> exposed = 0; place = PRIVATE }
        if
        :: pending -> pending = 0; sort()
        :: else
        fi
    :: atomic { place == RETURNED -> exposed = 0; place = NOWHERE }
        if
#ifdef BACK_UNSORTED
        :: pending -> pending = 0
#else
        :: pending -> pending = 0; sort()
#endif
        :: else
        fi;
        is_back = 1;
        settle();
        is_back = 0
    /* an actor of the same thread stops it */
    :: atomic { known == life && known != 0 && !closed && !stop ->
            stop = 1;
            asked[life] = 1;
            rouse()
        }
    od
}

proctype thief()
{
    byte got;

end:
    do
    :: atomic { place == SHARED -> place = LENT }
        run_house();
#ifdef THIEF_FREES
        if
        :: stop && !node && len(inbox) == 0 -> stopping = 1; house_free()
        :: else
        fi;
#endif
        place = RETURNED
    od
}

proctype spawner()
{
    byte born, born_lease;
    bit first;

end:
    do
    :: atomic { is_free && life < LIVES -> is_free = 0 }
        spawn(false)
    od
}

/* A foreign thread sends to the life that it knows when it begins to send. The message may be
 * refused. */
proctype sender()
{
    byte to, its_lease, i;
    bit first;

end:
    do
    :: i < LIVES * MESSAGES ->
        atomic {
            known > 0 -> to = known;
            its_lease = known_lease;
            i++
        };
        if
        :: lease == its_lease && !closed && !stop -> put(MAIL, its_lease, to)
        :: else
        fi
    :: else -> break
    od
}

/* A foreign thread stops each life once, unless it missed that life, perhaps when the life is
 * over. */
proctype stopper()
{
    byte to, its_lease;
    bit first, was, is_mine;

end:
    do
    :: atomic { known > to -> to = known; its_lease = known_lease }
        atomic {
            asked[to] = 1;
            is_mine = 0;
            if
#ifdef STOP_BLIND
            :: !closed && !stop ->
#else
            :: lease == its_lease && !closed && !stop ->
#endif
                was = node;
#ifdef NODE_NOT_ASKED
                was = 0;
#endif
                stop = 1;
                node = 1;
                is_mine = 1
            :: else
            fi
        };
        if
        :: is_mine && !was -> send_node(STOP)
        :: else
        fi
    :: to == LIVES -> break
    od
}

init {
    atomic {
        run home();
        run thief();
        run spawner();
        run sender();
        run stopper()
    };
    timeout ->
    assert(life == LIVES && ended == LIVES);
    assert(accepted == handled + dead);
    assert(len(inbox) == 0 && !linked && is_free)
}
