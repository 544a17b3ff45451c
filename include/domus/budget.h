/* Budgets: one bound on the memory that many peers may make a program hold, for instance by
 * messages that have come in part. A stage (domus/stage.h) that gathers bytes lets them count on
 * the budget of its options; the stages of RESP and HTTP do so.
 *
 * Thread-safety: any thread, at the same time. A charge that one thread is about to be refused may
 * for a moment be in the way of another thread's, so near the bound either may be refused. */
#ifndef DOMUS_BUDGET_H
#define DOMUS_BUDGET_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A budget. It stays the caller's, and has to be valid as long as something counts on it. */
typedef struct domus_budget {
    uint64_t bytes_max;
    /* bytes that count on the budget now; 0 at first, and only the library changes it */
    uint64_t used_bytes;
} domus_budget;

/* Let `bytes` count on a budget for one holder, instead of the `*charged` bytes that counted for it
 * before (at first 0). Fewer bytes are never refused, and 0 ends it. Without a budget (NULL)
 * nothing counts.
 *
 * Returns 0, and `*charged` is `bytes`; -ENOMEM when more than `bytes_max` would count: then
 * `*charged` is as it was. */
DOMUS_API int domus_budget_charge(domus_budget *budget, uint64_t *charged, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
