/* Helpers for tests of the stall watch: a log that is kept, and functions in which actors stay
 * until the report that they cause was logged. So a late monitor makes a test slow, not wrong. */
#ifndef DOMT_STALLS_H
#define DOMT_STALLS_H

#include "tests/runtime/running.h"

#include "runtime/system/system.h"

#define DOMT_LINES_MAX 2048u

/* Forget all lines; then start a system whose log keeps them. */
domus_system *domt_start_logging(const domus_config *config);

/* How many lines have both texts in them; `second` may be NULL. */
uint32_t domt_lines(const char *first, const char *second);

/* The first line with `part` in it, for the message of a failure; "" if there is none. */
const char *domt_line(const char *part);

/* The log hook stays in each line that has this in it until domt_go_on(); NULL: none. */
void domt_log_stays_at(const char *part);

/* Tell the actors and the log hook to go on after their stay. */
void domt_go_on(void);

/* Stays for `ns`, and until a line with `part` has come (NULL: no line), at most 20 s. The first
 * burns CPU time, the second sleeps; both lie in a section of their own. */
void domt_burn(uint64_t ns, const char *part);
void domt_doze(uint64_t ns, const char *part);

/* Whether a line of a backtrace names an address in one of these two functions. */
bool domt_trace_shows_it(void);

/* How many stalls are over, on all threads. */
uint64_t domt_stalls_over(const domus_system *system);

/* Whether a thread of this process has this name. */
bool domt_has_thread(const char *name);

#endif
