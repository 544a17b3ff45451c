/* Helpers for tests of the stall watch: a log that is kept, and functions in which actors stay
 * until the report about them was logged. So a late monitor makes a test slow, not wrong. */
#ifndef DOMT_STALLS_H
#define DOMT_STALLS_H

#include "tests/runtime/running.h"

#include "runtime/system/system.h"

#define DOMT_LINES_MAX 2048u

/* Forget all lines, and start a system whose log keeps its lines. */
domus_system *domt_start_logging(const domus_config *config);

/* Returns how many lines contain both texts; `second` may be NULL. */
uint32_t domt_lines(const char *first, const char *second);

/* Returns the first line with `part` in it, for the message of a failure; "" if there is none. */
const char *domt_line(const char *part);

/* Let the log hook stay in each line that contains `part`, until domt_go_on(); NULL: in none. */
void domt_log_stays_at(const char *part);

/* Let the actors and the log hook end their stay. */
void domt_go_on(void);

/* Stay for `ns`, and until a line with `part` has come (NULL: no line), at most 20 s. The first
 * function burns CPU time, the second sleeps; both lie in a section of their own. */
void domt_burn(uint64_t ns, const char *part);
void domt_doze(uint64_t ns, const char *part);

/* Whether a line of a backtrace names an address in domt_burn() or domt_doze(). */
bool domt_trace_shows_it(void);

/* Returns how many stalls are over, on all threads. */
uint64_t domt_stalls_over(const domus_system *system);

/* Whether a thread of this process has this name. */
bool domt_has_thread(const char *name);

#endif
