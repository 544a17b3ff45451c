/* The actors of bench_steps, and the types that they use. */
#ifndef BENCH_STEPS_ACTORS_H
#define BENCH_STEPS_ACTORS_H

#include <domus/domus.h>

#include <stdint.h>

extern const domus_type steps_note; /* type of a notice with a number */

extern uint64_t steps_handled; /* the sum of all numbers that came to actors of steps_sink */

extern const domus_behaviour steps_sink;   /* an actor that takes notices of steps_note */
extern const domus_behaviour steps_sender; /* an actor that only sends, and gets nothing */

/* The state of an asker. On a notice of steps_note it asks its peer twice, one ask after the
 * other. */
struct steps_asker {
    domus_address peer; /* address of the asker's peer, a steps_answerer */
    uint64_t answered;  /* number of answers to the present notice so far; 0 at first */
};

extern const domus_behaviour steps_asker;
/* an actor that replies with the number that it was asked */
extern const domus_behaviour steps_answerer;

#endif
