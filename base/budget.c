/* Budgets: a sum that all threads add to. It guards no other data, so its atomics are relaxed. */
#include <domus/budget.h>

#include <errno.h>

int domus_budget_charge(domus_budget *budget, uint64_t *charged, uint64_t bytes)
{
    if (budget == NULL || bytes == *charged)
        return 0;
    /* The sum counts modulo 2^64, so a charge of a negative number takes bytes off the budget. */
    uint64_t more = bytes - *charged;
    uint64_t used = __atomic_add_fetch(&budget->used_bytes, more, __ATOMIC_RELAXED);

    if (bytes > *charged && used > budget->bytes_max) {
        (void)__atomic_sub_fetch(&budget->used_bytes, more, __ATOMIC_RELAXED);
        return -ENOMEM;
    }
    *charged = bytes;
    return 0;
}
