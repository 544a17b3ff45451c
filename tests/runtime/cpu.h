/* Helpers for tests of CPU profiles: two actors that use CPU time in the ratio 3 to 1, and the text
 * of a profile that shows them. */
#ifndef DOMT_CPU_H
#define DOMT_CPU_H

#include "tests/runtime/pooled.h"

#include <domus/cpu_profile.h>

extern char domt_cpu_text[];   /* the text of the last CPU profile, with a zero byte at the end */
extern size_t domt_cpu_length; /* length of domt_cpu_text in bytes */

/* Append a piece of a CPU profile to domt_cpu_text; a function for domus_cpu_profile_write(). */
int domt_cpu_append_piece_to_text(void *context, const char *piece, size_t size);

/* Keep the CPU busy on the calling thread for `ns` nanoseconds. */
void domt_cpu_keep_busy(uint64_t ns);

/* The notice that the two actors send each other. At each notice the first actor keeps the CPU busy
 * for 0.9 ms in burn_much(), the second one for 0.3 ms in burn_little(). A test sets the addresses
 * of both actors first. */
extern const domus_type domt_cpu_go;
/* the actor that uses more CPU time, named "busy" */
extern const domus_behaviour domt_cpu_busy;
/* the actor that uses less CPU time, named "less;busy" */
extern const domus_behaviour domt_cpu_less_busy;
extern domus_address domt_cpu_much, domt_cpu_little;

/* Start a system with one thread, on which both busy actors work. */
domus_system *domt_cpu_start_busy_system(void);

domus_cpu_profile *domt_cpu_take_profile(domus_system *system, uint64_t duration_ms,
                                         uint32_t frequency);
domus_cpu_profile_summary domt_cpu_summary_of_profile(const domus_cpu_profile *profile);

/* Write the folded stacks of a CPU profile to domt_cpu_text, and check the form of each line: names
 * divided by semicolons, a blank and a number. The numbers must add up to the number of all
 * samples. */
void domt_cpu_write_folded_stacks(const domus_cpu_profile *profile);

/* Returns the sum of the samples in the lines of domt_cpu_text that begin with `begin`. */
uint64_t domt_cpu_sum_samples_of_lines(const char *begin);

#endif
