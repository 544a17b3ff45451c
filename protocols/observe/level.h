/* How much the observed system measures (profile.level), and changes of that. */
#ifndef DOMI_PROTOCOLS_OBSERVE_LEVEL_H
#define DOMI_PROTOCOLS_OBSERVE_LEVEL_H

#include <domus/config.h>
#include <domus/domus.h>

/* The word of a level, as in the configuration. */
const char *domi_observe_level_name(domus_profile_level level);

/* Let the system record spans for a trace, and put its level back. In between a viewer that changes
 * the level changes the one that is put back, and a level that the program itself sets stays.
 * Thread-safety: the port's thread. */
void domi_observe_level_raise(void);
void domi_observe_level_put_back(void);

/* Answer POST /profile?level=WORD; a handler of a viewer. */
int domi_observe_serve_level(domus_stack *stack, void *self, const void *payload);

#endif
