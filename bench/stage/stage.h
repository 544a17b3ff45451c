/* The common parts of the programs that do rows on domus: their system, and how they end. */
#ifndef DOMUS_BENCH_STAGE_H
#define DOMUS_BENCH_STAGE_H

#include <domus/domus.h>

/* stage_exit_with_wrong_result() ends the process with the exit status for a wrong result.
 * stage_must_succeed() ends it, if `error` is not 0, with the status for work that could not be
 * done. */
_Noreturn void stage_exit_with_wrong_result(const char *what);
void stage_must_succeed(int error, const char *what);

/* Make and start a system. If it has more than one thread, an idle thread spins for a while
 * before it sleeps, as the threads of the peers do. If the system cannot be started, this
 * ends the process. */
domus_system *stage_start_system(uint32_t threads);

/* Make and start a system with a pool of `runners` runners, which share its actors by the policy
 * `policy`. Its one thread has nothing to do and sleeps, so the runners alone use the CPUs. If the
 * system cannot be started, or there is no such policy, this ends the process. */
domus_system *stage_start_system_with_pool(uint32_t runners, const char *policy,
                                           const domus_pool **ret_pool);

#endif
