/* The runners of pools in a test kit: each is drawn by the seed, as a thread is, and then gives one
 * turn. Spares do not begin, because a handler of a kit never blocks. */
#ifndef DOMI_RUNTIME_TESTKIT_RUNNERS_H
#define DOMI_RUNTIME_TESTKIT_RUNNERS_H

#include "runtime/testkit/kit.h"

/* Let the runners of all pools begin, with chance that follows from `seed`. Returns 0; -ENOMEM. */
int domi_kit_runners_begin(domus_testkit *kit, uint64_t seed);

/* True if runner `index`, 0..kit->runner_count-1, has something to do. */
bool domi_kit_runner_can_move(const domus_testkit *kit, uint32_t index, uint64_t now_ns);

/* Take a step of a runner that can move. */
void domi_kit_runner_step(domus_testkit *kit, uint32_t index);

/* The time at which a timer of a pool is due next; UINT64_MAX: never. */
uint64_t domi_kit_runners_due_ns(const domus_testkit *kit);

/* True if all of them have left their loops. */
bool domi_kit_runners_have_left(const domus_testkit *kit);

#endif
