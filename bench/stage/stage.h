/* What the programs that do rows on domus have in common: how they end, and their system. */
#ifndef DOMUS_BENCH_STAGE_H
#define DOMUS_BENCH_STAGE_H

#include <domus/domus.h>

/* The process ends; its status says that the result was wrong, or (when `error` is not 0) that the
 * work could not be done. */
_Noreturn void stage_wrong(const char *what);
void stage_must(int error, const char *what);

/* Started; with more than one thread an idle one looks for work for a while before it parks, as the
 * peers' do. Ends the process when there is none. */
domus_system *stage_system(uint32_t threads);

#endif
