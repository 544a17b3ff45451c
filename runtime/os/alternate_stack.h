/* The alternate stack of a thread, on which the handler of a crash runs: the thread's own stack may
 * be what has overflowed. */
#ifndef DOMI_RUNTIME_OS_ALTERNATE_STACK_H
#define DOMI_RUNTIME_OS_ALTERNATE_STACK_H

#include <stddef.h>

typedef struct domi_alternate_stack {
    void *memory; /* NULL: the thread has none of ours */
    size_t bytes;
} domi_alternate_stack;

/* Give the calling thread an alternate stack, unless it has one, as with a sanitizer. Without
 * memory it gets none. */
void domi_alternate_stack_begin(domi_alternate_stack *stack);

/* From now on threads that the library makes shall have one. */
void domi_alternate_stacks_want(void);

/* Do the same as domi_alternate_stack_begin() if the threads of the system have to have such a
 * stack. */
void domi_alternate_stack_begin_wanted(domi_alternate_stack *stack);

/* Take it back, on the same thread. Nothing happens if none was given. */
void domi_alternate_stack_end(domi_alternate_stack *stack);

#endif
