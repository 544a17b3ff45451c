/* Helpers for tests of CPU profiles: two actors that use CPU time at 3 to 1, and what a profile of
 * them says. */
#ifndef DOMT_CPU_H
#define DOMT_CPU_H

#include "tests/runtime/pooled.h"

#include <domus/cpu_profile.h>

extern char domt_cpu_text[];   /* NUL-terminated */
extern size_t domt_cpu_length; /* of it */

/* Add to the text (domus_cpu_profile_write). */
int domt_cpu_keep(void *context, const char *piece, size_t size);

/* Use the CPU of this thread for so long. */
void domt_cpu_burn(uint64_t ns);

/* The actors send each other this notice, after they have burned 0.9 and 0.3 ms, in functions that
 * are called burn_much and burn_little. Whoever spawns them sets the addresses before. */
extern const domus_type domt_cpu_go;
extern const domus_behaviour domt_cpu_busy;      /* "busy" */
extern const domus_behaviour domt_cpu_less_busy; /* "less;busy" */
extern domus_address domt_cpu_much, domt_cpu_little;

/* A system with one thread, on which both are at work. */
domus_system *domt_cpu_start_busy(void);

domus_cpu_profile *domt_cpu_take(domus_system *system, uint64_t duration_ms, uint32_t frequency);
domus_cpu_profile_summary domt_cpu_sum_of(const domus_cpu_profile *profile);

/* Write the folded stacks into the text, and hold their form: a name, others behind semicolons, a
 * blank and a number. The numbers are those of all samples. */
void domt_cpu_fold(const domus_cpu_profile *profile);

/* The samples of the lines in the text that begin with `begin`. */
uint64_t domt_cpu_samples_of(const char *begin);

#endif
