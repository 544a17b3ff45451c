/* The list of arrivals tells home which of its houses have mail in their inbox.
 *
 * The idea: the one sender that found a house's inbox empty links the house into its home's list,
 * by `arrival_next`. The house stays linked until home has taken it off the list. Only then does
 * home empty the inbox, and from that moment on the next sender may link the house again. So home
 * reads a house's `arrival_next` before it empties that house's inbox. A sender that gathers links
 * houses to a chain first and pushes the chain with one exchange. The model has two senders, one of
 * which gathers, and three houses of one home. lanes.pml models the loans, and there this list is a
 * queue.
 *
 * Models: house/message/arrivals.c push_chain_to_arrivals, push_all_chains_to_arrivals, domi_links_add_house_to_arrivals; house/message/mailbox.c put_node_to_inbox;
 * house/message/mailbox.h domi_mailbox_take_all_nodes_of_inbox; house/dispatch/phases.c take_houses_off_arrivals.
 * Holds: no house is linked twice; every message is taken; the list ends.
 *
 * @run short safety
 * @run long safety -DMESSAGES=3
 *
 * @mutant short safety NEXT_LATE : arrival_next is read after the inbox was emptied
 * @mutant short safety NEXT_AFTER_PUSH : arrival_next is written when the house is in the list
 * @mutant short safety HEAD_STORED : the head is stored, although another sender may have pushed meanwhile
 * @mutant long safety HEAD_NOT_REREAD : a push that failed is tried again with the old head behind it
 * @mutant long safety TAKEN_IN_TWO : home loads the list, then clears it
 * @mutant long safety INBOX_IN_TWO : home loads the inbox, then clears it
 * @mutant long safety EMPTIED_FIRST : home empties an inbox while the house is still linked
 * @mutant long safety LINK_FIRST : a sender links the house before the put
 * @mutant long safety CHAIN_LOST : only the newest house of a chain is pushed */
#ifndef MESSAGES
#define MESSAGES 2 /* messages of each sender */
#endif
#define HOUSES  3
#define SENDERS 2
#define NOBODY  HOUSES

byte head = NOBODY;
byte next[HOUSES];
byte inbox[HOUSES];
bit linked[HOUSES]; /* ghost: the house is in a chain or in the list */
byte sent, taken;

inline set_linked(which) { assert(!linked[which]); linked[which] = 1 }

/* push_chain_to_arrivals: the houses from `newest` to `oldest` are linked to each other already. */
inline push(newest, oldest)
{
    seen = NOBODY;
    pushed = 0;
    do
    :: !pushed ->
#ifndef NEXT_AFTER_PUSH
        next[oldest] = seen;
#endif
        atomic {
            if
#ifdef HEAD_STORED
            :: seen == NOBODY && head != NOBODY -> seen = head
            :: else -> stores = 1
#else
            :: head == seen -> head = newest; pushed = 1
#ifdef HEAD_NOT_REREAD
            :: head != seen -> head = newest; pushed = 1
#else
            :: head != seen -> seen = head
#endif
#endif
            fi
        };
#ifdef HEAD_STORED
        if
        :: stores -> stores = 0; head = newest; pushed = 1
        :: else
        fi
#endif
    :: pushed -> break
    od;
#ifdef NEXT_AFTER_PUSH
    next[oldest] = seen;
#endif
    atomic { seen = 0; pushed = 0 }
}

proctype sender(bit gathers)
{
    byte i, to, seen, newest = NOBODY, oldest = NOBODY;
    bit first, pushed, stores;

    do
    :: i < MESSAGES ->
        i++;
        if
        :: to = 0
        :: to = 1
        :: to = 2
        fi;
#ifdef LINK_FIRST
        atomic { first = (inbox[to] == 0 && !linked[to]); linked[to] = 1 };
#else
        atomic {
            first = (inbox[to] == 0);
            inbox[to]++;
            sent++;
            if
            :: first -> set_linked(to)
            :: else
            fi
        };
#endif
        if
        :: first && !gathers -> push(to, to)
        :: first && gathers ->
            next[to] = newest;
            if
            :: newest == NOBODY -> oldest = to
            :: else
            fi;
            newest = to
        :: else
        fi;
#ifdef LINK_FIRST
        atomic { inbox[to]++; sent++ };
#endif
        first = 0
    :: else -> break
    od;
    if
#ifdef CHAIN_LOST
    :: newest != NOBODY -> oldest = newest; push(newest, oldest)
#else
    :: newest != NOBODY -> push(newest, oldest)
#endif
    :: else
    fi
}

/* Home calls take_houses_off_arrivals again and again. */
proctype home()
{
    byte list, first, its_next, got;

end:
    do
    :: head != NOBODY ->
#ifdef TAKEN_IN_TWO
        list = head;
        head = NOBODY;
#else
        atomic { list = head; head = NOBODY };
#endif
        first = NOBODY;
        do
        :: list != NOBODY -> /* reverse the list, so that the oldest is first */
            its_next = next[list];
            next[list] = first;
            first = list;
            list = its_next
        :: else -> break
        od;
        do
        :: first != NOBODY ->
#ifdef EMPTIED_FIRST
            atomic { taken = taken + inbox[first]; inbox[first] = 0 };
            linked[first] = 0;
            its_next = next[first];
#else
#ifndef NEXT_LATE
            its_next = next[first];
#endif
            linked[first] = 0;
#ifdef INBOX_IN_TWO
            got = inbox[first];
            inbox[first] = 0;
#else
            atomic { got = inbox[first]; inbox[first] = 0 };
#endif
            taken = taken + got;
            got = 0;
#ifdef NEXT_LATE
            its_next = next[first];
#endif
#endif
            first = its_next
        :: else -> break
        od;
        atomic { list = 0; its_next = 0 }
    od
}

init {
    atomic {
        run home();
        run sender(0);
        run sender(1)
    };
    timeout ->
    assert(sent == SENDERS * MESSAGES && taken == sent);
    assert(head == NOBODY && !linked[0] && !linked[1] && !linked[2])
}
