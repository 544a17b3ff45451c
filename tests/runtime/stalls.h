/* Helpers for tests of the stall watch: a log whose lines are kept, and functions in which an
 * actor stays until the report about it was logged. So a late monitor makes a test slow, and not
 * wrong. */
#ifndef DOMT_STALLS_H
#define DOMT_STALLS_H

#include "tests/runtime/running.h"

#include "runtime/system/system.h"

#define DOMT_LINES_MAX 2048u

/* Forget all kept lines, and start a system whose log lines are kept. */
domus_system *domt_start_logging_system(const domus_config *config);

/* Returns how many kept log lines contain both texts; `second` may be NULL. */
uint32_t domt_count_log_lines(const char *first, const char *second);

/* Returns the first kept log line that contains `part`, for the message of a failed test; "" if
 * there is none. */
const char *domt_first_log_line(const char *part);

/* Let the log hook block at each line that contains `part`, until domt_let_stays_and_log_go_on() is
 * called; NULL: at no line. */
void domt_block_log_at_line(const char *part);

/* Let the actors and the log hook that stay somewhere (domt_block_log_at_line()) go on. */
void domt_let_stays_and_log_go_on(void);

/* Stay in this function for `ns`, and until a log line with `part` was kept (NULL: for no line),
 * but at most 20 s. domt_stay_busy() uses CPU time, domt_stay_asleep() sleeps; both functions lie
 * in a section of the program of their own. */
void domt_stay_busy(uint64_t ns, const char *part);
void domt_stay_asleep(uint64_t ns, const char *part);

/* Returns whether a kept line of a backtrace has an address within domt_stay_busy() or
 * domt_stay_asleep(). */
bool domt_backtrace_shows_stay(void);

/* Returns how many stalls of all threads of the system are over. */
uint64_t domt_count_ended_stalls(const domus_system *system);

/* Returns whether a thread of this process has this name. */
bool domt_has_thread_named(const char *name);

#endif
