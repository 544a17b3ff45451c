/* The notes of a loan are about time-outs of a house that another thread runs.
 *
 * The idea: the timer wheel belongs to home. A thief that runs a lent house may neither arm nor
 * unlink there, so it leaves a note by the promise's own node, and home carries the notes out when
 * the house is back. Until then no promise that is on the wheel or in a note is freed, and home's
 * wheel does nothing for a house that is away. The model has one promise of one conversation, which
 * is used again and again, either embedded in its stack or from the pool. It is answered, fails or
 * is given up, at home or on a loan, and its time-out may come at any moment.
 *
 * Models: house/conversation/promise.c domi_promise_arm_deadline, domi_promise_fail, unlink_promise_from_stack, domi_promise_finish,
 * domi_promise_finish_and_release, domi_promise_release; house/conversation/expire.c domi_promise_fail_at_deadline,
 * domi_promise_carry_out_note_of_thief, free_abandoned_promise; house/conversation/park.c domi_stack_free_if_done;
 * house/conversation/turn.c
 * domi_stack_handle_answer, record_node_left_mailbox; house/conversation/notes.c; house/dispatch/loan.c make_exposed_house_home_again, domi_loan_run_house_and_return. A
 * handler is one step, because no two threads have the house at a time; the wheel is home's all the time.
 * Holds: the thief does not touch the wheel; what is on the wheel, in a note, in the mailbox or in a list of
 * answers is not freed; the node is in one place at a time; each promise and each stack is freed, exactly
 * once; each wait ends.
 *
 * @run short safety
 * @run long safety -DWAITS=3 -DLOANS=3
 *
 * @mutant short safety ARMED_FROM_AFAR : the thief arms home's wheel
 * @mutant short safety UNLINKED_FROM_AFAR : the thief unlinks from home's wheel
 * @mutant short safety FREED_TIMED : the thief frees a promise that is on home's wheel
 * @mutant long safety AWAY_NOT_COUNTED : a stack does not count what it left on home's wheel
 * @mutant long safety AWAY_KEPT : `away` is never decremented, so the stack is never freed
 * @mutant long safety EXPIRED_AWAY : home acts on a time-out whose house is away
 * @mutant long safety UNNOTED_NOT : a promise that fails is queued while its node is still a note
 * @mutant long safety NOTES_LOST : a house is given back without its notes
 * @mutant long safety NOTED_IGNORED : a promise whose node is a note is freed
 * @mutant long safety DONE_ARMED : a note arms a promise that is done
 * @mutant long safety QUEUED_FREED : a promise that is in the mailbox is freed */
#ifndef WAITS
#define WAITS 2
#endif
#ifndef LOANS
#define LOANS 2
#endif
#define ACTS WAITS /* if nobody else ends a wait, its time-out does */

mtype = { FREE, WAITING, DONE, DEAD };  /* the states of a promise */
mtype = { HOME, SHOWN, LENT, RETURNED }; /* where the house is */

mtype place = HOME;
mtype state = FREE;
bit embedded;         /* the promise is a part of its stack */
bit queued, noted, timed;
bit on_wheel;         /* the promise is on the wheel; `timed` is the promise's own mark of that */
bit in_mailbox;
bit in_thiefs_notes, in_loans_notes;
bit stack, ended;     /* a stack exists; its conversation is over */
bit kept;             /* the answer is in the stack's list of answers, and not shown yet */
byte away;
byte waits, loans, acts;

byte begun, over; /* ghosts: waits that have begun, and that are over */

#define NODE_PLACES (in_mailbox + in_thiefs_notes + in_loans_notes)

inline wheel_arm()
{
    assert(me_is_home && !on_wheel);
    on_wheel = 1;
    timed = 1
}

inline wheel_cancel()
{
    assert(me_is_home);
    on_wheel = 0;
    timed = 0
}

inline note()
{
    assert(NODE_PLACES == 0);
    noted = 1;
    in_thiefs_notes = 1
}

#define IS_LENT (!me_is_home)

/* This models domi_promise_arm_deadline. */
inline arm()
{
    if
#ifdef ARMED_FROM_AFAR
    :: true -> wheel_arm()
#else
    :: !IS_LENT -> wheel_arm()
    :: IS_LENT -> note()
#endif
    fi
}

/* This models domi_stack_free_if_done. */
inline free_stack_if_done()
{
    if
    :: stack && ended && !(embedded && (queued || noted)) && away == 0 ->
        assert(!kept && !on_wheel && !(embedded && state != FREE));
        stack = 0
    :: else
    fi
}

/* This models unlink_promise_from_stack. */
inline unlink_promise_from_stack()
{
    assert(state == WAITING);
    over++;
    if
#ifdef UNLINKED_FROM_AFAR
    :: timed -> wheel_cancel()
#else
    :: timed && IS_LENT ->
#ifndef AWAY_NOT_COUNTED
        away++
#endif
    :: timed && !IS_LENT -> wheel_cancel()
#endif
    :: else
    fi
}

/* This models domi_promise_release. */
inline release()
{
    if
#ifdef QUEUED_FREED
    :: noted -> state = DEAD
    :: else ->
#else
#ifdef NOTED_IGNORED
    :: queued -> state = DEAD
    :: !queued && !(timed && IS_LENT) ->
#else
    :: queued || noted -> state = DEAD
    :: !queued && !noted && timed && IS_LENT ->
#ifdef FREED_TIMED
        assert(!on_wheel)
#else
        state = DEAD;
        note()
#endif
    :: !queued && !noted && !(timed && IS_LENT) ->
#endif
#endif
        if
        :: timed -> /* the promise ended on a loan, and is released at home */
            wheel_cancel();
#ifndef AWAY_KEPT
            away--
#endif
        :: else
        fi;
        assert(!on_wheel && NODE_PLACES == 0);
        state = FREE
    fi
}

/* The conversation ends: domi_stack_park_or_end, end_conversation. */
inline end_stack()
{
    assert(stack && !ended);
    ended = 1;
    free_stack_if_done()
}

/* This models domi_promise_fail. */
inline fail()
{
    assert(state == WAITING && !queued);
#ifndef UNNOTED_NOT
    if
    :: noted -> noted = 0; in_thiefs_notes = 0
    :: else
    fi;
#endif
    assert(NODE_PLACES == 0);
    queued = 1;
    in_mailbox = 1
}

#define HAS_WORK \
    ((!stack && state == FREE && waits < WAITS) || (state == WAITING && acts < ACTS) || \
     state == DONE || in_mailbox)

/* A handler of the house, on whichever thread has it. */
inline handle()
{
    if
    :: !stack && state == FREE && waits < WAITS -> /* the actor asks */
        waits++;
        begun++;
        stack = 1;
        ended = 0;
        if
        :: embedded = 0
        :: embedded = 1
        fi;
        state = WAITING;
        arm()
    /* the answer comes: domi_stack_handle_answer, and the conversation ends */
    :: state == WAITING && acts < ACTS ->
        acts++;
        unlink_promise_from_stack();
        release();
        end_stack()
    /* the answer is one of several that the conversation waits for */
    :: state == WAITING && acts < ACTS ->
        acts++;
        unlink_promise_from_stack();
        state = DONE;
        kept = 1
    :: state == DONE -> /* the other answers have come: free_shown_answers */
        kept = 0;
        release();
        end_stack()
    :: state == WAITING && !queued && acts < ACTS -> acts++; fail() /* the actor cancels the wait */
    :: state == WAITING && acts < ACTS -> /* the actor stops: domi_promise_abandon */
        acts++;
        unlink_promise_from_stack();
        release();
        end_stack()
    :: in_mailbox -> /* this models record_node_left_mailbox */
        in_mailbox = 0;
        queued = 0;
        if
        :: state == WAITING ->
            unlink_promise_from_stack();
            release();
            end_stack()
        :: state == DEAD ->
            release();
            free_stack_if_done()
        :: state == DONE
        fi
    fi
}

proctype home()
{
    bit me_is_home = 1;

end:
    do
    :: atomic { place == HOME && HAS_WORK -> handle() }
    :: atomic { on_wheel -> /* this models domi_promise_fail_at_deadline */
            if
#ifndef EXPIRED_AWAY
            :: place != HOME /* the wheel looks again a tick later */
            :: place == HOME ->
#else
            :: true ->
#endif
                assert(stack);
                assert(place == HOME);
                on_wheel = 0;
                timed = 0;
                if
                :: state != WAITING ->
                    away--;
                    free_stack_if_done()
                :: state == WAITING && queued
                :: state == WAITING && !queued -> fail()
                fi
            fi
        }
    :: atomic { place == HOME && loans < LOANS -> loans++; place = SHOWN }
    :: atomic { place == SHOWN -> place = HOME }
    :: atomic { place == RETURNED -> /* this models make_exposed_house_home_again, domi_promise_carry_out_note_of_thief */
            place = HOME;
            if
            :: in_loans_notes ->
                in_loans_notes = 0;
                noted = 0;
                if
#ifdef DONE_ARMED
                :: state == WAITING || state == DONE -> wheel_arm()
#else
                :: state == WAITING -> wheel_arm()
                :: state == DONE
#endif
                :: state == DEAD ->
                    release();
                    free_stack_if_done()
                fi
            :: else
            fi
        }
    od
}

proctype thief()
{
    bit me_is_home = 0;

end:
    do
    :: atomic { place == SHOWN -> place = LENT }
    :: atomic { place == LENT && HAS_WORK -> handle() }
    :: atomic { place == LENT -> /* domi_notes_take_those_of_thiefs_run, and the return of the house */
#ifdef NOTES_LOST
            in_thiefs_notes = 0;
#else
            in_loans_notes = in_thiefs_notes;
            in_thiefs_notes = 0;
#endif
            place = RETURNED
        }
    od
}

init {
    atomic {
        run home();
        run thief()
    };
    timeout ->
    assert(begun == WAITS && over == begun);
    assert(state == FREE && !stack && away == 0 && !on_wheel && NODE_PLACES == 0)
}
