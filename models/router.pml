/* A router's lease: senders read fields that other threads write, and can tell whether these belong
 * to the lease that they were sent to.
 *
 * The idea: a router's fields belong to the lease in its life word. A thread changes the word
 * before it changes the fields. A sender reads fields, then looks at the word again, and uses them
 * only if the word still holds its lease. Several threads may end a router: one of them changes the
 * word, and the last one that uses the router, a stopper or the actor that owns it, gives the
 * memory back. The model has two lives of one router's memory; a sender with the address of the
 * first life that it sees; the owner; and a stranger that stops the router.
 *
 * Models: house/directory/router.c read_view_of_router, read_address_of_routee, has_router_still_lease, domi_router_stop; house/directory/router_make.c
 * open_router_with_name_and_lease, spawn_routees, give_back_stopped_routers_of_actor, take_free_or_new_router, domi_router_give_back_to_free_list, domi_router_stop_all_of_actor. Holds: a
 * message goes to a routee of the lease that it was sent to, or fails; the memory is given back exactly once
 * for each life, and not while somebody still uses it; all routees are stopped (M10: a lease is used once).
 *
 * @run short safety
 * @run long safety -DSENDS=2
 *
 * @mutant short safety STALE_VIEW : a routee is taken without another look at the word
 * @mutant short safety LOOKED_BEFORE : the word is looked at before the fields are read, not after
 * @mutant short safety STOP_STORED : a stop changes the word without comparing it
 * @mutant long safety LEASE_KEPT : the next life has the lease of the life before
 * @mutant long safety OPEN_FIRST : the word is opened before the fields are written
 * @mutant long safety NOT_STOPPING : the word does not say that a stopper still uses the router
 * @mutant long safety NO_ORPHAN : an owner that ends leaves a router that is being stopped
 * @mutant long safety ORPHAN_IGNORED : the stopper does not give back a router that its owner has left
 * @mutant long safety ORPHAN_KEPT : the mark of an orphan stays in memory that is used again
 * @mutant long safety PRUNED_EARLY : an owner gives back a router that is still being stopped */
#ifndef SENDS
#define SENDS 1
#endif
#define ROUTEES 2
#define LIVES   2

/* The life word: one atomic. */
byte lease = 1;
bit closed = 1, stopping, orphan;

byte count;            /* `count` and `routee` are the fields; their value here is */
byte routee[ROUTEES];  /* the number of the life that wrote them */

/* These two say where the router's memory is. */
bit is_free = 1;
bit in_list; /* the owner's list has it */

/* These are ghosts: only the checks of the model use them. */
byte life;              /* number of lives that were opened */
byte users;             /* stoppers between their exchange and the end of their use */
byte given_back;
byte routees_stopped;

/* This models domi_router_give_back_to_free_list. */
inline give_back()
{
    atomic {
        assert(closed && !stopping && !is_free);
        assert(users == 0);
#ifndef ORPHAN_KEPT
        orphan = 0;
#endif
        given_back++
    };
    is_free = 1
}

/* domi_router_stop, with the address of life `mine`. The lease of a life is its number. */
inline stop(mine)
{
    if
#ifdef STOP_STORED
    :: atomic { true ->
#else
    :: atomic { lease == mine && !closed && !stopping && !orphan ->
#endif
            assert(!closed); /* each life is stopped once */
#ifndef LEASE_KEPT
            lease++;
#endif
            closed = 1;
#ifndef NOT_STOPPING
            stopping = 1;
#endif
            users++
        }
        i = 0;
        do
        :: i < ROUTEES ->
            atomic {
                assert(routee[i] == mine); /* it is not a routee of the next life */
                routees_stopped++;
                i++
            }
        :: else -> break
        od;
        i = 0;
        atomic { /* one fetch-and */
            was_orphan = orphan;
            stopping = 0;
            users--
        };
        if
#ifndef ORPHAN_IGNORED
        :: was_orphan -> was_orphan = 0; give_back()
#endif
        :: else -> was_orphan = 0
        fi
    :: else
    fi
}

/* The owner opens the router, perhaps prunes its list and opens the router anew, and ends. */
proctype owner()
{
    byte i;
    bit was_orphan, was_stopping;

    do
    :: !in_list && is_free && life < LIVES ->
        is_free = 0;
        atomic { assert(closed && !stopping && !orphan); life++ };
#ifdef OPEN_FIRST
        closed = 0;
#endif
        do
        :: i < ROUTEES -> routee[i] = life; i++
        :: else -> break
        od;
        i = 0;
        count = life;
#ifndef OPEN_FIRST
        closed = 0;
#endif
        in_list = 1
#ifdef PRUNED_EARLY
    :: in_list && closed ->
#else
    :: atomic { in_list && closed && !stopping -> skip } /* this models give_back_stopped_routers_of_actor */
#endif
        in_list = 0;
        give_back()
    :: in_list -> break /* this models domi_router_stop_all_of_actor */
    od;
    in_list = 0;
    stop(life);
    atomic { /* one fetch-or */
        was_stopping = stopping;
        orphan = 1
    };
    if
    :: !was_stopping -> give_back()
#ifdef NO_ORPHAN
    :: was_stopping -> orphan = 0
#else
    :: else
#endif
    fi
}

/* A stranger stops the life that it knows, once. */
proctype stranger()
{
    byte i, mine;
    bit was_orphan;

end:
    atomic { life > 0 && !closed -> mine = life };
    stop(mine)
}

/* domi_router_put_to_one_or_all_routees, with the address of the first life that the sender saw. */
proctype sender()
{
    byte mine, its_count, to, i;
    bit still;

end:
    atomic { life > 0 && !closed -> mine = life };
    do
    :: i < SENDS ->
        i++;
#ifdef LOOKED_BEFORE
        still = (lease == mine && !closed);
        its_count = count;
        to = routee[ROUTEES - 1];
#else
        its_count = count;
        still = (lease == mine && !closed);
        if
        :: still ->
            to = routee[ROUTEES - 1];
#ifndef STALE_VIEW
            still = (lease == mine && !closed)
#endif
        :: else
        fi;
#endif
        if
        :: still -> assert(its_count == mine && to == mine)
        :: else
        fi;
        still = 0;
        its_count = 0;
        to = 0
    :: else -> break
    od
}

init {
    atomic {
        run owner();
        run stranger();
        run sender()
    };
    timeout ->
    assert(given_back == life && is_free && users == 0);
    assert(routees_stopped == life * ROUTEES);
    assert(closed && !stopping && !orphan)
}
