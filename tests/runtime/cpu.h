/* Helpers for tests of CPU profiles: two actors that use CPU time at 3 to 1, and the text of a
 * profile that shows them. */
#ifndef DOMT_CPU_H
#define DOMT_CPU_H

#include "tests/runtime/pooled.h"

#include <domus/cpu_profile.h>

extern char domt_cpu_text[];   /* the text of a profile, NUL-terminated */
extern size_t domt_cpu_length; /* length of domt_cpu_text in bytes */

/* Append a piece to domt_cpu_text; for domus_cpu_profile_write(). */
int domt_cpu_keep(void *context, const char *piece, size_t size);

/* Use the CPU on this thread for `ns`. */
void domt_cpu_burn(uint64_t ns);

/* The notice that the actors send each other after they have used the CPU for 0.9 and 0.3 ms, in
 * the functions burn_much() and burn_little(). The test sets the addresses of both actors
 * before. */
extern const domus_type domt_cpu_go;
extern const domus_behaviour domt_cpu_busy;      /* named "busy" */
extern const domus_behaviour domt_cpu_less_busy; /* named "less;busy" */
extern domus_address domt_cpu_much, domt_cpu_little;

/* Start a system with one thread, on which both actors work. */
domus_system *domt_cpu_start_busy(void);

domus_cpu_profile *domt_cpu_take(domus_system *system, uint64_t duration_ms, uint32_t frequency);
domus_cpu_profile_summary domt_cpu_sum_of(const domus_cpu_profile *profile);

/* Write the folded stacks to domt_cpu_text, and check their form: a name, further names behind
 * semicolons, a blank and a number. The numbers must sum to that of all samples. */
void domt_cpu_fold(const domus_cpu_profile *profile);

/* Returns the samples of the lines in the text that begin with `begin`. */
uint64_t domt_cpu_samples_of(const char *begin);

#endif
