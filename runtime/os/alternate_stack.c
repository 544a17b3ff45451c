/* Alternate stacks for the handlers of signals. Each is a mapping of its own, behind a page that
 * cannot be touched, so an overflow of this stack is a fault, too, and overwrites nothing. */
#include "runtime/os/threads.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/* bytes of an alternate stack for the crash handler, far more than it needs; untouched pages
 * take no memory */
#define HANDLER_BYTES 65536u

static atomic_bool are_wanted;

/* Returns the size of an alternate stack for signals. The kernel also stores the registers of
 * the CPU on it, and AT_MINSIGSTKSZ tells how many bytes these take. */
static size_t size_of_alternate_stack(size_t page)
{
    unsigned long least = getauxval(AT_MINSIGSTKSZ);
    size_t bytes = HANDLER_BYTES + (least > 0 ? (size_t)least : (size_t)MINSIGSTKSZ);

    return (bytes + page - 1) / page * page;
}

void domi_alternate_stack_begin(domi_alternate_stack *stack)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = page + size_of_alternate_stack(page);
    stack_t now;

    *stack = (domi_alternate_stack){NULL, 0};
    if (sigaltstack(NULL, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0)
        return;
    char *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return;
    const stack_t wanted = {.ss_sp = memory + page, .ss_size = bytes - page};
    if (mprotect(memory + page, bytes - page, PROT_READ | PROT_WRITE) != 0 ||
        sigaltstack(&wanted, NULL) != 0) {
        (void)munmap(memory, bytes);
        return;
    }
    *stack = (domi_alternate_stack){memory, bytes};
}

void domi_alternate_stacks_want_for_threads(void)
{
    /* Relaxed: the threads that read `are_wanted` are made later. */
    atomic_store_explicit(&are_wanted, true, memory_order_relaxed);
}

void domi_alternate_stack_begin_if_wanted(domi_alternate_stack *stack)
{
    *stack = (domi_alternate_stack){NULL, 0};
    if (atomic_load_explicit(&are_wanted, memory_order_relaxed))
        domi_alternate_stack_begin(stack);
}

void domi_alternate_stack_end(domi_alternate_stack *stack)
{
    const stack_t none = {.ss_flags = SS_DISABLE};

    if (stack->memory == NULL || sigaltstack(&none, NULL) != 0)
        return;
    (void)munmap(stack->memory, stack->bytes);
    stack->memory = NULL;
}
