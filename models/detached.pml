/* Detached actors: how a thread is reserved for one, and how all their threads are closed.
 *
 * The idea: a detached thread has one actor at a time. So it is reserved (`busy`) before the actor
 * is spawned there, and the thread itself frees it when its actor has come and has ended.
 * Reservations, and all spawns of detached actors, exclude the close by the mutex. So when the
 * threads are told to stop, no actor is on its way to one of them, and no thread is made
 * afterwards, which nobody would tell to stop. The model has two places for threads. An actor of
 * the loop spawns detached actors, and a detached actor spawns one, too.
 *
 * Models: runtime/outside/detached.c reserve_or_make_detached_thread, make_detached_thread, domi_detached_spawn_actor, lock_system_for_spawn,
 * unlock_system_after_spawn, run_loop_of_detached_actor, follow_new_orders, sleep_until_mail_or_due_time, domi_detached_close_for_spawns,
 * domi_detached_wake_all_threads; runtime/control/stop.c close_spawning_and_stop_actors, domi_system_set_stop_step, domi_system_end_threads;
 * house/family/birth.c domi_house_spawn_for_directory (the exclusion).
 * Holds: one actor at a time on each thread; nobody is born on a thread that has walked its actors
 * to stop them; each actor ends; each thread ends, and none sleeps with work; the stop comes to its
 * end.
 *
 * @run short safety -DSPAWNS=1
 * @run long safety
 *
 * @mutant short safety RESERVED_LATE : a thread is marked as busy after the mutex was unlocked
 * @mutant short safety FREE_EARLY : a thread without an actor is free, although one is on its way to it
 * @mutant short safety BUSY_KEPT : a spawn that fails leaves its thread reserved
 * @mutant long safety SPAWN_BLIND : a detached actor spawns without a look at `closed`
 * @mutant long safety SPAWN_UNLOCKED : a detached actor looks at `closed` and spawns without the mutex
 * @mutant long safety CLOSE_NOT_AWAITED : the threads stop while the loop's actors may still spawn
 * @mutant long safety MADE_WHILE_CLOSED : a thread is made after the close
 * @mutant long safety NO_LOOK_AT_WORK : the second look before a sleep leaves out `mounts`
 * @mutant long safety NO_LOOK_AT_WANTED : the second look before a sleep leaves out `stop_step`
 * @mutant long safety NOTIFY_FIRST : the park word is looked at before `stop_step` is written */
#ifndef SPAWNS
#define SPAWNS 2 /* how often the loop's actor spawns */
#endif
#define PLACES 2

#define NONE    0 /* the values of `stop_step` that detached threads follow */
#define ACTORS  1
#define END     2

bit mutex;  /* the mutex of the system */
bit closed; /* `detached_closed` of the system; under the mutex */
byte count; /* threads that were made */
bit busy[PLACES];

byte stop_step; /* of the system */
bit sleeping[PLACES]; /* the park word; 0 stands for RUNNING and NOTIFIED */
byte mounts[PLACES];  /* actors that were put there and not taken yet */
bit ended[PLACES];

bit loop_closes, loop_has_followed; /* the loop's thread is told CLOSE; it has followed */

byte houses[PLACES];                /* actors alive on the thread; only the thread writes this */
bit walked[PLACES];                 /* ghosts: only the checks use them */
byte born, died;
byte met; /* threads that were there when the detached actors were closed */
bit stops, in_order, is_over;
bit one_has_spawned; /* a detached actor has spawned; one does so, once */

inline lock() { atomic { !mutex -> mutex = 1 } }
inline unlock() { assert(mutex); mutex = 0 }

/* This models domi_manager_notify_of_push. */
inline notify(whom) { sleeping[whom] = 0 }

/* reserve: `place` becomes the reserved thread; PLACES: there is none. */
inline reserve()
{
    lock();
    atomic {
        place = 0;
        do
        :: place < count && busy[place] -> place++
        :: place < count && !busy[place] -> break
        :: place == count -> break
        od;
        if
#ifdef MADE_WHILE_CLOSED
        :: place == count && place == PLACES
        :: place == count && place < PLACES -> run detached(place); count++
#else
        :: place == count && (closed || place == PLACES) -> place = PLACES
        :: place == count && !closed && place < PLACES -> run detached(place); count++
#endif
        :: place < count
        fi;
#ifndef RESERVED_LATE
        if
        :: place < PLACES -> busy[place] = 1
        :: else
        fi
#endif
    };
    unlock();
#ifdef RESERVED_LATE
    if
    :: place < PLACES -> busy[place] = 1
    :: else
    fi
#endif
}

inline set_free(which)
{
    lock();
    busy[which] = 0;
    unlock()
}

/* domi_house_spawn_child, onto `place`. The spawn may fail because memory is short. */
inline spawn()
{
    if
    :: atomic {
            assert(!walked[place] && !ended[place] && houses[place] + mounts[place] == 0);
            mounts[place]++;
            born++
        };
        notify(place)
    :: failed = 1
    fi
}

inline finish_spawn()
{
    if
    :: failed ->
        failed = 0;
#ifdef BUSY_KEPT
        skip
#else
        set_free(place)
#endif
    :: else
    fi
}

proctype detached(byte me)
{
    byte place, begun; /* `begun` is the stop_step of the thread */
    bit had_one, failed, looked, refused;

    do
    :: atomic { true -> /* this models follow_new_orders, receive_arrivals_and_fire_timers */
            if
            :: stop_step >= ACTORS -> walked[me] = 1 /* domi_manager_stop_actors takes arrivals, too */
            :: else
            fi;
            begun = stop_step;
            if
            :: begun != END ->
                houses[me] = houses[me] + mounts[me];
                mounts[me] = 0;
                had_one = had_one || houses[me] > 0
            :: else
            fi
        };
        if
        :: begun == END -> break
        :: else
        fi;
        /* The thread's actor runs: it spawns another actor, or ends, or waits. */
        if
        :: houses[me] > 0 && !one_has_spawned && !walked[me] ->
            one_has_spawned = 1;
            reserve();
            if
            :: place < PLACES ->
#ifndef SPAWN_UNLOCKED
                lock();
#endif
#ifdef SPAWN_BLIND
                refused = 0;
#else
                refused = closed;
#endif
                if
                :: refused -> failed = 1; refused = 0
                :: else -> spawn()
                fi;
#ifndef SPAWN_UNLOCKED
                unlock();
#endif
                finish_spawn()
            :: else
            fi
        :: atomic { houses[me] > 0 -> houses[me]--; died++ }
        :: houses[me] > 0 && !walked[me] /* the actor waits */
        :: houses[me] == 0
        fi;
        if
#ifdef FREE_EARLY
        :: busy[me] && houses[me] == 0 ->
#else
        :: had_one && houses[me] == 0 ->
#endif
            had_one = 0;
            set_free(me)
        :: else
        fi;
        /* this models sleep_until_mail_or_due_time */
        sleeping[me] = 1;
        if
#ifndef NO_LOOK_AT_WORK
        :: mounts[me] > 0 -> looked = 1
#endif
#ifndef NO_LOOK_AT_WANTED
        :: stop_step != begun -> looked = 1
#endif
        :: else
        fi;
        if
        :: looked
        :: !looked ->
end_asleep:
            !sleeping[me]
        fi;
        atomic { sleeping[me] = 0; looked = 0 }
    od;
    ended[me] = 1;
    lock();
    busy[me] = 0;
    unlock()
}

/* A thread of the loop, whose actors spawn detached ones until it has followed CLOSE. */
proctype loop()
{
    byte i, place;
    bit failed;

    do
    :: i < SPAWNS && !loop_closes ->
        i++;
        reserve();
        if
        :: place < PLACES -> spawn(); finish_spawn()
        :: else
        fi
    :: loop_closes -> break
    :: i == SPAWNS && !loop_closes -> break
    od;
end:
    loop_closes;
    loop_has_followed = 1
}

/* domi_detached_close_for_spawns, domi_system_set_stop_step, domi_detached_wake_all_threads */
inline set_stop_step(step)
{
    lock();
    closed = 1;
    unlock();
#ifndef NOTIFY_FIRST
    stop_step = step;
#endif
    i = 0;
    do
    :: i < count -> notify(i); i++
    :: else -> break
    od;
#ifdef NOTIFY_FIRST
    stop_step = step;
#endif
    i = 0
}

proctype controller()
{
    byte i;

    if
    :: skip
    :: goto goes_on
    fi;
    lock();
    atomic { closed = 1; stops = 1; met = count };
    unlock();
    loop_closes = 1;
#ifndef CLOSE_NOT_AWAITED
    loop_has_followed;
#endif
    set_stop_step(ACTORS);
    if
    :: !busy[0] && !busy[1] -> in_order = 1 /* this models is_empty */
    :: skip /* the time-out of the stop is over */
    fi;
    set_stop_step(END);
    (count < 1 || ended[0]);
    (count < 2 || ended[1]);
    assert(count == met); /* the walks over the threads, which take no lock, meet all of them */
    is_over = 1;
goes_on:
    skip
}

init {
    atomic {
        run loop();
        run controller()
    };
    timeout ->
    assert(!mutex && stops == is_over);
    assert(mounts[0] + mounts[1] == 0 || (stops && !in_order));
    assert(!stops || (!busy[0] && !busy[1]));
    assert(!in_order || born == died)
}
