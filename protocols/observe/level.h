/* How much the observed system measures (profile.level), and changes of that level. */
#ifndef DOMI_PROTOCOLS_OBSERVE_LEVEL_H
#define DOMI_PROTOCOLS_OBSERVE_LEVEL_H

#include <domus/config.h>
#include <domus/domus.h>

/* Returns the word of a level, as in the configuration. */
const char *domi_observe_level_name(domus_profile_level level);

/* Raise the level to spans for a trace, and set it back. A viewer that changes the level in between
 * changes the one that is set back, and a level that the program itself sets stays. Thread-safety:
 * the port's thread. */
void domi_observe_level_raise(void);
void domi_observe_level_put_back(void);

/* Handle POST /profile?level=WORD for a viewer. */
int domi_observe_serve_level(domus_stack *stack, void *self, const void *payload);

#endif
