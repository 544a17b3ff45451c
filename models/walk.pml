/* The walk that finds a circle of asks, on a machine that reorders.
 *
 * The idea: a walker reads the fields of one wait (its stack, its parent, the parent's serial),
 * then looks at the serial of the wait once more, and uses the fields only if the serial is still
 * the one that it came for. A thread that ends a wait changes the serial before the memory is used
 * for the next wait. Here loads are made in any order, unless an acquire load holds the later ones
 * back, and stores reach the memory in any order, unless a release store waits for the earlier
 * ones, as on ARM. The model has one link of a chain, used for two waits; all fields of a wait hold
 * its number.
 *
 * Models: house/conversation/circle.c domi_stack_was_ask_made_for; house/conversation/promise.c domi_promise_new,
 * unlink_promise_from_stack; house/conversation/stack.c record_promise_of_asker. Holds: what the walker believes is of one wait, the
 * one it came for.
 *
 * @run short safety
 *
 * @mutant short safety STACK_RELAXED : the stack is read by a relaxed load
 * @mutant short safety PARENT_RELAXED : the parent is read by a relaxed load
 * @mutant short safety PARENT_SERIAL_RELAXED : the parent's serial is read by a relaxed load
 * @mutant long safety STACK_PLAIN : the stack is written by a relaxed store
 * @mutant long safety PARENT_PLAIN : the parent is written by a relaxed store
 * @mutant long safety PARENT_SERIAL_PLAIN : the parent's serial is written by a relaxed store
 * @mutant long safety SERIAL_LATE : the serial is changed after the fields of the next wait were written
 * @mutant long safety NO_SECOND_LOOK : the serial is looked at once */
#define STACK         0
#define PARENT        1
#define PARENT_SERIAL 2
#define SERIAL        3
#define WORDS         4

byte memory[WORDS];
bit stored[WORDS];  /* the store of the second wait was made */
bit visible[WORDS]; /* the store of the second wait has reached the memory */

#ifdef STACK_RELAXED
#define STACK_HOLDS false
#else
#define STACK_HOLDS true
#endif
#ifdef PARENT_RELAXED
#define PARENT_HOLDS false
#else
#define PARENT_HOLDS true
#endif
#ifdef PARENT_SERIAL_RELAXED
#define PARENT_SERIAL_HOLDS false
#else
#define PARENT_SERIAL_HOLDS true
#endif
#ifdef STACK_PLAIN
#define STACK_WAITS false
#else
#define STACK_WAITS true
#endif
#ifdef PARENT_PLAIN
#define PARENT_WAITS false
#else
#define PARENT_WAITS true
#endif
#ifdef PARENT_SERIAL_PLAIN
#define PARENT_SERIAL_WAITS false
#else
#define PARENT_SERIAL_WAITS true
#endif

inline store(word)
{
    stored[word] = 1
}

/* A thread ends the first wait, and uses the memory for the second one. */
proctype writer()
{
#ifndef SERIAL_LATE
    store(SERIAL);
#endif
    store(STACK);
    store(PARENT_SERIAL);
    store(PARENT);
#ifdef SERIAL_LATE
    store(SERIAL)
#endif
}

inline drain(word) { visible[word] = 1; memory[word] = 1 }

/* Stores reach the memory in any order, but a release store only after all stores made before
 * it. */
proctype stores()
{
end:
    do
    :: atomic { stored[SERIAL] && !visible[SERIAL] -> drain(SERIAL) }
    :: atomic { stored[STACK] && !visible[STACK] &&
                (!STACK_WAITS || !stored[SERIAL] || visible[SERIAL]) -> drain(STACK)
        }
    :: atomic { stored[PARENT_SERIAL] && !visible[PARENT_SERIAL] &&
                (!PARENT_SERIAL_WAITS || !stored[SERIAL] || (visible[SERIAL] && visible[STACK])) ->
            drain(PARENT_SERIAL)
        }
    :: atomic { stored[PARENT] && !visible[PARENT] &&
                (!PARENT_WAITS || !stored[SERIAL] ||
                 (visible[SERIAL] && visible[STACK] && visible[PARENT_SERIAL])) ->
            drain(PARENT)
        }
    od
}

/* In program order the loads are STACK, SERIAL, PARENT, PARENT_SERIAL, SERIAL again. Each may be
 * made as soon as no acquire load before it is outstanding; two loads of one word keep their
 * order. */
proctype walker()
{
    byte value[WORDS];
    byte again;
    bit has[WORDS];
    bit has_again;

    do
    :: !has[STACK] -> atomic { value[STACK] = memory[STACK]; has[STACK] = 1 }
    :: !has[SERIAL] && (has[STACK] || !STACK_HOLDS) ->
        atomic { value[SERIAL] = memory[SERIAL]; has[SERIAL] = 1 }
    :: !has[PARENT] && (has[STACK] || !STACK_HOLDS) ->
        atomic { value[PARENT] = memory[PARENT]; has[PARENT] = 1 }
    :: !has[PARENT_SERIAL] && (has[STACK] || !STACK_HOLDS) && (has[PARENT] || !PARENT_HOLDS) ->
        atomic { value[PARENT_SERIAL] = memory[PARENT_SERIAL]; has[PARENT_SERIAL] = 1 }
    :: !has_again && has[SERIAL] && (has[STACK] || !STACK_HOLDS) &&
            (has[PARENT] || !PARENT_HOLDS) && (has[PARENT_SERIAL] || !PARENT_SERIAL_HOLDS) ->
        atomic { again = memory[SERIAL]; has_again = 1 }
    :: has[STACK] && has[SERIAL] && has[PARENT] && has[PARENT_SERIAL] && has_again -> break
    od;
    if
    /* the walker may compare this stack with the one that it looks for */
    :: value[SERIAL] == 0 -> assert(value[STACK] == 0)
    :: else
    fi;
    if
#ifdef NO_SECOND_LOOK
    :: value[SERIAL] == 0 ->
#else
    :: value[SERIAL] == 0 && again == 0 ->
#endif
        assert(value[PARENT] == 0 && value[PARENT_SERIAL] == 0)
    :: else
    fi
}

init {
    atomic {
        run writer();
        run stores();
        run walker()
    }
}
