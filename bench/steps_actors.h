/* The actors of bench_steps. */
#ifndef BENCH_STEPS_ACTORS_H
#define BENCH_STEPS_ACTORS_H

#include <domus/domus.h>

#include <stdint.h>

extern const domus_type steps_note; /* a number */

extern uint64_t steps_handled; /* the sum of the numbers that came to the sinks */

extern const domus_behaviour steps_sink;   /* takes notices */
extern const domus_behaviour steps_sender; /* gets nothing */

/* The state of an asker, which a note lets ask its peer twice, one ask after the other. */
struct steps_asker {
    domus_address peer; /* a steps_answerer */
    uint64_t answered;  /* answers so far; 0 at first */
};

extern const domus_behaviour steps_asker;
extern const domus_behaviour steps_answerer; /* replies with what it was asked */

#endif
