/* A child and its parent talk by the child's own node.
 *
 * The idea: one node is embedded in each house, and the NODE bit of the house's life word says that
 * the node is in use. A child that has failed takes its node and sends it to its parent, which
 * sends its directive back by the same node. Any other thread that has something to say to the
 * child (a stop, a decision for all children) takes the node only if it is free; if it is in use,
 * the message under way serves the purpose as well. A child that has ended sends the node once more
 * (GONE), and its slot is free when the node has come back (FREE). The model has one slot, which is
 * used for LIVES lives, on its home; a parent on another thread; a thief that runs the child; and a
 * foreign thread that stops the child, perhaps when that life is over.
 *
 * Models: house/family/family.c domi_family_report_failure_or_decide, put_node_of_child_to_parent, decide_on_failed_child_and_direct_it,
 * domi_family_send_directive, reserve_node_of_child, send_directive_to_siblings, domi_family_handle_event_of_child, domi_family_remove_ended_child;
 * house/family/birth.c publish_life_word; house/family/life.c domi_house_mount_actor, is_own_node_under_way, domi_house_try_to_end_stop, free_house, domi_house_free_dead_slot;
 * house/message/stop.c set_stop_bits_and_rouse_house; house/family/restart.c domi_house_begin_restart, domi_house_try_to_end_restart,
 * carry_out_directive_of_parent, domi_house_handle_own_node; house/dispatch/deliver.c sort_node_of_inbox; house/message/mailbox.c domi_mailbox_put_node_to_free_slot. life.pml has the mail and the
 * lives.
 * Holds: the node says one thing at a time, and to the life that is meant; a child that is suspended
 * is decided upon; a child that is asked to stop, or whose start failed for good, ends; a slot is
 * free once in each life, and not while its parent lists it; a restart does not follow a stop; a
 * parent ends, after its children.
 *
 * @run short safety -DLIVES=1
 * @run short safety -DFAILS=1
 * @run long safety
 *
 * @mutant short safety FAILED_BLIND -DLIVES=1 : a failure is sent by a node that is in use
 * @mutant short safety TAKEN_BLIND -DLIVES=1 : a decision for all is sent by a node that is in use
 * @mutant short safety TAKEN_AFTER_STOP -DFAILS=1 : a decision for all is sent to a child that was asked to stop
 * @mutant short safety STOP_TAKES_NODE -DLIVES=1 : a stop is sent by a node that is in use
 * @mutant short safety HASTE_LEFT -DLIVES=1 : a stop may still be hastened when the child ends
 * @mutant long safety NODE_NOT_AWAITED -DFAILS=1 : a slot is freed while its node is with its parent
 * @mutant long safety NODE_KEPT -DLIVES=1 : a directive has come, and the node stays in use
 * @mutant long safety DIRECTED_BLIND -DLIVES=1 : a directive has come, and nobody looks at a stop
 * @mutant long safety RESUMED_FOR_GOOD -DLIVES=1 : a child that could not start is resumed
 * @mutant long safety FATAL_FORGOTTEN -DLIVES=1 : a restart that fails while a failure is undecided is forgotten, and the child is resumed
 * @mutant long safety SUSPENDED_KEPT -DLIVES=1 : a directive does not end the suspension
 * @mutant long safety RESTART_STOPPED -DLIVES=1 : a restart goes on although a stop was asked for
 * @mutant long safety FREED_AT_ONCE -DFAILS=1 : a slot is free before its parent has heard of it
 * @mutant long safety FREE_BY_LEASE -DLIVES=1 : FREE frees the slot only if its lease is the present one
 * @mutant long safety STRUCK_LATE -DFAILS=1 : the parent gives the slot back before it takes the child off its list
 * @mutant long safety PARENT_ENDS_EARLY -DLIVES=1 : a parent does not wait for its children
 * @mutant long safety PARENT_KEEPS_CHILD -DLIVES=1 : a parent that stops does not stop its child */
#ifndef LIVES
#define LIVES 2
#endif
#ifndef FAILS
#define FAILS 2 /* failures of all lives together */
#endif

mtype = { MOUNT, STOP, DIRECTIVE, FREE, FAILED, GONE }; /* the message in the node */
mtype = { RESUME, RESTART, END };                       /* the directives of the parent */
mtype = { CREATED, MOUNTING, WAITING, RUNNING };

/* The life word: one atomic. */
byte lease = 1;
bit closed = 1, stop, node, haste;

/* The node: its message, the lease that it is for, and the inbox in which it lies. */
mtype says, directive;
byte says_lease;
bit in_child, in_parent;

/* These belong to the child; only the thread that has the child (home or the thief) touches
 * them. */
mtype state = CREATED;
bit roused, suspended, fatal, stopping, restarting, mounted, dead;
bit exposed, returned; /* the thief has the child; the thief has given it back */
byte fails;

/* These belong to the parent. */
bit parent_stays; /* this parent never stops */
bit listed, parent_stopping, parent_ended, has_decided_for_all;

bit is_free = 1;
byte life;                              /* how many lives have begun, LIVES at most */
byte ended, released;                   /* ghosts: only the checks use them */
byte listed_life;
byte known, known_lease;

/* domi_house_ask_to_stop, or domi_house_ask_to_stop_hastily, called by another thread */
inline ask_to_stop(its_lease, hasty)
{
    atomic {
        mine = 0;
        if
        :: lease == its_lease && !closed && (!stop || (hasty && !haste)) ->
            mine = !node;
            stop = 1;
            haste = haste || hasty;
            node = 1
#ifdef STOP_TAKES_NODE
            ;
            mine = 1
#endif
        :: else
        fi
    };
    if
    :: mine -> mine = 0; send_to_child(STOP, its_lease)
    :: else
    fi
}

inline send_to_child(what, its_lease)
{
    atomic {
        assert(!in_child && !in_parent);
        says = what;
        says_lease = its_lease;
        in_child = 1
    }
}

/* This models put_node_of_child_to_parent. */
inline send_to_parent(what)
{
    atomic {
        assert(!in_child && !in_parent && !parent_ended);
        says = what;
        in_parent = 1
    }
}

/* domi_family_report_failure_or_decide, on the thread that runs the child */
inline fail(for_good)
{
    if
    :: !stopping && !suspended ->
        suspended = 1;
        fatal = for_good;
        atomic {
            was = node;
            node = 1
        };
#ifdef FAILED_BLIND
        was = 0;
#endif
        if
        :: !was -> send_to_parent(FAILED)
        :: else -> was = 0
        fi
#ifndef FATAL_FORGOTTEN
    :: !stopping && suspended && for_good -> fatal = 1 /* one decision is made for both failures */
#endif
    :: else
    fi
}

/* A mount or a restart; both may fail. */
inline start()
{
    mounted = 1;
    if
    :: true
    :: fails < FAILS -> fails++; mounted = 0; fail(1)
    fi
}

inline rouse()
{
    if
    :: !exposed && state == WAITING -> roused = 1
    :: else
    fi
}

/* This models carry_out_directive_of_parent. */
inline be_directed()
{
    was_fatal = fatal;
#ifndef SUSPENDED_KEPT
    suspended = 0;
#endif
    fatal = 0;
    if
#ifdef RESUMED_FOR_GOOD
    :: directive == END -> stop = 1
    :: directive == RESUME
#else
    :: directive == END || (directive == RESUME && was_fatal) -> stop = 1
    :: directive == RESUME && !was_fatal
#endif
    :: directive == RESTART ->
        if
        :: !stopping && state != MOUNTING -> restarting = 1
        :: else
        fi
    fi;
    was_fatal = 0;
#ifdef DIRECTED_BLIND
    if
    :: restarting -> rouse()
    :: else
    fi
#else
    rouse()
#endif
}

/* This models sort_node_of_inbox, domi_house_handle_own_node. */
inline sort()
{
    atomic {
        assert(in_child);
        in_child = 0;
        if
#ifdef FREE_BY_LEASE
        :: says == FREE && says_lease != lease
        :: says == FREE && says_lease == lease ->
#else
        :: says == FREE ->
#endif
            assert(dead && closed);
            dead = 0;
            released++;
            is_free = 1
        :: says != FREE ->
            /* because no slot is freed while its node is in use */
            assert(!closed && says_lease == lease);
#ifdef NODE_KEPT
            if
            :: says != DIRECTIVE -> node = 0
            :: else
            fi;
#else
            node = 0;
#endif
            if
            :: says == MOUNT -> assert(state == CREATED); state = MOUNTING
            :: says == STOP -> rouse()
            :: says == DIRECTIVE -> be_directed()
            fi
        fi
    }
}

#ifdef NODE_NOT_AWAITED
#define NODE_HOLDS false
#else
#define NODE_HOLDS node
#endif

/* domi_house_settle_after_run, domi_house_try_to_end_stop, free_house, domi_family_remove_ended_child. Home runs this. */
inline settle()
{
    if
#ifdef RESTART_STOPPED
    :: atomic { restarting && !stopping -> restarting = 0; assert(!stop) }
        start()
#else
    :: atomic { restarting && !stopping && !stop -> restarting = 0; assert(!stop) }
        start()
#endif
    :: else
    fi;
    if
    :: stop -> stopping = 1
    :: else
    fi;
    if
    :: stopping && !in_child ->
        /* is_own_node_under_way: from here on nobody hastens the end */
        atomic {
            was = NODE_HOLDS;
#ifndef HASTE_LEFT
            haste = 1
#endif
        }
    :: else -> was = 1
    fi;
    if
    :: !was ->
        atomic {
            assert(!in_parent && !in_child);
            haste = 0;
            closed = 1;
            ended++;
            stopping = 0;
            suspended = 0;
            fatal = 0;
            restarting = 0;
            mounted = 0;
            roused = 0;
            fails = FAILS; /* the next life does not fail */
            state = CREATED;
            lease++;
            stop = 0;
            node = 0;
            dead = 1
        };
        send_to_parent(GONE);
#ifdef FREED_AT_ONCE
        is_free = 1
#endif
    :: else -> was = 0; state = WAITING
    fi
}

proctype home()
{
    bit was, was_fatal;

end:
    do
    :: in_child && !exposed -> sort()
    :: atomic { state == MOUNTING && !exposed -> skip }
        if
        :: !stop -> start()
        :: else
        fi;
        state = WAITING;
        if
        :: stop || restarting -> roused = 1
        :: else
        fi
    :: atomic { roused && !exposed && state == WAITING -> roused = 0; state = RUNNING }
        settle()
    :: atomic { state == WAITING && !exposed && fails < FAILS && !suspended && !stop -> state = RUNNING }
        fails++; /* the child handles a message, and its handler fails */
        fail(0);
        settle()
    :: atomic { state == WAITING && !exposed && fails < FAILS && !suspended -> exposed = 1 }
    :: atomic { returned -> returned = 0; exposed = 0; state = RUNNING }
        settle()
    od
}

proctype thief()
{
    bit was;

end:
    do
    :: exposed && !returned ->
        if
        :: true
        :: fails < FAILS -> fails++; fail(0)
        fi;
        returned = 1
    od
}

proctype parent()
{
    bit mine;

end:
    do
    :: atomic { is_free && life < LIVES && !parent_stopping && !listed -> is_free = 0 }
        atomic {
            life++;
            listed = 1;
            listed_life = life;
            has_decided_for_all = 0;
            assert(closed && state == CREATED && !node)
        };
        atomic { closed = 0; node = 1 };
        atomic { known = life; known_lease = lease };
        send_to_child(MOUNT, lease)
    :: in_parent ->
        atomic {
            in_parent = 0;
            assert(listed && listed_life == life);
            if
            :: says == FAILED ->
                if
                :: parent_stopping -> directive = END
                :: !parent_stopping ->
                    if
                    :: directive = RESUME
                    :: directive = RESTART
                    :: directive = END
                    fi
                fi
            :: else -> assert(says == GONE)
            fi
        };
        if
        :: says == FAILED -> send_to_child(DIRECTIVE, lease)
        :: says == GONE ->
#ifdef STRUCK_LATE
            send_to_child(FREE, 0);
            atomic { assert(listed_life == life && !is_free); listed = 0 }
#else
            listed = 0;
            send_to_child(FREE, 0)
#endif
        fi
    :: atomic { listed && !has_decided_for_all && !in_parent && !parent_stopping ->
            has_decided_for_all = 1 /* because another child has failed */
        }
        atomic {
            if
#if defined(TAKEN_BLIND)
            :: !closed && !stop -> node = 1; mine = 1
#elif defined(TAKEN_AFTER_STOP)
            :: !closed && !node -> node = 1; mine = 1
#else
            :: !closed && !stop && !node -> node = 1; mine = 1
#endif
            :: else
            fi
        };
        if
        :: mine -> mine = 0; directive = RESTART; send_to_child(DIRECTIVE, lease)
        :: else
        fi
    :: !parent_stays && !parent_stopping && !in_parent ->
        parent_stopping = 1;
#ifndef PARENT_KEEPS_CHILD
        if
        :: listed -> ask_to_stop(lease, 1) /* as a restart does */
        :: else
        fi
#endif
#ifdef PARENT_ENDS_EARLY
    :: parent_stopping -> break
#else
    :: parent_stopping && !listed -> break
#endif
    od;
    parent_ended = 1
}

/* A foreign thread stops the life that it knows, once, perhaps when that life is over. */
proctype stranger()
{
    byte its_lease;
    bit mine;

    if
    :: known > 0 -> its_lease = known_lease; ask_to_stop(its_lease, 0)
    :: skip
    fi
}

init {
    atomic {
        if
        :: parent_stays = 1
        :: skip
        fi;
        run home();
        run thief();
        run parent();
        run stranger()
    };
    timeout ->
    assert(!in_child && !in_parent && ended == released);
    if
    :: parent_stays -> assert(!suspended && (closed || mounted))
    :: else -> assert(parent_ended && !listed && is_free && ended == life)
    fi
}
