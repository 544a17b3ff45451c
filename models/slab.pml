/* Objects that are freed by another thread than their owner.
 *
 * The idea: an object goes back to its owner. If its owner frees it, it is the next one taken. A
 * freer, which is another thread, links it into its chain for the owner and pushes the chain as a
 * whole. The owner takes all pushed objects at once and sorts a bounded part of them at a time. One
 * object may stay with the freer, as a guest: it is the next one taken there. The model has one
 * owner with OBJECTS objects, which takes one TAKES times and gives it away, and FREERS threads
 * that free the objects, or use them to answer.
 *
 * Models: house/message/pool.c domi_pool_take_object_slow, domi_pool_sort_returned_objects, domi_pool_free_object_slow, domi_pool_push_chains_to_owners, push_chain_of_objects_to_owner,
 * add_object_to_chain_of_owner; house/message/pool.h domi_pool_take_object, domi_pool_take_envelope, domi_pool_free_object; base/slab.h
 * domi_slab_take_object, domi_slab_put_object. Holds: an object is not given out while it is used, and none is
 * lost: the owner never waits for ever, and at the end all that was carved is there.
 *
 * @run short safety -DTAKES=3
 * @run short safety -DCOLLECT=2 -DOBJECTS=2
 * @run long safety
 *
 * @mutant short safety TAIL_MOVES : a chain's tail is the last freed, not the first
 * @mutant short safety NO_RELINK : the tail is linked once, before the tries to push
 * @mutant short safety PUSH_STORES : a push looks, then stores
 * @mutant short safety CHAIN_KEPT : a chain is not emptied when it was pushed
 * @mutant short safety REST_DROPPED : what is beyond the bound of one sorting is forgotten
 * @mutant short safety NO_FLUSH : chains are not pushed before a park
 * @mutant short safety GUEST_TWICE : a guest that was taken is still noted as the guest
 * @mutant short safety GUEST_STAYS : a thread parks with a guest
 * @mutant long safety LINK_AFTER_PUSH : the tail is linked after the chain was pushed
 * @mutant long safety COLLECT_STORES : the owner looks, then stores
 * @mutant long safety REST_OVERWRITTEN : more is taken while a rest is unsorted
 * @mutant long safety OWNER_IGNORED : a freer keeps the object */
#ifndef OBJECTS
#define OBJECTS 3
#endif
#ifndef TAKES
#define TAKES 4
#endif
#ifndef COLLECT
#define COLLECT 1 /* COLLECT_MAX */
#endif
#define FREERS    2
#define CHAIN_MAX 2 /* DOMI_CHAINED_MAX */
#define NONE      OBJECTS

byte next[OBJECTS + 1]; /* the last entry is for NONE, and nobody reads it */
/* the free list, the objects to be sorted, and how many were ever taken from the slab; only the
 * owner uses these */
byte free = NONE, returned = NONE, carved;
byte remote = NONE;                        /* the chain that others push to, and that the owner takes as a whole */
byte head[FREERS] = NONE, tail[FREERS] = NONE, chained[FREERS];
bit used[OBJECTS + 1];  /* ghost: the object is in use */
byte takes;
byte guest[FREERS] = NONE;
/* guests that a freer took to answer, on their way to the owner */
chan answers = [OBJECTS] of { byte };
chan given[FREERS] = [OBJECTS] of { byte };

/* This models domi_slab_put_object. */
inline put_free(object)
{
    atomic { next[object] = free; free = object }
}

/* This models domi_pool_sort_returned_objects. */
inline collect()
{
#ifdef REST_OVERWRITTEN
    if
    :: remote != NONE -> atomic { returned = remote; remote = NONE }
#else
    if
    :: returned == NONE && remote != NONE ->
#ifdef COLLECT_STORES
        returned = remote;
        remote = NONE
#else
        atomic { returned = remote; remote = NONE }
#endif
#endif
    :: else
    fi;
    most = COLLECT;
    do
    :: returned != NONE && most > 0 ->
        object = returned;
        returned = next[object];
        put_free(object);
        most--
    :: else -> break
    od;
#ifdef REST_DROPPED
    returned = NONE;
#endif
    most = 0;
    object = NONE
}

inline take_answer()
{
    used[object] = 0;
    put_free(object);
    object = NONE
}

proctype owner()
{
    byte object = NONE, most, to;

    do
    :: takes < TAKES ->
        if
        :: free == NONE -> collect()
        :: else
        fi;
        if
        :: free != NONE -> atomic { object = free; free = next[object] }
        :: free == NONE && carved < OBJECTS -> atomic { object = carved; carved++ }
        /* the code would take a new chunk here instead of waiting */
        :: else -> (remote != NONE || returned != NONE || len(answers) > 0)
        fi;
        if
        :: object != NONE ->
            atomic {
                assert(!used[object]);
                used[object] = 1;
                takes++
            };
            if
            :: given[0]!object
            :: given[1]!object
            :: used[object] = 0; put_free(object) /* the owner frees the object itself */
            fi;
            object = NONE
        :: else
        fi
    :: answers?object -> take_answer()
    :: takes == TAKES && empty(answers) -> break
    od;
end:
    do
    :: answers?object -> take_answer()
    od
}

/* This models push_chain_of_objects_to_owner. */
inline push_chain_of_objects_to_owner()
{
    was = remote;
#ifdef NO_RELINK
    next[tail[me]] = was;
#endif
    do
    :: true ->
#if !defined(NO_RELINK) && !defined(LINK_AFTER_PUSH)
        next[tail[me]] = was;
#endif
#ifdef PUSH_STORES
        remote = head[me];
        break
#else
        if
        :: atomic { remote == was -> remote = head[me] }
            break
        :: atomic { remote != was -> was = remote }
        fi
#endif
    od;
#ifdef LINK_AFTER_PUSH
    next[tail[me]] = was;
#endif
    atomic {
#ifndef CHAIN_KEPT
        head[me] = NONE;
        tail[me] = NONE;
#endif
        chained[me] = 0;
        was = NONE
    }
}

inline chain(node)
{
    next[node] = head[me];
    if
#ifdef TAIL_MOVES
    :: true -> tail[me] = node
#else
    :: head[me] == NONE -> tail[me] = node
    :: else
#endif
    fi;
    head[me] = node;
    chained[me]++
}

#ifdef GUEST_STAYS
#define IS_GUEST false
#else
#define IS_GUEST (guest[me] != NONE)
#endif

proctype freer(byte me)
{
    byte object, was = NONE;
    bit owes; /* the freer has to send an answer */

end:
    do
    :: given[me]?object ->
        used[object] = 0;
        if
        :: owes = 1
        :: owes = 0
        fi;
#ifdef OWNER_IGNORED
        skip
#else
        atomic { /* domi_pool_free_object_slow uses only words of this thread, so it is one step */
            if
            :: guest[me] == NONE -> guest[me] = object /* the freer keeps it as its guest */
            :: true -> chain(object)
            fi;
            object = 0
        };
        if
        :: chained[me] >= CHAIN_MAX -> push_chain_of_objects_to_owner()
        :: else
        fi
#endif
    :: atomic { guest[me] != NONE && owes -> /* the guest is taken, to answer the owner */
            owes = 0;
            assert(!used[guest[me]]);
            used[guest[me]] = 1;
            answers!guest[me];
#ifndef GUEST_TWICE
            guest[me] = NONE
#endif
        }
#ifndef NO_FLUSH
    :: atomic { len(given[me]) == 0 && IS_GUEST -> chain(guest[me]); guest[me] = NONE }
        push_chain_of_objects_to_owner() /* a thread pushes its chain before it parks */
    :: len(given[me]) == 0 && chained[me] > 0 -> push_chain_of_objects_to_owner()
#endif
    od
}

/* Add the number of objects in the list that begins at `from`. */
inline count(from)
{
    object = from;
    do
    :: object != NONE -> sum++; assert(sum <= OBJECTS); object = next[object]
    :: else -> break
    od
}

init {
    byte object, sum;

    atomic {
        run owner();
        run freer(0);
        run freer(1)
    };
    timeout ->
    assert(takes == TAKES);
    atomic {
        count(free);
        count(returned);
        count(remote);
        assert(sum == carved)
    }
}
