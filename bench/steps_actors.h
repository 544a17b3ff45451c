/* The actors of bench_steps, and the types that they use. */
#ifndef BENCH_STEPS_ACTORS_H
#define BENCH_STEPS_ACTORS_H

#include <domus/domus.h>

#include <stdint.h>

extern const domus_type steps_note; /* a notice with a number */

extern uint64_t steps_handled; /* the sum of all numbers that came to the sinks */

extern const domus_behaviour steps_sink;   /* takes notices */
extern const domus_behaviour steps_sender; /* gets nothing */

/* The state of an asker. At a note it asks its peer twice, one ask after the other. */
struct steps_asker {
    domus_address peer; /* address of a steps_answerer */
    uint64_t answered;  /* number of answers so far; 0 at first */
};

extern const domus_behaviour steps_asker;
extern const domus_behaviour steps_answerer; /* replies with the number that it was asked */

#endif
