/* Checks of behaviours: each is checked once, before the first actor that has it. Any thread. */
#ifndef DOMI_HOUSE_FAMILY_BEHAVIOUR_H
#define DOMI_HOUSE_FAMILY_BEHAVIOUR_H

#include <domus/actor.h>

#define DOMI_HOUSE_STATE_MAX (1024u * 1024) /* most bytes of an actor's state */

/* Check that the behaviour is complete and within all limits, and that its pipeline and that of its
 * channels are right. Returns 0, -EINVAL, or the error of a stage's `check`. */
int domi_behaviour_check(const domus_behaviour *behaviour);

/* Returns the fault of a behaviour that domi_behaviour_check() refuses, in words that follow the
 * behaviour's name. */
const char *domi_behaviour_find_fault(const domus_behaviour *behaviour);

#endif
